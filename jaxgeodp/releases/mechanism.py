"""What all mechanisms share: a public domain, a public law for n records, private release, reproducible simulation."""

import abc
import dataclasses
from typing import Any, final

import jax
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike

from jaxgeodp.blocks import RecordBlocks
from jaxgeodp.checks import InputError, not_in_a_program, positive_integer, random_key
from jaxgeodp.domains.domain import Domain
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.domains.labels import Labels
from jaxgeodp.domains.persons import any_units, units
from jaxgeodp.domains.records import record_count
from jaxgeodp.domains.shape import Shape
from jaxgeodp.kept_programs import forget_programs_if_many
from jaxgeodp.privacy.guarantee import ADD_REMOVE, ADJACENCY, EITHER, GaussianDP, Guarantee, NotProven, PureDP
from jaxgeodp.privacy.ledger import Ledger
from jaxgeodp.privacy.release import Release, make_release
from jaxgeodp.pytrees import Pytree
from jaxgeodp.releases.add_remove import hidden_count
from jaxgeodp.releases.context import releasing
from jaxgeodp.releases.drafts import Finish, Request, drafted, in_random_order, raw_blocks, raw_records
from jaxgeodp.releases.integers import Sums
from jaxgeodp.releases.law import Law
from jaxgeodp.releases.states import State, check_sums, digest_of_public, new_part
from jaxgeodp.releases.ways import FromSums, OnGrid, Way, way_of
from jaxgeodp.releases.weights import checked_weights
from jaxgeodp.statistics.statistic import FrechetMean

# The attribute that marks what `checked_again` has passed.
_CHECKED = "_checked"


