"""Checks of landmark order across files in a folder that name their landmarks."""

import collections
import itertools
import pathlib
from collections.abc import Iterator

from jaxgeodp.io.specimen_files import SPECIMENS, labels_of_specimen
from jaxgeodp.io.text_files import suffix_of

_SHOWN = 6


def of_orders_in_files(folder: pathlib.Path) -> Iterator[str]:
    """Yield files whose landmark names differ in order or kind from most files; private."""
    orders = {}
    for path in sorted(path for path in folder.iterdir() if not path.name.startswith(".")):
        suffix = suffix_of(path)
        if suffix not in SPECIMENS:
            return
        try:
            labels = tuple(labels_of_specimen(path, suffix))
        except Exception:  # such a record is told elsewhere
            continue
        if len(set(labels)) == len(labels) > 1 and all(labels):  # else they name nothing
            orders[path.name] = labels
    if not orders:
        return
    usual = collections.Counter(orders.values()).most_common(1)[0][0]
    moved = [name for name, own in orders.items() if own != usual and sorted(own) == sorted(usual)]
    if moved:
        yield (
            f"{_files(moved)} the landmarks in another order than most files: landmarks count by their place in the "
            "file,\n  not by their names. Sort them there."
        )
    other = [name for name, own in orders.items() if len(own) == len(usual) and sorted(own) != sorted(usual)]
    numbered = _numbered(usual) and all(_numbered(orders[name]) for name in other)
    if other and not numbered:
        yield f"{_files(other)} landmarks by other names than most files: are they the same ones, in the same order?"


def _numbered(labels) -> bool:
    """Return whether labels are consecutive numbers, as programs assign: F-1, F-2, ..."""
    numbers = ["".join(c for c in label if c.isdecimal()) for label in labels]
    return all(numbers) and all(int(b) == int(a) + 1 for a, b in itertools.pairwise(numbers))


def _files(names):
    shown = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    return f"{len(names)} file{'s' if len(names) > 1 else ''} ({shown}) name{'' if len(names) > 1 else 's'}"
