"""Per-record person or group labels."""

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from jaxgeodp.checks import InputError

# As Python writes numbers, but for those that are too long to be compared as such: "1.1" is one, "1.10" a word.
_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,14}|-?(0|[1-9][0-9]{0,8})\.(0|[0-9]{0,5}[1-9])")
#: One for each record, numbers or words.
Labels = Sequence[Any] | np.ndarray | jax.Array


def label_keys(owner: str, what: str, labels: Labels, n: int) -> Iterator[Hashable]:
    """Return for each record a key that equal labels share; None for a missing label.

    One by one: a label's value must decide neither how much memory is needed nor whether there is an answer.

    Args:
        owner: whom a refusal names.
        what: the argument's name.
        labels: (n,), numbers or words.
        n: number of records.

    Raises:
        ValueError: not one label a record.
    """
    if isinstance(labels, np.ma.MaskedArray):
        hidden = np.ma.getmaskarray(labels)
        labels = np.array(labels, object)
        labels[hidden] = None
    if isinstance(labels, jax.Array):  # at once: one by one would take a transfer each
        labels = np.asarray(labels)
    shape = getattr(labels, "shape", (len(labels),) if isinstance(labels, Sequence) else ())
    if shape != (n,) or not isinstance(labels, Iterable):
        raise InputError(f"{owner}: {what} must hold one label for each record.")
    return map(label_key, labels)


def label_key(label) -> Hashable:
    """Return a key that equal labels share, None for missing ones. Hashing and comparing it never fails."""
    try:
        if getattr(label, "shape", None) == () and not isinstance(label, np.generic):
            label = None if np.ma.is_masked(label) else label.item()  # an array of one number, which has no hash
        if label is None or type(label).__name__ in ("NAType", "NaTType") or not label == label:
            return None
        number = hash(label)
    except Exception:  # a label that cannot be compared is one of those that are missing
        return None
    if type(label) in (str, bytes, int, float, bool) or isinstance(label, np.generic):
        return label
    return _Guarded(label, number)


def as_person(key: Hashable) -> Hashable:
    """Return the key of a person's label: one, if text, whatever blanks are around it, and the number that it writes.

    So 7, 7.0, "7" and "7 " are one person, "07" is another, and "" is a missing label.
    """
    label = key.label if isinstance(key, _Guarded) else key
    if not isinstance(label, str):
        return key
    text = str.__str__(label).strip()
    if _NUMBER.fullmatch(text):
        return float(text) if "." in text else int(text)
    return text or None


class _Guarded:
    """Label of another class, whose comparison with others may fail: it then differs from them."""

    __slots__ = ("label", "number")

    def __init__(self, label, number: int):
        self.label, self.number = label, number

    def __hash__(self):
        return self.number

    def __eq__(self, other):
        try:
            return bool(self.label == (other.label if isinstance(other, _Guarded) else other))
        except Exception:
            return False
