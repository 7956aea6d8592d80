"""Untrusted tables in .csv, .tsv and .txt files: one record per physical line.

The number of records is that of the lines; their width is that of the header, else of most lines. A cell that is no
number is NaN, a line of another width is a record of NaN. Cells may stand in double quotes, as R and spreadsheets
write them; no cell goes on in the next line. With ``--header`` what stands before the header is no record: lines that
begin with ``#``, a line ``sep=;`` of spreadsheets, and the first line of MagIC's files, which begins with ``tab``.
Without it every line is a record, whatever it says: none may decide how others are read.
"""

import collections
import csv
import dataclasses
import itertools
import math
import pathlib
import re
from collections.abc import Iterator

import numpy as np

from jaxgeodp.array_files import check_size
from jaxgeodp.checks import InputError
from jaxgeodp.io.text_files import content_of, number_in, physical_lines, suffix_of

#: Types of the files.
TABLES = (".csv", ".tsv", ".txt")
_SAYS_DELIMITER = re.compile(r"\"?sep=([^\w\s]|\t)\"?\s*")
_OF_MAGIC = re.compile(r"tab(\s+delimited)?\s*\t.*")


@dataclasses.dataclass(frozen=True)
class TextTable:
    """Layout of a text table, from the call and its first lines; public.

    Args:
        content: of the file, in UTF-8.
        names: those of its columns, with ``header``.
        first: the number of the line of the first record, from 1.
        delimiter, decimal: between cells, and within numbers.
    """

    content: bytes
    names: tuple[str, ...] | None
    first: int
    delimiter: str
    decimal: str

    def rows(self) -> Iterator[list[str]]:
        """Yield the cells of each record."""
        for line in itertools.islice(physical_lines(self.content), self.first - 1, None):
            yield _cells(line, self.delimiter)

    def number(self, cell: str) -> float:
        """Return the number in a cell, read with the decimal sign of the table; NaN if there is none."""
        return number_in(cell, self.decimal)


def opened(path: pathlib.Path, header: bool, delimiter: str | None, decimal: str = ".") -> TextTable:
    """Return the table in a file.

    Args:
        path: of the file.
        header: whether its first line holds names, but for those that are none of the table's.
        delimiter: None for what the file says, or its type: a tab in .tsv, else a comma; a semicolon with decimal
            commas.
        decimal: "." or ",".

    Raises:
        ValueError: a file that is too large.
        OSError: it cannot be read.
    """
    content, before, said = content_of(path), 0, None
    for line in physical_lines(content) if header else ():
        own = _SAYS_DELIMITER.fullmatch(line) if before == 0 else None
        if before == 0 and _OF_MAGIC.fullmatch(line):
            said = "\t"
        elif own is not None:
            said = own[1]
        elif not line.lstrip().startswith("#"):
            break
        before += 1
    usual = "\t" if suffix_of(path) == ".tsv" else ";" if decimal == "," else ","
    whole = TextTable(content, None, before + 1, delimiter or said or usual, decimal)
    first = next(whole.rows(), None) if header else None
    if first is None:
        return whole
    if before and not any(math.isnan(whole.number(cell)) for cell in first):
        raise InputError(
            f"{path}: line {before + 1} should name the columns, as --header says, but holds numbers: if names stand "
            "behind '#', take the '#' away."
        )
    return dataclasses.replace(whole, names=tuple(cell.strip() for cell in first), first=before + 2)


def read_csv(
    path: pathlib.Path, header: bool, delimiter: str | None, decimal: str = "."
) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """Return the numbers (n, columns), and the columns' names if a line holds them; see `opened`.

    Raises:
        ValueError: a file that is too large.
        OSError: it cannot be read.
    """
    text = opened(path, header, delimiter, decimal)
    # One line at a time, twice: a list of short lines would be many times larger than the file.
    widths = collections.Counter(len(cells) for cells in text.rows())
    count = widths.total()
    if not count:
        if text.names is not None:
            raise InputError(
                f"{path}: has only one line, but with --header the first line of a table names its columns: add "
                "records below it, or write names above it."
            )
        return np.empty((0, 0)), None
    width = usual_width(widths) if text.names is None else len(text.names)
    check_size(path, (count, width))
    if text.names is not None and widths[width] < count / 2 < max(widths.values()):
        raise InputError(
            f"{path}: its header has {width} cells, but most lines have {usual_width(widths)}: write a name for each "
            "column (R's write.table leaves out that of row names: col.names=NA adds it)."
        )
    table = np.full((count, width), np.nan)
    for record, cells in zip(table, text.rows(), strict=True):
        if len(cells) == width:
            record[:] = [text.number(cell) for cell in cells]
    return table, text.names


def usual_width(widths: collections.Counter[int]) -> int:
    """Return the most common number of cells of a line; in a tie, the larger."""
    return max(widths, key=lambda width: (widths[width], width))


def words_in(path: pathlib.Path, place: int, header: bool, delimiter: str | None, decimal: str = ".") -> list[str]:
    """Return the cells of a column as one word per record; an empty word for a missing cell."""
    rows = opened(path, header, delimiter, decimal).rows()
    return [cells[place].strip() if place < len(cells) else "" for cells in rows]


def _cells(line, delimiter):
    if delimiter == " ":
        line = " ".join(line.split())
    if '"' not in line:
        return line.split(delimiter)
    try:
        return next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [""])
    except csv.Error:  # a cell that is longer than any number
        return line.split(delimiter)
