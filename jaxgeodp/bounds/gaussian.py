"""How private the Riemannian Gaussian is on a space of constant curvature (docs/mathematics.md, section 11).

P has density exp(-rho(x, m)^2/(2 sigma^2)) around one mean, Q around another, at most Delta away. The privacy loss
log(dP/dQ) is bounded from above on every cell of polar coordinates about m, by the triangle inequality alone, and the
mass of the cells under P is known; that gives upper bounds delta(epsilon) for all epsilon, and the smallest mu whose
Gaussian has larger ones: a certificate up to rounding, nothing random in it. Public scalars only, on the host.
"""

import dataclasses
import functools
import math

import numpy as np

_ROUNDING = 1e-8
# From where on Mills ratios are subtracted, and from where on their series.
_NEAR, _FAR = 1.0, 100.0
_SMALL_MU = 0.5
_ROUNDS = 24
# Of the distances of draws on hyperbolic space, in units of 1/sqrt|curvature|.
_LARGEST_SPREAD = 8.0
# At a time: arrays that stay in a cache.
_CELLS = 60_000
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


@dataclasses.dataclass(frozen=True)
class Space:
    """A space of constant curvature 1, 0 or -1; ``folded`` is the sphere with antipodes identified."""

    dim: int
    sign: int
    folded: bool = False

    @property
    def diameter(self) -> float:
        """Return the diameter of the space."""
        if self.sign <= 0:
            return math.inf
        return math.pi / 2.0 if self.folded else math.pi

    def log_area(self, t):
        """Return the log of the area of a geodesic sphere, up to a constant."""
        with np.errstate(divide="ignore"):
            # sinh t = e^t (1 - e^{-2t})/2 does not overflow.
            log_radius = np.log(np.sin(t)) if self.sign > 0 else t + np.log(-np.expm1(-2.0 * t)) - math.log(2.0)
            return (self.dim - 1) * log_radius

    def distance(self, t, angle, delta):
        """Return the distance between the points at (distance ``t``, ``angle``) and (``delta``, angle 0)."""
        if self.sign < 0:
            with np.errstate(over="ignore"):  # t + delta bounds what overflows
                square = np.sinh(0.5 * (t - delta)) ** 2 + np.sinh(t) * math.sinh(delta) * np.sin(0.5 * angle) ** 2
            return 2.0 * np.arcsinh(np.sqrt(square))
        product = np.sin(t) * math.sin(delta)
        near = np.sin(0.5 * (t - delta)) ** 2 + product * np.sin(0.5 * angle) ** 2
        far = np.cos(0.5 * (t + delta)) ** 2 + product * np.cos(0.5 * angle) ** 2
        return 2.0 * np.arctan2(np.sqrt(near), np.sqrt(far))

    def half_square(self, t, angle, lower, upper):
        """Return the largest rho^2/2 of points at distance ``t`` and at most ``angle``, for delta in [lower, upper]."""
        width = upper - lower
        ends = [self.distance(t, angle, delta) for delta in ((upper, upper + width) if width else (upper,))]
        squares = [0.5 * end**2 for end in ends]
        largest = squares[0]
        if width:
            # rho^2/2 - delta^2/2 is concave in delta where the curvature is positive.
            bend = 0.5 * (lower**2 - 2.0 * upper**2 + (upper + width) ** 2)
            largest = np.maximum(largest, 2.0 * squares[0] - squares[1] + bend)
        # Antipodes identified: distances only shrink.
        return np.minimum(largest, 0.5 * np.minimum(t + upper, self.diameter) ** 2)


