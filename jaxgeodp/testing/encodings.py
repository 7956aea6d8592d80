"""What holds for every encoding, tried on one of your own."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.checks import InputError
from jaxgeodp.releases.encoding import Encoding, checked_bounds

# Relative; of a bound, of a mean and of a way back.
_ROUNDING, _NEAR = 1e-9, 1e-7


def check_encoding(encoding: Encoding, record: tuple[int, ...]) -> None:
    """Raise AssertionError with the first law that an encoding breaks, in double precision.

    They find errors of programs; that a vector tells no more of a record than its bound is for `Encoding` to say.

    Args:
        encoding: see `jaxgeodp.releases.Encoding`.
        record: shape of a record.

    Raises:
        ValueError: it is no encoding, or it has another number of bounds than of vectors.

    Example:
        >>> import numpy as np
        >>> from jaxgeodp.surfaces import JointGaussian
        >>> from jaxgeodp.testing import check_encoding
        >>> check_encoding(JointGaussian(np.zeros((5, 3)), 0.1, 1.0).encoding, (5, 3))
    """
    if not isinstance(encoding, Encoding):
        raise InputError("check_encoding: needs an Encoding.")
    with jax.enable_x64(True):
        _check(encoding, record)


def _check(encoding, record):
    shape, bounds = tuple(encoding.shape(record)), np.asarray(checked_bounds("check_encoding", encoding, record))
    middle = np.asarray(encoding.value(jnp.zeros(shape)))
    assert np.all(np.isfinite(middle)), "the value of the vector 0 is not finite"
    assert np.all(bounds > 0), "a bound is not above 0"
    data = jnp.asarray(_hostile(middle if middle.shape == record else np.zeros(record)))
    deviations = encoding.bounded(data)
    assert len(deviations) == len(data), f"{len(data)} records have {len(deviations)} deviations"
    vectors = np.asarray(encoding.white(deviations))
    assert vectors.shape[1:] == shape, f"vectors have shape {vectors.shape[1:]}, not {shape}"
    assert np.all(np.isfinite(vectors)), "a record has a vector that is not finite"
    lengths = np.linalg.norm(vectors, axis=-1)
    assert np.all(lengths <= bounds * (1.0 + _ROUNDING)), f"a vector has {np.max(lengths / bounds):.3g} times its bound"
    for place in range(len(data)):
        alone = np.asarray(encoding.bounded(data[place : place + 1]))[0]
        near = np.allclose(alone, deviations[place], rtol=_NEAR, atol=_NEAR * float(np.min(bounds)))
        assert near, "what deviates in a record depends on other records"
    mean = np.asarray(encoding.white(jnp.mean(deviations, axis=0)))
    each = bounds[..., None] if bounds.ndim else bounds
    near = np.allclose(mean / each, np.mean(vectors, axis=0) / each, rtol=_NEAR, atol=_NEAR)
    assert near, "white is not linear: of a mean it is not the mean"
    some = jnp.asarray(np.random.default_rng(1).normal(size=(3, *shape)) * each)
    values = encoding.value(some)
    one = np.asarray(encoding.value(some[0]))
    assert len(values) == 3 and np.allclose(values[0], one, rtol=_NEAR), "values of several vectors are not theirs"
    assert np.all(np.isfinite(values)), "a vector has a value that is not finite"
    try:
        back = jax.vmap(encoding.vector)(values)
    except InputError:
        return  # no density is claimed
    assert np.allclose(back / each, some / each, rtol=_NEAR, atol=_NEAR), "vector is not the inverse of value"


def _hostile(middle):
    """Return records (9, \\*shape): near the middle, far, one with a NaN, one of huge numbers, one of infinities."""
    rng, ones = np.random.default_rng(0), (1,) * middle.ndim
    scales = np.geomspace(1e-3, 1e6, 6).reshape(-1, *ones)
    data = middle + scales * rng.normal(size=(6, *middle.shape))
    broken, huge, infinite = middle.copy(), np.full_like(middle, 1e200), np.full_like(middle, -np.inf)
    broken.flat[-1] = np.nan
    return np.concatenate([data, broken[None], huge[None], infinite[None]])
