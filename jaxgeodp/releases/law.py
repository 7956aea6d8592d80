"""Laws of releases of n records: all that is public about what is drawn, and what is proven of it."""

import abc
import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import jax
import numpy as np
from typing_extensions import override

from jaxgeodp.checks import InputError
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.privacy.guarantee import Guarantee, NotProven
from jaxgeodp.samplers.rejection import Draws


@dataclasses.dataclass(frozen=True)
class Terms:
    """Entries of a release record about a law; none enters a program, so that they cause no compilation.

    Attributes:
        mechanism: its name, for records and messages.
        statistic: what is summarised.
        n: number of records.
        strength: epsilon or mu, for messages; 0 where there are several.
        guarantee: what one release promises, by ``theorem``.
        sensitivity: a number, or an array where each coordinate has its own.
        formula: how it is found, in words.
        theorem: why the guarantee holds, in words.
        sampler: name and exactness.
        timing: what the running time discloses.
        calibration: which of several sensitivities is used.
        promises: further entries of the record's guarantee.
        more: further entries of the record.
    """

    mechanism: str
    statistic: str | dict
    n: int
    strength: float
    guarantee: Guarantee | NotProven
    sensitivity: Any
    formula: str
    theorem: str
    sampler: dict[str, str]
    timing: str
    calibration: str = "tight"
    promises: dict | None = None
    more: dict | None = None


class Ready(NamedTuple):
    """Checked and compiled release, which only the ledger can still refuse."""

    terms: Terms
    scale: Any
    note: str  #: on numerics, for the record
    draw: Callable[[Any], Any]  #: one value for private records, or `Told`; compiled
    order_matters: bool  #: whether the draw depends on the order of the records, which then must be random


class Told(NamedTuple):
    """Value plus the record entries known only after drawing."""

    value: Any
    entries: dict  #: of the record; made of released numbers alone


class Home(NamedTuple):
    """Law and clipped records, carried to where the public centre is the origin, and the way back for values."""

    law: Any
    records: Any
    back: Callable[[Any], Any]


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def without_derivatives(owner: str, draws):
    """Return the draws, and refuse to differentiate them: that would not give derivatives of their law.

    Raises:
        ValueError: if it is differentiated.
    """
    return draws


@without_derivatives.defjvp
def _refuse_derivatives(owner, primals, tangents):
    raise InputError(
        f"{owner}.simulate: draws by rejection or in steps have no derivatives; differentiate `log_density`, put "
        "jax.lax.stop_gradient around the arguments, or use a mechanism that adds noise to a vector (Wrapped..., "
        "Tangent...)."
    )


