"""Check that stored files are those of one description: readers rely on nothing else."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.inference.moments import FrechetVariance, TangentCovariance
from jaxgeodp.manifolds import Manifold
from jaxgeodp.manifolds.names import manifold_of
from jaxgeodp.nested_lists import from_lists
from jaxgeodp.privacy.composition import compose
from jaxgeodp.privacy.guarantee import ADJACENCY, KINDS, Guarantee
from jaxgeodp.privacy.release import Release, record_digest

#: Records that a description needs: regions of fewer hold less often than they say (docs/inference.md).
LEAST = 40
# Beyond which nobody has described any.
_MOST = 10**9
# Of a number that is no damage.
_LARGEST = 1e150
_CLOSE = 1e-2
# What steps ask for.
_ASKED = ("mean", "mean of all", "records", "pairs")
# A privacy parameter that asks for less noise than a hundred steps of the grid.
_HARDLY_ANY = 1e5


def check_stored(parts: dict[str, Release], public: dict) -> Manifold:
    """Return the manifold of a description; refuse what are not its releases and its summary.

    Args:
        parts: mean, variance and covariance.
        public: see `Description`.

    Raises:
        ValueError, KeyError, TypeError, AttributeError, ArithmeticError: they are something else.
    """
    mean, variance, covariance = parts.values()
    manifold = manifold_of(mean.record["manifold"])
    _require(public["records"] == {name: record_digest(own.record) for name, own in parts.items()})
    kinds = [own.record["statistic"] for own in (variance, covariance)]
    _require(kinds == [FrechetVariance.description, TangentCovariance.description])
    for name in ("manifold", "n", "ball"):
        _require(all(own.record[name] == mean.record[name] for own in parts.values()))
    n = mean.record["n"]
    _require(isinstance(n, int) and not isinstance(n, bool) and LEAST <= n <= _MOST)
    _check_promises(parts, public)
    _check_values(manifold, mean, variance, covariance)
    _check_steps(mean.record, public["located"])
    _require(isinstance(public["located"], bool) and public["located"] == ("stages" in mean.record))
    return manifold


def _check_promises(parts, public):
    """Check that parameter and strengths are what the records promise."""
    parameter, strengths = public["parameter"], public["strengths"]
    promises = {name: _promise(own.record["guarantee"]) for name, own in parts.items()}
    stated = public["guarantee"]
    _require(compose(list(promises.values())) == _promise(stated) and stated["adjacency"] == ADJACENCY)
    _require(strengths.keys() == parts.keys() and parameter in ("epsilon", "mu"))
    for name, promise in promises.items():
        # Integer scales, which are rounded up, promise a little more than was asked for; much more, if that is little.
        asked = strengths[name] if parameter == "epsilon" else strengths[name] ** 2 / 2.0
        given = getattr(promise, "epsilon" if parameter == "epsilon" else "rho")
        close = math.isclose(given, asked, rel_tol=_CLOSE) or strengths[name] > _HARDLY_ANY
        _require(given <= asked * (1.0 + 1e-9) and close)


def _check_steps(record, located):
    """Check that a mean in steps has some, with noise of their own, and no other mean has."""
    steps = record.get("steps")
    _require((steps is not None) == (record["mechanism"] == "AdaptiveMechanism"))
    if steps is None:
        return
    _require(isinstance(steps, list) and len(steps) > 0 and not located)
    for step in steps:
        _require(step["asked"] in _ASKED)
        for name in {"scale", "gain"} & step.keys():
            _require(isinstance(step[name], float | int) and 0.0 < step[name] < _LARGEST)
    _require(all("scale" in step for step in (steps[0], steps[-1])))


def _check_values(manifold, mean, variance, covariance):
    """Check that values are what was released about a mean on the manifold."""
    dim, shape = manifold.dim, manifold.shape
    kind = "complex128" if manifold.dtype_kind == "complex" else "float64"
    about, frame = (from_lists(covariance.record[name], kind) for name in ("about", "frame"))
    if variance.record["scale"] is not None and covariance.record["scale"] is not None:
        _require(variance.record["about"] == covariance.record["about"])
    for value, expected in (
        (mean.value, shape),
        (about, shape),
        (frame, (dim, *shape)),
        (variance.value, ()),
        (covariance.value, (dim, dim)),
    ):
        _require(np.shape(value) == expected and bool(np.all(np.abs(value) < _LARGEST)))
    _require(np.allclose(covariance.value, np.transpose(covariance.value)))
    for own in (mean, variance, covariance):
        scale = own.record["scale"]
        _require(scale is None or (isinstance(scale, float) and 0.0 < scale < _LARGEST))
    with jax.enable_x64(True):
        for point in (mean.value, about):
            near = np.allclose(manifold.project(jnp.asarray(point)), point, rtol=1e-6, atol=1e-6)
            _require(near or bool(manifold.belongs(jnp.asarray(point))))
    ball = mean.record["ball"]
    center = from_lists(ball["center"], kind)
    _require(center.shape == shape and bool(np.all(np.isfinite(center))) and ball["radius"] > 0.0)
    if mean.record["scale"] is not None:  # else no ball can be made about the centre that was found
        GeodesicBall(manifold, center, ball["radius"])  # checks


def _promise(entry: dict) -> Guarantee:
    """Return the guarantee that a record states."""
    kind = KINDS[entry["kind"]]
    return kind(**{field.name: entry[field.name] for field in dataclasses.fields(kind)})


def _require(holds):
    if not holds:
        raise ValueError("another document")
