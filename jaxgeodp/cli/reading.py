"""Reading records and centres from files.

The *format* of a file is public and may be refused: its type, the number of records, the shape of a record (in a
.csv file: the number of columns), the names of its columns if it has them. The *content* of a record is private, so
that nothing here refuses, drops or reports one: a cell that is no number becomes NaN, a line of another width becomes
a record of NaN, and a record with a NaN is later replaced by the public centre (see `GeodesicBall.clip`).
What may be refused is refused before the file is decoded: docs/hostile_input.md.
"""

import contextlib
import dataclasses
import functools
import glob
import pathlib
from collections.abc import Callable

import numpy as np

from jaxgeodp.array_files import listed, read_npy, read_npz
from jaxgeodp.blocks import RecordBlocks
from jaxgeodp.checks import InputError, many
from jaxgeodp.cli.csv_files import read_csv, words_in
from jaxgeodp.cli.landmark_files import read_nts, read_tps
from jaxgeodp.cli.layout import Layout, check_angles, chosen_columns, directions_of, label_columns
from jaxgeodp.cli.parquet import claimed, labels_in, names_in, parquet_blocks, read_parquet
from jaxgeodp.manifolds import Manifold
from jaxgeodp.manifolds.names import check_name, points_on, records_in
from jaxgeodp.manifolds.tables import from_upper_triangles

_SUFFIXES = (".npy", ".npz", ".csv", ".parquet", ".tps", ".nts")


def read_records(
    path: pathlib.Path,
    manifold_name: str,
    layout: Layout,
    prepare: Callable[[np.ndarray], np.ndarray] | None = None,
    least: int = 2,
) -> tuple[Manifold, np.ndarray]:
    """The manifold and the records (n, \\*shape) of a data file, as float64 or complex128.

    Args:
        path: .npy, .npz, .csv, .parquet, .tps or .nts.
        manifold_name: a name of `manifolds.names.MANIFOLDS`, with sizes or without, or a product, whose records are
            its flat rows; `manifolds.tables` says which shapes the others have.
        layout: how the numbers of the file are records.
        prepare: what the rows of the table become, each on its own, before they are points.
        least: how many records there must be.

    Raises:
        ValueError: unreadable file, unknown manifold, or a shape that does not fit.
    """
    check_manifold_name(manifold_name)
    table = read_table(path, manifold_name, layout)
    said = layout.size is not None or layout.columns is not None or "(" in manifold_name
    if path.suffix.lower() == ".csv" and table.shape[1:] == (1,) and not said:
        raise InputError(
            f"{path}: has one column: if its cells have another delimiter than '{layout.delimiter}', say it with "
            "--delimiter; if a record is one number, say --size 1."
        )
    if table.ndim < 2 or table.shape[0] < least or 0 in table.shape:
        raise InputError(
            f"{path}: needs at least {least} records, one per row, but holds an array of shape {table.shape}."
        )
    if layout.expect_n not in (None, len(table)):
        raise InputError(
            f"{path}: holds {len(table)} records, not the {layout.expect_n} of --expect-n: look for a header without "
            "--header, blank lines at the end, or lines that are missing."
        )
    if kind_of(manifold_name) == "euclidean" and table.ndim == 3 and prepare is None:
        raise InputError(
            f"{path}: holds an array of shape {many(table.shape)}: landmarks need --template, on which they are "
            "superimposed."
        )
    with about(path):
        return records_in(manifold_name, table if prepare is None else prepare(table), layout.size)


def is_pattern(path: pathlib.Path) -> bool:
    """Whether it names several Parquet files: by ``*``, ``?`` or ``[``, where there is no file of that very name."""
    return path.suffix.lower() == ".parquet" and any(sign in str(path) for sign in "*?[") and not path.exists()


def files_of(path: pathlib.Path) -> list[pathlib.Path]:
    """The file that it names, or those of a pattern, in the order of their names."""
    return sorted(pathlib.Path(found) for found in glob.glob(str(path))) if is_pattern(path) else [path]