class Law(abc.ABC):
    """The law of a release of n records; private records enter its methods as arguments only.

    Attributes:
        terms: `Terms`; None within programs.
        scale: of the noise; `dataclasses.replace` gives the same law with another.
        support: the ball outside which nothing is released, or None.
        grid: how it is released in integers: of the shape of records a `Ready`; None where it is not.
        order_matters: False if a draw of `ready` depends on the records as a set (with their weights) only. True, as
            of laws that do not say: records are then drawn from in a secret random order, and cannot be weighted
            (docs/mathematics.md, Theorem O2).
        fallback: a public value, which is released where none could be computed; None where it is the domain's, as of
            values that are like records.
        rows: of the arrays of records that `simulate` and `log_density` take; None for any that stand for n.
        size: of the numbers that `ready` adds noise to, in the units of the scale; None where it is not in such units.
    """

    terms: Any
    scale: Any
    support: Any
    grid: Any
    order_matters: Any = True
    fallback: Any = None
    rows: Any = None
    size: Any = None

    def check_ready(self, shape: jax.ShapeDtypeStruct) -> None:  # noqa: B027 - most have nothing to refuse
        """Refuse what `ready` would refuse for records of this shape, as far as that needs no compilation.

        Raises:
            ValueError: see `ready`.
        """

    @abc.abstractmethod
    def ready(self, shape: jax.ShapeDtypeStruct) -> Callable[[Any], Any]:
        """Return the compiled draw for records of this shape, in double precision, from the system's entropy.

        All that can be refused is refused here, and all is compiled, before the release is charged; no record is seen.
        """

    @abc.abstractmethod
    def simulate(self, key: jax.Array, records, num: int) -> jax.Array:
        """Return ``num`` independent draws, reproducible from ``key``; records as the domain gives them."""

    def released(self, value: Any) -> Any:
        """Return a drawn value as it is released; the same by default. It never fails."""
        return value

    def check_density(self) -> None:  # noqa: B027 - most have nothing to refuse
        """Refuse to give the density of values of which each may be drawn in several forms.

        Raises:
            ValueError: they are such.
        """

    @abc.abstractmethod
    def log_density(self, x, records) -> jax.Array:
        """Return the unnormalised log density of a release at ``x``, minus infinity outside the support."""

    def padded(self, rows: int) -> Self:
        """Return the law for arrays of ``rows`` records, of which the first n count and the others may be any points.

        Laws of all n that are padded to the same rows are arguments of one program.

        Args:
            rows: at least n.

        Raises:
            ValueError: fewer than n; or it is no law of a mean in a ball, or has weights.

        Example:
            >>> import jax, jax.numpy as jnp
            >>> from jaxgeodp import GeodesicBall, LaplaceMechanism, Sphere
            >>> mechanism = LaplaceMechanism(GeodesicBall(Sphere(2), [0.0, 0.0, 1.0], 0.5), epsilon=1.0)
            >>> data = jnp.broadcast_to(jnp.array([0.0, 0.0, 1.0]), (128, 3))
            >>> draw = jax.jit(lambda law, key: law.simulate(key, data, 1)[0])
            >>> [draw(mechanism.law(n).padded(128), jax.random.key(0)).shape for n in (60, 100)]
            [(3,), (3,)]
        """
        name = "Law" if self.terms is None else self.terms.mechanism
        if not isinstance(self, PointLaw) or not self.takes_weights:
            raise InputError(f"{name}.padded: only laws of means can be padded; compile this one for each n.")
        if self.rows is None or self.weights is not None:
            raise InputError(f"{name}.padded: the law has weights, or is padded already; pad mechanism.law(n).")
        if isinstance(rows, bool | np.bool) or not isinstance(rows, int | np.integer) or rows < self.rows:
            raise InputError(f"{name}.padded: rows must be an integer of at least n = {self.rows}, got {rows!r}.")
        weights = np.where(np.arange(rows) < self.rows, 1.0 / self.rows, 0.0)
        return self._with(rows=int(rows), weights=weights)

    def _with(self, **changes: Any) -> Self:
        own: Any = self
        return dataclasses.replace(own, **changes)

    def check_rows(self, records) -> None:
        """Refuse arrays of another number of records.

        Raises:
            ValueError: see above.
        """
        if self.rows is None or records.shape[0] == self.rows:
            return
        name = "this law" if self.terms is None else f"{self.terms.mechanism}: this law"
        padded = getattr(self, "weights", None) is not None
        raise InputError(
            f"{name} is for arrays of {self.rows} records, got {records.shape[0]}; "
            + (
                f"pad them to {self.rows} rows."
                if padded
                else f"create one with mechanism.law({records.shape[0]}), or law(n).padded(rows) for all n up to rows."
            )
        )


class PointLaw(Law):
    """Law of values near points of a ball; clipping, averaging and drawing are apart, for use by replicates."""

    ball: GeodesicBall
    weights: Any  #: public, of the records, (n,), with sum 1; None for equal ones

    @override
    def released(self, value):
        return self.ball.manifold.released(value)

    @override
    def check_density(self):
        space = self.ball.manifold.of_values
        if space != self.ball.manifold:
            raise InputError(
                f"log_density: there is no density on {space}, where several noise vectors lead to one point."
            )

    @property
    def unsized(self) -> Self:
        """Return the law without weights, for any number of records that stand for its n; one program for all n."""
        return self._with(rows=None)

    @property
    @abc.abstractmethod
    def takes_weights(self) -> bool:
        """Return whether records may have weights."""

    @abc.abstractmethod
    def check(self) -> None:
        """Raise ValueError where double precision cannot hold the draws."""

    @abc.abstractmethod
    def clipped(self, data) -> jax.Array:
        """Return the records clipped as the theorems suppose."""

    @abc.abstractmethod
    def at_home(self, data) -> Home:
        """Return law and clipped records with the centre at the origin: precision then depends on the radius alone."""

    @abc.abstractmethod
    def center(self, points) -> jax.Array | None:
        """Return the statistic of clipped records around which draws are made; None if there is none."""

    @abc.abstractmethod
    def draws(self, key: jax.Array, points, center, num: int, block: int | None) -> Draws:
        """Return draws for clipped records, which may be `WeightedRecords`; ``center`` is that of `center`."""

    @abc.abstractmethod
    def as_point(self, value) -> tuple[Any, jax.Array]:
        """Return the point of the manifold that a value stands for, and whether there is one."""
