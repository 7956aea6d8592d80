"""Design of a mean-surface release from public surfaces: centre, directions, bound and shrinkage.

Nothing here may see private data but a release. Shrinking a release is post-processing: the guarantee does not change.
(docs/mathematics.md, section 19)
"""

import math
import numbers
from typing import NamedTuple

import numpy as np

from jaxgeodp.checks import InputError, positive_number, short
from jaxgeodp.domains.records import host_array, is_numeric, kind_of_data, record_count
from jaxgeodp.faces.shrinkage import EXPECTED_SHIFT, SHIFT_FACTOR, shrinkage_weights, simulated_errors
from jaxgeodp.faces.surface_mean import SurfaceMeanMechanism
from jaxgeodp.meshes.spectrum import SurfaceBasis
from jaxgeodp.privacy.guarantee import GaussianDP
from jaxgeodp.privacy.ledger import Ledger
from jaxgeodp.privacy.release import Release
from jaxgeodp.releases.mechanism import release_in
from jaxgeodp.releases.ways import way_of

#: The bound is this times the longest public surface, each measured by a design made without it.
MARGIN = 1.1
#: A smooth spectrum, alike for neighbouring frequencies, counts as much as so many public surfaces.
SPECTRUM_COUNTS = 10.0
# Variances are averaged over frequencies from this times one to one over this times it.
_WINDOW = 0.8
# Of the largest variance: below, there is nothing that could be told from rounding.
_LEAST = 1e-12
_BISECTIONS = 60
# What the noise of a bound of 1 may be, in variances: beyond, a budget is split as here.
_STRENGTHS = 1e-30, 1e20
# Many public surfaces are left out by groups, in so many designs: each needs all eigenvectors of a covariance.
MOST_DESIGNS = 40


class SurfaceDesign(NamedTuple):
    """A mechanism for the mean surface, and what shrinking its releases needs."""

    mechanism: SurfaceMeanMechanism  #: before its releases are shrunk
    variances: np.ndarray  #: between public surfaces, of the mechanism's coordinates, (r,)
    left_out: np.ndarray  #: of public surfaces, at each point, mean square of what has no coordinate, (N,)
    lengths: np.ndarray  #: of public surfaces in the coordinates, each by a design made without it, (m,)

    @property
    def guarantee(self) -> GaussianDP:
        """Return the guarantee of the whole surface."""
        return self.mechanism.guarantee

    def shrunk(self, surfaces, n: int) -> np.ndarray:
        """Shrink released surfaces (..., \\*points, 3) towards the centre, as their noise warrants.

        The mean of the coordinates is supposed to be normal around the centre with ``variances`` times a shift, of
        which only a prior is public, and to be seen as `kept` of it; the value is its expectation given the release
        (hierarchical Bayes; see `shrinkage_weights`).

        Args:
            surfaces: released by ``mechanism``.
            n: number of records of the release.
        """
        with np.errstate(all="ignore"):  # a release may be so long that it overflows
            coordinates, scale = self.mechanism.coordinates(surfaces), np.float64(self.mechanism.scale(n))
            weights = shrinkage_weights(coordinates / scale, self.kept / scale * np.sqrt(self.variances))
            return self.mechanism.surface(weights * coordinates)

    def expected_error(self, n: int) -> np.ndarray:
        """Return each point's root mean squared error of a shrunk release against the mean of n records, (N,).

        Public: for records that differ as the public ones do, whose mean is `EXPECTED_SHIFT` of their variance away
        from the centre. Clipping, noise, and that the shift is not known are simulated, always with the same numbers.
        """
        scale, bound = self.mechanism.scale(n), self.mechanism.norm_bound
        squares = simulated_errors(self.variances, self.lengths, bound, self.kept, scale, _shift(n))
        return self._at_points(squares, n)

    @property
    def kept(self) -> float:
        """Share of a small shift of all records, 0 to 1, that remains in the mean of clipped records.

        To the first order in the shift: a record of length l above the bound B moves by B/l of its own move, and not at
        all along itself; its direction and that of the shift are as likely as ``variances`` say. Shrinkage needs it;
        `expected_error` simulates shifts of any size.
        """
        bound, parts = self.mechanism.norm_bound, self.variances / np.sum(self.variances)
        factors = bound / np.maximum(bound, self.lengths)
        return float(np.mean(factors * np.where(factors < 1.0, 1.0 - np.sum(parts**2), 1.0)))

    def error_without_data(self, n: int) -> np.ndarray:
        """Return the same error of the public centre, which needs no release, (N,).

        It is made up as `expected_error` is, of variances of the coordinates, in which unseen ways to differ are
        counted, and of what was measured where there is none. A design with another mu or bound draws the line between
        them elsewhere, and states some per cent more or less for the same centre: compare the two errors of one design.
        """
        return self._at_points(_shift(n) * self.variances, n)

    def _at_points(self, squares, n):
        """Return root mean squares (N,) from mean squares of the coordinates and the left-out part."""
        mechanism = self.mechanism
        spread = mechanism.directions * np.sqrt(squares)
        parts = mechanism.basis.functions @ spread.reshape(-1, 3 * len(squares))
        return np.sqrt(np.sum(parts**2, axis=1) + _shift(n) * self.left_out)

    def simulate(self, key, data, num: int) -> np.ndarray:
        """Return ``num`` shrunk draws for research; see `Mechanism.simulate`."""
        n = _count(data)
        return self.shrunk(self.mechanism.simulate(key, data, num), n)

    def release(self, data, ledger: Ledger | None = None, *, numerics: str = "idealized", more=None) -> Release:
        """Release one private mean surface, shrunk; see `Mechanism.release`.

        Args:
            data, ledger, numerics: see there.
            more: further entries of the record, all of them public.
        """
        n = _count(data)
        note = {
            "name": "shrinkage towards the centre, expected over shifts",
            "shift": {"prior": "log-normal", "median": EXPECTED_SHIFT, "factor": SHIFT_FACTOR},
            "kept": self.kept,
            "variances": self.variances.tolist(),
        }
        way = way_of(type(self.mechanism).__name__, 0.0, numerics)
        return release_in(
            self.mechanism,
            way,
            data,
            ledger,
            finish=lambda value: self.shrunk(value, n),
            more={"post_processing": note, **(more or {})},
        )


