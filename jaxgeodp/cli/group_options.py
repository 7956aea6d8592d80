"""Groups of records, as the options ``--group`` and ``--groups`` name them, and the file of each group's release."""

import dataclasses
import pathlib
import re
from typing import Annotated

import numpy as np
import typer

from jaxgeodp.checks import InputError
from jaxgeodp.cli.completion import one_of
from jaxgeodp.cli.frame import check_name
from jaxgeodp.io.layout import Layout
from jaxgeodp.io.records import Source
from jaxgeodp.io.tables import read_labels
from jaxgeodp.privacy.guarantee import ADD_REMOVE, ADJACENCY

GROUPS = Annotated[
    str | None,
    typer.Option(help="The public names of the groups, 'a,b,c'; records of others are in none."),
]
GROUPS_PER_PERSON = Annotated[
    int | None,
    typer.Option(
        help="With --group and --person: in how many of the groups one person may be; who is in more is in none. By "
        "default in all, which share the budget; 1 where each person belongs to one group, as with a diagnosis."
    ),
]
ADJACENCY_OPTION = Annotated[
    str | None,
    typer.Option(
        "--adjacency",
        help="What is hidden: replace-one (which record one of n is; n is public) or add-remove (also whether it is "
        "there, and n; the default with --group).",
        autocompletion=one_of(ADJACENCY, ADD_REMOVE),
    ),
]
_NAME = re.compile(r"\w[\w .+-]{0,60}")


@dataclasses.dataclass(frozen=True)
class GroupOptions:
    """Values of the options above.

    Raises:
        ValueError: one without the other, names that cannot be names of files, or options that do not go together.
    """

    column: str | None
    listed: str | None
    said: str | None
    per_person: int | None

    def __post_init__(self):
        if self.said not in (None, ADJACENCY, ADD_REMOVE):
            raise InputError(f"--adjacency must be {ADJACENCY} or {ADD_REMOVE}, got '{self.said}'.")
        if (self.column is None) != (self.listed is None):
            raise InputError(
                "--group (a column) and --groups (the public names of the groups in it) must be given together."
            )
        if self.per_person is not None and (self.column is None or self.per_person < 1):
            raise InputError("--groups-per-person must be at least 1, and needs --group and --person.")
        for name in self.names:
            if not _NAME.fullmatch(name):
                raise InputError(
                    f"--groups: '{name}' must consist of letters, digits, spaces and .+-_, as it becomes a file name."
                )
        if len({name.casefold() for name in self.names}) < len(self.names):
            raise InputError("--groups names a group twice, or two groups that differ only in capitals.")

    @property
    def names(self) -> list[str]:
        """Return the groups; none without ``--group``."""
        return [] if self.listed is None else [word.strip() for word in self.listed.split(",")]

    @property
    def adjacency(self) -> str:
        """Return the adjacency of the releases."""
        return self.said or (ADJACENCY if self.column is None else ADD_REMOVE)

    @property
    def hides_number(self) -> bool:
        """Return whether the number of records is private."""
        return self.column is not None or self.adjacency == ADD_REMOVE

    def check(self, mechanism: str, layout: Layout) -> None:
        """Refuse what contradicts a private number of records.

        Raises:
            ValueError: an option that needs that number, or one for persons where there are none.
        """
        if self.per_person is not None and layout.person is None:
            raise InputError("--groups-per-person needs --person, the column with the person of each record.")
        if not self.hides_number:
            return
        what = f"--adjacency {ADD_REMOVE}" if self.column is None else "--group"
        if layout.expect_n is not None:
            raise InputError(f"--expect-n discloses the number of records, which {what} keeps private; leave it out.")
        if mechanism == "auto":
            raise InputError(
                f"--mechanism auto needs the number of records, which {what} keeps private: name a mechanism, such as "
                "the best that 'jaxgeodp plan' finds for an assumed number."
            )

    def files(self, out: pathlib.Path) -> dict[str, pathlib.Path]:
        """Return the file of each group's record, whose name stands before the suffix; of all, without groups."""
        check_name(out)
        return {name: out.with_name(f"{out.stem}-{name}{out.suffix}") for name in self.names} or {"": out}

    def labels(self, source: Source, n: int) -> list[str | None]:
        """Return the group of each of the n records of a file; see `read_labels`."""
        return [as_word(label) for label in read_labels(source.path, source.layout, "group", n)]


def as_word(label) -> str | None:
    """Return a label as it is written: whole numbers without a point; None where it is missing."""
    if isinstance(label, bytes):
        return label.decode("utf-8", errors="replace").strip()
    if label is None or isinstance(label, str | bool | np.bool_):
        return None if label is None else str(label).strip()
    try:
        if label != label:
            return None
        whole = int(label)
        return str(whole) if whole == label else str(label)
    except (TypeError, ValueError, OverflowError):
        return str(label).strip()
