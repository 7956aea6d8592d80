"""No warnings while records are in use: they would tell of them."""

import contextlib
import threading
import warnings
from collections.abc import Iterator

import numpy as np


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """Give no warnings, which would tell of the records: none of the process, while a thread is inside."""
    with np.errstate(all="ignore"):
        _SILENCE.begin()
        try:
            yield
        finally:
            _SILENCE.end()


class _Silence:
    """The filters of warnings, which all threads share: those of before come back when the last one leaves."""

    def __init__(self):
        self.lock, self.inside, self.before = threading.Lock(), 0, warnings.catch_warnings()

    def begin(self):
        with self.lock:
            if not self.inside:
                self.before = warnings.catch_warnings()
                self.before.__enter__()
                warnings.simplefilter("ignore")
            self.inside += 1

    def end(self):
        with self.lock:
            self.inside -= 1
            if not self.inside:
                self.before.__exit__(None, None, None)


_SILENCE = _Silence()