class Mechanism(abc.ABC):
    """A private summary of n records: a public configuration; private data enter only as method arguments.

    A subclass is a frozen dataclass that gives `domain`, `guarantee` and `law`.

    Attributes:
        summarised: the statistic of records in its public ``ball`` that is released, exactly or nearly; None without.
    """

    summarised: Any = None

    @property
    @abc.abstractmethod
    def domain(self) -> Domain:
        """Return the public domain of the records."""

    @property
    @abc.abstractmethod
    def guarantee(self) -> Guarantee | NotProven:
        """Return the guarantee of one release."""

    @property
    def budget(self) -> PureDP | GaussianDP | None:
        """Return the single privacy parameter, a field "epsilon" or "mu"; None if there is none, or several."""
        fields: Any = self
        given = {field.name: getattr(self, field.name) for field in dataclasses.fields(fields)}
        kinds = [(PureDP, given.get("epsilon")), (GaussianDP, given.get("mu"))]
        own = [kind(value) for kind, value in kinds if value is not None and np.ndim(value) == 0]
        return own[0] if len(own) == 1 else None

    @property
    def supports(self) -> frozenset[str]:
        """Return the options that a release takes, words of `releases.drafts.OPTIONS`.

        By default they follow from its other properties; what is not known to be right is refused.
        """
        persons = {"persons"} if self.domain.has_summaries else set()
        weights = {"weights"} if isinstance(self.summarised, FrechetMean) else set()
        counted = {"add-remove"} if self.budget is not None and self.budget == self.guarantee else set()
        return frozenset(persons | weights | counted | (set() if self.sums is None else {"grid", "prepare"}))

    @property
    def sums(self) -> Sums | None:
        """Return the map from records to integers that add up, for `prepare`; None if no sum is released."""
        return None

    @abc.abstractmethod
    def law(self, n: int, shape: tuple[int, ...] = ()) -> Law:
        """Return all that is public about a release of n records: scale, support, theorem, sampler.

        Args:
            n: at least 2; 1 for `MetricLaplace`.
            shape: of one record, where the domain leaves it open.

        Returns:
            The law; its ``terms``, ``scale`` and ``support`` are what a release record says.

        Raises:
            ValueError: no such distribution exists, or nothing is proven for these numbers; says what would have to
                change.
        """

    @final
    def release(
        self,
        data,
        ledger: Ledger | None = None,
        *,
        delta: float = 0.0,
        numerics: str = "idealized",
        persons: Labels | None = None,
        adjacency: str = ADJACENCY,
        weights: ArrayLike | None = None,
    ) -> Release:
        """Return one private release, in double precision, with randomness from the operating system.

        Which options a mechanism takes is in its `supports` (docs/reference/mechanisms.md has a table).

        Args:
            data: (n, \\*shape of a record), n >= 2; see the class. A record outside the domain is brought into it, a
                record that is none becomes the public centre; neither is reported. With ``numerics="grid"`` also
                `RecordBlocks`, which are read block by block.
            ledger: charged before anything is drawn.
            delta: 0, or in (0, 1) for mechanisms with a density, whose running time otherwise depends on the data: the
                number of proposals is then fixed by public numbers and the guarantee is (epsilon, delta). With a
                probability below delta/(1 + e^epsilon) none is accepted, and the public centre is released. Of mu-GDP
                half of delta is spent on that, and half is the delta of mu at that epsilon.
            numerics: "idealized", for which the guarantee supposes exact arithmetic, or "grid": the vector has integer
                coordinates on a public grid, the noise is exact discrete noise, and the rest post-processing
                (docs/mathematics.md, Theorem N). Laplace noise then has independent coordinates, up to sqrt(2) times
                as wide; Gaussian noise gives mu^2/2-zCDP in place of mu-GDP.
            persons: (n,), a label of the person for each record, numbers or words: what is protected then is all that
                one person contributes. Each person's records become one, their Frechet mean, and the release is of
                these N (docs/mathematics.md, section 14). N and the size of the data are public.
            adjacency: "replace-one", for which the number of records is public; or "add-remove", which hides it, too:
                a tenth of the privacy parameter (of mu^2) buys a count with noise, n of the record is a number of
                places that follows from it, and a few records are left out at random
                (docs/mathematics.md, section 15). Then there may be any number of records. What is promised holds
                for "replace-one", too. The running time still depends on the number.
            weights: (n,), positive, public: chosen without looking at what the records are, such as how many people
                each of n regions has. The weighted Frechet mean is released, with the sensitivity for as many records
                as the largest weight goes into the sum. Not with ``persons``, a private number of records or
                ``numerics="grid"``.

        Returns:
            The value, a NumPy array in double precision, with its record.

        Raises:
            ValueError: wrong shape, fewer than two records, no such distribution exists (see `law`), an option
                that it does not support, too many proposals would be needed (with ``delta``, above
                about 6 dimensions), or the ledger has not enough left. Nothing has been charged then.
        """
        way = way_of(type(self).__name__, delta, numerics)
        return release_in(self, way, data, ledger, persons=persons, adjacency=adjacency, weights=weights)

    @final
    def prepare(self, block, *, persons: Labels | None = None) -> State:
        """Return the integers of a block of records, to be merged with others by ``+`` and given to `finish`.

        For laws that are sums of integers (docs/mathematics.md, Theorem N). The sum is the same whatever the blocks are
        and wherever they are prepared, as all are computed in blocks of one shape by programs of one version on one
        kind of machine; elsewhere last bits may differ, and what is promised holds all the same.

        Args:
            block: (m, \\*shape of a record), m at least 0; see `release`.
            persons: (m,), see `release`; all records of a person must be in one block.

        Returns:
            The state of this block, as private as its records.

        Raises:
            ValueError: see `release`; or the mechanism releases no sum.
        """
        request = Request(self, FromSums(), unit="record" if persons is None else "person")
        name = type(self).__name__
        with releasing():
            checked_again(self)
            request.check()
            sums: Any = self.sums
            if isinstance(block, RecordBlocks) and persons is not None:
                raise InputError(f"{name}: persons and RecordBlocks cannot be combined; prepare block by block.")
            records = raw_blocks(self, block) if isinstance(block, RecordBlocks) else raw_records(self, block)
            n, read = len(records), lambda: records
            if persons is not None:
                n, read = _one_each(name, self.domain, records, persons, least=0)
            shape = jax.ShapeDtypeStruct((n, *records.shape[1:]), records.dtype)
            program = sums.program(shape)
            parts = frozenset([new_part()])
            return State(digest_of_public(self), records.shape[1:], n, program(read()), parts, request.unit)

    @final
    def finish(self, state: State, ledger: Ledger | None = None) -> Release:
        """Return one private release of all records of a state, as `release` with ``numerics="grid"`` makes it.

        Args:
            state: what `prepare` gave, merged; all with this mechanism, with all its numbers.
            ledger: see `release`. It knows states that were finished, and refuses to finish one again.

        Returns:
            The release, whose record has the number of all records of the state.

        Raises:
            ValueError: see `release`; the state is of another mechanism, or was finished before. Nothing has been
                charged then.
        """
        return finished(self, state, ledger)

    @final
    def simulate(self, key: jax.Array, data, num: int) -> jax.Array:
        """Return ``num`` independent draws for research: reproducible from ``key``, hence not private.

        Jit- and vmap-compatible; runs in the precision of ``data``.

        Args:
            key: JAX random key.
            data: (n, \\*shape of a record), n >= 2; see `release`.
            num: how many.

        Returns:
            (num, \\*shape of a value). On SPD, draws of condition above 1e16 (scales near the existence limit) have
            lost their small eigenvalues to rounding.

        Raises:
            ValueError: wrong shape, fewer than two records, no such distribution exists, or its scale is too near
                that limit for double precision.
        """
        _check_known(self)
        name = type(self).__name__
        if not isinstance(key, Tracer):
            forget_programs_if_many()
        random_key(name, key)
        positive_integer(name, "num", num, 0)
        records = self.domain.records(name, data)
        law = self.law(records.shape[0], records.shape[1:])
        return law.released(law.simulate(key, records, num))

    @final
    def log_density(self, x, data) -> jax.Array:
        """Return the unnormalised log density of a release at ``x``, minus infinity outside the support.

        Args:
            x: a value. Batched by `jax.vmap`.
            data: (n, \\*shape of a record); see `release`.

        Returns:
            A number, in the precision of the arguments: right up to a constant, which depends on the data except where
            the noise has one law around every point.

        Raises:
            ValueError: a value has no simple density: several noise vectors give one value (noise in the tangent space
                of a compact manifold), it is projected, or its ball was searched for.
        """
        _check_known(self)
        records = self.domain.records(type(self).__name__, data)
        law = self.law(records.shape[0], records.shape[1:])
        law.check_density()
        return law.log_density(x, records)


