"""Names of columns that tell entries of a symmetric matrix by one or two labels: var_a, cov_ab, var_b; Fz-Fz, Fz-Cz."""

import itertools
import re
from typing import NamedTuple

from jaxgeodp.checks import InputError

_DEVIATIONS = ("sd", "std", "stdev")
_CORRELATIONS = ("r", "cor", "corr", "correlation")
_MOMENTS = r"var(?:iance)?|cov(?:ariance)?|corr?(?:elation)?|stdev|std|sd|sigma|[vcsr]"
# var1, cov12; varx, cov_xy, sigma_x2.
_GLUED = re.compile(rf"({_MOMENTS})[ _.-]?(?:([0-9])([0-9])?|([a-z])([a-z])?)(2)?")
_WORD = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"\d+")
# What may be a unit: it begins with a bracket, or a mark.
_END = re.compile(r"[\s_.:-]*[\[(][^\[(]*$|[\s_.:-]+[^\s_.:-]*$")


class _Moment(NamedTuple):
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
        found = next((entries for pairs in _readings(own) if (entries := _entries(pairs)) is not None), None)
        if found is not None:
            return found
    return None


def complete(entries: list[tuple[int, int]]) -> bool:
    """Return whether entries, from 0, are all of a matrix, a triangle, or what is off the diagonal; each once."""
    size = 1 + max(max(entry) for entry in entries)
    off = {(i, j) for j in range(size) for i in range(j)}
    once = {(min(entry), max(entry)) for entry in entries}
    if len(once) == len(entries):
        return size > 1 and once in (off, off | {(k, k) for k in range(size)})
    return len(set(entries)) == len(entries) == size**2


def only_count(names: tuple[str, ...]) -> bool:
    """Return whether names are letters in a row, or differ in one number, by 1: a, b, c; f1, f2; S[0], S[1]."""
    words = [name.strip().lower() for name in names]
    if all(len(word) == 1 and word.isalpha() for word in words):
        return all(ord(b) == ord(a) + 1 for a, b in itertools.pairwise(words))
    numbers = [_NUMBER.findall(word) for word in words]
    if len({_NUMBER.sub("\0", word) for word in words}) > 1 or max(map(len, words)) > 200:
        return False
    differ = [column for column in zip(*numbers, strict=True) if len(set(column)) > 1]
    return len(differ) == 1 and all(int(b) == int(a) + 1 for a, b in itertools.pairwise(differ[0]))


def check_moments(names: tuple[str, ...]) -> None:
    """Refuse names that tell standard deviations or correlations where covariance matrices are read.

    Args:
        names: of columns.

    Raises:
        ValueError: they do.
    """
    if any(_entries(pairs) is not None for pairs in _plain_readings(names)):
        return
    found = _moments(without_units(names)) or _moments(names)
    if found is None:
        return
    pairs = any(len(own.labels) == 2 for own in found)
    related = [own.word in _CORRELATIONS for own in found]
    wrong = [
        name
        for name, own, is_correlation in zip(names, found, related, strict=True)
        if own.word in _DEVIATIONS
        or (is_correlation and not all(related))
        or (pairs and own.word in ("s", "sigma") and len(own.labels) == 1 and not own.squared)
    ]
    if wrong:
        raise InputError(
            f"its columns {', '.join(wrong[:7])} are standard deviations or correlations by their names, not entries "
            "of covariance matrices: square the former, multiply the latter by both deviations; or say --triangle, if "
            "they are entries."
        )


def without_units(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return names without what all have at their end, from a bracket or a mark on."""
    words = [name.strip() for name in names]
    while len(words) > 1:
        ends = [_END.search(word) for word in words]
        if len({end[0].strip() if end else "" for end in ends}) > 1 or not all(end and end.start() for end in ends):
            break
        words = [word[: end.start()] for word, end in zip(words, ends, strict=True) if end]
    return tuple(words)


def _readings(names):
    """Yield labels of the columns, in the ways in which names may be read."""
    yield from _plain_readings(names)
    found = _moments(names)
    if found is not None and not any(own.word in _DEVIATIONS for own in found):
        yield [own.labels for own in found]


def _plain_readings(names):
    """Yield labels of names that have nothing else: aa, ab, bb; Fz-Fz, Fz-Cz; lh_V1:lh_V1, lh_V1:rh_V1."""
    words = [tuple(_WORD.findall(name.lower())) for name in names]
    if all(len(own) == 1 and len(own[0]) < 3 and own[0].isalpha() for own in words):
        yield [tuple(own[0]) for own in words]
    shared = words
    while len(shared) > 1 and min(map(len, shared)) > 1 and len({own[0] for own in shared}) == 1:
        shared = [own[1:] for own in shared]
    for own in (words, shared):
        if all(0 < len(labels) < 3 for labels in own):
            yield own
    lengths = {len(own) for own in words}
    if len(lengths) == 1 and (middle := min(lengths) // 2) > 0 and min(lengths) % 2 == 0:
        yield [("_".join(own[:middle]), "_".join(own[middle:])) for own in words]


def _moments(names) -> list[_Moment] | None:
    """Return what names such as var1, cov12, varx, cov_xy, var(a), cov(a,b) tell; None where one is not such."""
    found = [_moment(name.strip().lower()) for name in names]
    return [own for own in found if own is not None] if all(own is not None for own in found) else None


def _moment(name):
    if (glued := _GLUED.fullmatch(name)) is not None:
        word, *labels, squared = glued.groups()
        return _Moment(word, tuple(label for label in labels if label), squared is not None)
    word, *labels = _WORD.findall(name) or [""]
    if not re.fullmatch(_MOMENTS, word) or len(labels) not in (1, 2):
        return None
    return _Moment(word, tuple(labels), False)


def _entries(pairs):
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
