"""What the records of a kind of manifold may be in truth, for their custodian alone: see `findings`."""

import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from jaxgeodp.io.charts import PERIODS, chart_named
from jaxgeodp.io.layout import Layout
from jaxgeodp.io.orders import entries_in
from jaxgeodp.manifolds.tables import correlations, from_upper_triangles, symmetric_matrices

_SINGULAR = 1e-10
_NEARLY = 1e-7
_OF_DIAGONAL = 1e-6
# Of the cosine with the principal axis.
_NEAR_AN_AXIS = 0.5
# A share of specimens that are mirrored by mistake, not by chance.
_MIRRORED = 0.02


class Seen(NamedTuple):
    """Records, and what the file holds of them."""

    records: np.ndarray  #: (n, \*shape)
    usable: np.ndarray  #: (n,), which are points
    table: np.ndarray  #: the columns that make a record, as they are in the file
    places: list[int] | None  #: where these columns stand, from 0; None for all
    names: tuple[str, ...]  #: theirs; none where the file has none
    layout: Layout  #: of the call


def _of_matrices(seen: Seen) -> Iterator[str]:
    """Symmetry, eigenvalues, conditions, ranks, units, and orders of rows."""
    finite = seen.records[np.isfinite(seen.records).all(axis=(1, 2))]
    if not len(finite):
        return
    sizes = np.abs(finite).max(axis=(1, 2))
    skew = np.abs(finite - finite.swapaxes(1, 2)).max(axis=(1, 2)) > 1e-6 * sizes
    if skew.any():
        text = f"{_matrices(skew, 'is', 'are')} not symmetric; in a release the centre takes their place."
        one_sided = [np.all(cut(finite[skew], -1) == 0.0) for cut in (np.tril, lambda x, _: np.triu(x, 1))]
        if finite.shape[1] > 1 and any(one_sided):
            text += "\n  They are triangular: Cholesky factors? Multiply each by its transpose."
        yield text
    values = _eigenvalues(finite[~skew])
    if not len(values):
        return
    definite = values[:, 0] > 0
    conditions = np.sort(values[definite, -1] / values[definite, 0])
    size = values.shape[1]
    if len(conditions):
        yield f"Condition numbers: {quantiles(conditions)}."
    typical = np.median(np.abs(values).mean(axis=1))
    if typical > 0 and not 1e-5 < typical < 1e5:
        yield f"Eigenvalues are near {typical:.1g}: units such as volts squared? The centre must have them, too."
    largest = np.abs(values).max(axis=1, keepdims=True)
    negative = values[:, 0] < -_SINGULAR * largest[:, 0]
    if negative.any():
        yield f"{_matrices(negative)} negative eigenvalues; in a release the centre takes their place."
    yield from _of_ranks(finite[~skew], values, sizes[~skew], largest, negative)
    if seen.table.ndim == 2 and seen.table.dtype.kind != "c" and size > 2:
        yield from _of_orders(seen, int(definite.sum()))


def _of_ranks(finite, values, sizes, largest, negative) -> Iterator[str]:
    size = values.shape[1]
    ranks = (values > _SINGULAR * largest).sum(axis=1)
    low = (ranks < size) & ~negative
    close = ~negative & ~low & (values[:, 0] < _NEARLY * values[:, -1])
    if low.any():
        common = np.bincount(ranks[low]).argmax()
        text = f"{_matrices(low)} rank {common} of {size}, or less: rounding decides what becomes of that.\n"
        ones = np.ones(size) / np.sqrt(size)
        if np.median(np.abs(finite[low] @ ones).max(axis=1) / sizes[low]) < 1e-6:
            text += (
                "  Their rows sum to zero: signals with an average reference? Take out a channel, or regularise all\n"
            )
            yield text + "  matrices by a public rule, such as adding a public multiple of the identity."
        else:
            yield text + "  Regularise all matrices by a public rule, such as adding a public multiple of the identity."
    elif close.any():
        yield f"{_matrices(close, 'is', 'are')} nearly singular (condition above {1 / _NEARLY:.0e})."


