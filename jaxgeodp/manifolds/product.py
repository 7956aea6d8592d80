"""Products of manifolds with the sum of the inner products; a point is one flat real vector.

The vector holds the coordinates of the factors' points one after another, complex coordinates as all real
parts, then all imaginary parts: `Product.join` and `Product.split` go back and forth. Every operation acts on
each factor alone. Geodesics are minimal where those of all factors are: `log_det_exp` is minus infinity
elsewhere, although the product's injectivity radius (the smallest) may be far below its diameter.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from typing_extensions import override

from jaxgeodp.checks import InputError
from jaxgeodp.manifolds.manifold import Manifold
from jaxgeodp.manifolds.operations import check_shape, fact, operation


@dataclasses.dataclass(frozen=True, init=False)
class Product(Manifold):
    """The Riemannian product of one or more manifolds, ``Product(Sphere(2), SPD(2))``.

    A point is one flat real vector: the coordinates of the factors' points one after another, complex coordinates as
    all real parts, then all imaginary parts. `join` and `split` go back and forth. The squared distance is the sum of
    those of the factors.

    Args:
        manifolds: the factors, one or more.

    Raises:
        ValueError: no factor, or one that is not a `Manifold`.

    Example:
        >>> from jaxgeodp import Euclidean, Product, Sphere
        >>> poses = Product(Sphere(2), Euclidean(1))
        >>> poses.join([0.0, 0.0, 1.0], [2.0]).tolist()
        [0.0, 0.0, 1.0, 2.0]
    """

    manifolds: tuple[Manifold, ...]

    def __init__(self, *manifolds: Manifold):
        """Store the factors, in this order."""
        if not manifolds or not all(isinstance(factor, Manifold) for factor in manifolds):
            raise InputError(f"Product: factors must be one or more manifolds, got {manifolds!r}.")
        object.__setattr__(self, "manifolds", manifolds)

    def __repr__(self):
        return f"Product({', '.join(map(repr, self.manifolds))})"

    @fact
    def dim(self) -> int:
        """Return the sum of the factors' dimensions."""
        return sum(factor.dim for factor in self.manifolds)

    @fact
    def shape(self) -> tuple[int, ...]:
        """(total,), the number of real coordinates."""
        return (sum(self._lengths),)

    @fact
    def origin(self) -> np.ndarray:
        """Return the factors' origins."""
        return np.concatenate([_flat(np, np.asarray(factor.origin)) for factor in self.manifolds])

    @property
    @override
    def whole(self):
        return Product(*(factor.whole for factor in self.manifolds))

    @property
    @override
    def geometry(self):
        return Product(*(factor.geometry for factor in self.manifolds))

    @override
    def within(self, center, radius):
        parts = zip(self.manifolds, self.split(np.asarray(center)), strict=True)
        return Product(*(factor.within(part, radius) for factor, part in parts))

    @property
    @override
    def of_values(self):
        return Product(*(factor.of_values for factor in self.manifolds))

    @override
    def released(self, value):
        if self.of_values == self:
            return value
        xp = jnp if isinstance(value, jax.Array) else np
        parts = xp.split(value, np.cumsum(self._lengths)[:-1], axis=-1)
        # Only factors of real vectors have values in several forms.
        return xp.concatenate(
            [factor.released(part) for factor, part in zip(self.manifolds, parts, strict=True)], axis=-1
        )

    @override
    def confined(self, center, x):
        return self.join(*self._map("confined", center, x))

    @override
    def radius_of_facts(self, center):
        parts = zip(self.manifolds, self.split(center), strict=True)
        return min(factor.radius_of_facts(part) for factor, part in parts)

    @fact
    def homogeneous(self) -> bool:
        """True if all factors are homogeneous."""
        return all(factor.homogeneous for factor in self.manifolds)

    @fact
    def curvature_trace(self) -> float:
        """Return the largest of the factors' traces."""
        return max(factor.curvature_trace for factor in self.manifolds)

    @fact
    def ricci_bound(self) -> float:
        """Return the smallest of the factors' bounds: vectors of different factors are Ricci-orthogonal."""
        return min(factor.ricci_bound for factor in self.manifolds)

    @fact
    def curvature_bounds(self) -> tuple[float, float]:
        """Return the extremes over the factors, and 0 for planes spanned by two factors."""
        bounds = [factor.curvature_bounds for factor in self.manifolds]
        mixed = [(0.0, 0.0)] if len(self.manifolds) > 1 else []
        return (min(low for low, _ in bounds + mixed), max(high for _, high in bounds + mixed))

    @fact
    def injectivity_radius(self) -> float:
        """Return the smallest of the factors'."""
        return min(factor.injectivity_radius for factor in self.manifolds)

    @fact
    def diameter(self) -> float:
        """``sqrt(sum diameter_i^2)``."""
        return math.hypot(*(factor.diameter for factor in self.manifolds))

    @fact
    def usual_reach(self) -> float | None:
        """``sqrt(sum r_i^2)``, if all factors have one."""
        return _hypot_of(factor.usual_reach for factor in self.manifolds)

    @fact
    def extrinsic_radius(self) -> float | None:
        """``sqrt(sum r_i^2)``, if all factors have one."""
        return _hypot_of(factor.extrinsic_radius for factor in self.manifolds)

    def extrinsic(self, point):
        """Return the factors' extrinsic vectors, joined."""
        parts = zip(self.manifolds, self.split(point), strict=True)
        return jnp.concatenate([factor.extrinsic(part) for factor, part in parts])

    def from_extrinsic(self, vector):
        """Return the factors' nearest points, joined."""
        lengths = [factor.extrinsic(jnp.asarray(factor.origin)).shape[0] for factor in self.manifolds]
        vectors = jnp.split(vector, np.cumsum(lengths)[:-1])
        return self.join(*(factor.from_extrinsic(v) for factor, v in zip(self.manifolds, vectors, strict=True)))

    @fact
    def volume_growth(self) -> float:
        """``sqrt(sum g_i^2)``, as sum g_i |v_i| <= g |v| (Cauchy-Schwarz)."""
        return math.hypot(*(factor.volume_growth for factor in self.manifolds))

    @fact
    def coordinate_growth(self) -> float:
        """Return the largest of the factors' constants."""
        return max(factor.coordinate_growth for factor in self.manifolds)

    def join(self, *parts):
        """Return one point or tangent vector per factor as a flat vector (total,).

        Raises:
            ValueError: another number of parts than of factors, or a part of another shape than the factor's.
        """
        if len(parts) != len(self.manifolds):
            raise InputError(f"Product: join needs {len(self.manifolds)} parts, got {len(parts)}.")
        arrays = [jnp.asarray(part) for part in parts]
        for factor, array in zip(self.manifolds, arrays, strict=True):
            if array.shape != factor.shape:
                raise InputError(f"Product: a part on {factor} must have shape {factor.shape}, got {array.shape}.")
        return jnp.concatenate([_flat(jnp, array) for array in arrays])

    def split(self, x):
        """Return the list of the factors' parts of a flat vector (..., total); leading axes are kept."""
        parts, start = [], 0
        for factor, length in zip(self.manifolds, self._lengths, strict=True):
            part = x[..., start : start + length]
            if factor.dtype_kind == "complex":
                part = jax.lax.complex(part[..., : length // 2], part[..., length // 2 :])
            parts.append(part.reshape(*x.shape[:-1], *factor.shape))
            start += length
        return parts

    @operation
    def inner(self, point, u, v) -> jax.Array:
        """Return the sum of the factors' inner products."""
        return _sum(self._map("inner", point, u, v))

    @operation
    def exp(self, point, tangent) -> jax.Array:
        """Return the factors' exponentials."""
        return self.join(*self._map("exp", point, tangent))

    @operation
    def log(self, p, q) -> jax.Array:
        """Return the factors' logarithms."""
        return self.join(*self._map("log", p, q))

    @operation
    def between(self, p, q, share) -> jax.Array:
        """Return the points between p and q in each factor, joined."""
        own, other = self.split(p), self.split(q)
        pairs = zip(self.manifolds, own, other, strict=True)
        return self.join(*(factor.between(x, y, share) for factor, x, y in pairs))

    @operation
    def squared_dist(self, p, q) -> jax.Array:
        """Return the sum of the factors' squared distances."""
        return _sum(self._map("squared_dist", p, q))

    @operation
    def transport(self, p, q, tangent) -> jax.Array:
        """Return the factors' parallel transports."""
        return self.join(*self._map("transport", p, q, tangent))

    @operation
    def log_moments(self, base, points, weights) -> tuple[jax.Array, jax.Array]:
        """Return the factors' weighted sums of logarithms, joined, and the sum of their weighted squared distances."""
        each = zip(self.manifolds, self.split(base), self.split(points), strict=True)
        totals, squares = zip(*(factor.log_moments(b, x, weights) for factor, b, x in each), strict=True)
        return self.join(*totals), _sum(list(squares))

    @operation
    def mean_hessian(self, base, points, weights) -> jax.Array:
        """Return the block-diagonal matrix of the factors' Hessians, in the order of `frame`."""
        each = zip(self.manifolds, self.split(base), self.split(points), strict=True)
        return jax.scipy.linalg.block_diag(*(factor.mean_hessian(b, x, weights) for factor, b, x in each))

    @operation
    def home(self, center) -> jax.Array:
        """Return the factors' homes, joined."""
        return self.join(*self._map("home", center))

    @operation
    def to_home(self, center, point) -> jax.Array:
        """Apply the factors' isometries."""
        return self.join(*self._map("to_home", center, point))

    @operation
    def from_home(self, center, point) -> jax.Array:
        """Apply the factors' inverse isometries."""
        return self.join(*self._map("from_home", center, point))

    @operation
    def project(self, x) -> jax.Array:
        """Return the factors' projections."""
        return self.join(*self._map("project", x))

    @operation
    def to_tangent(self, point, v) -> jax.Array:
        """Return the factors' projections."""
        return self.join(*self._map("to_tangent", point, v))

    @operation
    def retract(self, p, v) -> jax.Array:
        """Return the factors' retractions."""
        return self.join(*self._map("retract", p, v))

    @operation
    def riemannian_from_ambient(self, p, g) -> jax.Array:
        """Return the factors' gradients; complex factors get the conjugate, as JAX's is conjugate to the real one."""
        parts = zip(self.manifolds, self.split(p), self.split(g), strict=True)
        return self.join(*(factor.riemannian_from_ambient(own, jnp.conj(slope)) for factor, own, slope in parts))

    def belongs(self, x, atol: float = 1e-6) -> jax.Array:
        """Return whether every part is a point."""
        check_shape(self, "belongs: x", x)
        return jnp.all(
            jnp.stack([factor.belongs(part, atol) for factor, part in zip(self.manifolds, self.split(x), strict=True)])
        )

    @operation
    def deviation(self, x) -> jax.Array:
        """Return the largest deviation of a part, each relative to its own scale."""
        return jnp.max(jnp.stack(self._map("deviation", x)))

    @operation
    def admissible(self, x) -> jax.Array:
        """Return whether every part is admissible: one invalid part makes a record invalid."""
        return jnp.all(jnp.stack(self._map("admissible", x)))

    @operation
    def frame(self, point) -> jax.Array:
        """Return the factors' frames, one after another."""
        frames = self._map("frame", point)
        zeros = [jnp.zeros(factor.shape, frame.dtype) for factor, frame in zip(self.manifolds, frames, strict=True)]
        rows = [
            jax.vmap(lambda e, j=j: self.join(*zeros[:j], e, *zeros[j + 1 :]))(frame) for j, frame in enumerate(frames)
        ]
        return jnp.concatenate(rows)

    @operation
    def random_tangent(self, key, point) -> jax.Array:
        """Draw independent standard normal tangent vectors of the factors."""
        keys = jax.random.split(key, len(self.manifolds))
        each = zip(self.manifolds, keys, self.split(point), strict=True)
        return self.join(*(factor.random_tangent(k, part) for factor, k, part in each))

    @operation
    def random_point(self, key) -> jax.Array:
        """Draw independent random points of the factors."""
        keys = jax.random.split(key, len(self.manifolds))
        return self.join(*(factor.random_point(k) for factor, k in zip(self.manifolds, keys, strict=True)))

    @operation
    def log_det_exp(self, point, tangent) -> jax.Array:
        """Return the sum of the factors' log-determinants."""
        return _sum(self._map("log_det_exp", point, tangent))

    @property
    def _lengths(self):
        return [math.prod(factor.shape) * (2 if factor.dtype_kind == "complex" else 1) for factor in self.manifolds]

    def _map(self, name, *vectors) -> list[jax.Array]:
        """Apply the operation ``name`` of every factor to its parts of the flat vectors."""
        parts = zip(*(self.split(x) for x in vectors), strict=True)
        return [getattr(factor, name)(*arguments) for factor, arguments in zip(self.manifolds, parts, strict=True)]


# Some of the factors --------------------------------------------------------------------------------------


def factors_of(manifold: Manifold) -> tuple[Manifold, ...]:
    """Return the factors of a product; for any other manifold, a tuple of the manifold itself."""
    return manifold.manifolds if isinstance(manifold, Product) else (manifold,)


def with_factors(manifold: Manifold, places: tuple[int, ...]) -> Manifold:
    """Return the manifold of the factors at these places."""
    own = [factors_of(manifold)[place] for place in places]
    return own[0] if len(own) == 1 else Product(*own)


def coordinates_of(manifold: Manifold, places: tuple[int, ...], x) -> jax.Array:
    """Return the coordinates of a point or record in the factors at these places, a point of `with_factors`."""
    if not isinstance(manifold, Product):
        return x
    parts = manifold.split(x)
    own = [parts[place] for place in places]
    return own[0] if len(own) == 1 else Product(*(manifold.manifolds[place] for place in places)).join(*own)


def assembled(manifold: Manifold, shares: Sequence[tuple[tuple[int, ...], Any]]) -> jax.Array:
    """Return the point from its `coordinates_of` parts, which cover each factor once."""
    if not isinstance(manifold, Product):
        return shares[0][1]
    factors: dict[int, Any] = {}
    for places, share in shares:
        own = with_factors(manifold, places)
        factors |= dict(zip(places, own.split(share) if isinstance(own, Product) else [share], strict=True))
    return manifold.join(*(factors[place] for place in sorted(factors)))


def _sum(numbers: list[jax.Array]) -> jax.Array:
    return jnp.asarray(sum(numbers))


def _hypot_of(lengths) -> float | None:
    """Return the Euclidean norm of the lengths; None unless all are known."""
    lengths = list(lengths)
    known = [length for length in lengths if length is not None]
    return math.hypot(*known) if len(known) == len(lengths) else None


def _flat(numpy, part):
    flat = part.reshape(-1)
    return numpy.concatenate([flat.real, flat.imag]) if numpy.iscomplexobj(flat) else flat
