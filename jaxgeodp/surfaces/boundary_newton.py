"""The conformal angles of the boundary, by Newton's method on the conformal energy.

A harmonic map onto the unit disk is given by the angles theta of the boundary vertices. With c = cos theta,
s = sin theta, S the Schur complement of the Laplacian on the boundary and d_k = theta_{k+1} - theta_k,

    E(theta) = 1/2 (c'Sc + s'Ss) - 1/2 sum_k sin d_k,

the Dirichlet energy minus the area of the image, is nonnegative, and 0 for conformal maps (Hutchinson 1991, "Computing
conformal maps and minimal surfaces"). A Moebius map of the disk moves theta by a + b cos theta + c sin theta and hardly
changes E: these three directions are projected out of each step, so that the start fixes the Moebius map.
"""

import numpy as np

from jaxgeodp.checks import InputError

_STEPS = 60
_TOLERANCE = 1e-9
# Eigenvalues of the Hessian below this part of the largest count as that: bounds a step across flat directions.
_FLAT = 1e-6
_SUFFICIENT = 1e-4
_HALVINGS = 40


def newton_angles(schur, angles, monitor=None) -> np.ndarray:
    """Boundary angles with a stationary energy, increasing around the circle.

    Args:
        schur: S, (B, B).
        angles: the start, (B,), increasing, the last less than the first + 2 pi.
        monitor: called with (energy, size of the projected gradient) of every iterate.

    Raises:
        ValueError: no stationary point was found.
    """
    for _ in range(_STEPS):
        value, slope = energy(schur, angles), gradient(schur, angles)
        free = _off_gauge(angles)
        slope = free.T @ slope
        if monitor is not None:
            monitor(value, np.abs(slope).max())
        if np.abs(slope).max() <= _TOLERANCE:
            return angles
        curvatures, axes = np.linalg.eigh(free.T @ hessian(schur, angles) @ free)
        curvatures = np.abs(curvatures)
        curvatures = np.maximum(curvatures, _FLAT * curvatures.max())
        step = -free @ (axes @ ((axes.T @ slope) / curvatures))
        decrease = np.dot(free.T @ step, slope)
        angles, moved = _search(schur, angles, step, value, decrease)
        if not moved:
            break
    raise InputError(
        "disk_conformal_map: Newton's method found no conformal boundary, most likely because of very thin triangles "
        "there; remesh the boundary, or use method='linear'."
    )


def energy(schur, angles) -> float:
    """E(theta)."""
    c, s = np.cos(angles), np.sin(angles)
    return 0.5 * (c @ schur @ c + s @ schur @ s) - 0.5 * np.sum(np.sin(gaps(angles)))


def gradient(schur, angles) -> np.ndarray:
    """Of E, (B,)."""
    c, s = np.cos(angles), np.sin(angles)
    ahead = np.cos(gaps(angles))
    return c * (schur @ s) - s * (schur @ c) + 0.5 * (ahead - np.roll(ahead, 1))


def hessian(schur, angles) -> np.ndarray:
    """Of E, (B, B)."""
    c, s = np.cos(angles), np.sin(angles)
    result = schur * (np.outer(s, s) + np.outer(c, c)) - np.diag(c * (schur @ c) + s * (schur @ s))
    half = 0.5 * np.sin(gaps(angles))
    here = np.arange(len(angles))
    after = np.roll(here, -1)
    np.add.at(result, (here, here), half)
    np.add.at(result, (after, after), half)
    np.add.at(result, (here, after), -half)
    np.add.at(result, (after, here), -half)
    return result


def gaps(angles) -> np.ndarray:
    """From each angle to the next around the circle, (B,); their sum is 2 pi."""
    ahead = np.roll(angles, -1)
    ahead[-1] += 2.0 * np.pi
    return ahead - angles


def _off_gauge(angles):
    """An orthonormal basis (B, B - 3) of what is orthogonal to the Moebius directions."""
    gauge = np.stack([np.ones_like(angles), np.cos(angles), np.sin(angles)], axis=1)
    return np.linalg.qr(gauge, mode="complete")[0][:, 3:]


def _search(schur, angles, step, value, decrease):
    """The first of the steps 1, 1/2, 1/4, ... that keeps the order of the angles and lowers the energy enough."""
    length = 1.0
    # Near the end the decrease drowns in rounding.
    noise = 1e-14 * (1.0 + abs(value)) * len(angles)
    for _ in range(_HALVINGS):
        trial = angles + length * step
        if gaps(trial).min() > 0 and energy(schur, trial) <= value + _SUFFICIENT * length * decrease + noise:
            return trial, True
        length /= 2.0
    return angles, False
