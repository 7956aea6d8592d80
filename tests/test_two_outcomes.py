"""A release is refused for public reasons before anything is charged, or it is made; records decide about neither.

All mechanisms and ways of releasing, on far and near centres, with records as bad as files can hold: the outcome is the
same for every neighbour, and on the grid one record moves the integers by no more than what is declared.
"""

import contextlib
import dataclasses
import datetime
import importlib
import json
import math
import pathlib
import pickle
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import MEMORY_MAPS
from sklearn.utils.parallel import Parallel, delayed
from test_attacks import OnlySensitivity
from typer.testing import CliRunner

from jaxgeodp import (
    SPD,
    EmpiricalRisk,
    Euclidean,
    EuclideanLaplace,
    FrechetMedian,
    GaussianDP,
    GeodesicBall,
    GibbsMechanism,
    Grassmann,
    Hyperbolic,
    KNGMechanism,
    LandmarkLaplace,
    LaplaceMechanism,
    Ledger,
    LocatedMechanism,
    PlanarShapes,
    Product,
    PureDP,
    RiemannianGaussian,
    Rotations,
    Sphere,
    TangentGaussian,
    TangentLaplace,
    Torus,
    WrappedGaussian,
    WrappedLaplace,
)
from jaxgeodp.compiling import like
from jaxgeodp.functional import FunctionalGaussianMechanism, PeriodicKernel
from jaxgeodp.mechanisms import release_by_chain
from jaxgeodp.privacy import clock, release
from jaxgeodp.privacy.ledger import contents
from jaxgeodp.privacy.silence import silent
from jaxgeodp.releases import context
from jaxgeodp.surfaces import JointGaussian, PointwiseGaussian

N = 4


@pytest.fixture(autouse=True)
def _programs_are_forgotten():
    """All cases together compile more programs than a process may map."""
    yield
    maps = pathlib.Path("/proc/self/maps")
    if not maps.exists() or maps.read_bytes().count(b"\n") > MEMORY_MAPS:
        jax.clear_caches()


def far(length):
    """A point of the hyperbolic plane at this distance of the origin."""
    return np.array([math.cosh(length), 0.6 * math.sinh(length), 0.8 * math.sinh(length)])


def ball(manifold, radius, center=None):
    return GeodesicBall(manifold, manifold.origin if center is None else center, radius)


ILL = np.array([[1.0, 1.0 - 1e-9], [1.0 - 1e-9, 1.0]])  # of condition 2e9
BALLS = {
    "plane": ball(Hyperbolic(2), 0.5),
    "far plane": ball(Hyperbolic(2), 0.5, far(13.0)),
    "farthest plane": ball(Hyperbolic(2), 0.5, far(15.0)),
    "line": ball(Euclidean(1), 1.0, [1e12]),
    "sphere": ball(Sphere(2), 0.6, [0.6, 0.0, -0.8]),
    "small sphere": ball(Sphere(2), 1e-9),
    "matrices": ball(SPD(2), 1.0, ILL),
    "large matrices": ball(SPD(3), 9.0),
    "triangles": ball(PlanarShapes(3), 0.2),
    "shapes": ball(PlanarShapes(5), 0.3, PlanarShapes(5).project(jnp.array([1.0, 2.0j, -1.0, -3.0j, 0.5]))),
    "rotations": ball(Rotations(), 0.5, np.diag([-1.0, -1.0, 1.0])),
    "subspaces": ball(Grassmann(4, 2), 0.4),
    "product": ball(Product(Hyperbolic(2), Euclidean(1)), 0.7, np.append(far(11.0), 1e9)),
}
TILT = EmpiricalRisk(lambda x, y: -0.5 * jnp.vdot(x, y) ** 2, gradient_bound=0.5, shape=(3,))
FEW = [
    (WrappedGaussian, "far plane", {"numerics": "grid"}),
    (WrappedLaplace, "farthest plane", {}),
    (TangentLaplace, "line", {"numerics": "grid"}),
    (LaplaceMechanism, "far plane", {}),
    (KNGMechanism, "far plane", {}),
    (KNGMechanism, "line", {"delta": 1e-6}),
    (RiemannianGaussian, "line", {}),
    (GibbsMechanism, "sphere", {}),
    (LandmarkLaplace, "triangles", {}),
    (EuclideanLaplace, "matrices", {}),
]
MANY = [
    (mechanism, name, way)
    for mechanism, ways in {
        WrappedLaplace: ({}, {"numerics": "grid"}),
        WrappedGaussian: ({}, {"numerics": "grid"}),
        TangentLaplace: ({}, {"numerics": "grid"}),
        LaplaceMechanism: ({}, {"delta": 1e-6}),
        KNGMechanism: ({}, {"delta": 1e-6}),
    }.items()
    for name in BALLS
    for way in ways
    # A public number of proposals is out of reach in six dimensions and far below the rounding of a radius.
    if not ("delta" in way and name in ("large matrices", "shapes", "subspaces", "product", "small sphere"))
    if not (mechanism is KNGMechanism and name == "small sphere")
]
MANY += [(RiemannianGaussian, name, {}) for name in ("plane", "far plane", "sphere", "rotations", "line", "matrices")]
MANY += [(GibbsMechanism, name, {}) for name in BALLS if name != "small sphere"]  # of radii far above rounding
MANY += [(EuclideanLaplace, name, {}) for name in ("line", "sphere", "matrices", "rotations")]
MANY += [(LandmarkLaplace, name, {}) for name in ("triangles", "shapes")]


