"""Queries of a lomas server, against a stub of what its `DPQuerier` does (lomas-server 0.4.1)."""

import decimal
import json
import sys
import types

import numpy as np
import pandas as pd
import pytest

from jaxgeodp import PureDP, Release
from jaxgeodp.lomas import MeanQuery, lomas_querier
from jaxgeodp.privacy import record_digest

POLE = [0.0, 0.0, 1.0]
ASKED = {"manifold": "sphere", "columns": ["x", "y", "z"], "center": POLE, "radius": 0.5}
LOOSE = 1e4  # a budget with which the noise is nothing


class InvalidQueryException(Exception):  # noqa: N818
    """As theirs."""

    def __init__(self, error_message):
        self.error_message = error_message


class DPQuerier:
    """As theirs: a cost, compared with what is left; an answer; the cost taken off."""

    def __init__(self, data_connector, admin_database):
        self.data_connector = data_connector
        self.admin_database = admin_database

    def handle_query(self, query_json, user_name):
        costs = self.cost(query_json)
        left = self.admin_database[user_name]
        if any(cost > own for cost, own in zip(costs, left, strict=True)):
            raise InvalidQueryException("Not enough budget for this query.")
        result = self.query(query_json)
        self.admin_database[user_name] = [own - cost for cost, own in zip(costs, left, strict=True)]
        return result


class Connector:
    """A table of directions, and what is public of it."""

    def __init__(self, n=200, rows=None, max_ids=1):
        points = np.random.default_rng(0).normal(POLE, 0.1, (n, 3))
        self.points = points / np.linalg.norm(points, axis=1, keepdims=True)
        self.table = pd.DataFrame(self.points, columns=["x", "y", "z"]).assign(name="somebody")
        columns = {name: types.SimpleNamespace(type="float") for name in "xyz"} | {
            "name": types.SimpleNamespace(type="string"),
            "seen": types.SimpleNamespace(type="datetime"),
        }
        self.metadata = types.SimpleNamespace(rows=n if rows is None else rows, max_ids=max_ids, columns=columns)
        self.reads = 0

    def get_metadata(self):
        return self.metadata

    def get_pandas_df(self):
        self.reads += 1
        return self.table.copy()


@pytest.fixture
def made(monkeypatch):
    """Make a querier of the stub's, with its connector and budgets."""
    for name, own in {
        "lomas_core": {},
        "lomas_core.error_handler": {"InvalidQueryException": InvalidQueryException},
        "lomas_server": {},
        "lomas_server.dp_queries": {},
        "lomas_server.dp_queries.dp_querier": {"DPQuerier": DPQuerier},
    }.items():
        module = types.ModuleType(name)
        vars(module).update(own)
        monkeypatch.setitem(sys.modules, name, module)

    def make(connector, left=(1.0, 1e-5)):
        budgets = {"ana": list(left)}
        return lomas_querier(json.dumps)(connector, budgets), budgets

    return make


def query(**changed):
    """As the server reads a request: an object with all fields."""
    defaults = {"dataset_name": "north", "epsilon": None, "mu": None, "delta": None, "mechanism": "auto"}
    return types.SimpleNamespace(**(defaults | ASKED | changed))


def test_a_query_is_answered_by_a_release_and_costs_what_it_promises(made):
    connector = Connector()
    querier, budgets = made(connector)
    record = json.loads(querier.handle_query(query(epsilon=0.4), "ana"))
    assert record["guarantee"]["epsilon"] == 0.4 and record["n"] == 200 and len(record_digest(record)) == 64
    assert budgets["ana"] == [0.6, 1e-5]
    record = json.loads(querier.handle_query(query(mu=0.05, delta=1e-6), "ana"))
    assert record["guarantee"]["kind"] == "gdp" and record["guarantee"]["mu"] == 0.05
    spent = 0.6 - budgets["ana"][0]
    assert 0.15 < spent < 0.25 and budgets["ana"][1] == pytest.approx(9e-6)
    with pytest.raises(InvalidQueryException):
        querier.handle_query(query(epsilon=0.5), "ana")
    assert connector.reads == 2, "what there is no budget for is refused before records are read"


