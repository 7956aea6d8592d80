"""What a release promises, under which neighbour relation, and what follows from it.

Conversions go one way, from the stronger guarantee to the weaker (docs/mathematics.md, section 8).
"""

import dataclasses
import math
from typing import Any

import numpy as np
from scipy.special import erfinv, log_ndtr, ndtri_exp

from jaxgeodp.checks import InputError, positive_number

_LEAST = math.nextafter(0.0, 1.0)
ADJACENCY = "replace-one"


@dataclasses.dataclass(frozen=True)
class Guarantee:
    """A proven bound of what a release tells about any one record; see the subclasses."""

    def record(self, theorem: str) -> dict[str, Any]:
        """The entry of a release record; a guarantee never appears without its theorem."""
        return {"kind": kind_of(self), **dataclasses.asdict(self), "adjacency": ADJACENCY, "theorem": theorem}


@dataclasses.dataclass(frozen=True)
class PureDP(Guarantee):
    """Pure epsilon-differential privacy: for all adjacent data sets (one record replaced) the densities of the
    release differ at most by the factor exp(epsilon).

    Raises:
        ValueError: epsilon is not a finite number above 0.
    """

    epsilon: float

    def __post_init__(self):
        _set_positive(self, "epsilon")

    def to_zcdp(self, bounded_range: bool = False) -> "ZeroConcentratedDP":
        """epsilon^2/2 (Bun & Steinke 2016); epsilon^2/8 for a mechanism of bounded range (Cesar & Rogers 2021).

        Args:
            bounded_range: the log-density ratio of two neighbours varies by at most epsilon over the outputs: true for
                `KNGMechanism` where its scale is 2 sensitivity/epsilon.
        """
        return ZeroConcentratedDP(max(_half_square(self.epsilon) / (4.0 if bounded_range else 1.0), _LEAST))

    def to_gdp(self) -> "GaussianDP":
        """mu = -2 Phi^-1(1/(1 + e^epsilon)) = 2 sqrt(2) erfinv(tanh(epsilon/2)) (Dong, Roth & Su 2022)."""
        if self.epsilon < 1.0:  # where 1/(1 + e^epsilon) is near 1/2 and loses digits
            least = math.nextafter(0.0, 1.0)
            return GaussianDP(max(math.sqrt(8.0) * float(erfinv(math.tanh(self.epsilon / 2.0))), least))
        return GaussianDP(-2.0 * float(ndtri_exp(-np.logaddexp(0.0, self.epsilon))))


@dataclasses.dataclass(frozen=True)
class ApproximateDP(Guarantee):
    """(epsilon, delta)-differential privacy: P(A) <= exp(epsilon) P'(A) + delta for every event A.

    Raises:
        ValueError: epsilon is not a finite number above 0, or delta not in (0, 1).
    """

    epsilon: float
    delta: float

    def __post_init__(self):
        _set_positive(self, "epsilon")
        _set_delta(self)


@dataclasses.dataclass(frozen=True)
class GaussianDP(Guarantee):
    """mu-Gaussian differential privacy (Dong, Roth & Su 2022): telling neighbours apart is no easier than telling
    N(0, 1) from N(mu, 1).

    Raises:
        ValueError: mu is not a finite number above 0.
    """

    mu: float

    def __post_init__(self):
        _set_positive(self, "mu")

    def delta(self, epsilon: float) -> float:
        """The smallest delta for this epsilon; see `delta_of_epsilon`."""
        return delta_of_epsilon(self.mu, epsilon)

    def to_approximate(self, delta: float) -> ApproximateDP:
        """The smallest epsilon for this delta."""
        return ApproximateDP(_smallest(lambda epsilon: log_delta_of_epsilon(self.mu, epsilon), delta), delta)

    def to_zcdp(self) -> "ZeroConcentratedDP":
        """mu^2/2."""
        return ZeroConcentratedDP(_half_square(self.mu))


@dataclasses.dataclass(frozen=True)
class ZeroConcentratedDP(Guarantee):
    """rho-zero-concentrated differential privacy (Bun & Steinke 2016).

    Raises:
        ValueError: rho is not a finite number above 0.
    """

    rho: float

    def __post_init__(self):
        _set_positive(self, "rho")

    def to_approximate(self, delta: float) -> ApproximateDP:
        """epsilon = rho + 2 sqrt(rho log(1/delta))."""
        positive_number("ZeroConcentratedDP", "delta", delta)
        if not delta < 1.0:
            raise InputError(f"ZeroConcentratedDP: delta must be below 1, got {delta!r}.")
        return ApproximateDP(self.rho + 2.0 * math.sqrt(self.rho) * math.sqrt(-math.log(delta)), delta)


KINDS: dict[str, type[Guarantee]] = {
    "pure": PureDP,
    "approx": ApproximateDP,
    "gdp": GaussianDP,
    "zcdp": ZeroConcentratedDP,
}


def kind_of(guarantee: Guarantee) -> str:
    """The name of its kind in records and ledgers."""
    return next(name for name, kind in KINDS.items() if kind is type(guarantee))


