"""Expected error of a release from public numbers alone, by draws around public reference records."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.checks import InputError
from jaxgeodp.compiling import COMPILED_SOON, called
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.domains.shape import Shape
from jaxgeodp.manifolds.manifold import real_dtype
from jaxgeodp.privacy.release import ExpectedError
from jaxgeodp.releases.law import PointLaw
from jaxgeodp.releases.ways import FromSums, OnGrid, Way
from jaxgeodp.samplers.rejection import default_block
from jaxgeodp.statistics import FrechetMean, FrechetMedian, PowerMean

#: Simulated releases, and how far reference records reach, in units of the radius.
DRAWS, SPREAD = 1000, 0.5
#: What a record says of them.
REFERENCES = "reference records in random directions, a quarter of the radius from a point as far off the centre"
# Reference records: as many as this, each counting n/this times; the law depends on their mean and spread.
_REFERENCES = 64
# On a line: between two of them nothing tells where the median is.
_ON_A_LINE = 2048
_LEVEL = 0.95


def reference_records(ball: GeodesicBall, spread: float) -> tuple[jax.Array, jax.Array]:
    """Return public records that stand for n, and their Frechet mean, which is their median, too.

    They lie around a point at half of ``spread`` times the radius from the centre, as means are rarely at the centre.
    Directions are random with a fixed seed, each with its opposite; distances are that half, on a line all up to it.
    """
    count = _REFERENCES if ball.manifold.dim > 1 else _ON_A_LINE
    directions = np.random.default_rng(0).normal(size=(count // 2, ball.manifold.dim))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    if ball.manifold.dim == 1:
        directions *= np.linspace(0.0, 1.0, len(directions))[:, None]  # of two places all between would be medians
    length = 0.5 * spread * ball.radius
    places = jnp.asarray(ball.center), length, np.concatenate([directions, -directions])
    return called(_reference_records, *places, options=COMPILED_SOON, manifold=ball.manifold)


@functools.partial(jax.jit, static_argnames="manifold", compiler_options=COMPILED_SOON)
def _reference_records(origin, length, directions, manifold):
    """Return records and their mean; few stand for n, as a law depends on n and on how the records lie."""
    center = manifold.exp(origin, length * manifold.frame(origin)[0])
    frame = manifold.frame(center)
    return jax.vmap(lambda own: manifold.exp(center, length * manifold.combine(own, frame)))(directions), center


def errors_of(law: PointLaw, records: jax.Array, center: jax.Array, draws: int, on_manifold: bool) -> jax.Array:
    """Return the distances of draws from the statistic of records in the ball.

    Args:
        law: of the release.
        records, center: reference records, and their statistic.
        draws: how many.
        on_manifold: whether distances are those of the manifold; else of the ambient space.
    """
    static = {"draws": draws, "on_manifold": on_manifold}
    return called(_errors_of, law.unsized, records, center, options=COMPILED_SOON, **static)


@functools.partial(jax.jit, static_argnames=("draws", "on_manifold"), compiler_options=COMPILED_SOON)
def _errors_of(law, records, center, draws, on_manifold):
    values = law.draws(jax.random.key(1), records, center, draws, default_block(draws)).points
    return jax.vmap(functools.partial(_distance, law, center, on_manifold))(values)


def _distance(law, center, on_manifold, x) -> Any:
    manifold = law.ball.manifold
    if on_manifold:
        point, is_one = law.as_point(x)
        return jnp.where(is_one, manifold.dist(center, point), jnp.nan)
    return jnp.linalg.norm((manifold.aligned(x, center) - x).reshape(-1)).astype(real_dtype(x))


def expected_error(mechanism: Any, n: int, way: Way) -> ExpectedError:
    """Return the expected distance of a release of n records from their statistic, from public numbers alone.

    It covers noise and the bias of a mean of logarithms, for `reference_records`; neither clipping, which depends on
    private records, nor how far n people are from their population.

    Args:
        mechanism: with a ball.
        n: number of records.
        way: of the release, which may have noise of its own.

    Raises:
        ValueError: no reference records are known for its data, or its values are not on the manifold; or see its law.
    """
    if isinstance(getattr(mechanism, "shape", None), Shape):
        raise InputError(
            f"{type(mechanism).__name__}: with a shape the expected error is not known, as it depends on the data "
            "that the shape clips."
        )
    if not isinstance(mechanism.summarised, FrechetMean | FrechetMedian | PowerMean):
        raise InputError(
            f"{type(mechanism).__name__}: the expected error is known only for means and medians in a ball."
        )
    with jax.enable_x64(True):
        home = dataclasses.replace(mechanism, ball=mechanism.ball.at_home)
        law = home.law(n)
        if not isinstance(law, PointLaw):
            raise InputError(f"{type(mechanism).__name__}: the expected error is not known for a release in steps.")
        law.check()
        if isinstance(way, OnGrid | FromSums) and law.grid is not None:
            law = law.grid.continuous()
        records, center = reference_records(home.ball, SPREAD)
        errors = np.asarray(errors_of(law, records, center, DRAWS, True))
    if not np.all(np.isfinite(errors)):
        raise InputError(
            f"{type(mechanism).__name__}: the expected error is not known, as its values need not be points of "
            f"{home.ball.manifold}."
        )
    return ExpectedError(float(errors.mean()), float(np.quantile(errors, _LEVEL)), _LEVEL)