def _of_orders(seen, own) -> Iterator[str]:
    """Orders of rows by which more matrices are positive definite, where no names say one."""
    table = np.nan_to_num(seen.table, posinf=0.0, neginf=0.0)
    width, size = table.shape[1], seen.records.shape[1]
    if entries_in(seen.names) is not None or width != size * (size + 1) // 2:
        return
    pairs = [(row, column) for row in range(size) for column in range(row + 1)]
    places = {pair: place for place, pair in enumerate(pairs)}
    first = range(size)
    strict = [(row, column) for column in range(size) for row in range(column + 1, size)]  # x12, x13, x23, ...
    others = {"the upper triangle by rows": (from_upper_triangles(np.arange(width)[None])[0], "--triangle upper")}
    for words, off in (
        ("the diagonal, then the upper triangle by rows", strict),
        ("the diagonal, then the lower triangle by rows", sorted(strict)),
        ("the diagonal, then 23, 13, 12 (Voigt)", strict[::-1] if size == 3 else []),
    ):
        if off:
            order = np.empty(width, int)
            order[[places[k, k] for k in first]] = first
            order[[places[pair] for pair in off]] = size + np.arange(len(off))
            columns_of_file = [(place if seen.places is None else seen.places[place]) + 1 for place in order]
            others[words] = order, f"--columns {','.join(map(str, columns_of_file))}"
    lower = "the lower triangle by rows"
    now = "the upper triangle by rows" if seen.layout.triangle == "upper" else lower
    others[lower] = np.arange(width), "--triangle lower"
    fits = {words: _definite(symmetric_matrices(table[:, order])[1]) for words, (order, _) in others.items()}
    best = max(fits.values())
    yield from _of_scaled_diagonals(table, [places[k, k] for k in first], max(own, best))
    if best > own:
        good = [f"  as {words} {best}: say {others[words][1]}" for words, count in fits.items() if count == best]
        yield "\n".join([f"As {now} {own} of {len(table)} matrices are positive definite; of other orders,", *good])
    off_diagonal = int((np.sqrt(8 * width + 1) + 1) / 2)
    if off_diagonal * (off_diagonal - 1) / 2 == width and np.abs(table).max() <= 1.0:
        fitting = _definite(correlations(table)[1])
        if fitting > max(own, best):
            yield (
                f"As what is off the diagonal of correlations {fitting} of {len(table)} are positive definite: say "
                "--manifold correlations."
            )


def _of_scaled_diagonals(table, diagonal, own) -> Iterator[str]:
    """Lower triangles whose diagonals are divided by sqrt(2), so that the norm of vectors is that of matrices."""
    scaled = table.copy()
    scaled[:, diagonal] *= np.sqrt(2.0)
    ones = np.abs(np.median(scaled[:, diagonal], axis=0) - 1.0).max() < _OF_DIAGONAL
    count = _definite(symmetric_matrices(scaled)[1])
    if count > own or (ones and count >= own):
        yield (
            f"With the diagonal times sqrt(2) {count} of {len(table)} matrices are positive definite"
            f"{', with ones on the diagonal' if ones else ''}: rows as nilearn\n  writes them (vectorize=True)? "
            "Turn them back by its vec_to_sym_matrix, or multiply those columns by 1.414214."
        )


def _definite(matrices) -> int:
    return int((_eigenvalues(matrices)[:, 0] > 0).sum())


def _of_correlations(seen: Seen) -> Iterator[str]:
    """Covariances, ranks and signs of the eigenvalues."""
    finite = seen.records[np.isfinite(seen.records).all(axis=(1, 2))]
    if not len(finite):
        return
    off = np.abs(np.diagonal(finite, axis1=1, axis2=2) - 1.0).max(axis=1) > _OF_DIAGONAL
    if off.mean() > 0.5:
        yield "Their diagonals are not 1: if they are covariances, say --as covariance, which scales each."
    if np.abs(finite[~off]).max(initial=0.0) > 1.0 + _OF_DIAGONAL:
        yield "Some numbers are larger than 1: rows that hold the diagonal, too? Choose the others with --columns."
    values = _eigenvalues(finite[~off])
    yield from _of_other_triangle(seen, values)
    negative = values[:, 0] < -_NEARLY
    if negative.any():
        yield f"{_matrices(negative)} negative eigenvalues; in a release the centre takes their place."
    low = (values[:, 0] < _SINGULAR * values[:, -1]) & ~negative
    if low.any():
        yield (
            f"{_matrices(low)} less than full rank, as of fewer time points than variables; the centre takes their "
            "place:\n  shrink all matrices towards the identity by a public amount, such as .9 C + .1 I."
        )


