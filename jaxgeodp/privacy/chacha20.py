"""ChaCha20 (RFC 8439) as the generator behind JAX random keys: 256 bits of state, inside compiled samplers.

JAX's own generator, threefry2x32, has a state of 64 bits, which can be searched. Here a key is a key of ChaCha20, and
everything that is drawn or derived from it is a block of its stream. Uses of one key have nonces of their own, so that
no block serves twice:

- ``random_bits``: blocks 0, 1, ... of nonce (0, 0, 0);
- ``split``: child j is the first half of block j of nonce (1, 0, 0);
- ``fold_in``: the child of a number is the first half of the block with that counter of nonce (2, 0, 0).

Whoever tells these keys and numbers from uniform ones has broken ChaCha20 (a tree of pseudorandom functions).
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.random import define_prng_impl

_CONSTANTS = np.frombuffer(b"expand 32-byte k", dtype="<u4").astype(np.uint32)
# Purposes of a key's blocks: their nonces.
BITS, SPLIT, FOLD = 0, 1, 2


def chacha20_blocks(key, counters, nonce):
    """Return blocks of the key stream (RFC 8439, section 2.3).

    Args:
        key: (8,) uint32, the key's bytes as little-endian words.
        counters: (k,) uint32.
        nonce: (3,) uint32.

    Returns:
        (k, 16) uint32 words.
    """
    count = counters.shape[0]

    def constant(words):
        return jnp.broadcast_to(jnp.asarray(words, jnp.uint32)[:, None], (len(words), count))

    start = (
        constant(_CONSTANTS),
        jnp.broadcast_to(key[:4, None], (4, count)),
        jnp.broadcast_to(key[4:, None], (4, count)),
        jnp.concatenate([counters[None], jnp.broadcast_to(nonce[:, None], (3, count))]),
    )

    def double_round(_, rows):
        a, b, c, d = _quarter_rounds(*rows)
        # Diagonals are columns after rows have been turned.
        b, c, d = (jnp.roll(row, -turn, axis=0) for turn, row in enumerate((b, c, d), start=1))
        a, b, c, d = _quarter_rounds(a, b, c, d)
        b, c, d = (jnp.roll(row, turn, axis=0) for turn, row in enumerate((b, c, d), start=1))
        return a, b, c, d

    rows = jax.lax.fori_loop(0, 10, double_round, start)
    return jnp.concatenate([row + first for row, first in zip(rows, start, strict=True)]).T


def _quarter_rounds(a, b, c, d):
    """Apply the quarter round to the four columns of the state."""
    for first, second in ((16, 12), (8, 7)):
        a = a + b
        d = _rotated(d ^ a, first)
        c = c + d
        b = _rotated(b ^ c, second)
    return a, b, c, d


def _rotated(words, bits):
    return (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))


@jax.jit
def stream(key, counters, purpose):
    """Return blocks of a key's stream for a purpose, given by its nonce."""
    return chacha20_blocks(key, counters, jnp.asarray(purpose, jnp.uint32) * jnp.array([1, 0, 0], jnp.uint32))


def _random_bits(key, bit_width, shape):
    count = math.prod(shape)
    words_each = max(1, bit_width // 32)
    blocks = math.ceil(count * words_each / 16)
    if blocks >= 2**32:
        raise ValueError("chacha20: at most 2^36 random words per key.")
    words = stream(key, jnp.arange(blocks, dtype=jnp.uint32), BITS).reshape(-1)[: count * words_each]
    if bit_width == 64:
        low, high = words[0::2].astype(jnp.uint64), words[1::2].astype(jnp.uint64)
        return (low | (high << np.uint64(32))).reshape(shape)
    kind = {8: jnp.uint8, 16: jnp.uint16, 32: jnp.uint32}[bit_width]
    return words.astype(kind).reshape(shape)  # the low bits of one word each


def _split(key, shape):
    if math.prod(shape) >= 2**32:
        raise ValueError("chacha20: fewer than 2^32 children per key.")
    children = stream(key, jnp.arange(math.prod(shape), dtype=jnp.uint32), SPLIT)[:, :8]
    return children.reshape(*shape, 8)


def _fold_in(key, number):
    return stream(key, jnp.asarray(number, jnp.uint32).reshape(1), FOLD)[0, :8]


def _no_seed(_):
    raise ValueError("chacha20: keys come from the operating system, not from a seed.")


#: For ``jax.random.wrap_key_data(words, impl=CHACHA20)``; it cannot be seeded.
CHACHA20 = define_prng_impl(
    key_shape=(8,), seed=_no_seed, split=_split, random_bits=_random_bits, fold_in=_fold_in, name="chacha20", tag="cha"
)
