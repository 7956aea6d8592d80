"""Checks for misread symmetric matrices; see `doubts`."""

from collections.abc import Iterator

import numpy as np

from jaxgeodp.io.orders import stated_entries
from jaxgeodp.io.seen import Seen, quantiles
from jaxgeodp.manifolds.tables import correlations, from_upper_triangles, symmetric_matrices

_SINGULAR = 1e-10
_NEARLY = 1e-7
_OF_DIAGONAL = 1e-6


def of_matrices(seen: Seen) -> Iterator[str]:
    """Yield doubts about symmetry, eigenvalues, conditions, ranks, units and the order of entries."""
    finite = seen.records[np.isfinite(seen.records).all(axis=(1, 2))]
    if not len(finite):
        return
    sizes = np.abs(finite).max(axis=(1, 2))
    skew = np.abs(finite - finite.swapaxes(1, 2)).max(axis=(1, 2)) > 1e-6 * sizes
    if skew.any():
        text = f"{_matrices(skew, 'is', 'are')} not symmetric; in a release the centre takes their place."
        upper, lower = np.all(np.tril(finite[skew], -1) == 0.0), np.all(np.triu(finite[skew], 1) == 0.0)
        if finite.shape[1] > 1 and (upper or lower):
            product = "R'R, with R upper" if upper else "L L', with L lower"
            text += f"\n  They are triangular: Cholesky factors? Multiply them: {product}, as programs write them."
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
    if seen.table.ndim == 2 and seen.table.dtype.kind != "c" and size > 1:
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
    """Yield entry orders under which more matrices are positive definite, unless column names state one."""
    table = np.nan_to_num(seen.table, posinf=0.0, neginf=0.0)
    width, size = table.shape[1], seen.records.shape[1]
    if stated_entries(seen.names) is not None or width != size * (size + 1) // 2:
        return
    pairs = [(row, column) for row in range(size) for column in range(row + 1)]
    places = {pair: place for place, pair in enumerate(pairs)}
    first = range(size)
    strict = [(row, column) for column in range(size) for row in range(column + 1, size)]  # x12, x13, x23, ...
    others = {}
    if size > 2:
        others["the upper triangle by rows"] = from_upper_triangles(np.arange(width)[None])[0], "--triangle upper"
    for words, off in (
        ("the diagonal, then the upper triangle by rows", strict),
        ("the diagonal, then the lower triangle by rows", sorted(strict) if size > 3 else []),
        ("the diagonal, then 23, 13, 12 (Voigt)", strict[::-1] if size == 3 else []),
        ("the diagonal, then 12, 23, 13 (anisotropy)", [strict[0], strict[2], strict[1]] if size == 3 else []),
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
    equal = [words for words, count in fits.items() if count == own == best and words != now]
    if equal and own == len(table) and not _is_said(seen):
        yield (
            f"All are positive definite as {now}, and as well as {'; as '.join(equal)}:\n  the numbers do not tell "
            "which it is, but who wrote the file does."
        )
    off_diagonal = int((np.sqrt(8 * width + 1) + 1) / 2)
    if off_diagonal * (off_diagonal - 1) / 2 == width and np.abs(table).max() <= 1.0:
        fitting = _definite(correlations(table)[1])
        if fitting > max(own, best):
            yield (
                f"As what is off the diagonal of correlations {fitting} of {len(table)} are positive definite: say "
                "--manifold correlations."
            )


def _is_said(seen) -> bool:
    """Return whether the call states an order of the entries."""
    return seen.layout.triangle is not None or (seen.places is not None and seen.places != sorted(seen.places))


def _of_scaled_diagonals(table, diagonal, own) -> Iterator[str]:
    """Yield a doubt if diagonals seem divided by sqrt(2), as in some norm-preserving vectorisations."""
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


def of_correlations(seen: Seen) -> Iterator[str]:
    """Yield doubts about unit diagonals, entry order, eigenvalues and rank."""
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
    """Yield a doubt if rows seem to hold the other triangle, or also the diagonal."""
    table = np.nan_to_num(seen.table, posinf=0.0, neginf=0.0)
    size = seen.records.shape[1]
    if table.ndim != 2 or table.shape[1] != size * (size - 1) // 2 or stated_entries(seen.names) is not None:
        return
    other = from_upper_triangles(table, diagonal=False)
    if seen.layout.triangle == "upper":  # its own order, seen from the other
        other = table
    fits, own = _definite(correlations(other)[1]), int((values[:, 0] > 0).sum())
    if fits == own == len(table) and size > 3 and not _is_said(seen):
        yield (
            "All are positive definite as the other triangle by rows, too (--triangle): the numbers do not tell which "
            "it is.\n  R's lower.tri and MATLAB's tril go down columns, which is --triangle upper."
        )
    if fits > own:
        better = "lower" if seen.layout.triangle == "upper" else "upper"
        yield (
            f"{own} of {len(table)} matrices are positive definite; as the other triangle by rows {fits}: say "
            f"--triangle {better}."
        )
    if table.shape[1] > 2 and np.all(table[:, 0] == table[0, 0]) and np.all(table[:, 2] == table[0, 0]):
        yield "Columns 1 and 3 hold one number: the diagonal, too? Choose the others with --columns."


def _eigenvalues(matrices) -> np.ndarray:
    """Return the eigenvalues (n, k), ascending, of the symmetric parts, scaled against overflow."""
    sizes = np.maximum(np.abs(matrices).max(axis=(1, 2), keepdims=True, initial=0.0), np.finfo(float).tiny)
    scaled = matrices / sizes
    return np.linalg.eigvalsh(0.5 * (scaled + scaled.swapaxes(1, 2))) * sizes[:, 0]


def _matrices(which, one: str = "has", many: str = "have") -> str:
    return f"1 matrix {one}" if which.sum() == 1 else f"{which.sum()} matrices {many}"