def read_parts(
    pattern: pathlib.Path,
    manifold_name: str,
    layout: Layout,
    prepare: Callable[[np.ndarray], np.ndarray] | None = None,
    report: Callable[[int, int], object] = lambda done, total: None,
    least: int = 2,
) -> tuple[Manifold, RecordBlocks]:
    """The manifold and the records of all Parquet files of a pattern, which are read block by block when needed.

    Args:
        pattern: such as 'part-*.parquet'; files in the order of their names.
        manifold_name, layout, prepare: see `read_records`.
        report: told how many records of a pass are read, and of how many.
        least: how many records there must be.

    Raises:
        ValueError: no such files, another type, files that differ in their columns; or see `read_records`.
    """
    check_manifold_name(manifold_name)
    paths = files_of(pattern)
    if not paths:
        raise InputError(f"{pattern}: there are no such files.")
    if layout.person is not None or layout.group is not None:
        raise InputError("--person and --group are for one file, not for several.")
    parts = []
    for path in paths:
        if not path.is_file():
            raise InputError(f"{path}: is no file.")
        with _readable(path):
            parts.append((path, *claimed(path, functools.partial(_wanted, path, layout))))
    names = parts[0][2]
    for path, _, own in parts:
        if own != names:
            raise InputError(f"{path}: has other columns than {paths[0]}; choose some that all have with --columns.")
    n = sum(rows for _, rows, _ in parts)
    if n < least:
        raise InputError(f"{pattern}: needs at least {least} records, one per row, but holds {n}.")
    if layout.expect_n not in (None, n) and least > 0:
        raise InputError(f"{pattern}: holds {n} records, not the {layout.expect_n} of --expect-n.")

    def points_of(table):
        placed = _placed(_Numbers(paths[0], table, chosen=True), layout)
        return records_in(manifold_name, placed if prepare is None else prepare(placed), layout.size)

    def blocks():
        done = 0
        for path, rows, own in parts:
            with _readable(path):
                for table in parquet_blocks(path, own, rows):
                    yield np.asarray(points_of(table)[1])
                    done += len(table)
                    report(done, n)

    with about(paths[0]):
        space, one = points_of(np.zeros((1, len(names))))
    return space, RecordBlocks(blocks, (n, *one.shape[1:]), one.dtype)


def _wanted(path, layout, names):
    with about(path):
        return chosen_columns(layout, names, len(names))


def read_persons(path: pathlib.Path, layout: Layout, n: int) -> np.ndarray | list | None:
    """Whose each of the n records is; None without ``--person``.

    Raises:
        ValueError: see `read_labels`.
    """
    return None if layout.person is None else read_labels(path, layout, "person", n)


def read_labels(path: pathlib.Path, layout: Layout, option: str, n: int) -> np.ndarray | list:
    """The labels of the n records in the column that the layout names for ``option``.

    Args:
        path, layout: of the file.
        option: person or group.
        n: number of records.

    Raises:
        ValueError: the file has no such column or array, or it is not one label a record.
    """
    with _readable(path):
        labels = _labels(path, path.suffix.lower(), layout, option)
    if len(labels) != n:
        raise InputError(f"{path}: --{option} {getattr(layout, option)} does not have a label for each record.")
    return labels


def _labels(path, suffix, layout, option):
    if suffix == ".csv":
        table, names = read_csv(path, layout.header, layout.delimiter)
        place = label_columns(layout, names, table.shape[1])[option]
        return [word or None for word in words_in(path, place, layout.header, layout.delimiter)]
    if suffix == ".parquet":
        names = names_in(path)
        return labels_in(path, label_columns(layout, names, len(names))[option])
    if suffix == ".npz":
        return _flat(path, read_npz(path, functools.partial(_named, getattr(layout, option), option)), option)
    if suffix == ".npy":
        table = read_npy(path)
        if table.ndim == 2:
            return table[:, label_columns(layout, None, table.shape[1])[option]]
        raise InputError(
            f"{path}: --{option} needs a row a record; write its records and labels as arrays of an .npz file."
        )
    raise InputError(f"--{option} needs a table with a row a record (.csv, .parquet, .npy) or .npz, got {suffix}.")


def _flat(path, labels, option):
    if labels.shape not in ((len(labels),), (len(labels), 1)):
        raise InputError(f"{path}: labels of --{option} must have shape (n,), got another.")
    return labels.reshape(len(labels))


def _named(wanted, option, names):
    if wanted not in names:
        raise InputError(f"choose one of its arrays with --{option}: {listed(names)}.")
    return wanted


def read_weights(path: pathlib.Path) -> np.ndarray:
    """The numbers of a file with one column, or one array of one axis; all of them public.

    Raises:
        ValueError: unreadable file, or another shape.
    """
    table = _numbers(path, Layout()).table
    if table.shape not in ((len(table),), (len(table), 1)):
        raise InputError(f"--weights {path}: must hold one number for each record, but has shape {table.shape}.")
    return table.reshape(-1)


def read_center(center: str, manifold: Manifold, layout: Layout) -> np.ndarray:
    """The public centre: the manifold's origin, or one point from a file in the same formats."""
    if center == "origin":
        return manifold.origin
    try:
        numbers = _numbers(pathlib.Path(center), layout)
    except InputError:  # without the column of persons, which a centre need not have
        layout = dataclasses.replace(layout, person=None, group=None)
        numbers = _numbers(pathlib.Path(center), layout)
    point = _one_point(manifold, numbers, layout)
    if point is None:
        raise InputError(f"--center {center}: must hold one point of {manifold}, but has shape {numbers.table.shape}.")
    projected = np.asarray(manifold.project(point))
    if not np.all(np.isfinite(projected)):
        raise InputError(f"--center {center}: is not a point of {manifold}.")
    return projected


