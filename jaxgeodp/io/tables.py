"""Contents of files as numbers, labels and weights, arranged as a `Layout` states.

The *format* of a file is public and may be refused: its type, the number of records, the shape of a record (in a
.csv file: the number of columns), the names of its columns if it has them. The *content* of a record is private, so
that nothing here refuses, drops or reports one: a cell that is no number becomes NaN, a line of another width becomes
a record of NaN, and a record with a NaN is later replaced by the public centre (see `GeodesicBall.clip`).
What may be refused is refused before the file is decoded: docs/evidence/hostile-input.md.
"""

import contextlib
import dataclasses
import functools
import pathlib
import warnings
from collections.abc import Callable

import numpy as np

from jaxgeodp.array_files import listed, read_npy, read_npz
from jaxgeodp.checks import InputError, many, short
from jaxgeodp.io.charts import chart_named
from jaxgeodp.io.column_names import order_of_axes
from jaxgeodp.io.csv_files import TABLES, read_csv, words_in
from jaxgeodp.io.folders import files_in, read_folder
from jaxgeodp.io.foreign_files import labels_in_xlsx, read_hdf5, read_mat, read_xlsx
from jaxgeodp.io.landmark_files import read_nts, read_tps
from jaxgeodp.io.layout import (
    Layout,
    check_angles,
    chosen_columns,
    label_columns,
)
from jaxgeodp.io.orders import in_stated_order
from jaxgeodp.io.parquet import labels_in, names_in, read_parquet
from jaxgeodp.io.specimen_files import SPECIMENS, read_specimen
from jaxgeodp.io.text_files import suffix_of
from jaxgeodp.manifolds import Manifold
from jaxgeodp.manifolds.names import check_name, name_of
from jaxgeodp.manifolds.tables import from_upper_triangles

_OF_LANDMARKS = {".tps": read_tps, ".nts": read_nts, ".dta": read_nts}
_ARRAYS = (".npz", ".mat", ".h5", ".hdf5")
_SUFFIXES = (".npy", ".npz", *TABLES, ".parquet", *_OF_LANDMARKS, *SPECIMENS, ".xlsx", ".mat", ".h5", ".hdf5")
# In folders with a file a record.
_IN_FOLDERS = (".npy", *TABLES, *_OF_LANDMARKS, *SPECIMENS)
_OF_TEXT = (".dat", ".asc", ".prn", ".pts", ".tum", ".data", "")
_COMPRESSED = (*TABLES, *_OF_LANDMARKS)


@dataclasses.dataclass(frozen=True)
class Numbers:
    """Contents of a file: numbers, column names in some formats, and whether columns have been chosen."""

    path: pathlib.Path
    table: np.ndarray
    names: tuple[str, ...] | None = None
    chosen: bool = False


def check_manifold(manifold: Manifold | str) -> None:
    """Raise ValueError, with the option's name, unless the value is a manifold or a manifold's name."""
    if isinstance(manifold, Manifold):
        return
    if not isinstance(manifold, str):
        raise InputError(f"--manifold must be a Manifold, or a name such as 'sphere(2)', got {short(manifold)}.")
    try:
        check_name(manifold)
    except InputError as error:
        raise InputError(f"--{error}") from None


def kind_of(manifold: Manifold | str) -> str:
    """Return a manifold's short name without sizes; empty for a product or unnamed manifold."""
    if isinstance(manifold, str):
        return "" if "*" in manifold else manifold.partition("(")[0].strip()
    return name_of(manifold)


def read_template(path: pathlib.Path, layout: Layout) -> np.ndarray:
    """Return the numbers of a file with one landmark configuration, (k, m) or (1, k, m)."""
    table = read_numbers(path, dataclasses.replace(layout, columns=None, person=None)).table
    return table[0] if table.ndim == 3 and len(table) == 1 else table


def read_labels(path: pathlib.Path, layout: Layout, option: str, n: int) -> np.ndarray | list:
    """Return the labels of the n records, from the column that the layout names for ``option``.

    Args:
        path, layout: of the file.
        option: person or group.
        n: number of records.

    Raises:
        ValueError: the file has no such column or array, or it is not one label a record.
    """
    with readable(path):
        labels = _labels(path, suffix_of(path), layout, option)
    if len(labels) != n:
        raise InputError(f"{path}: --{option} {getattr(layout, option)} does not have a label for each record.")
    return labels