def identity(case):
    mechanism, name, way = case
    return f"{mechanism.__name__}-{name}-{'-'.join(way)}"


CASES = [pytest.param(*case, id=identity(case)) for case in FEW] + [
    pytest.param(*case, id=identity(case), marks=pytest.mark.exhaustive) for case in MANY if case not in FEW
]


def made(mechanism, name):
    gaussian = mechanism in (WrappedGaussian, RiemannianGaussian, GibbsMechanism)
    # In a large ball little noise, or it would leave double precision, which is refused.
    return mechanism(BALLS[name], 1e3 if name == "large matrices" else 3.0 if gaussian else 40.0)


def hostile_records(domain):
    """Name -> record of the domain's manifold; whatever a file can hold."""
    manifold = domain.manifold
    with jax.enable_x64(True):
        home = jnp.asarray(domain.at_home.center)
        frame = manifold.frame(home)

        def at(axis, length):
            coordinates = jnp.zeros(manifold.dim).at[axis].set(length * domain.radius)
            return np.asarray(domain.from_home(manifold.exp(home, manifold.combine(coordinates, frame))))

        records = {
            "centre": np.asarray(domain.center),
            "rim": at(0, 1.0),
            "opposite rim": at(0, -1.0),
            "other rim": at(-1, 1.0),
            "beyond": at(0, 1.5),
        }
    center = np.asarray(domain.center)
    for label, value in (("nan", math.nan), ("inf", math.inf), ("-inf", -math.inf)):
        records[label] = np.full_like(center, value)
        records[f"one {label}"] = center.copy()
        records[f"one {label}"].flat[-1] = value
    for value in (1e300, 1e-300, 5e-324, 0.0):
        records[f"{value:g}"] = np.full_like(center, value)
        with np.errstate(all="ignore"):
            records[f"times {value:g}"] = center * value
    records["opposite"] = -center
    records["noise"] = np.random.default_rng(0).standard_normal(center.shape).astype(center.dtype)
    return records


def outcome(release_of, data):
    """What everybody can see of a call but the value: its class, the warnings and the record beside the value.

    Where NumPy and JAX are told to raise what they find.
    """
    with (
        warnings.catch_warnings(record=True) as caught,
        np.errstate(all="raise"),
        jax.debug_nans(True),
        jax.debug_infs(True),
    ):
        warnings.simplefilter("always")
        try:
            result = release_of(data)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    finite = bool(np.all(np.isfinite(result.value)))
    record = {key: value for key, value in result.record.items() if key not in ("value", "created")}
    return repr((finite, result.value.shape, record, [str(warning.message) for warning in caught]))


def outcomes(release_of, records, others):
    """The outcomes over all neighbours, each record beside quiet ones and beside another hostile one."""
    found = {}
    for index, (label, record) in enumerate(records.items()):
        companion = list(records.values())[(7 * index) % len(records)]
        for name, rest in (("quiet", others), ("hostile", [*others[:-1], companion])):
            seen = outcome(release_of, np.stack([record, *rest]))
            found.setdefault(seen, []).append(f"{label} beside {name}")
    return found


