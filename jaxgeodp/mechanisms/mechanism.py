"""What all mechanisms share: a public ball, public calibration, reproducible simulation, private release.

A mechanism is a public configuration; private data enter only as method arguments.
"""

import abc
import copy
import dataclasses
import math
import operator
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, Self, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.bounds import Sensitivity
from jaxgeodp.checks import InputError
from jaxgeodp.compiling import like
from jaxgeodp.domain import GeodesicBall, assumption_limit
from jaxgeodp.manifolds.manifold import Manifold
from jaxgeodp.privacy import grid
from jaxgeodp.privacy.clock import work_begins
from jaxgeodp.privacy.guarantee import GaussianDP, Guarantee, NotProven, PureDP
from jaxgeodp.privacy.ledger import Ledger
from jaxgeodp.privacy.release import Release, describe, idealized, make_release, to_lists
from jaxgeodp.samplers.rejection import Draws

_LARGEST = 1e30
# The attribute that marks what `checked_again` has passed.
_CHECKED = "_checked"
_AtHome = TypeVar("_AtHome", bound="Mechanism", covariant=True)


class Calibration(NamedTuple):
    """The public numbers of a mechanism for n records, and the theorem that makes it private."""

    sensitivity: Sensitivity
    scale: float
    support: GeodesicBall | None
    theorem: str


class Home(NamedTuple, Generic[_AtHome]):
    """A mechanism and its records, carried to where the public centre is the origin, and the way back for values."""

    mechanism: _AtHome
    records: Any
    back: Callable[[Any], Any]


class Procedure(NamedTuple):
    """How a release is made; all of it is public."""

    ready: Callable[[jax.ShapeDtypeStruct], Callable[[Any], Any]]  #: see `Mechanism._ready_to_draw`
    calibrate: Callable[[int], Calibration]
    guarantee: Callable[[int], Guarantee | NotProven]
    sampler: dict[str, str]
    note: str  #: on numerics


