"""What hostile reviews found, by public names alone, so that each test can be run on the versions that it broke."""

import dataclasses
import datetime
import math
import os
import pathlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgeodp import (
    SPD,
    EmpiricalRisk,
    Euclidean,
    EuclideanLaplace,
    GeodesicBall,
    Hyperbolic,
    KNGMechanism,
    LaplaceMechanism,
    Ledger,
    PlanarShapes,
    Product,
    PureDP,
    Sphere,
    Statistic,
    TangentLaplace,
    WrappedLaplace,
    frechet_mean,
)
from jaxgeodp.bounds.sensitivity import Sensitivity

N = 4
PLANE = Hyperbolic(2)
CAP = GeodesicBall(Sphere(2), [0.0, 0.0, 1.0], 0.5)
DATA = np.tile(CAP.center, (N, 1))
ANGLES = np.linspace(0.0, 6.2, 40)


def far(length, angle):
    return np.array([math.cosh(length), math.sinh(length) * math.cos(angle), math.sinh(length) * math.sin(angle)])


def around(center, angle, length, turn):
    """A point at distance ``length`` from ``center``, which lies at ``angle`` from the origin."""
    away = np.array([math.hypot(*center[1:]), center[0] * math.cos(angle), center[0] * math.sin(angle)])
    across = np.array([0.0, -math.sin(angle), math.cos(angle)])
    space = (math.cosh(length) * center + math.sinh(length) * (math.cos(turn) * away + math.sin(turn) * across))[1:]
    return np.array([math.sqrt(1.0 + space @ space), *space])


def distance(x, y):
    """In extended precision."""

    def inner(a, b):
        return a[0] * b[0] - a[1:] @ b[1:]

    x, y = np.asarray(x, np.longdouble), np.asarray(y, np.longdouble)
    return float(np.arccosh(max(inner(x, y) / np.sqrt(inner(x, x) * inner(y, y)), 1.0)))


# Far centres ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [8.0, 9.0, 10.0, 11.0, 13.0, 15.0])
def test_right_centres_are_taken_and_wrong_ones_refused_whatever_the_precision(length):
    with jax.enable_x64(False):
        for angle in ANGLES:
            center = far(length, angle)
            np.testing.assert_allclose(GeodesicBall(PLANE, center, 0.5).center, center, rtol=1e-12)
    if length > 13.0:
        return  # one rounding of a coordinate moves <c, c> by more than 0.4 there
    for angle in ANGLES:
        wrong = far(length, angle)
        wrong[0] = math.sqrt(wrong[1] ** 2 + wrong[2] ** 2 + 0.4)  # <c, c> = -0.4
        with jax.enable_x64(False), pytest.raises(ValueError, match="center is not a point"):
            GeodesicBall(PLANE, wrong, 0.5)


def moved_on_the_grid(length):
    """How far one record moves far means at most, and the declared sensitivity."""
    found = []
    for angle in (1.1128, 2.2256, 3.3385):
        ball = GeodesicBall(PLANE, far(length, angle), 0.5)
        mechanism = WrappedLaplace(ball, 1e6)  # hardly any noise
        others = [around(ball.center, angle, 0.4, turn) for turn in np.linspace(0.0, 6.0, 19)]
        values = [
            mechanism.release(np.stack([*others, around(ball.center, angle, 0.499, turn)]), numerics="grid").value
            for turn in (0.0, 1.57, 3.14, 4.71)
        ]
        found.append(max(distance(x, y) for x in values for y in values))
    return max(found), mechanism.sensitivity(20)


def test_on_the_grid_a_record_moves_a_far_mean_by_no_more_than_the_sensitivity():
    """With the code generation that users have: that of the tests fuses nothing, and hid the defect."""
    code = "import jax, test_attacks; jax.config.update('jax_enable_x64', True)\n"
    code += "print(*test_attacks.moved_on_the_grid(13.0), *test_attacks.moved_on_the_grid(14.5))"
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    here = pathlib.Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=here, env=environment, capture_output=True, text=True, check=True
    )
    moved, sensitivity, further, same = map(float, done.stdout.split())
    assert sensitivity == same and 0.9 * sensitivity < max(moved, further) <= sensitivity


