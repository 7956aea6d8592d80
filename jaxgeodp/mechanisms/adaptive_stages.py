"""What the stages of an adaptive release compute of records; compiled alone, and inside simulations."""

import dataclasses
import functools

import jax
import jax.numpy as jnp


@jax.jit
def clipped(ball, records):
    """Return the records, each brought into the ball."""
    return ball.clip(records)


@jax.jit
def normal(key):
    """Draw one standard normal number."""
    return jax.random.normal(key, (), jnp.float64)


def about(law, center, clip, scale):
    """Return the law of a noisy mean about a centre, of vectors shortened to a clip."""
    summary, ball = law.summary.about(law.ball, center, clip)
    return dataclasses.replace(law, summary=summary, ball=ball, scale=scale, terms=None)


@jax.jit
def lengths(law, center, records):
    """Return the lengths of the records' vectors about a centre."""
    summary, ball = law.summary.about(law.ball, center, 1.0)
    return jax.vmap(lambda x: summary.apart(ball, x))(records)


@jax.jit
def pair_lengths(law, records):
    """Return the distances between paired records: the first half of the records with the second."""
    half = records.shape[0] // 2
    return jax.vmap(lambda x, y: law.summary.apart(law.ball, x, y))(records[:half], records[half : 2 * half])


def _noisy_vector(law, key, records):
    """Return the noisy vector of a law's records, the law at home, and the way back."""
    home, points, back = law.at_home(records)
    location: jax.Array = home.location(points, home.center(points))
    location = jnp.where(jnp.isfinite(location), location, 0.0)
    noise = home.noise.draw(key, 1, location.shape[0], location.dtype)[0]
    return location + jnp.asarray(home.scale, location.dtype) * noise, home, back


@jax.jit
def mean_stage(law, key, records, center, clip, scale, gain):
    """Return the noisy mean vector about a centre, and the centre moved along it; see `stepped`."""
    vector, _, _ = _noisy_vector(about(law, center, clip, scale), key, records)
    return vector, stepped(law, center, clip, vector, gain)


@jax.jit
def stepped(law, center, clip, vector, gain):
    """Return a centre moved by gain times a vector shortened to the clip, in the public ball; unchanged if the moved
    one is not finite."""
    length = jnp.linalg.norm(vector)
    step = gain * vector * jnp.minimum(1.0, clip / jnp.where(length > 0, length, 1.0))
    moved = law.ball.pull_inside(value_of(about(law, center, clip, None), step))
    return jnp.where(jnp.all(jnp.isfinite(moved)), moved, center.astype(moved.dtype))


@jax.jit
def value_of(law, vector):
    """Return the value that a vector stands for."""
    return law.ball.from_home(law.summary.to_value(law.ball.at_home, vector))


@jax.jit
def clipped_vectors(law, center, clip, records):
    """Return the vectors (n, length) about a centre of clipped raw records, each shortened to the clip."""
    own = about(law, center, clip, None)
    points = own.ball.clip_to_home(law.ball.clip(records))
    return jax.vmap(functools.partial(own.summary.vector, own.ball.at_home))(points)


@jax.jit
def clipped_lengths(law, center, records):
    """Return the lengths of the vectors of raw records, clipped into the public ball, before they are shortened."""
    return lengths(law, center, law.ball.clip(records))


@jax.jit
def whole_stage(law, key, records, first, share):
    """Release the mean of all records: a former vector plus a share of a new noisy one, as a value."""
    vector, own, back = _noisy_vector(law, key, records)
    return back(own.summary.to_value(own.ball, first.astype(vector.dtype) + share * vector))
