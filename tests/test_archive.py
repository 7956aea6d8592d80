"""What an earlier version has written is read for ever: `archive/write.py` wrote it."""

import json
import pathlib
import shutil

import numpy as np
import pytest
from typer.testing import CliRunner

from jaxgeodp import Description, Ledger, Release, ZeroConcentratedDP
from jaxgeodp.cli.app import app
from jaxgeodp.pictures import page_of
from jaxgeodp.privacy import NotProven, record_digest
from jaxgeodp.privacy.ledger import contents

FOLDERS = sorted(path for path in (pathlib.Path(__file__).parent / "archive").iterdir() if path.name[0].isdigit())
RECORDS = [path for folder in FOLDERS for path in sorted(folder.glob("*.json"))]


def test_there_is_an_archive_of_each_kind_of_record():
    assert FOLDERS and len(RECORDS) >= 20


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_record_is_read_with_its_promise(path):
    release, text = Release.load(path), json.loads(path.read_text())
    assert release.record == text and np.all(np.isfinite(release.as_array()))
    assert isinstance(release.guarantee, NotProven) == ("theorem" not in text["guarantee"])
    assert "<html" in page_of(release.record, record_digest(release.record))
    shown = CliRunner().invoke(app, ["show", str(path)])
    assert shown.exit_code == 0 and text["mechanism"] in shown.output


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_a_description_is_read_and_used(folder):
    found = Description.load(folder / "described")
    assert found.mean.record["n"] == 90 and np.all(np.isfinite(np.asarray(found.covariance.value)))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_a_ledger_is_read_and_charged_on(folder, tmp_path):
    shutil.copy(folder / "ledger.db", tmp_path / "ledger.db")
    accounts, rows = contents(tmp_path / "ledger.db")
    known = {row["record"] for row in rows}
    digests = {record_digest(json.loads(path.read_text())) for path in folder.glob("*.json")}
    assert len(known & digests) >= 15 and accounts[0].dataset == "archive"
    before = Ledger(tmp_path / "ledger.db", dataset="archive").account()
    ledger = Ledger(tmp_path / "ledger.db", ZeroConcentratedDP(1e6), dataset="archive")
    entry = ledger.charge(ZeroConcentratedDP(0.5), "Test")
    assert entry == len(rows) + 1 and ledger.account().releases == before.releases + 1
