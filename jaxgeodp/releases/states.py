"""Private states: integers of blocks of records, to be added up anywhere and released once.

A state is as private as its records: it is made for a merge and a finish, not for eyes. Only integers leave a block, so
that the order of merging, and what does the merging, cannot change a bit of the sum.
"""

import dataclasses
import fractions
import functools
import hashlib
import json
import math
import operator
import pathlib
import secrets
from typing import Any

import numpy as np

from jaxgeodp.checks import InputError
from jaxgeodp.files import write_atomically

_TITLE = "private sums of jaxgeodp: as secret as the records"
_VERSION = 1
#: What may be counted.
UNITS = ("record", "person", "person at one site")
# Of a file that is read.
_MOST_BYTES = 2**28
# Of one record: dimensions of its array, and numbers.
_MOST_DIMENSIONS, _MOST_NUMBERS = 8, 2**26


@dataclasses.dataclass(frozen=True, eq=False)
class State:
    """The integers of some blocks of records: private. `Mechanism.prepare` makes it, ``+`` merges two.

    Attributes:
        mechanism: digest of all public numbers of the mechanism.
        record: shape of one record.
        n: number of records, or of persons.
        sums: an array of Python's integers.
        parts: a random name for each block that is in it.
        unit: what n counts, "record", "person" or, of several sites, "person at one site".
    """

    mechanism: str
    record: tuple[int, ...]
    n: int
    sums: np.ndarray = dataclasses.field(repr=False)
    parts: frozenset[str] = dataclasses.field(repr=False)
    unit: str = "record"

    def __post_init__(self):
        if not isinstance(self.sums, np.ndarray) or not isinstance(self.mechanism, str) or self.unit not in UNITS:
            raise InputError("State: needs the words and the array of sums returned by prepare.")
        dims: Any = self.record
        whole = isinstance(dims, tuple) and all(type(m) is int and 0 <= m <= _MOST_NUMBERS for m in dims)
        if not whole or len(dims) > _MOST_DIMENSIONS or math.prod(dims) > _MOST_NUMBERS:
            raise InputError("State: record must be the array shape of one record.")
        if type(self.n) is not int or self.n < 0:
            raise InputError("State: n must be an integer of at least 0, the number of records.")
        parts = self.parts if isinstance(self.parts, frozenset) else ()
        if not parts or not all(isinstance(part, str) and part for part in parts):
            raise InputError("State: parts must be the names of the blocks that it contains.")

    @property
    def id(self) -> str:
        """Return the id of the merged blocks, in whatever order; ledgers refuse to finish one twice."""
        return hashlib.sha256("".join(sorted(self.parts)).encode()).hexdigest()

    def __add__(self, other: "State") -> "State":
        """Return the merged state.

        Raises:
            ValueError: they are of other mechanisms or records, or a block is in both.
        """
        if not isinstance(other, State):
            return NotImplemented
        return merged([self, other])

    @property
    def alike(self) -> tuple:
        """Return what states must have in common to be merged."""
        return self.mechanism, self.record, self.unit, self.sums.shape

    def save(self, path) -> None:
        """Write it as JSON to a file that only its owner may read (mode 0600); an existing one is replaced.

        Args:
            path: of the file. It is as secret as the records.

        Raises:
            OSError: the system cannot write it.
        """
        write_atomically(path, json.dumps(self.to_json()) + "\n", private=True)

    def to_json(self) -> dict:
        """Return a JSON document, with integers as strings, which any reader keeps exactly."""
        return {
            "title": _TITLE,
            "version": _VERSION,
            "mechanism": self.mechanism,
            "record": list(self.record),
            "n": self.n,
            "unit": self.unit,
            "shape": list(self.sums.shape),
            "sums": [str(number) for number in self.sums.ravel()],
            "parts": sorted(self.parts),
        }

    @classmethod
    def load(cls, path) -> "State":
        """Return the state that `save` wrote.

        Raises:
            OSError: the file cannot be read.
            ValueError: it holds no state.
        """
        path = pathlib.Path(path)
        try:
            if path.stat().st_size > _MOST_BYTES:
                raise ValueError("too long")
            return cls.from_json(json.loads(path.read_bytes()))
        except (ValueError, KeyError, TypeError, RecursionError):
            raise InputError(f"{path}: is not a state of jaxgeodp.") from None

    @classmethod
    def from_json(cls, document: dict) -> "State":
        """Return the state of `to_json`.

        Raises:
            ValueError, KeyError, TypeError: another document.
        """
        if (document["title"], document["version"]) != (_TITLE, _VERSION):
            raise ValueError("another document")
        shape, record = (tuple(operator.index(m) for m in document[name]) for name in ("shape", "record"))
        numbers = np.array([int(word) for word in document["sums"]], object)
        n, unit, parts = operator.index(document["n"]), document["unit"], frozenset(map(str, document["parts"]))
        if n < 0 or unit not in UNITS or len(numbers) != math.prod(shape) or min(shape, default=0) < 0:
            raise ValueError("numbers that disagree")
        return cls(str(document["mechanism"]), record, n, numbers.reshape(shape), parts, unit)


