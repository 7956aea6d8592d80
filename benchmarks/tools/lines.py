"""Files of JSON lines, to which a benchmark adds what is done, so that a later run goes on."""

import contextlib
import json
import pathlib
from typing import Any


def rows_of(path: pathlib.Path | None) -> list[dict[str, Any]]:
    """Return the rows of a file; of none, or of one that is not there, no row.

    A process may have been killed while it wrote: what is no JSON is left out.
    """
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines() if path is not None and path.exists() else []:
        with contextlib.suppress(ValueError):
            rows.append(json.loads(line))
    return rows


def add_row(path: pathlib.Path, row: dict[str, Any]) -> None:
    """Add a row in one piece, whoever else writes, and not to a line that was cut short."""
    with open(path, "ab+", buffering=0) as stream:
        if size := stream.seek(0, 2):
            stream.seek(size - 1)
        begin = b"" if not size or stream.read(1) == b"\n" else b"\n"
        stream.write(begin + (json.dumps(row) + "\n").encode())
