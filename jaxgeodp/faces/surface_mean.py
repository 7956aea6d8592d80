"""The private mean of surfaces as one vector of deviations from a public centre, in public directions."""

import dataclasses
import hashlib
from typing import final

import jax.numpy as jnp
import numpy as np
from typing_extensions import override

from jaxgeodp.checks import InputError, positive_number
from jaxgeodp.domains.near_template import NearTemplate
from jaxgeodp.domains.records import host_array, is_numeric, record_count
from jaxgeodp.meshes.spectrum import SurfaceBasis
from jaxgeodp.privacy.guarantee import GaussianDP
from jaxgeodp.pytrees import Pytree
from jaxgeodp.releases.encoding import GAUSSIAN, EncodedSums, Encoding, encoded_law
from jaxgeodp.releases.mechanism import Mechanism

# Of the angles between directions.
_ORTHOGONAL = 1e-6


@final
@dataclasses.dataclass(frozen=True, eq=False)
class SurfaceMeanMechanism(Mechanism, Pytree, leaves=("center", "basis", "directions", "norm_bound", "mu")):
    """Mean of corresponding surfaces, such as faces, by one Gaussian mechanism for a whole surface.

    A record's deviation from the public centre is written in smooth functions on a public surface, y of length 3 K, and
    these in public directions: z = pinv(D) y. One number bounds its length; the mean of the z gets normal noise of
    standard deviation 2 norm_bound/(n mu) in each coordinate, and comes back as centre + functions (D z). A release is
    mu-GDP, whatever centre, functions and directions are, as long as they are public (docs/mathematics.md, Theorem U).
    `design_surfaces` finds directions with the least expected error.

    Args:
        center: a public surface, (\\*points, 3): vertices (N, 3), or radial curves (J, m, 3).
        basis: smooth functions on those N points.
        directions: D, (3 K, r), columns orthogonal to each other: coordinate 3 k + c is function k of x, y or z. The
            length of a column is the unit of its coordinate.
        norm_bound: public bound on the length of z, above 0.
        mu: of the whole release.

    Raises:
        ValueError: a parameter is out of range, or shapes do not fit.
    """

    center: np.ndarray
    basis: SurfaceBasis
    directions: np.ndarray
    norm_bound: float
    mu: float

    def __post_init__(self):
        name = type(self).__name__
        if not isinstance(self.basis, SurfaceBasis):
            raise InputError(f"{name}: basis must be a SurfaceBasis; SurfaceBasis.of_mesh makes one.")
        for field in ("center", "directions"):
            array = host_array(name, getattr(self, field))
            if array.ndim < 2 or not is_numeric(array.dtype, "fiu") or not np.all(np.isfinite(array)):
                raise InputError(f"{name}: {field} must be finite real numbers of at least two dimensions.")
            array = np.array(array, float)
            array.setflags(write=False)
            object.__setattr__(self, field, array)
        points, count = self.basis.functions.shape
        if self.center.shape[-1] != 3 or self.center.size != 3 * points:
            raise InputError(f"{name}: center must hold the {points} points of the basis, got {self.center.shape}.")
        if self.directions.ndim != 2 or len(self.directions) != 3 * count:
            raise InputError(f"{name}: directions must have shape ({3 * count}, r), got {self.directions.shape}.")
        lengths = np.linalg.norm(self.directions, axis=0)
        if not np.all(lengths > 0):
            raise InputError(f"{name}: a column of directions is zero; leave it out.")
        units = self.directions / lengths
        if not np.allclose(units.T @ units, np.eye(len(lengths)), atol=_ORTHOGONAL):
            raise InputError(f"{name}: columns of directions must be orthogonal to each other.")
        positive_number(name, "norm_bound", self.norm_bound)
        object.__setattr__(self, "norm_bound", float(self.norm_bound))
        object.__setattr__(self, "mu", GaussianDP(self.mu).mu)

    @property
    def guarantee(self) -> GaussianDP:
        """Return the guarantee of the whole surface."""
        return GaussianDP(self.mu)

    def sensitivity(self, n: int) -> float:
        """Return the sensitivity of the mean of z."""
        return 2.0 * self.norm_bound / record_count(n)

    def scale(self, n: int) -> float:
        """Return the standard deviation of the noise of each coordinate of z."""
        return self.sensitivity(n) / self.mu

    def noise(self, n: int) -> np.ndarray:
        """Return the standard deviation of the noise at each point, over x, y and z together: (N,)."""
        spread = self.basis.functions @ self.directions.reshape(-1, 3 * self.directions.shape[1])
        squares = np.sum(spread.reshape(len(spread), -1) ** 2, axis=1)
        return self.scale(n) * np.sqrt(squares)

    def coordinates(self, surfaces) -> np.ndarray:
        """Return the unclipped coordinates z of surfaces (..., \\*points, 3); private for records."""
        deviations = np.asarray(surfaces, float) - self.center
        deviations = deviations.reshape(*deviations.shape[: deviations.ndim - self.center.ndim], -1, 3)
        # By NumPy: a release needs it after its charge, when nothing is compiled.
        vectors = (self.basis.functions * self.basis.weights[:, None]).T @ deviations
        return vectors.reshape(*vectors.shape[:-2], -1) @ (self.directions / np.sum(self.directions**2, axis=0))

    def surface(self, coordinates) -> np.ndarray:
        """Return the surfaces (..., \\*points, 3) of coordinates z (..., r)."""
        vectors = np.asarray(coordinates, float) @ self.directions.T
        moved = self.basis.functions @ vectors.reshape(*vectors.shape[:-1], -1, 3)
        return self.center + moved.reshape(*vectors.shape[:-1], *self.center.shape)

    def shortened(self, surfaces) -> np.ndarray:
        """Return the share of each record's deviation that clipping removes, (n,): private; NaN if not finite."""
        with np.errstate(all="ignore"):
            lengths = np.linalg.norm(self.coordinates(surfaces), axis=-1)
            return np.where(np.isfinite(lengths), np.maximum(0.0, 1.0 - self.norm_bound / lengths), np.nan)

    @property
    def domain(self) -> NearTemplate:
        """Records (n, \\*points, 3); one with a non-finite number counts as the centre."""
        manifold = {"name": "surfaces", "points": list(self.center.shape[:-1])}
        bounds = {"radius": self.norm_bound, "note": "of the coordinates in the public directions"}
        return NearTemplate(self.center, manifold, bounds)

    @property
    def encoding(self) -> "InDirections":
        """Encoding of surfaces as vectors."""
        return InDirections(self.center, self.basis, self.directions, self.norm_bound)

    @property
    @override
    def sums(self) -> EncodedSums:
        return EncodedSums(type(self).__name__, self.encoding)

    @override
    def law(self, n, shape=()):
        return encoded_law(
            self,
            self.encoding,
            self.center.shape,
            n,
            formula="2 norm_bound/n",
            statistic="mean of bounded deviations in public directions",
            theorem=f"{GAUSSIAN}; docs/mathematics.md, Theorem U",
            on_grid="docs/mathematics.md, Theorems U and N",
            more=self.encoding.described,
        )


