"""Names of columns that tell entries of a symmetric matrix by one or two labels: var_a, cov_ab, var_b; Fz-Fz, Fz-Cz."""

import itertools
import math
import re
from collections.abc import Iterator
from typing import NamedTuple

_LONG = r"var(?:iance)?|cov(?:ar(?:iance)?)?|corr?(?:elation)?|stdev|std|sd|sigma"
_MOMENT = re.compile(rf"({_LONG}|[vcsr])([0-9]{{1,2}}|[a-z]{{1,2}}2?)?")
_LAST = re.compile(_LONG)
_OF_TWO = ("c", "r", "cov", "covar", "covariance", "cor", "corr", "correlation")
_DIGITS = re.compile(r"(\D*)(\d+)(\D*)")
_WORD = re.compile(r"[^\W_]+")
_MARKS = "-:;,|/~._ "
# What may be a unit: it begins with a bracket, or a mark.
_END = re.compile(r"[\s_.:-]*[\[(][^\[(]*$|[\s_.:-]+[^\s_.:-]*$")


class Moment(NamedTuple):
    """A name such as var_a, cov_ab or sigma_x2."""

    word: str
    labels: tuple[str, ...]
    squared: bool


def in_pairs(names: tuple[str, ...]) -> list[tuple[int, int]] | None:
    """Parse names by pairs of labels as (row, column), from 0; units that all have do not count.

    The order of the labels is that of the diagonal, else one in which the columns are a triangle by rows or columns.
    None unless the pairs are all entries of a matrix, a triangle, or what is off the diagonal.
    """
    for own in (names, without_units(names)):
        found = next((entries for labels in _readings(own) if (entries := entries_of(labels)) is not None), None)
        if found is not None:
            return found
    return _product(names) or _in_order(names)


def complete(entries: list[tuple[int, int]]) -> bool:
    """Return whether entries, from 0, are all of a matrix, a triangle, or what is off the diagonal; each once."""
    size = 1 + max((max(entry) for entry in entries), default=0)
    off = {(i, j) for j in range(size) for i in range(j)}
    once = {(min(entry), max(entry)) for entry in entries}
    if len(once) == len(entries):
        return size > 1 and once in (off, off | {(k, k) for k in range(size)})
    return len(set(entries)) == len(entries) == size**2


