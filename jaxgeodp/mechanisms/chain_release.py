"""A release by a Markov chain, as in the papers; its record says that nothing is proven."""

import functools

import jax
import jax.numpy as jnp

from jaxgeodp.checks import InputError, positive_integer
from jaxgeodp.compiling import compiled_ahead
from jaxgeodp.mechanisms.density import DensityMechanism, density_at_home
from jaxgeodp.privacy.entropy import public_key, system_key
from jaxgeodp.privacy.guarantee import NotProven
from jaxgeodp.privacy.release import Release
from jaxgeodp.samplers.random_walk import metropolis

_LABEL = "MCMC: not pure DP"


def release_by_chain(mechanism: DensityMechanism, data, num_burnin: int = 20_000) -> Release:
    """One value from a geodesic random walk started at the public centre; labelled "MCMC: not pure DP".

    For comparison with work that samples this way: `release` is exact, and usually faster. It takes no ledger, as
    nothing is promised that could be charged.

    Args:
        mechanism: with a density (`KNGMechanism`, `LaplaceMechanism`).
        data: (n, \\*shape), n >= 2; see `Mechanism.release`.
        num_burnin: moves before the value is taken.

    Raises:
        ValueError: see `Mechanism.release`; another kind of mechanism.
    """
    if not isinstance(mechanism, DensityMechanism):
        raise InputError(f"release_by_chain: needs a mechanism with a density, got {type(mechanism).__name__}.")
    positive_integer("release_by_chain", "num_burnin", num_burnin, 1)

    def ready(shape):
        n = shape.shape[0]
        calibration = mechanism.calibrate(n)
        mechanism._check_representable(n, calibration)
        own, law = mechanism._program(), (calibration.scale, calibration.support)
        name, key = type(mechanism).__name__, public_key()
        program = compiled_ahead(name, _last_of_chain, own, key, shape, law, num_burnin=num_burnin)
        return lambda records: program(own, system_key(), records, law)

    claim = _NotProvenChain(_LABEL)
    sampler = {"name": f"geodesic random-walk Metropolis, {num_burnin} moves", "exactness": _LABEL}
    procedure = mechanism._procedure()._replace(ready=ready, guarantee=lambda _: claim, sampler=sampler)
    return mechanism._release(data, procedure, None)


class _NotProvenChain(NotProven):
    """Whatever theorem the scale comes from: it is about the chain's limit, not about the chain."""

    def record(self, theorem):
        """The entry of a release record."""
        return super().record("a finite chain has another law than its limit, by an amount that is not known")


# The data are an argument, so that no compiled program, which may be kept on disk, contains them.
@functools.partial(jax.jit, static_argnames="num_burnin")
def _last_of_chain(mechanism, key, data, law, num_burnin):
    home = mechanism._home(data)
    log_density = density_at_home(mechanism, home, *law)
    ball = home.mechanism.ball
    draws = metropolis(
        key, ball.manifold, log_density, jnp.asarray(ball.center), 1, num_burnin, step_size=law[0], num_chains=1
    )
    return home.back(draws.points[0, 0])