@functools.lru_cache(maxsize=256)
def gaussian_scale(space: Space, delta: float, mu: float, step: float = 0.01) -> float:
    """Return a scale sigma at which N(m, sigma^2) is mu-GDP for means at most ``delta`` apart.

    Within about 1 % of the least one while it is small against the space.

    Args:
        space: lengths are in units of 1/sqrt|curvature|.
        delta: sensitivity, above 0.
        mu: above 0.
        step: width of the cells in standard deviations.

    Returns:
        Infinity where nothing could be proven.
    """
    if space.sign == 0:
        return delta / mu

    def needed(sigma):
        return gaussian_mu(space, delta, sigma, mu, step)

    # Only a scale that was tested itself is returned: the smallest one that passed, at most a fraction of a cell
    # above one that did not.
    sigma, failed, passed = delta / mu, 0.0, math.inf
    for _ in range(_ROUNDS):
        if space.sign < 0 and sigma * (math.sqrt(space.dim) + space.dim * sigma) > _LARGEST_SPREAD:
            break
        value = needed(sigma)
        if value <= mu:
            passed = sigma
            if value >= mu * (1.0 - 0.3 * step):
                break
        else:
            failed = sigma
        if failed and passed < failed * (1.0 + 0.3 * step):
            break
        # mu is nearly inverse to sigma; aim a little below.
        sigma *= min(max(value / mu, 0.25), 4.0) * (1.0 + 0.1 * step)
        if not failed < sigma < passed:
            sigma = math.sqrt(failed * passed) if failed and math.isfinite(passed) else sigma
    return passed


def gaussian_mu(space: Space, delta: float, sigma: float, guess: float, step: float = 0.01) -> float:
    """Return the smallest mu that the cells prove; infinite where they prove none up to 4 ``guess``."""
    end = _last_epsilon(space, delta, sigma, guess, step)
    if not math.isfinite(end):
        return math.inf
    epsilons = _epsilons(guess, end, step)
    profiles = [
        _log_profile(space, lower, upper, sigma, epsilons, min(step * max(1.0, 30.0 * (1.0 - upper / delta)), 0.1))
        for lower, upper in _gaps(space, delta, step)
    ]
    worst = np.max(profiles, axis=0)

    def suffices(mu):
        # delta falls with epsilon: its value at the start of an interval counts for all of it.
        least = log_deltas(mu, epsilons[1:])
        enough = worst[:-1] + _ROUNDING + 1e-15 * np.abs(least) <= least
        bounded = space.sign < 0 or worst[-1] == -math.inf  # no loss above the last epsilon
        return bounded and bool(np.all(enough)) and _tail_is_covered(space, delta, sigma, mu, epsilons[-1])

    low, high = 0.25 * guess, 4.0 * guess
    if not suffices(high):
        return math.inf
    while high - low > 1e-5 * guess:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def log_deltas(mu: float, epsilons):
    """Return the logarithms of the delta of mu-GDP at many epsilons, to 1e-9 or a relative 1e-15.

    With R the Mills ratio delta is phi(c) (R(c) - R(c + mu)), c = epsilon/mu - mu/2: a difference that keeps its digits
    where probabilities do not. For large c it is taken from the asymptotic series of R, for small mu it is the integral
    of -R'(s) = 1 - s R(s).
    """
    from scipy.special import erfcx, log_ndtr

    c = np.asarray(epsilons / mu - mu / 2.0)
    first = log_ndtr(-c)
    near = first + np.log(-np.expm1(np.minimum(epsilons + log_ndtr(-c - mu) - first, -1e-300)))
    some, end = np.maximum(c, _NEAR), np.maximum(c, _NEAR) + mu
    ratio = math.sqrt(0.5 * math.pi) * (erfcx(some * math.sqrt(0.5)) - erfcx(end * math.sqrt(0.5)))
    square, both = some**2 + end**2, some * end
    series = mu / both * (1.0 - (square + both) / both**2 + 3.0 * (square**2 - both**2 + square * both) / both**4)
    small = np.minimum(mu, _SMALL_MU)
    nodes = np.clip(c, -small, _FAR)[..., None] + 0.5 * np.asarray(small)[..., None] * (1.0 + _NODES)
    falls = 1.0 - nodes * math.sqrt(0.5 * math.pi) * erfcx(nodes * math.sqrt(0.5))
    integral = 0.5 * small * (falls @ _WEIGHTS)
    density = -0.5 * math.log(2.0 * math.pi)
    by_integral = np.log(np.where(c < _FAR, integral, series)) - 0.5 * c**2
    by_ratio = np.where(c < _NEAR, near, density + np.log(np.where(some < _FAR, ratio, series)) - 0.5 * some**2)
    return np.where(mu < _SMALL_MU, density + by_integral, by_ratio)


