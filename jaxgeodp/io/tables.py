"""What files hold, as numbers, labels and weights, arranged as a `Layout` says.

The *format* of a file is public and may be refused: its type, the number of records, the shape of a record (in a
.csv file: the number of columns), the names of its columns if it has them. The *content* of a record is private, so
that nothing here refuses, drops or reports one: a cell that is no number becomes NaN, a line of another width becomes
a record of NaN, and a record with a NaN is later replaced by the public centre (see `GeodesicBall.clip`).
What may be refused is refused before the file is decoded: docs/hostile_input.md.
"""

import contextlib
import dataclasses
import functools
import pathlib

import numpy as np

from jaxgeodp.array_files import listed, read_npy, read_npz
from jaxgeodp.checks import InputError, many, short
from jaxgeodp.io.csv_files import read_csv, words_in
from jaxgeodp.io.landmark_files import read_nts, read_tps
from jaxgeodp.io.layout import (
    PERIODS,
    Layout,
    check_angles,
    chosen_columns,
    directions_of,
    label_columns,
    radians_of,
    rotations_of,
)
from jaxgeodp.io.parquet import labels_in, names_in, read_parquet
from jaxgeodp.manifolds import Manifold
from jaxgeodp.manifolds.names import MANIFOLDS, check_name
from jaxgeodp.manifolds.tables import from_upper_triangles

_SUFFIXES = (".npy", ".npz", ".csv", ".parquet", ".tps", ".nts")


@dataclasses.dataclass(frozen=True)
class Numbers:
    """What a file holds: numbers and, in some formats, names of columns; and whether columns have been chosen."""

    path: pathlib.Path
    table: np.ndarray
    names: tuple[str, ...] | None = None
    chosen: bool = False


def check_manifold(manifold: Manifold | str) -> None:
    """Raise ValueError, with the option's name, unless it is a manifold or the name of one."""
    if isinstance(manifold, Manifold):
        return
    if not isinstance(manifold, str):
        raise InputError(f"--manifold must be a Manifold, or a name such as 'sphere(2)', got {short(manifold)}.")
    try:
        check_name(manifold)
    except InputError as error:
        raise InputError(f"--{error}") from None


def kind_of(manifold: Manifold | str) -> str:
    """Return its short name without sizes; nothing for a product, or a manifold that has no such name."""
    if isinstance(manifold, str):
        return "" if "*" in manifold else manifold.partition("(")[0].strip()
    return next((name for name, entry in MANIFOLDS.items() if entry.make is type(manifold)), "")


def read_template(path: pathlib.Path, layout: Layout) -> np.ndarray:
    """The numbers of a file with one configuration of landmarks, (k, m) or (1, k, m)."""
    table = read_numbers(path, dataclasses.replace(layout, columns=None, person=None)).table
    return table[0] if table.ndim == 3 and len(table) == 1 else table


def read_labels(path: pathlib.Path, layout: Layout, option: str, n: int) -> np.ndarray | list:
    """The labels of the n records in the column that the layout names for ``option``.

    Args:
        path, layout: of the file.
        option: person or group.
        n: number of records.

    Raises:
        ValueError: the file has no such column or array, or it is not one label a record.
    """
    with readable(path):
        labels = _labels(path, path.suffix.lower(), layout, option)
    if len(labels) != n:
        raise InputError(f"{path}: --{option} {getattr(layout, option)} does not have a label for each record.")
    return labels


def read_weights(path: pathlib.Path) -> np.ndarray:
    """The numbers of a file with one column, or one array of one axis; all of them public.

    Raises:
        ValueError: unreadable file, or another shape.
    """
    table = read_numbers(path, Layout()).table
    if table.shape not in ((len(table),), (len(table), 1)):
        raise InputError(f"--weights {path}: must hold one number for each record, but has shape {table.shape}.")
    return table.reshape(-1)


