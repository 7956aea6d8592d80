"""Outputs for ACRO and SACRO: what they hold, and what is marked as failed."""

import hashlib
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from jaxgeodp import (
    Euclidean,
    GeodesicBall,
    KNGMechanism,
    Ledger,
    TangentLaplace,
    ZeroConcentratedDP,
    describe,
    release_groups,
)
from jaxgeodp.cli.app import app
from jaxgeodp.mechanisms import release_by_chain

BALL = GeodesicBall(Euclidean(2), np.zeros(2), 1.0)
DATA = np.random.default_rng(0).normal(0.0, 0.3, (90, 2))
# As acro 1.0.2 reads them; `properties`, `outcome` and `fair` are dictionaries.
FIELDS = {
    *("uid", "status", "type", "properties", "files", "outcome", "command", "summary", "timestamp", "comments"),
    *("exception", "fair"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Releases of all kinds, with the ledger to which all but ``elsewhere`` were charged."""
    folder = tmp_path_factory.mktemp("releases")
    ledger = Ledger(folder / "budget.db", ZeroConcentratedDP(50.0), dataset="clinic-7")
    mechanism = TangentLaplace(BALL, epsilon=0.5)
    first = mechanism.release(DATA, ledger)
    first.save(folder / "mean.json")
    mechanism.release(DATA).save(folder / "elsewhere.json")
    first.shrunk(np.zeros(2), 0.5).save(folder / "drawn.json")
    release_by_chain(KNGMechanism(BALL, epsilon=0.5), DATA, num_burnin=10).save(folder / "chain.json")
    describe(DATA, Euclidean(2), mu=1.0, ball=BALL, ledger=ledger).save(folder / "described")
    more = Ledger(folder / "groups.db", ZeroConcentratedDP(50.0))
    groups = release_groups(mechanism, DATA, np.arange(90) % 2, [0, 1], more)
    for name, release in groups.items():
        release.save(folder / f"group-{name}.json")
    return folder


def export(*words):
    return CliRunner().invoke(app, ["export", *map(str, words)])


def exported(folder, out, names, *words):
    done = export(*(folder / name for name in names), *words, "--out", out)
    assert done.exit_code == 0, done.output
    document = json.loads((out / "results.json").read_text())
    return document, document["results"]


def test_outputs_are_as_acro_writes_them(made, tmp_path):
    out = tmp_path / "to-check"
    names = ("mean.json", "described", "drawn.json")
    document, results = exported(made, out, names, "--ledger", made / "budget.db")
    assert document["version"] == "1.0.2"
    parts = {f"described-{part}" for part in ("mean", "variance", "covariance")}
    assert set(results) == {"mean", "drawn", "ledger", *parts}
    named = set()
    for name, entry in results.items():
        assert set(entry) == FIELDS and entry["uid"] == name and entry["type"] == "custom"
        assert entry["status"] == "review", entry["summary"]
        assert isinstance(entry["properties"], dict) and (entry["outcome"], entry["fair"]) == ({}, {})
        assert entry["files"] and all(file["sdc"] == {} for file in entry["files"])
        named |= {file["name"] for file in entry["files"]}
    assert {path.name for path in out.iterdir()} == {*named, "results.json", "checksums"}
    for name in (*named, "results.json"):
        told = (out / "checksums" / f"{name}.txt").read_text()
        assert told == hashlib.sha256((out / name).read_bytes()).hexdigest()
    assert (out / "mean.json").read_bytes() == (made / "mean.json").read_bytes()
    assert "right at most" in (out / "mean.txt").read_text()
    assert results["mean"]["properties"]["guarantee"]["epsilon"] == 0.5
    assert "entry 1 of the ledger" in results["mean"]["summary"] and "entry 1" in results["drawn"]["summary"]
    assert "calls public" in results["drawn"]["summary"] and "calls public" not in results["mean"]["summary"]
    assert {results[name]["summary"].partition("entry")[2] for name in parts} == {
        " 2 of the ledger, data set 'clinic-7'"
    }
    assert len((out / "ledger.csv").read_text().splitlines()) == 3 and "2 releases" in results["ledger"]["summary"]


def test_what_no_ledger_has_or_nothing_proves_is_failed(made, tmp_path):
    _, results = exported(
        made, tmp_path / "one", ("mean.json", "elsewhere.json", "chain.json"), "--ledger", made / "budget.db"
    )
    assert {name: entry["status"] for name, entry in results.items()} == {
        **{"mean": "review", "elsewhere": "fail", "chain": "fail"},
        "ledger": "review",
    }
    assert "does not have it" in results["elsewhere"]["summary"] and "not proven" in results["chain"]["summary"]
    _, results = exported(made, tmp_path / "two", ("elsewhere.json", "chain.json"))
    assert results["elsewhere"]["status"] == "review" and "nobody has counted" in results["elsewhere"]["summary"]
    assert results["chain"]["status"] == "fail" and "ledger" not in results
    changed = json.loads((made / "mean.json").read_text())
    changed["value"][0] += 1e-3
    (tmp_path / "changed.json").write_text(json.dumps(changed))
    _, results = exported(tmp_path, tmp_path / "three", ("changed.json",), "--ledger", made / "budget.db")
    assert results["changed"]["status"] == "fail", "another value than the one that was charged"


def forged(path, out, **changed):
    """A record with other entries, beside the true one."""
    record = json.loads(path.read_text())
    out.write_text(json.dumps(record | changed))
    return out


def test_what_was_charged_together_is_known_however_it_is_named(made, tmp_path):
    parts = [made / "described" / f"{part}.json" for part in ("covariance", "mean", "variance")]
    _, results = exported(made, tmp_path / "parts", parts, "--ledger", made / "budget.db")
    assert {entry["status"] for entry in results.values()} == {"review"}
    _, results = exported(made, tmp_path / "one", parts[:1], "--ledger", made / "budget.db")
    assert results["covariance"]["status"] == "fail"


def test_forged_records_are_failed_and_true_ones_beside_them_are_not(made, tmp_path):
    drawn, mean = (json.loads((made / f"{name}.json").read_text()) for name in ("drawn", "mean"))
    weak = mean["guarantee"] | {"epsilon": 0.001}
    later = drawn["post_processing"]
    cases = {
        "of": forged(made / "mean.json", tmp_path / "of.json", guarantee=weak, post_processing={"of": later["of"]}),
        "promise": forged(made / "drawn.json", tmp_path / "promise.json", guarantee=weak),
        "value": forged(made / "drawn.json", tmp_path / "value.json", value=[0.7, 0.8]),
        "before": forged(
            made / "drawn.json",
            tmp_path / "before.json",
            guarantee=weak,
            post_processing=later | {"before": later["before"] | {"guarantee": drawn["guarantee"]}},
        ),
        "point": forged(
            made / "drawn.json",
            tmp_path / "point.json",
            value=[0.7, 0.8],
            post_processing=later | {"share": 1e-12, "toward": [0.7, 0.8]},
        ),
        "more": forged(made / "drawn.json", tmp_path / "more.json", post_processing=later | {"rows": [1.0, 2.0]}),
        "share": forged(made / "drawn.json", tmp_path / "share.json", post_processing=later | {"share": 0.01}),
        "group": forged(made / "group-0.json", tmp_path / "group.json", guarantee=weak),
        "nobody": forged(made / "group-0.json", tmp_path / "nobody.json", group={"name": "nobody", "of": [0, 1]}),
    }
    for name, path in cases.items():
        if name == "of":
            assert export(path, "--ledger", made / "budget.db", "--out", tmp_path / name).exit_code == 2
            continue
        book = "groups.db" if name in ("group", "nobody") else "budget.db"
        true = ("group-0.json", "group-1.json") if book == "groups.db" else ("mean.json",)
        _, results = exported(made, tmp_path / name, (path, *(made / own for own in true)), "--ledger", made / book)
        assert results[name]["status"] == "fail", name
        if book == "budget.db":
            assert results["mean"]["status"] == "review"
    twice = tmp_path / "twice.json"
    twice.write_text((made / "mean.json").read_text().replace("{", '{"value": [0.7, 0.8],', 1))
    _, results = exported(made, tmp_path / "twice", (twice,), "--ledger", made / "budget.db")
    assert results["twice"]["status"] == "review" and "0.7" not in (tmp_path / "twice" / "twice.json").read_text()


def test_groups_are_known_to_the_ledger_together(made, tmp_path):
    both, book = ("group-0.json", "group-1.json"), ("--ledger", made / "groups.db")
    _, results = exported(made, tmp_path / "both", both, *book)
    assert {entry["status"] for entry in results.values()} == {"review"}
    _, results = exported(made, tmp_path / "one", both[:1], *book)
    assert results["group-0"]["status"] == "fail" and "not named with it" in results["group-0"]["summary"]


def test_wrong_calls_leave_nothing(made, tmp_path):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "other.txt").write_text("mine")
    (tmp_path / "ledger.json").write_bytes((made / "mean.json").read_bytes())
    (tmp_path / "Results.json").write_bytes((made / "mean.json").read_bytes())
    forged(made / "mean.json", tmp_path / "later.json", post_processing=[])
    forged(made / "mean.json", tmp_path / "group.json", group="x")
    (tmp_path / "half.json").write_text('{"value": 1}')
    for words, said in (
        ((made / "mean.json", "--out", tmp_path / "taken"), "name a new folder"),
        ((made / "mean.json", "--out", tmp_path / "no" / "out"), "does not exist"),
        ((made / "mean.json", made / "mean.json", "--out", tmp_path / "out"), "2 records have this name"),
        ((tmp_path / "ledger.json", "--out", tmp_path / "out"), "rename the record"),
        ((tmp_path / "Results.json", "--out", tmp_path / "out"), "rename the record"),
        ((tmp_path / "later.json", "--out", tmp_path / "out"), "not a complete release record"),
        (
            (tmp_path / "later.json", "--ledger", made / "budget.db", "--out", tmp_path / "out"),
            "not a complete release record",
        ),
        ((tmp_path / "group.json", "--out", tmp_path / "out"), "not a complete release record"),
        ((made / "mean.json", "--out", "."), "name a new folder"),
        ((made / "mean.json", "--out", tmp_path / ("n" * 300)), "nnn"),
        ((made / "mean.json", "--acro", "", "--out", tmp_path / "out"), "--acro must be"),
        ((tmp_path / "half.json", "--out", tmp_path / "out"), "half.json"),
        ((tmp_path / "none.json", "--out", tmp_path / "out"), "none.json"),
        ((made / "mean.json", "--ledger", made / "mean.json", "--out", tmp_path / "out"), "mean.json"),
    ):
        done = export(*words)
        assert done.exit_code in (1, 2) and said in " ".join(done.output.split()), done.output
        assert "Traceback" not in done.output and len(done.output.strip().splitlines()) <= 4
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "Results.json",
        "group.json",
        "half.json",
        "later.json",
        "ledger.json",
        "taken",
    ]
