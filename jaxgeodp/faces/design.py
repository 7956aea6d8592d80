"""Design of a mean-face release from public faces: norm bounds, budget, and smoothing across curves.

Nothing here may see private data. Smoothing across the curves is post-processing: the guarantee does not change.
"""

import functools
from typing import NamedTuple

import jax
import numpy as np

from jaxgeodp.checks import InputError, positive_integer, positive_number
from jaxgeodp.domains.records import host_array, record_count
from jaxgeodp.faces.curves import FaceTemplate, face_curves
from jaxgeodp.faces.folder import mesh_files, process_faces
from jaxgeodp.faces.mean import FaceMeanMechanism, flat_curves
from jaxgeodp.faces.synthetic import SyntheticFaces
from jaxgeodp.functional import PeriodicMatern, optimize_budget
from jaxgeodp.meshes.mesh import Mesh
from jaxgeodp.privacy.guarantee import GaussianDP
from jaxgeodp.privacy.ledger import Ledger
from jaxgeodp.privacy.release import Release
from jaxgeodp.releases.mechanism import release_in
from jaxgeodp.releases.ways import way_of

#: How far the private faces may be beyond the public ones: norm bounds are this times the largest deviation of these.
MARGIN = 1.25
_PENALTIES = np.append(0.0, np.logspace(-2.0, 4.0, 25))
# Draws of noise on which the smoothing across is chosen.
_DRAWS = 32
# Fewer meshes do not tell how people differ.
_LEAST_PEOPLE = 3
# The synthetic people who stand for a reference: how many, and the rings of their meshes.
_PEOPLE, _RINGS = 24, 20


class FaceDesign(NamedTuple):
    """A mechanism for the mean face, and the smoothing of its releases across curves."""

    mechanism: FaceMeanMechanism  #: before its releases are smoothed
    radial_penalty: np.ndarray  #: (3,), of `smooth_across`, for each coordinate

    @property
    def guarantee(self) -> GaussianDP:
        """Return the guarantee of the whole face."""
        return self.mechanism.guarantee

    def smoothed(self, curves):
        """Smooth released curves (..., J, m, 3) across the curves, as deviations from the template."""
        template = self.mechanism.template
        return template + smooth_across(np.asarray(curves, float) - template, self.radial_penalty)

    def simulate(self, key, data, num: int):
        """Return ``num`` smoothed draws for research; see `FaceMeanMechanism.simulate`."""
        return self.smoothed(self.mechanism.simulate(key, data, num))

    def release(self, data, ledger: Ledger | None = None, *, numerics: str = "idealized", more=None) -> Release:
        """Release one private mean face, smoothed; see `FaceMeanMechanism.release`.

        Args:
            data, ledger, numerics: see there.
            more: further entries of the record, all of them public.
        """
        note = {"name": "smoothing across the curves", "penalty": self.radial_penalty.tolist()}
        more = {"post_processing": note, **(more or {})}
        way = way_of(type(self.mechanism).__name__, 0.0, numerics)
        return release_in(self.mechanism, way, data, ledger, finish=self.smoothed, more=more)


def norm_bounds(template, reference, margin: float = MARGIN) -> np.ndarray:
    """Return norm bounds (J, 3): ``margin`` times the largest deviation of public reference faces.

    Args:
        template: radial curves of a public face, (J, m, 3).
        reference: radial curves of other public faces, (n_reference, J, m, 3).
        margin: above 0; how far private faces may be beyond the public ones.

    Raises:
        ValueError: shapes do not fit, curves are not finite, or all of them are the template's.
    """
    positive_number("norm_bounds", "margin", margin)
    template, reference = _public(template, reference, least=1)
    bound = margin * np.sqrt(np.mean((reference - template) ** 2, axis=2)).max(axis=0)
    if not np.all(bound > 0):
        raise InputError(
            "norm_bounds: all reference faces share a curve with the template; give faces of other people."
        )
    return bound