def _gaps(space, delta, step):
    """Return intervals that cover the distances (0, delta] of two means: wider where there is slack.

    Where the curvature is negative delta(epsilon) grows with the distance, so that the largest is enough.
    """
    if space.sign < 0:
        return [(delta, delta)]
    gaps, upper, width = [], delta, 0.25 * step * delta
    while upper > 0.0:
        lower = max(upper - width, 0.0)
        gaps.append((lower, upper))
        upper, width = (lower if lower > 1e-9 * delta else 0.0), 0.7 * (delta - lower)
    return gaps


def _log_profile(space, lower, upper, sigma, epsilons, step):
    """Return the log of an upper bound of delta at the epsilons, for means between ``lower`` and ``upper`` apart."""
    edges = _radii(space, sigma, 1.2 * sigma**2 * epsilons[-1] / upper, step)
    log_mass, log_lost = _radial_masses(space, sigma, edges)
    angles, log_shares = _angles(space, step)
    losses = np.full(epsilons.size + 1, -np.inf)
    losses[-1] = log_lost
    for rows in np.array_split(np.arange(edges.size - 1), max(1, edges.size * angles.size // _CELLS)):
        t, width = edges[rows, None], np.diff(edges)[rows, None]
        square = space.half_square(t, angles[1:], lower, upper)
        distance = np.sqrt(2.0 * square)
        change = distance - t
        loss = (0.5 * change * (distance + t) + width * np.maximum(change, 0.0)) / sigma**2 + 1e-12
        place = np.searchsorted(epsilons, loss, side="left")
        _add(losses, place.ravel(), (log_mass[rows, None] + log_shares).ravel())
    # delta(epsilon) = int_epsilon^inf e^{epsilon - x} P(loss > x) dx, a sum of positive terms.
    log_above = np.logaddexp.accumulate(losses[:0:-1])[::-1]
    with np.errstate(divide="ignore"):
        weights = np.append(np.log(-np.expm1(-np.diff(epsilons))), 0.0)
    return epsilons + np.logaddexp.accumulate((log_above + weights - epsilons)[::-1])[::-1]


def _add(totals, place, logs):
    """Set ``totals[place] = log(exp(totals[place]) + exp(logs))``, also where the exponentials underflow."""
    tops = np.full_like(totals, -np.inf)
    np.maximum.at(tops, place, logs)
    known = np.isfinite(logs)
    place, logs = place[known], logs[known]
    sums = np.bincount(place, np.exp(logs - tops[place]), totals.size)
    with np.errstate(divide="ignore"):
        totals[:] = np.logaddexp(totals, np.where(sums > 0, tops + np.log(sums), -np.inf))


def _epsilons(mu, end, step):
    """Return epsilons from 0: evenly spaced in the bulk, then with a constant ratio of epsilon/mu - mu/2."""
    z = np.arange(-mu / 2.0, 1.0, 0.25 * step)
    top = max(end / mu - mu / 2.0, 2.0)
    tail = z[-1] * np.exp(0.25 * step * np.arange(1, math.ceil(math.log(top / z[-1]) / (0.25 * step)) + 1))
    return mu * (np.append(z, tail) + mu / 2.0)


def _radii(space, sigma, reach, step):
    """Return the edges of the radial cells: even in the bulk, then growing with the distance from it."""
    drift = (space.dim - 1) * sigma if space.sign < 0 else 0.0
    bulk = sigma * (math.sqrt(space.dim) + drift + 2.0)
    if bulk >= space.diameter:
        width = step * min(sigma, space.diameter / 3.0)
        return np.linspace(0.0, space.diameter, math.ceil(space.diameter / width) + 1)
    even = np.linspace(0.0, bulk, math.ceil(bulk / (step * sigma)) + 1)
    end = space.diameter if space.sign > 0 else reach
    # Measured from the bulk's inner part, so that the first tail cell is as wide as the others.
    base = 2.0 * sigma
    count = math.ceil(math.log1p(max(end - bulk, sigma) / base) / (0.5 * step))
    tail = bulk + base * np.expm1(0.5 * step * np.arange(1, count + 1))
    tail = np.append(tail[tail < end], end) if space.sign > 0 else tail
    return np.append(even, tail)


def _radial_masses(space, sigma, edges):
    """Return the logs of the probabilities of the cells, and of a bound of what lies beyond the last edge."""
    from scipy.special import log_ndtr

    half = 0.5 * np.diff(edges)[:, None]
    t = edges[:-1, None] + half * (1.0 + _NODES)
    logs = np.logaddexp.reduce(-0.5 * (t / sigma) ** 2 + space.log_area(t) + np.log(half * _WEIGHTS), axis=1)
    # Far out cells are too wide for the quadrature: there at most the normal tail times the largest area.
    wide = 2.0 * half[:, 0] * edges[:-1] > sigma**2
    outer = edges[1:][wide]
    areas = space.log_area(np.minimum(outer, 0.5 * math.pi) if space.sign > 0 else outer)
    logs[wide] = areas + 0.5 * math.log(2.0 * math.pi) + math.log(sigma) + log_ndtr(-edges[:-1][wide] / sigma)
    total = np.logaddexp.reduce(logs[~wide])
    lost = -math.inf if space.sign > 0 else _log_beyond(space, sigma, edges[-1])
    return logs - total, lost - total


def _log_beyond(space, sigma, t):
    """Return the log of a bound of the unnormalised mass beyond t, by sinh x <= e^x/2."""
    from scipy.special import log_ndtr

    a = space.dim - 1
    normal = 0.5 * math.log(2.0 * math.pi) + math.log(sigma) + float(log_ndtr(-(t / sigma - a * sigma)))
    return 0.5 * (a * sigma) ** 2 + normal - a * math.log(2.0)


def _angles(space, step):
    """Return the edges of the angular cells and logs of their shares."""
    from scipy.special import betainc

    if space.dim == 1:
        return np.array([0.0, 0.0, math.pi]), np.log([0.5, 0.5])
    angles = np.linspace(0.0, math.pi, math.ceil(math.pi * math.sqrt(space.dim) / step) // 2 * 2 + 1)
    a = 0.5 * (space.dim - 1)
    below = betainc(a, a, np.sin(0.5 * angles[: angles.size // 2 + 1]) ** 2)
    shares = np.diff(below)
    with np.errstate(divide="ignore"):
        return angles, np.log(np.append(shares, shares[::-1]))


def _last_epsilon(space, delta, sigma, mu, step):
    """Return the end of the grid of epsilons: above every loss, or where a formula covers the tail."""
    if space.sign > 0:
        return 1.01 * delta * (2.0 * space.diameter + delta) / (2.0 * sigma**2)
    mu = max(mu, delta / sigma) * (1.0 + 0.5 * step)
    end = 4.0 * mu
    while not _tail_is_covered(space, delta, sigma, mu, end):
        end *= 1.2
        if end > 1e6 * mu:
            return math.inf
    return 1.2 * end


def _tail_is_covered(space, delta, sigma, mu, end):
    """Return whether P(loss > epsilon) <= delta_mu(epsilon) for all epsilons from ``end`` on: section 11, step 3."""
    if space.sign > 0:
        return True
    u = end * sigma / delta - delta / (2.0 * sigma) - (space.dim - 1) * sigma
    x = end / mu + mu / 2.0
    steep = sigma / delta >= 1.0 / mu and u > 0 and u * sigma / delta >= (x + 3.0 / x) / mu
    if not steep:
        return False
    edges = _radii(space, sigma, 0.0, 0.1)
    half = 0.5 * np.diff(edges)[:, None]
    t = edges[:-1, None] + half * (1.0 + _NODES)
    total = np.logaddexp.reduce(-0.5 * (t / sigma) ** 2 + space.log_area(t) + np.log(half * _WEIGHTS), axis=None)
    beyond = _log_beyond(space, sigma, sigma * (u + (space.dim - 1) * sigma)) - total
    return beyond + _ROUNDING <= float(log_deltas(mu, np.array(end)))
