"""Blocks that Dask prepares, on real worker processes, one of which is killed."""

import os
import pathlib
import signal

import dask
import dask.array
import dask.bag
import numpy as np
import pytest
from distributed import Client, LocalCluster

from jaxgeodp import Euclidean, GeodesicBall, TangentLaplace
from jaxgeodp.engines import prepared_by_dask, prepared_in_turn

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
    table = dask.dataframe.from_dask_array(frame) if hasattr(dask, "dataframe") else frame
    blocks = [DATA[start : start + 30] for start in range(0, 500, 30)]
    for own in (frame, table, blocks, [dask.delayed(block) for block in blocks]):
        state = prepared_by_dask(MECHANISM, own, client=client)
        np.testing.assert_array_equal(state.sums, whole.sums)
        assert state.n == 500
    marker = str(tmp_path / "killed")
    state = prepared_by_dask(MECHANISM, blocks, lambda block: killed_once(block, marker), client)
    np.testing.assert_array_equal(state.sums, whole.sums)
    assert state.n == 500 and len(state.parts) == len(blocks) and pathlib.Path(marker).exists()
    assert MECHANISM.finish(state).record["n"] == 500


def test_blocks_in_turn_and_none():
    state = prepared_in_turn(MECHANISM, np.array_split(DATA, 9))
    np.testing.assert_array_equal(state.sums, MECHANISM.prepare(DATA).sums)
    with pytest.raises(ValueError, match="along its first axis alone"):
        prepared_by_dask(MECHANISM, dask.array.from_array(DATA, chunks=(100, 1)))
    for call in (lambda: prepared_in_turn(MECHANISM, []), lambda: prepared_by_dask(MECHANISM, [])):
        with pytest.raises(ValueError, match="no block"):
            call()
