"""Privacy guarantees, their adjacency, and conversions between them.

Conversions go one way, from the stronger guarantee to the weaker, and are rounded so that they never promise too much
(docs/mathematics.md, section 8). A float stands for the decimal that was written (`privacy.decimals`).

SciPy's functions are imported where they are called: most releases need none, and they take a tenth of a second.
"""

import dataclasses
import decimal
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

from jaxgeodp.checks import InputError, positive_number
from jaxgeodp.privacy.decimals import add, float_above, half, product, square, written

_LEAST = math.nextafter(0.0, 1.0)
# Relative: thousands of times the errors of what is computed in floating point.
_MARGIN = 1e-12
# Halvings of an interval of orders, whose ends have a ratio of at most 2^2000, to the last digits.
_HALVINGS = 64
# sqrt(pi/2), rounded up.
_ROOT_ABOVE = Decimal("1.2533141373155002512078826424056")
#: Adjacency: one record is replaced, or one record is added or removed.
ADJACENCY = "replace-one"
ADD_REMOVE = "add-remove"
#: For guarantees that hold under both adjacencies.
EITHER = "either"


@dataclasses.dataclass(frozen=True)
class Guarantee:
    """Proven bound on what a release discloses about any one record.

    The subclasses are `PureDP`, `ApproximateDP`, `GaussianDP` and `ZeroConcentratedDP`; equal parameters make equal
    guarantees.
    """

    def __str__(self):
        return ", ".join(f"{name} = {value:.12g}" for name, value in dataclasses.asdict(self).items())

    def record(self, theorem: str) -> dict[str, Any]:
        """Return the entry of a release record; a guarantee never appears without its theorem.

        Args:
            theorem: why it holds, in words.

        Returns:
            Kind, parameters, adjacency ("replace-one") and theorem, ready for JSON.
        """
        return {"kind": kind_of(self), **dataclasses.asdict(self), "adjacency": ADJACENCY, "theorem": theorem}


@dataclasses.dataclass(frozen=True)
class PureDP(Guarantee):
    """Pure epsilon-differential privacy: for all adjacent data sets (one record replaced) the densities of the
    release differ at most by the factor exp(epsilon) (Dwork, McSherry, Nissim & Smith 2006).

    Args:
        epsilon: above 0.

    Raises:
        ValueError: epsilon is not a finite number above 0.
    """

    epsilon: float

    def __post_init__(self):
        _set_positive(self, "epsilon")

    def to_zcdp(self) -> "ZeroConcentratedDP":
        """Return zCDP with rho = epsilon^2/2 (Bun & Steinke 2016), rounded up."""
        return ZeroConcentratedDP(float_above(half(square(written(self.epsilon)))))

    def to_gdp(self) -> "GaussianDP":
        """Return GDP, rounded up (Dong, Roth & Su 2022).

        mu = -2 Phi^-1(1/(1 + e^epsilon)) = 2 sqrt(2) erfinv(tanh(epsilon/2)).
        """
        from scipy.special import erfinv, ndtri_exp

        if self.epsilon < 1e-6:  # mu is below sqrt(pi/2) epsilon, by a relative 2e-14 at most
            return GaussianDP(float_above(product(_ROOT_ABOVE, written(self.epsilon))))
        if self.epsilon < 1.0:  # where 1/(1 + e^epsilon) is near 1/2 and loses digits
            mu = math.sqrt(8.0) * float(erfinv(math.tanh(self.epsilon / 2.0)))
        else:
            mu = -2.0 * float(ndtri_exp(-np.logaddexp(0.0, self.epsilon)))
        return GaussianDP(mu * (1.0 + _MARGIN))


@dataclasses.dataclass(frozen=True)
class ApproximateDP(Guarantee):
    """(epsilon, delta)-differential privacy: P(A) <= exp(epsilon) P'(A) + delta for every event A.

    Args:
        epsilon: above 0.
        delta: in (0, 1).

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

    Args:
        mu: above 0.

    Raises:
        ValueError: mu is not a finite number above 0.
    """

    mu: float

    def __post_init__(self):
        _set_positive(self, "mu")

    def delta(self, epsilon: float) -> float:
        """Return the smallest delta for this epsilon, rounded up; see `delta_of_epsilon`.

        Args:
            epsilon: any real number.
        """
        log_delta = log_delta_of_epsilon(self.mu, epsilon)
        with decimal.localcontext(prec=40):
            delta = Decimal(log_delta + _margin(log_delta)).exp()
        return min(max(float_above(delta), _LEAST), 1.0)

    def to_approximate(self, delta: float) -> ApproximateDP:
        """Return (epsilon, delta)-DP with the smallest epsilon for this delta, rounded up.

        Args:
            delta: in (0, 1).

        Raises:
            ValueError: delta is out of range.
        """
        if not 0.0 < delta < 1.0:
            raise InputError(f"GaussianDP: delta must be a number between 0 and 1, got {delta!r}.")
        target = _safe_log(delta)
        return ApproximateDP(_least(lambda epsilon: log_delta_of_epsilon(self.mu, epsilon) <= target), delta)

    def to_zcdp(self) -> "ZeroConcentratedDP":
        """Return zCDP with rho = mu^2/2, rounded up."""
        return ZeroConcentratedDP(float_above(half(square(written(self.mu)))))