def _one_point(manifold, numbers, layout):
    """The point of a file: arranged as a record, with the same columns or only those of a record; or as it is."""
    bare = dataclasses.replace(layout, columns=None, person=None, group=None)
    names = numbers.names
    for own, known in ((layout, names), (bare, None), (dataclasses.replace(bare, degrees=None), None)):
        with contextlib.suppress(InputError):
            table = _placed(dataclasses.replace(numbers, names=known), own)
            if own.columns is not None and known is None and table.shape == numbers.table.shape:
                continue  # only the columns of a record, in their order
            for candidate in (table[None], table):
                if candidate.ndim >= 2 and candidate.shape[0] == 1:
                    with contextlib.suppress(InputError):
                        return points_on(manifold, candidate)[0]
    return None


def read_template(path: pathlib.Path, layout: Layout) -> np.ndarray:
    """The numbers of a file with one configuration of landmarks, (k, m) or (1, k, m)."""
    table = _numbers(path, dataclasses.replace(layout, columns=None, person=None)).table
    return table[0] if table.ndim == 3 and len(table) == 1 else table


def check_manifold_name(name: str) -> None:
    """Raise ValueError, with the option's name, unless it is a manifold's."""
    try:
        check_name(name)
    except InputError as error:
        raise InputError(f"--{error}") from None


def read_table(path: pathlib.Path, manifold_name: str, layout: Layout) -> np.ndarray:
    """The numbers of a file as its layout arranges them: the columns that make a record, angles as directions.

    Raises:
        ValueError: see `read_records`; or an option that is for another manifold.
    """
    kind = kind_of(manifold_name)
    if layout.triangle is not None and kind != "spd":
        raise InputError(f"--triangle is for --manifold spd, got {manifold_name}.")
    if layout.angles is not None and kind != "sphere":
        raise InputError(f"--degrees is for --manifold sphere, got {manifold_name}.")
    return _placed(_numbers(path, layout), layout)


def kind_of(manifold_name: str) -> str:
    """The name of a manifold without its sizes; nothing for a product."""
    return "" if "*" in manifold_name else manifold_name.partition("(")[0].strip()


@dataclasses.dataclass(frozen=True)
class _Numbers:
    """What a file holds: numbers and, in some formats, names of columns; and whether columns have been chosen."""

    path: pathlib.Path
    table: np.ndarray
    names: tuple[str, ...] | None = None
    chosen: bool = False


def _placed(numbers: _Numbers, layout: Layout) -> np.ndarray:
    table = numbers.table
    if numbers.path.suffix.lower() == ".npz":  # there --person names an array
        layout = dataclasses.replace(layout, person=None, group=None)
    with about(numbers.path):
        if table.ndim == 2 and not numbers.chosen:
            places = chosen_columns(layout, numbers.names, table.shape[1])
            if numbers.names is not None:
                check_angles(layout, numbers.names if places is None else tuple(numbers.names[k] for k in places))
            table = table if places is None else table[:, places]
        elif layout.columns is not None and table.ndim != 2:
            raise InputError(
                f"--columns is for tables with a row a record, not for arrays of shape {many(table.shape)}."
            )
        if layout.angles is not None:
            if table.ndim != 2 or table.shape[1] != 2:
                raise InputError(
                    f"--degrees {layout.degrees} needs two columns, got shape {many(table.shape)}; choose with "
                    "--columns."
                )
            table = directions_of(table, layout.angles)
        if layout.triangle == "upper" and table.ndim == 2:
            table = from_upper_triangles(table)
    return table


@contextlib.contextmanager
def about(path):
    """Name the file in what is said of its table."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _numbers(path: pathlib.Path, layout: Layout) -> _Numbers:
    suffix = path.suffix.lower()
    if suffix not in _SUFFIXES:
        raise InputError(f"{path}: unknown file type '{suffix}'; use one of {', '.join(_SUFFIXES)}.")
    if not path.is_file():
        raise InputError(f"{path}: there is no such file.")
    with _readable(path):
        numbers = _read(path, suffix, layout)
    table = numbers.table
    with np.errstate(all="ignore"):  # a warning about an overflow would speak of the data
        return dataclasses.replace(
            numbers, table=table.astype(np.complex128 if table.dtype.kind == "c" else np.float64)
        )


@contextlib.contextmanager
def _readable(path):
    """Whatever a reader raises becomes our sentence: its own words could quote the content."""
    try:
        yield
    except InputError:
        raise
    except Exception:
        raise InputError(
            f"{path}: cannot be read as {path.suffix.lower()}; check that the file is complete and of that type."
        ) from None


def _read(path, suffix, layout) -> _Numbers:
    if suffix == ".csv":
        return _Numbers(path, *read_csv(path, layout.header, layout.delimiter))
    if suffix == ".parquet":
        return _Numbers(path, read_parquet(path, functools.partial(_wanted, path, layout)), chosen=True)
    if suffix in (".tps", ".nts"):
        return _Numbers(path, (read_tps if suffix == ".tps" else read_nts)(path))
    if suffix == ".npy":
        return _Numbers(path, read_npy(path))

    def choose(names: list[str]) -> str:
        chosen = names[0] if layout.array is None and len(names) == 1 else layout.array
        if chosen is None or chosen not in names:
            raise InputError(f"{path}: choose one of its arrays with --array: {listed(names)}.")
        return chosen

    return _Numbers(path, read_npz(path, choose))
