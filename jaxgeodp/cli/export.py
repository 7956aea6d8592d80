"""``jaxgeodp export``: releases, and what a ledger has of them, as the outputs that ACRO and SACRO check.

Safe havens let nothing out that no person has looked at. Many use SACRO, which shows a folder with a file results.json
and what it names; ACRO (https://github.com/AI-SDC/ACRO) writes such folders, and this command does.
"""

import contextlib
import hashlib
import itertools
import json
import os
import pathlib
import re
import secrets
import shutil
from collections import Counter
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from jaxgeodp.checks import InputError
from jaxgeodp.cli.conventions import tell
from jaxgeodp.cli.frame import OUTPUT, one_sentence_errors, quiet_libraries, say
from jaxgeodp.cli.ledger import table_of
from jaxgeodp.cli.record_words import promise, record_lines
from jaxgeodp.privacy.guarantee import NotProven
from jaxgeodp.privacy.ledger import contents
from jaxgeodp.privacy.release import Release, joint_digest, record_digest

# ACRO reads outputs of its own version alone.
_ACRO = "1.0.2"
_VERSION = re.compile(r"\d+\.\d+(\.\w+)*")
_PARTS = ("mean", "variance", "covariance")
_LEDGER = "ledger"
# Of other files in the folder, whatever the case of letters.
_RESERVED = ("results", _LEDGER, "checksums")
_LONGEST = 200
# How many records of one minute are tried for a joint charge, such as the two of a regression, in every order.
_TOGETHER, _TRIED = 4, 12
_ANOTHER = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError)


class _Group(NamedTuple):
    """One of the releases of groups."""

    call: tuple[str, ...]  #: the minute, and the names of all groups
    name: str


class _Output(NamedTuple):
    """A release to be checked."""

    name: str
    folder: str  #: of a description; "" for none
    release: Release
    digest: str  #: of the record as it was charged; "" where what it says of that is untrue
    minute: str
    group: _Group | None

    @property
    def record(self) -> dict[str, Any]:
        """Return the release record."""
        return self.release.record


def export(
    records: Annotated[
        list[pathlib.Path], typer.Argument(help="Release records (release.json), and folders of 'jaxgeodp describe'.")
    ],
    out: Annotated[pathlib.Path, typer.Option(help="The folder to make, with results.json.")],
    ledger: Annotated[
        pathlib.Path | None,
        typer.Option("--ledger", help="The ledger they were charged to; what is not in it is marked 'fail'."),
    ] = None,
    acro: Annotated[str, typer.Option(help="The version of ACRO that the checkers have.")] = _ACRO,
) -> None:
    """Write releases and what a ledger has of them as outputs for ACRO and SACRO, for a person to check.

    No record is read, and nothing is spent.
    """
    with one_sentence_errors():
        _check_free(out)
        if not _VERSION.fullmatch(acro):
            raise InputError(f"--acro must be a version such as {_ACRO}, got '{acro}'.")
        results, files = {}, {}
        with OUTPUT.status("Drawing ..."), quiet_libraries():
            outputs = _read(records)
            accounts, rows = ([], []) if ledger is None else contents(ledger)
            entries = _entries(outputs, {row["record"]: row for row in rows if row["record"] is not None})
            for one in outputs:
                own = _files(one)
                files |= own
                results[one.name] = _entry(one, sorted(own), None if ledger is None else entries.get(one.name, {}))
        datasets = {row["dataset"] for row in entries.values()}
        if datasets:
            charged = [row for row in rows if row["dataset"] in datasets]
            files["ledger.csv"] = table_of(charged).encode()
            results[_LEDGER] = _entry_of_ledger([one for one in accounts if one.dataset in datasets])
        document = json.dumps({"version": acro, "results": results}, indent=4) + "\n"
        _write(out, files | {"results.json": document.encode()})
    failed = [name for name, entry in results.items() if entry["status"] == "fail"]
    tell(folder=str(out), results=results)
    say(f"Wrote {out} with {len(outputs)} releases for ACRO {acro}: {out / 'results.json'}.")
    for name in failed:
        say(f"{name}: {results[name]['summary']}.")


def _check_free(out):
    with contextlib.suppress(FileNotFoundError):
        os.lstat(out)
        raise InputError(f"--out {out}: exists; name a new folder, as output checkers see everything in it.")
    if not out.parent.is_dir() or not os.access(out.parent, os.W_OK):
        raise InputError(f"--out {out}: the folder {out.parent} does not exist or is not writable.")


def _read(paths) -> list[_Output]:
    found = []
    for path in paths:
        described = (path / "description.json").is_file()
        for part in [path / f"{name}.json" for name in _PARTS] if described else [path]:
            name = f"{path.resolve().name}-{part.stem}" if described else part.stem
            with _whole(part):
                release = Release.load(part)
                if not np.all(np.isfinite(release.as_array())):
                    raise ValueError
                found.append(_output_of(name, str(path) if described else "", release))
    for name, times in Counter(one.name.casefold() for one in found).items():
        if times > 1:
            raise InputError(
                f"{name}: {times} records have this name; rename their files, as each output is identified by its name."
            )
        # A name that is no text has characters that cannot be written.
        if name in _RESERVED or not name.isprintable() or len(name.encode()) > _LONGEST:
            raise InputError(
                f"{name}.json: the name is taken by another file of the folder, is too long or not text; rename the "
                "record."
            )
    return found


