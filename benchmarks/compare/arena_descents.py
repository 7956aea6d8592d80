"""Noisy gradient descent in the arena: a few steps, each with its share of the budget and its length of clipping."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

# Of each step: its share of the budget (of mu^2, or of epsilon), its length, and where gradients are clipped, in radii.
Schedule = tuple[tuple[float, float, float], ...]

#: By the budget: the published noise is normal, and for epsilon that of Hardt & Talwar (2010) stands in its place.
NAMES = {"mu": "DP-RGD", "epsilon": "DP-RGD, noise of Hardt & Talwar"}
# One step of length 1 clipped at the radius is the normal mechanism in the tangent space at the centre.
AT_THE_CENTRE: Schedule = ((1.0, 1.0, 1.0),)
_CLIPS = (0.1, 0.15, 0.25, 0.5, 0.75, 1.0)
_MOST_STEPS = 20


def schedules(budget: str) -> dict[str, Schedule]:
    """What descent may choose from, by what is said of it.

    One step, which with a length below 1 stays near the public centre; steps that are alike, as published; and two of
    length 1 of which the first, with half of the budget at most, finds where the second may clip, as the rounds of
    CoinPress do for vectors (Biswas, Dong, Kamath & Ullman 2020). Shares of epsilon add up, and every step costs more.
    """
    steps = (2, 3, 5, 10, _MOST_STEPS) if budget == "mu" else (2, 3)
    once = {
        f"1 step of length {length:g}, clipped at {clip:g} r": ((1.0, length, clip),)
        for length in (0.1, 0.25, 0.5, 0.75, 1.0)
        for clip in _CLIPS
    }
    alike = {
        f"{count} steps of length {length:g}, clipped at {clip:g} r": ((1.0 / count, length, clip),) * count
        for count in steps
        for length in (0.5, 1.0, 1.5)
        for clip in _CLIPS
    }
    rounds = {
        f"{share:g} of the budget clipped at {first:g} r, then {clip:g} r": (
            (share, 1.0, first),
            (1 - share, 1.0, clip),
        )
        for share in (0.125, 0.25, 0.5)
        for first in (1.0, 0.75, 0.5)
        for clip in (0.5, 0.35, 0.25, 0.15)
    }
    return once | alike | rounds


def descent(ball, data, budget: str, strength: float, schedule: Schedule, keys) -> jax.Array:
    """Han, Mishra, Jawanpuria & Gao (2022): Riemannian gradient descent on all records, with noise in each step.

    Logarithms are clipped at a limit, so that their mean moves by at most 2 limit/n. With normal noise, steps that are
    mu_t-GDP are mu-GDP together with mu^2 = sum mu_t^2, which is more exact than their accountant of moments. With
    noise of density exp(-|z|/s) in the tangent space, s = 2 limit/(n epsilon_t), epsilon is the sum of all.
    """
    shares, lengths, clips = (np.pad(own, (0, _MOST_STEPS - len(schedule))) for own in np.array(schedule).T)
    spent = strength * (np.sqrt(shares) if budget == "mu" else shares)
    limits = clips * ball.radius
    scales = 2.0 * limits / data.shape[0] / np.where(spent > 0.0, spent, 1.0)
    return _descent(ball, data, len(schedule), lengths, limits, scales, keys, normal=budget == "mu")


@functools.partial(jax.jit, static_argnames="normal")
def _descent(ball, data, count, lengths, limits, scales, keys, normal):
    space = ball.manifold

    def towards(x, record, limit):
        tangent = space.log(x, record)
        return tangent * jnp.minimum(1.0, limit / jnp.maximum(space.norm(x, tangent), 1e-30))

    def noise(key, x):
        tangent = space.random_tangent(key, x)
        if normal:
            return tangent
        length = jax.random.gamma(jax.random.fold_in(key, 1), float(space.dim))
        return length / space.norm(x, tangent) * tangent

    def run(key):
        def step(number, x):
            mean = jnp.mean(jax.vmap(lambda record: towards(x, record, limits[number]))(data), axis=0)
            own = noise(jax.random.fold_in(key, number), x)
            return space.project(space.exp(x, lengths[number] * (mean + scales[number] * own)))

        return jax.lax.fori_loop(0, count, step, jnp.asarray(ball.center))

    return jax.vmap(run)(keys)
