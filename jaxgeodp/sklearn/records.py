"""From what scikit-learn hands to an estimator to points of a manifold, and to the mechanism of its release."""

from typing import Any

import numpy as np
from jax.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from jaxgeodp.checks import InputError
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.locating.mechanism import LocatedMechanism
from jaxgeodp.manifolds import Manifold
from jaxgeodp.manifolds.names import points_on, records_in
from jaxgeodp.mechanisms.names import DEFAULTS, mechanism_named
from jaxgeodp.releases.mechanism import Mechanism


def points_of(estimator: BaseEstimator, manifold: Manifold | str, X: Any, fits: bool) -> tuple[Manifold, np.ndarray]:
    """The manifold and its points (n, \\*shape).

    Args:
        estimator: which takes from the shape of X what it must not change.
        manifold: or its name (`manifolds.names.MANIFOLDS`), whose size X tells.
        X: (n, features), or (n, \\*shape): vectors, matrices, landmarks (n, k, 2). NaN and infinities are let pass, as
            a release replaces a record that is none.
        fits: whether this is the first time.

    Raises:
        ValueError: X is no such table.
    """
    table: Any = validate_data(
        estimator,
        X,
        reset=fits,
        dtype=np.float64,
        ensure_all_finite=False,
        allow_nd=True,
        ensure_min_samples=2 if fits else 1,
    )
    if isinstance(manifold, str):
        return records_in(manifold, table)
    if not isinstance(manifold, Manifold):
        raise InputError(f"{type(estimator).__name__}: manifold must be a manifold or a name, got {manifold!r}.")
    return manifold, points_on(manifold, table)


def mechanism_for(
    owner: str,
    manifold: Manifold,
    epsilon: float | None,
    mu: float | None,
    center: ArrayLike | None,
    radius: float | None,
    mechanism: str,
) -> Mechanism:
    """The mechanism that an estimator's parameters name; without a radius one that finds its ball.

    Raises:
        ValueError: the parameters do not go together; or see the mechanism.
    """
    given = {name: value for name, value in {"epsilon": epsilon, "mu": mu}.items() if value is not None}
    if len(given) != 1:
        raise InputError(f"{owner}: needs epsilon or mu, and not both.")
    if radius is None:
        if center is not None:
            raise InputError(f"{owner}: a center needs a radius; leave both out to find a ball privately.")
        return LocatedMechanism(manifold, mechanism, epsilon=epsilon, mu=mu).search()
    ball = GeodesicBall(manifold, manifold.origin if center is None else center, radius)
    ((parameter, strength),) = given.items()
    return mechanism_named(DEFAULTS[parameter] if mechanism == "auto" else mechanism, ball, strength)


def tagged(tags: Tags) -> Tags:
    """What scikit-learn is told of a private estimator: draws differ, and no record is refused for what it is."""
    tags.non_deterministic = True
    tags.input_tags.allow_nan = True
    tags.input_tags.three_d_array = True
    return tags
