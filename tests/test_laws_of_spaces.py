"""Exact samplers on axes, angles, rigid motions, correlations and shapes in space, against laws written in NumPy.

Logarithms, volumes and means are written anew here. Records lie to one side of the centre of their ball. All keys are
fixed; the tests together claim a wrong law with probability 1e-6 if every sampler is right. Each of them must reject
wrong samplers, too: those of the reference with a mistake, or values with one.
"""

import math

import jax
import numpy as np
import pytest
import scipy.linalg
from scipy import stats
from scipy.spatial.transform import Rotation
from test_samplers import kolmogorov_smirnov, lattice, normalised

from jaxgeodp import (
    Axes,
    Circle,
    Correlations,
    GeodesicBall,
    GibbsMechanism,
    KNGMechanism,
    LaplaceMechanism,
    RiemannianGaussian,
    RigidMotions,
    Shapes3D,
    Torus,
)

LEVEL, CAUGHT = 1e-6 / 150, 1e-9  # for more p-values than right samplers have, and for that of each wrong one
DRAWS, FEWER_DRAWS = 20_001, 8_001
ROWS = ([1, 2, 2], [0, 0, 1])  # below the diagonal of a matrix of size 3, and the columns


# Geometry in NumPy: tangent vectors are rows, whose Euclidean norm is the Riemannian length ---------------


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def length(vectors):
    return np.linalg.norm(vectors, axis=-1)


def arc(base, nearest, axes=(-1,)):
    """The logarithm of a sphere, as rows; ``axes`` are those of one point."""
    cosine = np.sum(base * nearest, axis=axes, keepdims=True)
    across = nearest - cosine * base
    angle = np.arctan2(np.sqrt(np.sum(across**2, axis=axes, keepdims=True)), cosine)
    vectors = across / np.sinc(angle / np.pi)
    return vectors.reshape(*vectors.shape[: vectors.ndim - len(axes)], -1)


class Angles:
    nodes, draws = 2**17, DRAWS
    longest = math.pi * math.sqrt(2.0)

    def __init__(self, dim):
        self.dim = dim

    def given(self, points):
        """To the mechanism, with other whole turns; `taken` goes back."""
        return points + 2.0 * np.pi * np.random.default_rng(1).integers(-2, 3, points.shape)

    def taken(self, points):
        return np.asarray(points)

    def frame(self, base):
        return np.eye(self.dim)

    def exp(self, base, tangent):
        return base + tangent

    def log(self, base, x):
        return np.remainder(x - base + np.pi, 2.0 * np.pi) - np.pi

    def log_volume(self, base, tangent):
        return np.where(np.all(np.abs(tangent) < np.pi, axis=1), 0.0, -np.inf)


class Charts(Angles):
    """Correlation matrices of size 3 by off(Log C), as coordinates whose norm is that of the matrix."""

    draws = FEWER_DRAWS

    def given(self, points):
        """By fixed points (Archakov & Hansen 2021)."""
        whole = np.zeros((*points.shape[:-1], 3, 3))
        whole[..., *ROWS] = points / math.sqrt(2.0)
        whole = whole + np.swapaxes(whole, -1, -2)
        for _ in range(300):
            values, vectors = np.linalg.eigh(whole)
            result = (vectors * np.exp(values)[..., None, :]) @ np.swapaxes(vectors, -1, -2)
            whole[..., range(3), range(3)] -= np.log(np.diagonal(result, axis1=-2, axis2=-1))
        return result

    def taken(self, points):
        values, vectors = np.linalg.eigh(np.asarray(points))
        logs = (vectors * np.log(values)[..., None, :]) @ np.swapaxes(vectors, -1, -2)
        return math.sqrt(2.0) * logs[..., *ROWS]

    def log(self, base, x):
        return x - base

    def log_volume(self, base, tangent):
        return np.zeros(len(tangent))


class Lines(Angles):
    longest = math.pi / 2

    def given(self, points):
        return points * np.random.default_rng(1).choice([-1.0, 1.0], (len(points), 1))

    def frame(self, base):
        return np.linalg.svd(base[None])[2][1:]

    def exp(self, base, tangent):
        angle = length(tangent)[:, None]
        return np.cos(angle) * base + np.sinc(angle / np.pi) * tangent

    def log(self, base, x):
        return arc(base, np.where(np.sum(base * x, axis=-1, keepdims=True) < 0.0, -x, x))

    def log_volume(self, base, tangent):
        angle = length(tangent)
        return np.where(angle < np.pi / 2, np.log(np.sinc(angle / np.pi)), -np.inf)


