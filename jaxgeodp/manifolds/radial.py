"""Linear upper bounds of functions of a tangent length, for the envelopes of exact samplers."""

import jax
import jax.numpy as jnp


def tangent_line(function, lower, upper):
    """Return value at ``lower`` and slope of the tangent of a concave ``function`` at an interval's middle."""
    middle = 0.5 * (lower + upper)
    value, slope = jax.vmap(jax.value_and_grad(function))(middle.reshape(-1))
    value, slope = value.reshape(middle.shape), slope.reshape(middle.shape)
    return value + slope * (lower - middle), slope


def chord(function, lower, upper, steepest):
    """Return value at ``lower`` and slope of a convex ``function``'s chord; ``steepest`` is its slope at infinity."""
    finite = jnp.isfinite(upper)
    end = jnp.where(finite, upper, 2.0 * lower + 1.0)
    value = function(lower)
    return value, jnp.where(finite, (function(end) - value) / (end - lower), steepest)
