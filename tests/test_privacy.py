"""The promise itself: densities of adjacent data by quadrature, the release record, what an error may say."""

import functools
import inspect
import itertools
import json
import math
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from strategies import a_tangent, exhaustive, name

from jaxgeodp import (
    SPD,
    Euclidean,
    GeodesicBall,
    KNGMechanism,
    LaplaceMechanism,
    PlanarShapes,
    PureDP,
    Sphere,
    files,
    frechet_mean,
)
from jaxgeodp.privacy import entropy

EIGHTH = math.pi / 8
SPHERE = Sphere(2)
# Pairs of n and epsilon: a few of all.
SOME = ((2, 5.0), (20, 0.1), (100, 1.0))
ALL = tuple(itertools.product((2, 5, 20, 100), (0.1, 1.0, 5.0)))
some_or_all = pytest.mark.parametrize(
    "pairs", [pytest.param(SOME, id="some"), pytest.param(ALL, id="all", marks=pytest.mark.exhaustive)]
)


def ball_on(manifold, radius):
    return GeodesicBall(manifold, manifold.origin, radius)


# Privacy loss by quadrature ---------------------------------------------------------------------------
#
# Adjacent data on the 2-sphere: three places that share n - 1 records, and the record that is replaced. A row of
# polar coordinates (distance from the pole, azimuth) each; the fifth row is what the fourth is replaced by.

HAND_MADE = {  # distances in units of the radius, and the shares of the three places
    "everybody at one rim": ([(1, 0), (1, 0), (1, 0), (1, 0), (1, math.pi)], (1.0, 0.0, 0.0)),
    "opposite rims": ([(1, 0), (1, math.pi), (0, 0), (1, 0), (1, math.pi)], (0.5, 0.5, 0.0)),
    "everybody across": ([(1, math.pi / 2), (0, 0), (0, 0), (1, 0), (1, math.pi)], (1.0, 0.0, 0.0)),
    "everybody at the centre": ([(0, 0), (0, 0), (0, 0), (1, 0), (1, math.pi)], (1.0, 0.0, 0.0)),
}
SEARCHED_SHARES = (0.4, 0.3, 0.3)


def on_sphere(polar):
    t, azimuth = polar[..., 0], polar[..., 1]
    return jnp.stack([jnp.sin(t) * jnp.cos(azimuth), jnp.sin(t) * jnp.sin(azimuth), jnp.cos(t)], axis=-1)


def adjacent_pair(polar):
    points = on_sphere(polar)
    return points[:4], points[jnp.array([0, 1, 2, 4])]


def record_weights(shares, n):
    return jnp.append((n - 1) * jnp.asarray(shares), 1.0) / n


def polar_grid(reach, rings, spokes, power):
    """Nodes of a product rule on the ball around the pole, denser there for a higher power, and log areas."""
    nodes, weights = np.polynomial.legendre.leggauss(rings)
    u = 0.5 * (nodes + 1.0)
    t = reach * u**power
    azimuth = 2 * math.pi * np.arange(spokes) / spokes
    area = 0.5 * weights * reach * power * u ** (power - 1) * np.sin(t) * 2 * math.pi / spokes
    grid = np.stack(np.meshgrid(t, azimuth, indexing="ij"), axis=-1).reshape(-1, 2)
    return np.asarray(on_sphere(grid)), np.repeat(np.log(area), spokes)


def turned_from_pole(center, nodes):
    """The nodes under the rotation that takes the pole to ``center``."""
    pole = jnp.array([0.0, 0.0, 1.0])
    middle = pole + center
    return nodes - (nodes @ middle)[:, None] * middle / (1 + center[2]) + 2 * nodes[:, 2:] * center


def kng_potential(x, points, weights, mean):
    return SPHERE.norm(x, SPHERE.log_moments(x, points, weights)[0])


def laplace_potential(x, points, weights, mean):
    return SPHERE.dist(mean, x)


