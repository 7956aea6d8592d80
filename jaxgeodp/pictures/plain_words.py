"""The guarantee of a release record in words."""

import math

from jaxgeodp.units import all_but_one

_PROMISES = {
    "pure": "pure differential privacy with epsilon = {epsilon:g}: whatever anybody does with this value, no "
    "probability of any conclusion changes by more than a factor of e^{epsilon:g} = {factor:.3g} when {change}",
    "gdp": "Gaussian differential privacy with mu = {mu:g}: telling which of two neighbouring data sets this value "
    "came from is at least as hard as telling a draw of N(0, 1) from one of N({mu:g}, 1)",
    "approx": "({epsilon:g}, {delta:g})-differential privacy: no probability of any conclusion exceeds "
    "e^{epsilon:g} times what it is for a neighbouring data set by more than {delta:g}",
    "zcdp": "zero-concentrated differential privacy with rho = {rho:g}",
}
_ADD_REMOVE = "add-remove"
#: Of distances, by the names of manifolds where they are angles.
UNITS = dict.fromkeys(("Sphere", "Axes", "Circle", "Torus", "PlanarShapes", "Shapes3D"), "radians")


def in_words(guarantee: dict, change: str) -> str:
    """Return the guarantee of a record as its definition states it.

    Args:
        guarantee: the entry of a release record.
        change: in what neighbouring data sets differ, such as "one record is replaced by another".
    """
    kind = guarantee.get("kind")
    numbers = {key: value for key, value in guarantee.items() if isinstance(value, float | int)}
    if kind not in _PROMISES:
        return f"{kind}: no promise is proven for this value"
    return _PROMISES[kind].format(**numbers, change=change, factor=math.exp(min(numbers.get("epsilon", 0.0), 700.0)))


def in_plain_words(guarantee: dict, unit: str = "record") -> str:
    """Return what the guarantee of a record is worth, in a sentence; empty if none is proven.

    Args:
        guarantee: the entry of a release record.
        unit: what is protected; see `unit_of`.
    """
    right = most_right(guarantee)
    if right is None:
        return ""
    if str(guarantee.get("adjacency")).startswith(_ADD_REMOVE):
        guess = f"for whom one more {unit} is as likely there as not, and who guesses which"
    else:
        guess = "for whom the last one is one of two that are equally likely, and who guesses which"
    return (
        f"somebody who knows {all_but_one(unit)}, {guess}, is right at most {_percent(right)} of the time with this "
        "release, and half of the time without it"
    )


def in_unit(record: dict) -> str:
    """Return " in radians" where distances of a record are angles; empty elsewhere."""
    unit = UNITS.get(record["manifold"]["name"])
    return f" in {unit}" if unit else ""


def no_nearer(record: dict) -> str:
    """Return a warning if the public centre may be as near as the value, by its expected error; else empty.

    Args:
        record: `Release.record`.
    """
    error, ball = record.get("expected_error"), record.get("ball") or {}
    radius = ball.get("radius")
    if not (error and radius) or error["mean"] < 0.5 * radius:
        return ""
    return (
        f"the noise is large: the public centre lies within {radius:.3g} of the mean of these records, clipped to the "
        "ball, whatever they are, and may be nearer to it than this value"
    )


def _percent(share):
    """Format a share as per cent, rounded up as a bound, with more digits where that would give 100 %."""
    digits = next((k for k in range(1, 9) if math.ceil(10.0 ** (2 + k) * share) < 10 ** (2 + k)), 0)
    return f"{math.ceil(10.0 ** (2 + digits) * share) / 10.0**digits:.{digits}f} %"


def most_right(guarantee: dict) -> float | None:
    """Return a bound on the accuracy of any test between two equally likely neighbouring data sets.

    That is (1 + T)/2 where T bounds the total variation between the two laws of the release (docs/mathematics.md,
    section 8); the test may know both data sets, the mechanism and everything else but its random bits.

    Args:
        guarantee: the entry of a release record.

    Returns:
        At least 1/2, which guessing reaches, and at most 1; None where no promise is proven.

    Example:
        >>> round(most_right({"kind": "pure", "epsilon": 1.0}), 3)
        0.731
    """
    match guarantee:
        case {"kind": "pure", "epsilon": epsilon}:
            variation = math.tanh(0.5 * epsilon)
        case {"kind": "approx", "epsilon": epsilon, "delta": delta}:
            variation = math.tanh(0.5 * epsilon) + 2.0 * delta / (1.0 + math.exp(min(epsilon, 700.0)))
        case {"kind": "gdp", "mu": mu}:
            variation = math.erf(mu / math.sqrt(8.0))
        case {"kind": "zcdp", "rho": rho}:  # by Pinsker, and by Bretagnolle and Huber, of a divergence of rho
            variation = min(math.sqrt(0.5 * rho), math.sqrt(-math.expm1(-rho)))
        case _:
            return None
    return 0.5 + 0.5 * min(variation, 1.0)