def _of_other_triangle(seen, values) -> Iterator[str]:
    """Rows of what is off the diagonal in the other order, or with the diagonal."""
    table = np.nan_to_num(seen.table, posinf=0.0, neginf=0.0)
    size = seen.records.shape[1]
    if table.ndim != 2 or table.shape[1] != size * (size - 1) // 2 or entries_in(seen.names) is not None:
        return
    other = from_upper_triangles(table, diagonal=False)
    if seen.layout.triangle == "upper":  # its own order, seen from the other
        other = table
    fits, own = _definite(correlations(other)[1]), int((values[:, 0] > 0).sum())
    if fits > own:
        better = "lower" if seen.layout.triangle == "upper" else "upper"
        yield (
            f"{own} of {len(table)} matrices are positive definite; as the other triangle by rows {fits}: say "
            f"--triangle {better}."
        )
    if table.shape[1] > 2 and np.all(table[:, 0] == table[0, 0]) and np.all(table[:, 2] == table[0, 0]):
        yield "Columns 1 and 3 hold one number: the diagonal, too? Choose the others with --columns."


def _eigenvalues(matrices) -> np.ndarray:
    """Those of the symmetric parts (n, k), ascending; of numbers of any size."""
    sizes = np.maximum(np.abs(matrices).max(axis=(1, 2), keepdims=True, initial=0.0), np.finfo(float).tiny)
    scaled = matrices / sizes
    return np.linalg.eigvalsh(0.5 * (scaled + scaled.swapaxes(1, 2))) * sizes[:, 0]


def _of_lengths(seen: Seen) -> Iterator[str]:
    if seen.layout.angles is not None:
        largest = np.max(np.abs(seen.table), initial=0.0, where=np.isfinite(seen.table))
        if 0.0 < largest <= 1.01 * PERIODS["radians"] and len(seen.table) > 9:
            yield f"Angles are at most {largest:.3g}: are they radians? Degrees are read; convert them."
        yield from _of_the_other_order(seen)
        return
    lengths = np.linalg.norm(seen.records, axis=1)
    lengths = lengths[np.isfinite(lengths)]
    if len(lengths) and np.max(np.abs(lengths - 1.0)) > 1e-3:
        yield f"Lengths of the vectors: {quantiles(lengths)}; every record is scaled to length 1."
    yield from _of_places(seen.table)


def _of_the_other_order(seen: Seen) -> Iterator[str]:
    """Angles that are out of range in their order, but not in the other."""
    other = ",".join(reversed(seen.layout.angles or ()))
    fits = int(np.isfinite(chart_named(other).points(seen.table)).all(axis=1).sum())
    if fits > seen.usable.sum():
        yield (
            f"As {seen.layout.chart} {seen.usable.sum()} of {len(seen.table)} records have angles in range, in the "
            f"other order {fits}: say --degrees {other}."
        )


def _of_places(table) -> Iterator[str]:
    """Latitudes and longitudes among coordinates."""
    if table.ndim != 2 or table.shape[1] not in (2, 3):
        return
    low, high = np.nanmin(table, axis=0), np.nanmax(table, axis=0)
    for one, other in itertools.permutations(range(2)):
        small = -90 <= low[one] and high[one] <= 90 and np.nanmax(np.abs(table[:, one])) > 1.5
        if small and -180 <= low[other] and high[other] <= 360 and np.nanmax(np.abs(table[:, other])) > 1.5:
            order = "lat,lon" if one == 0 else "lon,lat"
            yield f"Columns 1 and 2 look like latitude and longitude in degrees: say --degrees {order}."
            return