def read_numbers(path: pathlib.Path, layout: Layout) -> Numbers:
    """Return the numbers of a file of any of the formats, as float64 or complex128, before they are arranged.

    Raises:
        ValueError: unknown type, no such file, or one that cannot be read as its type.
    """
    suffix = path.suffix.lower()
    if suffix not in _SUFFIXES:
        raise InputError(f"{path}: unknown file type '{suffix}'; use one of {', '.join(_SUFFIXES)}.")
    if not path.is_file():
        raise InputError(f"{path}: there is no such file.")
    with readable(path):
        numbers = _read(path, suffix, layout)
    table = numbers.table
    with np.errstate(all="ignore"):  # a warning about an overflow would speak of the data
        return dataclasses.replace(
            numbers, table=table.astype(np.complex128 if table.dtype.kind == "c" else np.float64)
        )


def arranged(numbers: Numbers, layout: Layout) -> np.ndarray:
    """Return the columns that make a record, with angles as directions and upper triangles as lower ones.

    Raises:
        ValueError: the layout does not fit the table.
    """
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
        if layout.chart is not None and table.dtype.kind != "c":
            table = (radians_of if layout.chart in PERIODS else rotations_of)(table, layout.chart)
        if layout.triangle == "upper" and table.ndim == 2:
            table = from_upper_triangles(table)
    return table


def names_of_record(numbers: Numbers, layout: Layout) -> tuple[str, ...]:
    """Return the names of the columns that make a record; none where the file has no names."""
    names = numbers.names
    if names is None or numbers.chosen:
        return names or ()
    places = chosen_columns(layout, names, numbers.table.shape[1])
    return names if places is None else tuple(names[place] for place in places)


def wanted_columns(path: pathlib.Path, layout: Layout, names: tuple[str, ...]) -> list[int] | None:
    """Return the places of a file's columns that make a record; see `layout.chosen_columns`."""
    with about(path):
        return chosen_columns(layout, names, len(names))


@contextlib.contextmanager
def about(path):
    """Name the file in what is said of its table."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


@contextlib.contextmanager
def readable(path):
    """Whatever a reader raises becomes our sentence: its own words could quote the content."""
    try:
        yield
    except InputError:
        raise
    except Exception:
        raise InputError(
            f"{path}: cannot be read as {path.suffix.lower()}; check that the file is complete and of that type."
        ) from None


def _read(path, suffix, layout) -> Numbers:
    if suffix == ".csv":
        return Numbers(path, *read_csv(path, layout.header, layout.delimiter))
    if suffix == ".parquet":
        return Numbers(path, *read_parquet(path, functools.partial(wanted_columns, path, layout)), chosen=True)
    if suffix in (".tps", ".nts"):
        return Numbers(path, (read_tps if suffix == ".tps" else read_nts)(path))
    return Numbers(path, read_npy(path) if suffix == ".npy" else _array(path, "array", layout.array))


def _array(path, option, wanted):
    """The array of an .npz file that an option names; the only one if none is named."""

    def choose(names: list[str]) -> str:
        chosen = names[0] if wanted is None and len(names) == 1 else wanted
        if chosen is None or chosen not in names:
            raise InputError(f"{path}: choose one of its arrays with --{option}: {listed(names)}.")
        return chosen

    return read_npz(path, choose)


def _labels(path, suffix, layout, option):
    if suffix == ".csv":
        table, names = read_csv(path, layout.header, layout.delimiter)
        place = label_columns(layout, names, table.shape[1])[option]
        return [word or None for word in words_in(path, place, layout.header, layout.delimiter)]
    if suffix == ".parquet":
        names = names_in(path)
        return labels_in(path, label_columns(layout, names, len(names))[option])
    if suffix == ".npz":
        labels = _array(path, option, getattr(layout, option))
        if labels.shape not in ((len(labels),), (len(labels), 1)):
            raise InputError(f"{path}: labels of --{option} must have shape (n,), got another.")
        return labels.reshape(len(labels))
    if suffix != ".npy":
        raise InputError(f"--{option} needs a table with a row a record (.csv, .parquet, .npy) or .npz, got {suffix}.")
    table = read_npy(path)
    if table.ndim != 2:
        raise InputError(
            f"{path}: --{option} needs a row a record; write its records and labels as arrays of an .npz file."
        )
    return table[:, label_columns(layout, None, table.shape[1])[option]]