def without_units(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return names without what all have at their end, from a bracket or a mark on."""
    words = [name.strip() for name in names]
    while len(words) > 1:
        ends = [_END.search(word) for word in words]
        if len({end[0].strip() if end else "" for end in ends}) > 1 or not all(end and end.start() for end in ends):
            break
        words = [word[: end.start()] for word, end in zip(words, ends, strict=True) if end]
    return tuple(words)


def moments(names: tuple[str, ...]) -> Iterator[list[Moment]]:
    """Yield what names such as var1, cov12, cov_xy, s_x^2, x_var, cov(a,b) tell, in each way in which all are read."""
    last = all(_LAST.fullmatch(own[-1]) for own in _words(names) if own)
    for glued in (False, True):
        found = [moment(_moved(name) if last else name, glued) for name in names]
        if all(own is not None for own in found):
            yield [own for own in found if own is not None]


def moment(name: str, glued: bool) -> Moment | None:
    """Parse one name; None where it is no moment.

    Args:
        name: of a column.
        glued: whether two letters or digits behind the word are two labels: cov_xy, c12.
    """
    name = name.strip().lower().replace("\u00b2", "^2")
    plain = re.sub(r"^(s|sigma)2(?=[ _.-])", r"\1", name.replace("^2", ""))
    squared = plain != name
    words = _WORD.findall(plain)
    first = _MOMENT.fullmatch(words[0]) if words else None
    if first is None:
        return None
    word, labels = first[1], [own for own in (first[2], *words[1:]) if own]
    if len(labels) == 2:
        return Moment(word, tuple(labels), squared)
    if len(labels) != 1:
        return None
    (label,) = labels
    if word in ("s", "sigma") and label[-1] == "2" and label[:-1].isalpha():
        label, squared = label[:-1], True
    if not glued:
        return None if word in _OF_TWO else Moment(word, (label,), squared)
    pair = len(label) == 2 and (label.isalpha() or label.isdigit())
    return Moment(word, tuple(label) if pair else (label,), squared)


def _moved(name):
    """Return x_var as var_x, x_y_cov as cov_x_y."""
    *labels, word = _WORD.findall(name) or [""]
    return "_".join([word, *labels])


def plain_readings(names: tuple[str, ...]) -> Iterator[list[tuple[str, ...]]]:
    """Yield labels of names that have nothing else: aa, ab, bb; Fz-Fz, Fz-Cz; lh_V1:lh_V1, lh_V1:rh_V1."""
    words = _words(names)
    if all(len(own) == 1 and len(own[0]) < 3 and own[0].isalpha() for own in words):
        yield [tuple(own[0]) for own in words]
    for mark in _MARKS:
        if all(name.strip().count(mark) == 1 for name in names):
            yield [tuple(part.strip() for part in name.lower().split(mark)) for name in names]
    yield from _in_words(words)


def _readings(names):
    """Yield labels of the columns, in the ways in which names may be read."""
    yield from plain_readings(names)
    yield from _stripped_readings(names)
    for found in moments(names):
        yield [own.labels for own in found]


def _stripped_readings(names):
    """Yield labels of names after words, or a letter, that all of them begin with: cov.F3.F3, cov.F3.C4; Mrr, Mrt."""
    words = _words(names)
    letters = [own[0] for own in words if len(own) == 1 and len(own[0]) == 3 and own[0].isalpha()]
    if len(letters) == len(words) and len({own[0] for own in letters}) == 1:
        yield [tuple(own[1:]) for own in letters]
    shared = words
    while len(shared) > 1 and min(map(len, shared)) > 1 and len({own[0] for own in shared}) == 1:
        shared = [own[1:] for own in shared]
    if shared is not words:
        yield from _in_words(shared)


def _product(names) -> list[tuple[int, int]] | None:
    """Return all entries by rows, if names are all pairs of labels in this order: F3xF3, F3xO1, O1xF3, O1xO1."""
    size = math.isqrt(len(names))
    words = [name.strip().lower() for name in names]
    diagonal = words[:: size + 1]
    if size < 2 or size**2 != len(words):
        return None
    for length in range(min(map(len, diagonal))):
        labels = [word[: (len(word) - length) // 2] for word in diagonal]
        mark = words[0][len(labels[0]) :][:length]
        if len(set(labels)) == size and words == [a + mark + b for a in labels for b in labels]:
            return [(i, j) for i in range(size) for j in range(size)]
    return None


def _in_order(names) -> list[tuple[int, int]] | None:
    """Return entries of names such as c11, ..., c19, c110, ..., c1010: what these digits tell in usual orders."""
    read = [_DIGITS.fullmatch(name.strip().lower()) for name in names]
    if None in read or len({(own[1], own[3]) for own in read if own is not None}) != 1:
        return None
    digits = [own[2] for own in read if own is not None]
    for size in {math.isqrt(len(names)), math.isqrt(2 * len(names)), math.isqrt(2 * len(names)) + 1}:
        pairs = [(i, j) for i in range(size) for j in range(size)]
        lower, upper = [(i, j) for i, j in pairs if i >= j], [(i, j) for i, j in pairs if i <= j]
        off = [[(i, j) for i, j in own if i != j] for own in (lower, upper)]
        for first, order in itertools.product((0, 1), (pairs, lower, upper, *off)):
            if digits == [f"{i + first}{j + first}" for i, j in order]:
                return order
    return None


def _words(names):
    return [tuple(_WORD.findall(name.lower())) for name in names]


def _in_words(words):
    """Yield labels that are one or two words, or the halves of as many words in each."""
    if all(0 < len(labels) < 3 for labels in words):
        yield words
    lengths = {len(own) for own in words}
    if len(lengths) == 1 and (middle := min(lengths) // 2) > 0 and min(lengths) % 2 == 0:
        yield [("_".join(own[:middle]), "_".join(own[middle:])) for own in words]


def entries_of(pairs: list[tuple[str, ...]]) -> list[tuple[int, int]] | None:
    """Return entries from one or two labels of each column; None where they are not complete, or of no known order."""
    met = list(dict.fromkeys(label for own in pairs for label in own))
    diagonal = [own[0] for own in pairs if own[0] == own[-1]]
    labels = diagonal or next((own for own in (met, sorted(met)) if _are_in_order(pairs, own)), None)
    if labels is None or set(labels) != set(met) or len(set(labels)) < len(labels):
        return None
    entries = [(labels.index(own[0]), labels.index(own[-1])) for own in pairs]
    return entries if complete(entries) else None


def _are_in_order(pairs, labels) -> bool:
    """Return whether pairs of labels are ordered as a lower or upper triangle, by rows or by columns."""
    entries = [(labels.index(own[0]), labels.index(own[-1])) for own in pairs]
    triangle = all(i >= j for i, j in entries) or all(i <= j for i, j in entries)
    return triangle and entries in (sorted(entries), sorted(entries, key=lambda entry: entry[::-1]))
