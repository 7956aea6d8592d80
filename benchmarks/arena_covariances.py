"""The second part of the arena: the covariance of n normal vectors in R^d, with a mean that is known to be 0."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import rivals
import rivals_clipped
from arena_scores import BUDGETS, Score, scored
from scipy.special import digamma

import jaxgeodp as jgd
from jaxgeodp.inference import SpreadMechanism, TangentCovariance
from jaxgeodp.samplers import hull_noise

# Of the budget that ours spends on finding where to whiten; CoinPress spends as much on all its rounds but the last.
_FINDING = 0.25
_ROUNDS = (1, 2, 3, 4, 5)


class Vectors(NamedTuple):
    """A cell: the covariance is known to have eigenvalues from 1 to ``condition``, and all vectors mean 0."""

    dim: int
    n: int
    condition: float
    budget: str  # "rho" or "epsilon"
    strength: float

    def __str__(self):
        return f"d = {self.dim}, n = {self.n}, κ = {self.condition:g}, {BUDGETS[self.budget]} = {self.strength:g}"

    @property
    def covariance(self) -> np.ndarray:
        """The true one: eigenvalues over the middle half of what is known, in directions of its own."""
        turn = np.linalg.qr(np.random.default_rng(self.dim).normal(size=(self.dim, self.dim)))[0]
        return (turn * self.condition ** np.linspace(0.25, 0.75, self.dim)) @ turn.T


def scores(cell: Vectors, replicates: int, *, blocks: bool = True) -> list[Score]:
    """All who enter, on the same data sets; ``blocks`` False leaves out those of ours that compile a search.

    Of a method with several settings the one with the least mean distance enters, which is known afterwards only; its
    other errors are those of the settings that are best for them.
    """
    rng = np.random.default_rng([cell.dim, cell.n])
    data = rng.normal(size=(replicates, cell.n, cell.dim)) @ np.linalg.cholesky(cell.covariance).T
    radius = np.sqrt(cell.condition) * rivals.normal_length(cell.dim)
    budget = {cell.budget: cell.strength}
    found = {("sample covariance", None): {"": rivals.second_moment(data)}}
    if cell.budget == "epsilon":
        moment = moments(jax.random.key(1), data, radius, budget)
        found["second moment, clipped, hull noise (SpreadMechanism)", True] = {"": moment}
        own = np.random.default_rng([cell.dim, cell.n, 1])
        found["rounds of CoinPress, hull noise", True] = {
            f" [{many}]": rivals.coinpress(own, data, cell.condition, many, **budget, release=with_hull_noise)
            for many in _ROUNDS
        }
    if blocks:
        found |= {(name, True): {"": value} for name, value in of_blocks(cell, data).items()}
    found |= {(name, False): own for name, own in of_rivals(rng, data, cell, radius, budget).items()}
    bounds = 1.0, cell.condition
    entered = []
    for (name, ours), own in found.items():
        judged = [
            scored(cell, name + setting, ours, within(value, *bounds), cell.covariance, paired=True)
            for setting, value in own.items()
        ]
        least = min(judged, key=lambda own: own.distance[0])
        others = {error: min(getattr(own, error) for own in judged) for error in ("mahalanobis", "frobenius")}
        entered.append(least._replace(**others))
    return entered


def of_rivals(rng, data, cell, radius, budget):
    """All that others have proposed: of each method the releases by its settings."""
    splits = {
        f" [{first:.2f} for eigenvalues, {'by eigenvalue' if adaptive else 'equal'}]": (first, adaptive)
        for first in sorted({0.5, 0.25, 1.0 / cell.dim})
        for adaptive in (True, False)
    }
    amin = {
        name: rivals.eigenvalue_and_vector_draws(rng, data, radius, **budget, first=first, adaptive=adaptive)
        for name, (first, adaptive) in splits.items()
    }
    rounds = {f" [{many}]": rivals.coinpress(rng, data, cell.condition, many, **budget) for many in _ROUNDS}
    normal = cell.budget == "rho"
    whole = "second moment, clipped, " + ("Analyze Gauss" if normal else "noise of d'Orsi & Novikov")
    found = {
        whole: {"": rivals.whole(rng, data, radius, **budget)},
        "Amin et al.": amin,
        "Dong et al., SeparateCov": {"": rivals_clipped.separate(rng, data, radius, **budget)},
        "Dong et al., AdaptiveCov": {"": rivals_clipped.adaptive(rng, data, radius, **budget)},
        "AdaptiveCov, radius by a histogram": {"": rivals_clipped.by_histogram(rng, data, radius, **budget)},
        "CoinPress" if normal else "rounds of CoinPress, noise of d'Orsi & Novikov": rounds,
    }
    if not normal:
        found["Laplace noise on entries"] = {"": rivals_clipped.entries(rng, data, radius, **budget)}
    return found


def within(matrices, lowest, highest):
    """With eigenvalues between what is known of them: nobody releases a matrix that is not positive."""
    values, vectors = np.linalg.eigh(0.5 * (matrices + np.swapaxes(matrices, 1, 2)))
    return (vectors * np.clip(values, lowest, highest)[:, None, :]) @ np.swapaxes(vectors, 1, 2)


def moments(key, data, radius, budget):
    """Ours: vectors are clipped to a ball about 0, and their second moment is released (`TangentCovariance`)."""
    space = jgd.Euclidean(data.shape[2])
    given = {"mu": float(np.sqrt(2.0 * budget["rho"]))} if "rho" in budget else budget
    ball = jgd.GeodesicBall(space, space.origin, radius)
    mechanism = SpreadMechanism(ball, space.origin, TangentCovariance(), **given)
    return _each(mechanism.law(data.shape[1]), key, data)


def with_hull_noise(rng, data, radius, *, epsilon):
    """The law of `moments` for a ball about 0, for rounds of others: one program for all radii."""
    count, n, dim = data.shape
    draws = hull_noise(jax.random.key(int(rng.integers(2**31))), count, dim)
    return rivals.second_moment(rivals.clipped(data, radius)) + radius**2 / n / epsilon * np.asarray(draws, float)


def of_blocks(cell, data):
    """Ours, by geometry: covariances of blocks are records on SPD(d), whose mean `LocatedMechanism` finds.

    A vector is in one block, so that neighbours differ in one record. The Frechet mean of Wishart matrices of a law
    that no rotation changes is a multiple of the identity, and congruences are isometries: that of block covariances is
    that multiple of the true one, log c = E log det W/d, and is divided by it. Alone it has all of the budget. Before a
    second moment it has a quarter, and whitens the vectors for the rest.
    """
    size = cell.dim + 3  # of blocks: so small that there are many
    count = cell.n // size
    blocks = data[:, : count * size].reshape(len(data), count, size, cell.dim)
    records = np.swapaxes(blocks, 2, 3) @ blocks / size / np.sqrt(cell.condition)
    log_factor = np.mean(digamma(0.5 * (size - np.arange(cell.dim)))) + np.log(2.0 / size)
    space = jgd.SPD(cell.dim)
    reach = 0.5 * np.sqrt(cell.dim) * np.log(cell.condition) + 4.0
    found = {}
    for name, share in (("mean of blocks (LocatedMechanism)", 1.0), ("mean of blocks, then second moment", _FINDING)):
        first, rest = _shared(cell, share)
        mechanism = jgd.LocatedMechanism(space, domain=float(reach), **first)
        try:
            law = mechanism.law(count)
        except ValueError:
            continue  # too few blocks: refused from n alone
        value = _each(law, jax.random.key(2), records)
        value = value * np.sqrt(cell.condition) / np.exp(log_factor)
        if rest is not None:
            values, vectors = np.linalg.eigh(within(value, 1.0, cell.condition))
            root = (vectors * np.sqrt(values)[:, None, :]) @ np.swapaxes(vectors, 1, 2)
            white = data @ np.linalg.inv(root)
            value = root @ moments(jax.random.key(3), white, rivals.normal_length(cell.dim), rest) @ root
        found[name] = value
    return found


def _shared(cell, share):
    """The budget of the search, and of what follows it: mu^2/2-zCDP and epsilon both add up."""
    rest = None if share == 1.0 else {cell.budget: (1.0 - share) * cell.strength}
    if cell.budget == "epsilon":
        return {"epsilon": share * cell.strength}, rest
    return {"mu": float(np.sqrt(2.0 * share * cell.strength))}, rest


def _each(law, key, data):
    """One draw for each data set."""
    keys = jax.random.split(key, len(data))
    program = jax.jit(lambda keys, data: jax.lax.map(lambda pair: law.simulate(*pair, 1)[0], (keys, data)))
    return np.asarray(program(keys, jnp.asarray(data)))