class Motions(Angles):
    """Of length 2, with vectors (rotation vector in the frame of the body, translation over the length)."""

    def given(self, points):
        return points

    def exp(self, base, tangent):
        turns = base[:, :3] @ Rotation.from_rotvec(tangent[:, :3]).as_matrix()
        return np.concatenate([turns, (base[:, 3] + 2.0 * tangent[:, 3:])[:, :, None]], axis=2)

    def log(self, base, x):
        turns = np.swapaxes(base[..., :3], -1, -2) @ x[..., :3]
        angles = Rotation.from_matrix(turns.reshape(-1, 3, 3)).as_rotvec().reshape(*turns.shape[:-2], 3)
        return np.concatenate([angles, (x[..., 3] - base[..., 3]) / 2.0], axis=-1)

    def log_volume(self, base, tangent):
        """Where no angle is half a turn."""
        return 2.0 * np.log(np.sinc(0.5 * length(tangent[:, :3]) / np.pi))


class Configurations(Angles):
    """Shapes of four landmarks in space."""

    nodes = 2**16

    def given(self, points):
        return points @ Rotation.random(len(points), random_state=1).as_matrix()

    def frame(self, base):
        spins = [base @ np.cross(axis, np.eye(3)) for axis in np.eye(3)]
        moves = [np.outer(np.ones(4), axis) for axis in np.eye(3)]
        return np.linalg.svd(np.array([base, *spins, *moves]).reshape(7, 12))[2][7:]

    def exp(self, base, tangent):
        angle = length(tangent)[:, None, None]
        return np.cos(angle) * base + np.sinc(angle / np.pi) * tangent.reshape(-1, 4, 3)

    def log(self, base, x):
        """By Kabsch's rotation."""
        left, _, right = np.linalg.svd(np.swapaxes(x, -1, -2) @ base)
        left[..., 2] *= np.sign(np.linalg.det(left @ right))[..., None]
        return arc(base, x @ left @ right, (-2, -1))

    def log_volume(self, base, tangent):
        """docs/mathematics.md, section 22."""
        angle, end = length(tangent), self.exp(base, tangent)
        spins = np.linalg.det(np.cos(angle)[:, None, None] * np.eye(3) - base.T @ end)
        ends = np.linalg.det(np.eye(3) - np.swapaxes(end, 1, 2) @ end) * np.linalg.det(np.eye(3) - base.T @ base)
        return 4.0 * np.log(np.sinc(angle / np.pi)) + np.log(spins) - 0.5 * np.log(ends)


def mean_of(space, center, data):
    for _ in range(60):
        center = space.exp(center, np.mean(space.log(center, data), axis=0, keepdims=True))[0]
    return center


def records(space, center, radius, count=12):
    """To one side of the centre, and a few at the rim."""
    random = np.random.default_rng(0)
    offsets = unit(random.normal(size=(count, space.dim))) * random.uniform(0.0, 0.4, (count, 1))
    offsets = offsets + 0.55 * unit(np.arange(1.0, space.dim + 1.0))
    offsets[::4] = 0.97 * unit(offsets[::4])
    return space.exp(center, radius * offsets @ space.frame(center))


def even_vectors(count, dim, longest):
    """Evenly in a ball: on a lattice up to the plane, else by Sobol's numbers, which come no worse than random ones."""
    if dim == 1:
        return longest * (2.0 * lattice(count)[:, :1] - 1.0)
    if dim == 2:
        radius, turn = longest * np.sqrt(lattice(count)[:, :1]), 2.0 * np.pi * lattice(count)[:, 1:]
        return radius * np.hstack([np.cos(turn), np.sin(turn)])
    numbers = stats.qmc.Sobol(dim + 1, scramble=False).random(count) + 0.5 / count
    return longest * numbers[:, :1] ** (1.0 / dim) * unit(stats.norm.ppf(numbers[:, 1:]))


