"""Noise of symmetric matrices: its mixture as exact fractions, its law against quadrature, and who is caught."""

import functools
import math
from fractions import Fraction

import jax
import numpy as np
import pytest
from scipy import stats
from strategies import exhaustive

from jaxgeodp.samplers import hull_noise, hull_norm, nuclear_noise
from jaxgeodp.samplers.spectral import hull_mean_square
from jaxgeodp.samplers.spectral_table import LARGEST, product_in_zonal, spectral_table, zonal_at_one

DRAWS, LEVEL = 20_000, 1e-6


# The table ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("p", "q"), [(0, 3), (1, 4), (2, 3), (3, 3), (2, 5), *exhaustive((4, 4), (5, 6))])
def test_the_product_has_a_positive_expansion_with_the_right_value_at_one(p, q):
    found = product_in_zonal(p, q)
    assert all(own > 0 for own in found.values())
    assert all(sum(kappa) + sum(nu) == p * q for kappa, nu in found)
    assert sum(c * zonal_at_one(kappa) * zonal_at_one(nu) for (kappa, nu), c in found.items()) == 2 ** (p * q)


def test_the_expansion_of_two_and_two_is_that_by_hand():
    """P_1 = m_1, P_2 = m_2 + (2/3) m_11, P_11 = m_11, P_21 = m_21, P_22 = m_22; values of both sides at a point."""
    x, y = [Fraction(3, 2), Fraction(5)], [Fraction(7, 3), Fraction(-1, 4)]

    def zonal(part, a, b):
        first, second = part
        if part == (2, 0):
            return a * a + b * b + Fraction(2, 3) * a * b
        return (a * b) ** second * ((a + b) if first > second else 1)

    both = sum(c * zonal(kappa, *x) * zonal(nu, *y) for (kappa, nu), c in product_in_zonal(2, 2).items())
    assert both == math.prod(a + b for a in x for b in y)


@pytest.mark.parametrize("dim", [2, 3, 4, 5, 6, 7, *exhaustive(10)])
def test_the_weights_are_those_of_a_pfaffian(dim):
    """The sum over signs and sizes of the parts, for several scales of both parts, by de Bruijn's formula, exactly."""
    table, whole = spectral_table(dim), dim * (dim + 1) // 2
    for weight, rate in (
        (Fraction(1, 3), Fraction(1)),
        (Fraction(2), Fraction(5, 3)),
        (Fraction(1, 7), Fraction(3, 4)),
    ):
        exact = math.sqrt(squared_pfaffian(dim, weight, rate) / squared_pfaffian(dim, Fraction(1), Fraction(1)))
        z, u, p, size = float(weight), float(rate), table.positive, table.size
        # Positive eigenvalues have the density exp(-u x); each negative one counts z times.
        own = 0.5 * (z ** (dim - p) * u ** -size.astype(float) + z**p * u ** (size - float(whole)))
        assert table.nuclear @ own == pytest.approx(exact, rel=1e-11)
    halves = np.array([math.comb(whole, int(size)) for size in table.size]) * table.nuclear
    np.testing.assert_allclose(table.hull, halves / halves.sum(), rtol=1e-11)


def squared_pfaffian(dim, weight, rate) -> Fraction:
    """Of int int sgn(y - x) f_i(x) f_j(y), f_i = x^i exp(-rate x) above 0, weight x^i exp(x) below; bordered if odd."""
    f = [math.factorial(j) for j in range(2 * dim + 2)]

    def ordered(i, j):  # the integral of x^i y^j exp(-x - y) over 0 < x < y
        return f[i] * (f[j] - sum(Fraction(f[j + m], f[m] * 2 ** (j + m + 1)) for m in range(i + 1)))

    def entry(i, j):
        above = (ordered(i, j) - ordered(j, i)) / rate ** (i + j + 2)
        below = (-1) ** (i + j) * weight**2 * (ordered(j, i) - ordered(i, j))
        across = weight * f[i] * f[j] * ((-1) ** i / rate ** (j + 1) - (-1) ** j / rate ** (i + 1))
        return above + below + across

    matrix = [[entry(i, j) for j in range(dim)] for i in range(dim)]
    if dim % 2:
        border = [f[i] / rate ** (i + 1) + weight * (-1) ** i * f[i] for i in range(dim)]
        matrix = [[*row, border[i]] for i, row in enumerate(matrix)] + [[*(-b for b in border), Fraction(0)]]
    return determinant(matrix)


