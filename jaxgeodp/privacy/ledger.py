"""Budgets of data sets and what is spent: durable, exact, charged before any noise is drawn (docs/ledger.md)."""

import collections
import dataclasses
import json
import os
import pathlib
import re
import sqlite3
import unicodedata
from typing import Any, NamedTuple

from jaxgeodp.checks import InputError, positive_integer, short
from jaxgeodp.privacy.accounts import (
    charge_of,
    check_budget,
    describe_amounts,
    fits,
    parameters,
    remainder,
    total,
)
from jaxgeodp.privacy.clock import now
from jaxgeodp.privacy.guarantee import ADD_REMOVE, ADJACENCY, EITHER, KINDS, Guarantee, NotProven, kind_of
from jaxgeodp.privacy.ledger_file import check_pages, create, read, write

_DATASET = re.compile(r"\w[\w .:/-]{0,99}")
_ADJACENCIES = (ADJACENCY, ADD_REMOVE, EITHER)
_DIGEST = re.compile(r"[0-9a-f]{64}")


class Account(NamedTuple):
    """The state of one data set's budget.

    Attributes:
        dataset: its id.
        budget: all that may be spent.
        spent: parameters of the budget's kind, rounded up to floats.
        left: likewise, rounded down: a release that asks for this is granted.
        releases: how many have been charged.
        lost: how many of these have no record: interrupted, or still at work.
        adjacency: for which neighbours their sum holds: "replace-one", "add-remove" or "either".
    """

    dataset: str
    budget: Guarantee
    spent: dict[str, float]
    left: dict[str, float]
    releases: int
    lost: int
    adjacency: str