# Densities of records ---------------------------------------------------------------------------------


class Case:
    """A mechanism with off-centre records, its law at nodes, and statistics of points."""

    def __init__(self, mechanism, space):
        self.mechanism, self.space = mechanism, space
        self.center = space.taken(mechanism.ball.center)
        self.data = records(space, self.center, mechanism.ball.radius)
        self.law = mechanism.law(len(self.data))
        self.scale, support = self.law.scale, self.law.support
        self.reach = math.inf if support is None else support.radius
        self.mean = mean_of(space, self.center, self.data)
        base = self.mean if support is None else self.center
        tangents = even_vectors(space.nodes, space.dim, min(1.11 * self.reach, space.longest)) @ space.frame(base)
        self.points, self.log_volume = space.exp(base, tangents), space.log_volume(base, tangents)
        self.energies = self.energy(self.points)
        # The law is made of the first half of the nodes, and wrong draws are of the other half.
        self.values_at_nodes, self.half = self.values(self.points, self.energies), space.nodes // 2
        self.weights = normalised(self.log_weights()[: self.half])
        self.count = math.inf if space.dim <= 2 else 1.0 / np.sum(self.weights**2)

    def energy(self, x, shrunk=1.0):
        """What the density falls with, over its unit; with ``shrunk`` below 1 for records nearer to the centre."""
        space = self.space
        data = self.data if shrunk == 1.0 else space.exp(self.center, shrunk * space.log(self.center, self.data))
        if isinstance(self.mechanism, KNGMechanism):
            return length(sum(space.log(x, datum) for datum in data)) / len(data) / self.scale
        if isinstance(self.mechanism, GibbsMechanism):
            loss = sum(0.5 * length(space.log(x, datum)) ** 2 for datum in data) / len(data)
            return (loss + self.barrier(length(space.log(self.center, x)))) / self.scale
        away = length(space.log(mean_of(space, self.center, data), x)) / self.scale
        return away if isinstance(self.mechanism, LaplaceMechanism) else 0.5 * away**2

    def barrier(self, distance):
        """Theorem P2 at curvature 1: w' = (m(r0) - m(t)) tan t with m(t) = (r + t) cot(r + t)."""
        if self.law.terms.more is None:
            return 0.0  # as in flat spaces
        said, radius = self.law.terms.more["barrier"], self.mechanism.ball.radius
        assert isinstance(self.space, Lines) and set(said) == {"center", "radius"}
        grid = np.linspace(said["radius"], 1.2 * self.reach, 2001)
        convexity = (radius + grid) / np.tan(radius + grid)
        slope = (convexity[0] - convexity) * np.tan(grid)
        return np.interp(distance, grid, np.append(0.0, np.cumsum(0.5 * (slope[1:] + slope[:-1]) * np.diff(grid))))

    def log_weights(self, scale=1.0, support=1.0, shrunk=1.0, volume=True, other=None):
        """Of the law with a mistake."""
        energy = self.energies if shrunk == 1.0 else self.energy(self.points, shrunk)
        energy = energy if other is None else other(self, self.points)
        inside = length(self.space.log(self.center, self.points)) <= support * self.reach
        log_volume = self.log_volume if volume else np.where(np.isfinite(self.log_volume), 0.0, -np.inf)
        return np.where(inside, log_volume - energy / scale, -np.inf)

    def values(self, x, energies=None):
        """Distances, what the density falls with, and components at the centre."""
        away, energies = self.space.log(self.center, x), self.energy(x) if energies is None else energies
        found = {"centre": length(away), "mean": length(self.space.log(self.mean, x)), "energy": energies}
        return found | {f"along {j}": away @ axis for j, axis in enumerate(self.space.frame(self.center)[:3])}

    def p_values(self, values):
        reference = {name: own[: self.half] for name, own in self.values_at_nodes.items()}
        return {name: kolmogorov_smirnov(values[name], reference[name], self.weights, self.count) for name in reference}

    def drawn(self, **mistake):
        """By a sampler in NumPy with a mistake."""
        weights = normalised(self.log_weights(**mistake)[self.half :])
        chosen = self.half + np.random.default_rng(3).choice(len(weights), self.space.draws, p=weights)
        return {name: own[chosen] for name, own in self.values_at_nodes.items()}


