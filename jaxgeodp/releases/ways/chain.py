"""A release by a Markov chain, as in the papers; its record says that nothing is proven."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
from typing_extensions import override

from jaxgeodp.checks import InputError, positive_integer
from jaxgeodp.compiling import compiled_ahead
from jaxgeodp.privacy.entropy import public_key, system_key
from jaxgeodp.privacy.guarantee import NotProven
from jaxgeodp.privacy.release import idealized
from jaxgeodp.releases.density import DensityLaw
from jaxgeodp.releases.law import Ready
from jaxgeodp.releases.ways.way import Way
from jaxgeodp.samplers.random_walk import metropolis

_LABEL = "MCMC: not pure DP"
_TIMING = "the number of moves is public; what the center needs may depend on the data"


@dataclasses.dataclass(frozen=True)
class ByChain(Way):
    """The last point of a geodesic random walk from the public centre; labelled "MCMC: not pure DP".

    Args:
        num_burnin: moves before the value is taken.

    Raises:
        ValueError: not a positive integer.
    """

    num_burnin: int = 20_000

    def __post_init__(self):
        positive_integer("release_by_chain", "num_burnin", self.num_burnin, 1)

    @override
    def ready(self, law, shape):
        name = law.terms.mechanism
        if not isinstance(law, DensityLaw):
            raise InputError(f"release_by_chain: needs a mechanism with a density, got {name}.")
        law.target.check(law)
        moves = self.num_burnin
        program = compiled_ahead(name, _last_of_chain, law, public_key(), shape, passes=moves, num_burnin=moves)
        sampler = {"name": f"geodesic random-walk Metropolis, {self.num_burnin} moves", "exactness": _LABEL}
        # Nothing that the law promises, of one kind or another, is promised by a chain.
        terms = dataclasses.replace(
            law.terms, guarantee=_NotProvenChain(_LABEL), sampler=sampler, promises=None, timing=_TIMING
        )
        note = idealized(terms.timing)
        return Ready(terms, law.scale, note, lambda records: program(law, system_key(), records), law.order_matters)


class _NotProvenChain(NotProven):
    """Whatever theorem the scale comes from: it is about the chain's limit, not about the chain."""

    def record(self, theorem):
        """Return the entry of a release record."""
        return super().record("a finite chain has another law than its limit, by an amount that is not known")


# The data are an argument, so that no compiled program, which may be kept on disk, contains them.
@functools.partial(jax.jit, static_argnames="num_burnin")
def _last_of_chain(law, key, records, num_burnin):
    home, points, back = law.at_home(records)
    center = home.center(points)
    draws = metropolis(
        key,
        home.ball.manifold,
        lambda x: home.log_value(x, center, points),
        jnp.asarray(home.ball.center),
        1,
        num_burnin,
        step_size=law.scale,
        num_chains=1,
    )
    return back(draws.points[0, 0])