@dataclasses.dataclass(frozen=True, init=False)
class Ledger:
    """The budget of one data set, in a file that many processes may use at once.

    A release with a ledger is charged, and the charge is on the disk, before any noise is drawn: a crash afterwards
    loses the release, never the charge. What does not fit is refused.

    Args:
        path: of the file. It is created if it does not exist and ``budget`` is given.
        budget: `PureDP`, `ApproximateDP`, `GaussianDP` or `ZeroConcentratedDP`; it cannot be changed later. Without it,
            the data set must have one already.
        dataset: id of the data set: letters, digits, spaces and .:/-_; one file may hold many. It appears in reports,
            so it must not say anything private.

    Raises:
        ValueError: another budget, no budget, or a file that is no ledger or is damaged.
        OSError: the system cannot read or write the file.

    Example:
        >>> import pathlib, tempfile
        >>> from jaxgeodp.privacy import Ledger, PureDP
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "budget.db"
        >>> ledger = Ledger(path, PureDP(1.0))
        >>> ledger.charge(PureDP(0.1), "by hand")
        1
        >>> ledger.account().left
        {'epsilon': 0.9}
    """

    path: pathlib.Path
    budget: Guarantee
    dataset: str

    def __init__(self, path: str | os.PathLike[str], budget: Guarantee | None = None, dataset: str = "default"):
        """Open the ledger; if a budget is given, create the file or add the data set where missing."""
        object.__setattr__(self, "path", _checked_path(path))
        object.__setattr__(self, "dataset", _checked_dataset(dataset))
        if budget is not None:
            check_budget(budget)
            _add(self.path, budget, dataset)
        stored = read(self.path, self._stored_budget)
        if budget not in (None, stored):
            raise InputError(
                f"{self.path}: the budget of data set '{dataset}' is {stored}, not {budget}, and cannot be "
                "changed; leave it out to open the ledger."
            )
        object.__setattr__(self, "budget", stored)

    def __repr__(self):
        return f"Ledger({str(self.path)!r}, data set {self.dataset!r}, budget {self.budget})"

    def account(self) -> Account:
        """Return what is spent and left.

        Raises:
            ValueError: the file is damaged.
            OSError: the system cannot read the file.
        """
        return read(self.path, lambda connection: _account(connection, self.dataset, self.budget))

    def check(self, guarantee: Guarantee | NotProven, adjacency: str = ADJACENCY) -> None:
        """Raise what `charge` would raise, without charging; other charges may still come first.

        Args:
            guarantee: of the release.
            adjacency: see `charge`.

        Raises:
            ValueError: see `charge`.
            OSError: the system cannot read the file.
        """
        cost = charge_of(self.budget, guarantee)
        self._refuse_excess(guarantee, cost, read(self.path, self._left))
        read(self.path, lambda connection: self._refuse_mixture(connection, adjacency))

    def charge(
        self,
        guarantee: Guarantee | NotProven,
        mechanism: str,
        time: str | None = None,
        adjacency: str = ADJACENCY,
        state: str | None = None,
    ) -> int:
        """Take a release from the budget, now and for good; releases call this before they draw.

        Args:
            guarantee: of the release.
            mechanism: its name.
            time: of the charge; now by default.
            adjacency: for which neighbouring data sets the guarantee holds: "replace-one", "add-remove" or "either".
                Those of replace-one and of add-remove do not add up, so that a data set has releases of one of them.
            state: id of sums that are finished (`State.id`), 64 hexadecimal digits; each is finished once.

        Returns:
            The number of the entry.

        Raises:
            ValueError: not enough is left, nothing is promised, no conversion is declared, earlier releases have
                another adjacency, the state has been finished, or the file is damaged.
            OSError: the system cannot write the file; nothing must be released.
        """
        cost = charge_of(self.budget, guarantee)
        if adjacency not in _ADJACENCIES:
            raise InputError(f"Ledger: adjacency must be one of {', '.join(_ADJACENCIES)}, got {short(adjacency)}.")
        if state is not None and not (isinstance(state, str) and _DIGEST.fullmatch(state)):
            raise InputError(f"Ledger: state must be 64 hexadecimal digits, got {short(state)}.")
        time = now() if time is None else time
        for name, text in (("mechanism", mechanism), ("time", time)):
            if not isinstance(text, str) or not text.isprintable() or not 0 < len(text) <= 200:
                raise InputError(f"Ledger: {name} must be a text of 1 to 200 printable characters, got {short(text)}.")

        def work(connection):
            self._refuse_excess(guarantee, cost, self._left(connection))
            self._refuse_mixture(connection, adjacency)
            self._refuse_finished(connection, state)
            row = (self.dataset, *_stored(guarantee, adjacency, state), mechanism, time)
            query = (
                "INSERT INTO releases (dataset, kind, parameters, mechanism, time, record) VALUES (?, ?, ?, ?, ?, ?)"
            )
            # With a hash in it first, and back: what has no room for the hash is refused now, not when it is settled.
            connection.execute("SAVEPOINT room")
            connection.execute(query, (*row, "0" * 64))
            connection.execute("ROLLBACK TO room")
            return connection.execute(query, (*row, None)).lastrowid

        return write(self.path, work, "nothing was released")

    def settle(self, entry: int, digest: str) -> None:
        """Note the hash of a release's record (`record_digest`) in its entry; once. Releases do this themselves.

        Args:
            entry: number of the entry, as `charge` gave it.
            digest: 64 hexadecimal digits.

        Raises:
            ValueError: there is no such entry, or it has its hash.
            OSError: the system cannot write the file; the release must be dropped, as its entry counts it as lost.
        """
        if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
            raise InputError(f"Ledger: digest must be 64 hexadecimal digits, got {short(digest)}.")
        positive_integer("Ledger", "entry", entry, 1)
        if not entry < 2**63:
            raise InputError(f"{self.path}: there is no entry {short(entry)}.")

        def work(connection):
            query = "UPDATE releases SET record = ? WHERE id = ? AND dataset = ? AND record IS NULL"
            if connection.execute(query, (digest, entry, self.dataset)).rowcount != 1:
                raise InputError(f"{self.path}: entry {entry} of '{self.dataset}' is not waiting for a record.")

        write(self.path, work, "the release is lost and its charge stays")

    def _stored_budget(self, connection):
        check_pages(connection)
        budgets = _budgets(connection)
        if self.dataset not in budgets:
            known = ", ".join(f"'{name}'" for name in budgets) or "none"
            raise InputError(
                f"{self.path}: data set '{self.dataset}' has no budget; give it one first, or name one of: {known}."
            )
        return budgets[self.dataset]

    def _left(self, connection):
        if _budgets(connection).get(self.dataset) != self.budget:
            raise InputError(f"{self.path} was replaced after it was opened; open it again.")
        return remainder(self.budget, _spent(connection, self.dataset, self.budget))

    def _refuse_mixture(self, connection, adjacency):
        other = _adjacencies(connection, self.dataset) - {adjacency, EITHER}
        if other and adjacency != EITHER:
            raise InputError(
                f"{self.path}: the guarantees of earlier releases of data set '{self.dataset}' are for {other.pop()} "
                f"neighbours, and one for {adjacency} neighbours cannot be added to them; use the same, or a release "
                "without groups under --adjacency add-remove, which holds for both."
            )

    def _refuse_finished(self, connection, state):
        if state is not None and state in _states(connection):
            raise InputError(
                f"{self.path}: this state was finished before, for this or another data set; a second release needs "
                "newly prepared states."
            )

    def _refuse_excess(self, guarantee, cost, left):
        if fits(cost, left):
            return
        kind = type(self.budget)
        asked, room = describe_amounts(kind, cost, up=True), describe_amounts(kind, left, up=False)
        reason = "" if type(guarantee) is kind else f" (as {guarantee})"
        raise InputError(
            f"{self.path}: the ledger's budget is exhausted for this release: data set '{self.dataset}' has {room} "
            f"left of its budget {self.budget}, but this release asks for {asked}{reason}; ask for at most what is "
            "left, or release nothing more."
        )