def test_no_record_decides_whether_a_far_release_is_made():
    ball = GeodesicBall(PLANE, far(15.0, 0.3), 0.5)
    mechanism = WrappedLaplace(ball, 1e3)
    rng = np.random.default_rng(0)
    for _ in range(20):
        space = ball.center[1:] + 0.05 * math.exp(15.0) * rng.normal(size=2)
        record = np.array([math.sqrt(1.0 + space @ space), *space])
        assert mechanism.release(np.stack([ball.center, record])).value.shape == (3,)


def test_ambient_means_far_from_the_origin_keep_their_noise():
    """One unit of rounding at 1e12 is larger than the noise: released there, values would be multiples of it."""
    ball = GeodesicBall(Euclidean(1), [2.0**40], 1e-3)
    data = np.full((20, 1), 2.0**40)
    one, other = data.copy(), data.copy()
    one[0], other[0] = 2.0**40 + 9e-4, 2.0**40 - 9e-4
    mechanism = EuclideanLaplace(ball, 1.0)
    key = jax.random.key(0)
    moved = mechanism.simulate(key, one, 1000) - mechanism.simulate(key, other, 1000)
    assert float(np.mean(np.abs(moved))) <= mechanism.sensitivity(20)


# Refused before the charge ---------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class OnlySensitivity(Statistic):
    """As docs/reference/statistics.md says: a loss and its bounds, and no minimizer."""

    def loss(self, manifold, x, datum):
        return manifold.squared_dist(x, datum)

    def gradient_sensitivity(self, ball, n, support_radius, calibration):
        return Sensitivity(1.0 / n, "supposed")

    def minimizer_sensitivity(self, ball, n, calibration):
        return Sensitivity(1.0 / n, "supposed")


def of_wrong_shape(x, y):
    return jnp.vdot(x, y[:2])


REFUSED = {
    "no minimizer": lambda: LaplaceMechanism(CAP, 1.0, OnlySensitivity()),
    "a wrong shape in a loss": lambda: KNGMechanism(
        CAP, 1.0, EmpiricalRisk(of_wrong_shape, gradient_bound=1.0), support_radius=0.7
    ),
    "rebuilt without checks": lambda: jax.tree.map(lambda leaf: leaf * 3.0, TangentLaplace(CAP, 1.0)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_costs_nothing(tmp_path, name):
    ledger = Ledger(tmp_path / "budget.db", budget=PureDP(10.0))
    with pytest.raises(ValueError, match=r"[A-Z]\w+: "):
        REFUSED[name]().release(DATA, ledger)
    assert ledger.account().releases == 0


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "int4"])
def test_numbers_of_eight_bits_are_refused_in_a_sentence(dtype):
    with pytest.raises(ValueError, match=r"TangentLaplace: data must be real numbers, got"):
        TangentLaplace(CAP, 1.0).release(jnp.zeros((N, 3), dtype))


# Nothing but the value -------------------------------------------------------------------------------


def test_times_are_told_to_the_minute():
    created = datetime.datetime.fromisoformat(TangentLaplace(CAP, 1.0).release(DATA).record["created"])
    assert (created.second, created.microsecond) == (0, 0)


def test_a_saved_record_states_the_time_of_the_start(tmp_path):
    release = TangentLaplace(CAP, 1.0).release(DATA)
    release.save(tmp_path / "release.json")
    stated = datetime.datetime.fromisoformat(release.record["created"]).timestamp()
    assert (tmp_path / "release.json").stat().st_mtime == stated