def merged(states: Any) -> State:
    """Return the merged state of all, in any order.

    Args:
        states: at least one, which `Mechanism.prepare` gave for one mechanism, with all its numbers.

    Returns:
        A state, of all their records.

    Raises:
        ValueError: see `State.__add__`; or there is none.
    """
    states = list(states)
    if not states or not all(isinstance(state, State) for state in states):
        raise InputError("State: there are no states to merge; give at least one.")
    first = states[0]
    if any(state.alike != first.alike for state in states):
        raise InputError(
            "State: the states differ in mechanism or records; prepare all blocks with the same mechanism and "
            "parameters, and all or none with persons."
        )
    parts = frozenset().union(*(state.parts for state in states))
    if len(parts) < sum(len(state.parts) for state in states):
        raise InputError(
            "State: several states contain the same block, which would count twice; merge each state once."
        )
    sums = functools.reduce(operator.add, (state.sums for state in states))
    return dataclasses.replace(first, n=sum(state.n for state in states), sums=sums, parts=parts)


def check_sums(owner: str, state: State, shape: tuple[int, ...], largest: int) -> None:
    """Refuse sums whose shape or size no records can have, before anything is charged.

    Args:
        owner: whom a refusal names.
        state: see `State`.
        shape, largest: of the integers of one record; see `releases.integers.Sums`.

    Raises:
        ValueError: another shape, numbers that are not whole, or larger ones than n records can have.
    """
    numbers = state.sums.ravel()
    if state.sums.shape != shape or not all(isinstance(number, int | np.integer) for number in numbers):
        raise InputError(f"{owner}: a state needs whole numbers of shape {shape}, got {state.sums.shape}.")
    if max(map(abs, map(int, numbers)), default=0) > state.n * largest:
        raise InputError(
            f"{owner}: no {state.n} records can have the sums of this state, which must be damaged; prepare it again."
        )


def new_part() -> str:
    """Return a fresh random name."""
    return secrets.token_hex(16)


def digest_of_public(thing: Any) -> str:
    """Return the SHA-256 of a public frozen dataclass of numbers, words, arrays, tuples and such dataclasses.

    Raises:
        ValueError: a field of another kind, of which equality cannot be told between machines.
    """
    digest = hashlib.sha256()
    for word in _words(thing):
        digest.update(f"{len(word)}:".encode() + word)
    return digest.hexdigest()


def _words(thing):
    if dataclasses.is_dataclass(thing):
        yield type(thing).__qualname__.encode()
        for field in dataclasses.fields(thing):
            if field.init:
                yield field.name.encode()
                yield from _words(getattr(thing, field.name))
        yield b"."
    elif isinstance(thing, tuple | list):
        yield f"{len(thing)} of".encode()
        for part in thing:
            yield from _words(part)
    elif thing is None or isinstance(thing, str | bool | np.bool_):
        yield f"{type(thing).__name__.removesuffix('_')} {thing}".encode()
    elif isinstance(thing, fractions.Fraction):
        yield f"fraction {thing}".encode()
    elif isinstance(thing, int | float | np.integer | np.floating):
        # 1, 1.0 and NumPy's are one number; a whole one that no float holds is told by its digits.
        whole = isinstance(thing, int | np.integer) and (abs(thing) >= 2**1023 or int(float(thing)) != thing)
        yield f"number {thing if whole else (float(thing) + 0.0).hex()}".encode()
    elif hasattr(thing, "__array__"):
        array = np.asarray(thing)
        array = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64) + 0.0  # no -0
        yield f"array {array.shape} {array.dtype.kind}".encode()
        yield array.tobytes()
    else:
        raise InputError(
            f"prepare: {type(thing).__name__} cannot be compared between machines; all fields of a mechanism must be "
            "plain public data."
        )
