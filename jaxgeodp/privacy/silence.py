"""No warnings while records are in use: they would tell of them."""

import contextlib
import threading
import warnings
from collections.abc import Iterator

import numpy as np


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """Give no warnings, which would tell of the records: none of the process, while a thread is inside.

    What comes later goes before: filters that another thread sets meanwhile can still show or raise warnings.
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

    def __init__(self):
        self.inside = set()

    def match(self, text: str) -> bool:
        """Return whether a warning is not given."""
        return bool(self.inside)


_LOCK = threading.Lock()
_ANYTHING = _Anything()
_FILTER = ("ignore", _ANYTHING, Warning, None, 0)


def _enter(mark):
    with _LOCK:
        _ANYTHING.inside.add(mark)
        if _FILTER not in warnings.filters[:1]:
            warnings.filters.insert(0, _FILTER)


def _leave(mark):
    with _LOCK:
        _ANYTHING.inside.discard(mark)
        while not _ANYTHING.inside and _FILTER in warnings.filters:
            warnings.filters.remove(_FILTER)