@functools.partial(jax.jit, static_argnums=0)
def losses_of(potential, polar, weights, scale, nodes, log_areas, probes):
    """log f(x; D) - log f(x; D') at the probes, the nodes and the means; densities normalised over the nodes."""
    pair = adjacent_pair(polar)
    means = jnp.stack([frechet_mean(SPHERE, points, weights) for points in pair])
    if potential is laplace_potential:
        # The peak may be far narrower than the sphere: centre the nodes on it.
        nodes = turned_from_pole(means[0], nodes)
    everywhere = jnp.concatenate([nodes, probes, means])
    log_densities = []
    for points, mean in zip(pair, means, strict=True):
        exponent = -jax.vmap(lambda x, p=points, m=mean: potential(x, p, weights, m))(everywhere) / scale
        log_densities.append(exponent - jax.scipy.special.logsumexp(exponent[: len(nodes)] + log_areas))
    return log_densities[0] - log_densities[1]


@functools.partial(jax.jit, static_argnums=0)
def searched_pairs(potential, weights, scale, radius, nodes, log_areas):
    """Adam ascent over the places of all records: of the largest loss, or of the distance of the means."""
    optimizer = optax.adam(0.05)
    unit = jnp.array([radius, 1.0])

    def objective(z):
        pair = adjacent_pair(z * unit)
        if potential is laplace_potential:
            return SPHERE.dist(*jax.vmap(lambda points: frechet_mean(SPHERE, points, weights))(jnp.stack(pair)))
        norms = [jax.vmap(lambda x, p=points: kng_potential(x, p, weights, None))(nodes) / scale for points in pair]
        normalisers = [jax.scipy.special.logsumexp(log_areas - norm) for norm in norms]
        return jnp.max(jnp.abs(norms[0] + normalisers[0] - norms[1] - normalisers[1]))

    def climb(z):
        def step(state, _):
            z, momentum = state
            updates, momentum = optimizer.update(-jax.grad(objective)(z), momentum)
            z = z + updates
            return (jnp.stack([jnp.clip(z[:, 0], 1e-3, 1.0), z[:, 1]], axis=1), momentum), None

        return jax.lax.scan(step, (z, optimizer.init(z)), length=60)[0][0] * unit

    angles = jax.random.uniform(jax.random.key(0), (4, 5), maxval=2 * math.pi)
    return jax.vmap(climb)(jnp.stack([jnp.full((4, 5), 0.95), angles], axis=-1))


@functools.cache
def adversaries(potential, n, radius, scale, reach):
    """(places, weights) of adjacent data: hand-made, and found by the search for this scale."""
    weights = record_weights(SEARCHED_SHARES, n)
    found = searched_pairs(potential, weights, scale, radius, *polar_grid(reach, 16, 24, 1))
    pairs = [(np.array(rows, float) * [radius, 1.0], record_weights(s, n)) for rows, s in HAND_MADE.values()]
    return [*pairs, *((np.asarray(pair), weights) for pair in found)]


def loss_over_epsilon(build, radius, options, n, epsilon, shrink=1.0, refined=1.0):
    """The largest |log-density ratio| found, in units of epsilon; ``shrink`` plants a scale that is too small."""
    mechanism = build(ball_on(SPHERE, radius), epsilon, **options)
    scale, support = shrink * mechanism.scale(n), mechanism.support(n)
    reach, power = (math.pi, 3) if support is None else (support.radius, 1)
    potential = laplace_potential if build is LaplaceMechanism else kng_potential
    # Nodes for KNG are not centred on its peak: they must be closer than its width everywhere.
    rings = 120 if build is LaplaceMechanism else max(120, math.ceil(1.6 * reach / scale))
    rings = math.ceil(refined * rings)
    nodes, log_areas = polar_grid(reach, rings, rings, power)
    rim = np.asarray(on_sphere(np.column_stack([np.full(64, reach), 2 * math.pi * np.arange(64) / 64])))
    # One search per n and support: the worst data hardly depend on the scale.
    adversarial = adversaries(potential, n, radius, build(ball_on(SPHERE, radius), 1.0).scale(n), reach)
    return (
        max(
            float(np.max(np.abs(losses_of(potential, pair, weights, scale, nodes, log_areas, rim))))
            for pair, weights in adversarial
        )
        / epsilon
    )


SETTINGS = [
    (KNGMechanism, EIGHTH, {"calibration": "tight"}),
    (KNGMechanism, EIGHTH, {"calibration": "theorem"}),
    (KNGMechanism, EIGHTH, {"calibration": "tight", "support_radius": 1.6 * EIGHTH}),
    (KNGMechanism, 0.7, {"calibration": "tight"}),
    (KNGMechanism, 0.7, {"calibration": "theorem"}),
    (LaplaceMechanism, EIGHTH, {"calibration": "tight"}),
    (LaplaceMechanism, EIGHTH, {"calibration": "theorem"}),
    (LaplaceMechanism, 0.7, {"calibration": "tight"}),
    (LaplaceMechanism, 0.7, {"calibration": "theorem"}),
]