def design_surfaces(
    basis: SurfaceBasis,
    reference,
    n: int,
    mu: float,
    norm_bound: float | None = None,
    spectrum_counts: float = SPECTRUM_COUNTS,
) -> SurfaceDesign:
    """Return the mechanism for the mean of n surfaces of least expected error on surfaces like public ones.

    The centre is the mean of the public surfaces. Their covariance in the functions of the basis is mixed with a smooth
    spectrum; its eigenvectors are the directions, and each gets the part of the budget with which the expected squared
    error of the shrunk release is least, some none (docs/mathematics.md, section 19). All arguments are public.

    Args:
        basis: smooth functions on a public surface.
        reference: public surfaces with the points of the basis, (m, \\*points, 3), at least 3.
        n: number of private surfaces.
        mu: the guarantee of the whole surface (Gaussian DP).
        norm_bound: public: a surface that differs from the centre as the public ones do is not clipped up to this root
            mean square distance of its points. By default `MARGIN` times the longest public surface.
        spectrum_counts: as how many public surfaces the smooth spectrum counts, at least 0; infinity where the public
            surfaces stand for others, whose own directions may be different.

    Returns:
        The mechanism and the shrinkage, whose `SurfaceDesign.release` makes both.

    Raises:
        ValueError: shapes do not fit, or a parameter is out of range.

    Example:
        >>> import jax, numpy as np
        >>> from jaxgeodp.surfaces import Mesh, SurfaceBasis, SyntheticFaces, design_surfaces
        >>> faces = SyntheticFaces(rings=8)
        >>> basis = SurfaceBasis.of_mesh(Mesh(faces.template, faces.triangles), 30)
        >>> public = np.asarray(faces.records(jax.random.key(0), 8))
        >>> design = design_surfaces(basis, public, n=200, mu=1.0)
        >>> design.release(np.asarray(faces.records(jax.random.key(1), 200))).value.shape
        (217, 3)
    """
    positive_number("design_surfaces", "mu", mu)
    reference = _public(basis, reference)
    if not isinstance(spectrum_counts, numbers.Real) or not spectrum_counts >= 0:
        raise InputError(f"design_surfaces: spectrum_counts must be at least 0, got {short(spectrum_counts)}.")
    center = reference.mean(axis=0)
    flat = (reference - center).reshape(len(reference), -1, 3)
    functions = basis.functions * basis.weights[:, None]
    vectors = np.einsum("ik,nic->nkc", functions, flat, optimize=True).reshape(len(reference), -1)
    if _alike(vectors, reference):
        raise InputError("design_surfaces: all reference surfaces are equal; give surfaces that differ.")
    covariance, bound = _covariance(vectors, spectrum_counts), 1.0
    if norm_bound is not None:
        positive_number("design_surfaces", "norm_bound", norm_bound)
        bound = float(norm_bound) / math.sqrt(np.trace(covariance))
    with np.errstate(all="ignore"):
        strength = float(np.clip(np.square(2.0 * bound / (record_count(n) * np.float64(mu))), *_STRENGTHS))
    variances, directions = _spent(covariance, strength)
    lengths, rest = _left_out(basis, flat, vectors, spectrum_counts, strength)
    if norm_bound is None:
        bound = MARGIN * np.max(lengths)
    mechanism = SurfaceMeanMechanism(center, basis, directions, bound, mu)
    return SurfaceDesign(mechanism, variances / np.sum(directions**2, axis=0), rest, lengths)


def _shift(n):
    """Return the expected variance of the mean of n records, in units of the variance between people."""
    return EXPECTED_SHIFT + 1.0 / record_count(n)