def design_faces(template, reference, n: int, mu: float, norm_bound=None, steps: int = 150) -> FaceDesign:
    """Return the mean-face mechanism of least expected error on public faces, and its smoothing.

    Length scale and penalty of each coordinate and the split of the budget over curves and coordinates come from
    `optimize_budget` (docs/mathematics.md, section 12). The smoothing S across the curves minimises, by coordinate,
    |S h - f|^2 + E |S noise|^2, with f the mean deviation of the reference faces and h its release without noise.

    Args:
        template: radial curves of a public face, (J, m, 3), for instance of one person.
        reference: radial curves of other public faces, (n_reference, J, m, 3), at least 2.
        n: number of private faces.
        mu: the guarantee of the whole face (Gaussian DP).
        norm_bound: public bounds as `FaceMeanMechanism` takes them; `norm_bounds` of the reference by default.
        steps: of the optimizer.

    Returns:
        The mechanism and the smoothing, whose `FaceDesign.release` makes both.

    Raises:
        ValueError: shapes do not fit, or a parameter is out of range.

    Example:
        >>> import numpy as np
        >>> from jaxgeodp.surfaces import design_faces
        >>> faces = 0.01 * np.random.default_rng(0).normal(size=(9, 5, 1, 3)) + np.zeros((5, 32, 1))
        >>> design = design_faces(faces[0], faces[1:], n=200, mu=3.0, steps=5)
        >>> round(design.mechanism.guarantee.mu, 6)
        3.0
    """
    template, reference = _public(template, reference, least=2)
    bound = norm_bounds(template, reference) if norm_bound is None else norm_bound
    FaceMeanMechanism(template, bound)  # says what is wrong with it
    count = len(template)
    bound = np.broadcast_to(np.asarray(bound, float), (count, 3))
    found = optimize_budget(
        PeriodicMatern(1.0, 2.5),
        flat_curves(reference),
        n,
        bound.reshape(-1),
        mu,
        flat_curves(template),
        np.tile(np.arange(3), count),
        steps,
    ).mechanism
    mechanism = FaceMeanMechanism(
        template, bound, np.reshape(found.mu, (count, 3)), np.reshape(found.penalty, (count, 3)), found.kernel
    )
    return FaceDesign(mechanism, _radial_penalty(mechanism, reference, n))


def reference_folder(template: FaceTemplate, folder, nose: int, up: int, **options) -> np.ndarray:
    """Return curves (n_reference, J, m, 3) of a folder of public meshes.

    Args:
        template: that they are turned onto.
        folder: of the meshes.
        nose, up: vertex numbers of the landmarks, the same in all meshes.
        options: of `process_faces`.

    Raises:
        ValueError: there are fewer than three, or one cannot be processed: being public, it is named.
    """
    files = mesh_files(folder)
    if len(files) < _LEAST_PEOPLE:
        raise InputError(f"{folder} holds {len(files)} mesh(es); a reference needs at least {_LEAST_PEOPLE}.")
    faces = process_faces(files, nose, up, template, **options)
    for path, curves, report in zip(files, faces.curves, faces.reports, strict=True):
        if not np.all(np.isfinite(curves)):
            reason = str(report).partition("; ")[0].rstrip(".")
            raise InputError(
                f"the reference face {path} is {reason}; repair it, number its vertices like the template, or leave "
                "it out."
            )
    return faces.curves


def synthetic_reference(template: FaceTemplate, ridge: float | None = None, count: int = _PEOPLE) -> np.ndarray:
    """Return synthetic reference curves (count, J, m, 3), in place of public faces.

    They are the template plus what tells each of these people of `SyntheticFaces` from the next one, the last from the
    first, in faces of area 1 turned onto the template, and registered to it if there is a ridge (`face_curves`). Their
    mean is the template; two people differ as much as a person and a template that is one.

    Args:
        template: public.
        ridge: see `face_curves`.
        count: how many people, at least 2.

    Raises:
        ValueError: there are fewer.
    """
    positive_integer("synthetic_reference", "count", count, 2)
    generator = SyntheticFaces(rings=_RINGS)
    with jax.enable_x64(True):
        people = np.asarray(generator.records(jax.random.key(2025), count))
    found = [
        face_curves(Mesh(vertices, generator.triangles), generator.nose_tip, generator.nasion, template, ridge).curves
        for vertices in people
    ]
    return template.curves + np.stack(found) - np.roll(found, 1, axis=0)


