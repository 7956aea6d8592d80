"""One release for each of several groups of records, charged once; their sizes stay private."""

from collections.abc import Hashable, Sequence
from typing import Any

import jax
import numpy as np

from jaxgeodp.checks import InputError
from jaxgeodp.domains.labels import Labels, label_key, label_keys
from jaxgeodp.domains.records import kind_of_data
from jaxgeodp.privacy.guarantee import ADD_REMOVE, ADJACENCY, EITHER
from jaxgeodp.privacy.ledger import Ledger
from jaxgeodp.privacy.release import Release, make_releases
from jaxgeodp.releases.add_remove import hidden_count
from jaxgeodp.releases.drafts import Wanted, raw_records
from jaxgeodp.releases.mechanism import Mechanism, checked_again, releasing
from jaxgeodp.releases.ways import FixedTime, way_of


def release_groups(
    mechanism: Mechanism,
    data,
    labels: Labels,
    groups: Sequence[Hashable],
    ledger: Ledger | None = None,
    *,
    adjacency: str = ADD_REMOVE,
    delta: float = 0.0,
    numerics: str = "idealized",
    more: dict | None = None,
) -> dict[Any, Release]:
    """A private release for each group of records; together they promise what the mechanism does.

    A record is in the group that its label names, and in none if that is no group. How many are in a group is private:
    each release has a count with noise, as under ``adjacency="add-remove"`` of `Mechanism.release`. A record more or
    less is one of one group, so that all releases together promise what each does (parallel composition). Where what is
    hidden is instead which record one of them is ("replace-one"), it may leave one group for another: each release then
    has half of epsilon, or mu/sqrt(2).

    Args:
        mechanism: with one privacy parameter, epsilon or mu.
        data: (n, \\*shape of a record), for any n; see `Mechanism.release`.
        labels: (n,), the group of each record: numbers or words, of the kind of ``groups``.
        groups: the public names of the groups, chosen without looking at the labels.
        ledger: charged once, before anything is drawn.
        adjacency: "add-remove" or "replace-one"; with a ledger, that of the data set's other releases.
        delta, numerics: see `Mechanism.release`.
        more: further entries of the records, all of them public.

    Returns:
        The release of each group, by its name. Records have "count", what the noisy count was, n, the number of
        places that follows from it, and "group".

    Raises:
        ValueError: names that are no groups, not one label a record; see `Mechanism.release`. Nothing has been charged
            then.
    """
    name = type(mechanism).__name__
    if adjacency not in (ADJACENCY, ADD_REMOVE):
        raise InputError(f"{name}: adjacency must be '{ADJACENCY}' or '{ADD_REMOVE}', got {adjacency!r}.")
    way = way_of(name, delta, numerics)
    with releasing():
        checked_again(mechanism)
        records = np.asarray(raw_records(mechanism, data))
        numbers = _numbered(name, groups)
        keys = label_keys(name, "labels", labels, len(records))
        _check_kinds(name, labels, numbers)
        places = np.fromiter((_place(numbers, key) for key in keys), np.int64, len(records))
        # A record that changes its group touches two releases.
        times = 1 if adjacency == ADD_REMOVE or len(numbers) == 1 else 2
        if isinstance(way, FixedTime):
            way = FixedTime(way.delta / times)
        wanted = Wanted(way, f"{adjacency} (all groups together)", more=more or {})
        hidden = hidden_count(mechanism, wanted, jax.ShapeDtypeStruct(records.shape[1:], records.dtype), times)
        names = [group.item() if isinstance(group, np.generic) else group for group in numbers]
        drafts = [
            hidden.draft(lambda place=place: records[places == place], {"group": {"name": own, "of": names}})
            for place, own in enumerate(names)
        ]
        # Half of what hides a move hides that a record is there at all.
        holds_for = ADD_REMOVE if adjacency == ADD_REMOVE else EITHER
        releases = make_releases(drafts, ledger, hidden.guarantee, holds_for)
    return dict(zip(numbers, releases, strict=True))


def _numbered(owner, groups):
    """The place of each group."""
    if isinstance(groups, str) or len(groups) == 0:
        raise InputError(f"{owner}: groups must be the public names of one group or more.")
    numbers = {}
    for group in groups:
        if not isinstance(group, str | int | float | np.generic) or label_key(group) is None:
            raise InputError(f"{owner}: groups must be words or numbers.")
        if group in numbers:
            raise InputError(f"{owner}: groups names {group!r} twice.")
        numbers[group] = len(numbers)
    return numbers


def _check_kinds(owner, labels, numbers):
    """Refuse labels of a type that no group has: all groups would be empty, whatever the labels are."""
    kind = getattr(getattr(labels, "dtype", None), "kind", "O")
    words = [isinstance(group, str) for group in numbers]
    if (kind in "iufb" and all(words)) or (kind == "U" and not any(words)) or kind == "S":
        raise InputError(
            f"{owner}: labels are {kind_of_data(labels)}, but groups are {'words' if all(words) else 'numbers'}; "
            "make them alike."
        )


def _place(numbers, key) -> int:
    try:
        return numbers.get(key, -1)
    except Exception:  # a label that cannot be compared is in no group
        return -1
