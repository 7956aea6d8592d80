"""``jaxgeodp export``: releases, and what a ledger has of them, as the outputs that ACRO and SACRO check.

Safe havens let nothing out that no person has looked at. Many use SACRO, which shows a folder with a file results.json
and what it names; ACRO (https://github.com/AI-SDC/ACRO) writes such folders, and this command does.
"""

import hashlib
import json
import os
import pathlib
import secrets
import shutil
from collections import Counter
from typing import Annotated, Any, NamedTuple

import typer

from jaxgeodp.checks import InputError
from jaxgeodp.cli.conventions import tell
from jaxgeodp.cli.frame import OUTPUT, one_sentence_errors, quiet_libraries, say
from jaxgeodp.cli.ledger import table_of
from jaxgeodp.cli.record_words import promise, record_lines
from jaxgeodp.privacy.guarantee import NotProven
from jaxgeodp.privacy.ledger import contents
from jaxgeodp.privacy.release import Release, digest_of, record_digest

# ACRO reads outputs of its own version alone.
_ACRO = "1.0.2"
_PARTS = ("mean", "variance", "covariance")
_LEDGER = "ledger"
_ANOTHER = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError)


class _Output(NamedTuple):
    """A release to be checked."""

    name: str
    text: bytes
    release: Release
    digest: str  #: by which a ledger knows it

    @property
    def record(self) -> dict[str, Any]:
        """The release record."""
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
        outputs = _read(records)
        accounts, rows = ([], []) if ledger is None else contents(ledger)
        known = {row["record"]: row for row in rows if row["record"] is not None}
        results, files = {}, {}
        with OUTPUT.status("Drawing ..."), quiet_libraries():
            for one in outputs:
                own = _files(one)
                files |= own
                results[one.name] = _entry(one, sorted(own), None if ledger is None else known.get(one.digest, {}))
        datasets = {known[one.digest]["dataset"] for one in outputs if one.digest in known}
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
    if os.path.lexists(out) and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"--out {out}: exists; name a new folder, as checkers see all that is in it.")
    if not out.parent.is_dir() or not os.access(out.parent, os.W_OK):
        raise InputError(f"--out {out}: the folder {out.parent} does not exist or is not writable.")


def _read(paths) -> list[_Output]:
    found = []
    for path in paths:
        described = (path / "description.json").is_file()
        parts = [path / f"{name}.json" for name in _PARTS] if described else [path]
        releases = [Release.load(part) for part in parts]
        together = digest_of([release.record for release in releases])
        for part, release in zip(parts, releases, strict=True):
            name = f"{path.resolve().name}-{part.stem}" if described else part.stem
            found.append(_Output(name, part.read_bytes(), release, together if described else _charged(release.record)))
    for name, times in Counter(one.name for one in found).items():
        if times > 1:
            raise InputError(f"{name}: {times} records have this name; rename files, as outputs are told by them.")
        if name == _LEDGER:
            raise InputError(f"{name}.json: rename it, as the ledger's output has this name.")
    return _of_groups(found)


def _charged(record) -> str:
    """The digest of what was charged: of a value drawn towards a point afterwards, that of the first."""
    return record.get("post_processing", {}).get("of") or record_digest(record)


def _of_groups(outputs) -> list[_Output]:
    """With the digest of all groups that were charged together, where all of them are here."""
    calls = {}
    for one in outputs:
        if group := one.record.get("group"):
            calls.setdefault((one.record["created"], str(group["of"])), {})[group["name"]] = one.record
    together = {
        call: digest_of([groups[name] for name in own["group"]["of"]])
        for call, groups in calls.items()
        for own in [next(iter(groups.values()))]
        if set(own["group"]["of"]) <= set(groups)
    }

    def known_by(one):
        group = one.record.get("group")
        return one.digest if group is None else together.get((one.record["created"], str(group["of"])), one.digest)

    return [one._replace(digest=known_by(one)) for one in outputs]


def _files(one) -> dict[str, bytes]:
    """The record, what it says in words, and a picture of the value."""
    from jaxgeodp.pictures import picture_of  # Matplotlib

    try:
        words = "\n".join((*record_lines(one.record), f"digest:  {record_digest(one.record)}")) + "\n"
        return {
            f"{one.name}.json": one.text,
            f"{one.name}.txt": words.encode(),
            f"{one.name}.png": picture_of(one.record),
        }
    except InputError:
        raise
    except _ANOTHER:
        raise InputError(f"{one.name}.json: is no whole release record.") from None


def _entry(one, files, row) -> dict:
    """As ACRO writes an output of a kind that it has no test of.

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
        alone = ", or not all of its groups were named" if "group" in record else ""
        status, why = "fail", f"{promise(record)}; the ledger that was named does not have it as it stands{alone}"
    else:
        status, why = "review", f"{promise(record)}; entry {row['entry']} of the ledger, data set '{row['dataset']}'"
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
    """All of it or nothing: a folder beside it gets its name at the end."""
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