@pytest.mark.parametrize(("mechanism", "name", "way"), CASES)
def test_every_neighbour_has_the_same_outcome(mechanism, name, way):
    domain = BALLS[name]
    chosen = made(mechanism, name)
    found = outcomes(lambda data: chosen.release(data, **way), hostile_records(domain), [domain.center] * (N - 1))
    assert len(found) == 1, found
    assert next(iter(found)).startswith("(True, "), found


@pytest.mark.parametrize(
    ("mechanism", "name"),
    [
        pytest.param(mechanism, name, id=f"{mechanism.__name__}-{name}", marks=marks)
        for mechanism in (WrappedGaussian, TangentLaplace)
        for name in BALLS
        for marks in ([] if name in ("far plane", "line", "small sphere") else [pytest.mark.exhaustive],)
    ],
)
def test_on_the_grid_one_record_moves_the_integers_by_what_is_declared(mechanism, name):
    domain = BALLS[name]
    chosen = made(mechanism, name)
    records = hostile_records(domain)
    with jax.enable_x64(True):
        steps = chosen.law(N).grid.steps
        declared, quiet = steps.sensitivity, np.stack([domain.center] * N)
        steps_of = steps.program(like(jnp.asarray(quiet)))
        for others in (quiet[1:], np.stack([records["opposite rim"]] * (N - 1))):
            vectors = [steps_of(jnp.asarray(np.stack([record, *others]))) for record in records.values()]
            moved = np.array([[np.linalg.norm(a - b) for a in vectors] for b in vectors])
            assert moved.max() <= declared
        # The bound is not far from what happens: between opposite rims.
    assert moved.max() >= 0.5 * declared or mechanism is WrappedGaussian


CURVES = FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.01, norm_bound=1.0, mu=[1.0, 1.0])


@pytest.mark.parametrize(
    ("chosen", "way"),
    [
        pytest.param(CURVES, {}, id="curves"),
        pytest.param(CURVES, {"numerics": "grid"}, id="curves on the grid"),
        pytest.param(PointwiseGaussian(np.zeros((2, 3)), 1.0, 1.0), {}, id="points, each by itself"),
        pytest.param(JointGaussian(np.zeros((2, 3)), 1.0, 1.0), {}, id="points together"),
    ],
)
def test_every_curve_and_cloud_has_the_same_outcome(chosen, way):
    curves = chosen is CURVES
    shape = (2, 16) if curves else (2, 3)
    values = (0.0, 1.0, -1.0, 1e300, -1e300, 1e154, 1e-300, 5e-324, math.nan, math.inf, -math.inf)
    records = {str(value): np.full(shape, value) for value in values}
    records["one nan"] = np.where(np.arange(shape[1]) == 1, math.nan, np.ones(shape))
    found = outcomes(lambda data: chosen.release(data, **way), records, [np.zeros(shape)] * (N - 1))
    assert len(found) == 1, found
    assert next(iter(found)).startswith("(True, "), found


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["far plane", "sphere", "matrices"])
def test_other_statistics_and_chains_have_one_outcome(name):
    domain = BALLS[name]
    records, others = hostile_records(domain), [domain.center] * (N - 1)
    ways = [
        lambda data: release_by_chain(KNGMechanism(domain, 40.0), data, num_burnin=20),
        KNGMechanism(domain, 40.0, FrechetMedian(), support_radius=0.9 if name != "matrices" else 1.5).release,
    ]
    if name == "sphere":
        ways.append(KNGMechanism(domain, 40.0, TILT).release)
    for way in ways:
        found = outcomes(way, records, others)
        assert len(found) == 1, found


