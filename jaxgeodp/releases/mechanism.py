"""What all mechanisms share: a public domain, a public law for n records, private release, reproducible simulation."""

import abc
import dataclasses
from collections.abc import Callable
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.checks import InputError
from jaxgeodp.compiling import like
from jaxgeodp.domains.domain import Domain
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.domains.persons import Labels, person_places
from jaxgeodp.domains.records import host_array
from jaxgeodp.manifolds.described import plain_number
from jaxgeodp.privacy.clock import work_begins
from jaxgeodp.privacy.guarantee import ADJACENCY, Guarantee, NotProven
from jaxgeodp.privacy.ledger import Ledger
from jaxgeodp.privacy.release import Release, make_release
from jaxgeodp.pytrees import Pytree
from jaxgeodp.releases.law import Law
from jaxgeodp.releases.ways import Way, way_of

# The attribute that marks what `checked_again` has passed.
_CHECKED = "_checked"


class Mechanism(abc.ABC):
    """A private summary of n records: a public configuration; private data enter only as method arguments.

    A subclass is a frozen dataclass that gives `domain`, `guarantee` and `law`.
    """

    @property
    @abc.abstractmethod
    def domain(self) -> Domain:
        """Where records lie; public."""

    @property
    @abc.abstractmethod
    def guarantee(self) -> Guarantee | NotProven:
        """What one release promises."""

    @abc.abstractmethod
    def law(self, n: int, shape: tuple[int, ...] = ()) -> Law:
        """All that is public about a release of n records: scale, support, theorem, sampler.

        Args:
            n: at least 2.
            shape: of one record, where the domain leaves it open.

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
    ) -> Release:
        """One private release, in double precision, with randomness from the operating system.

        Args:
            data: (n, \\*shape of a record), n >= 2; see the class. A record outside the domain is brought into it, a
                record that is none becomes the public centre; neither is reported.
            ledger: charged before anything is drawn.
            delta: 0, or in (0, 1) for mechanisms with a density (`LaplaceMechanism`, `KNGMechanism`), whose running
                time otherwise depends on the data: the number of proposals is then fixed by public numbers and the
                guarantee is (epsilon, delta). With a probability below delta/(1 + e^epsilon) none is accepted, and
                the public centre is released.
            numerics: "idealized", for which the guarantee supposes exact arithmetic, or "grid" for mechanisms in the
                tangent space (`TangentLaplace`, `WrappedLaplace`, `WrappedGaussian`) and for curves: the vector has
                integer coordinates on a public grid, the noise is exact discrete noise, and the rest post-processing
                (docs/mathematics.md, Theorem N). Laplace noise then has independent coordinates, up to sqrt(2) times
                as wide; Gaussian noise gives mu^2/2-zCDP in place of mu-GDP.
            persons: (n,), a label of the person for each record, numbers or words: what is protected then is all that
                one person contributes. Each person's records become one, their Frechet mean, and the release is of
                these N (docs/mathematics.md, section 14). N and the size of the data are public.

        Raises:
            ValueError: wrong shape, fewer than two records, no such distribution exists (see `law`), a way of
                releasing that this mechanism does not have, too many proposals would be needed (with ``delta``, above
                about 6 dimensions), or the ledger has not enough left. Nothing has been charged then.
        """
        return release_in(self, way_of(type(self).__name__, delta, numerics), data, ledger, persons=persons)

    @final
    def simulate(self, key: jax.Array, data, num: int) -> jax.Array:
        """``num`` independent draws for research: reproducible from ``key``, hence not private.

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
        records = self.domain.records(type(self).__name__, data)
        return self.law(records.shape[0], records.shape[1:]).simulate(key, records, num)

    @final
    def log_density(self, x, data) -> jax.Array:
        """Unnormalised log density of a release at ``x``, minus infinity outside the support.

        Args:
            x: a value. Batched by `jax.vmap`.
            data: (n, \\*shape of a record); see `release`.
        """
        records = self.domain.records(type(self).__name__, data)
        return self.law(records.shape[0], records.shape[1:]).log_density(x, records)


def release_in(
    mechanism: Mechanism,
    way: Way,
    data,
    ledger: Ledger | None = None,
    *,
    persons: Labels | None = None,
    finish: Callable[[np.ndarray], np.ndarray] = np.asarray,
    more: dict | None = None,
) -> Release:
    """A release in any way; see `Mechanism.release`.

    Args:
        mechanism, data, ledger, persons: see there.
        way: see `releases.ways`.
        finish: a post-processing of the value, which then is the value; it fails for no value.
        more: further entries of the record, all of them public.
    """
    name = type(mechanism).__name__
    # Compiled ahead whatever the setting is: without, functions would be run step by step after the charge.
    with work_begins(), jax.enable_x64(True), jax.disable_jit(False):
        checked_again(mechanism)
        domain = mechanism.domain
        records = domain.records(name, host_array(name, data))
        records = records.astype(jnp.promote_types(records.dtype, jnp.float64))
        n, *shape = records.shape
        given, read, whose = like(records), lambda: records, {}
        if persons is not None:
            places, n = person_places(name, persons, n)
            summaries = domain.of_persons(name, given, n)
            given, read = jax.ShapeDtypeStruct((n, *shape), records.dtype), lambda: summaries(records, places)
            more, whose = (more or {}) | {"unit": "person"}, {"adjacency": f"{ADJACENCY} (all of a person)"}
        law = mechanism.law(n, tuple(shape))
        ready = way.ready(law, given)
        terms = ready.terms
        return make_release(
            lambda: finish(np.asarray(ready.draw(read()))),
            fallback=finish(np.asarray(domain.fallback(tuple(shape)))),
            ledger=ledger,
            guarantee=terms.guarantee,
            theorem=terms.theorem,
            promises=(terms.promises or {}) | whose,
            mechanism=name,
            statistic=terms.statistic,
            **domain.described(tuple(shape)),
            n=n,
            sensitivity={
                "value": plain_number(terms.sensitivity),
                "formula": terms.formula,
                "calibration": terms.calibration,
            },
            scale=plain_number(ready.scale),
            support=law.support and {"center": "as ball", "radius": law.support.radius},
            sampler=terms.sampler,
            note=ready.note,
            more=(terms.more or {}) | (more or {}),
        )


def checked_again(mechanism: Any) -> None:
    """Refuse what was rebuilt without checks, as `jax.tree.map` does, and is not what it would have been made.

    A mechanism is frozen, so that once is enough; what is rebuilt from its leaves is another object.

    Raises:
        ValueError: it is no frozen dataclass; or see the mechanism's class.
    """
    name, parameters = type(mechanism).__name__, getattr(type(mechanism), "__dataclass_params__", None)
    if not isinstance(mechanism, Mechanism) or parameters is None or not parameters.frozen:
        raise InputError(f"{name}: a release needs a mechanism that is a frozen dataclass.")
    if vars(mechanism).get(_CHECKED):
        return
    kind: Any = type(mechanism)
    fields = {field.name: getattr(mechanism, field.name) for field in dataclasses.fields(kind) if field.init}
    ball = fields.get("ball")
    if ball is not None:
        fields["ball"] = GeodesicBall(ball.manifold, ball.center, ball.radius)
    made = kind(**fields)
    if isinstance(mechanism, Pytree):
        pairs = zip(jax.tree.leaves(mechanism), jax.tree.leaves(made), strict=True)
        if not all(np.array_equal(own, other) for own, other in pairs):
            raise InputError(f"{name}: it was rebuilt from other numbers without checks; make it anew.")
    object.__setattr__(mechanism, _CHECKED, True)
