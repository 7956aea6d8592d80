"""States of docs/scale.md through Spark and Beam, where these are installed: no extra of ours does it."""

import json
import sys

import numpy as np
import pyarrow as pa
import pytest
from strategies import exhaustive

from jaxgeodp import Euclidean, GeodesicBall, State, TangentLaplace
from jaxgeodp.engines import prepared_in_turn
from jaxgeodp.releases import merged

MECHANISM = TangentLaplace(GeodesicBall(Euclidean(2), np.zeros(2), 1.0), 1.0)
DATA = np.random.default_rng(0).normal(size=(500, 2)) / 2.0


def same_bits(texts, blocks):
    state = merged(State.from_json(json.loads(text)) for text in texts)
    np.testing.assert_array_equal(state.sums, MECHANISM.prepare(DATA).sums)
    assert state.n == 500 and len(state.parts) >= blocks and MECHANISM.finish(state).record["n"] == 500


@pytest.mark.parametrize("partitions", [3, *exhaustive(7)])
def test_spark_maps_batches_to_states(partitions, monkeypatch):
    sql = pytest.importorskip("pyspark.sql")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    empty = np.zeros((0, 2))

    def prepare(batches):
        blocks = (np.stack([column.to_numpy() for column in batch.columns], axis=1) for batch in batches)
        state = prepared_in_turn(MECHANISM, [empty, *blocks])
        yield pa.RecordBatch.from_pydict({"state": [json.dumps(state.to_json())]})

    builder = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    with builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", "40").getOrCreate() as session:
        frame = session.createDataFrame([tuple(map(float, row)) for row in DATA], "x double, y double")
        rows = frame.repartition(partitions).mapInArrow(prepare, "state string").collect()
    assert len(rows) == partitions
    same_bits([row.state for row in rows], partitions)


@pytest.mark.parametrize("blocks", [9, *exhaustive(1)])
def test_beam_combines_blocks_into_a_state(blocks, tmp_path):
    beam = pytest.importorskip("apache_beam")

    class Prepare(beam.CombineFn):
        def create_accumulator(self):
            return MECHANISM.prepare(np.zeros((0, 2)))

        def add_input(self, state, block):
            return state + MECHANISM.prepare(block)

        def merge_accumulators(self, states):
            return merged(states)

        def extract_output(self, state):
            return json.dumps(state.to_json())

    out = tmp_path / "state.json"
    with beam.Pipeline("DirectRunner") as pipeline:
        combined = pipeline | beam.Create(np.array_split(DATA, blocks)) | beam.CombineGlobally(Prepare())
        combined | beam.Map(out.write_text)
    same_bits([out.read_text()], blocks)