def finished(mechanism: Mechanism, state: State, ledger: Ledger | None = None, more: dict | None = None) -> Release:
    """Release the records of a prepared state; add ``more``, further public entries, to the record."""
    name = type(mechanism).__name__
    with releasing():
        checked_again(mechanism)
        Request(mechanism, FromSums()).check()
        sums: Any = mechanism.sums
        if not isinstance(state, State) or state.mechanism != digest_of_public(mechanism):
            raise InputError(f"{name}: finish needs a state prepared by this mechanism with the same parameters.")
        record_count(state.n)  # of a file there may be any number
        raw_records(mechanism, np.zeros((1, *state.record)))
        check_sums(name, state, sums.shape(state.record), sums.largest)
        record = jax.ShapeDtypeStruct(state.record, np.float64)
        request = Request(mechanism, FromSums(), unit=state.unit, more=more)
        return make_release(drafted(request, state.n, record)(lambda: state.sums), ledger, state=state.id)


def _check_known(mechanism: Mechanism) -> None:
    """Refuse a ball that is traced, on whose numbers constants depend."""
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(vars(mechanism).get("ball"))):
        raise not_in_a_program(f"{type(mechanism).__name__}: its ball")


def check_finish(mechanism: Mechanism, n: int, shape: tuple[int, ...], ledger: Ledger | None = None) -> None:
    """Raise what `finished` would raise for any n records of a shape, from public numbers and the ledger alone.

    Raises:
        ValueError: see `Mechanism.finish`.
    """
    request = Request(mechanism, FromSums())
    with releasing():
        checked_again(mechanism)
        request.check()
        _check_budget(drafted(request, n, jax.ShapeDtypeStruct(shape, np.float64)), ADJACENCY, ledger)


def _check_budget(ready, adjacency, ledger):
    """Refuse what the ledger would refuse, without any records."""
    if isinstance(ledger, Ledger):
        ledger.check(ready(lambda: None).guarantee, adjacency)