def test_the_centre_is_a_copy_that_nobody_changes():
    center = np.array([0.0, 0.0, 1.0])
    ball = GeodesicBall(Sphere(2), center, 0.5)
    center[:] = [1.0, 0.0, 0.0]
    assert ball.center.tolist() == [0.0, 0.0, 1.0]
    with pytest.raises(ValueError, match="read-only"):
        ball.center[0] = 1.0


@pytest.mark.parametrize(
    ("manifold", "center"),
    [
        (Sphere(2), [0.0, 0.600002, -0.8]),
        (SPD(2), [[2.0, 0.500003], [0.5, 1.0]]),
        (PlanarShapes(4), np.array([1 + 1j, -1 + 1j, -1 - 1j, 1 - 1j]) / 2.828427),
    ],
    ids=["sphere", "matrices", "shapes"],
)
def test_a_centre_that_is_nearly_a_point_becomes_one(manifold, center):
    """Isometries are isometries on the manifold only."""
    kept = GeodesicBall(manifold, center, 0.1).center
    np.testing.assert_allclose(kept, center, atol=1e-5)
    assert float(manifold.deviation(jnp.asarray(kept))) < 1e-15


def test_making_a_ledger_leaves_the_umask_as_it_is(tmp_path, monkeypatch):
    def refused(mask):
        raise AssertionError("the umask is the whole process's")

    monkeypatch.setattr(os, "umask", refused)
    Ledger(tmp_path / "budget.db", budget=PureDP(1.0))
    TangentLaplace(CAP, 1.0).release(DATA).save(tmp_path / "release.json")


class Frame:
    """What NumPy and the library see of a pandas frame whose columns are numbers that may be missing."""

    class Kind:
        kind = "f"

    def __init__(self, rows):
        self.rows, self.dtypes = rows, self
        self.values = [self.Kind()] * len(rows[0])

    def __array__(self, dtype=None, copy=None):
        return np.array(self.rows, dtype=object)

    def to_numpy(self, dtype, na_value):
        return np.array([[na_value if x is MISSING else x for x in row] for row in self.rows], dtype)


class NAType:
    """As pandas writes what is missing."""

    def __float__(self):
        raise TypeError("float() argument must not be NAType")


MISSING = NAType()


@pytest.mark.parametrize("wrapped", [Frame, list], ids=["frame", "lists"])
def test_one_missing_number_decides_nothing(wrapped):
    rows = [[0.0, 0.0, 1.0]] * N
    for last in ([0.0, 0.0, 1.0], [0.0, MISSING, 1.0]):
        value = TangentLaplace(CAP, 40.0).release(wrapped([*rows, last])).value
        assert np.all(np.isfinite(value))


@pytest.mark.filterwarnings("error")
def test_a_masked_number_in_lists_warns_nobody():
    rows = [[0.0, 0.0, 1.0]] * N
    value = TangentLaplace(CAP, 1.0).release([*rows, [0.0, np.ma.masked, 1.0]]).value
    assert np.all(np.isfinite(value))


@dataclasses.dataclass(frozen=True)
class Labelled(Euclidean):
    """A user's manifold with a field that JSON cannot hold."""

    label: object = math.inf


@pytest.mark.parametrize("label", [math.inf, len, 1j], ids=["infinity", "function", "complex"])
def test_a_record_that_cannot_be_written_is_refused_before_the_charge(tmp_path, label):
    ledger = Ledger(tmp_path / "budget.db", budget=PureDP(10.0))
    ball = GeodesicBall(Labelled(1, label), [0.0], 1.0)
    with pytest.raises(ValueError, match="its record cannot be written as JSON"):
        TangentLaplace(ball, 1.0).release(np.zeros((N, 1)), ledger)
    assert ledger.account().releases == 0


def test_a_release_is_made_where_functions_are_not_compiled(tmp_path):
    ledger = Ledger(tmp_path / "budget.db", budget=PureDP(10.0))
    with jax.disable_jit():
        TangentLaplace(CAP, 1.0).release(DATA, ledger)
    assert ledger.account().releases == 1


