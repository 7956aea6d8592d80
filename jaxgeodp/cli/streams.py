"""``-`` in place of a file: the standard input, of which nothing is written to a disk, and the standard output."""

import contextlib
import os
import pathlib
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping

from jaxgeodp.checks import InputError
from jaxgeodp.files import all_reserved

STANDARD = pathlib.Path("-")
# What must live as long as the command, by the path of each file in memory.
_OPEN: dict[pathlib.Path, object] = {}


def given_file(path: pathlib.Path, suffix: str) -> pathlib.Path:
    """Return a path; for ``-`` that of a file in memory, with what the standard input holds.

    Args:
        path: as a call names it.
        suffix: of the format that the standard input is in.

    Raises:
        ValueError: nothing is sent, or the system has no files in memory.
    """
    if path != STANDARD:
        return path
    if not hasattr(os, "memfd_create"):
        raise InputError("-: this operating system does not support files in memory; name a file.")
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError("-: the standard input is a terminal or closed; send data to it, or name a file.")
    stream = os.fdopen(os.memfd_create("standard-input"), "wb")
    shutil.copyfileobj(sys.stdin.buffer, stream)
    stream.flush()
    folder = tempfile.TemporaryDirectory(prefix="jaxgeodp-")
    link = pathlib.Path(folder.name) / f"standard-input{suffix}"
    link.symlink_to(f"/proc/{os.getpid()}/fd/{stream.fileno()}")
    _OPEN[link] = stream, folder
    return link


def was_sent(path: pathlib.Path) -> bool:
    """Return whether a path is of a file in memory, beside which nothing can stand."""
    return path in _OPEN


@contextlib.contextmanager
def room_for(
    sizes: Mapping[pathlib.Path, int], *, replace: bool, changed: str
) -> Iterator[Mapping[pathlib.Path, Callable[[str | bytes], object]]]:
    """Reserve room as `all_reserved` does; ``-`` is the standard output.

    Raises:
        ValueError: the standard output is closed; see `all_reserved`.
    """
    if STANDARD in sizes and sys.stdout is None:
        raise InputError("-: the standard output is closed; open it, or name a file.")
    files = {path: size for path, size in sizes.items() if path != STANDARD}
    with all_reserved(files, replace=replace, changed=changed) as write:
        yield write | {path: _print for path in sizes if path == STANDARD}


def _print(content: str | bytes) -> None:
    assert isinstance(content, str)
    sys.stdout.write(content if content.endswith("\n") else f"{content}\n")
    sys.stdout.flush()
