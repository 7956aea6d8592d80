"""What a custodian is told of private records: mistakes of the file, records that are no points, where records lie.

All of it is private. Nothing here may fail for any content of a file: what cannot be computed is left out.
"""

import collections
import dataclasses
import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.checks import InputError
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.domains.persons import person_places
from jaxgeodp.io.csv_files import content_of, lines_of, number_in, usual_width
from jaxgeodp.io.layout import PERIODS, Layout, chosen_columns
from jaxgeodp.io.records import Source, in_python_words, python_words
from jaxgeodp.io.tables import arranged, kind_of, read_numbers
from jaxgeodp.manifolds import Manifold
from jaxgeodp.manifolds.tables import from_upper_triangles, symmetric_matrices
from jaxgeodp.traced_programs import keeping_none

NOT_COMPUTED = "(Something about these records could not be computed; look at them yourself.)"
_SHOWN = 12
_SINGULAR = 1e-10
_NEARLY = 1e-7


class Finding(NamedTuple):
    """One thing that the custodian of records should know; private."""

    about: str  #: "lines", "persons", "columns", "landmarks", "points", "records", "copies" or "distances"
    text: str  #: what it is and what to do, in lines


@dataclasses.dataclass(frozen=True, eq=False)
class Findings:
    """What the custodian of records should know before a release. All of it is private, for nobody else's eyes.

    Args:
        manifold: on which the records are.
        n: number of records in the file.
        found: mistakes and facts, in the order in which they are best read.
        usable: (n,), which records are points; others count as the centre of a ball.
        distances: (n,), those from the centre, NaN of records that are no points; None without a centre, or a point.
        radius: of the ball, if it is named.
    """

    manifold: Manifold
    n: int
    found: tuple[Finding, ...]
    usable: np.ndarray
    distances: np.ndarray | None
    radius: float | None


def check(
    path: str | os.PathLike,
    manifold: Manifold | str,
    ball: GeodesicBall | None = None,
    *,
    template: str | os.PathLike | None = None,
    missing: str = "center",
    **options,
) -> Findings:
    """Look at private records for mistakes, as ``jaxgeodp check`` does, for their custodian alone.

    Neither centre nor radius of the ball may be chosen by what it finds: they would tell of the records.

    Args:
        path, manifold, template, missing, options: see `read`.
        ball: the public ball; without it distances are left out.

    Raises:
        ValueError: what `read` refuses, or a ball on another manifold.

    Example:
        >>> import numpy as np
        >>> from jaxgeodp import Sphere
        >>> np.save("directions.npy", [[0.0, 0.0, 1.0], [0.0, 0.6, 0.8], [0.0, np.nan, 1.0]])
        >>> findings = check("directions.npy", Sphere(2))
        >>> findings.usable.tolist(), [finding.about for finding in findings.found]
        ([True, True, False], ['points'])
    """
    with in_python_words():
        source = Source.of(path, manifold, Layout(**options), template, missing)
        told = findings(source, lambda space: None if ball is None else (ball, ball.radius))
    return dataclasses.replace(told, found=tuple(one._replace(text=python_words(one.text)) for one in told.found))


def findings(source: Source, ball_on: Callable[[Manifold], tuple[GeodesicBall, float | None] | None]) -> Findings:
    """Return what is found, with options in the command's words.

    Args:
        source: of one file.
        ball_on: the ball on the manifold of the records, and its radius if that is public; None to leave it out.

    Raises:
        ValueError: what ``jaxgeodp release`` refuses of the file.
    """
    path, layout, prepare = source.path, source.layout, source.prepare
    kind, found = kind_of(source.manifold), []
    # How many records are points is private.
    with np.errstate(all="ignore"), jax.enable_x64(True), keeping_none():
        space, records = source.array()
        if (records.dtype.kind == "c") != (space.dtype_kind == "complex"):
            raise InputError(f"{path}: data must be {space.dtype_kind} numbers on {space}.")
        table, persons = source.table(), source.persons(len(records))
        ball, radius = ball_on(space) or (None, None)
        if ball is not None and ball.manifold.whole != space.whole:
            raise InputError(f"{path}: holds records on {space}, but the ball is on {ball.manifold}.")
        if path.suffix.lower() == ".csv":
            found += _told("lines", _of_the_file, path, layout)
        if persons is not None:
            found += _told("persons", _of_persons, *person_places("--person", persons, len(records)))
        found += _told("columns", _of_columns, table, kind)
        if prepare is not None and prepare.impute:
            found += _told("landmarks", _of_landmarks, prepare.landmarks(table))
        usable = np.asarray(jax.jit(jax.vmap(space.admissible))(jnp.asarray(records)))
        found += _told("points", _of_no_points, records, usable)
        if layout.chart in PERIODS:  # in the unit of the file, with all turns
            table = arranged(read_numbers(path, layout), dataclasses.replace(layout, chart=None))
        if kind in _OF_KIND:
            found += _told("records", _OF_KIND[kind], records, table, layout)
        found += _told("copies", of_copies, records)
        distances = None if ball is None or not usable.any() else _distances(ball, records, usable)
        if distances is not None:
            found += _told("distances", _of_distances, distances[np.isfinite(distances)], radius, len(records))
    return Findings(space, len(records), tuple(found), usable, distances, radius)


