"""Tables in .csv files, read without trust: a record per physical line, whatever a line says.

The number of records is that of the lines; their width is that of the header, else of most lines. A cell that is no
number is NaN, a line of another width is a record of NaN. Cells may stand in double quotes, as R and spreadsheets
write them; no cell goes on in the next line.
"""

import collections
import csv
import math
import os
import pathlib
import re
from collections.abc import Iterator

import numpy as np

from jaxgeodp.array_files import check_size
from jaxgeodp.checks import InputError

_LONGEST = 2**30
_LINE = re.compile(rb"[^\r\n]*(?:\r\n|[\r\n])|[^\r\n]+")


def read_csv(path: pathlib.Path, header: bool, delimiter: str) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """The numbers (n, columns), and the names of the columns if the first line holds them.

    Raises:
        ValueError: a file that is too large.
        OSError: it cannot be read.
    """
    content = content_of(path)
    # One line at a time, twice: a list of short lines would be many times larger than the file.
    widths = collections.Counter(len(cells) for cells in lines_of(content, delimiter))
    if not widths:
        return np.empty((0, 0)), None
    first = next(lines_of(content, delimiter))
    width = len(first) if header else usual_width(widths)
    check_size(path, (widths.total(), width))
    if header and widths.total() == 1:
        raise InputError(
            f"{path}: has one line only, and --header says that the first line of a .csv file names its columns: "
            "write the names above it."
        )
    if header and widths[width] - 1 < widths.total() / 2 < max(widths.values()):
        raise InputError(
            f"{path}: its header has {width} cells, but most lines have {usual_width(widths)}: write a name for each "
            "column (R's write.table leaves out that of row names: col.names=NA adds it)."
        )
    table = np.full((widths.total(), width), np.nan)
    for record, cells in zip(table, lines_of(content, delimiter), strict=True):
        if len(cells) == width:
            record[:] = [number_in(cell) for cell in cells]
    return (table[1:], tuple(cell.strip() for cell in first)) if header else (table, None)


def usual_width(widths: collections.Counter[int]) -> int:
    """That of most lines; of equally many the larger."""
    return max(widths, key=lambda width: (widths[width], width))


def words_in(path: pathlib.Path, place: int, header: bool, delimiter: str) -> list[str]:
    """The cells of a column as words, one a line; nothing where a line has no such cell."""
    lines = lines_of(content_of(path), delimiter)
    cells = [line[place].strip() if place < len(line) else "" for line in lines]
    return cells[1:] if header else cells


def physical_lines(content: bytes) -> Iterator[str]:
    """The lines of a text, without their ends.

    Bytes are split, not text: text has more line ends than \\n, \\r\\n and \\r, and may not decode.
    """
    for match in _LINE.finditer(content):
        yield match.group().rstrip(b"\r\n").decode("utf-8", errors="replace")


def content_of(path: pathlib.Path) -> bytes:
    """The bytes of a .csv file, without the mark that some programs put first."""
    with open(path, "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > _LONGEST:
            raise InputError(f"{path}: is larger than {_LONGEST >> 30} GiB; save the numbers as .npy.")
        return stream.read(size).removeprefix(b"\xef\xbb\xbf")


def lines_of(content: bytes, delimiter: str) -> Iterator[list[str]]:
    """The cells of each physical line."""
    for line in physical_lines(content):
        yield _cells(line, delimiter)


def number_in(cell: str) -> float:
    """The number that a cell holds, NaN if none: digits of other scripts and digits in groups are none."""
    if "_" in cell or not cell.isascii():
        return math.nan
    try:
        return float(cell)
    except ValueError:
        return math.nan


def _cells(line, delimiter):
    if delimiter == " ":
        line = " ".join(line.split())
    if '"' not in line:
        return line.split(delimiter)
    try:
        return next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [""])
    except csv.Error:  # a cell that is longer than any number
        return line.split(delimiter)
