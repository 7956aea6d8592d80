"""The Poincare disc with a released point of the hyperbolic plane, its public ball and its region."""

import numpy as np

_AROUND = np.linspace(0.0, 2.0 * np.pi, 181)
# Of the circles about the origin, for scale.
_DISTANCES = (1.0, 2.0, 3.0, 4.0)
_MARGIN = 1.25


def draw_disc(axes, value: np.ndarray, center: np.ndarray, radius: float, scale: float, region: float | None) -> None:
    """Draw a hyperboloid point in the Poincare disc, zoomed to show the ball.

    Args:
        axes: of Matplotlib.
        value, center: (3,), of the hyperboloid of curvature -1/scale^2.
        radius: of the ball, a distance.
        scale: 1 for curvature -1.
        region: radius about the value of a region to draw; None for none.
    """
    value, center = value / scale, center / scale
    axes.plot(np.cos(_AROUND), np.sin(_AROUND), color="0.3", linewidth=1.2)
    for distance in _DISTANCES:
        size = np.tanh(0.5 * distance)
        axes.plot(size * np.cos(_AROUND), size * np.sin(_AROUND), color="0.88", linewidth=0.7)
    rims = [_circle(center, radius / scale)]
    axes.plot(*rims[0], color="#3a8f4d", linewidth=1.5)
    if region is not None:
        rims.append(_circle(value, region / scale))
        axes.plot(*rims[1], color="#2f6bb3", linewidth=1.5)
    axes.plot(*_in_disc(value[:, None]), "o", color="#c33b2f", markersize=6)
    shown = np.concatenate([*rims, _in_disc(value[:, None])], axis=1)
    middle = 0.5 * (shown.max(axis=1) + shown.min(axis=1))
    reach = _MARGIN * max(np.ptp(shown, axis=1).max() / 2.0, 1e-9)
    if reach > 0.5:
        middle, reach = np.zeros(2), 1.05
    axes.set(xlim=(middle[0] - reach, middle[0] + reach), ylim=(middle[1] - reach, middle[1] + reach))
    axes.set_aspect("equal")
    axes.tick_params(labelsize=7)


def _in_disc(points):
    """Map hyperboloid points (3, n) to the disc (2, n)."""
    return points[1:] / (1.0 + points[0])


def _circle(center, radius):
    """Return points at a distance from the centre: a circle about the origin, boosted there."""
    around = np.stack(
        [np.full_like(_AROUND, np.cosh(radius)), np.sinh(radius) * np.cos(_AROUND), np.sinh(radius) * np.sin(_AROUND)]
    )
    side = center[1:]
    boost = np.block(
        [[center[:1, None], side[None, :]], [side[:, None], np.eye(2) + np.outer(side, side) / (1.0 + center[0])]]
    )
    return _in_disc(boost @ around)