@dataclasses.dataclass(frozen=True, eq=False)
class InDirections(Encoding):
    """Encoding of deviations from a public surface in public directions.

    Attributes:
        center, basis, directions, norm_bound: see `SurfaceMeanMechanism`.
    """

    center: np.ndarray
    basis: SurfaceBasis
    directions: np.ndarray
    norm_bound: float

    @override
    def deviation(self, record):
        basis, directions = self.basis, jnp.asarray(self.directions, record.dtype)
        deviations = (record - jnp.asarray(self.center, record.dtype)).reshape(-1, 3)
        functions = jnp.asarray(basis.functions, record.dtype) * jnp.asarray(basis.weights, record.dtype)[:, None]
        return (functions.T @ deviations).reshape(-1) @ (directions / jnp.sum(directions**2, axis=0))

    @override
    def value(self, vectors):
        dtype, own = vectors.dtype, vectors.reshape(-1, vectors.shape[-1])
        moves = (own @ jnp.asarray(self.directions, dtype).T).reshape(len(own), -1, 3)
        moved = jnp.einsum("ik,nkc->nic", jnp.asarray(self.basis.functions, dtype), moves)
        center = jnp.asarray(self.center, dtype)
        # The centre last: at its size rounding would tell records apart that the noise hides.
        return center + moved.reshape(*vectors.shape[:-1], *center.shape)

    @override
    def vector(self, x):
        return self.deviation(x)

    @override
    def shape(self, record):
        return (self.directions.shape[1],)

    @override
    def bounds(self, record):
        return self.norm_bound

    def described(self) -> dict:
        """Return the record entry on the directions."""
        public = hashlib.sha256()
        for array in (self.basis.functions, self.basis.weights, self.directions):
            public.update(np.ascontiguousarray(array).tobytes())
        return {
            "directions": {
                "functions": self.basis.functions.shape[1],
                "lengths": np.linalg.norm(self.directions, axis=0).tolist(),
                "sha256": public.hexdigest(),
            }
        }
