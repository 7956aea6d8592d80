"""What the stages of an adaptive release compute of records; compiled alone, and inside simulations."""

import jax
import jax.numpy as jnp

from jaxgeodp.mechanisms.tangent_vectors import framed


@jax.jit
def clipped(ball, records):
    """Records, each brought into the ball."""
    return ball.clip(records)


@jax.jit
def normal(key):
    """One number."""
    return jax.random.normal(key, (), jnp.float64)


@jax.jit
def distances(ball, center, records):
    """From a point."""
    center = center.astype(records.dtype)
    return jax.vmap(lambda x: ball.manifold.dist(center, x))(records)


@jax.jit
def pair_distances(ball, records):
    """Of the first half of the records from the second."""
    half = records.shape[0] // 2
    return jax.vmap(ball.manifold.dist)(records[:half], records[half : 2 * half])


def _noisy_vector(law, key, records):
    """Where a law's records are, with noise; the law at home; and the way back."""
    home, points, back = law.at_home(records)
    location: jax.Array = home.location(points, home.center(points))
    location = jnp.where(jnp.isfinite(location), location, 0.0)
    noise = home.noise.draw(key, 1, location.shape[0], location.dtype)[0]
    return location + jnp.asarray(home.scale, location.dtype) * noise, home, back


@jax.jit
def mean_stage(law, public, key, records, gain):
    """The noisy vector, and the centre moved by gain times it (shortened to the clip), in the public ball."""
    vector, own, back = _noisy_vector(law, key, records)
    length = jnp.linalg.norm(vector)
    step = gain * vector * jnp.minimum(1.0, law.ball.radius / jnp.where(length > 0, length, 1.0))
    manifold, home, frame = framed(own.ball, vector.dtype)
    center = back(manifold.project(manifold.exp(home, manifold.combine(step, frame))))
    return vector, public.pull_inside(center)


@jax.jit
def whole_stage(law, key, records, first, share):
    """What is released of all: a former vector plus a share of a new one."""
    vector, own, back = _noisy_vector(law, key, records)
    return back(own.summary.to_value(own.ball, first.astype(vector.dtype) + share * vector))