def add_budget(path: str | os.PathLike[str], budget: Guarantee, dataset: str = "default") -> Ledger:
    """Open a `Ledger` with a new budget; refuse a data set that has one already.

    Raises:
        ValueError: see `Ledger`; the data set has a budget.
    """
    check_budget(budget)
    if _add(_checked_path(path), budget, _checked_dataset(dataset)):
        return Ledger(path, budget, dataset)
    stored = Ledger(path, dataset=dataset).budget
    raise InputError(f"{path}: data set '{dataset}' has a budget already, {stored}, which cannot be changed.")


def contents(path: str | os.PathLike[str]) -> tuple[list[Account], list[dict[str, Any]]]:
    """Return all budgets and releases of a ledger at one moment, even while others write.

    An entry tells its number, data set, time, mechanism, guarantee, what it took of the budget, state and record hash.
    """

    def work(connection):
        check_pages(connection)
        budgets = _budgets(connection)
        query = "SELECT id, dataset, time, mechanism, kind, parameters, record FROM releases ORDER BY id"
        entries = [_entry(budgets, *row) for row in connection.execute(query)]
        return [_account(connection, *item) for item in budgets.items()], entries

    return read(_checked_path(path), work)


def _add(path, budget, dataset) -> bool:
    """Give the data set its budget, in a new file if there is none; False if it has one already."""

    def work(connection):
        query = "INSERT OR IGNORE INTO budgets (dataset, kind, parameters, time) VALUES (?, ?, ?, ?)"
        return connection.execute(query, (dataset, *_stored(budget), now())).rowcount == 1

    def known(connection):
        return dataset in _budgets(connection)

    usual = " ".join(unicodedata.normalize("NFKC", dataset).split())
    if os.path.exists(path) and read(path, known):
        return False
    if dataset != usual:
        raise InputError(
            f"Ledger: dataset must be an id that cannot be mistaken for another; '{dataset}' should be '{usual}'."
        )
    return create(path, work) or write(path, work, "no budget was added")