@pytest.mark.parametrize(("build", "radius", "options"), SETTINGS, ids=str)
@some_or_all
def test_privacy_loss_never_exceeds_epsilon(build, radius, options, pairs):
    for n, epsilon in pairs:
        assert loss_over_epsilon(build, radius, options, n, epsilon) <= 1.0


@pytest.mark.parametrize("n", [100, *exhaustive(5)])
def test_the_quadrature_catches_scales_that_are_too_small(n):
    """KNG with Delta/(1.5 epsilon) in place of 2 Delta/epsilon, Laplace with half its scale."""
    assert loss_over_epsilon(KNGMechanism, EIGHTH, {}, n, 1.0, shrink=1 / 3) > 1.0
    assert loss_over_epsilon(LaplaceMechanism, EIGHTH, {}, n, 1.0, shrink=0.5) > 1.0


@some_or_all
def test_the_quadrature_has_converged(pairs):
    for build, (n, epsilon) in itertools.product((KNGMechanism, LaplaceMechanism), (pairs[0], pairs[-1])):
        coarse = loss_over_epsilon(build, EIGHTH, {}, n, epsilon)
        assert loss_over_epsilon(build, EIGHTH, {}, n, epsilon, refined=1.6) == pytest.approx(coarse, rel=0.01)


@pytest.mark.parametrize("build", [KNGMechanism, LaplaceMechanism])
def test_log_density_is_the_one_whose_loss_was_measured(build):
    mechanism = build(ball_on(SPHERE, 0.7), 1.0)
    rows, shares = HAND_MADE["opposite rims"]
    polar = np.array(rows, float) * [0.7, 1.0]
    points, moved = (np.asarray(p)[[0, 0, 1, 1, 3]] for p in adjacent_pair(polar))
    probes = np.stack([on_sphere(np.array([t, a])) for t in (0.1, 0.4, 0.69) for a in (0.3, 2.0, 4.0)])
    potential = kng_potential if build is KNGMechanism else laplace_potential
    weights = record_weights(shares, 5)
    measured = losses_of(potential, polar, weights, mechanism.scale(5), probes[:1], np.zeros(1), probes)[1:-2]
    library = jax.vmap(lambda x: mechanism.log_density(x, points) - mechanism.log_density(x, moved))(probes)
    # Equal up to the normalisers.
    np.testing.assert_allclose(library - library[0], measured - measured[0], atol=1e-8)
    outside = mechanism.log_density(on_sphere(np.array([0.8, 0.0])), points)
    assert np.isneginf(outside) == (build is KNGMechanism)


# Guarantee and record ---------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0, -1.0, math.inf, math.nan, "much", "1.0", None, [1.0]])
def test_a_guarantee_needs_a_finite_epsilon_above_zero(epsilon):
    for build in (PureDP, *(functools.partial(m, ball_on(SPHERE, 0.5)) for m in (KNGMechanism, LaplaceMechanism))):
        with pytest.raises(ValueError, match=r"epsilon must be a finite number above 0, got .*\.$"):
            build(epsilon)


def test_a_guarantee_states_its_neighbours_and_theorem():
    assert PureDP(2).record("a theorem") == {
        "kind": "pure",
        "epsilon": 2.0,
        "adjacency": "replace-one",
        "theorem": "a theorem",
    }


# Laplace where other tests have its program, too; what is common to both is tested with either.
IN_TURN = [
    (KNGMechanism, SPHERE),
    (LaplaceMechanism, SPHERE),
    *exhaustive(*((build, PlanarShapes(4)) for build in (KNGMechanism, LaplaceMechanism))),
    *exhaustive((LaplaceMechanism, SPD(2)), (KNGMechanism, SPD(2))),
]
# Each kind of record that is no point of its manifold.
NO_POINTS_OF = [
    (LaplaceMechanism, SPHERE),
    (LaplaceMechanism, SPD(2)),
    *exhaustive(*((build, PlanarShapes(4)) for build in (KNGMechanism, LaplaceMechanism))),
    *exhaustive((KNGMechanism, SPHERE), (KNGMechanism, SPD(2))),
]
RELEASED = [SPHERE, SPD(2), PlanarShapes(4)]
BUILDS = [KNGMechanism, LaplaceMechanism]
KEYS = {"value", "guarantee", "mechanism", "statistic", "manifold", "ball", "n", "sensitivity", "scale", "support"}
KEYS |= {"sampler", "numerics", "library", "created"}