@dataclasses.dataclass(frozen=True)
class NotProven:
    """No guarantee: what a publication claims for a setting that its theorem does not cover."""

    claim: str

    def record(self, theorem: str) -> dict[str, Any]:
        """The entry of a release record, with the reason in place of a theorem."""
        return {"kind": "not proven", "claim": self.claim, "adjacency": ADJACENCY, "reason": theorem}


def delta_of_epsilon(mu: float, epsilon: float) -> float:
    """The delta for which mu-GDP implies (epsilon, delta)-DP (Dong, Roth & Su 2022, Corollary 1).

    Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu), without cancellation: to a relative error of about
    1e-13, down to the smallest positive number.

    Args:
        mu: above 0.
        epsilon: any real number.

    Example:
        >>> from jaxgeodp.privacy import delta_of_epsilon
        >>> round(delta_of_epsilon(1.0, 1.0), 6)
        0.126937
    """
    return math.exp(log_delta_of_epsilon(mu, epsilon))


def log_delta_of_epsilon(mu: float, epsilon: float) -> float:
    """Natural logarithm of `delta_of_epsilon`.

    With L ~ N(mu^2/2, mu^2) and c = epsilon/mu - mu/2, delta = E(1 - e^{epsilon - L})_+ is the integral of
    phi(c + z) (1 - e^{-mu z}) over z > 0, a positive smooth function.
    """
    positive_number("delta_of_epsilon", "mu", mu)
    if not math.isfinite(epsilon):
        raise InputError(f"delta_of_epsilon: epsilon must be a finite number, got {epsilon!r}.")
    c = epsilon / mu - mu / 2.0
    if c < -8.0:
        # Nearly all of the mass.
        return math.log(-math.expm1(epsilon + float(log_ndtr(-epsilon / mu - mu / 2.0))) - math.exp(log_ndtr(c)))
    width = 1.0 / max(1.0, c)
    edges = max(0.0, -c) + width * np.arange(-60.0, 61.0)
    # 1 - exp(-mu z) turns within 1/mu of 0.
    edges = np.unique(np.concatenate([np.clip(edges, 0.0, None), width * 0.5 ** np.arange(1.0, 60.0)]))
    nodes, weights = np.polynomial.legendre.leggauss(16)
    half = 0.5 * np.diff(edges)[:, None]
    z = edges[:-1, None] + half * (nodes + 1.0)
    base = -c * max(0.0, -c) - 0.5 * max(0.0, -c) ** 2
    values = np.exp(-c * z - 0.5 * z**2 - base) * -np.expm1(-mu * z)
    total = float(np.sum(half * weights * values))
    return -0.5 * c**2 - 0.5 * math.log(2.0 * math.pi) + base + math.log(total)


def largest_mu(epsilon: float, delta: float) -> float:
    """The largest mu for which mu-GDP implies (epsilon, delta)-DP: how to calibrate Gaussian noise to a given delta.

    Never needs more noise than the classical sigma^2 = 2 log(2/delta) sensitivity^2/epsilon^2, for epsilon <= 1.

    Args:
        epsilon: above 0, at most 1e6.
        delta: in (0, 1).

    Raises:
        ValueError: a number is out of range.

    Example:
        >>> from jaxgeodp.privacy import largest_mu
        >>> round(largest_mu(1.0, 1e-6), 4)
        0.2367
    """
    ApproximateDP(epsilon, delta)  # checks both
    if epsilon > 1e6:
        raise InputError(f"largest_mu: epsilon must be at most 1e6, got {epsilon:g}.")
    target = math.log(delta) - 1e-12  # on the safe side of rounding
    low, high = 0.0, 1.0
    while log_delta_of_epsilon(high, epsilon) <= target:
        low, high = high, 2.0 * high
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        low, high = (middle, high) if log_delta_of_epsilon(middle, epsilon) <= target else (low, middle)
    return low


def _smallest(log_delta, delta):
    """The smallest epsilon with log_delta(epsilon) <= log(delta), from above; log_delta falls."""
    if not 0.0 < delta < 1.0:
        raise InputError(f"delta must be a number between 0 and 1, got {delta!r}.")
    low, high = 0.0, 1.0
    target = math.log(delta) - 1e-12  # on the safe side of rounding
    while log_delta(high) > target:
        low, high = high, 2.0 * high
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        low, high = (low, middle) if log_delta(middle) <= target else (middle, high)
    return high


def _half_square(number: float) -> float:
    """Never 0; infinite, which guarantees refuse, where it overflows."""
    return max(0.5 * number * number, _LEAST)


def _set_positive(guarantee, name):
    value = getattr(guarantee, name)
    positive_number(type(guarantee).__name__, name, value)
    object.__setattr__(guarantee, name, float(value))


def _set_delta(guarantee):
    positive_number(type(guarantee).__name__, "delta", guarantee.delta)
    if not guarantee.delta < 1:
        raise InputError(f"{type(guarantee).__name__}: delta must be below 1, got {guarantee.delta!r}.")
    object.__setattr__(guarantee, "delta", float(guarantee.delta))
