"""The geodesic random walk as a NumPyro kernel, for `numpyro.infer.MCMC`."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from numpyro.infer.mcmc import MCMCKernel
from typing_extensions import override

from jaxgeodp.checks import InputError
from jaxgeodp.manifolds.manifold import Manifold
from jaxgeodp.samplers import random_walk


class GeodesicMetropolis(MCMCKernel):
    """Random-walk Metropolis along geodesics; see `jaxgeodp.samplers.metropolis` for the proposal.

    Args:
        manifold: where the chain lives.
        potential_fn: minus the unnormalised log density of one point, with respect to the volume measure; with
            arguments if `MCMC.run` is given some (``potential_fn(x, *args, **kwargs)``).
        step_size: length of a move per dimension, at the start; adapted during the warm-up only.
        target_accept_prob: what it is adapted to; default 0.234, in one dimension 0.44.

    `MCMC.run` needs ``init_params``: a point, or one per chain; or ``{"site": point}``, and then ``potential_fn`` takes
    such a dictionary, too, samples are one, and summaries and ``arviz.from_numpyro`` call the point "site". Extra
    fields: "potential_energy", "accept_prob", "mean_accept_prob", "step_size".

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from numpyro.infer import MCMC
        >>> from jaxgeodp import Sphere
        >>> from jaxgeodp.samplers import GeodesicMetropolis
        >>> pole = jnp.array([0.0, 0.0, 1.0])
        >>> kernel = GeodesicMetropolis(Sphere(2), lambda sites: -5.0 * sites["mean"] @ pole)
        >>> mcmc = MCMC(kernel, num_warmup=200, num_samples=300, progress_bar=False)
        >>> mcmc.run(jax.random.key(0), init_params={"mean": pole})
        >>> mcmc.get_samples()["mean"].shape
        (300, 3)
    """

    def __init__(
        self,
        manifold: Manifold,
        potential_fn: Callable,
        step_size: float = 0.1,
        target_accept_prob: float | None = None,
    ):
        """Store the potential and the settings of the random walk."""
        self._manifold = manifold
        self._potential_fn = potential_fn
        self._step_size = step_size
        self._target = random_walk.target_acceptance(manifold) if target_accept_prob is None else target_accept_prob
        self._num_warmup = 0
        self._site = None

    @property
    def model(self):
        """Return None, as the kernel takes a potential, such as a model's `numpyro.infer.util.log_density`."""
        return None

    @property
    def sample_field(self) -> str:
        """Name of the state's field that is the sample."""
        return "z"

    @override
    def init(self, rng_key, num_warmup, init_params, model_args, model_kwargs):
        if init_params is None:
            raise InputError("GeodesicMetropolis: MCMC.run needs init_params, a point of the manifold for each chain.")
        self._num_warmup = num_warmup
        self._site, init_params = _site_and_point(init_params)
        begin = functools.partial(self._begin, model_args=model_args, model_kwargs=model_kwargs or {})
        points = jnp.asarray(init_params)
        if jnp.ndim(rng_key) == (0 if jnp.issubdtype(rng_key.dtype, jax.dtypes.prng_key) else 1):
            return begin(rng_key, points)
        if points.shape == self._manifold.shape:
            points = jnp.broadcast_to(points, (rng_key.shape[0], *points.shape))
        return jax.vmap(begin)(rng_key, points)

    @override
    def postprocess_fn(self, model_args, model_kwargs):
        return lambda x: self._named(x)

    @override
    def sample(self, state, model_args, model_kwargs):
        potential = self._potential(model_args, model_kwargs or {})

        def move(chain):
            return random_walk.step(self._manifold, potential, chain, self._num_warmup, self._target)

        # Several chains side by side: NumPyro leaves it to the kernel.
        return jax.vmap(move)(state) if jnp.ndim(state.i) else move(state)

    # The base is read as giving one text, the empty one.
    def get_diagnostics_str(self, state) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the text shown behind the progress bar."""
        return f"step size {state.step_size:.2e}, acc. prob {state.mean_accept_prob:.2f}"

    def _begin(self, key, point, model_args, model_kwargs):
        return random_walk.start(self._potential(model_args, model_kwargs), key, point, self._step_size)

    def _potential(self, model_args, model_kwargs):
        return lambda x: jnp.asarray(self._potential_fn(self._named(x), *model_args, **model_kwargs))

    def _named(self, point):
        return point if self._site is None else {self._site: point}


def _site_and_point(init_params):
    """Return the site's name, or None, and the point or points."""
    if not isinstance(init_params, dict):
        return None, init_params
    if len(init_params) != 1:
        raise InputError(
            f"GeodesicMetropolis: samples one point, but init_params has {len(init_params)} sites; use a Product "
            "manifold for several points."
        )
    return next(iter(init_params.items()))
