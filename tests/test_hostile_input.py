"""Hostile input: the table of `hostile_table`, processes that meet, and readers under random bytes."""

import errno
import importlib
import json
import os
import pathlib
import re
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest
from hostile_cases import GOOD, command, release
from hostile_table import CASES, page

from jaxgeodp import Ledger, PureDP, files
from jaxgeodp.checks import InputError
from jaxgeodp.faces import folder as faces

DOCS = pathlib.Path(__file__).parent.parent / "docs" / "evidence" / "hostile-input.md"


def contents(folder):
    """All files below a folder: bytes, or where a link points to."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            found[path.relative_to(folder)] = os.readlink(path)
        elif path.is_file():
            found[path.relative_to(folder)] = path.read_bytes()
    return found


def check_words(result):
    """One sentence at most, without a trace of the program or of the data."""
    assert "Traceback" not in result.output
    for part in ("12345", "23456", "45678", "secret"):
        assert part not in result.output.lower()


# Cases that compile a sampler for themselves; delta and epsilon have tests of their own.
AGAIN = ("epsilon of 800 with delta",)


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=pytest.mark.exhaustive if case.name in AGAIN else []) for case in CASES],
    ids=[case.name for case in CASES],
)
def test_hostile_input(case, tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("h")
    monkeypatch.chdir(folder)
    case.build(folder)
    before = contents(folder)
    result = case.call(folder)
    assert result.code == case.code, result.output
    assert case.words in " ".join(result.output.split())
    check_words(result)
    after = contents(folder)
    written = {path: after.pop(path) for path in set(after) - set(before)}
    assert after == before
    if case.code:
        assert not written
        sentence = " ".join(result.output.split())
        assert sentence.endswith(".") and sentence.count("Error: ") == (case.how == "command")
        return
    if case.how == "command":
        ((_, record),) = written.items()
        value = json.loads(record)["value"]
    else:
        assert not written
        value = result.value
    assert case.how == "reader" or np.all(np.isfinite(value))


def test_the_page_is_the_table():
    assert len(CASES) >= 60 and len({case.name for case in CASES}) == len(CASES)
    assert DOCS.read_text(encoding="utf-8") == page()


# Processes and systems ------------------------------------------------------------------------------------------


def test_of_many_writers_one_wins(tmp_path):
    """Threads, and processes alike: it is the system that decides."""
    path, told = tmp_path / "out.json", []
    start = threading.Barrier(20)

    def write(number):
        start.wait()
        try:
            files.write_atomically(path, f"{number} " * 100_000, replace=False)
        except FileExistsError as error:
            told.append(error.strerror)

    for _ in range(5):
        told.clear()
        threads = [threading.Thread(target=write, args=(j,)) for j in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        words = path.read_text().split()
        assert len(words) == 100_000 and len(set(words)) == 1 and len(told) == 19
        assert all("was written meanwhile" in sentence for sentence in told)
        assert list(tmp_path.iterdir()) == [path]
        path.unlink()


@pytest.mark.parametrize("links", [True, False], ids=["hard links", "no hard links"])
def test_a_file_that_appears_meanwhile_stays(tmp_path, monkeypatch, links):
    np.save(tmp_path / "data.npy", GOOD)
    command, out = importlib.import_module("jaxgeodp.cli.release"), tmp_path / "out.json"
    original = command.release_in

    def late(*arguments, **options):
        out.write_text("precious")
        return original(*arguments, **options)

    def refuse(*_):
        raise OSError("no hard links here")

    if not links:
        monkeypatch.setattr(files.os, "link", refuse)
        assert release(tmp_path, out="first.json").code == 0
        assert json.loads((tmp_path / "first.json").read_text())["n"] == 4
    monkeypatch.setattr(command, "release_in", late)
    before = set(tmp_path.iterdir())
    result = release(tmp_path)
    assert result.code == 1 and "was written meanwhile by another process" in " ".join(result.output.split())
    check_words(result)
    assert out.read_text() == "precious"
    # What was drawn is not lost: it has another name, which the sentence tells.
    (kept,) = set(tmp_path.iterdir()) - before - {out}
    assert f"what should be there is in {kept}." in "".join(result.output.splitlines())
    assert re.fullmatch(r"out-[0-9a-f]{8}\.json", kept.name) and json.loads(kept.read_text())["n"] == 4


def process(arguments, first="", **options):
    """The installed command, in a process of its own, after the code ``first``."""
    call = [sys.executable, "-c", f"{first}\nfrom jaxgeodp.cli import main; main()", *map(str, arguments)]
    return subprocess.run(call, stderr=subprocess.PIPE, text=True, timeout=240, **options)


def release_call(folder, out):
    return ["release", folder / "data.npy", "--manifold", "euclidean", "--center", "origin", "--radius", 0.5,
            "--epsilon", 1, "--mechanism", "tangent", "--overwrite", "--out", folder / out]  # fmt: skip


@pytest.mark.exhaustive  # threads and a file that appears meanwhile are tried above
def test_of_two_commands_one_wins(tmp_path):
    """If the other one is told after its draw, it has written its record beside."""
    np.save(tmp_path / "data.npy", GOOD)
    call = [part for part in release_call(tmp_path, "out.json") if part != "--overwrite"]
    command = [sys.executable, "-c", "from jaxgeodp.cli import main; main()", *map(str, call)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    answers = [(*process.communicate(timeout=240), process.returncode) for process in both]
    assert sorted(code == 0 for *_, code in answers) == [False, True]
    ((_, sentence, code),) = [answer for answer in answers if answer[2]]
    assert code in (1, 2) and sentence.startswith("Error: ") and len(sentence.splitlines()) == 1
    assert "was written meanwhile" in sentence or "exists; name another file" in sentence
    records = {path.name for path in tmp_path.iterdir()} - {"data.npy"}
    assert "out.json" in records and len(records) == 1 + ("what should be there is in" in sentence)
    assert all(json.loads((tmp_path / name).read_text())["n"] == 4 for name in records)


def test_a_full_disk_leaves_the_old_file(tmp_path):
    np.save(tmp_path / "data.npy", GOOD)
    (tmp_path / "out.json").write_text("precious")
    answer = process(
        release_call(tmp_path, "out.json"),
        stdout=subprocess.PIPE,
        first="import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))",
    )
    assert answer.returncode == 1 and answer.stdout == ""
    assert answer.stderr.strip() == f"Error: {tmp_path / 'out.json'}: File too large."
    assert (tmp_path / "out.json").read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.npy", "out.json"]


@pytest.mark.exhaustive  # test_full_disk.py has a disk that gets full
def test_a_record_without_room_is_refused_before_its_charge(tmp_path):
    """Files may grow to what the ledger needs, and no further: the record of 4,000 numbers does not fit."""
    np.save(tmp_path / "data.npy", np.zeros((4, 4000)))
    ledger, before = Ledger(tmp_path / "b.db", PureDP(10.0)), sorted(path.name for path in tmp_path.iterdir())
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (80_000, 80_000))"
    call = [*release_call(tmp_path, "out.json"), "--ledger", ledger.path]
    answer = process(call, stdout=subprocess.PIPE, first=limit)
    assert answer.returncode == 1 and answer.stderr.strip() == f"Error: {tmp_path / 'out.json'}: File too large."
    assert ledger.account().releases == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_room_is_taken_before_there_is_content(tmp_path, monkeypatch):
    path = tmp_path / "out.json"
    with files.reserved(path, 300_000) as write:
        (place,) = tmp_path.iterdir()
        assert place.stat().st_blocks * 512 >= 300_000 and not path.exists()
        write("short")
    assert path.read_text() == "short" and list(tmp_path.iterdir()) == [path]
    # A refusal leaves nothing, and neither does a file system without promises that is full.
    with pytest.raises(InputError), files.reserved(path, 10):
        raise InputError
    assert path.read_text() == "short" and list(tmp_path.iterdir()) == [path]
    with pytest.raises(FileExistsError, match="was written meanwhile"), files.reserved(path, 10, replace=False):
        raise AssertionError

    def unknown(*_):
        raise OSError(errno.EOPNOTSUPP, "not here")

    monkeypatch.setattr(files.os, "posix_fallocate", unknown)
    with files.reserved(path, 300_000) as write:
        (place,) = set(tmp_path.iterdir()) - {path}
        assert place.stat().st_size == 300_000
        write("long" * 100_000)
    assert path.read_text() == "long" * 100_000 and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("replace", [False, True])
def test_a_file_states_the_time_of_change_that_it_is_given(tmp_path, replace):
    files.write_atomically(tmp_path / "a", "x", replace=replace, changed="1999-12-31T23:59+00:00")
    with files.reserved(tmp_path / "b", 10, replace=replace, changed="1999-12-31T23:59+00:00") as write:
        write("x")
    assert {path.stat().st_mtime_ns for path in tmp_path.iterdir()} == {946_684_740 * 10**9}


def test_a_time_that_cannot_be_stated_is_refused_before_there_is_content_only(tmp_path, monkeypatch):
    def forbidden(*_):
        raise OSError(errno.EPERM, "not yours")

    with files.reserved(tmp_path / "a", 10, changed="1999-12-31T23:59+00:00") as write:
        monkeypatch.setattr(files.os, "utime", forbidden)
        write("precious")
    assert (tmp_path / "a").read_text() == "precious"
    with pytest.raises(OSError, match="not yours"), files.reserved(tmp_path / "b", 10, changed="1999-12-31T23:59"):
        raise AssertionError
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("name", ["release", "rename"])
def test_a_record_that_cannot_get_its_name_is_kept(tmp_path, monkeypatch, name):
    path = tmp_path / "out.json"

    def fail(*_):
        raise OSError(errno.EIO, "the disk is ill")

    monkeypatch.setattr(files.os, "replace", fail)
    if name == "rename":
        monkeypatch.setattr(files.os, "rename", fail)
    with pytest.raises(OSError, match="the disk is ill; what should be there is in") as caught:
        with files.reserved(path, 10) as write:
            write("precious")
    (kept,) = tmp_path.iterdir()
    assert kept.read_text() == "precious" and caught.value.strerror.endswith(str(kept))


def test_permissions_are_those_of_any_file_and_the_mask_is_not_touched(tmp_path, monkeypatch):
    """To ask for the mask of a process is to change it, for a moment, for all of its threads."""
    (tmp_path / "usual").touch()

    def touched(*_):
        raise AssertionError

    monkeypatch.setattr(os, "umask", touched)
    files.write_atomically(tmp_path / "written", "x")
    files.write_atomically(tmp_path / "private", "x", private=True)
    Ledger(tmp_path / "ledger", PureDP(1.0))
    with files.reserved(tmp_path / "reserved", 10) as write:
        write("x")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes.pop("private") == 0o600
    assert set(modes) == {"usual", "written", "ledger", "reserved"} and len(set(modes.values())) == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
def test_a_full_output_is_a_sentence(tmp_path):
    with open("/dev/full", "w") as full:
        answer = process(["info"], stdout=full)
    assert answer.returncode == 1
    assert answer.stderr.strip() == "Error: the standard output: No space left on device."


@pytest.mark.exhaustive  # of the command alone, in a process of its own
def test_a_console_of_ascii_shows_any_name(tmp_path):
    np.save(tmp_path / "data.npy", GOOD)
    environment = {**os.environ, "PYTHONIOENCODING": "ascii:strict", "PYTHONUTF8": "0"}
    answer = process(release_call(tmp_path, "выпуск.json"), stdout=subprocess.PIPE, env=environment)
    assert answer.returncode == 0 and answer.stderr == "" and r"\u0432" in answer.stdout
    assert json.loads((tmp_path / "выпуск.json").read_text())["n"] == 4


def test_a_damaged_cell_is_made_again_once_it_is_removed(tmp_path):
    (case,) = [case for case in CASES if case.name == "cell of a finished sweep, damaged"]
    case.build(tmp_path)
    (tmp_path / "out" / "cells" / "0000.parquet").unlink()
    assert command("sweep", tmp_path / "sweep.toml", "--out", tmp_path / "out").code == 0


def test_a_damaged_face_counts_as_not_done(tmp_path):
    place = tmp_path / "face.npz"

    class Template:
        curves = np.zeros((2, 5, 3))

    right = {"curves": Template.curves, "vertices": np.zeros((4, 3)), "report": np.array('{"note": "fine"}')}
    np.savez(place, **right)
    assert faces.kept_face(place, Template).report.note == "fine"
    whole = place.read_bytes()
    wrong = ({"curves": np.zeros((1, 5, 3))}, {"curves": np.array(None)}, {"vertices": np.zeros(3)}, {"report": 1.0})
    for change in wrong:
        np.savez(place, **{**right, **change})
        assert faces.kept_face(place, Template) is None
    for content in (b"", whole[:-30], b"PK" + whole):
        place.write_bytes(content)
        assert content == b"PK" + whole or faces.kept_face(place, Template) is None