@contextlib.contextmanager
def _whole(path):
    """Refuse what is no whole record."""
    try:
        yield
    except InputError:
        raise
    except _ANOTHER:
        raise InputError(f"{path}: is not a complete release record.") from None


def _output_of(name, folder, release) -> _Output:
    record = release.record
    group = record.get("group")
    if group is not None:
        group = _Group((str(record["created"]), *map(str, group["of"])), str(group["name"]))
    return _Output(name, folder, release, _charged_digest(record), str(record["created"]), group)


def _charged_digest(record) -> str:
    """Return the digest that a ledger knows: of a value drawn towards a point afterwards, that of the first record."""
    later = record.get("post_processing")
    if not isinstance(later, dict | None):
        raise TypeError
    if later is None or "of" not in later:
        return record_digest(record)
    from jaxgeodp.privacy.drawn_towards import is_drawn_as_said  # JAX

    before = later["before"]
    if not set(before) <= {"expected_error"} - set(record):
        return ""
    first = {name: own for name, own in record.items() if name != "post_processing"} | before
    first["value"] = later["released"]
    return record_digest(first) if record_digest(first) == later["of"] and is_drawn_as_said(record) else ""


def _entries(outputs, known) -> dict[str, dict]:
    """Return the ledger's entries of releases, by their names: alone, or charged together with others that are here."""
    if not known:
        return {}
    found = {one.name: known[one.digest] for one in outputs if one.digest in known}
    folders, groups, minutes = {}, {}, {}
    for one in outputs:
        if one.digest and one.name not in found:
            if one.folder:
                folders.setdefault(one.folder, []).append(one)
            if one.group is not None:
                groups.setdefault(one.group.call, []).append(one)
            else:
                minutes.setdefault(one.minute, []).append(one)
    tried = list(folders.values())
    for (_, *names), several in groups.items():
        of = {one.group.name: one for one in several}
        if len(of) == len(several) == len(names) and set(of) == set(names):
            tried.append([of[name] for name in names])
    tried += [own for several in minutes.values() if len(several) <= _TRIED for own in _orders(several)]
    for own in tried:
        digest = joint_digest([one.digest for one in own])
        if digest in known:
            found |= {one.name: known[digest] for one in own}
    return found


def _orders(several):
    for count in range(2, min(len(several), _TOGETHER) + 1):
        yield from itertools.permutations(several, count)


def _files(one) -> dict[str, bytes]:
    """Return the files: the record, what it says in words, and a picture of the value."""
    from jaxgeodp.pictures import picture_of  # Matplotlib

    with _whole(f"{one.name}.json"):
        words = "\n".join((*record_lines(one.record), f"digest:  {record_digest(one.record)}")) + "\n"
        return {
            f"{one.name}.json": one.release.to_json().encode(),
            f"{one.name}.txt": words.encode(),
            f"{one.name}.png": picture_of(one.record),
        }


def _entry(one, files, row) -> dict:
    """Return the entry that ACRO writes for an output of a kind that it has no test of.

    Args:
        one: the release.
        files: their names.
        row: the ledger's entry; None where no ledger was named, empty where it has none.
    """
    record, proven = one.record, not isinstance(one.release.guarantee, NotProven)
    if not proven:
        status, why = "fail", f"not proven to be private ({record['guarantee']['kind']})"
    elif row is None:
        status, why = "review", f"{promise(record)}; no ledger was named, so nobody has counted it"
    elif not row:
        why = "the ledger that was named does not have it as it stands"
        status, why = "fail", f"{promise(record)}; {why}, or it was charged with others that were not named with it"
    else:
        status, why = "review", f"{promise(record)}; entry {row['entry']} of the ledger, data set '{row['dataset']}'"
    if "post_processing" in record and "toward" in record["post_processing"]:
        why += "; drawn towards a point that the record calls public"
    return _output(
        one.name,
        status,
        files,
        properties={"method": "differential privacy", "library": "jaxgeodp", "guarantee": record["guarantee"]},
        command=f"{record['mechanism']} on {record['manifold']['name']}",
        summary=f"{status}; {why}",
        timestamp=record["created"],
        comments=list(record_lines(record)),
    )


def _entry_of_ledger(accounts) -> dict:
    said = [
        f"data set '{one.dataset}': budget {one.budget}, {one.releases} releases, spent "
        + ", ".join(f"{name} = {number:.6g}" for name, number in one.spent.items())
        for one in accounts
    ]
    return _output(
        _LEDGER,
        "review",
        ["ledger.csv"],
        properties={"method": "ledger of differential privacy", "library": "jaxgeodp"},
        command="jaxgeodp ledger export",
        summary="review; " + "; ".join(said),
        timestamp="",
        comments=[],
    )


def _output(uid, status, files, **told) -> dict:
    return {
        "uid": uid,
        "status": status,
        "type": "custom",
        "properties": told["properties"],
        "files": [{"name": name, "sdc": {}} for name in files],
        "outcome": {},
        "command": told["command"],
        "summary": told["summary"],
        "timestamp": told["timestamp"],
        "comments": told["comments"],
        "exception": "",
        "fair": {},
    }


def _write(out, files):
    """Write all of it or nothing: a folder beside it gets its name at the end."""
    made = out.parent / f".part-{secrets.token_hex(8)}"
    (made / "checksums").mkdir(parents=True)
    try:
        for name, content in files.items():
            (made / name).write_bytes(content)
            (made / "checksums" / f"{name}.txt").write_text(hashlib.sha256(content).hexdigest())
        os.rename(made, out)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