@dataclasses.dataclass(frozen=True, eq=False)
class Mechanism(abc.ABC):
    """A private summary of n records in a public ball; see the module docstring.

    Raises:
        ValueError: the radius violates Assumption 1, the manifold leaves facts unknown that theorems need, or the
            privacy parameter is not in (0, inf).
    """

    ball: GeodesicBall

    def __post_init__(self):
        name = type(self).__name__
        _check_facts(name, self.ball.manifold)
        if not self.ball.satisfies_assumption:
            limit = assumption_limit(self.ball.manifold)
            raise InputError(
                f"{name}: radius {self.ball.radius:g} violates Assumption 1; on {self.ball.manifold} it must be "
                f"below {limit:.6g}, so choose a smaller public ball."
            )
        _check_range(name, "radius", self.ball.radius)
        for parameter, guarantee in (("epsilon", PureDP), ("mu", GaussianDP)):
            if hasattr(self, parameter):
                object.__setattr__(self, parameter, getattr(guarantee(getattr(self, parameter)), parameter))
                _check_range(name, parameter, getattr(self, parameter))

    # What a mechanism defines ------------------------------------------------------------------------

    @property
    @abc.abstractmethod
    def guarantee(self) -> Guarantee | NotProven:
        """What one release promises."""

    @abc.abstractmethod
    def calibrate(self, n: int) -> Calibration:
        """Sensitivity, scale, support and theorem for n records; public quantities only."""

    @abc.abstractmethod
    def log_density(self, x, data) -> jax.Array:
        """Unnormalised log density of a release at ``x``, minus infinity outside the support.

        Args:
            x: a point, shape ``shape``. Batched by `jax.vmap`.
            data: (n, \\*shape); clipped into the ball.
        """

    @abc.abstractmethod
    def simulate(self, key, data, num: int) -> jax.Array:
        """``num`` independent draws for research: reproducible from ``key``, hence not private.

        Jit- and vmap-compatible; runs in the precision of ``data``.

        Args:
            key: JAX random key.
            data: (n, \\*shape), n >= 2; clipped into the ball.
        """

    @abc.abstractmethod
    def _draws_around(self, key, points, center, scale, support, num: int, block: int | None) -> Draws:
        """Draws for clipped records, which may be `WeightedRecords`; ``center`` is what `_center` gives for them."""

    @abc.abstractmethod
    def _ready_to_draw(self, shape: jax.ShapeDtypeStruct) -> Callable[[Any], Any]:
        """What draws one value for records of this shape, in double precision, from the system's entropy.

        All that can be refused is refused here, and all is compiled, before the release is charged; no record is seen.
        """

    @property
    @abc.abstractmethod
    def _sampler(self) -> dict[str, str]:
        """Name and exactness of the sampler, for the record."""

    _described = "FrechetMean"

    # Public quantities -------------------------------------------------------------------------------

    def sensitivity(self, n: int) -> float:
        """The global sensitivity for n records (replace-one)."""
        return self.calibrate(record_count(n)).sensitivity.value

    def scale(self, n: int) -> float:
        """The scale of the noise for n records."""
        return self.calibrate(record_count(n)).scale

    def support(self, n: int) -> GeodesicBall | None:
        """The ball outside which nothing is released; None for the whole manifold."""
        return self.calibrate(record_count(n)).support

    # Data meet the mechanism -------------------------------------------------------------------------

    def release(
        self, data, ledger: Ledger | None = None, *, delta: float = 0.0, numerics: str = "idealized"
    ) -> Release:
        """One private release, in double precision, with randomness from the operating system.

        Args:
            data: (n, \\*shape), n >= 2. A record outside the ball is clipped, a record that is no point
                becomes the centre; neither is reported.
            ledger: charged before anything is drawn.
            delta: 0, or in (0, 1) for mechanisms with a density (`LaplaceMechanism`, `KNGMechanism`), whose running
                time otherwise depends on the data: the number of proposals is then fixed by public numbers and the
                guarantee is (epsilon, delta). With a probability below delta/(1 + e^epsilon) none is accepted, and
                the public centre is released.
            numerics: "idealized", for which the guarantee supposes exact arithmetic, or "grid" for mechanisms in the
                tangent space (`TangentLaplace`, `WrappedLaplace`, `WrappedGaussian`): the vector has integer
                coordinates on a public grid, the noise is exact discrete noise, and the rest post-processing
                (docs/mathematics.md, Theorem N). Laplace noise then has independent coordinates, up to sqrt(2) times
                as wide; Gaussian noise gives mu^2/2-zCDP in place of mu-GDP.

        Raises:
            ValueError: wrong shape, fewer than two records, no such distribution exists (see `scale`), a way of
                releasing that this mechanism does not have, too many proposals would be needed (with ``delta``, above
                about 6 dimensions), or the ledger has not enough left. Nothing has been charged then.
        """
        on_grid = grid.check_numerics(type(self).__name__, numerics)
        if on_grid and delta != 0.0:
            raise InputError(f"{type(self).__name__}: delta and numerics='grid' are two ways of releasing; choose one.")
        if on_grid:
            return self._release(data, self._grid_procedure(), ledger)
        return self._release(data, self._procedure() if delta == 0.0 else self._fixed_time_procedure(delta), ledger)

    def _grid_procedure(self) -> Procedure:
        raise InputError(
            f"{type(self).__name__}: numerics='grid' is for mechanisms in the tangent space (TangentLaplace, "
            "WrappedLaplace, WrappedGaussian)."
        )

    def _fixed_time_procedure(self, delta: float) -> Procedure:
        raise InputError(
            f"{type(self).__name__}: delta is for mechanisms with a density (LaplaceMechanism, KNGMechanism); the time "
            "of this one tells nothing."
        )

    def _procedure(self) -> Procedure:
        return Procedure(
            self._ready_to_draw, self.calibrate, lambda _: self.guarantee, self._sampler, idealized(self._timing)
        )

    def _release(self, data, procedure: Procedure, ledger: Ledger | None) -> Release:
        with work_begins(), jax.enable_x64(True):
            checked_again(self)
            data = self._records(host_array(type(self).__name__, data))
            data = data.astype(jnp.promote_types(data.dtype, jnp.float64))
            calibration = procedure.calibrate(data.shape[0])
            draw = procedure.ready(like(data))
            return make_release(
                lambda: np.asarray(draw(data)),
                fallback=self.ball.center,
                ledger=ledger,
                guarantee=procedure.guarantee(data.shape[0]),
                theorem=calibration.theorem,
                mechanism=type(self).__name__,
                statistic=self._described,
                manifold=describe(self.ball.manifold),
                ball={"center": to_lists(self.ball.center), "radius": self.ball.radius},
                n=data.shape[0],
                sensitivity={
                    **dataclasses.asdict(calibration.sensitivity),
                    "calibration": getattr(self, "calibration", "tight"),
                },
                scale=calibration.scale,
                support=calibration.support and {"center": "as ball", "radius": calibration.support.radius},
                sampler=procedure.sampler,
                note=procedure.note,
            )

    def _clipped(self, data) -> jax.Array:
        """The records that the theorems are about."""
        return self.ball.clip(data)

    def _home(self, data) -> Home[Self]:
        """This mechanism and its clipped records at home: precision depends on the radius, not on the centre."""
        return Home(self._with(ball=self.ball.at_home), self.ball.clip_to_home(data), self.ball.from_home)

    def _with(self, **fields) -> Self:
        """A copy with other fields, unchecked: they may be traced."""
        changed = copy.copy(self)
        for name, value in fields.items():
            object.__setattr__(changed, name, value)
        return changed

    def _check_draws(self, n: int, calibration: Calibration) -> None:  # noqa: B027 - most have nothing to refuse
        """Raise ValueError where double precision cannot hold the draws."""

    def _program(self) -> Self:
        """This mechanism without what only calibration needs, so that all calibrations share compiled programs."""
        return self

    _timing = "the running time depends on the data"

    def _record_shape(self) -> tuple[int, ...]:
        """Shape of one record."""
        return self.ball.manifold.shape

    def _records(self, data):
        """The data as an inexact array of shape (n, *record shape); only shape and dtype are looked at."""
        manifold, name = self.ball.manifold, type(self).__name__
        shape = self._record_shape()
        data = data if isinstance(data, jax.Array) else host_array(name, data)
        if shape == manifold.shape:
            data = manifold.as_points(data)
        if not is_numeric(data.dtype, "fiuc" if manifold.dtype_kind == "complex" else "fiu"):
            raise InputError(f"{name}: data must be {manifold.dtype_kind} numbers, got {kind_of_data(data)}.")
        if data.ndim != len(shape) + 1 or data.shape[1:] != shape:
            expected = ", ".join(["n", *map(str, shape)])
            raise InputError(f"{name}: data must have shape ({expected}) on {manifold}, got {data.shape}.")
        record_count(data.shape[0])
        data = jnp.asarray(data)
        return data.astype(jnp.result_type(data.dtype, complex if manifold.dtype_kind == "complex" else float))

    def tree_flatten(self):
        """Numbers and the ball are leaves (no recompilation over epsilons); the rest is static."""
        names = [field.name for field in dataclasses.fields(self)]
        leaves = [name for name in names if name in ("ball", "epsilon", "mu")]
        static = tuple((name, getattr(self, name)) for name in names if name not in leaves)
        return tuple(getattr(self, name) for name in leaves), (tuple(leaves), static)

    @classmethod
    def tree_unflatten(cls, static, leaves):
        """Rebuild without checks (the leaves may be tracers)."""
        mechanism = object.__new__(cls)
        for name, value in (*zip(static[0], leaves, strict=True), *static[1]):
            object.__setattr__(mechanism, name, value)
        return mechanism