@dataclasses.dataclass(frozen=True)
class ZeroConcentratedDP(Guarantee):
    """rho-zero-concentrated differential privacy (Bun & Steinke 2016): for every order alpha > 1 the Renyi divergence
    of releases of adjacent data sets is at most rho alpha.

    Args:
        rho: above 0.

    Raises:
        ValueError: rho is not a finite number above 0.
    """

    rho: float

    def __post_init__(self):
        _set_positive(self, "rho")

    def to_approximate(self, delta: float) -> ApproximateDP:
        """Return the least epsilon over all orders, rounded up (Canonne, Kamath & Steinke 2020, Proposition 12).

        Args:
            delta: in (0, 1).

        Raises:
            ValueError: delta is out of range.

        Example:
            >>> from jaxgeodp import ZeroConcentratedDP
            >>> ZeroConcentratedDP(0.5).to_approximate(1e-6)
            ApproximateDP(epsilon=5.221..., delta=1e-06)
        """
        positive_number("ZeroConcentratedDP", "delta", delta)
        if not delta < 1.0:
            raise InputError(f"ZeroConcentratedDP: delta must be below 1, got {delta!r}.")
        with decimal.localcontext(prec=50):  # a float near 1 is not the decimal that it stands for
            order = Decimal(_best_order(self.rho, float(-written(delta).ln())))
        # So many digits that 1 + x and 1 + 1/x keep fifty of the smaller term; each operation is right to the last one.
        with decimal.localcontext(prec=60 + abs(order.adjusted())):
            rho, loss = written(self.rho), -written(delta).ln()
            terms = rho * (1 + order), loss / order, -(1 + order).ln() / order, (order / (1 + order)).ln()
            epsilon = sum(terms) + sum(map(abs, terms)) * Decimal("1e-45")
        return ApproximateDP(max(float_above(epsilon), _LEAST), delta)


def _best_order(rho, loss) -> float:
    """Return about the best order less 1: rho x^2 + log(1 + x) = loss = log(1/delta). All orders are valid."""
    high = min(math.sqrt(loss) / math.sqrt(rho), 1e300)
    low = min(loss / (1.0 + math.sqrt(loss) * math.sqrt(rho)), high)
    for _ in range(_HALVINGS):
        middle = math.sqrt(low) * math.sqrt(high)
        low, high = (low, middle) if rho * middle * middle + math.log1p(middle) > loss else (middle, high)
    return high


KINDS: dict[str, type[Guarantee]] = {
    "pure": PureDP,
    "approx": ApproximateDP,
    "gdp": GaussianDP,
    "zcdp": ZeroConcentratedDP,
}


def kind_of(guarantee: Guarantee) -> str:
    """Return the name of a guarantee's kind in records and ledgers."""
    return next(name for name, kind in KINDS.items() if kind is type(guarantee))


@dataclasses.dataclass(frozen=True)
class NotProven:
    """Absence of a guarantee: a publication's claim for a setting that its theorem does not cover.

    It cannot be composed, audited or charged to a ledger.

    Args:
        claim: in words.
    """

    claim: str

    def record(self, theorem: str) -> dict[str, Any]:
        """Return the entry of a release record, with the reason in place of a theorem.

        Args:
            theorem: the reason, in words.
        """
        return {"kind": "not proven", "claim": self.claim, "adjacency": ADJACENCY, "reason": theorem}


def delta_of_epsilon(mu: float, epsilon: float) -> float:
    """Return the delta for which mu-GDP implies (epsilon, delta)-DP (Dong, Roth & Su 2022, Corollary 1).

    Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu), without cancellation: to a relative error of about
    1e-13, down to the smallest positive number. `GaussianDP.delta` is rounded up.

    Args:
        mu: above 0.
        epsilon: any real number.

    Returns:
        A number from 0 to 1.

    Raises:
        ValueError: a number is out of range.

    Example:
        >>> from jaxgeodp.privacy import delta_of_epsilon
        >>> round(delta_of_epsilon(1.0, 1.0), 6)
        0.126937
    """
    return math.exp(log_delta_of_epsilon(mu, epsilon))


