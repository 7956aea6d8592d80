"""Private findings for the custodian of records: file errors, invalid records, distances from the centre.

All of it is private. Nothing here may fail for any content of a file: what cannot be computed is left out.
"""

import collections
import dataclasses
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.checks import InputError
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.domains.persons import person_places
from jaxgeodp.io.csv_files import TABLES, opened, usual_width
from jaxgeodp.io.doubts import OF_KIND
from jaxgeodp.io.label_orders import of_orders_in_files
from jaxgeodp.io.layout import chosen_columns
from jaxgeodp.io.records import Source, in_python_words, layout_of, python_words
from jaxgeodp.io.seen import Seen, quantiles
from jaxgeodp.io.tables import columns_of, kind_of, read_numbers
from jaxgeodp.io.text_files import suffix_of
from jaxgeodp.manifolds import Manifold
from jaxgeodp.traced_programs import keeping_none

NOT_COMPUTED = "(Something about these records could not be computed; look at them yourself.)"
_SHOWN = 12
# Movements below this, in radii, are rounding.
_BEYOND = 1e-6


class Finding(NamedTuple):
    """One private finding for the custodian of records."""

    about: str  #: "lines", "files", "persons", "columns", "landmarks", "points", "records", "copies" or "distances"
    text: str  #: what it is and what to do, in lines


@dataclasses.dataclass(frozen=True, eq=False)
class Findings:
    """Findings for the custodian before a release. All are private, for the custodian alone.

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
    """Check private records for errors, as ``jaxgeodp check`` does, for their custodian alone.

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
        source = Source.of(path, manifold, layout_of(options), template, missing)
        told = findings(source, lambda space: None if ball is None else (ball, ball.radius))
    return dataclasses.replace(told, found=tuple(one._replace(text=python_words(one.text)) for one in told.found))


def findings(source: Source, ball_on: Callable[[Manifold], tuple[GeodesicBall, float | None] | None]) -> Findings:
    """Return all findings, with options in the command's words.

    Args:
        source: of one file.
        ball_on: the ball on the manifold of the records, and its radius if that is public; None to leave it out.

    Raises:
        ValueError: what ``jaxgeodp release`` refuses of the file.
    """
    path, layout, prepare = source.path, source.layout, source.prepare
    kind, found = kind_of(source.manifold), []
    # How many records are points is private.
    with warnings.catch_warnings(), np.errstate(all="ignore"), jax.enable_x64(True), keeping_none():
        warnings.simplefilter("ignore")
        space, records = source.array()
        if (records.dtype.kind == "c") != (space.dtype_kind == "complex"):
            raise InputError(f"{path}: data must be {space.dtype_kind} numbers on {space}.")
        table, persons = source.table(), source.persons(len(records))
        ball, radius = ball_on(space) or (None, None)
        if ball is not None and ball.manifold.whole != space.whole:
            raise InputError(f"{path}: holds records on {space}, but the ball is on {ball.manifold}.")
        if suffix_of(path) in TABLES and path.is_file():
            found += _told("lines", _of_the_file, path, layout)
        if persons is not None:
            found += _told("persons", _of_persons, *person_places("--person", persons, len(records)))
        found += _told("columns", _of_columns, table)
        if prepare is not None and prepare.impute:
            found += _told("landmarks", _of_landmarks, prepare.landmarks(table))
        usable = np.asarray(jax.jit(jax.vmap(space.admissible))(jnp.asarray(records)))
        as_written = columns_of(read_numbers(path, layout), layout)[0] if layout.chart else None
        found += _told("points", _of_no_points, records, usable, as_written, layout)
        if kind in OF_KIND:
            seen = Seen(records, usable, *columns_of(read_numbers(path, layout), layout), layout)
            found += _told("records", OF_KIND[kind], seen)
        if path.is_dir() and not usable.all():
            found += _told("files", _of_files, path, usable)
        if path.is_dir():
            found += _told("files", of_orders_in_files, path)
        found += _told("copies", of_copies, records)
        distances = None if ball is None or not usable.any() else _distances(ball, records, usable)
        if distances is not None:
            found += _told("distances", _of_distances, distances[np.isfinite(distances)], radius, len(records))
            found += _told("distances", _of_the_unconfined, ball, records, usable)
    return Findings(space, len(records), tuple(found), usable, distances, radius)


def _told(about, finder, *arguments) -> list[Finding]:
    """Return a finder's reports as findings; no content of a file may stop the report."""
    said = []
    try:
        said.extend(Finding(about, text) for text in finder(*arguments))
    except Exception:
        said.append(Finding(about, NOT_COMPUTED))
    return said