def some_data(manifold, seed, n=6):
    """Records around the origin, some of them outside the ball of radius 0.3."""
    origin = jnp.asarray(manifold.origin)
    rows = [manifold.exp(origin, a_tangent(manifold, origin, 10 * seed + j, 0.1 * j)) for j in range(n)]
    return np.array(jnp.stack(rows))


@pytest.mark.parametrize(("build", "manifold"), IN_TURN, ids=name)
def test_records_of_different_data_differ_in_value_and_time_only(build, manifold):
    mechanism = build(ball_on(manifold, 0.3), 2.0)
    first, second = (mechanism.release(some_data(manifold, seed)) for seed in (1, 2))
    assert set(first.record) == KEYS
    assert first.record["value"] != second.record["value"]
    changing = ("value", "created")
    for public in KEYS.difference(changing):
        assert first.record[public] == second.record[public]
    assert manifold.belongs(first.value, 1e-9)
    assert first.value.dtype == np.asarray(manifold.origin).dtype
    text = first.to_json()
    assert json.loads(text) == first.record
    for word in ("NaN", "Infinity", "xbar", "acceptance", "clipped", "minimi", "proposals", 'seed"'):
        assert word not in text
    values = np.array(first.record["value"])
    point = values[..., 0] + 1j * values[..., 1] if manifold.dtype_kind == "complex" else values
    assert np.array_equal(point, first.value)
    guarantee = first.record["guarantee"]
    assert guarantee["epsilon"] == 2.0 and "Theorem " in guarantee["theorem"]
    assert first.record["scale"] == mechanism.scale(6)
    assert first.record["sensitivity"]["value"] == mechanism.sensitivity(6)


@pytest.mark.parametrize("epsilon", [1, np.float32(1.0)], ids=repr)
def test_the_record_is_json_whatever_the_number_type_of_epsilon(epsilon):
    release = LaplaceMechanism(ball_on(SPHERE, 0.3), epsilon).release(some_data(SPHERE, 1))
    assert json.loads(release.to_json())["scale"] == LaplaceMechanism(ball_on(SPHERE, 0.3), 1.0).scale(6)


def test_a_numeric_parameter_of_a_manifold_does_not_spoil_the_record():
    for manifold in (SPD(np.int64(2)), Sphere(2, np.float32(1.0))):
        release = LaplaceMechanism(ball_on(manifold, 0.3), 2.0).release(some_data(manifold, 1))
        assert json.loads(release.to_json())["n"] == 6


def test_a_release_is_random_through_the_operating_system_alone(monkeypatch):
    mechanism, data = LaplaceMechanism(ball_on(SPHERE, 0.3), 1.0), some_data(SPHERE, 1)
    assert not np.array_equal(mechanism.release(data).value, mechanism.release(data).value)
    values = []
    for byte in (1, 1, 2):
        monkeypatch.setattr(entropy.os, "urandom", lambda size, byte=byte: bytes([byte]) * size)
        values.append(mechanism.release(data).value)
    assert np.array_equal(values[0], values[1])
    assert not np.array_equal(values[0], values[2])
    # All 256 bits count.
    for place in range(32):
        monkeypatch.setattr(
            entropy.os, "urandom", lambda size, place=place: bytes(int(j == place) for j in range(size))
        )
        values.append(mechanism.release(data).value)
    assert len({value.tobytes() for value in values}) == 34


@pytest.mark.parametrize("build", BUILDS)
def test_nobody_can_seed_a_release(build):
    assert list(inspect.signature(build.release).parameters) == [
        *("self", "data", "ledger", "delta", "numerics", "persons", "adjacency", "weights")
    ]


WITHOUT_X64 = """
import numpy as np
from jaxgeodp import GeodesicBall, LaplaceMechanism, Sphere
mechanism = LaplaceMechanism(GeodesicBall(Sphere(2), [0.0, 0.0, 1.0], 0.3), 1.0)
release = mechanism.release(np.tile([0.0, 0.0, 1.0], (4, 1)))
print(release.value.dtype, release.record["numerics"]["dtype"])
"""


