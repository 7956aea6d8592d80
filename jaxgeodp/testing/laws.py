"""Error messages of broken laws."""

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def of_law(name: str, whose: object) -> Iterator[None]:
    """Name the law and who breaks it in an AssertionError."""
    try:
        yield
    except AssertionError as broken:
        raise AssertionError(f"{whose} breaks the law {name!r}: {broken}") from broken
