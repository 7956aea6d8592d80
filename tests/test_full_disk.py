"""Each command that charges a ledger has room for all of its files before the charge, or charges nothing."""

import dataclasses
import math
import os

import numpy as np
import pytest
from disks import Disk
from strategies import exhaustive, name
from typer.testing import CliRunner

from jaxgeodp import SPD, Euclidean, GeodesicBall, LaplaceMechanism, PlanarShapes, Sphere, release_groups
from jaxgeodp.cli import app
from jaxgeodp.cli.room import PICTURE_ROOM, description_room, record_room
from jaxgeodp.inference import describe
from jaxgeodp.pictures import picture_of
from jaxgeodp.privacy import Ledger, PureDP

PUBLIC = ("--manifold", "euclidean", "--center", "origin", "--radius", 1)
RECORDS = np.random.default_rng(0).uniform(-0.5, 0.5, size=(60, 1))


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def release_with_picture(folder):
    options = ("--mechanism", "laplace", "--epsilon", 1, "--plot", folder / "out" / "mean.png")
    return ("release", folder / "data.npy", *PUBLIC, *options, "--out", folder / "out" / "mean.json")


def release_of_groups(folder):
    rows = "".join(f"{own[0]!r},{'ab'[place % 2]}\n" for place, own in enumerate(RECORDS.tolist()))
    (folder / "data.csv").write_text(f"x,group\n{rows}")
    options = ("--header", "--columns", "x", "--group", "group", "--groups", "a,b", "--mechanism", "laplace")
    return ("release", folder / "data.csv", *PUBLIC, *options, "--epsilon", 1, "--out", folder / "out" / "mean.json")


def description(folder):
    return ("describe", folder / "data.npy", *PUBLIC, "--epsilon", 1, "--out", folder / "out" / "new")


def combination(folder):
    names = ("north", "south")
    for site in names:
        assert run("site", "key", site, "--out", folder).exit_code == 0
    everyone = ",".join(str(folder / f"{name}.pub") for name in names)
    states = [folder / f"{name}.masked" for name in names]
    for site, state in zip(names, states, strict=True):
        own = (*PUBLIC, "--epsilon", 1, "--key", folder / f"{site}.key", "--sites", everyone, "--out", state)
        done = run("site", "prepare", folder / "data.npy", *own)
        assert done.exit_code == 0, done.output
    return ("site", "combine", *states, "--out", folder / "out" / "mean.json")


COMMANDS = {
    release_with_picture: ["mean.json", "mean.png"],
    release_of_groups: ["mean-a.json", "mean-b.json"],
    description: [f"new/{name}" for name in description_room(Euclidean(1))],
    combination: ["mean.json"],
}


def files_of(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("command", COMMANDS, ids=lambda own: own.__name__)
def test_a_command_has_room_for_all_files_before_its_charge(command, tmp_path, monkeypatch):
    np.save(tmp_path / "data.npy", RECORDS)
    (tmp_path / "out").mkdir()
    ledger = Ledger(tmp_path / "budget.db", budget=PureDP(9.0), dataset="own")
    words = (*command(tmp_path), "--ledger", ledger.path, "--dataset", "own")
    disk = Disk(monkeypatch, 4096)
    refused = run(*words)
    assert refused.exit_code == 1 and "No space left on device" in " ".join(refused.output.split()), refused.output
    assert ledger.account().releases == 0 and not list((tmp_path / "out").iterdir())
    # Somebody else takes what is left, as soon as the release is charged.
    disk.left, charge = 2**30, Ledger.charge

    def charged(*arguments, **options):
        entry = charge(*arguments, **options)
        disk.left = 0
        return entry

    monkeypatch.setattr(Ledger, "charge", charged)
    done = run(*words)
    assert done.exit_code == 0, done.output
    assert ledger.account().releases == 1 and ledger.account().lost == 0
    assert files_of(tmp_path / "out") == sorted(COMMANDS[command])
    assert all(path.stat().st_size > 100 for path in (tmp_path / "out").rglob("*") if path.is_file())


def test_a_description_is_saved_whole_or_not_at_all(tmp_path, monkeypatch):
    found = describe(RECORDS, Euclidean(1), epsilon=1.0, ball=GeodesicBall(Euclidean(1), [0.0], 1.0))
    disk = Disk(monkeypatch, 4096)
    with pytest.raises(OSError, match="No space left"):
        found.save(tmp_path / "new" / "out")
    assert not list(tmp_path.iterdir())
    disk.left = 2**20
    found.save(tmp_path / "new" / "out")
    assert len(list((tmp_path / "new" / "out").iterdir())) == 4
    times = {path.stat().st_mtime for path in (*(tmp_path / "new" / "out").iterdir(), tmp_path / "new" / "out")}
    assert len(times) == 1, "the folder does not tell either how long the work took"


@pytest.mark.parametrize("space", [Euclidean(1), *exhaustive(Sphere(2), SPD(3), PlanarShapes(6))], ids=name)
def test_records_of_a_description_fit_into_their_room(space):
    """Also where it is little more than its numbers; a picture is at most its pixels."""
    ball, point = GeodesicBall(space, space.origin, 0.2), np.asarray(space.origin)
    found = describe(np.stack([point] * 40), space, epsilon=1.0, ball=ball)
    room = description_room(space)
    assert all(len(text.encode()) < room[name] for name, text in found.files.items())
    header = picture_of(found.mean.record)[16:24]
    width, height = (int.from_bytes(header[place : place + 4], "big") for place in (0, 4))
    assert 4 * width * height + height + 2**16 < PICTURE_ROOM
    assert room["report.html"] > 10 * math.ceil(4 * PICTURE_ROOM / 3)


def test_a_record_of_many_groups_with_long_names_fits_into_its_room():
    """All of them are in each record, and a letter may take twelve bytes of JSON."""
    data, names = np.zeros((40, 1)), [f"{place:04}{chr(0x10400) * 57}" for place in range(400)]
    mechanism = LaplaceMechanism(GeodesicBall(Euclidean(1), [0.0], 1.0), 1.0)
    release = release_groups(mechanism, data, np.zeros(40), [0, 1])[0]
    record = release.record | {"group": {"name": names[0], "of": names}}
    written = len(dataclasses.replace(release, record=record).to_json().encode())
    assert record_room(1) < written < record_room(1, names)


def test_a_disk_of_the_tests_gets_full(tmp_path, monkeypatch):
    """Planted: what is written on without room for it."""
    disk = Disk(monkeypatch, 10)
    with (tmp_path / "a").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 8)
        file.write(b"12345678")
        file.flush()
        os.fsync(file.fileno())
        assert disk.left == 2
        file.write(b"123")
        file.flush()
        with pytest.raises(OSError, match="No space left"):
            os.fsync(file.fileno())
