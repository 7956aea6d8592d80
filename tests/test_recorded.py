"""Releases with fixed entropy are what they were: a change of structure changes no record.

`REWRITE_RECORDED=1 pytest -n 0 tests/test_recorded.py -k anew` writes tests/recorded_releases.json anew, for a change
that is meant: on the machine that wrote it every byte is compared, elsewhere all numbers to 1e-8.
"""

import hashlib
import json
import os
import pathlib
import platform
import random

import jax
import numpy as np
import pytest
from meshes import surface_mechanism

from jaxgeodp import (
    SPD,
    AdaptiveMechanism,
    EmpiricalRisk,
    Euclidean,
    EuclideanLaplace,
    FrechetMedian,
    GeodesicBall,
    GibbsMechanism,
    Hyperbolic,
    KNGMechanism,
    LandmarkLaplace,
    LaplaceMechanism,
    LocatedMechanism,
    MetricLaplace,
    PlanarShapes,
    RecordBlocks,
    RiemannianGaussian,
    Shape,
    Sphere,
    TangentGaussian,
    TangentLaplace,
    WrappedGaussian,
    WrappedLaplace,
)
from jaxgeodp.functional import FunctionalGaussianMechanism, PeriodicKernel
from jaxgeodp.inference import FrechetVariance, SpreadMechanism, TangentCovariance, describe
from jaxgeodp.locating import SearchInRounds
from jaxgeodp.mechanisms import release_by_chain
from jaxgeodp.privacy import entropy, grid
from jaxgeodp.releases.groups import release_groups
from jaxgeodp.surfaces import FaceMeanMechanism, JointGaussian, PointwiseGaussian

PLACE = pathlib.Path(__file__).with_name("recorded_releases.json")
PLANE = GeodesicBall(Hyperbolic(2), np.array([1.25, 0.75, 0.0]), 0.5)
LINE = GeodesicBall(Euclidean(1), np.array([0.5]), 0.4)
CAP = GeodesicBall(Sphere(2), np.array([0.6, 0.0, -0.8]), 0.4)
MATRICES = GeodesicBall(SPD(2), np.array([[2.0, 0.5], [0.5, 1.0]]), 1.0)
TRIANGLES = GeodesicBall(PlanarShapes(3), PlanarShapes(3).origin, 0.2)
CURVES = FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.05, [1.0, 0.5], [0.6, 0.8])


def _shape():
    frame = np.asarray(CAP.manifold.frame(CAP.center))
    return Shape(CAP.center, [frame[0], 0.5 * frame[1]], 0.2, [0.9, 0.6])


def tilt(x, y):
    return -0.5 * jax.numpy.vdot(x, y) ** 2