def test_releases_are_double_precision_even_where_jax_is_not():
    environment = {**os.environ, "JAX_ENABLE_X64": "0"}
    command = [sys.executable, "-c", WITHOUT_X64]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["float64", "float64"], done.stderr


@pytest.mark.parametrize("manifold", [SPHERE, *exhaustive(PlanarShapes(4))], ids=name)
def test_releases_are_double_precision_even_where_data_are_not(manifold):
    double = np.asarray(manifold.origin).dtype
    data = some_data(manifold, 1).astype("complex64" if manifold.dtype_kind == "complex" else "float32")
    for rows in (data, jnp.asarray(data)):
        release = LaplaceMechanism(ball_on(manifold, 0.3), 2.0).release(rows)
        assert release.value.dtype == release.record["numerics"]["dtype"] == double


def test_save_writes_all_or_nothing(tmp_path, monkeypatch):
    path = tmp_path / "release.json"
    release = LaplaceMechanism(ball_on(SPHERE, 0.3), 1.0).release(some_data(SPHERE, 1))
    release.save(path)
    assert path.read_text() == release.to_json()
    path.write_text("kept")
    for broken in ("fsync", "replace"):
        with monkeypatch.context() as patch:

            def fail(*_):
                raise OSError("disk full")

            patch.setattr(files.os, broken, fail)
            with pytest.raises(OSError, match="disk full"):
                release.save(path)
        assert path.read_text() == "kept"
        assert list(tmp_path.iterdir()) == [path]
    with monkeypatch.context() as patch:
        patch.setitem(release.record, "scale", math.nan)
        with pytest.raises(ValueError, match="JSON"):
            release.save(path)
    assert path.read_text() == "kept"
    release.save(str(path))
    assert json.loads(path.read_text()) == release.record


# Errors of the call: public facts only -----------------------------------------------------------------

SECRET = 0.123456789


def refused_in_one_sentence(call):
    with pytest.raises(ValueError) as caught:
        call()
    message = str(caught.value)
    assert message.endswith(".") and "\n" not in message
    assert ". " not in message.rstrip(".")
    assert "123456" not in message
    return message


@pytest.mark.parametrize("kind", ["longdouble", ">f8", ">i4"])
def test_numbers_that_jax_cannot_hold_are_converted(kind):
    data = np.array([[0, 0, 1], [0, 1, 0], [1, 0, 1]] * 2)  # six records, as elsewhere: one program
    mechanism = LaplaceMechanism(ball_on(SPHERE, 0.3), 1.0)
    key = jax.random.key(0)
    np.testing.assert_array_equal(
        mechanism.simulate(key, data.astype(kind), 2), mechanism.simulate(key, data.astype(float), 2)
    )
    assert mechanism.release(data.astype(kind)).value.dtype == np.float64


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize(
    ("data", "part"),
    [
        (np.full((4, 2), SECRET), "shape (n, 3)"),
        (np.full(3, SECRET), "shape (n, 3)"),
        (np.full((2, 4, 3), SECRET), "shape (n, 3)"),
        (np.array(SECRET), "shape (n, 3)"),
        (np.full((1, 3), SECRET), "n >= 2"),
        (np.full((0, 3), SECRET), "n >= 2"),
        (np.full((4, 3), str(SECRET)), "real numbers"),
        (np.full((4, 3), {"secret": SECRET}, dtype=object), "real numbers"),
        (np.full((4, 3), True), "real numbers"),
        ([[SECRET, 0.0], [SECRET]], "nested lists must have equal lengths"),
        (np.full((4, 3), SECRET + 1j), "real numbers"),
    ],
    ids=["columns", "one record", "batch", "scalar", "n=1", "n=0", "text", "object", "bool", "ragged", "complex"],
)
def test_bad_data_are_refused_without_a_word_about_values(build, data, part):
    mechanism = build(ball_on(SPHERE, 0.3), 1.0)
    point = np.array([0.0, 0.0, 1.0])
    for call in (
        lambda: mechanism.release(data),
        lambda: mechanism.simulate(jax.random.key(0), data, 2),
        lambda: mechanism.log_density(point, data),
    ):
        assert part in refused_in_one_sentence(call)