def _told(about, finder, *arguments) -> list[Finding]:
    """What a finder says; for no content of a file may it stop the report."""
    said = []
    try:
        said.extend(Finding(about, text) for text in finder(*arguments))
    except Exception:
        said.append(Finding(about, NOT_COMPUTED))
    return said


def _of_the_file(path, layout) -> Iterator[str]:
    """Mistakes in the lines of a .csv file."""
    rows = list(lines_of(content_of(path), layout.delimiter))
    body = rows[1:] if layout.header else rows
    first = 2 if layout.header else 1
    wanted = len(rows[0]) if layout.header else usual_width(collections.Counter(map(len, rows)))
    words = [all(np.isnan(number_in(cell)) for cell in row) for row in rows]
    blank = [k for k, row in enumerate(body, first) if not any(cell.strip() for cell in row)]
    other = [k for k, row in enumerate(body, first) if len(row) != wanted and any(cell.strip() for cell in row)]
    if not layout.header and words[0] and not all(words):
        yield "Line 1 holds no number: if it names the columns, say --header; now it counts as a record, the centre."
    if layout.header and not words[0]:
        yield "Line 1 holds numbers: if it is a record, leave out --header."
    if blank:
        yield f"{_lines(blank)} blank: each counts as a record, the centre; --expect-n refuses such a file."
    if other:
        whose = "header" if layout.header else "others"
        yield f"{_lines(other)} not of {wanted} cells, the width of the {whose}: each counts as the centre."
    if wanted == 1:
        for word, mark in ((";", ";"), ("tab", "\t"), ("space", " "), (",", ",")):
            if mark != layout.delimiter and sum(mark in row[0].strip() for row in body) > len(body) / 2:
                yield f"Most lines hold '{word}' and one cell: if it stands between cells, say --delimiter '{word}'."
                break
    good = [row for row in body if len(row) == wanted]
    names = tuple(cell.strip() for cell in rows[0]) if layout.header else None
    for column in chosen_columns(layout, names, wanted) or range(wanted):
        odd = sum(np.isnan(number_in(row[column])) and bool(row[column].strip()) for row in good)
        comma = sum("," in row[column] for row in good)
        if comma > len(good) / 2:
            yield f"Column {column + 1} has commas in its cells: decimal commas? Write decimal points."
        elif odd:
            yield (
                f"Column {column + 1}: {odd} of {len(good)} cells hold words, which make their records the centre;\n"
                "  if it is no coordinate, choose the others with --columns."
            )


def _of_persons(places, count) -> Iterator[str]:
    sizes = np.bincount(places, minlength=count)
    yield f"{count} persons, with {sizes.min()} to {sizes.max()} records each; labels are compared as they are written."


def _of_columns(table, kind) -> Iterator[str]:
    """Columns that look like something else than coordinates."""
    if table.ndim != 2 or table.dtype.kind == "c":
        return
    for number, column in enumerate(table.T, 1):
        known = column[np.isfinite(column)]
        if len(known) < 3:
            continue
        if np.all(known == np.round(known)) and len(np.unique(known)) == len(known):
            yield f"Column {number} holds {len(known)} distinct whole numbers: an id? Leave it out with --columns."
        elif np.ptp(known) == 0.0 and known[0] not in (0.0, 1.0):
            yield f"Column {number} holds the same number in all records; directions have no such coordinate."
    if kind in ("sphere", "axes") and table.shape[1] in (2, 3):
        low, high = np.nanmin(table, axis=0), np.nanmax(table, axis=0)
        for one, other in itertools.permutations(range(2)):
            small = -90 <= low[one] and high[one] <= 90 and np.nanmax(np.abs(table[:, one])) > 1.5
            if small and -180 <= low[other] and high[other] <= 360 and np.nanmax(np.abs(table[:, other])) > 1.5:
                order = "lat,lon" if one == 0 else "lon,lat"
                yield f"Columns 1 and 2 look like latitude and longitude in degrees: say --degrees {order}."
                return