# Smoothing across the curves ----------------------------------------------------------------------------------


def smooth_across(deviations, penalty) -> np.ndarray:
    """Smooth deviations of radial curves from a template along the diameters of the disk.

    Each diameter runs through all curves twice, f(-r, t) = f(r, t + pi); the least |f - g|^2 + penalty |f''|^2 is
    taken, with differences of the second order in units of the curves' spacing. Straight lines are kept.

    Args:
        deviations: (..., J, m, 3).
        penalty: at least 0, a number or one for each coordinate (3,).

    Returns:
        Smooth deviations of the same shape.
    """
    deviations = np.asarray(deviations, float)
    samples = deviations.shape[-2]
    # Even frequencies of the angle are even functions on diameters, odd ones odd.
    frequencies = np.fft.rfft(deviations, axis=-2)
    for axis, value in enumerate(np.broadcast_to(penalty, 3)):
        smoothers = _smoothers(deviations.shape[-3], float(value))
        for parity, smoother in enumerate(smoothers):
            part = frequencies[..., parity::2, axis]
            frequencies[..., parity::2, axis] = np.einsum("ij,...jk->...ik", smoother, part)
    return np.fft.irfft(frequencies, samples, axis=-2)


@functools.lru_cache(maxsize=256)
def _smoothers(count, penalty):
    """Return smoothing matrices (J, J) for even and odd functions of the diameter."""
    nodes = np.concatenate([-np.arange(count, 0, -1), np.arange(1, count + 1)]).astype(float)
    differences = np.zeros((2 * count - 2, 2 * count))
    for row, (a, b, c) in enumerate(zip(nodes, nodes[1:], nodes[2:], strict=False)):
        weights = 2.0 / ((a - b) * (a - c)), 2.0 / ((b - a) * (b - c)), 2.0 / ((c - a) * (c - b))
        differences[row, row : row + 3] = weights
    half = np.eye(count)
    found = []
    for sign in (1.0, -1.0):
        bending = differences @ np.concatenate([sign * half[::-1], half])
        found.append(np.linalg.inv(half + 0.5 * penalty * bending.T @ bending))
    return tuple(found)


def _radial_penalty(mechanism, reference, n):
    """Return for each coordinate the penalty of least expected error on the reference faces, (3,)."""
    template = mechanism.template
    with jax.enable_x64(True):
        center = np.asarray(mechanism.mean(reference)) - template
        nobody = np.broadcast_to(template, (2, *template.shape))
        noise = np.asarray(mechanism.simulate(jax.random.key(0), nobody, _DRAWS)) - template
    noise *= 2.0 / record_count(n)  # that of two faces, scaled to n
    truth = reference.mean(axis=0) - template
    errors = []
    for penalty in _PENALTIES:
        bias = np.sum((smooth_across(center, penalty) - truth) ** 2, axis=(0, 1))
        errors.append(bias + np.sum(smooth_across(noise, penalty) ** 2, axis=(0, 1, 2)) / _DRAWS)
    return _PENALTIES[np.argmin(errors, axis=0)]


def _public(template, reference, least):
    """Return checked public curves; errors may describe them."""
    template, reference = (host_array("face design", x).astype(float) for x in (template, reference))
    if template.ndim != 3 or template.shape[2] != 3 or reference.shape[1:] != template.shape or len(reference) < least:
        raise InputError(
            f"a face design needs a template (J, m, 3) and at least {least} reference faces of the same curves, got "
            f"{template.shape} and {reference.shape}."
        )
    if not (np.all(np.isfinite(template)) and np.all(np.isfinite(reference))):
        raise InputError("template and reference faces must be finite; leave out those that are not.")
    return template, reference