@pytest.mark.parametrize("build", BUILDS)
def test_bad_public_parameters_are_refused(build):
    for manifold, limit in ((SPHERE, math.pi / 4), (Sphere(3, 4.0), EIGHTH), (PlanarShapes(5), EIGHTH)):
        for radius in (limit, 1.01 * limit, 10.0):
            message = refused_in_one_sentence(lambda m=manifold, r=radius: build(ball_on(m, r), 1.0))
            assert "Assumption 1" in message and f"{limit:.6g}" in message
        build(ball_on(manifold, 0.999 * limit), 1.0)
    for calibration in ("loose", "", None):
        message = refused_in_one_sentence(lambda c=calibration: build(ball_on(SPHERE, 0.3), 1.0, calibration=c))
        assert "tight, theorem" in message
    for n in (1, 0, -3):
        assert "n >= 2" in refused_in_one_sentence(lambda n=n: build(ball_on(SPHERE, 0.3), 1.0).scale(n))


def test_support_radii_outside_the_theorem_are_refused():
    ball, covariances = ball_on(SPHERE, 0.3), ball_on(SPD(2), 1.0)
    for radius in (0.29, 0.0, -1.0, math.pi / 2, 2.0, math.inf, math.nan):
        refused_in_one_sentence(lambda r=radius: KNGMechanism(ball, 1.0, support_radius=r))
    for radius in (0.9, math.inf):
        refused_in_one_sentence(lambda r=radius: KNGMechanism(covariances, 1.0, support_radius=r))
    message = refused_in_one_sentence(lambda: KNGMechanism(ball, 1.0, calibration="theorem", support_radius=0.4))
    assert "calibration='tight'" in message
    # Too few records for Theorem J: the support is the ball of the data.
    assert KNGMechanism(ball, 1.0, support_radius=0.3).scale(5) == KNGMechanism(ball, 1.0).scale(5)
    assert KNGMechanism(ball, 1.0, support_radius=1.5).scale(9) > KNGMechanism(ball, 1.0).scale(9)
    assert KNGMechanism(ball, 1.0).support(5).radius == 0.3
    assert KNGMechanism(covariances, 1.0).support(9) is None
    assert KNGMechanism(covariances, 1.0, support_radius=2.0).support(9).radius == 2.0


@pytest.mark.parametrize("build", BUILDS)
def test_a_distribution_that_does_not_exist_is_refused_with_a_way_out(build):
    ball = ball_on(SPD(2), 1.0)
    mechanism = build(ball, 0.1)
    data = np.tile(np.eye(2) * (1 + SECRET), (2, 1, 1))
    message = refused_in_one_sentence(lambda: mechanism.release(data))
    assert message == refused_in_one_sentence(lambda: mechanism.scale(2))
    words = message.replace(",", " ").split()
    after = {key: float(words[words.index("about", words.index(key)) + 1].rstrip(".")) for key in ("n", "radius")}
    epsilon = float(words[words.index("above") + 1])
    # Each of the three suggestions works, and no much smaller change does.
    assert mechanism.scale(int(after["n"])) * SPD(2).volume_growth < 1
    assert build(ball, 1.001 * epsilon).scale(2) > 0
    assert build(ball_on(SPD(2), 0.999 * after["radius"]), 0.1).scale(2) > 0
    for call in (
        lambda: mechanism.scale(int(0.9 * after["n"])),
        lambda: build(ball, 0.9 * epsilon).scale(2),
        lambda: build(ball_on(SPD(2), 1.1 * after["radius"]), 0.1).scale(2),
    ):
        refused_in_one_sentence(call)
    if build is KNGMechanism:
        assert build(ball, 0.1, support_radius=1.0).scale(2) > 0


# Records: never an error, always inside the ball --------------------------------------------------------


def square(*rows):
    return np.array(rows, float)


NO_POINTS = {
    SPHERE: [np.full(3, np.nan), np.array([0.0, np.inf, 1.0]), np.zeros(3)],
    SPD(2): [
        np.full((2, 2), np.nan),
        square([np.inf, 0], [0, 1]),
        square([1, 0.5], [0.1, 1]),
        square([1, 2], [2, 1]),
        square([1, 1], [1, 1]),
        -np.eye(2),
        np.zeros((2, 2)),
    ],
    PlanarShapes(4): [
        np.full(4, np.nan + 0j),
        np.full(4, 0.3 + 0.7j),
        np.zeros(4, complex),
        np.array([1, 2, 3, np.inf]),
    ],
}


