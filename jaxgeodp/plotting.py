"""Pictures of points: outlines and symmetric matrices, drawn on given Matplotlib axes."""

import numpy as np


def draw_outline(axes, landmarks, reference=None, **line) -> None:
    """Draw a smooth closed curve through landmarks (k, 2), turned onto a ``reference`` (k, 2) if given."""
    from scipy.interpolate import CubicSpline

    points = np.asarray(landmarks, float) @ np.array([1.0, 1j])
    points = points - points.mean()
    points = points / np.linalg.norm(points)
    if reference is not None:
        target = np.asarray(reference, float) @ np.array([1.0, 1j])
        overlap = np.vdot(points, target - target.mean())
        points = points * overlap / abs(overlap)
    closed = np.append(points, points[0])
    # Centripetal parameters: the curve neither overshoots nor loops between uneven landmarks.
    parameters = np.append(0.0, np.cumsum(np.sqrt(np.maximum(np.abs(np.diff(closed)), 1e-9))))
    curve = CubicSpline(parameters, closed, bc_type="periodic")(np.linspace(0.0, parameters[-1], 20 * len(points)))
    axes.plot(curve.real, curve.imag, **{"color": "black", "linewidth": 1.2, **line})
    axes.set_aspect("equal")
    axes.axis("off")


def draw_matrix(axes, matrix, labels, limit=None, colors="RdBu_r", spread=None, size=6.5):
    """Draw a symmetric matrix (k, k) as a heat map with its numbers; returns the image, for a colour bar.

    ``spread``, of the same shape, is written below the numbers, behind a ±; ``size`` is that of the numbers, in points.
    """
    matrix = np.asarray(matrix, float)
    limit = np.max(np.abs(matrix)) if limit is None else limit
    image = axes.imshow(matrix, cmap=colors, vmin=-limit, vmax=limit)
    ticks = range(len(labels))
    axes.set_xticks(ticks, labels, fontsize=size)
    axes.set_yticks(ticks, labels, fontsize=size)
    axes.tick_params(length=0)
    for i in ticks:
        for j in ticks:
            dark = abs(matrix[i, j]) > 0.6 * limit
            axes.text(
                j,
                i,
                f"{matrix[i, j] + 0.0:z.2f}" + ("" if spread is None else f"\n±{spread[i, j]:.2f}"),
                ha="center",
                va="center",
                fontsize=size,
                color="w" if dark else "k",
            )
    return image
