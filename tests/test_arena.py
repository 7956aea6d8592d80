"""The arena of `benchmarks/arena.py`: its rivals, and a run of two cells."""

import importlib
import pathlib
import sys

import numpy as np
import pytest
from scipy.stats import kstest

BENCHMARKS = pathlib.Path(__file__).parents[1] / "benchmarks"
DRAWS = 20_000
# Of the test of one law, so that all of this file together fail a right sampler once in a million runs.
LEVEL = 1e-7


@pytest.fixture
def module_of(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module


def law_of_last_coordinate(energies):
    """The distribution function of x_d on S^1 or S^2 for the density exp(sum energies x^2), by quadrature."""
    polar = np.linspace(0.0, np.pi, 4001)
    around = np.linspace(0.0, 2.0 * np.pi, 400, endpoint=False)
    if len(energies) == 2:
        weights = np.exp(energies[0] * np.sin(polar) ** 2 + energies[1] * np.cos(polar) ** 2)
    else:
        across = energies[0] * np.cos(around) ** 2 + energies[1] * np.sin(around) ** 2
        weights = np.exp(np.sin(polar)[:, None] ** 2 * across + energies[2] * np.cos(polar)[:, None] ** 2)
        weights = weights.sum(axis=1) * np.sin(polar)
    heights = np.cos(polar)[::-1]
    steps = 0.5 * (weights[::-1][1:] + weights[::-1][:-1])
    mass = np.concatenate([[0.0], np.cumsum(steps)])
    return lambda x: np.interp(x, heights, mass / mass[-1])


def level_of(rivals, energies, envelope=None):
    """The p-value of draws about axes that are turned, in the coordinate along the last of them."""
    rng = np.random.default_rng(len(energies))
    turn = np.linalg.qr(rng.normal(size=(len(energies), len(energies))))[0]
    matrix = (turn * energies) @ turn.T
    draws = rivals.bingham(rng, np.broadcast_to(matrix, (DRAWS, *matrix.shape)), envelope)
    np.testing.assert_allclose(np.linalg.norm(draws, axis=1), 1.0, rtol=1e-12)
    return kstest(draws @ turn[:, -1], law_of_last_coordinate(energies)).pvalue


@pytest.mark.parametrize("energies", [(0.0, 5.0), (0.0, 2.0, 9.0), (-3.0, 1.0, 1.5)], ids=str)
def test_bingham_draws_have_their_law(module_of, energies):
    rivals = module_of("rivals")
    assert level_of(rivals, np.array(energies)) > LEVEL


@pytest.mark.parametrize("energies", [(0.0, 5.0), (0.0, 2.0, 9.0)], ids=str)
def test_a_wrong_envelope_is_found(module_of, energies):
    rivals = module_of("rivals")
    wrong = {"inverted": np.sqrt, "without its 2": lambda precision: 1.0 / np.sqrt(0.5 * (1.0 + precision))}
    for envelope in wrong.values():
        assert level_of(rivals, np.array(energies), envelope) < LEVEL


def test_rivals_release_the_moment_where_there_is_hardly_any_noise(module_of):
    rivals = module_of("rivals")
    rng = np.random.default_rng(0)
    data = rng.normal(size=(3, 500, 3)) * np.array([1.0, 2.0, 3.0])
    truth = rivals.second_moment(data)
    far = 1.0001 * np.linalg.norm(data, axis=-1).max()
    released = {
        "separate": rivals.separate(rng, data, far, 1e12),
        "eigenvectors, rho": rivals.eigenvalue_and_vector_draws(rng, data, far, rho=1e12),
        "eigenvectors, epsilon": rivals.eigenvalue_and_vector_draws(rng, data, far, epsilon=1e9),
    }
    for name, value in released.items():
        np.testing.assert_allclose(value, truth, atol=2e-3, err_msg=name)
    # These two clip what is rare, whatever the noise.
    np.testing.assert_allclose(rivals.coinpress(rng, data, 100.0, 1e12, 2), truth, rtol=0.5, atol=1.5)
    np.testing.assert_allclose(rivals.adaptive(rng, data, far, 1e12), truth, atol=2e-3)


def test_noise_of_symmetric_matrices_is_the_same_along_all_directions(module_of):
    noise = module_of("rivals").symmetric_noise(np.random.default_rng(1), DRAWS, 3, 2.0)
    rows, columns = np.triu_indices(3)
    flat = noise[:, rows, columns] * np.where(rows == columns, 1.0, np.sqrt(2.0))
    for column in flat.T:
        assert kstest(column / 2.0, "norm").pvalue > LEVEL
        assert kstest(column / 2.2, "norm").pvalue < LEVEL


def test_arena_says_who_wins(module_of, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["arena.py", "--quick"])
    module_of("arena").main()
    printed = capsys.readouterr().out
    assert printed.count(", ratio ") >= 2  # one a cell, and the losses again
    for name in ("CoinPress", "Amin et al.", "DP-RGD", "WrappedGaussian", "Where we lose"):
        assert name in printed


def test_a_loss_is_called_one(module_of):
    scores = module_of("arena_scores")
    found = [
        scores.Score("cell", name, ours, pair, None)
        for name, ours, pair in (("a", True, (1.2, 0.01)), ("b", False, (1.0, 0.01)), ("none", None, (0.1, 0.01)))
    ]
    assert scores.verdict(found).startswith("we lose: a 1.2000")
    assert scores.verdict([found[0], found[1]._replace(distance=(1.18, 0.01))]).startswith("even")
    assert scores.verdict([found[0], found[1]._replace(distance=(2.0, 0.01))]).startswith("we win")