def checked_again(mechanism) -> None:
    """Refuse what was rebuilt without checks, as `jax.tree.map` does, and could not have been made.

    A mechanism is frozen, so that once is enough; what is rebuilt from its leaves is another object.

    Raises:
        ValueError: see the mechanism's class.
    """
    if vars(mechanism).get(_CHECKED):
        return
    fields = {field.name: getattr(mechanism, field.name) for field in dataclasses.fields(mechanism) if field.init}
    ball = fields.get("ball")
    if ball is not None:
        fields["ball"] = GeodesicBall(ball.manifold, ball.center, ball.radius)
    type(mechanism)(**fields)
    object.__setattr__(mechanism, _CHECKED, True)


def _check_range(owner, name, value):
    """Beyond these, squares of scales leave double precision."""
    if not 1.0 / _LARGEST <= value <= _LARGEST:
        raise InputError(f"{owner}: {name} must be between {1.0 / _LARGEST:g} and {_LARGEST:g}, got {value:g}.")


def host_array(name: str, data) -> np.ndarray:
    """Data as a NumPy array that JAX can hold: in the byte order of this machine, at most double precision."""
    try:
        array = np.asarray(data)
    except ValueError:
        raise InputError(f"{name}: data must be one array of numbers; nested lists need equal lengths.") from None
    if isinstance(data, np.ma.MaskedArray) and array.dtype.kind in "iufc":
        array = np.where(np.ma.getmaskarray(data), np.nan, array)
    elif array.dtype == object and not hasattr(data, "dtype"):
        array = _numbers_of_lists(array)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    double = {np.dtype(np.longdouble): np.float64, np.dtype(np.clongdouble): np.complex128}
    with np.errstate(all="ignore"):  # a warning about an overflow would speak of the data
        return array.astype(double.get(array.dtype, array.dtype), copy=False)