@pytest.mark.parametrize(
    ("release_of", "size"),
    [
        pytest.param(LocatedMechanism(Torus(2), epsilon=30.0).release, 2, id="a ball that is found"),
        pytest.param(LaplaceMechanism(ball(Torus(2), 1.0), 1.0).release, 2, id="angles"),
        pytest.param(TangentGaussian(ball(Torus(2), 1.0), 1.0).prepare, 2, id="sums of angles"),
        pytest.param(TangentGaussian(BALLS["sphere"], 1.0).prepare, 3, id="sums"),
        pytest.param(
            lambda data: WrappedGaussian(BALLS["sphere"], 1.0).release(data, adjacency="add-remove"), 3, id="add-remove"
        ),
    ],
)
@pytest.mark.parametrize("record", [0.1, math.nan, math.inf, 3e-308, 1e9, 1e300])
def test_nothing_is_raised_where_numpy_and_jax_are_told_to(release_of, size, record):
    data = np.full((200, size), 0.1)
    data[0] = record
    with np.errstate(all="raise"), jax.debug_nans(True), jax.debug_infs(True):
        release_of(data)


def test_what_numpy_and_jax_raise_is_caught(monkeypatch):
    """Planted: releases in the settings of whoever calls."""
    monkeypatch.setattr(context, "unwatched", contextlib.nullcontext)
    release_of = LaplaceMechanism(ball(Torus(2), 1.0), 1.0).release
    records = {str(value): np.full(2, value) for value in (0.1, math.nan, 1e9, 3e-308)}
    assert len(outcomes(release_of, records, [np.full(2, 0.1)] * (N - 1))) > 1


def test_threads_that_release_leave_the_filters_of_warnings_as_they_were():
    """One is inside while another leaves: it stays silent, and at the end all is as before."""
    before = list(warnings.filters)
    first, second = silent(), silent()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        own = list(warnings.filters)
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        warnings.warn("of a record", stacklevel=1)
        second.__exit__(None, None, None)
        assert not caught and list(warnings.filters) == own
        warnings.warn("of anybody", stacklevel=1)
        assert len(caught) == 1
    assert list(warnings.filters) == before


def test_filters_that_are_set_while_one_releases_hold_for_nobody_who_releases_later():
    with warnings.catch_warnings():
        first, second = silent(), silent()
        first.__enter__()
        warnings.simplefilter("error")  # by another thread
        second.__enter__()
        warnings.warn("of a record", stacklevel=1)
        second.__exit__(None, None, None)
        first.__exit__(None, None, None)
        with pytest.raises(UserWarning):
            warnings.warn("of anybody", stacklevel=1)