def _of_landmarks(landmarks) -> Iterator[str]:
    lacking = np.flatnonzero(np.isnan(landmarks).any(axis=(1, 2))) + 1
    if len(lacking):
        yield f"{len(lacking)} records miss landmarks, which the template stands for: records {_numbers(lacking)}."


def _of_no_points(records, usable) -> Iterator[str]:
    """Records that become the centre, by cause."""
    numbers = np.flatnonzero(~usable) + 1
    if not len(numbers):
        return
    flat = records.reshape(len(records), -1)
    missing = np.flatnonzero(~usable & np.isnan(flat).any(axis=1)) + 1
    infinite = np.flatnonzero(~usable & np.isinf(flat).any(axis=1) & ~np.isnan(flat).any(axis=1)) + 1
    rest = np.setdiff1d(numbers, np.concatenate([missing, infinite]))
    causes = ("missing or no numbers", missing), ("infinite", infinite), ("no point of it", rest)
    lines = [f"  {len(found)} {cause}: records {_numbers(found)}." for cause, found in causes if len(found)]
    first = f"{len(numbers)} of {len(records)} records are no points; each counts as the centre:"
    yield "\n".join([first, *lines])


def _of_matrices(records, table, layout) -> Iterator[str]:
    """Symmetry, eigenvalues, conditions, ranks, units, and the other triangle."""
    finite = records[np.isfinite(records).all(axis=(1, 2))]
    if not len(finite):
        return
    sizes = np.abs(finite).max(axis=(1, 2))
    skew = np.abs(finite - finite.swapaxes(1, 2)).max(axis=(1, 2)) > 1e-6 * sizes
    if skew.any():
        yield f"{skew.sum()} matrices are not symmetric; their symmetric part is taken."
    values = _eigenvalues(finite)
    definite = values[:, 0] > 0
    conditions = np.sort(values[definite, -1] / values[definite, 0])
    size = values.shape[1]
    if len(conditions):
        yield f"Condition numbers: {_quantiles(conditions)}."
    typical = np.median(np.abs(values).mean(axis=1))
    if typical > 0 and not 1e-5 < typical < 1e5:
        yield f"Eigenvalues are near {typical:.1g}: units such as volts squared? The centre must have them, too."
    largest = np.abs(values).max(axis=1, keepdims=True)
    negative = values[:, 0] < -_SINGULAR * largest[:, 0]
    if negative.any():
        yield f"{_matrices(negative)} negative eigenvalues; in a release the centre takes their place."
    ranks = (values > _SINGULAR * largest).sum(axis=1)
    low = (ranks < size) & ~negative
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
    elif (close := values[:, 0] < _NEARLY * values[:, -1]).any():
        yield f"{close.sum()} matrices are nearly singular (condition above {1 / _NEARLY:.0e})."
    if table.ndim == 2 and table.dtype.kind != "c" and size > 2:
        own = int((values[:, 0] > 0).sum())
        other = _eigenvalues(np.nan_to_num(symmetric_matrices(from_upper_triangles(table))[1], posinf=0.0, neginf=0.0))
        fits = int((other[:, 0] > 0).sum())
        if fits > own:
            now, better = ("upper", "lower") if layout.triangle == "upper" else ("lower", "upper")
            yield (
                f"As the {now} triangle by rows {own} matrices are positive definite, as the other {fits}:\n"
                f"  say --triangle {better}."
            )


def _eigenvalues(matrices) -> np.ndarray:
    """Those of the symmetric parts (n, k), ascending; of numbers of any size."""
    sizes = np.maximum(np.abs(matrices).max(axis=(1, 2), keepdims=True), np.finfo(float).tiny)
    scaled = matrices / sizes
    return np.linalg.eigvalsh(0.5 * (scaled + scaled.swapaxes(1, 2))) * sizes[:, 0]


def _of_lengths(records, table, layout) -> Iterator[str]:
    lengths = np.linalg.norm(records, axis=1)
    lengths = lengths[np.isfinite(lengths)]
    if len(lengths) and np.max(np.abs(lengths - 1.0)) > 1e-3:
        yield f"Lengths of the vectors: {_quantiles(lengths)}; every record is scaled to length 1."