def _of_the_file(path, layout) -> Iterator[str]:
    """Yield errors in the lines of a text table."""
    text = opened(path, layout.header, layout.delimiter, layout.decimal)
    body, first, names = list(text.rows()), text.first, text.names
    wanted = usual_width(collections.Counter(map(len, body))) if names is None else len(names)
    words = [all(np.isnan(text.number(cell)) for cell in row) for row in body]
    comments = [k for k, row in enumerate(body, first) if row[0].lstrip().startswith("#")]
    blank = [k for k, row in enumerate(body, first) if not any(cell.strip() for cell in row)]
    other = [k for k, row in enumerate(body, first) if len(row) != wanted and any(cell.strip() for cell in row)]
    if comments:
        yield (
            f"{_begin(comments)} with '#', a record each, the centre: with --header those before the names of columns\n"
            "  are left out."
        )
    elif names is None and words[0] and not all(words):
        yield (
            f"Line {first} holds no number: if it names the columns, say --header; now it counts as a record, the "
            "centre."
        )
    if names is not None and not all(np.isnan(text.number(cell)) for cell in names):
        yield f"Line {first - 1} holds numbers: if it is a record, leave out --header."
    if blank:
        yield f"{_lines(blank)} blank: each counts as a record, the centre; --expect-n refuses such a file."
    if other:
        whose = "others" if names is None else "header"
        yield f"{_lines(other)} not of {wanted} cells, the width of the {whose}: each counts as the centre."
    if wanted == 1:
        for word, mark in ((";", ";"), ("tab", "\t"), ("space", " "), (",", ",")):
            if mark != text.delimiter and sum(mark in row[0].strip() for row in body) > len(body) / 2:
                yield f"Most lines hold '{word}' and one cell: if it stands between cells, say --delimiter '{word}'."
                break
    good = [row for row in body if len(row) == wanted]
    with_commas, with_words, chosen = [], {}, chosen_columns(layout, names, wanted) or range(wanted)
    empty = [column + 1 for column in chosen if good and not any(row[column].strip() for row in good)]
    if empty and wanted > 1:
        yield f"{_columns(empty)} empty cells only: a delimiter at the end of lines? Choose the others with --columns."
    for column in chosen:
        odd = sum(np.isnan(text.number(row[column])) and bool(row[column].strip()) for row in good)
        comma = sum("," in row[column] for row in good)
        if comma > len(good) / 2 and text.decimal == ".":
            with_commas.append(column + 1)
        elif odd:
            with_words[column + 1] = odd
    if with_commas:
        quoted = " --delimiter ','" if text.delimiter == "," else ""
        yield f"{_columns(with_commas)} commas in the cells: if they are decimal commas, say --decimal ','{quoted}."
    if with_words:
        counts = f"{_numbers(with_words.values())} of {len(good)}"
        yield (
            f"{_columns(with_words)} words in {counts} cells, which make their records the centre; if these are no\n"
            "  coordinates, choose the others with --columns."
        )


def _of_persons(places, count) -> Iterator[str]:
    sizes = np.bincount(places, minlength=count)
    yield f"{count} persons, with {sizes.min()} to {sizes.max()} records each; labels are compared as they are written."


def _of_columns(table) -> Iterator[str]:
    """Yield doubts about columns that look like ids, or are constant."""
    if table.ndim != 2 or table.dtype.kind == "c":
        return
    whole, constant = [], []
    for number, column in enumerate(table.T, 1):
        known = column[np.isfinite(column)]
        if len(known) < 3:
            continue
        if np.all(known == np.round(known)) and len(np.unique(known)) == len(known):
            whole.append(number)
        elif np.ptp(known) == 0.0 and known[0] not in (0.0, 1.0):
            constant.append(number)
    if whole:
        yield f"{_columns(whole)} whole numbers, all of them distinct: an id? Leave it out with --columns."
    if constant:
        yield f"{_columns(constant)} one number in all records; directions have no such coordinate."


def _of_landmarks(landmarks) -> Iterator[str]:
    lacking = np.flatnonzero(np.isnan(landmarks).any(axis=(1, 2))) + 1
    if len(lacking):
        yield f"{len(lacking)} records miss landmarks, which the template stands for: records {_numbers(lacking)}."


