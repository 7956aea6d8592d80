"""The time that records and ledgers state: that of the start, before any record is looked at, to the minute.

How long data take to be read and processed depends on them, so a time that is taken afterwards would tell of them.
"""

import contextlib
import contextvars
import datetime

_STARTED: contextvars.ContextVar[str | None] = contextvars.ContextVar("started", default=None)


def now() -> str:
    """Return the time in UTC, to the minute; within `work_begins` the time at which that was entered."""
    return _STARTED.get() or datetime.datetime.now(datetime.UTC).isoformat(timespec="minutes")


@contextlib.contextmanager
def work_begins():
    """Let all work in this context state the time of its beginning; nested contexts change nothing."""
    token = _STARTED.set(now())
    try:
        yield
    finally:
        _STARTED.reset(token)
