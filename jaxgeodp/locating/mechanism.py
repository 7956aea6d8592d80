"""A mechanism that finds its own ball, with a part of its budget (docs/mathematics.md, section 16)."""

import dataclasses
import functools
import math
from typing import final

import jax
import numpy as np
from typing_extensions import override

from jaxgeodp.checks import InputError, epsilon_or_mu, positive_number
from jaxgeodp.domains.domain import Domain
from jaxgeodp.domains.records import host_array, points_in, record_count, records_of_shape
from jaxgeodp.locating.centers import drawn_center
from jaxgeodp.locating.law import THEOREM, LocatedLaw, last_laws
from jaxgeodp.locating.parts import parts_of
from jaxgeodp.locating.schedule import schedule
from jaxgeodp.manifolds import Manifold
from jaxgeodp.manifolds.described import describe
from jaxgeodp.mechanisms.names import DEFAULTS, MECHANISMS, mechanism_named, supported_on
from jaxgeodp.nested_lists import to_lists
from jaxgeodp.privacy.guarantee import GaussianDP, PureDP, ZeroConcentratedDP
from jaxgeodp.releases.law import Terms
from jaxgeodp.releases.mechanism import Mechanism

# Of records and refusals.
_NAME = "LocatedMechanism"
# Of privacy parameters, and of domains where nothing is curved.
_LARGEST = 1e30
# The farthest that coordinates can be right: they grow like exp(distance times their growth).
_LARGEST_REACH = 15.0


