"""Lines above concave functions of a tangent length, for the envelopes of exact samplers."""

import jax


def tangent_line(function, lower, upper):
    """Value at ``lower`` and slope of the tangent of a concave ``function`` at the middle of an interval."""
    middle = 0.5 * (lower + upper)
    value, slope = jax.vmap(jax.value_and_grad(function))(middle.reshape(-1))
    value, slope = value.reshape(middle.shape), slope.reshape(middle.shape)
    return value + slope * (lower - middle), slope
