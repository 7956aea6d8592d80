"""No warnings while records are in use: they would tell of them."""

import contextlib
import re
import threading
import warnings
from collections.abc import Iterator
from typing import Any, cast

import numpy as np


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """Give no warnings, which would tell of the records: none of the process, while a thread is inside.

    Not of what another thread does to the filters meanwhile: those that it sets, or puts back at the end of
    `warnings.catch_warnings`, can still show or raise warnings.
    """
    mark = object()
    with np.errstate(all="ignore"):
        try:
            _enter(mark)
            yield
        finally:
            _leave(mark)


class _Anything:
    """Matches all texts while somebody is inside; `warnings` asks what stands in place of a pattern for its match.

    A filter that catches for good, and is taken away again, would be lost or kept where threads, or
    `warnings.catch_warnings` in one of them, put back the filters of before in another order.
    """

    #: Of a pattern that matches nothing, which is what others that read or copy filters get.
    pattern = "(?!)"

    def __init__(self):
        self.inside = set()

    def __reduce__(self):
        return re.compile, (self.pattern,)

    def match(self, text: str) -> bool:
        """Return whether a warning is not given."""
        return bool(self.inside)


_LOCK = threading.Lock()
_ANYTHING = _Anything()
_FILTER = ("ignore", _ANYTHING, Warning, None, 0)


def _enter(mark):
    with _LOCK:
        _ANYTHING.inside.add(mark)
        filters = cast(list[Any], warnings.filters)
        if _FILTER not in filters[:1]:
            filters.insert(0, _FILTER)


def _leave(mark):
    with _LOCK:
        _ANYTHING.inside.discard(mark)
        if not _ANYTHING.inside and _FILTER in warnings.filters:
            # Another list: a thread that goes through this one would leave out what follows.
            warnings.filters = [own for own in warnings.filters if own != _FILTER]
