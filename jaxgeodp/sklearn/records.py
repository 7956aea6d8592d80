"""Conversion of what scikit-learn hands to an estimator into points and the mechanism of a release."""

import math
from typing import Any

import numpy as np
from jax.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from jaxgeodp.checks import InputError, epsilon_or_mu, many
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.domains.lists import records_in_lists
from jaxgeodp.locating.mechanism import LocatedMechanism
from jaxgeodp.manifolds import Manifold
from jaxgeodp.manifolds.names import points_on, records_in
from jaxgeodp.mechanisms.names import DEFAULTS, MECHANISMS, mechanism_named
from jaxgeodp.privacy.guarantee import ADD_REMOVE
from jaxgeodp.releases.context import unwatched
from jaxgeodp.releases.mechanism import Mechanism

# Lists of more depth are of no records.
_DEEPEST = 16


def least_records(adjacency: str) -> int:
    """Return how many records a fit needs: a private number of them is no reason to refuse."""
    return 0 if adjacency == ADD_REMOVE else 2


def points_of(
    estimator: BaseEstimator, manifold: Manifold | str, X: Any, fits: bool, least: int = 1
) -> tuple[Manifold, np.ndarray]:
    """Return the manifold and its points (n, \\*shape).

    Args:
        estimator: which takes from the shape of X what it must not change.
        manifold: or its name (`manifolds.names.MANIFOLDS`), whose size X tells.
        X: (n, features), or (n, \\*shape): vectors, matrices, landmarks (n, k, 2). A cell that is no number becomes
            NaN, as a release replaces a record that is none: no exception tells of it.
        fits: whether this is the first time.
        least: number of records that there must be.

    Raises:
        ValueError: X is no such table.
    """
    name = type(estimator).__name__
    with unwatched():
        table: Any = _numbers(name, X)
    # Names and number of features alone: its other checks tell of records.
    named: Any = X if hasattr(X, "columns") else table
    validate_data(estimator, named, reset=fits, skip_check_array=True)
    if len(table) < least or table.shape[1] < 1:
        what = f"{len(table)} sample(s)" if len(table) < least else "0 feature(s)"
        few = least if len(table) < least else 1
        # Without a private number; scikit-learn's suite wants no word in its place.
        shape = many(table.shape).replace("n", "") if least == 0 else table.shape
        raise InputError(f"{name}: found array with {what} (shape={shape}) while a minimum of {few} is required.")
    if not isinstance(manifold, str | Manifold):
        raise InputError(f"{name}: manifold must be a manifold or a name, got {manifold!r}.")
    with unwatched():
        return records_in(manifold, table) if isinstance(manifold, str) else (manifold, points_on(manifold, table))


def _numbers(name, X) -> np.ndarray:
    """Return an array of floats, of which only kind and shape may be refused."""
    if issparse(X):
        raise InputError(f"{name}: sparse data are not supported; use X.toarray().")
    given = records_in_lists(_without_words(X, 0), _rows)
    hidden = isinstance(given, np.ma.MaskedArray) and given.dtype.kind in "iufb"
    table = np.ma.filled(given.astype(float), np.nan) if hidden else _as_array(name, given)
    if table.dtype.kind == "c":
        raise InputError(f"{name}: Complex data not supported; give landmarks as (n, k, 2).")
    if table.ndim < 2:
        raise InputError(
            f"{name}: Expected 2D array, got {table.ndim}D array instead. Reshape your data: one row is one record."
        )
    if table.dtype.kind in "OUS":
        return np.array([_number(cell) for cell in table.ravel()]).reshape(table.shape)
    if table.dtype.kind not in "fiub":
        raise InputError(f"{name}: X must be numbers, got {table.dtype}.")
    with np.errstate(all="ignore"):
        return table.astype(np.float64)


def _rows(array):
    """Return rows of real numbers, or tables of them; None for anything else."""
    return array if array.ndim > 1 and array.dtype.kind != "c" else None


def _as_array(name, X):
    try:
        return np.asarray(X)
    except Exception:  # its words may hold a record
        raise InputError(f"{name}: X must be an array of numbers.") from None


def _without_words(X, depth) -> Any:
    """Return lists, objects in an array, or a table with numbers in place of words, each by itself."""
    if isinstance(X, str | bytes):
        return _number(X)
    if isinstance(X, list | tuple) and depth <= _DEEPEST:
        return [_without_words(cell, depth + 1) for cell in X]
    # Of a cell nothing is asked: its answer could be an exception.
    if (depth == 0 and hasattr(X, "iloc")) or (
        isinstance(X, np.ndarray) and X.dtype == object and not np.ma.isMaskedArray(X)
    ):
        cells = np.asarray(X)
        if cells.dtype == object:
            read = (_without_words(cell, depth + 1) for cell in cells.flat)
            return np.fromiter(read, object, cells.size).reshape(cells.shape)
    return X


def _number(cell) -> float:
    try:
        return float(cell)
    except Exception:  # a cell that is none is not told of
        return math.nan


def mechanism_for(
    owner: str,
    manifold: Manifold,
    epsilon: float | None,
    mu: float | None,
    center: ArrayLike | None,
    radius: float | None,
    mechanism: str,
) -> Mechanism:
    """Return the mechanism that an estimator's parameters name; without a radius one that finds its ball.

    Raises:
        ValueError: the parameters do not go together, or the mechanism releases what is no point of the manifold; or
            see the mechanism.
    """
    parameter, strength = epsilon_or_mu(owner, epsilon, mu)
    if mechanism in MECHANISMS and not MECHANISMS[mechanism].on_manifold:
        raise InputError(
            f"{owner}: mechanism {mechanism!r} releases no points of {manifold}, which an estimator needs."
        )
    if radius is None:
        if center is not None:
            raise InputError(f"{owner}: center needs radius; leave both out to find a ball privately.")
        return LocatedMechanism(manifold, mechanism, epsilon=epsilon, mu=mu)
    ball = GeodesicBall(manifold, manifold.origin if center is None else center, radius)
    if mechanism in MECHANISMS and MECHANISMS[mechanism].parameter != parameter:
        raise InputError(f"{owner}: mechanism {mechanism!r} needs {MECHANISMS[mechanism].parameter}, not {parameter}.")
    return mechanism_named(DEFAULTS[parameter] if mechanism == "auto" else mechanism, ball, strength)


def tagged(tags: Tags) -> Tags:
    """Return the tags of a private estimator: draws differ, and no record is refused for what it is."""
    tags.non_deterministic = True
    tags.input_tags.allow_nan = True
    tags.input_tags.three_d_array = True
    return tags