def with_signs_as_given(case, x):
    """KNG by the sphere's logarithms to the vectors that lines are given as."""
    return length(sum(arc(x, datum) for datum in case.space.given(case.data))) / len(case.data) / case.scale


def without_barrier(case, x):
    return case.energy(x) - case.barrier(length(case.space.log(case.center, x))) / case.scale


def both_ends(case, x):
    """The Gaussian of the sphere, of which lines are taken."""
    near = length(case.space.log(case.mean, x)) / case.scale
    return -np.logaddexp(-0.5 * near**2, -0.5 * (np.pi / case.scale - near) ** 2)


def wrapped_from_the_plane(case, x):
    off, turns = case.space.log(case.mean, x), 2.0 * np.pi * np.arange(-2, 3)
    return -np.logaddexp.reduce([-length(off + np.array([a, b])) / case.scale for a in turns for b in turns])


def up_to_half_a_turn(case, x):
    return np.where((away := length(case.space.log(case.mean, x))) < np.pi, away / case.scale, np.inf)


LINES, PAIRS = GeodesicBall(Axes(2), np.array([0.36, 0.48, 0.8]), 0.5), GeodesicBall(Torus(2), [3.0, -3.0], 0.9)
ARCS, CHART = GeodesicBall(Circle(), [3.0], 1.2), np.array([1.5, -0.9, 2.0])
POSE = np.column_stack([Rotation.from_rotvec([0.3, -0.5, 1.0]).as_matrix(), [10.0, -4.0, 2.0]])
POSES = GeodesicBall(RigidMotions(2.0), POSE, 0.6)
MATRICES = GeodesicBall(Correlations(3), Charts(3).given(CHART), 0.6)
LANDMARKS = np.array([[0.0, 0.0, 0.0], [1.1, 0.0, 0.0], [0.0, 1.0, 0.1], [0.2, 0.1, 0.9]])
SHAPES = GeodesicBall(Shapes3D(4), Shapes3D(4).from_landmarks(LANDMARKS), 0.2)
WRONG = [{"scale": 1.25}, {"scale": 0.8}, {"shrunk": 0.5}]
IN_A_BALL = [*WRONG, {"support": 1.1}, {"support": 0.9}]
CASES = {
    "KNG of axes": (KNGMechanism(LINES, 0.5), Lines(2), [*IN_A_BALL, {"other": with_signs_as_given}]),
    "Gibbs of axes": (GibbsMechanism(LINES, 0.5), Lines(2), [*IN_A_BALL, {"other": without_barrier}]),
    "Gaussian of axes": (
        *(RiemannianGaussian(LINES, 0.1), Lines(2)),
        [{"scale": 1.25**2}, {"scale": 0.8**2}, {"volume": False}, {"shrunk": 0.5}, {"other": both_ends}],
    ),
    "KNG of an angle": (KNGMechanism(ARCS, 1.0, support_radius=1.25), Angles(1), IN_A_BALL),
    "Laplace of two angles": (
        *(LaplaceMechanism(PAIRS, 0.1), Angles(2)),
        [*WRONG, {"other": wrapped_from_the_plane}, {"other": up_to_half_a_turn}],
    ),
    "KNG of two angles": (KNGMechanism(PAIRS, 0.6), Angles(2), IN_A_BALL),
    "Gibbs of two angles": (GibbsMechanism(PAIRS, 0.3), Angles(2), IN_A_BALL),
    "KNG of rigid motions": (KNGMechanism(POSES, 1.0), Motions(6), IN_A_BALL),
    "KNG of correlations": (KNGMechanism(MATRICES, 1.0, support_radius=0.7), Charts(3), IN_A_BALL),
    "KNG of shapes": (KNGMechanism(SHAPES, 1.0), Configurations(5), IN_A_BALL),
}


