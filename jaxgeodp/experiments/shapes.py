"""Quality of outlines: self-crossings, and the smoothing of Soto et al. 2022 (Fig. 3)."""

import numpy as np

from jaxgeodp.checks import InputError


def crossings(outline) -> int:
    """Return how often the closed polygon through landmarks crosses itself.

    Args:
        outline: (k,), complex.
    """
    points = np.asarray(outline, complex)
    start, end = points, np.roll(points, -1)
    count = len(points)

    def side(a, b, c):
        """Return on which side of the line from a to b the point c lies."""
        return np.sign(((b - a).conj() * (c - a)).imag)

    a, b = start[:, None], end[:, None]
    c, d = start[None], end[None]
    cross = (side(a, b, c) * side(a, b, d) < 0) & (side(c, d, a) * side(c, d, b) < 0)
    i, j = np.indices((count, count))
    apart = (j > i + 1) & ~((i == 0) & (j == count - 1))
    return int(np.sum(cross & apart))


def smooth_outline(outline, bandwidth: float):
    """Smooth landmarks by local linear regression along the closed outline, with Gaussian weights.

    Args:
        outline: (k,), complex, landmarks in order.
        bandwidth: of the weights, in landmarks, above 0.

    Raises:
        ValueError: the bandwidth is not positive.
    """
    if not bandwidth > 0:
        raise InputError(f"smooth_outline: bandwidth must be above 0, got {bandwidth!r}.")
    points = np.asarray(outline, complex)
    count = len(points)
    offsets = np.arange(count) - count // 2
    weights = np.exp(-0.5 * (offsets / bandwidth) ** 2)
    # Local linear weights at 0; the same at every landmark, as they are evenly spaced on a circle.
    moments = [np.sum(weights * offsets**power) for power in range(3)]
    kernel = weights * (moments[2] - moments[1] * offsets)
    kernel /= kernel.sum()
    return np.array([kernel @ points[(j + offsets) % count] for j in range(count)])