def _of_no_points(records, usable, as_written, layout) -> Iterator[str]:
    """Yield counts of records that become the centre, by cause."""
    numbers = np.flatnonzero(~usable) + 1
    if not len(numbers):
        return
    flat = records.reshape(len(records), -1)
    no_number = np.isnan(flat).any(axis=1)
    unread = np.zeros(len(records), bool)
    if as_written is not None and len(as_written) == len(records):  # what is no point in the way of --as is NaN
        unread = no_number & np.isfinite(as_written).all(axis=tuple(range(1, as_written.ndim)))
    beyond = np.flatnonzero(~usable & unread) + 1
    missing = np.flatnonzero(~usable & no_number & ~unread) + 1
    infinite = np.flatnonzero(~usable & np.isinf(flat).any(axis=1) & ~np.isnan(flat).any(axis=1)) + 1
    rest = np.setdiff1d(numbers, np.concatenate([missing, infinite, beyond]))
    of_chart = "of angles out of range" if layout.angles else f"no point as {layout.chart}"
    causes = ("missing or no numbers", missing), ("infinite", infinite), (of_chart, beyond), ("no point of it", rest)
    lines = [f"  {len(found)} {cause}: records {_numbers(found)}." for cause, found in causes if len(found)]
    first = f"{len(numbers)} of {len(records)} records are no points; each counts as the centre:"
    yield "\n".join([first, *lines])


def of_copies(records) -> Iterator[str]:
    """Yield the number of duplicate records."""
    flat = np.ascontiguousarray(records).reshape(len(records), -1)
    flat = flat[~np.isnan(flat).any(axis=1)]
    copies = len(flat) - len(np.unique(flat, axis=0)) if len(flat) else 0
    if copies:
        yield f"{copies} records are copies of others."


def _distances(ball, records, usable) -> np.ndarray:
    """Return the distances (n,) of records from the centre; NaN for invalid records."""

    distances = np.full(len(records), np.nan)
    own = jax.vmap(lambda record: ball.distance(ball.manifold.project(record)))
    distances[usable] = jax.jit(own)(jnp.asarray(records[usable]))
    return distances


def _of_distances(distances, radius, count) -> Iterator[str]:
    if not len(distances):
        return
    yield f"Distances from the centre: {quantiles(distances)}."
    if radius is None:
        return
    outside = int((distances > radius).sum())
    lines = [f"{outside} of {count} records lie outside radius {radius:g} and are moved to its rim."]
    if outside > 0.1 * len(distances):
        lines.append(
            "So many move the mean towards the centre. The ball may not be chosen anew by these records: release with "
            "--center auto --radius auto, which pays for a ball, or in this one, and say that it is a mean of clipped "
            "records."
        )
    farthest = float(np.quantile(distances, 0.95))
    if radius > 3.0 * farthest > 0.0:
        lines.append(f"The radius is {radius / farthest:.1f} times what 95 % of the records need, and so is the noise.")
    if outside == len(distances):
        lines.append("All of them: the centre is not near these data. Is it in their units, and a point of their kind?")
    yield "\n  ".join(lines)


def _of_the_unconfined(ball, records, usable) -> Iterator[str]:
    manifold = ball.manifold
    if manifold.of_values == manifold:
        return

    def beyond(record):
        point = manifold.project(record)
        moved = manifold.confined(jnp.asarray(ball.center, record.dtype), point)
        return manifold.whole.dist(point, moved) > _BEYOND * ball.radius

    count = int(jax.jit(jax.vmap(beyond))(jnp.asarray(records[usable])).sum())
    if count:
        of_all = f"{count} of {len(records)}"
        yield f"{of_all} records have angles over a quarter turn from the centre's; they count as a quarter."


def _numbers(numbers: Iterable) -> str:
    numbers = list(numbers)
    return ", ".join(str(k) for k in numbers[:_SHOWN]) + (", ..." if len(numbers) > _SHOWN else "")


def _of_files(path, usable) -> Iterator[str]:
    names = [file.name for file in sorted(path.iterdir()) if not file.name.startswith(".")]
    yield f"The files of records that are no points: {_numbers(np.array(names)[~usable])}."


def _columns(numbers):
    numbers = list(numbers)
    return f"Column {numbers[0]} has" if len(numbers) == 1 else f"Columns {_numbers(numbers)} have"


def _begin(numbers):
    return f"Line {numbers[0]} begins" if len(numbers) == 1 else f"Lines {_numbers(numbers)} begin"


def _lines(numbers):
    return f"Line {numbers[0]} is" if len(numbers) == 1 else f"Lines {_numbers(numbers)} are"
