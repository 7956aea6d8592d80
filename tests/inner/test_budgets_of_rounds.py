"""The budget of a search in rounds: all stages fit into it, and rounding keeps it."""

import dataclasses
from fractions import Fraction

import jax
import numpy as np
import pytest
from test_locating import records_on
from test_rounds import N, finished

from jaxgeodp import Euclidean, GeodesicBall, LocatedMechanism, PureDP, Sphere, WrappedGaussian, ZeroConcentratedDP
from jaxgeodp.checks import InputError
from jaxgeodp.locating import SearchInRounds
from jaxgeodp.locating import rounds as rounds_module
from jaxgeodp.privacy import Ledger
from jaxgeodp.privacy.decimals import written


@pytest.mark.parametrize(
    ("mechanism", "whole"),
    [
        (LocatedMechanism(Sphere(2), "tangent", epsilon=8.1), PureDP(8.1)),
        (LocatedMechanism(Euclidean(2), "wrapped-gaussian", mu=1.0, domain=30.0), ZeroConcentratedDP(0.5)),
    ],
    ids=str,
)
def test_all_stages_fit_into_the_budget_of_one_search(mechanism, whole, tmp_path, monkeypatch):
    data = records_on(mechanism.manifold, N)
    ledger = Ledger(tmp_path / "ledger.db", whole)
    search = SearchInRounds(mechanism, N)
    first = search.now
    state = first.prepare(data)
    search = search.after(first.finish(state, ledger))
    with pytest.raises(InputError, match="finished before"):
        first.finish(state, Ledger(tmp_path / "ledger.db", whole, "another data set"))
    search = finished(search, data, 2, ledger)
    costs = [next(iter(dataclasses.astuple(release.guarantee))) for release in search.releases]
    total = sum(Fraction(written(cost)) for cost in costs)
    limit = Fraction(written(next(iter(dataclasses.astuple(whole)))))
    assert 0.999 * limit < total <= limit
    assert ledger.account().releases == len(search.releases)
    assert search.guarantees[:-1] == tuple(release.guarantee for release in search.releases[:-1])
    # Planted: a last release with all of the budget.
    strength, real = mechanism.epsilon or mechanism.mu, rounds_module._budget
    monkeypatch.setattr(rounds_module, "_budget", lambda law, whole: (real(law, whole)[0], strength))
    with pytest.raises(InputError, match="left of its budget"):
        finished(SearchInRounds(mechanism, N), data, 1, Ledger(tmp_path / "other.db", whole))


@pytest.mark.parametrize(
    ("mu", "domain", "n"), [(4.6e-7, 30.0, 517874561), (1.2098908963843057e-07, 1e6, 263790114539)]
)
def test_rounding_of_the_last_cost_stays_within_the_whole(mu, domain, n):
    """Where rho of the last release, rounded up, would be above what is left."""
    mechanism = LocatedMechanism(Euclidean(1), "wrapped-gaussian", mu=mu, domain=domain)
    with jax.enable_x64(True):
        law = mechanism.law(n)
        whole = mechanism.guarantee
        costs, rest = rounds_module._budget(law, whole)
        last = WrappedGaussian(GeodesicBall(Euclidean(1), np.zeros(1), domain), rest).law(n)
        charged = last.grid.noisy((1,)).terms.guarantee
    total = sum(Fraction(written(own.rho)) for own in (*costs, charged))
    assert 0.999 * Fraction(written(whole.rho)) < total <= Fraction(written(whole.rho))
