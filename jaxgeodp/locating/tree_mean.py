"""A mean of points in one pass, of the Frechet mean's sensitivity where curvature is nowhere positive.

Two groups of points have the point on the geodesic between their means that divides it as their numbers say; groups of
one point each grow into one of all. Replacing a point x by x' moves the last mean by at most dist(x, x')/n
(docs/mathematics.md, section 16). It depends on the order of the points, and is the Frechet mean in flat space only;
elsewhere it is near enough for a centre, and needs n evaluations where the Frechet mean in a wide ball needs hundreds
of n.
"""

import jax
import jax.numpy as jnp

from jaxgeodp.manifolds import Manifold
from jaxgeodp.manifolds.manifold import real_dtype

# Groups that grow side by side, before they are joined in pairs, are a power of two: at least 2 to this, and more where
# they would grow to more than 16 points.
_LEAST_LEVELS = 8
_IN_A_GROUP = 4


def _levels(n: int) -> int:
    return max(_LEAST_LEVELS, n.bit_length() - _IN_A_GROUP)


def joins_in_a_row(n: int) -> int:
    """Return the largest number of joins between one point and the mean of all n."""
    return -(-n // 2 ** _levels(n)) + _levels(n)


def tree_mean(manifold: Manifold, points: jax.Array) -> jax.Array:
    """Return the mean of n points (n, \\*shape)."""
    n, shape = points.shape[0], points.shape[1:]
    levels = _levels(n)
    wide = 2**levels
    columns = -(-n // wide)
    # Beyond the points there are groups of none.
    padding = jnp.broadcast_to(points[:1], (columns * wide - n, *shape))
    rows = jnp.concatenate([points, padding]).reshape(columns, wide, *shape)
    sizes = (jnp.arange(columns * wide) < n).astype(real_dtype(points)).reshape(columns, wide)
    join = jax.vmap(lambda p, size, q, other: _joined(manifold, p, size, q, other))

    def grown(place, groups):
        means, counts = groups
        return join(means, counts, rows[place], sizes[place])

    def paired(level, groups):
        means, counts = groups
        return join(means, counts, jnp.roll(means, -(2**level), 0), jnp.roll(counts, -(2**level)))

    groups = jax.lax.fori_loop(1, columns, grown, (rows[0], sizes[0]))
    return jax.lax.fori_loop(0, levels, paired, groups)[0][0]


def _joined(manifold, p, size, q, other):
    """The mean of two groups, and the number of its points."""
    share = other / jnp.maximum(size + other, 1.0)
    point = manifold.between(p, q, share)
    return jnp.where((share > 0) & jnp.all(jnp.isfinite(point)), point, p), size + other