def _of_directions(records, table, layout) -> Iterator[str]:
    """Lengths, and whether both ends of an axis are among them."""
    yield from _of_lengths(records, table, layout)
    lengths = np.linalg.norm(records, axis=1)
    usable = np.isfinite(lengths) & (lengths > 0)
    units = records[usable] / lengths[usable, None]
    if len(units) < 10:
        return
    along = units @ np.linalg.eigh(units.T @ units)[1][:, -1]
    one, other = np.mean(along > _NEAR_AN_AXIS), np.mean(along < -_NEAR_AN_AXIS)
    if min(one, other) > 0.1 and one + other > 0.8:
        yield (
            f"{100 * min(one, other):.0f} % of the directions are opposite to the others: if x and -x mean the "
            "same,\n  they are axes, say --manifold axes; else their mean says little."
        )


def _of_angles(records, table, layout) -> Iterator[str]:
    """Units that the numbers speak against."""
    largest, turn = np.max(np.abs(table), initial=0.0, where=np.isfinite(table)), PERIODS[layout.chart]
    if largest > 2.0 * turn:
        others = [unit for unit, period in PERIODS.items() if period >= largest / 2.0] or ["degrees"]
        yield f"Angles are up to {largest:.3g} {layout.chart}, several turns: if they are not, say --as {others[0]}."
    elif 0.0 < largest <= turn / 14.0 and len(records) > 9:
        others = [unit for unit, period in PERIODS.items() if largest <= 1.01 * period < turn]
        if others:
            yield (
                f"Angles are at most {largest:.3g} {layout.chart}, a small part of a turn: if they are "
                f"{' or '.join(others)}, say so with --as."
            )


# Of the cosine with the principal axis.
_NEAR_AN_AXIS = 0.5
# By the names of `manifolds.names`.
_OF_KIND = {
    "spd": _of_matrices,
    "sphere": _of_directions,
    "axes": _of_lengths,
    "circle": _of_angles,
    "torus": _of_angles,
}


def of_copies(records) -> Iterator[str]:
    """How many records are there twice."""
    flat = np.ascontiguousarray(records).reshape(len(records), -1)
    flat = flat[~np.isnan(flat).any(axis=1)]
    copies = len(flat) - len(np.unique(flat, axis=0)) if len(flat) else 0
    if copies:
        yield f"{copies} records are copies of others."


def _matrices(which) -> str:
    return "1 matrix has" if which.sum() == 1 else f"{which.sum()} matrices have"


def _distances(ball, records, usable) -> np.ndarray:
    """From the centre; NaN of records that are no points."""

    def distance(record):
        point = ball.manifold.project(record)
        return ball.manifold.dist(ball.manifold.home(jnp.asarray(ball.center, record.dtype)), ball.to_home(point))

    distances = np.full(len(records), np.nan)
    distances[usable] = jax.jit(jax.vmap(distance))(jnp.asarray(records[usable]))
    return distances


def _of_distances(distances, radius, count) -> Iterator[str]:
    if not len(distances):
        return
    yield f"Distances from the centre: {_quantiles(distances)}."
    if radius is None:
        return
    outside = int((distances > radius).sum())
    lines = [f"{outside} of {count} records lie outside radius {radius:g} and are moved to its rim."]
    if outside > 0.1 * len(distances):
        lines.append("So many move the mean towards the centre: what is public may have told too little of such data.")
    farthest = float(np.quantile(distances, 0.95))
    if radius > 3.0 * farthest > 0.0:
        lines.append(f"The radius is {radius / farthest:.1f} times what 95 % of the records need, and so is the noise.")
    if outside == len(distances):
        lines.append("All of them: the centre is not near these data. Is it in their units, and a point of their kind?")
    yield "\n  ".join(lines)


def _quantiles(values) -> str:
    shares = (0, 5, 50, 95, 100)
    return ", ".join(
        f"{share} % {value:.3g}" for share, value in zip(shares, np.percentile(values, shares), strict=True)
    )


def _numbers(numbers: Iterable) -> str:
    numbers = list(numbers)
    return ", ".join(str(k) for k in numbers[:_SHOWN]) + (", ..." if len(numbers) > _SHOWN else "")


def _lines(numbers):
    return f"Line {numbers[0]} is" if len(numbers) == 1 else f"Lines {_numbers(numbers)} are"