def test_a_draw_that_would_take_for_ever_is_refused(tmp_path):
    """Without a bound of the growth, and a scale of 1/25,000 of the largest gradient."""
    statistic = EmpiricalRisk(lambda x, y: -(jnp.vdot(x, y) ** 2), gradient_bound=2.0)
    mechanism = KNGMechanism(CAP, 1.0, statistic, support_radius=0.7)
    ledger = Ledger(tmp_path / "budget.db", budget=PureDP(10.0))
    with pytest.raises(ValueError, match=r"would need about 6e\+13 gradients"):
        mechanism.release(np.tile(CAP.center, (100_000, 1)), ledger)
    assert ledger.account().releases == 0


def test_on_a_large_sphere_the_ambient_mean_keeps_its_noise():
    """As above where the centre is as far from the origin as the radius of the sphere."""
    center = 2.0**40 * np.array([0.6, 0.48, 0.64])
    ball = GeodesicBall(Sphere(2, 2.0**-80), center, 1e-3)
    across = np.array([0.8, -0.36, -0.48])
    data = np.tile(ball.center, (20, 1))
    one, other = data.copy(), data.copy()
    one[0], other[0] = one[0] + 9e-4 * across, other[0] - 9e-4 * across
    mechanism, key = EuclideanLaplace(ball, 1.0), jax.random.key(0)
    locations = [law_location(mechanism, jnp.asarray(rows)) for rows in (one, other)]
    assert float(jnp.linalg.norm(locations[0] - locations[1])) <= mechanism.sensitivity(20)
    assert (
        len(np.unique(np.asarray(locations[0] + mechanism.scale(20) * jax.random.normal(key, (1000, 3)))[:, 0])) > 900
    )


def law_location(mechanism, data):
    law = mechanism.law(len(data))
    return law.location(law.clipped(data), None)


def test_a_centre_beyond_double_precision_is_refused_in_a_product_as_by_itself():
    both = Product(Sphere(2), PLANE)
    for length in (13.0, 16.0, 18.0, 200.0):
        center = np.concatenate([[0.0, 0.0, 1.0], far(length, 0.3)])
        if length <= 15.0:
            GeodesicBall(both, center, 0.3)
            continue
        with pytest.raises(ValueError, match="exceeds double precision"):
            GeodesicBall(both, center, 0.3)


@pytest.mark.parametrize("radius", [1e-12, pytest.param(1e-7, marks=pytest.mark.exhaustive)])
def test_tiny_balls_are_calibrated_at_once(radius):
    ball = GeodesicBall(Sphere(2), CAP.center, radius)
    assert KNGMechanism(ball, 1.0).sensitivity(20) == pytest.approx(2.0 * radius / 20, rel=1e-4)


def test_the_smallest_matrices_are_calibrated():
    assert KNGMechanism(GeodesicBall(SPD(2), np.eye(2), 1e-20), 1.0).scale(20) == pytest.approx(1e-21)


# Means of what is no point ---------------------------------------------------------------------------


def test_points_off_the_manifold_have_no_mean():
    for points in (5.0 * DATA, DATA + np.array([0.0, 0.0, 4.0])):
        with pytest.raises(ValueError, match="not a point of Sphere"):
            frechet_mean(Sphere(2), points)


def test_landmarks_in_two_columns_are_shapes():
    manifold = PlanarShapes(4)
    square = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
    records = square + 0.02 * np.random.default_rng(0).normal(size=(N, 4, 2))
    complexes = records[..., 0] + 1j * records[..., 1]
    np.testing.assert_allclose(
        GeodesicBall(manifold, square, 0.2).clip(records),
        GeodesicBall(manifold, square[:, 0] / 8**0.5 + 1j * square[:, 1] / 8**0.5, 0.2).clip(complexes),
        atol=1e-14,
    )