def _of_directions(seen: Seen) -> Iterator[str]:
    """Lengths, and whether both ends of an axis are among them."""
    yield from _of_lengths(seen)
    lengths = np.linalg.norm(seen.records, axis=1)
    usable = np.isfinite(lengths) & (lengths > 0)
    units = seen.records[usable] / lengths[usable, None]
    if len(units) < 10:
        return
    along = units @ np.linalg.eigh(units.T @ units)[1][:, -1]
    one, other = np.mean(along > _NEAR_AN_AXIS), np.mean(along < -_NEAR_AN_AXIS)
    if min(one, other) > 0.1 and one + other > 0.8:
        of_four = "; quaternions are --manifold rotations --as wxyz or xyzw" if units.shape[1] == 4 else ""
        yield (
            f"{100 * min(one, other):.0f} % of the directions are opposite to the others: if x and -x mean the "
            f"same,\n  they are axes, say --manifold axes{of_four}; else their mean says little."
        )


def _of_angles(seen: Seen) -> Iterator[str]:
    """Units that the numbers speak against."""
    if seen.table.ndim == 2 and seen.table.shape[1] == 2 and np.all(np.abs(np.hypot(*seen.table.T) - 1.0) < 1e-3):
        yield "The two columns are cosines and sines: of one angle? Then compute it, or say --manifold 'sphere(1)'."
    unit, table = seen.layout.chart or "radians", seen.table
    largest, turn = np.max(np.abs(table), initial=0.0, where=np.isfinite(table)), PERIODS[unit]
    if largest > 2.0 * turn:
        others = [unit for unit, period in PERIODS.items() if period >= largest / 2.0] or ["degrees"]
        yield f"Angles are up to {largest:.3g} {unit}, several turns: if they are not, say --as {others[0]}."
    elif 0.0 < largest <= turn / 14.0 and len(table) > 9:
        others = [unit for unit, period in PERIODS.items() if largest <= 1.01 * period < turn]
        if others:
            yield (
                f"Angles are at most {largest:.3g} {unit}, a small part of a turn: if they are "
                f"{' or '.join(others)}, say so with --as."
            )


def _of_hyperboloids(seen: Seen) -> Iterator[str]:
    """Charts that the rows may be of, where most are no points as they are read."""
    table = seen.table[np.isfinite(seen.table).all(axis=1)] if seen.table.ndim == 2 else np.empty((0, 2))
    if not len(table) or seen.usable.mean() > 0.5:
        return
    last = table[:, -1] ** 2 - np.sum(table[:, :-1] ** 2, axis=1)
    first = table[:, 0] ** 2 - np.sum(table[:, 1:] ** 2, axis=1)
    text = "Most rows are not on the hyperboloid x0 = sqrt(1 + x1^2 + ...): "
    if _all_alike(last):
        width = table.shape[1]
        yield f"{text}the last column is x0: say --columns {','.join(map(str, [width, *range(1, width)]))}."
    elif _all_alike(first):
        size = float(np.sqrt(np.median(first)))
        yield f"{text}they are on one of curvature {-1 / size**2:.4g}: divide all numbers by {size:.6g}."
    elif np.all(np.sum(table**2, axis=1) < 1.0):
        yield (
            f"{text}they lie in the unit ball, as points of the Poincare or the Klein ball do: say --as poincare or "
            "--as\n  klein, whichever they are; distances differ by a factor of up to 2, and the numbers do not tell."
        )
    elif np.all(table[:, -1] > 0.0):
        yield f"{text}the last column is positive: heights of the half-space? Then say --as half-space."
    else:
        yield f"{text}see --as."


def _all_alike(squares) -> bool:
    """Positive, and the same up to rounding."""
    middle = float(np.median(squares))
    return middle > 0.0 and bool(np.all(np.abs(squares - middle) < 1e-3 * np.maximum(middle, 1.0)))


