"""Untrusted tables in .parquet files: one row a record, one numeric column a number."""

import pathlib
from collections.abc import Callable, Iterator

import numpy as np

from jaxgeodp.array_files import MOST_BYTES, check_size
from jaxgeodp.checks import InputError

_ROWS_AT_ONCE = 65536


def read_parquet(
    path: pathlib.Path, choose: Callable[[tuple[str, ...]], list[int] | None]
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the numbers (rows, columns) as float64, and the names of their columns.

    What is missing is NaN, so that its record counts as the centre.

    Sizes are those that the metadata claim, and are checked before anything is decoded; a file that holds
    other than it claims is refused.

    Args:
        path: of the file.
        choose: given the names of the columns, the places of those that are wanted, or None for all. Others are not
            read, and may hold anything.

    Raises:
        ValueError: a column that holds no numbers, too many numbers, or a damaged file.
    """
    rows, names = claimed(path, choose)
    check_size(path, (rows, len(names)))
    table, start = np.empty((rows, len(names))), 0
    for block in parquet_blocks(path, names, rows):
        table[start : start + len(block)] = block
        start += len(block)
    return table, tuple(names)


def claimed(path: pathlib.Path, choose: Callable[[tuple[str, ...]], list[int] | None]) -> tuple[int, list[str]]:
    """Return the claimed number of rows and the names of the wanted columns; see `read_parquet`."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, memory_map=False, pre_buffer=False) as file:
        schema, metadata = file.schema_arrow, file.metadata
        places = choose(tuple(schema.names))
        _check_columns(path, schema, places)
        names = schema.names if places is None else [schema.names[place] for place in places]
        if len(set(names)) < len(names):
            raise InputError(f"{path}: several of its columns have the same name; rename them.")
        # No honest encoding is longer than that, whatever the numbers are.
        if metadata.num_rows < 0 or _claimed_bytes(metadata) > 4 * MOST_BYTES:
            raise ValueError("sizes that disagree")
    return metadata.num_rows, names


def parquet_blocks(path: pathlib.Path, names: list[str], rows: int) -> Iterator[np.ndarray]:
    """Yield the numbers (m, columns) of a file in blocks of rows, for the columns from `claimed`.

    Raises:
        ValueError: it holds another number of rows.
    """
    import pyarrow.parquet as pq

    start = 0
    with pq.ParquetFile(path, memory_map=False, pre_buffer=False) as file:
        for batch in file.iter_batches(batch_size=_ROWS_AT_ONCE, use_threads=False, columns=names):
            start += batch.num_rows
            if start > rows:
                raise ValueError("more rows than claimed")
            yield np.stack([_numbers(batch.column(name)) for name in names], axis=1).astype(np.float64)
    if start != rows:
        raise ValueError("fewer rows than claimed")


def labels_in(path: pathlib.Path, place: int) -> list:
    """Return a column of integers, numbers, booleans or words as one label per row; None for missing values.

    Raises:
        ValueError: a column of another type, or several columns of its name.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, memory_map=False, pre_buffer=False) as file:
        check_size(path, (file.metadata.num_rows, 1))
        field = file.schema_arrow.field(place)
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        words = any(test(kind) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary))
        numeric = any(test(kind) for test in (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean))
        if not (words or numeric):
            raise InputError(f"{path}: a column of labels must hold whole numbers or words.")
        if file.schema_arrow.names.count(field.name) > 1:
            raise InputError(f"{path}: several of its columns have the name of the column of labels; rename them.")
        column = file.read(columns=[field.name], use_threads=False).column(0)
    if pa.types.is_dictionary(field.type):
        column = column.cast(kind)
    if words:  # as bytes: they need not decode
        column = column.cast(pa.large_binary() if pa.types.is_large_string(kind) else pa.binary())
    return column.to_pylist()


def names_in(path: pathlib.Path) -> tuple[str, ...]:
    """Return the names of the columns."""
    import pyarrow.parquet as pq

    return tuple(pq.read_schema(path).names)


def _check_columns(path, schema, places: list[int] | None):
    import pyarrow as pa

    wanted = range(len(schema)) if places is None else places
    for number, kind in ((place + 1, schema.field(place).type) for place in wanted):
        # A column whose values are all missing may have the type "null".
        numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
        if not numeric and not pa.types.is_null(kind):
            words = "lists or structures" if pa.types.is_nested(kind) else f"values of type {str(kind)[:40]}"
            raise InputError(
                f"{path}: column {number} holds {words}, not numbers; choose others with --columns, or write one "
                "numeric column for each number."
            )
    index = [name for name in (schema.pandas_metadata or {}).get("index_columns", []) if isinstance(name, str)]
    if any(places is None or name in [schema.names[place] for place in places] for name in index):
        raise InputError(f"{path}: one of its columns is the index of a data frame; write it with index=False.")


def _claimed_bytes(metadata) -> int:
    """Return the claimed size of all row groups; asking for that of a damaged column can crash PyArrow 26."""
    return sum(metadata.row_group(place).total_byte_size for place in range(metadata.num_row_groups))


def _numbers(column):
    import pyarrow as pa

    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    missing = np.asarray(column.is_null().to_numpy(zero_copy_only=False))
    kind = column.type.to_pandas_dtype()
    values = np.full(len(column), np.nan)
    known = column.drop_null().to_numpy(zero_copy_only=False).astype(kind, copy=False)
    values[~missing] = known
    return values
