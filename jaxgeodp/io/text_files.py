"""Lines of untrusted text files: UTF-8, or UTF-16 with a byte-order mark, gzipped or not."""

import gzip
import math
import os
import pathlib
import re
from collections.abc import Iterator

from jaxgeodp.checks import InputError

_LONGEST = 2**30
_LINE = re.compile(rb"[^\r\n]*(?:\r\n|[\r\n])|[^\r\n]+")
# A file begins with one of these marks where it has one; the longer first.
_MARKS = ((b"\xff\xfe\0\0", "utf-32"), (b"\0\0\xfe\xff", "utf-32"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


def suffix_of(path: pathlib.Path) -> str:
    """Return the lower-case file type of a name; ``.csv`` for ``x.csv.gz``."""
    suffix = path.suffix.lower()
    return path.with_suffix("").suffix.lower() if suffix == ".gz" else suffix


def content_of(path: pathlib.Path) -> bytes:
    """Return the decompressed bytes of a text file as UTF-8, without a byte-order mark.

    Raises:
        ValueError: it is too large.
        OSError: it cannot be read.
    """
    compressed = path.suffix.lower() == ".gz"
    with gzip.open(path) if compressed else open(path, "rb") as stream:
        claimed = 0 if compressed else os.fstat(stream.fileno()).st_size
        content = stream.read(_LONGEST + 1) if claimed <= _LONGEST else b""
    if max(claimed, len(content)) > _LONGEST:
        raise InputError(f"{path}: is larger than {_LONGEST >> 30} GiB; save the numbers as .npy.")
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return content.decode(encoding, errors="replace").encode()
    return content.removeprefix(b"\xef\xbb\xbf")


def physical_lines(content: bytes) -> Iterator[str]:
    """Yield the lines of a text, without their ends.

    Bytes are split, not text: text has more line ends than \\n, \\r\\n and \\r, and may not decode.
    """
    for match in _LINE.finditer(content):
        yield match.group().rstrip(b"\r\n").decode("utf-8", errors="replace")


def number_in(cell: str, decimal: str = ".") -> float:
    """Return the number in a cell; NaN for none, for other scripts' digits and for digit groups. U+2212 is a minus."""
    cell = cell.replace("\u2212", "-")
    if "_" in cell or not cell.isascii():
        return math.nan
    if decimal == ",":
        cell = "" if "." in cell else cell.replace(",", ".")
    try:
        return float(cell)
    except ValueError:
        return math.nan
