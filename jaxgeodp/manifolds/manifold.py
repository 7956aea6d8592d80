"""The interface of a Riemannian manifold, with automatic-differentiation defaults.

`jaxgeodp.testing.check_manifold` puts a manifold through the laws that all of it must obey.
"""

import abc
import math

import jax
import jax.numpy as jnp
import numpy as np

import jaxgeodp.manifolds.defaults as defaults
import jaxgeodp.manifolds.shooting as shooting
from jaxgeodp.checks import InputError
from jaxgeodp.manifolds.analytic import safe_sqrt
from jaxgeodp.manifolds.newton import NewtonMoments
from jaxgeodp.manifolds.operations import check_shape, fact, operation

_NO_EXTRINSIC = "define extrinsic_radius, extrinsic and from_extrinsic to find a centre without a ball."


class Manifold(abc.ABC):
    """A complete Riemannian manifold.

    A point, ``p``, ``q``, ``point`` or ``base`` below, is one real or complex array of shape ``shape``; so is a tangent
    vector, ``tangent``, ``u`` or ``v``. Operations are jitted functions of single points: batch them with `jax.vmap`.
    They compute in the precision of their arguments.

    A subclass is a frozen (hashable) value and gives ``dim``, ``shape``, ``inner`` and ``exp``. Everything else has a
    default, mostly by automatic differentiation. In an ambient space, where points have more coordinates than
    dimensions, ``project`` and ``to_tangent`` are needed, too, and ``origin`` if 0 is no point. Private releases need
    ``curvature_bounds``, ``injectivity_radius`` and, where that is finite, ``diameter``: what is unknown is refused.

    Attributes:
        dim: dimension d of the manifold.
        dtype_kind: whether points are "real" or "complex" arrays.
        homogeneous: whether isometries carry every point to every other one.
        projects: whether nearly every array has a nearest point.
        usual_reach: a distance from the origin within which anybody's data lie; None where that depends on units.
        extrinsic_radius: radius of the ball that holds all vectors of `extrinsic`; None where there is none.

    Raises:
        ValueError: an operation gets an array of another shape than that of one point.
    """

    dim: int  # dimension d of the manifold
    dtype_kind: str = "real"  # "real" or "complex" arrays
    homogeneous: bool = False  # isometries act transitively

    # Facts ------------------------------------------------------------------------------------------

    @fact
    @abc.abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of the array that holds one point."""

    @fact
    def origin(self) -> np.ndarray:
        """Return a canonical point (float64 NumPy array), the default public centre; zero unless overridden."""
        return np.zeros(self.shape)

    @fact
    def curvature_bounds(self) -> tuple[float, float]:
        """Lower and upper bounds of the sectional curvature; infinite (unknown) by default."""
        return (-math.inf, math.inf)

    @fact
    def injectivity_radius(self) -> float:
        """Return a lower bound of the injectivity radius over all points, possibly infinite; 0 (unknown) by default."""
        return 0.0

    @fact
    def diameter(self) -> float:
        """Return the largest distance between two points.

        Where it exceeds the injectivity radius, ``log_det_exp`` is minus infinity at tangent vectors whose
        geodesic is not minimal.
        """
        if math.isinf(self.injectivity_radius):
            return math.inf
        raise InputError(f"{self}: define diameter to sample the whole manifold, or use a bounded support.")

    @fact
    def transverse_curvature(self) -> float:
        """Upper curvature bound off the complex lines; equal to the overall bound unless M is Kaehler.

        On complex projective space the planes spanned by u and Ju have curvature 4, all planes through u
        orthogonal to Ju curvature 1 (see `PlanarShapes`); exact samplers gain from knowing it.
        """
        return self.curvature_bounds[1]

    @fact
    def curvature_trace(self) -> float:
        """On a symmetric space, a bound of the trace norm of ``w -> R(w, v)v`` over unit vectors v.

        The largest Ricci curvature where the curvature has one sign. Infinite where the space is not known to be
        symmetric: theorems about KNG's normalising constant, and Theorem Z, then do not apply. 0 where space is flat.
        """
        return 0.0 if self.curvature_bounds == (0.0, 0.0) else math.inf

    @fact
    def ricci_bound(self) -> float:
        """Return a lower bound of the Ricci curvature Ric(v, v) over unit vectors v.

        On a symmetric space whose curvature has one sign it follows from `curvature_trace`; elsewhere from
        `curvature_bounds`.
        """
        lowest, highest = self.curvature_bounds
        if highest <= 0.0 and math.isfinite(self.curvature_trace):
            return -self.curvature_trace
        return (self.dim - 1) * lowest if self.dim > 1 else 0.0

    @fact
    def volume_growth(self) -> float:
        """Return a constant g with ``log_det_exp(p, v) <= g * |v|`` (Bishop's comparison by default)."""
        lowest = self.curvature_bounds[0]
        return (self.dim - 1) * math.sqrt(-lowest) if lowest < 0 else 0.0

    @fact
    def coordinate_growth(self) -> float:
        """Return a constant c: at distance r from a point's home, coordinates grow at most like exp(c r)."""
        return math.sqrt(max(0.0, -self.curvature_bounds[0]))

    @fact
    def complex_space_form(self) -> bool:
        """True if planes of u and Ju have 4 times the curvature of planes orthogonal to Ju, as on `PlanarShapes`."""
        return False

    @property
    def whole(self) -> "Manifold":
        """The manifold without facts that hold only in a ball; itself where they hold everywhere."""
        return self

    def within(self, center, radius: float) -> "Manifold":
        """Return the manifold with facts valid in a ball; itself by default, as they hold everywhere.

        ``curvature_bounds`` and ``injectivity_radius`` may depend on the place: a `GeodesicBall` has what this gives.
        """
        return self

    @property
    def geometry(self) -> "Manifold":
        """The manifold with the same maps but without facts of a ball, so that balls share compiled programs."""
        return self.whole

    @property
    def of_values(self) -> "Manifold":
        """The manifold on which released values lie, as named by the record; itself by default. See `released`."""
        return self

    def released(self, value):
        """Return drawn NumPy or JAX values (..., \\*shape) as points of `of_values`; never fails.

        The value is returned unchanged by default.
        """
        return value

    def confined(self, center, x) -> jax.Array:
        """Return the nearest point of the region about ``center`` where facts hold at any radius; x by default.

        A map of single records: a `GeodesicBall` applies it to them before it clips them to its radius.
        """
        return x

    def radius_of_facts(self, center) -> float:
        """Return the radius of the ball around ``center`` in which its facts hold; infinite by default."""
        return math.inf

    # Ambient space ----------------------------------------------------------------------------------

    projects: bool = True  # nearly every array has a nearest point

    landmark_dimension: int | None = None  # 2 or 3 where points are landmarks in the plane or in space up to similarity

    def ambient_radius(self, center, radius: float) -> float | None:
        """Return the radius of an ambient ball that contains the geodesic ball; None if array means are meaningless."""
        return None

    def to_ambient(self, x):
        """Return an array as a vector (m,) with the Euclidean norm of the ambient space."""
        return x.reshape(-1)

    def from_ambient(self, vector):
        """Return the array of a vector; see `to_ambient`."""
        return vector.reshape(self.shape)

    usual_reach: float | None = None  # within which of the origin anybody's data lie; None where that depends on units

    extrinsic_radius: float | None = None  # of the ball that holds all of `extrinsic`; None where there is none

    def extrinsic(self, point) -> jax.Array:
        """Return a vector (m,) for a point of a compact manifold, equal for all representatives, locally isometric.

        Up to a factor. Means of such vectors need no centre, nor that data are near each other.

        Raises:
            ValueError: the manifold has none, as by default.
        """
        raise InputError(f"{self}: {_NO_EXTRINSIC}")

    def from_extrinsic(self, vector) -> jax.Array:
        """Return the point with `extrinsic` vector nearest to a vector (m,); possibly NaN where not unique.

        Raises:
            ValueError: the manifold has none, as by default.
        """
        raise InputError(f"{self}: {_NO_EXTRINSIC}")

    def free_coordinates(self, x):
        """Return the entries (m,) of an array that determine the others."""
        return x.reshape(-1)

    def aligned(self, point, x):
        """Return the representative of ``x`` nearest to ``point`` in the ambient space; x if it has only one."""
        return x

    # Metric -----------------------------------------------------------------------------------------

    @abc.abstractmethod
    def inner(self, point, u, v) -> jax.Array:
        """Return the Riemannian inner product of two tangent vectors at ``point``, a real scalar."""

    @operation
    def norm(self, point, tangent) -> jax.Array:
        """Return the Riemannian norm of a tangent vector (gradient 0 at the zero vector)."""
        return safe_sqrt(self.inner(point, tangent, tangent))

    @operation
    def squared_dist(self, p, q) -> jax.Array:
        """Return the squared geodesic distance, smooth at ``p == q``."""
        tangent = self.log(p, q)
        return self.inner(p, tangent, tangent)

    @operation
    def dist(self, p, q) -> jax.Array:
        """Return the geodesic distance (gradient 0 at ``p == q``, where it has a kink)."""
        return safe_sqrt(self.squared_dist(p, q))

    # Maps -------------------------------------------------------------------------------------------

    @abc.abstractmethod
    def exp(self, point, tangent) -> jax.Array:
        """Return the Riemannian exponential: the geodesic from ``point`` with this initial velocity, at time 1."""

    @operation
    def log(self, p, q) -> jax.Array:
        """Return the tangent vector at p with ``exp(p, .) = q``, for q off the cut locus of p.

        By Newton's method by default; NaN where that finds none.
        """
        return shooting.log(self, p, q)

    @operation
    def geodesic(self, p, v, t) -> jax.Array:
        """Return ``exp(p, t v)``: the geodesic that starts at p with velocity v, at the real time ``t``."""
        return defaults.geodesic(self, p, v, t)

    @operation
    def retract(self, p, v) -> jax.Array:
        """Return a point that is ``exp(p, v)`` to first order in v; ``exp`` by default."""
        return self.exp(p, v)

    @operation
    def between(self, p, q, share) -> jax.Array:
        """Return the point of the minimal geodesic from p to q at a share of its length, from 0 to 1.

        Where curvature is negative, subclasses avoid the differences of large numbers in ``exp`` and ``log``.
        """
        return self.project(self.exp(p, share * self.log(p, q)))

    @operation
    def transport(self, p, q, tangent) -> jax.Array:
        """Return the parallel transport of a tangent vector at ``p`` along the minimal geodesic to ``q``.

        By default the pole ladder: exact on symmetric spaces, else accurate to about 1e-6.
        """
        return shooting.transport(self, p, q, tangent)

    @operation
    def curvature_tensor(self, p, u, v, w) -> jax.Array:
        """Return the curvature tensor R(u, v)w at p, with <R(u, v)v, u> the sectional curvature of orthonormal u and v.

        By default from third derivatives of ``exp``.
        """
        return defaults.curvature_tensor(self, p, u, v, w)

    @operation
    def log_moments(self, base, points, weights) -> tuple[jax.Array, jax.Array]:
        """Return ``(sum_i w_i log_base(x_i), sum_i w_i dist(base, x_i)**2)``: a tangent vector and a number.

        ``points`` have shape (n, \\*shape), ``weights`` (n,). The data-sized work of every mean and mechanism.
        Subclasses write it as matrix-vector products.
        """
        logs = jax.vmap(lambda x: self.log(base, x))(points)
        squares = jax.vmap(lambda v: self.inner(base, v, v))(logs)
        return jnp.tensordot(weights.astype(logs.dtype), logs, axes=1), weights @ squares

    @operation
    def newton_moments(self, base, points, weights) -> NewtonMoments:
        """Return `log_moments`, a step towards the Fréchet mean, and its quality (unknown by default)."""
        total, square = self.log_moments(base, points, weights)
        return NewtonMoments(total, square, step=total, rate=None)

    @operation
    def mean_hessian(self, base, points, weights) -> jax.Array:
        """Return the Hessian of ``(1/2) sum_i w_i dist(x, x_i)**2`` at its minimiser ``base``.

        Shape (dim, dim), in ``frame(base)``.

        By automatic differentiation; subclasses may know it in closed form.
        """
        return defaults.mean_hessian(self, base, points, weights)

    @fact
    def knows_third_derivative(self) -> bool:
        """True if `mean_third_derivative` exists and is worth computing dim^3 numbers."""
        return False

    @operation
    def mean_third_derivative(self, base, points, weights) -> jax.Array:
        """Return the covariant derivative of `mean_hessian` along z, applied to z: (dim, dim, dim), in ``frame(base)``.

        What comes out is indexed first; symmetric in the others, which z is to fill.

        Raises:
            ValueError: the manifold does not know it, as by default.
        """
        raise InputError(f"{self}: define mean_third_derivative and knows_third_derivative.")

    def mean_start(self, points, weights) -> jax.Array:
        """Return a starting point for the Fréchet mean of ``points`` (n, \\*shape); the heaviest by default."""
        return defaults.heaviest(points, weights)

    # Home -------------------------------------------------------------------------------------------

    def home(self, center) -> jax.Array:
        """Return where `to_home` carries ``center``: itself by default, the origin on our homogeneous manifolds."""
        return center

    def to_home(self, center, point) -> jax.Array:
        """Apply the isometry that carries ``center`` to ``home(center)``; the identity by default.

        Computations about a public centre are made there, so that their precision does not depend on where the centre
        lies. What is carried is near the manifold, to the precision that its own coordinates have: `project` it.
        """
        return point

    def from_home(self, center, point) -> jax.Array:
        """Apply the inverse of `to_home`."""
        return point

    # Points and vectors -----------------------------------------------------------------------------

    def as_points(self, array):
        """Convert points in another usual form, if there is one; return other arrays unchanged.

        For arrays of any leading axes. Nothing is projected or refused.
        """
        return array

    def project(self, x) -> jax.Array:
        """Return the nearest point of the manifold to an ambient array of shape ``shape``; NaN where there is none."""
        self._in_coordinates("project")
        check_shape(self, "project: x", x)
        return x

    def to_tangent(self, point, v) -> jax.Array:
        """Project an ambient array of shape ``shape`` orthogonally onto the tangent space at ``point``."""
        self._in_coordinates("to_tangent")
        return v

    @operation
    def riemannian_from_ambient(self, p, g) -> jax.Array:
        """Return the Riemannian gradient at ``p``, given `jax.grad`'s gradient g of a function of arrays.

        The tangent vector whose inner product with each tangent vector v at p is ``Re sum(g v)``, where the function is
        one of points: the same for all arrays of one point. By default from ``frame(p)``, and then not to be
        differentiated in p.
        """
        return defaults.riemannian_from_ambient(self, p, g)

    def _in_coordinates(self, name):
        if math.prod(self.shape) != self.dim or self.dtype_kind != "real":
            raise InputError(f"{self}: define {name}, as points have more coordinates than dimensions.")

    def belongs(self, x, atol: float = 1e-6) -> jax.Array:
        """Return whether an array is a point up to ``atol``, as a boolean array; False for NaN."""
        check_shape(self, "belongs: x", x)
        return jnp.all(jnp.abs(self.project(x) - x) <= atol)

    def deviation(self, x: jax.Array | np.ndarray) -> jax.Array:
        """Return the distance of an array from its projection, relative to its largest number; NaN if it has none.

        Relative, as rounding is: coordinates of a point far out on a hyperboloid are exact to few digits after the dot.
        """
        check_shape(self, "deviation: x", x)
        moved = jnp.max(jnp.abs(self.project(x) - x))
        return moved / jnp.where(moved == 0, 1.0, jnp.max(jnp.abs(x)))

    def admissible(self, x) -> jax.Array:
        """Return whether a raw record can be projected to a point (finite, not degenerate)."""
        check_shape(self, "admissible: x", x)
        return jnp.all(jnp.isfinite(x))

    @operation
    def frame(self, point) -> jax.Array:
        """Return an orthonormal basis of the tangent space at ``point``, shape (dim, \\*shape).

        Not smooth in the point: use it at a fixed point only. Two programs give one frame but for rounding, except at
        points in special position: weights keep the eigenvalues apart.
        """
        return defaults.frame(self, point)

    @operation
    def random_tangent(self, key, point) -> jax.Array:
        """Draw a standard normal tangent vector in an orthonormal frame at ``point`` (isotropic)."""
        return self.combine(jax.random.normal(key, (self.dim,), real_dtype(point)), self.frame(point))

    @operation
    def random_point(self, key) -> jax.Array:
        """Draw a random point; by default the exponential of a standard normal tangent vector at the origin."""
        origin = jnp.asarray(self.origin)
        return self.exp(origin, self.random_tangent(key, origin))

    def combine(self, coordinates, frame) -> jax.Array:
        """Return the tangent vector with the given ``coordinates`` (dim,) in a ``frame`` (dim, \\*shape)."""
        return jnp.tensordot(coordinates.astype(frame.dtype), frame, axes=1)

    def coordinates(self, point, tangent, frame) -> jax.Array:
        """Return the coordinates (dim,) of a tangent vector at ``point`` in an orthonormal ``frame``."""
        return jax.vmap(lambda e: self.inner(point, e, tangent))(frame)

    # Volume -----------------------------------------------------------------------------------------

    @operation
    def log_det_exp(self, point, tangent) -> jax.Array:
        """Return ``log|det d exp_point|`` at ``tangent``, a real scalar; from the Jacobian by default."""
        return defaults.log_det_exp(self, point, tangent)

    def volume_envelope(self, lower, upper) -> tuple[jax.Array, jax.Array]:
        """Return a line above ``log_det_exp`` for all tangent lengths in ``[lower, upper]``.

        Returns its value at ``lower`` and its slope, for arrays of bounds of any shape. Exact samplers are as good as
        this bound is sharp.
        """
        growth = jnp.full_like(lower, self.volume_growth)
        return growth * lower, growth

    def log_covariance_bound(self, base, points, weights) -> jax.Array:
        """Return an upper bound of the largest eigenvalue of ``sum_i w_i log(x_i) log(x_i)'`` at ``base``."""
        return self.log_moments(base, points, weights)[1]


def real_dtype(x):
    """Return the floating dtype of the real parts of a floating or complex array."""
    return jnp.finfo(jnp.asarray(x).dtype).dtype