@pytest.mark.parametrize(("build", "manifold"), NO_POINTS_OF, ids=name)
def test_a_record_that_is_no_point_counts_as_the_centre(build, manifold):
    mechanism, key = build(ball_on(manifold, 0.3), 2.0), jax.random.key(5)
    data = some_data(manifold, 3)
    data[2] = manifold.origin
    reference = mechanism.simulate(key, data, 1)
    assert np.all(np.isfinite(reference))
    for record in NO_POINTS[manifold]:
        spoiled = data.copy()
        spoiled[2] = record
        np.testing.assert_allclose(mechanism.simulate(key, spoiled, 1), reference, atol=1e-14)


@pytest.mark.parametrize(("build", "manifold"), IN_TURN, ids=name)
def test_a_record_outside_the_ball_counts_as_its_clipped_point(build, manifold):
    ball = ball_on(manifold, 0.3)
    mechanism, key = build(ball, 2.0), jax.random.key(6)
    data = some_data(manifold, 4)
    clipped = np.asarray(ball.clip(data))
    assert not np.allclose(clipped, data, atol=1e-3)
    np.testing.assert_allclose(mechanism.simulate(key, data, 1), mechanism.simulate(key, clipped, 1), atol=1e-9)


def rotated(values, angle):
    turn = square([math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)])
    matrix = turn @ np.diag(values) @ turn.T
    return 0.5 * (matrix + matrix.T)


EXTREME = {
    SPHERE: [
        np.array([1e300, -1e300, 1e-300]),
        np.array([1e-320, 0, 0]),
        np.array([0.0, 0, -1]),
        np.array([1e-9, 0, -1]),
    ],
    Euclidean(3): [np.array([1e300, 0, 0]), np.full(3, -1.7e308), np.array([1e-320, 0, 0])],
    PlanarShapes(4): [
        np.array([1e300, 0, 0, 0], complex),
        np.array([1e-300, 0, 0, 1e-300j]),
        np.exp(-2j * np.pi * np.arange(4) / 4),
        np.exp(4j * np.pi * np.arange(4) / 4),
        1e8 + np.arange(4) * 1j,
    ],
    SPD(2): [
        rotated(values, angle)
        for values in [
            (1e-16, 1e16),
            (1e155, 1e150),
            (1e200, 1e200),
            (1e-300, 1e300),
            (1e-17, 1),
            (6e-17, 1),
            (1e-9, 1e9),
        ]
        for angle in (0.0, 0.7)
    ],
    SPD(3): [
        turn @ np.diag(values) @ turn.T
        for values in [(1e-9, 1.0, 1e9), (1e-8, 1e8, 1e10), (1e-300, 1.0, 1e300), (1e200, 1e200, 2e200)]
        for turn in np.linalg.qr(np.random.default_rng(0).normal(size=(8, 3, 3)))[0]
    ],
}


@pytest.mark.parametrize("manifold", list(EXTREME), ids=name)
def test_no_finite_record_however_extreme_stays_outside_the_ball(manifold):
    """The sensitivity bounds hold for records in the ball: one that slips through unclipped breaks the promise."""
    ball = ball_on(manifold, 0.3)
    records = np.stack(EXTREME[manifold])
    records = 0.5 * (records + np.swapaxes(records, -1, -2)) if isinstance(manifold, SPD) else records
    for record, clipped in zip(records, np.asarray(ball.clip(records)), strict=True):
        if isinstance(manifold, SPD):
            distance = np.linalg.norm(np.log(np.linalg.eigvalsh(clipped)))
        else:
            distance = manifold.dist(jnp.asarray(manifold.origin), clipped)
        assert distance <= 0.3 * (1 + 1e-9), record


def test_integer_data_are_read_as_numbers():
    mechanism, key = LaplaceMechanism(GeodesicBall(SPHERE, [0.6, 0.0, 0.8], 0.3), 1.0), jax.random.key(0)
    data = np.array([[1, 0, 1], [0, 1, 3], [3, 0, 4]] * 2)
    np.testing.assert_array_equal(mechanism.simulate(key, data, 2), mechanism.simulate(key, data.astype(float), 2))