def release_in(
    mechanism: Mechanism,
    way: Way,
    data,
    ledger: Ledger | None = None,
    *,
    persons: Labels | None = None,
    adjacency: str = ADJACENCY,
    weights: ArrayLike | None = None,
    finish: Finish = np.asarray,
    more: dict | None = None,
) -> Release:
    """Return a release made in any way; see `Mechanism.release`.

    Args:
        mechanism, data, ledger, persons, adjacency, weights: see there.
        way: of `releases.ways`: ``Idealized()``, ``FixedTime(delta)``, ``OnGrid()`` or ``ByChain(num_burnin)``.
        finish: post-processing of the value, which is released in its place; it must not fail.
        more: further entries of the record, all of them public.

    Raises:
        ValueError: see there; or ``more`` has an entry that the record has already.
    """
    request = Request(
        mechanism, way, adjacency, "record" if persons is None else "person", finish=finish, more=more, weights=weights
    )
    name = type(mechanism).__name__
    with releasing():
        checked_again(mechanism)
        request.check()
        if isinstance(data, RecordBlocks):
            if not isinstance(way, OnGrid) or persons is not None or adjacency == ADD_REMOVE:
                raise InputError(
                    f"{name}: RecordBlocks are only for numerics='grid', without persons, weights or a private number "
                    "of records."
                )
            # Blocks are read once before the charge, which may take long: what else can be refused is refused first.
            one = raw_records(mechanism, np.zeros((1, *data.shape[1:]), data.dtype))
            ready = drafted(request, len(data), jax.ShapeDtypeStruct(one.shape[1:], one.dtype))
            _check_budget(ready, adjacency, ledger)
            records = raw_blocks(mechanism, data)
            return make_release(ready(lambda: records), ledger)
        records = raw_records(mechanism, data)
        record = jax.ShapeDtypeStruct(records.shape[1:], records.dtype)
        if adjacency == ADD_REMOVE:
            hidden = hidden_count(request, record)
            draft = hidden.draft(any_units(name, mechanism.domain, records, persons))
            # A record that is replaced may become another person's.
            holds_for = EITHER if persons is None else ADD_REMOVE
            return make_release(draft, ledger, holds_for)
        n, read = len(records), lambda: records
        if persons is not None:
            n, read = _one_each(name, mechanism.domain, records, persons, least=2)
        if weights is not None:
            request = dataclasses.replace(request, weights=checked_weights(name, weights, n))
        return make_release(drafted(request, n, record)(read), ledger)


def _one_each(owner, domain, records, persons, least):
    """Return `units`, in random order: at which place of the data a person comes first hangs on others' records."""
    n, read = units(owner, domain, records, persons, least)
    return n, lambda: in_random_order(read())


def checked_again(mechanism: Any) -> None:
    """Refuse a mechanism that was rebuilt without checks, as by `jax.tree.map`, if they would refuse or change it.

    A mechanism is frozen, so that once is enough; what is rebuilt from its leaves is another object.

    Raises:
        ValueError: it is no frozen dataclass; or see the mechanism's class.
    """
    name, parameters = type(mechanism).__name__, getattr(type(mechanism), "__dataclass_params__", None)
    if not isinstance(mechanism, Mechanism) or parameters is None or not parameters.frozen:
        raise InputError(f"{name}: a mechanism that releases must be a frozen dataclass.")
    if vars(mechanism).get(_CHECKED):
        return
    kind: Any = type(mechanism)
    fields = {field.name: getattr(mechanism, field.name) for field in dataclasses.fields(kind) if field.init}
    ball = fields.get("ball")
    if ball is not None:
        fields["ball"] = GeodesicBall(ball.manifold, ball.center, ball.radius)
    if isinstance(shape := fields.get("shape"), Shape):
        fields["shape"] = dataclasses.replace(shape)
    made = kind(**fields)
    if isinstance(mechanism, Pytree):
        pairs = zip(jax.tree.leaves(mechanism), jax.tree.leaves(made), strict=True)
        if not all(np.array_equal(own, other) for own, other in pairs):
            raise InputError(f"{name}: it was rebuilt from other values without checks; create it anew.")
    object.__setattr__(mechanism, _CHECKED, True)
