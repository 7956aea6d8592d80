"""The conformal angles of the boundary, by Newton's method on the conformal energy.

A harmonic map onto the unit disk is given by the angles theta of the boundary vertices. With c = cos theta,
s = sin theta, S the Schur complement of the Laplacian on the boundary and d_k = theta_{k+1} - theta_k,

    E(theta) = 1/2 (c'Sc + s'Ss) - 1/2 sum_k sin d_k,

the Dirichlet energy minus the area of the image, is nonnegative, and 0 for conformal maps (Hutchinson 1991, "Computing
conformal maps and minimal surfaces"). A Moebius map of the disk moves theta by a + b cos theta + c sin theta and hardly
changes E: these three directions are projected out of each step, so that the start fixes the Moebius map.

On a very rough boundary E falls until angles meet. There a barrier, -weight sum log d_k, keeps them apart.
"""

import numpy as np

from jaxgeodp.checks import InputError

STEPS = 60
_TOLERANCE = 1e-9
# Eigenvalues of the Hessian below this part of the largest count as that: bounds a step across flat directions.
_FLAT = 1e-6
_SUFFICIENT = 1e-4
_HALVINGS = 40
# Weights of the barrier, one after the other, where the energy alone has no minimum with ordered angles.
_BARRIERS = (1e-2, 1e-3, 1e-4)


def newton_angles(schur, angles, monitor=None) -> np.ndarray:
    """Return boundary angles at which the energy is stationary, increasing around the circle.

    Args:
        schur: S, (B, B).
        angles: the start, (B,), increasing, the last less than the first + 2 pi.
        monitor: called with (energy, size of the projected gradient, weight of the barrier) of every iterate.

    Raises:
        ValueError: no stationary point was found.
    """
    found, stationary = _descend(schur, angles, 0.0, monitor)
    if stationary:
        return found
    for weight in _BARRIERS:
        angles, stationary = _descend(schur, angles, weight, monitor)
    if not stationary:
        raise InputError(
            "disk_conformal_map: Newton's method found no conformal boundary, most likely because of very thin "
            "triangles there; remesh the boundary, or use method='linear'."
        )
    return angles


def _descend(schur, angles, weight, monitor):
    """Run Newton's method; return the last angles and whether the energy is stationary there."""
    for _ in range(STEPS):
        value, slope = energy(schur, angles, weight), gradient(schur, angles, weight)
        free = _off_gauge(angles)
        slope = free.T @ slope
        if monitor is not None:
            monitor(value, np.abs(slope).max(), weight)
        if np.abs(slope).max() <= _TOLERANCE:
            return angles, True
        curvatures, axes = np.linalg.eigh(free.T @ hessian(schur, angles, weight) @ free)
        curvatures = np.abs(curvatures)
        curvatures = np.maximum(curvatures, _FLAT * curvatures.max())
        change = -(axes @ ((axes.T @ slope) / curvatures))
        moved = _search(schur, angles, free @ change, value, change @ slope, weight)
        if moved is None:
            break
        angles = moved
    return angles, False


def energy(schur, angles, weight=0.0) -> float:
    """Return E(theta) with a log barrier of this weight."""
    c, s, d = np.cos(angles), np.sin(angles), gaps(angles)
    barrier = -weight * np.sum(np.log(d)) if weight else 0.0
    return 0.5 * (c @ schur @ c + s @ schur @ s) - 0.5 * np.sum(np.sin(d)) + barrier


def gradient(schur, angles, weight=0.0) -> np.ndarray:
    """Return the gradient of `energy`, (B,)."""
    c, s, d = np.cos(angles), np.sin(angles), gaps(angles)
    ahead = 0.5 * np.cos(d) + weight / d
    return c * (schur @ s) - s * (schur @ c) + ahead - np.roll(ahead, 1)


def hessian(schur, angles, weight=0.0) -> np.ndarray:
    """Return the Hessian of `energy`, (B, B)."""
    c, s, d = np.cos(angles), np.sin(angles), gaps(angles)
    result = schur * (np.outer(s, s) + np.outer(c, c)) - np.diag(c * (schur @ c) + s * (schur @ s))
    bend = 0.5 * np.sin(d) + weight / d**2
    here = np.arange(len(angles))
    after = np.roll(here, -1)
    np.add.at(result, (here, here), bend)
    np.add.at(result, (after, after), bend)
    np.add.at(result, (here, after), -bend)
    np.add.at(result, (after, here), -bend)
    return result


def gaps(angles) -> np.ndarray:
    """Return the gap from each angle to the next around the circle, (B,); they sum to 2 pi."""
    ahead = np.roll(angles, -1)
    ahead[-1] += 2.0 * np.pi
    return ahead - angles


def _off_gauge(angles):
    """Return an orthonormal basis (B, B - 3) orthogonal to the Moebius directions."""
    gauge = np.stack([np.ones_like(angles), np.cos(angles), np.sin(angles)], axis=1)
    return np.linalg.qr(gauge, mode="complete")[0][:, 3:]


def _search(schur, angles, step, value, decrease, weight):
    """Backtrack by halving until the angles stay ordered and the energy decreases; None if no step does."""
    length = 1.0
    # Near the end the decrease drowns in rounding.
    noise = 1e-14 * (1.0 + abs(value)) * len(angles)
    for _ in range(_HALVINGS):
        trial = angles + length * step
        if gaps(trial).min() > 0 and energy(schur, trial, weight) <= value + _SUFFICIENT * length * decrease + noise:
            return trial
        length /= 2.0
    return None
