"""The private mean of surfaces as one vector: what deviates from a public centre, in public directions."""

import dataclasses
import functools
import hashlib
from typing import final

import jax
import jax.numpy as jnp
import numpy as np
from typing_extensions import override

from jaxgeodp.checks import InputError, many, positive_integer, positive_number
from jaxgeodp.compiling import compiled_ahead, compiled_in_blocks
from jaxgeodp.domains.domain import Domain
from jaxgeodp.domains.persons import averages_ahead
from jaxgeodp.domains.records import host_array, is_numeric, kind_of_data, record_count
from jaxgeodp.manifolds.described import to_lists
from jaxgeodp.meshes.spectrum import SurfaceBasis
from jaxgeodp.privacy import grid
from jaxgeodp.privacy.entropy import public_key, system_key
from jaxgeodp.privacy.guarantee import GaussianDP
from jaxgeodp.pytrees import Pytree
from jaxgeodp.releases.integers import Integers, Noisy, Sums
from jaxgeodp.releases.law import Law, Terms
from jaxgeodp.releases.mechanism import Mechanism
from jaxgeodp.releases.vector import TIMING
from jaxgeodp.samplers.discrete import discrete_gaussian

# Below, rounding of the mean is not small beside the noise; above, squares overflow.
_LEAST_SCALE, _LARGEST_SCALE = 1e-9, 1e100
# Of the angles between directions.
_ORTHOGONAL = 1e-6


@final
@dataclasses.dataclass(frozen=True, eq=False)
class SurfaceMeanMechanism(Mechanism, Pytree, leaves=("center", "basis", "directions", "norm_bound", "mu")):
    """The mean of surfaces whose points correspond, such as faces, with one Gaussian mechanism for a whole surface.

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
        """Of the whole surface."""
        return GaussianDP(self.mu)

    def sensitivity(self, n: int) -> float:
        """How far one record moves the mean of the z."""
        return 2.0 * self.norm_bound / record_count(n)

    def scale(self, n: int) -> float:
        """Standard deviation of the noise of each coordinate of z."""
        return self.sensitivity(n) / self.mu

    def noise(self, n: int) -> np.ndarray:
        """Standard deviation of the noise at each point, of x, y and z together: (N,)."""
        spread = self.basis.functions @ self.directions.reshape(-1, 3 * self.directions.shape[1])
        squares = np.sum(spread.reshape(len(spread), -1) ** 2, axis=1)
        return self.scale(n) * np.sqrt(squares)

    def coordinates(self, surfaces) -> np.ndarray:
        """z of surfaces (..., \\*points, 3), not bounded: of a release, what was released; of a record, private."""
        deviations = np.asarray(surfaces, float) - self.center
        deviations = deviations.reshape(*deviations.shape[: deviations.ndim - self.center.ndim], -1, 3)
        # By NumPy: a release needs it after its charge, when nothing is compiled.
        vectors = (self.basis.functions * self.basis.weights[:, None]).T @ deviations
        return vectors.reshape(*vectors.shape[:-2], -1) @ (self.directions / np.sum(self.directions**2, axis=0))

    def surface(self, coordinates) -> np.ndarray:
        """The surfaces (..., \\*points, 3) of coordinates z (..., r)."""
        vectors = np.asarray(coordinates, float) @ self.directions.T
        moved = self.basis.functions @ vectors.reshape(*vectors.shape[:-1], -1, 3)
        return self.center + moved.reshape(*vectors.shape[:-1], *self.center.shape)

    def shortened(self, surfaces) -> np.ndarray:
        """Which part of each record's deviation the bound takes away, (n,): private; NaN where one is not finite."""
        with np.errstate(all="ignore"):
            lengths = np.linalg.norm(self.coordinates(surfaces), axis=-1)
            return np.where(np.isfinite(lengths), np.maximum(0.0, 1.0 - self.norm_bound / lengths), np.nan)

    @property
    def domain(self) -> "SurfaceDomain":
        """Surfaces (n, \\*points, 3); one with a number that is not finite counts as the centre."""
        return SurfaceDomain(self.center, self.norm_bound)

    @property
    @override
    def sums(self) -> "SurfaceSums":
        return SurfaceSums(self)

    @override
    def law(self, n, shape=()):
        return SurfaceLaw(self, record_count(n), self.scale(n))