def test_silence_that_is_left_in_another_order_than_it_was_entered_ends():
    """Another thread puts back the filters that it met, within a silence, after this has ended; or before it began."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, other = silent(), warnings.catch_warnings()
        first.__enter__()
        other.__enter__()
        first.__exit__(None, None, None)
        other.__exit__(None, None, None)
        with pytest.raises(UserWarning):
            warnings.warn("of anybody", stacklevel=1)
        Parallel(n_jobs=2, prefer="threads")(delayed(math.sqrt)(k) for k in range(2))  # which reads what is left
        assert pickle.loads(pickle.dumps(warnings.filters))
        other, first = warnings.catch_warnings(), silent()
        other.__enter__()
        first.__enter__()
        other.__exit__(None, None, None)
        first.__exit__(None, None, None)
        with pytest.raises(UserWarning):
            warnings.warn("of anybody", stacklevel=1)


@pytest.mark.parametrize("name", ["line", "sphere"])
def test_where_jax_forbids_transfers_a_release_is_made(name):
    """It would be lost after the charge."""
    domain = BALLS[name]
    data = np.stack([domain.center] * N)
    with jax.transfer_guard("disallow"):
        assert np.all(np.isfinite(TangentLaplace(domain, 1.0).release(data).value))


def test_an_exception_that_a_record_causes_is_caught():
    """Planted: what was released until a record made the mean NaN."""

    def planted(data):
        if np.isnan(np.mean(data)):
            raise ValueError("the noise left the range")
        return TangentLaplace(BALLS["line"], 1.0).release(data)

    domain = BALLS["line"]
    assert len(outcomes(planted, hostile_records(domain), [domain.center] * (N - 1))) > 1


# What is refused is refused before the charge --------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class WrongShape(OnlySensitivity):
    """A loss with an error in its shapes, which nothing but tracing finds."""

    def loss(self, manifold, x, datum):
        return jnp.vdot(x, datum[:2])


def wrong_shape(x, y):
    return jnp.vdot(x, y[:2])


REFUSED = {
    "no minimizer": lambda: LaplaceMechanism(BALLS["sphere"], 1.0, OnlySensitivity()),
    "a loss with an error in its shapes": lambda: KNGMechanism(
        BALLS["sphere"], 1.0, EmpiricalRisk(wrong_shape, gradient_bound=1.0), support_radius=0.9
    ),
    "a statistic with an error in its shapes": lambda: KNGMechanism(
        BALLS["sphere"], 1.0, WrongShape(), support_radius=0.9
    ),
    "rebuilt without checks": lambda: jax.tree.map(lambda leaf: leaf * 3.0, TangentLaplace(BALLS["sphere"], 1.0)),
}


def spent(path, make, budget):
    ledger = Ledger(path, budget=budget)
    data = np.stack([BALLS["sphere"].center] * N)
    with pytest.raises(ValueError, match=r"[A-Z]\w+: "):
        make().release(data, ledger)
    return ledger.account().releases


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_comes_before_the_charge(tmp_path, name):
    assert spent(tmp_path / "budget.db", REFUSED[name], PureDP(10.0)) == 0


@pytest.mark.parametrize(
    ("mechanism", "way", "message"),
    [
        (
            LaplaceMechanism,
            {"numerics": "grid"},
            "LaplaceMechanism: numerics='grid' is not supported: ",
        ),
        (
            TangentLaplace,
            {"delta": 1e-6},
            "TangentLaplace: delta= is not supported: it needs a proven",
        ),
        (TangentLaplace, {"delta": 1e-6, "numerics": "grid"}, "exclude each other; give only one"),
        (KNGMechanism, {"delta": 2.0}, "delta must be below 1"),
        (KNGMechanism, {"numerics": "exact"}, "must be 'idealized' or 'grid'"),
    ],
)
def test_a_way_that_a_mechanism_has_not_is_refused(tmp_path, mechanism, way, message):
    ledger = Ledger(tmp_path / "budget.db", budget=PureDP(10.0))
    with pytest.raises(ValueError, match=message):
        mechanism(BALLS["sphere"], 1.0).release(np.stack([BALLS["sphere"].center] * N), ledger, **way)
    assert ledger.account().releases == 0


def test_a_charge_before_compiling_is_caught(tmp_path, monkeypatch):
    """Planted: programs that are compiled when they are called."""
    from jaxgeodp.releases import density

    def planted(owner, function, *arguments, **static):
        return lambda *later: function(*later, **static)

    monkeypatch.setattr(density, "compiled_ahead", planted)
    data = np.stack([BALLS["sphere"].center] * N)
    ledger = Ledger(tmp_path / "budget.db", budget=PureDP(10.0))
    with pytest.raises(ValueError, match="it has no minimizer"):
        REFUSED["no minimizer"]().release(data, ledger)
    assert ledger.account().releases == 1


# The time that is stated ----------------------------------------------------------------------------


START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
STARTED = START.isoformat(timespec="minutes")


class Watch:
    """A clock that stands still but for what `advance` adds."""

    def __init__(self, monkeypatch):
        self.minutes = 0
        monkeypatch.setattr(clock, "datetime", self)
        self.datetime, self.UTC = self, None

    def now(self, zone):
        return self

    def isoformat(self, timespec):
        return (START + datetime.timedelta(minutes=self.minutes)).isoformat(timespec=timespec)

    def advance(self, function):
        def slow(*arguments, **options):
            self.minutes += 10
            return function(*arguments, **options)

        return slow


def stated_times(tmp_path, monkeypatch, ledger=None):
    """The record's and the ledger's time of a release whose records take ten minutes to be read."""
    from jaxgeodp.domains import points_in_ball

    watch = Watch(monkeypatch)
    monkeypatch.setattr(points_in_ball, "host_array", watch.advance(points_in_ball.host_array))
    ledger = Ledger(tmp_path / "budget.db", budget=PureDP(10.0))
    result = TangentLaplace(BALLS["line"], 1.0).release(np.full((N, 1), 1e12), ledger)
    return {result.record["created"], contents(tmp_path / "budget.db")[1][0]["time"]}


def test_records_state_the_time_of_the_start(tmp_path, monkeypatch):
    assert stated_times(tmp_path, monkeypatch) == {STARTED}


def test_a_time_after_the_work_is_caught(tmp_path, monkeypatch):
    """Planted: the time is taken when the release is assembled."""
    from jaxgeodp.releases import context

    monkeypatch.setattr(context, "work_begins", contextlib.nullcontext)
    assert stated_times(tmp_path, monkeypatch) != {STARTED}


@pytest.mark.parametrize("chosen", [CURVES, JointGaussian(np.zeros((2, 3)), 1.0, 1.0)], ids=["curves", "points"])
def test_curves_and_points_state_the_time_of_the_start(monkeypatch, chosen):
    watch = Watch(monkeypatch)
    owner = sys.modules[type(chosen.domain).__module__]
    monkeypatch.setattr(owner, "host_array", watch.advance(owner.host_array))
    data = np.zeros((N, 2, 16) if chosen is CURVES else (N, 2, 3))
    assert chosen.release(data).record["created"] == STARTED


def test_the_command_states_the_time_at_which_it_began(tmp_path, monkeypatch):
    from jaxgeodp.cli.app import app

    command = importlib.import_module("jaxgeodp.cli.release")
    watch = Watch(monkeypatch)
    monkeypatch.setattr(command.Source, "records", watch.advance(command.Source.records))
    np.save(tmp_path / "data.npy", np.zeros((N, 1)))
    own = f"--manifold euclidean --radius 1 --epsilon 1 --mechanism tangent --out {tmp_path}/release.json"
    result = CliRunner().invoke(app, ["release", f"{tmp_path}/data.npy", *own.split()])
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "release.json").read_text())["created"] == STARTED
    assert (tmp_path / "release.json").stat().st_mtime_ns == START.timestamp() * 10**9, "what copies carry along"


def test_times_are_those_of_the_start_of_a_command():
    with clock.work_begins():
        first = clock.now()
        with clock.work_begins():
            assert clock.now() == first
    assert len(first) == len("2026-01-01T00:00+00:00")


# Values and centres ---------------------------------------------------------------------------------


def test_a_value_that_is_not_finite_is_replaced_by_something_public():
    entries = {"mechanism": "test", "n": 2}
    draft = release.Draft(
        lambda: (np.array([math.nan, 1.0]), draft), [5.0, 6.0], GaussianDP(1.0), "none", entries, "a note"
    )
    result = release.make_release(draft, None)
    assert result.value.tolist() == [5.0, 6.0]


def test_a_release_in_a_compiled_function_is_refused():
    mechanism = TangentLaplace(GeodesicBall(SPD(2), np.eye(2), 1.0), 1.0)
    points = np.tile(np.eye(2), (9, 1, 1))
    for function in (
        lambda data: mechanism.release(data).value,
        lambda data: mechanism.prepare(data).sums,
        lambda data: mechanism.release(list(data)).value,
        lambda data: mechanism.release(points, persons=data[:, 0, 0]).value,
    ):
        with pytest.raises(ValueError, match="outside jit, vmap and grad"):
            jax.jit(function)(points)


def test_centres_beyond_double_precision_are_refused():
    with pytest.raises(ValueError, match="exceeds double precision"):
        GeodesicBall(Hyperbolic(2), far(17.0), 0.5)


def test_landmarks_are_taken_as_shapes_everywhere():
    manifold = PlanarShapes(4)
    rng = np.random.default_rng(0)
    square = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
    records = square + 0.02 * rng.normal(size=(N, 4, 2))
    domain = GeodesicBall(manifold, square, 0.2)
    complexes = records[..., 0] + 1j * records[..., 1]
    np.testing.assert_allclose(domain.clip(records), domain.clip(complexes), atol=1e-15)
    np.testing.assert_allclose(domain.center, np.array([1 + 1j, -1 + 1j, -1 - 1j, 1 - 1j]) / math.sqrt(8), atol=1e-15)
    mechanism = TangentLaplace(domain, 40.0)
    key = jax.random.key(0)
    np.testing.assert_allclose(mechanism.simulate(key, records, 2), mechanism.simulate(key, complexes, 2), atol=1e-12)
    assert mechanism.release(records).value.shape == (4,)