def _entry(budgets, number, dataset, time, mechanism, kind, stored, record):
    guarantee, budget = _restored(kind, stored), budgets[dataset]
    return {
        "entry": number,
        "dataset": dataset,
        "time": time,
        "mechanism": mechanism,
        "guarantee": {"kind": kind, **dataclasses.asdict(guarantee)},
        "adjacency": _adjacency_in(stored),
        "charged": parameters(type(budget), charge_of(budget, guarantee), up=True),
        "state": "charged" if record is None else "released",
        "record": record,
    }


def _account(connection, dataset, budget):
    spent = _spent(connection, dataset, budget)
    query = "SELECT count(*), count(*) - count(record) FROM releases WHERE dataset = ?"
    count, lost = connection.execute(query, (dataset,)).fetchone()
    kind, left = type(budget), remainder(budget, spent)
    found = _adjacencies(connection, dataset) - {EITHER}
    adjacency = found.pop() if found else (EITHER if count else ADJACENCY)
    amounts = parameters(kind, spent, up=True), parameters(kind, left, up=False)
    return Account(dataset, budget, *amounts, count, lost, adjacency)


def _adjacencies(connection, dataset) -> set[str]:
    query = "SELECT DISTINCT parameters FROM releases WHERE dataset = ?"
    return {_adjacency_in(stored) for (stored,) in connection.execute(query, (dataset,))}


def _states(connection) -> set[str]:
    """Return the ids of finished sums of all data sets: each is finished once, under whatever name."""
    query = "SELECT DISTINCT parameters FROM releases WHERE parameters LIKE '%state%'"
    return {json.loads(stored).get("state") for (stored,) in connection.execute(query)}


def _spent(connection, dataset, budget):
    """Return what is spent, summed from the rows each time: no stored total can disagree with them."""
    query = "SELECT kind, parameters, count(*) FROM releases WHERE dataset = ? GROUP BY kind, parameters"
    counts = collections.Counter()
    for kind, stored, count in connection.execute(query, (dataset,)):
        counts[_restored(kind, stored)] += count
    return total(type(budget), ((charge_of(budget, guarantee), count) for guarantee, count in counts.items()))


def _budgets(connection):
    rows = connection.execute("SELECT dataset, kind, parameters FROM budgets ORDER BY rowid").fetchall()
    return {dataset: _restored(kind, stored) for dataset, kind, stored in rows}


def _stored(guarantee, adjacency=ADJACENCY, state=None):
    """Return kind and parameters, with an adjacency or state beside them, which older programs take for damage."""
    own = {} if adjacency == ADJACENCY else {"adjacency": adjacency}
    own |= {} if state is None else {"state": state}
    return kind_of(guarantee), json.dumps(dataclasses.asdict(guarantee) | own, sort_keys=True)


def _adjacency_in(stored):
    return json.loads(stored).get("adjacency", ADJACENCY)


def _restored(kind, stored):
    try:
        found = json.loads(stored)
        if found.pop("adjacency", ADJACENCY) not in _ADJACENCIES:
            raise ValueError("another adjacency")
        if not _DIGEST.fullmatch(found.pop("state", "0" * 64)):
            raise ValueError("another state")
        return KINDS[kind](**found)
    except (KeyError, TypeError, ValueError):
        raise sqlite3.DatabaseError("damaged") from None


def _checked_path(path) -> pathlib.Path:
    try:
        text = os.fspath(path)
    except TypeError:
        text = None
    if not isinstance(text, str) or not text or "\0" in text:
        raise InputError(f"Ledger: path must name a file, got {path!r}.")
    return pathlib.Path(os.path.abspath(text))


def _checked_dataset(dataset) -> str:
    if not isinstance(dataset, str) or not _DATASET.fullmatch(dataset):
        raise InputError(
            f"Ledger: dataset must be an id of at most 100 letters, digits, spaces and .:/-_, got {short(dataset)}."
        )
    return dataset