def _count(data):
    try:
        count = len(data)
    except TypeError:
        raise InputError("SurfaceDesign: data must be surfaces, an array (n, *points, 3) or RecordBlocks.") from None
    return record_count(count)


def _public(basis, reference):
    if not isinstance(basis, SurfaceBasis):
        raise InputError("design_surfaces: basis must be a SurfaceBasis; SurfaceBasis.of_mesh makes one.")
    reference = host_array("design_surfaces", reference)
    if not is_numeric(reference.dtype, "fiu"):
        raise InputError(f"design_surfaces: reference must be real numbers, got {kind_of_data(reference)}.")
    points = len(basis.weights)
    fits = reference.ndim >= 3 and reference.shape[-1] == 3 and reference.size == 3 * points * len(reference)
    if not fits or len(reference) < 3 or not np.all(np.isfinite(reference)):
        raise InputError(
            f"design_surfaces: reference must be at least 3 public surfaces of finite numbers, each with the {points} "
            f"points of the basis, got shape {reference.shape}."
        )
    return reference.astype(float)


def _alike(vectors, surfaces):
    """Return whether the vectors (m, 3 K) of surfaces differ only by rounding, relative to the surfaces."""
    apart = np.max(np.abs(vectors - vectors.mean(axis=0)))
    return not apart > _LEAST * np.max(np.abs(surfaces), initial=np.finfo(float).tiny)


def _covariance(vectors, spectrum_counts):
    """Return the covariance of one more surface, given deviations (m, 3 K) of public ones from their mean."""
    count = len(vectors)
    own = vectors.T @ vectors / (count - 1)
    spectrum = np.diag(own).reshape(-1, 3)
    total = np.concatenate([np.zeros((1, 3)), np.cumsum(spectrum, axis=0)])
    places = np.arange(len(spectrum))
    first = (_WINDOW * places).astype(int)
    last = np.minimum((places / _WINDOW).astype(int) + 2, len(spectrum))
    smooth = ((total[last] - total[first]) / (last - first)[:, None]).reshape(-1)
    share = 0.0 if math.isinf(spectrum_counts) else (count - 1) / (count - 1 + spectrum_counts)
    return (1.0 + 1.0 / count) * (share * own + (1.0 - share) * np.diag(np.maximum(smooth, _LEAST * smooth.max())))


def _spent(covariance, strength):
    """Return variances (r,) and directions (3 K, r): eigenvectors over the roots of their budget shares.

    With eigenvalues s, a mean of variance t s (t = `EXPECTED_SHIFT`) and noise of variance strength/q where
    sum s q = 1, the expected error sum of t s noise/(t s + noise) is least at
    s q = strength/t max(t sqrt(s)/x - 1, 0), and x = t sqrt(s_1)/(1 + excess) follows from the sum.
    """
    values, vectors = np.linalg.eigh(covariance)
    values, vectors = values[::-1], vectors[:, ::-1]
    kept = values > _LEAST * values[0]
    values, vectors = values[kept], vectors[:, kept]
    roots = np.sqrt(values / values[0])

    def parts(excess):
        return strength / EXPECTED_SHIFT * np.maximum(roots * excess - (1.0 - roots), 0.0)

    # By how much the first direction is above the water: alone it would have all at the second.
    low, high = EXPECTED_SHIFT / strength / len(values), EXPECTED_SHIFT / strength
    for _ in range(_BISECTIONS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if np.sum(parts(middle)) > 1.0 else (middle, high)
    spent = parts(high)
    spent = spent / np.sum(spent)
    some = spent > _LEAST
    return values[some], vectors[:, some] * np.sqrt(values[some] / spent[some])


def _left_out(basis, flat, vectors, spectrum_counts, strength):
    """Return leave-out lengths (m,) of public surfaces, and their residual mean squares (N,).

    Args:
        basis: see `design_surfaces`.
        flat: deviations of the surfaces, (m, N, 3).
        vectors: the same in the functions, (m, 3 K).
        spectrum_counts, strength: see there and `_spent`.
    """
    count = len(vectors)
    groups = min(count, MOST_DESIGNS)
    lengths, rest = np.zeros(count), np.zeros(len(basis.weights))
    for group in range(groups):
        left = np.arange(count) % groups == group
        if _alike(vectors[~left], flat):
            raise InputError(
                "design_surfaces: all reference surfaces but one are equal, so the spread cannot be estimated; leave "
                "out copies, and give at least 3 that differ."
            )
        center = vectors[~left].mean(axis=0)
        _, directions = _spent(_covariance(vectors[~left] - center, spectrum_counts), strength)
        moved = vectors[left] - center
        found = moved @ (directions / np.sum(directions**2, axis=0))
        lengths[left] = np.linalg.norm(found, axis=1)
        held = (found @ directions.T).reshape(len(found), -1, 3)
        missed = flat[left] - flat[~left].mean(axis=0) - basis.functions @ held
        rest += np.sum(missed**2, axis=(0, 2)) / count
    return lengths, rest