def _of_rotations(seen: Seen) -> Iterator[str]:
    """What matrices are that are no rotations, and radians that are said to be degrees."""
    if (seen.layout.chart or "").startswith("euler") and (seen.layout.chart or "").endswith("degrees"):
        largest = np.max(np.abs(seen.table[:, -3:]), initial=0.0, where=np.isfinite(seen.table[:, -3:]))
        if largest <= 1.01 * PERIODS["radians"]:
            yield f"Angles are at most {largest:.3g}: are they radians? Degrees are read, as --as says."
    blocks = seen.records[..., :3]
    finite = np.isfinite(blocks).all(axis=(1, 2))
    blocks, usable = blocks[finite], seen.usable[finite]
    if not len(blocks) or usable.mean() > 0.5:
        return
    gram = blocks.swapaxes(1, 2) @ blocks
    scales = np.trace(gram, axis1=1, axis2=2) / 3.0
    scaled = np.abs(gram - scales[:, None, None] * np.eye(3)).max(axis=(1, 2)) < 0.02 * scales
    if np.mean(scaled & (np.linalg.det(blocks) < 0.0)) > 0.5:
        yield "Most matrices are reflections: their determinant is negative. Is an axis counted the other way?"
    elif scaled.mean() > 0.5:
        scale = np.sqrt(np.median(scales))
        yield f"Most matrices are rotations times a scale, {scale:.4g} in the middle: divide by it."
    else:
        yield "Most matrices are no rotations: their columns are not orthonormal. Nine numbers of something else?"


def _of_shapes(seen: Seen) -> Iterator[str]:
    """Specimens that are nearer to the others when they are reflected, and landmarks at -1, -1."""
    if seen.table.ndim == 3:
        at_minus_one = np.any(np.all(seen.table == -1.0, axis=2), axis=1).sum()
        if at_minus_one:
            yield f"{at_minus_one} specimens have landmarks at -1, -1: missing ones, as tpsDig writes them? Write NA."
    shapes = seen.records[seen.usable]
    if len(shapes) < 10:
        return
    if shapes.dtype.kind == "c":
        shapes = np.stack([np.real(shapes), np.imag(shapes)], axis=-1)
    shapes = shapes - shapes.mean(axis=1, keepdims=True)
    shapes = shapes / np.linalg.norm(shapes, axis=(1, 2), keepdims=True)
    left, values, right = np.linalg.svd(np.einsum("ki,nkj->nij", shapes[0], shapes))
    signs = np.sign(np.linalg.det(left @ right))
    same = values[:, :-1].sum(axis=1) + signs * values[:, -1]
    other = values[:, :-1].sum(axis=1) - signs * values[:, -1]
    near, far = (np.arccos(np.clip(cosine, -1.0, 1.0)) for cosine in (same, other))
    mirrored = far < 0.5 * near
    clear = mirrored | (near < 0.5 * far)
    count = min(int(mirrored.sum()), len(shapes) - int(mirrored.sum()))
    if count >= max(1, _MIRRORED * len(shapes)) and clear.mean() > 0.8:
        yield (
            f"{count} of {len(shapes)} specimens look mirrored: reflected they are nearer to the others. Left and "
            "right,\n  or an axis that is counted from the other end? Reflect them before, in the file."
        )


def _matrices(which, one: str = "has", many: str = "have") -> str:
    return f"1 matrix {one}" if which.sum() == 1 else f"{which.sum()} matrices {many}"


def quantiles(values) -> str:
    """Five of them, in words."""
    shares = (0, 5, 50, 95, 100)
    return ", ".join(
        f"{share} % {value:.3g}" for share, value in zip(shares, np.percentile(values, shares), strict=True)
    )


#: By the names of `manifolds.names`.
OF_KIND: dict[str, Callable[[Seen], Iterator[str]]] = {
    "spd": _of_matrices,
    "logeuclidean": _of_matrices,
    "logcholesky": _of_matrices,
    "correlations": _of_correlations,
    "sphere": _of_directions,
    "axes": _of_lengths,
    "circle": _of_angles,
    "torus": _of_angles,
    "hyperbolic": _of_hyperboloids,
    "rotations": _of_rotations,
    "rigidmotions": _of_rotations,
    "shapes": _of_shapes,
    "shapes3d": _of_shapes,
}