RELEASES = {
    "tangent": (lambda: TangentLaplace(PLANE, 2.0), {}),
    "tangent on the grid": (lambda: TangentLaplace(PLANE, 2.0), {"numerics": "grid"}),
    "tangent Gaussian in a shape": (lambda: TangentGaussian(CAP, 2.0, _shape()), {}),
    "tangent in a shape, on the grid": (lambda: TangentLaplace(CAP, 2.0, _shape()), {"numerics": "grid"}),
    "in steps at epsilon": (lambda: AdaptiveMechanism(LINE, epsilon=60.0), {}),
    "in steps at mu": (lambda: AdaptiveMechanism(CAP, mu=20.0), {}),
    "in steps on the grid": (lambda: AdaptiveMechanism(CAP, mu=20.0), {"numerics": "grid"}),
    "in steps in a shape": (lambda: AdaptiveMechanism(CAP, mu=20.0, shape=_shape()), {}),
    "wrapped": (lambda: WrappedLaplace(CAP, 2.0), {}),
    "wrapped Gaussian on the grid": (lambda: WrappedGaussian(CAP, 2.0), {"numerics": "grid"}),
    "Laplace": (lambda: LaplaceMechanism(MATRICES, 5.0), {}),
    "Laplace in fixed time": (lambda: LaplaceMechanism(CAP, 2.0), {"delta": 1e-6}),
    "KNG": (lambda: KNGMechanism(CAP, 2.0), {}),
    "Gaussian": (lambda: RiemannianGaussian(CAP, 2.0), {}),
    "ambient": (lambda: EuclideanLaplace(CAP, 2.0, project=True), {}),
    "landmarks": (lambda: LandmarkLaplace(TRIANGLES, 20.0), {}),
    "curves": (lambda: CURVES, {}),
    "curves on the grid": (lambda: CURVES, {"numerics": "grid"}),
    "points": (lambda: PointwiseGaussian(np.zeros((2, 3)), 0.5, 1.0), {}),
    "points together": (lambda: JointGaussian(np.zeros((2, 3)), 0.5, 1.0), {}),
    "points on the grid": (lambda: PointwiseGaussian(np.zeros((2, 3)), 0.5, 1.0), {"numerics": "grid"}),
    "points together on the grid": (lambda: JointGaussian(np.zeros((2, 3)), 0.5, 1.0), {"numerics": "grid"}),
    "face on the grid": (lambda: FaceMeanMechanism(np.zeros((2, 16, 3)), 1.0), {"numerics": "grid"}),
    "face": (lambda: FaceMeanMechanism(np.zeros((2, 16, 3)), 1.0), {}),
    "surface": (surface_mechanism, {}),
    "surface on the grid": (surface_mechanism, {"numerics": "grid"}),
    "by a chain": (lambda: KNGMechanism(CAP, 2.0), {"chain": 50}),
}
LONG = {
    "wrapped on the grid": (lambda: WrappedLaplace(PLANE, 2.0), {"numerics": "grid"}),
    "KNG in fixed time": (lambda: KNGMechanism(CAP, 2.0), {"delta": 1e-6}),
    "KNG by its theorem": (lambda: KNGMechanism(CAP, 2.0, calibration="theorem"), {}),
    "KNG as in the paper": (lambda: KNGMechanism(CAP, 2.0, calibration="paper"), {}),
    "median": (lambda: KNGMechanism(CAP, 20.0, FrechetMedian()), {}),
    "own loss": (lambda: KNGMechanism(CAP, 20.0, EmpiricalRisk(tilt, 0.5, (3,))), {}),
    "ambient matrices": (lambda: EuclideanLaplace(MATRICES, 20.0), {}),
    "landmarks unaligned": (lambda: LandmarkLaplace(TRIANGLES, 20.0, align=False), {}),
}


def data_for(mechanism):
    rng = np.random.default_rng(0)
    if not hasattr(mechanism, "ball"):
        template = getattr(mechanism, "center", getattr(mechanism, "template", None))
        return 0.1 * rng.normal(size=(6, *(template.shape if template is not None else (2, 16))))
    manifold, center = mechanism.ball.manifold, mechanism.ball.center
    with jax.enable_x64(True):
        noise = 0.1 * rng.normal(size=(6, *manifold.shape))
        points = jax.vmap(manifold.project)(
            center + (noise + noise.swapaxes(-1, -2)) / 2 if noise.ndim == 3 else center + noise
        )
    return np.asarray(points)


def _located(**more):
    return lambda: LocatedMechanism(Euclidean(2), "tangent", domain=3.0, **more)


def _moments(statistic, **more):
    return lambda: SpreadMechanism(CAP, CAP.center, statistic, **more)


