"""Releases with fixed entropy are what they were: a change of structure changes no record.

`python tests/test_recorded.py` writes tests/recorded_releases.json anew, for a change that is meant.
"""

import json
import pathlib
import random

import jax
import numpy as np
import pytest
from meshes import surface_mechanism

from jaxgeodp import (
    SPD,
    EmpiricalRisk,
    EuclideanLaplace,
    FrechetMedian,
    GeodesicBall,
    Hyperbolic,
    KNGMechanism,
    LandmarkLaplace,
    LaplaceMechanism,
    PlanarShapes,
    RiemannianGaussian,
    Sphere,
    TangentLaplace,
    WrappedGaussian,
    WrappedLaplace,
)
from jaxgeodp.functional import FunctionalGaussianMechanism, PeriodicKernel
from jaxgeodp.mechanisms import release_by_chain
from jaxgeodp.privacy import entropy, grid
from jaxgeodp.surfaces import FaceMeanMechanism, JointGaussian, PointwiseGaussian

PLACE = pathlib.Path(__file__).with_name("recorded_releases.json")
PLANE = GeodesicBall(Hyperbolic(2), np.array([1.25, 0.75, 0.0]), 0.5)
CAP = GeodesicBall(Sphere(2), np.array([0.6, 0.0, -0.8]), 0.4)
MATRICES = GeodesicBall(SPD(2), np.array([[2.0, 0.5], [0.5, 1.0]]), 1.0)
TRIANGLES = GeodesicBall(PlanarShapes(3), PlanarShapes(3).origin, 0.2)
CURVES = FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.05, [1.0, 0.5], [0.6, 0.8])


def tilt(x, y):
    return -0.5 * jax.numpy.vdot(x, y) ** 2


RELEASES = {
    "tangent": (lambda: TangentLaplace(PLANE, 2.0), {}),
    "tangent on the grid": (lambda: TangentLaplace(PLANE, 2.0), {"numerics": "grid"}),
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


def released(name, monkeypatch):
    make, way = (RELEASES | LONG)[name]
    mechanism = make()
    monkeypatch.setattr(entropy.os, "urandom", lambda count: bytes(range(count)))
    monkeypatch.setattr(grid.secrets, "randbelow", random.Random(0).randrange)
    if "chain" in way:
        record = release_by_chain(mechanism, data_for(mechanism), num_burnin=way["chain"]).record
    else:
        record = mechanism.release(data_for(mechanism), **way).record
    record.pop("created")
    record.pop("library")
    return json.loads(json.dumps(record))


def assert_alike(found, kept, tolerance):
    assert type(found) is type(kept)
    if isinstance(kept, dict):
        assert list(found) == list(kept)
        for key in kept:
            assert_alike(found[key], kept[key], tolerance)
    elif isinstance(kept, list):
        assert len(found) == len(kept)
        for own, other in zip(found, kept, strict=True):
            assert_alike(own, other, tolerance)
    elif isinstance(kept, float):
        assert found == pytest.approx(kept, rel=tolerance, abs=tolerance)
    else:
        assert found == kept


CASES = [*RELEASES, *(pytest.param(name, marks=pytest.mark.exhaustive) for name in LONG)]


@pytest.mark.parametrize("name", CASES)
def test_a_release_is_what_it_was(name, monkeypatch):
    # Other processors and versions of JAX round differently; on one machine the bytes are the same.
    assert_alike(released(name, monkeypatch), json.loads(PLACE.read_text())[name], 1e-8)


def test_another_record_is_caught():
    kept = json.loads(PLACE.read_text())["tangent"]
    for change in ({"scale": kept["scale"] * 1.0001}, {"n": 7}, {"support": {}}):
        with pytest.raises(AssertionError):
            assert_alike(kept | change, kept, 1e-8)


if __name__ == "__main__":
    with pytest.MonkeyPatch.context() as patch:
        PLACE.write_text(json.dumps({name: released(name, patch) for name in RELEASES | LONG}, indent=1) + "\n")