@dataclasses.dataclass(frozen=True, eq=False)
class SurfaceDomain(Domain):
    """Surfaces with the points of a public one.

    Args:
        center: public, (\\*points, 3).
        norm_bound: of the coordinates of what deviates.
    """

    center: np.ndarray
    norm_bound: float

    def records(self, owner, data):
        """See `Domain.records`; real, in single precision or better."""
        data = data if isinstance(data, jax.Array) else host_array(owner, data)
        if not is_numeric(data.dtype, "fiu"):
            raise InputError(f"{owner}: data must be real numbers, got {kind_of_data(data)}.")
        if data.shape[1:] != self.center.shape:
            expected = ", ".join(map(str, self.center.shape))
            raise InputError(f"{owner}: data must have shape (n, {expected}), got {many(data.shape)}.")
        data = jnp.asarray(data)
        return data.astype(jnp.promote_types(jnp.result_type(data.dtype, float), jnp.float32))

    def of_persons(self, owner, shape, count):
        """The mean surfaces; see `averages`."""
        return averages_ahead(owner, shape, self.center, count)

    def described(self, shape):
        """The centre and the bound."""
        return {
            "manifold": {"name": "surfaces", "points": list(self.center.shape[:-1])},
            "ball": {
                "center": to_lists(self.center),
                "radius": self.norm_bound,
                "note": "of the coordinates in the public directions",
            },
        }

    def fallback(self, shape):
        """The centre."""
        return self.center


@dataclasses.dataclass(frozen=True, eq=False)
class SurfaceLaw(Law):
    """Normal noise on the mean coordinates.

    Attributes:
        surfaces: the mechanism.
        n: number of records.
        scale: of the noise.
    """

    surfaces: SurfaceMeanMechanism
    n: int
    scale: float
    support = None
    order_matters = False

    @functools.cached_property
    @override
    def terms(self):
        mechanism = self.surfaces
        public = hashlib.sha256()
        for array in (mechanism.basis.functions, mechanism.basis.weights, mechanism.directions):
            public.update(np.ascontiguousarray(array).tobytes())
        directions = {
            "functions": mechanism.basis.functions.shape[1],
            "lengths": np.linalg.norm(mechanism.directions, axis=0).tolist(),
            "sha256": public.hexdigest(),
        }
        return Terms(
            mechanism=type(mechanism).__name__,
            statistic="mean of bounded deviations in public directions",
            n=self.n,
            strength=mechanism.mu,
            guarantee=mechanism.guarantee,
            sensitivity=mechanism.sensitivity(self.n),
            formula="2 norm_bound/n",
            theorem="Gaussian mechanism (Dong, Roth & Su 2022, Theorem 1); docs/mathematics.md, Theorem U",
            sampler={"name": "normal", "exactness": "exact up to floating point"},
            timing=TIMING,
            more={"directions": directions},
        )

    @property
    @override
    def grid(self):
        check_scale(self.scale)
        return SurfaceGrid(self)

    @override
    def ready(self, shape):
        check_scale(self.scale)
        width, name = jnp.asarray(self.scale), type(self.surfaces).__name__
        program = compiled_ahead(name, _simulate, self.surfaces, public_key(), shape, width, num=1)
        return lambda records: np.asarray(program(self.surfaces, system_key(), records, width))[0]

    @override
    def simulate(self, key, records, num):
        positive_integer(type(self.surfaces).__name__, "num", num, 1)
        return _simulate(self.surfaces, key, records, jnp.asarray(self.scale, records.dtype), num=num)

    def log_density(self, x, records):
        """See `Law.log_density`; on the surfaces that have no other deviations than in the directions."""
        mean = jnp.mean(_bounded(self.surfaces, records), axis=0)
        return -0.5 * jnp.sum(((_raw(self.surfaces, jnp.asarray(x)[None])[0] - mean) / self.scale) ** 2)


@dataclasses.dataclass(frozen=True, eq=False)
class SurfaceSums(Sums):
    """Of coordinates, each surface's in one ball of integers.

    Args:
        mechanism: `SurfaceMeanMechanism`.
    """

    mechanism: SurfaceMeanMechanism

    @property
    @override
    def largest(self):
        return grid.STEPS

    @override
    def shape(self, record):
        return (self.mechanism.directions.shape[1],)

    @override
    def program(self, shape):
        mechanism = self.mechanism
        coordinates_of = compiled_in_blocks(type(mechanism).__name__, _bounded, mechanism, shape)
        return lambda data: grid.sum_on_grid(coordinates_of(mechanism, data), mechanism.norm_bound)


