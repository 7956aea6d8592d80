"""What several releases about the same people promise together (independent noise, adaptively chosen)."""

import functools
import math
from collections.abc import Sequence
from typing import TypeVar, overload

from jaxgeodp.checks import InputError
from jaxgeodp.privacy.accounts import amounts, parameters, total
from jaxgeodp.privacy.decimals import add, float_above, float_below, written
from jaxgeodp.privacy.events import LARGEST_MU, loss_distribution
from jaxgeodp.privacy.guarantee import ApproximateDP, GaussianDP, Guarantee, PureDP, ZeroConcentratedDP

_Kind = TypeVar("_Kind", bound=Guarantee)
# Allowance in delta for each part: hundreds of times what rounding in Fourier transforms was seen to take off.
_TRANSFORM = 1e-13


@overload
def compose(guarantees: Sequence[GaussianDP], delta: None = None) -> GaussianDP: ...
@overload
def compose(guarantees: Sequence[Guarantee], delta: float | None = None) -> Guarantee: ...
def compose(guarantees: Sequence[Guarantee], delta: float | None = None) -> Guarantee:
    """Return the guarantee of all releases together.

    - Pure: the sum of the epsilons. With approximate ones also the sum of the deltas.
    - Gaussian: sqrt(sum mu^2). zCDP: the sum of the rhos.
    - Mixed, without ``delta``: zCDP where all imply it.
    - With ``delta``: (epsilon, delta). Gaussian ones are exact; of mixtures the smaller of two bounds, the sum of the
      epsilons and numerical composition of privacy loss distributions (``pip install 'jaxgeodp[accounting]'``).

    Without ``delta`` it is the exact sum of the numbers as they were written, as in a ledger (docs/ledger.md, "0.1 is
    one tenth"): the smallest floats that, as written, are not below it.

    Args:
        guarantees: at least one.
        delta: the delta of the result, for mixed guarantees, in (0, 1).

    Returns:
        One guarantee, of the strongest kind that all of them imply; with ``delta`` an `ApproximateDP`.

    Raises:
        ValueError: nothing to compose, something that is no guarantee, a mixture that needs ``delta``, or for which it
            is too small, zCDP with ``delta``, or a mixture with ``delta`` while dp-accounting is not installed.

    Example:
        >>> from jaxgeodp.privacy import GaussianDP, PureDP, compose
        >>> compose([PureDP(0.1), PureDP(0.2)])
        PureDP(epsilon=0.3)
        >>> compose([GaussianDP(3.0), GaussianDP(4.0)])
        GaussianDP(mu=5.0)
    """
    guarantees = list(guarantees)
    for guarantee in guarantees:
        if not isinstance(guarantee, Guarantee):
            raise InputError(f"compose: {guarantee!r} is not a proven guarantee, so nothing is proven of the sum.")
    if not guarantees:
        raise InputError("compose: needs at least one guarantee.")
    if delta is not None:
        return _with_delta(guarantees, delta)
    return _together(_common(guarantees), guarantees)


def _together(kind: type[_Kind], guarantees: Sequence[Guarantee]) -> _Kind:
    """Return the sum of guarantees that convert into a kind."""
    spent = total(kind, ((amounts(kind, guarantee), 1) for guarantee in guarantees))
    return kind(**parameters(kind, spent, up=True))


def _common(guarantees) -> type[Guarantee]:
    """Return the strongest kind that all of them imply."""
    kinds = {type(guarantee) for guarantee in guarantees}
    if len(kinds) == 1:
        return kinds.pop()
    if kinds == {PureDP, ApproximateDP}:
        return ApproximateDP
    if ApproximateDP not in kinds:
        return ZeroConcentratedDP
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise InputError(f"compose: {names} have no common exact form; give delta to get an ApproximateDP.")


def _with_delta(guarantees: Sequence[Guarantee], delta: float) -> ApproximateDP:
    """Return the better of two bounds: Gaussian ones exactly and the rest by addition, or everything numerically."""
    if not 0.0 < delta < 1.0:
        raise InputError(f"compose: delta must be a number between 0 and 1, got {delta!r}.")
    if any(isinstance(g, ZeroConcentratedDP) for g in guarantees):
        raise InputError(
            "compose: a zCDP guarantee has no privacy-loss distribution; compose without delta and convert the result."
        )
    gaussian = [g for g in guarantees if isinstance(g, GaussianDP)]
    parts = [g for g in guarantees if not isinstance(g, GaussianDP)]
    if gaussian:
        gaussian = [_together(GaussianDP, gaussian)]  # exactly one mu
    if not parts:
        return gaussian[0].to_approximate(delta)
    added = _added(parts, gaussian, delta)
    numerically = _by_loss_distributions(parts + gaussian, delta)
    if math.isinf(min(added, numerically)):
        (_, deltas) = total(ApproximateDP, ((amounts(ApproximateDP, part), 1) for part in parts))
        raise InputError(
            f"compose: delta={delta!r} is below the sum of the deltas, {float_above(deltas)!r}, or too close to it; "
            "choose a larger one."
        )
    return ApproximateDP(min(added, numerically), delta)


def _added(parts, gaussian, delta) -> float:
    """Return the sum of the epsilons, the Gaussian one at what is left of delta; infinite if nothing is."""
    epsilons, deltas = total(ApproximateDP, ((amounts(ApproximateDP, part), 1) for part in parts))
    left = add(written(delta), deltas, -1)
    if left < 0 or (gaussian and not float_below(left) > 0.0):
        return math.inf
    if gaussian:
        epsilons = add(epsilons, written(gaussian[0].to_approximate(float_below(left)).epsilon))
    return float_above(epsilons)


def _by_loss_distributions(guarantees, delta) -> float:
    """Return epsilon by numerical composition; guarantees are replace-one, so each is one pair of laws.

    The package rounds to the safe side, except in its Fourier transforms, for which delta is lowered; infinite where
    too little of it is left, or a mu is too large for a table of losses.
    """
    if any(isinstance(guarantee, GaussianDP) and guarantee.mu > LARGEST_MU for guarantee in guarantees):
        return math.inf
    together = functools.reduce(lambda one, other: one.compose(other), map(loss_distribution, guarantees))
    safe = delta - _TRANSFORM * len(guarantees)
    return max(together.get_epsilon_for_delta(safe), 1e-12) if safe > 0.0 else math.inf