@final
@dataclasses.dataclass(frozen=True, eq=False, init=False)
class LocatedMechanism(Mechanism):
    """A private Frechet mean for records of which neither a centre nor a radius is known.

    Rounds of a noisy radius and a noisy centre find a ball, a last radius says how large it is, and another mechanism
    releases the mean of the records, clipped to it. All of it is charged at once. The record holds every stage.
    Where records are in several places, `SearchInRounds` walks the same way.

    As no stage before the last is mu-GDP, mu^2/2-zCDP is promised for ``mu``. With ``numerics="grid"`` all centres are
    noisy means of integers, and data may be `RecordBlocks`; ``adjacency="add-remove"`` needs ``epsilon``. Refused are
    ``delta``, ``persons`` and ``weights``, which need a public ball, and `prepare`, for which there is
    `SearchInRounds`.

    Args:
        manifold: of the records: one whose curvature is nowhere positive, a compact one with extrinsic vectors, or a
            product of such.
        mechanism: of the release, a name of `mechanisms.names.MECHANISMS`; "auto" is "laplace" for epsilon and
            "wrapped-gaussian" for mu.
        epsilon: the whole budget, pure; or
        mu: that of Gaussian mechanisms.
        domain: a radius about the origin within which records surely lie, where the manifold has no end; a record
            beyond counts as far away. By default 14 on SPD matrices and 10/sqrt|k| on hyperbolic spaces; on Euclidean
            spaces it depends on units, and must be given. It is the field `search_radius`.
        search_radius: the same, by the name of the field.
        shares: of epsilon or mu^2: for all radii but the last, all centres, and the last radius; by default what is
            fine enough for n records, at most .08, .16 and .06, on compact manifolds 0, .12 and .06.

    Raises:
        ValueError: no way to find a centre is known, a parameter is out of range, or a domain is needed.

    Example:
        >>> import numpy as np
        >>> from jaxgeodp import LocatedMechanism, SPD
        >>> mechanism = LocatedMechanism(SPD(2), mu=1.0)
        >>> release = mechanism.release(np.tile(7.0 * np.eye(2), (500, 1, 1)))
        >>> len(release.record["stages"]), release.record["guarantee"]["rho"]
        (7, 0.5)
    """

    manifold: Manifold
    mechanism: str
    epsilon: float | None
    mu: float | None
    search_radius: float | None
    shares: tuple[float, float, float] | None

    def __init__(
        self,
        manifold: Manifold,
        mechanism: str = "auto",
        *,
        epsilon: float | None = None,
        mu: float | None = None,
        domain: float | None = None,
        search_radius: float | None = None,
        shares: tuple[float, float, float] | None = None,
    ):
        """Store the public configuration; refuse invalid parameters."""
        if domain is not None and search_radius is not None:
            raise InputError(f"{_NAME}: domain and search_radius mean the same; give only one of them.")
        reach = domain if search_radius is None else search_radius
        given = manifold, mechanism, epsilon, mu, reach, shares
        for field, value in zip(dataclasses.fields(self), given, strict=True):
            object.__setattr__(self, field.name, value)
        self._check()

    def _check(self):
        name = _NAME
        parameter, given = epsilon_or_mu(name, self.epsilon, self.mu)
        strength = PureDP(given).epsilon if parameter == "epsilon" else GaussianDP(given).mu
        object.__setattr__(self, parameter, strength)
        if not 1.0 / _LARGEST <= strength <= _LARGEST:
            raise InputError(f"{name}: {parameter} must be between 1e-30 and 1e30, got {strength:g}.")
        parts = parts_of(self.manifold)
        opened = [part for part in parts if part.open]
        if self.search_radius is not None:
            positive_number(name, "domain", self.search_radius)
            growth = self.manifold.coordinate_growth
            most = _LARGEST_REACH / growth if growth > 0 else _LARGEST
            if not 1.0 / _LARGEST <= self.search_radius <= most:
                raise InputError(
                    f"{name}: domain must be between 1e-30 and {most:.3g} on {self.manifold}, beyond which "
                    f"coordinates lose their precision, got {self.search_radius:g}."
                )
            object.__setattr__(self, "search_radius", float(self.search_radius))
            if not opened:
                raise InputError(
                    f"{name}: {self.manifold} is compact, so the domain is the whole of it; leave out domain."
                )
        elif any(part.manifold.usual_reach is None for part in opened):
            raise InputError(
                f"{name}: give domain, a radius about the origin that is sure to hold all records: on {self.manifold} "
                "it depends on the units."
            )
        if self.mechanism != "auto" and self.mechanism not in MECHANISMS:
            known = ", ".join(("auto", *MECHANISMS))
            raise InputError(f"{name}: mechanism must be one of {known}, got {self.mechanism!r}.")
        entry = MECHANISMS[self.chosen]
        if entry.parameter != parameter or not entry.on_manifold or not entry.suits(self.manifold):
            raise InputError(
                f"{name}: mechanism {self.chosen!r} does not release points of {self.manifold} for {parameter}."
            )
        if self.shares is not None:
            _check_shares(name, self.shares, bool(opened))

    @property
    def guarantee(self) -> PureDP | ZeroConcentratedDP:
        """What all stages together promise, epsilon-DP or mu^2/2-zCDP."""
        promise = self._promise
        return promise if isinstance(promise, PureDP) else promise.to_zcdp()

    @property
    def domain(self) -> "AnyPoints":
        """All of the manifold."""
        return AnyPoints(self.manifold, self.domains)

    @property
    def reach(self) -> float:
        """Radius of the domain about the origin; infinite where the manifold is compact."""
        opened = [own for own in self.domains if own > 0]
        return math.hypot(*opened) if opened else math.inf

    @property
    @override
    def supports(self):
        return super().supports | self._on_grid

    @functools.cached_property
    def _on_grid(self):
        return supported_on(self.manifold, self.chosen) & {"grid"}

    def law(self, n, shape=()) -> LocatedLaw:
        """Return the law for n records: the public schedule of the search, and the law of the last release.

        Raises:
            ValueError: n is so small that no ball would be found; says how many records would do.
        """
        n = record_count(n)
        parts = parts_of(self.manifold)
        # What is released on a grid is for the machine: then no centre may be a draw in floating point.
        drawn = not self._on_grid
        plan = schedule(self.manifold, parts, self.domains, n, self._promise, self.shares, drawn)
        centers = tuple(
            drawn_center(part, plan.drawn, plan.radii(place), n) if plan.draws > 0 and part.open else None
            for place, part in enumerate(parts)
        )

        def make(ball):
            return mechanism_named(self.chosen, ball, plan.rest)

        last = last_laws(self.manifold, self.domains, n, make)
        own = last.laws[-1].terms
        drawn_timing = next((stage.laws[0].terms.timing for stage in centers if stage is not None), own.timing)
        timing = own.timing if drawn_timing == own.timing else f"of centres {drawn_timing}; of the release {own.timing}"
        terms = Terms(
            mechanism=_NAME,
            statistic=own.statistic,
            n=n,
            strength=plan.rest,
            guarantee=self.guarantee,
            sensitivity=own.sensitivity,
            formula=own.formula,
            theorem=f"{THEOREM}; release: {own.theorem}",
            sampler=own.sampler,
            timing=timing,
            more={"last": {"mechanism": own.mechanism, "strength": plan.rest}, "rounds": plan.rounds},
        )
        return LocatedLaw(self.manifold, plan, centers, last, n, terms, last.laws[-1].scale)

    @property
    def _promise(self) -> PureDP | GaussianDP:
        budget = self.budget
        assert budget is not None  # one is given
        return budget

    @property
    def chosen(self) -> str:
        """Name of the mechanism of the release."""
        return DEFAULTS["epsilon" if self.mu is None else "mu"] if self.mechanism == "auto" else self.mechanism

    @property
    def domains(self) -> tuple[float, ...]:
        """Radius of each part; a given one is that of all parts without end together."""
        given = self.search_radius
        return tuple(
            0.0 if not part.open else (given or part.manifold.usual_reach or math.nan)
            for part in parts_of(self.manifold)
        )


def _check_shares(name, shares, opened):
    try:
        radii, centers, last = map(float, shares)
    except (TypeError, ValueError):
        radii = centers = last = math.nan
    sound = 0.0 <= radii and 1e-6 <= centers and 1e-6 <= last and radii + centers + last < 1.0
    if not sound or (opened and radii < 1e-6):
        raise InputError(f"{name}: shares must be three numbers of at least 1e-6 with a sum below 1, got {shares!r}.")


@dataclasses.dataclass(frozen=True, eq=False)
class AnyPoints(Domain):
    """Records are points, anywhere.

    Args:
        manifold: of the records.
        reaches: radii of the domains of its parts; 0 where a part is compact.
    """

    manifold: Manifold
    reaches: tuple[float, ...]

    @override
    def records(self, owner, data):
        data = data if isinstance(data, jax.Array) else host_array(owner, data)
        data = points_in(self.manifold, data)
        return records_of_shape(owner, data, self.manifold.shape, self.manifold.dtype_kind, f"on {self.manifold}")

    def described(self, shape):
        """Manifold, and the domain in place of a ball."""
        whole = "all of the manifold" if not any(self.reaches) else math.hypot(*self.reaches)
        return {
            "manifold": describe(self.manifold),
            "ball": {"center": to_lists(self.manifold.origin), "radius": whole},
        }

    def fallback(self, shape):
        """Return the origin."""
        return np.asarray(self.manifold.origin)