def determinant(matrix) -> Fraction:
    rows, value = [list(map(Fraction, row)) for row in matrix], Fraction(1)
    for j in range(len(rows)):
        pivot = next((i for i in range(j, len(rows)) if rows[i][j]), None)
        if pivot is None:
            return Fraction(0)
        if pivot != j:
            rows[j], rows[pivot], value = rows[pivot], rows[j], -value
        value *= rows[j][j]
        for i in range(j + 1, len(rows)):
            factor = rows[i][j] / rows[j][j]
            rows[i] = [a - factor * b for a, b in zip(rows[i], rows[j], strict=True)]
    return value


# Draws ----------------------------------------------------------------------------------------------------


def norm_of(values, law):
    """Of eigenvalues (..., dim)."""
    above, below = np.maximum(values, 0.0).sum(-1), np.maximum(-values, 0.0).sum(-1)
    return above + below if law == "nuclear" else np.maximum(above, below)


@functools.cache
def drawn(law, dim):
    """Eigenvalues, rising, and eigenvectors."""
    with jax.enable_x64(True):
        noise = {"nuclear": nuclear_noise, "hull": hull_noise}[law](jax.random.key(dim), DRAWS, dim)
    return np.linalg.eigh(np.asarray(noise))


def p_values(values, law):
    """Of eigenvalues: their norm; which share of their length the largest one is; both are independent."""
    dim = values.shape[1]
    norms, shapes = norm_of(values, law), values[:, -1] / np.linalg.norm(values, axis=1)
    return [
        stats.kstest(norms, stats.gamma(dim * (dim + 1) // 2).cdf).pvalue,
        stats.kstest(shapes, shape_cdf(law, dim)).pvalue,
        stats.spearmanr(norms, shapes).pvalue,
    ]


@functools.cache
def shape_cdf(law, dim):
    """Of directions of eigenvalues, with the density prod |u_i - u_j| norm(u)^(-dim (dim + 1)/2), by quadrature."""
    turns = (np.arange(4000) + 0.5) * 2.0 * math.pi / 4000
    points = np.stack([np.cos(turns), np.sin(turns)], -1)
    if dim == 3:
        heights = (np.arange(600) + 0.5) / 300 - 1.0
        around = np.sqrt(1.0 - heights**2)[:, None, None] * points[::5]
        points = np.concatenate([around, np.broadcast_to(heights[:, None, None], (600, 800, 1))], -1).reshape(-1, 3)
    differences = [abs(points[:, i] - points[:, j]) for i in range(dim) for j in range(i)]
    density = np.prod(differences, axis=0) * norm_of(points, law) ** (-0.5 * dim * (dim + 1))
    largest = points.max(axis=1)
    order = np.argsort(largest)
    below = np.cumsum(density[order])
    return lambda t: np.interp(t, largest[order], below / below[-1])


@pytest.mark.parametrize(("law", "dim"), [("nuclear", 3), ("hull", 2), ("hull", 3), *exhaustive(("nuclear", 2))])
def test_small_matrices_have_the_law_of_quadrature_and_wrong_samplers_are_rejected(law, dim):
    values, _ = drawn(law, dim)
    assert min(p_values(values, law)) > LEVEL
    rng = np.random.default_rng(0)
    alone = np.sort(rng.laplace(size=(DRAWS, dim)))  # no Vandermonde determinant
    alone *= (rng.gamma(dim * (dim + 1) // 2, size=DRAWS) / norm_of(alone, law))[:, None]
    signs = rng.choice([-1.0, 1.0], size=values.shape)  # signs that do not know of each other
    for wrong in (1.05 * values, alone, np.sort(signs * values)):
        assert min(p_values(wrong, law)) < LEVEL
    other = "hull" if law == "nuclear" else "nuclear"
    assert min(p_values(values, other)) < LEVEL


@pytest.mark.parametrize("dim", [4, *exhaustive(5, 6, 8)])
def test_the_largest_eigenvalue_has_the_law_of_a_pfaffian(dim):
    """P(all eigenvalues below t) is a ratio of Pfaffians of integrals up to t."""
    values, vectors = drawn("nuclear", dim)
    cdf = largest_cdf(dim)
    assert stats.kstest(values[:, -1], cdf).pvalue > LEVEL > stats.kstest(1.05 * values[:, -1], cdf).pvalue
    assert stats.kstest(-values[:, 0], cdf).pvalue > LEVEL
    first = vectors[:, 0, -1] ** 2  # of a vector that is uniform on the sphere
    assert stats.kstest(first, stats.beta(0.5, 0.5 * (dim - 1)).cdf).pvalue > LEVEL


def largest_cdf(dim):
    knots = np.linspace(-40.0, 40.0, 16_001)
    step = knots[1] - knots[0]
    powers = np.stack([knots**j / math.sqrt(math.factorial(2 * j)) for j in range(dim)]) * np.exp(-abs(knots))

    def integral(own):
        middle = 0.5 * step * (own[..., 1:] + own[..., :-1])
        return np.concatenate([np.zeros_like(own[..., :1]), np.cumsum(middle, axis=-1)], axis=-1)

    below = integral(powers)
    products = below[:, None] * powers[None]
    matrix = integral(products - np.swapaxes(products, 0, 1))
    if dim % 2:
        bordered = np.zeros((dim + 1, dim + 1, len(knots)))
        bordered[:dim, :dim], bordered[:dim, dim], bordered[dim, :dim] = matrix, below, -below
        matrix = bordered
    found = np.sqrt(np.maximum(np.linalg.det(np.moveaxis(matrix, -1, 0)), 0.0))
    return lambda t: np.interp(t, knots, found / found[-1])


@pytest.mark.parametrize("dim", [4, *exhaustive(6)])
def test_hull_noise_is_nuclear_noise_with_other_weights(dim):
    """Directions have densities norm^(-dim (dim + 1)/2): the ratio, up to 2^10 and 2^21, weighs draws."""
    (values, vectors), (others, _) = drawn("hull", dim), drawn("nuclear", dim)
    weights = (norm_of(others, "nuclear") / norm_of(others, "hull")) ** (0.5 * dim * (dim + 1))
    weights /= weights.sum()
    assert stats.kstest(norm_of(values, "hull"), stats.gamma(dim * (dim + 1) // 2).cdf).pvalue > LEVEL
    for shape in (lambda own: own[:, -1], lambda own: abs(own).sum(axis=1), lambda own: (own**2).sum(axis=1)):
        ours, theirs = (shape(own / norm_of(own, "hull")[:, None]) for own in (values, others))
        expected = weights @ theirs
        error = math.sqrt(np.sum(weights**2 * (theirs - expected) ** 2) + ours.var() / DRAWS)
        assert abs(ours.mean() - expected) < 5.0 * error < 0.05
    first = vectors[:, 0, 0] ** 2
    assert stats.kstest(first, stats.beta(0.5, 0.5 * (dim - 1)).cdf).pvalue > LEVEL


@pytest.mark.exhaustive
@pytest.mark.parametrize("law", ["nuclear", "hull"])
def test_a_long_walk_has_the_same_law(law):
    """Metropolis on the six eigenvalues, 4000 walks of 6000 steps from a law without repulsion."""
    dim, rng = 6, np.random.default_rng(1)
    above = np.triu_indices(dim, 1)

    def log_density(own):
        apart = abs(own[:, above[0]] - own[:, above[1]])
        return np.sum(np.log(np.maximum(apart, 1e-300)), axis=1) - norm_of(own, law)

    own = rng.laplace(scale=3.0, size=(4000, dim))
    current = log_density(own)
    for _ in range(6000):
        moved = own + rng.normal(size=own.shape) * 0.8
        there = log_density(moved)
        accept = np.log(rng.uniform(size=len(own))) < there - current
        own, current = np.where(accept[:, None], moved, own), np.where(accept, there, current)
    values, _ = drawn(law, dim)
    for of in (lambda x: x.max(axis=1), lambda x: abs(x.sum(axis=1)), lambda x: (x**2).sum(axis=1)):
        assert stats.ks_2samp(of(own), of(values)).pvalue > LEVEL
    assert stats.ks_2samp((own**2).sum(axis=1), (1.1 * values**2).sum(axis=1)).pvalue < LEVEL


@pytest.mark.parametrize("dim", [2, 3, 4, *exhaustive(1, 6, 8)])
def test_the_mean_square_of_hull_noise_is_known(dim):
    values, _ = drawn("hull", dim)
    squares = np.sum(values**2, axis=1)
    assert abs(squares.mean() - hull_mean_square(dim)) < 5.0 * squares.std() / math.sqrt(DRAWS)


def test_single_precision_batches_and_refusals():
    one = jax.vmap(lambda key: hull_noise(key, 1, 3, "float32")[0])(jax.random.split(jax.random.key(0), 2000))
    assert one.dtype == "float32"
    assert stats.kstest(np.asarray(jax.vmap(hull_norm)(one)), stats.gamma(6).cdf).pvalue > LEVEL
    again = hull_noise(jax.random.key(5), 3, 2)
    assert np.array_equal(again, hull_noise(jax.random.key(5), 3, 2)) and np.array_equal(again[0], again[0].T)
    for wrong in (0, LARGEST + 1, 2.5):
        with pytest.raises(ValueError, match="dim must be"):
            nuclear_noise(jax.random.key(0), 1, wrong)