def test_the_value_is_the_mean_of_these_columns():
    table, query = Connector().table, MeanQuery(**ASKED, epsilon=LOOSE, mechanism="wrapped")
    release = query.answer(table, query.chosen(len(table)))
    mean = Connector().points.mean(0)
    assert isinstance(release, Release) and release.guarantee == PureDP(LOOSE)
    assert np.abs(np.asarray(release.value) - mean / np.linalg.norm(mean)).max() < 0.01


def test_a_cell_that_is_no_number_makes_its_record_the_centre():
    query = MeanQuery(**ASKED, epsilon=LOOSE, mechanism="wrapped")
    table = Connector(40).table.astype({"x": object})
    odd = ["", None, "north", np.nan, 10**400, decimal.Decimal("sNaN"), np.array(3.0), 1j, [1], pd.Timestamp(0), True]
    table["x"] = [odd[i % len(odd)] for i in range(40)]
    value = np.asarray(query.answer(table, query.chosen(40)).value)
    assert np.abs(value - POLE).max() < 0.01
    nullable = Connector(40).table[["x", "y", "z"]].astype("Float64")
    nullable.loc[:, "x"] = pd.NA
    assert np.abs(np.asarray(query.answer(nullable, query.chosen(40)).value) - POLE).max() < 0.01


REFUSED = {
    "either epsilon or mu": {},
    "at least": {"epsilon": 1e-12},
    "a list of names": {"epsilon": 0.1, "columns": "xyz"},
    "not declare seen as numbers": {"epsilon": 0.1, "columns": ["x", "y", "seen"]},
    "not declare name as numbers": {"epsilon": 0.1, "columns": ["x", "y", "name"]},
    "either epsilon": {"epsilon": 0.1, "mu": 0.1},
    "delta exactly if it has mu": {"mu": 0.1},
    "exactly if": {"epsilon": 0.1, "delta": 1e-6},
    "manifold must be": {"epsilon": 0.1, "manifold": "plane"},
    "distinct names": {"epsilon": 0.1, "columns": ["x", "x", "z"]},
    "a number for each": {"epsilon": 0.1, "center": [0.0, 1.0]},
    "no column w": {"epsilon": 0.1, "columns": ["x", "y", "w"]},
    "radius": {"epsilon": 0.1, "radius": -1.0},
    "epsilon": {"epsilon": float("nan")},
    "center": {"epsilon": 0.1, "center": [0.0, 0.0, 0.0]},
    "mechanism must be": {"epsilon": 0.1, "mechanism": "noise"},
    "needs mu": {"epsilon": 0.1, "mechanism": "tangent-gaussian"},
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_is_refused_costs_nothing_and_reads_no_record(made, words):
    connector = Connector()
    querier, budgets = made(connector)
    with pytest.raises(InvalidQueryException) as refusal:
        querier.handle_query(query(**REFUSED[words]), "ana")
    assert words in refusal.value.error_message
    assert budgets["ana"] == [1.0, 1e-5] and connector.reads == 0


def test_no_cell_decides_what_another_counts_as():
    query = MeanQuery(**ASKED, epsilon=LOOSE, mechanism="wrapped")
    table = Connector(40).table.astype({"x": object})
    clean = query.answer(table, query.chosen(40)).value
    table.loc[0, "x"] = 1j
    assert np.abs(np.asarray(query.answer(table, query.chosen(40)).value) - np.asarray(clean)).max() < 0.02


class Unreadable(Connector):
    """A file with a cell that the server's reader refuses, and cites."""

    def get_pandas_df(self):
        raise ValueError("could not convert string to float: 'secret'")


def test_nothing_of_why_a_table_cannot_be_read_is_told(made):
    querier, budgets = made(Unreadable())
    with pytest.raises(InvalidQueryException) as refusal:
        querier.handle_query(query(epsilon=0.1), "ana")
    assert "secret" not in refusal.value.error_message and refusal.value.__cause__ is None
    assert budgets["ana"] == [1.0, 1e-5]


def test_data_sets_that_the_promise_does_not_fit_are_refused(made):
    for connector, words in ((Connector(max_ids=2), "several rows"), (Connector(rows=199), "number of rows")):
        querier, budgets = made(connector)
        with pytest.raises(InvalidQueryException) as refusal:
            querier.handle_query(query(epsilon=0.1), "ana")
        assert words in refusal.value.error_message and budgets["ana"] == [1.0, 1e-5]