def _many(mechanism, n=400):
    """Records about the centre of a ball, or of a plane that is searched."""
    rng = np.random.default_rng(1)
    if isinstance(mechanism, LocatedMechanism):
        return np.array([0.5, -0.2]) + 0.2 * rng.normal(size=(n, 2))
    return np.tile(data_for(mechanism), (n // 6 + 1, *(1,) * len(mechanism.ball.manifold.shape)))[:n]


def _states(mechanism, data, **more):
    half = len(data) // 2
    parts = [{name: own[part] for name, own in more.items()} for part in (slice(half), slice(half, None))]
    return mechanism.finish(mechanism.prepare(data[:half], **parts[0]) + mechanism.prepare(data[half:], **parts[1]))


def _rounds(mechanism):
    search = SearchInRounds(mechanism, n=400)
    while search.now is not None:
        search = search.after(search.now.finish(_states_of_stage(search.now, _many(mechanism))))
    return list(search.releases)


def _states_of_stage(stage, data):
    return stage.prepare(data[:150]) + stage.prepare(data[150:])


def _groups(**more):
    tangent = TangentLaplace(PLANE, 2.0)
    data = _many(tangent)
    return list(release_groups(tangent, data, np.arange(400) // 150, [0, 1], **more).values())


def _described(**more):
    return list(describe(_many(TangentLaplace(CAP, 1.0)), CAP.manifold, **more).releases.values())


def _with(make, **keywords):
    mechanism = make()
    return mechanism.release(_many(mechanism), **keywords)


#: What needs more than a mechanism and the records of `data_for`: the options, and what is made of several releases.
TANGENT, PERSONS, WEIGHTS = (lambda: TangentLaplace(PLANE, 2.0)), np.arange(400) // 3, 1.0 + np.arange(400) % 5
VARIANCE = _moments(FrechetVariance(), mu=2.0)()
TOGETHER = {
    "Gibbs": lambda: _with(lambda: GibbsMechanism(PLANE, 2.0)),
    "Gibbs in fixed time": lambda: _with(lambda: GibbsMechanism(CAP, 2.0), delta=1e-6),
    "metric": lambda: MetricLaplace(Sphere(2), 5.0).release([[0.0, 0.6, 0.8]]),
    "variance at epsilon": lambda: _with(_moments(FrechetVariance(), epsilon=2.0), numerics="grid"),
    "covariance at mu": lambda: _with(_moments(TangentCovariance(), mu=2.0), numerics="grid"),
    "covariance in its hull": lambda: _with(_moments(TangentCovariance(), epsilon=2.0)),
    "moments from states": lambda: _states(
        _moments(FrechetVariance(), mu=2.0)(), _many(_moments(FrechetVariance(), mu=2.0)())
    ),
    "located at epsilon": lambda: _with(_located(epsilon=8.0)),
    "located on the grid": lambda: _with(_located(epsilon=8.0), numerics="grid"),
    "located at mu": lambda: _with(lambda: LocatedMechanism(Euclidean(2), mu=4.0, domain=3.0)),
    "located, count private": lambda: _with(_located(epsilon=12.0), adjacency="add-remove"),
    "rounds": lambda: _rounds(_located(epsilon=8.0)()),
    "rounds of steps": lambda: _rounds(AdaptiveMechanism(PLANE, mu=1.0)),
    "description": lambda: list(
        describe(_many(TangentLaplace(CAP, 1.0)), CAP.manifold, mu=4.0, ball=CAP).releases.values()
    ),
    "groups": _groups,
    "groups on the grid, replace-one": lambda: _groups(numerics="grid", adjacency="replace-one"),
    "groups of persons": lambda: _groups(persons=PERSONS),
    "persons": lambda: _with(TANGENT, persons=PERSONS),
    "persons, count private": lambda: _with(
        lambda: TangentLaplace(PLANE, 2.0), persons=PERSONS, adjacency="add-remove"
    ),
    "persons on the grid": lambda: _with(TANGENT, persons=PERSONS, numerics="grid"),
    "weights": lambda: _with(TANGENT, weights=WEIGHTS),
    "weights of Laplace": lambda: _with(lambda: LaplaceMechanism(PLANE, 2.0), weights=WEIGHTS),
    "weights in fixed time": lambda: _with(lambda: LaplaceMechanism(CAP, 2.0), weights=WEIGHTS, delta=1e-6),
    "count private": lambda: _with(lambda: LaplaceMechanism(PLANE, 2.0), adjacency="add-remove"),
    "count private, on the grid": lambda: _with(
        lambda: WrappedGaussian(PLANE, 2.0), adjacency="add-remove", numerics="grid"
    ),
    "states": lambda: _states(TANGENT(), _many(TANGENT())),
    "states of persons": lambda: _states(
        TangentLaplace(PLANE, 2.0), _many(TangentLaplace(PLANE, 2.0))[:300], persons=PERSONS[:300]
    ),
    "states of curves": lambda: _states(CURVES, np.tile(data_for(CURVES), (4, 1, 1))),
    "blocks": lambda: TANGENT().release(_blocks(TANGENT()), numerics="grid"),
}


def _blocks(mechanism):
    data = _many(mechanism)
    return RecordBlocks(lambda: iter([data[:100], data[100:]]), data.shape)


def released(name, monkeypatch):
    words, integers = (random.Random(f"{name} {kind}") for kind in ("words", "integers"))
    if name in TOGETHER:
        monkeypatch.setattr(os, "urandom", words.randbytes)
        monkeypatch.setattr(random, "_urandom", integers.randbytes)
        found = TOGETHER[name]()
        return [_plain(own.record) for own in (found if isinstance(found, list) else [found])]
    make, way = (RELEASES | LONG)[name]
    mechanism = make()
    monkeypatch.setattr(entropy.os, "urandom", lambda count: bytes(byte % 256 for byte in range(count)))
    monkeypatch.setattr(grid.secrets, "randbelow", random.Random(0).randrange)
    if "chain" in way:
        return _plain(release_by_chain(mechanism, data_for(mechanism), num_burnin=way["chain"]).record)
    return _plain(mechanism.release(data_for(mechanism), **way).record)


def _plain(record):
    return json.loads(json.dumps({key: value for key, value in record.items() if key not in ("created", "library")}))


def here():
    """What last bits depend on: another machine, another JAX or other settings of its compiler round differently."""
    facts = pathlib.Path("/proc/cpuinfo")
    told = facts.read_text().split("\n\n")[0] if facts.exists() else platform.processor()
    kept = [line for line in told.splitlines() if line.startswith(("model name", "flags", "Features"))]
    versions = jax.__version__, np.__version__, os.environ.get("XLA_FLAGS", "")
    return hashlib.sha256("\n".join([*kept, *versions]).encode()).hexdigest()[:16]


def assert_alike(found, kept, tolerance):
    assert type(found) is type(kept)
    if isinstance(kept, dict):
        assert list(found) == list(kept)
        for key in kept:
            if key == "digest":  # of numbers whose last bits are the machine's: a radius of steps is one
                assert len(found[key]) == len(kept[key])
            else:
                assert_alike(found[key], kept[key], tolerance)
    elif isinstance(kept, list):
        assert len(found) == len(kept)
        for own, other in zip(found, kept, strict=True):
            assert_alike(own, other, tolerance)
    elif isinstance(kept, float):
        assert found == pytest.approx(kept, rel=tolerance, abs=tolerance)
    else:
        assert found == kept


# Of what has other records above: another way, or the same one without the grid.
AGAIN = ("Gibbs in fixed time", "groups", "groups of persons", "count private")
AGAIN += ("weights of Laplace", "weights in fixed time")
CASES = [
    *RELEASES,
    *(name for name in TOGETHER if name not in AGAIN),
    *(pytest.param(name, marks=pytest.mark.exhaustive) for name in (*LONG, *AGAIN)),
]


@pytest.mark.parametrize("name", CASES)
def test_a_release_is_what_it_was(name, monkeypatch):
    kept = json.loads(PLACE.read_text())
    found = released(name, monkeypatch)
    if kept["here"] == here():
        assert json.dumps(found) == json.dumps(kept[name]), "where it was recorded, every byte is the same"
    assert_alike(found, kept[name], 1e-8)


def test_another_record_is_caught():
    kept = json.loads(PLACE.read_text())["tangent"]
    for change in ({"scale": kept["scale"] * 1.0001}, {"n": 7}, {"support": {}}):
        with pytest.raises(AssertionError):
            assert_alike(kept | change, kept, 1e-8)


def test_write_them_anew(monkeypatch):
    """With REWRITE_RECORDED=1 write the file, in the settings of the tests; else see that it is whole."""
    if os.environ.get("REWRITE_RECORDED") == "1":
        kept: dict = {"here": here()}
        for name in RELEASES | LONG | TOGETHER:
            with monkeypatch.context() as patch:
                kept[name] = released(name, patch)
        PLACE.write_text(json.dumps(kept, indent=1) + "\n")
    assert list(json.loads(PLACE.read_text())) == ["here", *RELEASES, *LONG, *TOGETHER]