@dataclasses.dataclass(frozen=True, eq=False)
class SurfaceGrid(Integers):
    """How a mean surface is released in integers.

    Args:
        law: of the release in floating point.
    """

    law: SurfaceLaw

    @override
    def sums(self, shape):
        return SurfaceSums(self.law.surfaces).program(shape)

    def noisy(self, shape):
        """See `Integers.noisy`.

        Raises:
            ValueError: the scale is not that of the theorem.
        """
        mechanism, n = self.law.surfaces, self.law.n
        if self.law.scale != mechanism.scale(n):
            raise InputError(f"{type(mechanism).__name__}: numerics='grid' needs the scale of its theorem.")
        noise = grid.gaussian_noise(2 * grid.STEPS, mechanism.norm_bound / grid.STEPS / n, mechanism.mu)
        count = mechanism.directions.shape[1]
        wanted = jax.ShapeDtypeStruct((1, count), jnp.float64)
        value_of = compiled_ahead(type(mechanism).__name__, _surfaces, mechanism, wanted)
        terms = dataclasses.replace(
            self.law.terms,
            guarantee=grid.zcdp([noise]),
            theorem="docs/mathematics.md, Theorems U and N",
            sensitivity=noise.step * noise.sensitivity,
            formula=f"2 norm_bound/n: {noise.sensitivity} steps of the grid",
            sampler=grid.sampler(discrete_gaussian, [count], [noise.scale]),
        )

        def value(total):
            steps = grid.with_noise(discrete_gaussian, total, noise.scale)
            return np.asarray(value_of(mechanism, noise.step * steps[None]))[0]

        return Noisy(terms, noise.step * noise.scale, grid.NOTE, value)


def check_scale(scale: float) -> None:
    """Refuse noise that double precision cannot hold.

    Raises:
        ValueError: the scale is too small or too large to be drawn.
    """
    if not _LEAST_SCALE < scale < _LARGEST_SCALE:
        raise InputError(
            f"SurfaceMeanMechanism: a scale of {scale:g} cannot be drawn in double precision; choose other parameters."
        )


@functools.partial(jax.jit, static_argnames="num")
def _simulate(mechanism, key, data, scale, num):
    mean = jnp.mean(_bounded(mechanism, data), axis=0)
    return _surfaces(mechanism, mean + scale * jax.random.normal(key, (num, len(mean)), data.dtype))


@jax.jit
def _raw(mechanism, data):
    """Coordinates (n, r) of surfaces (n, *points, 3)."""
    basis, directions = mechanism.basis, jnp.asarray(mechanism.directions, data.dtype)
    deviations = (data - jnp.asarray(mechanism.center, data.dtype)).reshape(len(data), -1, 3)
    functions = jnp.asarray(basis.functions, data.dtype) * jnp.asarray(basis.weights, data.dtype)[:, None]
    vectors = jnp.einsum("ik,nic->nkc", functions, deviations).reshape(len(data), -1)
    return vectors @ (directions / jnp.sum(directions**2, axis=0))


@jax.jit
def _bounded(mechanism, data):
    """The same within the bound; a surface that has none, or whose squares overflow, counts as the centre."""
    found = _raw(mechanism, data)
    squares = jnp.sum(found**2, axis=-1)
    usable = jnp.isfinite(squares)
    lengths = jnp.sqrt(jnp.where(usable & (squares > 0), squares, 1.0))
    bound = jnp.asarray(mechanism.norm_bound, data.dtype)
    factors = jnp.where(lengths > bound, bound / lengths, 1.0)[:, None]
    return jnp.where(usable[:, None], factors * found, 0.0)


@jax.jit
def _surfaces(mechanism, coordinates):
    """Surfaces (num, *points, 3) of coordinates (num, r)."""
    dtype = coordinates.dtype
    vectors = (coordinates @ jnp.asarray(mechanism.directions, dtype).T).reshape(len(coordinates), -1, 3)
    moved = jnp.einsum("ik,nkc->nic", jnp.asarray(mechanism.basis.functions, dtype), vectors)
    center = jnp.asarray(mechanism.center, dtype)
    # The centre last: at its size rounding would tell records apart that the noise hides.
    return center + moved.reshape(len(coordinates), *center.shape)
