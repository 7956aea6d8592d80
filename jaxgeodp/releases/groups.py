"""One release for each of several groups of records, charged once; their sizes stay private."""

import dataclasses
import functools
from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Any

import jax
import numpy as np

from jaxgeodp.checks import InputError, positive_integer
from jaxgeodp.compiling import like
from jaxgeodp.domains.labels import Labels, label_key, label_keys
from jaxgeodp.domains.persons import person_places
from jaxgeodp.domains.records import kind_of_data
from jaxgeodp.privacy.decimals import float_below, written
from jaxgeodp.privacy.guarantee import ADD_REMOVE, ADJACENCY, EITHER
from jaxgeodp.privacy.ledger import Ledger
from jaxgeodp.privacy.release import Release, make_releases
from jaxgeodp.releases.add_remove import hidden_count
from jaxgeodp.releases.context import releasing
from jaxgeodp.releases.drafts import Request, raw_records
from jaxgeodp.releases.mechanism import Mechanism, checked_again
from jaxgeodp.releases.ways import FixedTime, way_of


def release_groups(
    mechanism: Mechanism,
    data,
    labels: Labels,
    groups: Sequence[Hashable],
    ledger: Ledger | None = None,
    *,
    adjacency: str = ADD_REMOVE,
    persons: Labels | None = None,
    groups_per_person: int | None = None,
    delta: float = 0.0,
    numerics: str = "idealized",
    more: dict | None = None,
) -> dict[Any, Release]:
    """Return a private release for each group of records; together they have the mechanism's guarantee.

    A record is in the group that its label names, and in none if that is no group. How many are in a group is private:
    each release has a count with noise, as under ``adjacency="add-remove"`` of `Mechanism.release`. A record more or
    less is one of one group, so that all releases together promise what each does (parallel composition). Where what is
    hidden is instead which record one of them is ("replace-one"), it may leave one group for another: each release then
    has half of epsilon, or mu/sqrt(2).

    With ``persons``, what a person has in one group becomes one record of that group, their Frechet mean, and all that
    one person contributes to all groups is protected (docs/mathematics.md, Theorem W). Somebody may be in each of the
    K groups: each release then has epsilon/K, or mu/sqrt(K). If nobody should be in more than L of them, as with a
    diagnosis (L = 1), ``groups_per_person=L`` makes that sure, and each has epsilon/L, or mu/sqrt(L), under
    "replace-one" the same with min(2 L, K) in place of L.

    Args:
        mechanism: with one privacy parameter, epsilon or mu.
        data: (n, \\*shape of a record), for any n; see `Mechanism.release`.
        labels: (n,), the group of each record: numbers or words, of the kind of ``groups``.
        groups: the public names of the groups, chosen without looking at the labels.
        ledger: charged once, before anything is drawn.
        adjacency: "add-remove" or "replace-one"; with a ledger, that of the data set's other releases.
        persons: (n,), a label of the person for each record; see `Mechanism.release`.
        groups_per_person: L, public, at least 1: a person who has records in more of the groups is in none. By default
            all groups may share a person.
        delta, numerics: see `Mechanism.release`.
        more: further entries of the records, all of them public.

    Returns:
        The release of each group, by its name. Records have "count", what the noisy count was, n, the number of
        places that follows from it, and "group"; with ``persons``, both count persons.

    Raises:
        ValueError: names that are no groups, not one label a record; see `Mechanism.release`. Nothing has been charged
            then.
    """
    name = type(mechanism).__name__
    way, unit = way_of(name, delta, numerics), "record" if persons is None else "person"
    request = Request(mechanism, way, adjacency, unit, "all groups together", more=more)
    with releasing():
        checked_again(mechanism)
        request.check()
        records = np.asarray(raw_records(mechanism, data))
        numbers = _numbered(name, groups)
        most = _most_groups(name, len(numbers), persons, groups_per_person)
        keys = label_keys(name, "labels", labels, len(records))
        _check_kinds(name, labels, numbers)
        places = np.fromiter((numbers.get(key, -1) for key in keys), np.int64, len(records))
        # Who is replaced may leave as many groups as they enter.
        times = most if adjacency == ADD_REMOVE else min(2 * most, len(numbers))
        if isinstance(way, FixedTime):
            way = FixedTime(float_below(Fraction(written(way.delta)) / times))
            request = dataclasses.replace(request, way=way)
        names = [group.item() if isinstance(group, np.generic) else group for group in numbers]
        shape = jax.ShapeDtypeStruct(records.shape[1:], records.dtype)
        if persons is None:
            hidden, of = hidden_count(request, shape, times), {"of": names}

            def read():
                return records
        else:
            hidden = hidden_count(request, shape, times, "Theorems O and W")
            of = {"of": names, "of_one_person_at_most": most}
            places, read = _one_each(mechanism, records, places, persons, most)
        drafts = [
            hidden.draft(lambda place=place: read()[places == place], {"group": {"name": own, **of}})
            for place, own in enumerate(names)
        ]
        # Half of what hides a move hides that a record is there at all. A person's record that is replaced may become
        # another person's, as in a single release.
        either = EITHER if persons is None else ADJACENCY
        holds_for = ADD_REMOVE if adjacency == ADD_REMOVE else either
        releases = make_releases(drafts, ledger, hidden.guarantee, holds_for)
    return dict(zip(numbers, releases, strict=True))


def _most_groups(owner, count, persons, groups_per_person):
    """Return in how many groups the data of one record, or of one person, may be."""
    if persons is None:
        if groups_per_person is not None:
            raise InputError(
                f"{owner}: groups_per_person needs persons, the person of each record; give it, or leave "
                "groups_per_person out."
            )
        return 1
    if groups_per_person is None:
        return count
    positive_integer(owner, "groups_per_person", groups_per_person, 1)
    return min(count, groups_per_person)


def _one_each(mechanism, records, places, persons, most):
    """Return the group of each person's record, (n + 1,), and a function that gives these: one per person and group.

    Those of a person in more than ``most`` groups are in none (-1), as are the unused ones of the n + 1: how long it
    takes to make them depends on the number of records alone.
    """
    name, n = type(mechanism).__name__, len(records)
    whose, _ = person_places(name, persons, n)
    own, groups = memberships(whose, places, most)
    summaries = mechanism.domain.of_persons(name, like(records))
    # For all groups at once; read only after the charge.
    read = functools.cache(lambda: summaries(records, own, n + 1))
    return groups, read


def memberships(whose, places, most):
    """Return each record's index among those per person and group, n for none; and the groups of these, (n + 1,)."""
    n, count = len(whose), np.max(places, initial=0) + 1
    own, groups = np.full(n, n), np.full(n + 1, -1)
    listed = places >= 0
    pairs, own[listed] = np.unique(whose[listed] * count + places[listed], return_inverse=True)
    persons, joined = np.divmod(pairs, count)
    crowded = np.bincount(persons, minlength=n) > most
    groups[: len(pairs)] = np.where(crowded[persons], -1, joined)
    return own, groups


def _numbered(owner, groups):
    """Return the index of each group; refuse what are no names of groups."""
    listed = groups.ndim == 1 if isinstance(groups, np.ndarray) else isinstance(groups, Sequence)
    if not listed or isinstance(groups, str | bytes) or len(groups) == 0:
        raise InputError(f"{owner}: groups must be the public names of at least one group.")
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
            f"{owner}: labels are {kind_of_data(labels)}, but groups are {'words' if all(words) else 'numbers'}; use "
            "one type for both."
        )
