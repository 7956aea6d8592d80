"""Blocks that Dask prepares, on real worker processes, one of which is killed."""

import json
import os
import pathlib
import random
import signal

import dask
import dask.array
import dask.bag
import dask.dataframe
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import Client, LocalCluster
from typer.testing import CliRunner

from jaxgeodp import Euclidean, GeodesicBall, TangentLaplace
from jaxgeodp.blocks import RecordBlocks
from jaxgeodp.cli import app
from jaxgeodp.engines import prepared_by_dask, prepared_in_turn
from jaxgeodp.privacy import Ledger, PureDP, grid

MECHANISM = TangentLaplace(GeodesicBall(Euclidean(2), np.zeros(2), 1.0), 1.0)
DATA = np.random.default_rng(0).normal(size=(500, 2)) / 2.0


@pytest.fixture(scope="module")
def client():
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as own:
        yield own


def killed_once(block, marker):
    """A worker that dies the first time it prepares this block."""
    path = pathlib.Path(marker)
    if not path.exists():
        path.write_text("")
        os.kill(os.getpid(), signal.SIGKILL)
    return block


def test_blocks_on_workers_have_the_bits_of_one_process(client, tmp_path):
    """Arrays, delayed blocks, a data frame, and a killed worker, whose block counts once."""
    whole = MECHANISM.prepare(DATA)
    frame = dask.array.from_array(DATA, chunks=(100, 2))
    table = dask.dataframe.from_dask_array(frame)
    bag = dask.bag.from_sequence(list(DATA), npartitions=7)
    blocks = [DATA[start : start + 30] for start in range(0, 500, 30)]
    for own in (frame, table, bag, blocks, [dask.delayed(block) for block in blocks]):
        state = prepared_by_dask(MECHANISM, own, client=client)
        np.testing.assert_array_equal(state.sums, whole.sums)
        assert state.n == 500
    marker = str(tmp_path / "killed")
    state = prepared_by_dask(MECHANISM, blocks, lambda block: killed_once(block, marker), client)
    np.testing.assert_array_equal(state.sums, whole.sums)
    assert state.n == 500 and len(state.parts) == len(blocks) and pathlib.Path(marker).exists()
    assert MECHANISM.finish(state).record["n"] == 500


def test_the_command_releases_what_workers_have_prepared(client, tmp_path, monkeypatch):
    """As in one process; and what is refused by public numbers is refused before any of them reads a file."""
    monkeypatch.chdir(tmp_path)
    for place, part in enumerate(np.array_split(DATA, 3)):
        pq.write_table(pa.table({"x": part[:, 0], "y": part[:, 1]}), f"part-{place}.parquet")
    usual = ["release", "part-*.parquet", "--manifold", "euclidean", "--center", "origin", "--radius", "1"]
    usual += ["--mechanism", "tangent", "--numerics", "grid"]
    address = ["--dask", client.scheduler.address]
    values = []
    for place, more in enumerate((address, [])):
        monkeypatch.setattr(grid.secrets, "randbelow", random.Random(7).randrange)
        result = CliRunner().invoke(app, [*usual, *more, "--epsilon", "1", "--out", f"{place}.json"])
        assert result.exit_code == 0, result.output
        values.append(json.loads((tmp_path / f"{place}.json").read_text())["value"])
    assert values[0] == values[1]
    Ledger(tmp_path / "budget.db", PureDP(0.5), "trial")
    monkeypatch.setattr("jaxgeodp.cli.release.prepared_on", lambda *_: pytest.fail("workers have read"))
    monkeypatch.setattr(RecordBlocks, "check", lambda *_: pytest.fail("the command has read"))
    for where in (address, []):
        result = CliRunner().invoke(
            app, [*usual, *where, "--epsilon", "1", "--ledger", "budget.db", "--dataset", "trial", "--out", "no.json"]
        )
        assert result.exit_code == 2 and "left of its budget" in " ".join(result.output.split()), result.output


def test_blocks_in_turn_and_none():
    state = prepared_in_turn(MECHANISM, np.array_split(DATA, 9))
    np.testing.assert_array_equal(state.sums, MECHANISM.prepare(DATA).sums)
    with pytest.raises(ValueError, match="along its first axis only"):
        prepared_by_dask(MECHANISM, dask.array.from_array(DATA, chunks=(100, 1)))
    for call in (lambda: prepared_in_turn(MECHANISM, []), lambda: prepared_by_dask(MECHANISM, [])):
        with pytest.raises(ValueError, match="no block"):
            call()