def read_weights(path: pathlib.Path) -> np.ndarray:
    """Return the numbers of a public file with one column, or one array of one axis.

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
    if path.is_dir():
        with readable(path):
            return _folder(path, layout)
    suffix = suffix_of(path)
    if suffix not in _SUFFIXES or (path.suffix.lower() == ".gz" and suffix not in _COMPRESSED):
        text = "if it is a table of text, call it .txt; else " if suffix in _OF_TEXT else ""
        raise InputError(f"{path}: unknown file type '{path.suffix.lower()}'; {text}use one of {', '.join(_SUFFIXES)}.")
    if not path.is_file():
        raise InputError(f"{path}: there is no such file.")
    with readable(path):
        numbers = _read(path, suffix, layout)
    table = numbers.table
    with np.errstate(all="ignore"):  # a warning about an overflow would speak of the data
        return dataclasses.replace(
            numbers, table=table.astype(np.complex128 if table.dtype.kind == "c" else np.float64)
        )


def arranged(numbers: Numbers, layout: Layout, kind: str = "") -> np.ndarray:
    """Return the columns that make a record, as the chart and the triangle of the layout say.

    Args:
        numbers: of a file.
        layout: how they are records.
        kind: the manifold's short name, where it is known; see `kind_of`.

    Raises:
        ValueError: the layout does not fit the table.
    """
    table, _, names = columns_of(numbers, layout)
    with about(numbers.path):
        check_angles(layout, names)
        table, layout = in_stated_order(table, names, kind, layout)
        if layout.triangle == "upper" and table.ndim == 2:
            table = from_upper_triangles(table, diagonal=kind != "correlations" or layout.chart == "covariance")
        if layout.chart is not None and table.dtype.kind != "c":
            with np.errstate(all="ignore"):
                table = chart_named(layout.chart).points(table)
    return table


def columns_of(numbers: Numbers, layout: Layout) -> tuple[np.ndarray, list[int] | None, tuple[str, ...]]:
    """Return the columns that make a record, their places, None for all, and their names where the file has any.

    Raises:
        ValueError: the layout chooses others than there are.
    """
    table, names = numbers.table, numbers.names or ()
    if suffix_of(numbers.path) in _ARRAYS:  # there --person names an array
        layout = dataclasses.replace(layout, person=None, group=None)
    with about(numbers.path):
        if table.ndim == 2 and not numbers.chosen:
            places = chosen_columns(layout, numbers.names, table.shape[1])
            if places is not None:
                return table[:, places], places, tuple(names[place] for place in places) if names else ()
        elif layout.columns is not None and not numbers.chosen:
            raise InputError(
                f"--columns is for tables with one row per record, not for arrays of shape {many(table.shape)}."
            )
    return table, None, names


def wanted_columns(path: pathlib.Path, layout: Layout, names: tuple[str, ...]) -> list[int] | None:
    """Return the places of a file's columns that make a record; see `layout.chosen_columns`."""
    with about(path):
        return chosen_columns(layout, names, len(names))


@contextlib.contextmanager
def about(path):
    """Prefix errors about a table with the name of its file."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


@contextlib.contextmanager
def readable(path):
    """Replace a reader's own errors by our message, as their text could quote the content."""
    try:
        with warnings.catch_warnings():  # one of another library could quote a cell
            warnings.simplefilter("ignore")
            yield
    except InputError:
        raise
    except Exception:
        raise InputError(
            f"{path}: cannot be read as {path.suffix.lower()}; check that the file is complete and of that type."
        ) from None


def _read(path, suffix, layout) -> Numbers:
    if suffix in TABLES:
        return Numbers(path, *read_csv(path, layout.header, layout.delimiter, layout.decimal))
    if suffix == ".parquet":
        return Numbers(path, *read_parquet(path, functools.partial(wanted_columns, path, layout)), chosen=True)
    if suffix in _OF_LANDMARKS:
        return Numbers(path, _OF_LANDMARKS[suffix](path))
    if suffix in SPECIMENS:
        return Numbers(path, read_specimen(path, suffix)[None])
    choose = _chosen(path, "array", layout.array)
    if suffix == ".xlsx":
        return Numbers(path, *read_xlsx(path, choose, layout.header, layout.decimal))
    read = {".npz": read_npz, ".mat": read_mat, ".h5": read_hdf5, ".hdf5": read_hdf5}.get(suffix)
    return Numbers(path, read_npy(path) if read is None else read(path, choose))


def _folder(path, layout) -> Numbers:
    """Return one record per file; of tables, the columns that the call chooses."""
    if layout.person is not None or layout.group is not None:
        raise InputError("--person and --group are for one file, not for a folder.")
    files = files_in(path, _IN_FOLDERS)
    suffix = suffix_of(files[0])

    def record(file):
        numbers = _read(file, suffix, layout)
        if suffix in _OF_LANDMARKS:
            if len(numbers.table) != 1:
                raise ValueError("several specimens")
            return numbers.table[0]
        if suffix in SPECIMENS:
            return numbers.table[0]
        if suffix not in TABLES:
            return numbers.table
        table, _, names = columns_of(numbers, layout)
        # Columns of a square table may be those of a matrix, whose rows have the same order.
        return table if table.shape[0] == table.shape[1] else table[:, order_of_axes(names)]

    return Numbers(path, read_folder(files, record), chosen=True)


def _chosen(path, option, wanted) -> Callable[[list[str]], str]:
    """Return a function that picks the array an option names; the only one if it names none."""

    def choose(names: list[str]) -> str:
        chosen = names[0] if wanted is None and len(names) == 1 else wanted
        if chosen is None or chosen not in names:
            raise InputError(f"{path}: choose one of its arrays with --{option}: {listed(names)}.")
        return chosen

    return choose


def _labels(path, suffix, layout, option):
    if suffix in TABLES:
        said = layout.header, layout.delimiter, layout.decimal
        table, names = read_csv(path, *said)
        place = label_columns(layout, names, table.shape[1])[option]
        return [word or None for word in words_in(path, place, *said)]
    if suffix == ".parquet":
        names = names_in(path)
        return labels_in(path, label_columns(layout, names, len(names))[option])
    if suffix == ".xlsx":
        choose = _chosen(path, "array", layout.array)
        table, names = read_xlsx(path, choose, layout.header, layout.decimal)
        return labels_in_xlsx(path, choose, layout.header, label_columns(layout, names, table.shape[1])[option])
    if suffix == ".npz":
        labels = read_npz(path, _chosen(path, option, getattr(layout, option)))
        if labels.shape not in ((len(labels),), (len(labels), 1)):
            raise InputError(f"{path}: labels of --{option} must be an array of shape (n,).")
        return labels.reshape(len(labels))
    if suffix != ".npy":
        raise InputError(
            f"--{option} needs a table with one row per record (.csv, .parquet, .xlsx, .npy) or .npz, got {suffix}."
        )
    table = read_npy(path)
    if table.ndim != 2:
        raise InputError(
            f"{path}: --{option} needs one row per record; write the records and the labels as arrays of an .npz file."
        )
    return table[:, label_columns(layout, None, table.shape[1])[option]]