@pytest.mark.parametrize("name", CASES)
def test_draws_follow_the_law_of_the_space(name):
    mechanism, space, mistakes = CASES[name]
    case = Case(mechanism, space)
    draws = mechanism.simulate(jax.random.key(1), space.given(case.data), space.draws)
    found, unspoilt = case.p_values(case.values(space.taken(draws))), case.p_values(case.drawn())
    caught = {str(own): min(case.p_values(case.drawn(**own)).values()) for own in mistakes}
    print(f"scale {case.scale:.3g}, reach {case.reach:.3g}, {case.count:.0f} nodes\n{found}\n{unspoilt}\n{caught}")
    assert case.count > 5_000
    assert min(found.values()) > LEVEL, found
    assert min(unspoilt.values()) > LEVEL, unspoilt  # so that what is caught is the mistake
    assert max(caught.values()) < CAUGHT, caught


# Laplace noise with a law of few numbers -----------------------------------------------------------------


def law_of_motions(scale, units=1.0, volume=True, flat=False):
    """Nodes of (angle, translation over the length): (2 sin(a/2))^2 s^2 exp(-sqrt(a^2 + s^2)/scale), a below pi."""
    angle, move = (lattice(120_000) * [9.0 if flat else np.pi, 12.0]).T
    log_area = 2.0 * np.log(2.0 * np.sin(0.5 * angle) if volume else angle) + 2.0 * np.log(move)
    weights = normalised(log_area - np.hypot(angle, move) / scale)
    return {"angle": angle, "move": units * move, "rho": np.hypot(angle, units * move)}, weights


def of_directions(vectors):
    """By Archimedes, every coordinate of an even direction in space is even in [-1, 1]."""
    return min(stats.kstest(own, stats.uniform(-1.0, 2.0).cdf).pvalue for own in unit(vectors).T)


def test_laplace_noise_of_rigid_motions_has_the_law_of_angles_and_translations():
    mechanism, space, center = LaplaceMechanism(POSES, 0.2), Motions(6), POSES.center
    scale, data = mechanism.scale(12), records(space, POSES.center, POSES.radius)
    assert 0.4 < scale < 0.6  # angles up to half a turn, hardly a translation beyond 12
    draws = space.taken(mechanism.simulate(jax.random.key(1), data, DRAWS))
    drawn, off = space.log(mean_of(space, center, data), draws), space.log(center, draws)
    values = {"angle": length(drawn[:, :3]), "move": length(drawn[:, 3:]), "rho": length(drawn)}

    def p_values(times=1.0, **mistake):
        reference, weights = law_of_motions(times * scale, **mistake)
        return {name: kolmogorov_smirnov(values[name], reference[name], weights) for name in values}

    found = p_values() | {"axis": of_directions(drawn[:, :3]), "towards": of_directions(drawn[:, 3:])}
    mistakes = {"units": 2.0}, {"volume": False}, {"volume": False, "flat": True}, {"times": 1.25}, {"times": 0.8}
    caught = {str(own): min(p_values(**own).values()) for own in mistakes}
    caught |= {"axes at the centre": of_directions(off[:, :3]), "moves from the centre": of_directions(off[:, 3:])}
    print(f"scale {scale:.3g}\n{found}\n{caught}")
    assert min(found.values()) > LEVEL, found
    assert max(caught.values()) < CAUGHT, caught


def test_laplace_noise_of_correlations_is_gamma_in_the_chart():
    space = Charts(3)
    for matrix in space.given(records(space, CHART, 1.0)):
        np.testing.assert_allclose(space.taken(matrix), math.sqrt(2.0) * scipy.linalg.logm(matrix)[ROWS], atol=1e-9)
        np.testing.assert_allclose(np.diag(matrix), 1.0, atol=1e-9)
    mechanism, data = LaplaceMechanism(MATRICES, 0.5), records(space, CHART, MATRICES.radius)
    draws = space.taken(mechanism.simulate(jax.random.key(1), space.given(data), FEWER_DRAWS))
    radius = length(draws - data.mean(axis=0)) / mechanism.scale(12)
    # The last: by one side of the diagonal alone.
    caught = {times: stats.kstest(times * radius, stats.gamma(3).cdf).pvalue for times in (1.0, 1.25, 0.8, 0.5**0.5)}
    found = {"radius": caught.pop(1.0), "direction": of_directions(draws - data.mean(axis=0))}
    caught |= {"about the centre": of_directions(draws - CHART)}
    print(f"scale {mechanism.scale(12):.3g}\n{found}\n{caught}")
    assert min(found.values()) > LEVEL, found
    assert max(caught.values()) < CAUGHT, caught