def log_delta_of_epsilon(mu: float, epsilon: float) -> float:
    """Return the natural logarithm of `delta_of_epsilon`; minus infinity below -1e299.

    With L ~ N(mu^2/2, mu^2) and c = epsilon/mu - mu/2, delta = E(1 - e^{epsilon - L})_+ is the integral of
    phi(c + z) (1 - e^{-mu z}) over z > 0, a positive smooth function.

    Args:
        mu: above 0.
        epsilon: any real number.

    Raises:
        ValueError: a number is out of range.
    """
    positive_number("delta_of_epsilon", "mu", mu)
    if not math.isfinite(epsilon):
        raise InputError(f"delta_of_epsilon: epsilon must be a finite number, got {epsilon!r}.")
    if epsilon < 0.0:  # delta(epsilon) = 1 - e^epsilon + e^epsilon delta(-epsilon), two positive terms
        return math.log(-math.expm1(epsilon) + math.exp(epsilon + log_delta_of_epsilon(mu, -epsilon)))
    c, above = _ends(mu, epsilon)
    if c > 1e150:
        return -math.inf
    if c < -8.0:
        from scipy.special import erfcx, ndtr

        # Nearly all of the mass; e^epsilon Phi(-above) = phi(c) Phi(-above)/phi(above).
        return math.log1p(-float(ndtr(c)) - 0.5 * math.exp(-0.5 * c * c) * float(erfcx(above / math.sqrt(2.0))))
    width = 1.0 / max(1.0, c)
    edges = max(0.0, -c) + width * np.arange(-60.0, 61.0)
    # 1 - exp(-mu z) turns within 1/mu of 0.
    edges = np.unique(np.concatenate([np.clip(edges, 0.0, None), width * 0.5 ** np.arange(1.0, 60.0)]))
    nodes, weights = np.polynomial.legendre.leggauss(16)
    half_width = 0.5 * np.diff(edges)[:, None]
    z = edges[:-1, None] + half_width * (nodes + 1.0)
    base = -c * max(0.0, -c) - 0.5 * max(0.0, -c) ** 2
    values = np.exp(-c * z - 0.5 * z**2 - base) * (-np.expm1(-mu * z) / mu if mu > 1e-150 else z)
    total = float(np.sum(half_width * weights * values))
    return -0.5 * c**2 - 0.5 * math.log(2.0 * math.pi) + base + math.log(total) + math.log(mu)


def _ends(mu, epsilon) -> tuple[float, float]:
    """Return epsilon/mu - mu/2 and epsilon/mu + mu/2, rounded once."""
    number, twice = written(mu), add(Decimal(0), written(epsilon), 2)
    ends = [add(twice, square(number), sign) for sign in (-1, 1)]
    with decimal.localcontext(prec=40):
        return float(ends[0] / (2 * number)), float(ends[1] / (2 * number))


def largest_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu, rounded down, for which mu-GDP implies (epsilon, delta)-DP; it calibrates Gaussian noise.

    Never needs more noise than the classical sigma^2 = 2 log(2/delta) sensitivity^2/epsilon^2, for epsilon <= 1.

    Args:
        epsilon: above 0, at most 1e6.
        delta: in (0, 1).

    Returns:
        A mu, for `WrappedGaussian` and the like.

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
    target = _safe_log(delta)
    return math.nextafter(_least(lambda mu: log_delta_of_epsilon(mu, epsilon) > target), 0.0)


def _margin(log_delta: float) -> float:
    """Return an upper bound of the error of `log_delta_of_epsilon` (docs/mathematics.md, section 8)."""
    return _MARGIN * (1.0 + abs(log_delta)) if math.isfinite(log_delta) else 0.0


def _safe_log(delta: float) -> float:
    """Return a bound for computed log deltas that ensures that the true delta is not exceeded."""
    with decimal.localcontext(prec=40):
        exact = float(written(delta).ln())
    return exact - _margin(exact)


def _least(holds: Callable[[float], bool]) -> float:
    """Return the smallest float above 0 from which on a predicate holds; infinite if there is none."""
    high = 1.0
    while math.isfinite(high) and not holds(high):
        high *= 2.0
    while high / 2.0 > 0.0 and math.isfinite(high) and holds(high / 2.0):
        high /= 2.0
    low = high / 2.0
    while math.isfinite(high) and low < (middle := 0.5 * (low + high)) < high:
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _set_positive(guarantee, name):
    value = getattr(guarantee, name)
    positive_number(type(guarantee).__name__, name, value)
    object.__setattr__(guarantee, name, float(value))


def _set_delta(guarantee):
    positive_number(type(guarantee).__name__, "delta", guarantee.delta)
    if not guarantee.delta < 1:
        raise InputError(f"{type(guarantee).__name__}: delta must be below 1, got {guarantee.delta!r}.")
    object.__setattr__(guarantee, "delta", float(guarantee.delta))