def is_numeric(dtype, kinds: str) -> bool:
    """Whether a type of data is one of NumPy's of these ``kinds``, or bfloat16; those of eight bits or less are not."""
    return dtype == jnp.bfloat16 or (isinstance(dtype, np.dtype) and dtype.isbuiltin != 2 and dtype.kind in kinds)


def kind_of_data(array) -> str:
    """For messages: how long a text is, and how wide a number, could tell of a record."""
    kinds = {"U": "text", "S": "bytes", "b": "truth values", "O": "objects", "c": "complex numbers"}
    kinds |= {"f": "real numbers", "i": "integers", "u": "integers"}
    return kinds.get(np.dtype(array.dtype).kind, "another type")


def _numbers_of_lists(array):
    """Lists with None, or with integers too long for NumPy: what they hold must not decide whether they are refused."""

    def number(value):
        if value is None:
            return math.nan
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf

    kinds = {getattr(getattr(value, "dtype", None), "kind", type(value).__name__) for value in array.flat}
    known = kinds <= {"NoneType", "bool", "int", "float", "b", "i", "u", "f"}
    return np.array([number(value) for value in array.flat]).reshape(array.shape) if known else array


def _check_facts(name, manifold):
    """Refuse manifolds that leave unknown what the theorems need."""
    for factor in getattr(manifold, "manifolds", ()):
        _check_facts(name, factor)
    known = all(map(math.isfinite, manifold.curvature_bounds)) and manifold.injectivity_radius > 0
    if not known or type(manifold).log is Manifold.log:
        raise InputError(
            f"{name}: {manifold} must define its curvature_bounds, injectivity_radius and log for private releases "
            "(what is unknown is not assumed, and the default logarithm may fail far from its base)."
        )


def record_count(n: int) -> int:
    """n, if it is enough for a mechanism."""
    try:
        count = operator.index(n)
    except TypeError:
        raise InputError(f"a mechanism needs an integer n >= 2 of records, got {n!r}.") from None
    if count < 2:
        raise InputError(f"a mechanism needs n >= 2 records, got {n}.")
    return count
