"""The arena of `benchmarks/compare/arena.py`: its rivals, and a run of two cells."""

import sys
from unittest.mock import Mock

import jax
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import chi, gamma, ks_2samp, kstest, laplace, trim_mean

import jaxgeodp as jgd
from benchmarks.compare import arena, rivals
from benchmarks.compare import arena_cells as cells
from benchmarks.compare import arena_covariances as covariances
from benchmarks.compare import arena_descents as descents
from benchmarks.compare import arena_means as means
from benchmarks.compare import arena_scores as scores
from benchmarks.compare import rivals_clipped as clipped

DRAWS = 20_000
# Of the test of one law, so that all of this file together fail a right sampler once in a million runs.
LEVEL = 1e-7


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
def test_bingham_draws_have_their_law(energies):
    assert level_of(rivals, np.array(energies)) > LEVEL


@pytest.mark.parametrize("energies", [(0.0, 5.0), (0.0, 2.0, 9.0)], ids=str)
def test_a_wrong_envelope_is_found(energies):
    wrong = {"inverted": np.sqrt, "without its 2": lambda precision: 1.0 / np.sqrt(0.5 * (1.0 + precision))}
    for envelope in wrong.values():
        assert level_of(rivals, np.array(energies), envelope) < LEVEL


def released(rivals, clipped, rng, data, far, **budget):
    """By all who release a second moment within a ball."""
    return {
        "whole": rivals.whole(rng, data, far, **budget),
        "eigenvectors": rivals.eigenvalue_and_vector_draws(rng, data, far, **budget),
        "eigenvectors, equal": rivals.eigenvalue_and_vector_draws(rng, data, far, **budget, first=0.3, adaptive=False),
        "separate": clipped.separate(rng, data, far, **budget),
        "adaptive": clipped.adaptive(rng, data, far, **budget),
        "by histogram": clipped.by_histogram(rng, data, far, **budget),
    }


@pytest.mark.parametrize("budget", [{"rho": 1e12}, {"epsilon": 1e9}], ids=str)
def test_rivals_release_the_moment_where_there_is_hardly_any_noise(budget):
    rng = np.random.default_rng(0)
    data = rng.normal(size=(3, 500, 3)) * np.array([1.0, 2.0, 3.0])
    truth = rivals.second_moment(data)
    far = 1.0001 * np.linalg.norm(data, axis=-1).max()
    for name, value in released(rivals, clipped, rng, data, far, **budget).items():
        np.testing.assert_allclose(value, truth, atol=2e-3, err_msg=name)
    # This one clips what is rare, whatever the noise.
    np.testing.assert_allclose(rivals.coinpress(rng, data, 100.0, 2, **budget), truth, rtol=0.5, atol=1.5)


@pytest.mark.parametrize("factor", [1.0, 1.1])
def test_noise_of_rivals_has_the_scale_of_their_papers(factor):
    """Of 20,000 releases of a moment of 0, whose noise a wrong budget would change by a tenth."""
    rng, dim, n = np.random.default_rng(2), 3, 40
    nothing = np.broadcast_to(np.zeros(dim), (DRAWS, n, dim))
    budget = 2.0 / factor
    # Normal, of sqrt(2)/n by a record in the Frobenius norm: sum of 6 squares.
    normal = np.linalg.norm(rivals.whole(rng, nothing, 1.0, rho=budget**2), axis=(1, 2)) * n * 2.0
    # Nuclear norm, of 2/n by a record: a Gamma variable of shape 6.
    nuclear = np.abs(np.linalg.eigvalsh(rivals.whole(rng, nothing, 1.0, epsilon=budget))).sum(axis=1) * n
    # Entries, of 1 + 3/sqrt(2) by a record in the sum of absolute values.
    corner = clipped.entries(rng, nothing, 1.0, epsilon=budget)[:, 0, 2] * n * 2.0 / (1.0 + 3.0 / np.sqrt(2.0))
    # Laplace noise of 4/(n epsilon) on three zeros, the largest of which is positive in 7 of 8 cases.
    largest = np.linalg.eigvalsh(clipped.separate(rng, nothing, 1.0, epsilon=budget))[:, -1] * n / 2.0
    laws = {"whole, rho": (normal, chi(6).cdf), "whole, epsilon": (nuclear, gamma(6).cdf)}
    laws["entries"] = (corner, laplace.cdf)
    laws["separate"] = (largest[largest > 0.0], lambda x: (laplace.cdf(x) ** 3 - 0.125) / 0.875)
    for name, (values, law) in laws.items():
        assert (kstest(values, law).pvalue > LEVEL) == (factor == 1.0), name


def test_eigenvalues_of_the_exponential_mechanism_pay_their_share():
    """One direction: all of `first` is for one eigenvalue, of which two counts by a record are the sensitivity."""
    rng = np.random.default_rng(3)
    data = np.ones((DRAWS, 40, 1)) * np.sqrt(0.5)
    for share, right in ((0.5, True), (0.45, False)):
        value = rivals.eigenvalue_and_vector_draws(rng, data, 1.0, epsilon=2.0, first=share)[:, 0, 0]
        assert (kstest((value - 0.5) * 40 / 2.0, laplace.cdf).pvalue > LEVEL) == right


def test_bingham_rates_spend_the_rest_of_the_budget(monkeypatch):
    """A draw at rate r of sums with weight 1 a record costs 2r or r^2/2; the last direction is free."""
    rng, rates, bingham = np.random.default_rng(4), [], rivals.bingham

    def noting(rng, matrices):
        rates.append(np.trace(matrices, axis1=1, axis2=2))
        return bingham(rng, matrices)

    monkeypatch.setattr(rivals, "bingham", noting)
    data = np.zeros((5, 200, 4)) + np.eye(4)[np.arange(200) % 4]  # sums are 50 times the identity
    for adaptive in (True, False):
        for budget in ({"epsilon": 0.7}, {"rho": 0.3}):
            rates.clear()
            rivals.eigenvalue_and_vector_draws(rng, data, 1.0, **budget, first=0.4, adaptive=adaptive)
            own = np.array(rates) / 50.0 / np.array([4.0, 3.0, 2.0])[:, None]
            spent = 2.0 * own.sum(axis=0) if "epsilon" in budget else 0.5 * (own**2).sum(axis=0)
            np.testing.assert_allclose(spent, 0.6 * next(iter(budget.values())), rtol=1e-12)


@pytest.fixture
def spent(monkeypatch):
    """What the primitives of rivals are handed while they run: of each call a name and its share of the budget."""
    modules, calls = [rivals, clipped], []

    def noting(name, function):
        def noted(*arguments, **options):
            budget = {key: value for key, value in options.items() if key in ("epsilon", "rho") and value is not None}
            calls.append((name, *budget.values()))
            return function(*arguments, **options)

        return noted

    for name in ("noisy", "whole", "entries"):
        function = noting(name, getattr(modules[name == "entries"], name))
        for module in modules:
            if hasattr(module, name):
                monkeypatch.setattr(module, name, function)
    return calls


BUDGETS = [{"rho": 0.3}, {"epsilon": 0.7}]


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_parts_of_rivals_spend_the_whole_budget(spent, budget, monkeypatch):
    rng, (total,) = np.random.default_rng(8), budget.values()
    data = rng.normal(size=(3, 400, 2))

    def sums(method, *arguments, **options):
        spent.clear()
        method(rng, data, *arguments, **budget, **options)
        return {name: sum(value for own, value in spent if own == name) / total for name, _ in spent}

    for rounds in range(1, 6):
        assert sums(rivals.coinpress, 10.0, rounds, release=rivals.whole) == {"whole": pytest.approx(1.0)}
    matrix = "whole" if "rho" in budget else "entries"
    assert sums(clipped.separate, 5.0) == {"noisy": pytest.approx(0.5), matrix: pytest.approx(0.5)}
    assert sums(rivals.eigenvalue_and_vector_draws, 5.0, first=0.4) == {"noisy": pytest.approx(0.4)}
    # Of what follows the search one of two is released, and both are computed; a sparse vector has the last eighth.
    drawn = []

    class Generator:
        normal = staticmethod(rng.normal)

        @staticmethod
        def laplace(scale=1.0, size=None):
            drawn.append(np.min(scale))
            return rng.laplace(scale=scale, size=size)

    rests = []

    def nothing(rng, data, radius, **own):
        rests.append(own)
        return 0.0 * data[:, :2]

    for name in ("separate", "matrix_alone"):
        monkeypatch.setattr(clipped, name, nothing)
    for method, found, vector in ((clipped.adaptive, 0.125, 0.125), (clipped.by_histogram, 0.375, 0.0)):
        for own in (spent, drawn, rests):
            own.clear()
        method(Generator, data, 5.0, **budget)
        assert sum(value for _, value in spent) == pytest.approx(found * total)
        (rest,) = {value for own in rests for value in own.values()}
        assert rest + (found + vector) * total == pytest.approx(total)
        if vector:
            own = 2.0 / drawn[-2]  # of the threshold; each question has as much again
            assert drawn[-1] == pytest.approx(4.0 / own)
            assert (own if "epsilon" in budget else 0.5 * own**2) == pytest.approx(vector * total)


def test_what_is_ours_spends_the_budget_and_has_noise_of_its_scale(monkeypatch):
    for budget in BUDGETS:
        ((name, total),) = budget.items()
        first, rest = covariances.shared(covariances.Vectors(2, 100, 10.0, name, total), 0.25)
        spent = first["epsilon"] if name == "epsilon" else 0.5 * first["mu"] ** 2
        assert spent + rest[name] == pytest.approx(total) and spent == pytest.approx(0.25 * total)
        mechanism = Mock()
        monkeypatch.setattr(covariances, "SpreadMechanism", mechanism)
        monkeypatch.setattr(covariances, "_each", Mock())
        covariances.moments(None, np.zeros((1, 3, 2)), 1.0, budget)
        assert mechanism.call_args.kwargs == (
            budget if name == "epsilon" else {"mu": pytest.approx(np.sqrt(2.0 * total))}
        )
    # Of the trace of the noise of a moment of 0, against that of the package's own law.
    for factor in (1.0, 1.2):
        nothing = np.broadcast_to(np.zeros(2), (DRAWS, 40, 2))
        noise = covariances.with_hull_noise(np.random.default_rng(9), nothing, 3.0, epsilon=2.0 / factor)
        own = jgd.samplers.hull_noise(jax.random.key(10), DRAWS, 2) * 9.0 / 40 / 2.0
        traces = (np.trace(values, axis1=1, axis2=2) for values in (noise, np.asarray(own)))
        assert (ks_2samp(*traces).pvalue > LEVEL) == (factor == 1.0)


def test_coinpress_is_at_least_as_good_as_its_authors_stored():
    """Ten dimensions, 3000 normal vectors, eigenvalues up to 10 sqrt(10), rho = .5; means without the tails."""
    rng = np.random.default_rng(5)
    data = rng.normal(size=(20, 3000, 10))
    for rounds, stored in ((2, 0.557), (3, 0.306), (4, 0.353)):
        value = rivals.coinpress(rng, data, 10.0 * np.sqrt(10.0), rounds, rho=0.5)
        errors = np.linalg.norm(value - np.eye(10), axis=(1, 2))
        assert trim_mean(errors, 0.1) < stored


def test_adaptive_clips_where_most_records_are_short():
    """In a ball 1000 times as wide as the records: theirs, whose sparse vector may stop early, and the histogram."""
    rng = np.random.default_rng(6)
    data = rng.normal(size=(20, 4000, 3))
    truth = rivals.second_moment(data)

    def median(method, budget):
        return np.median(np.linalg.norm(method(rng, data, 2000.0, **budget) - truth, axis=(1, 2)))

    for budget in ({"rho": 0.5}, {"epsilon": 1.0}):
        blind = median(rivals.whole, budget)
        assert median(clipped.adaptive, budget) < blind
        assert median(clipped.by_histogram, budget) < 0.01 * blind


def test_noise_of_symmetric_matrices_is_the_same_along_all_directions():
    noise = rivals.symmetric_noise(np.random.default_rng(1), DRAWS, 3, 2.0)
    rows, columns = np.triu_indices(3)
    flat = noise[:, rows, columns] * np.where(rows == columns, 1.0, np.sqrt(2.0))
    for column in flat.T:
        assert kstest(column / 2.0, "norm").pvalue > LEVEL
        assert kstest(column / 2.2, "norm").pvalue < LEVEL


@pytest.mark.parametrize("factor", [1.0, 1.2])
def test_normal_noise_of_means_has_the_scale_of_a_record(factor):
    """In R^3, 100 records in radius .5: a record moves their mean by 2 r/n, and gradients clipped at c r by 2 c r/n."""
    cell = cells.Points(jgd.Euclidean(3), 0.5, 100, "mu", 0.8 * factor)

    def descent(budget, *schedule):
        return descents.descent(cell.ball, data, budget, cell.strength, schedule, keys)

    data = 0.01 * jax.random.normal(jax.random.key(0), (100, 3))
    keys = jax.random.split(jax.random.key(1), 4000)
    sigma = 2.0 * 0.5 / 100 / 0.8
    scales = {
        "ambient": (means.ambient_normal(cell, data, 4000), sigma),
        "one step": (descent("mu", (1.0, 1.0, 0.6)), 0.6 * sigma),
        # Each of two steps has half of mu^2; the second, of length 1, forgets the first.
        "two steps": (descent("mu", (0.5, 1.0, 0.6), (0.5, 1.0, 0.6)), 0.6 * np.sqrt(2.0) * sigma),
        "two rounds": (descent("mu", (0.2, 1.0, 0.9), (0.8, 1.0, 0.6)), 0.6 / np.sqrt(0.8) * sigma),
    }
    for name, (values, own) in scales.items():
        lengths = np.linalg.norm(np.asarray(values) - np.asarray(data.mean(axis=0)), axis=1) / own
        assert (kstest(lengths, chi(3).cdf).pvalue > LEVEL) == (factor == 1.0), name
    # Shares of epsilon add up, and lengths of the noise have a Gamma law.
    values = descent("epsilon", (0.2, 1.0, 0.9), (0.8, 1.0, 0.6))
    lengths = np.linalg.norm(np.asarray(values) - np.asarray(data.mean(axis=0)), axis=1) / (0.6 / 0.8 * sigma)
    assert (kstest(lengths, gamma(3).cdf).pvalue > LEVEL) == (factor == 1.0)
    settings = [own for budget in ("mu", "epsilon") for own in descents.schedules(budget).values()]
    assert all(sum(share for share, _, _ in own) == pytest.approx(1.0) for own in settings)


@pytest.mark.parametrize(("size", "radius"), [(2, 0.3), (2, 1.5), (3, 1.5), (2, 4.0)])
def test_no_two_matrices_of_a_ball_are_farther_apart(size, radius):
    """By ascent over commuting pairs in opposite order and over any: never above the bound, and within 6 % of it."""
    cell = cells.Points(jgd.SPD(size), radius, 100, "mu", 1.0)
    bound = means.ambient_diameter(cell)
    rows, columns = np.triu_indices(size)

    def apart(both):
        found = []
        for vector in np.split(both, 2):
            matrix = np.zeros((size, size))
            matrix[rows, columns] = vector
            matrix = matrix + np.triu(matrix, 1).T
            values, vectors = np.linalg.eigh(matrix * radius / max(np.linalg.norm(matrix), 1e-9))
            found.append((vectors * np.exp(values)) @ vectors.T)
        return -np.linalg.norm(found[0] - found[1])

    rng, least = np.random.default_rng(9), 0.0
    for _ in range(12):
        least = min(least, minimize(apart, rng.normal(size=2 * len(rows)), method="BFGS").fun)
    assert 0.94 * bound < -least <= bound < 2.0 * cell.space.ambient_radius(cell.ball.center, radius) + 1e-12


@pytest.mark.exhaustive  # what it is made of is tried above
def test_arena_says_who_wins(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["arena.py", "--quick"])
    arena.main()
    printed = capsys.readouterr().out
    assert printed.count(", ratio ") >= 2  # of the first cell, and in the summary
    assert "no contest" in printed  # ours of the second compile too much
    for name in ("CoinPress", "Amin et al.", "DP-RGD", "WrappedGaussian", "Where we lose"):
        assert name in printed


@pytest.mark.exhaustive
def test_steps_meet_tuned_steps():
    """One cell: who supposes symmetry is nearer than who does not, and that nearer than one release."""
    names = ("WrappedGaussian", "AdaptiveMechanism", "AdaptiveMechanism, symmetric")
    cell = cells.Points(jgd.SPD(2), 1.5, 500, "mu", 1.0, data_set=1)
    found = {own.method.split(",")[0]: own.distance[0] for own in means.scores(cell, 40, names=names[:2])}
    found |= {own.method: own.distance[0] for own in means.scores(cell, 40, names=names[2:])}
    once, steps, symmetric = (found[name] for name in names)
    assert 0.7 * found[means.LIMIT] < min(found["DP-RGD"], symmetric) and symmetric < steps < once


def test_a_loss_is_called_one():
    found = [
        scores.Score("cell", name, ours, pair)
        for name, ours, pair in (("a", True, (1.2, 0.01)), ("b", False, (1.0, 0.01)), ("none", None, (0.1, 0.01)))
    ]
    assert scores.verdict(found).startswith("we lose: a 1.2000")
    assert scores.verdict([found[0], found[1]._replace(distance=(1.18, 0.01))]).startswith("even")
    assert scores.verdict([found[0], found[1]._replace(distance=(2.0, 0.01))]).startswith("we win")
    frobenius = [one._replace(frobenius=one.distance) for one in found[:2]]
    assert scores.by_frobenius(frobenius).startswith("more: a 1.2000") and not scores.by_frobenius(found)
    table = scores.table([found]).splitlines()
    assert "ours: a | 1.2000" in table[2] and "**1.0000**" in table[3] and "none | 0.1000" in table[4]
    assert scores.overview([found]).splitlines()[-1] == "| cell | a | 1.2000 | b | 1.0000 | 1.20 |  |  |"
    assert scores.counts([found, found]) == "we win 0, even 0, we lose 2"


def test_errors_about_the_same_data_are_compared_one_by_one():
    """What the data are off by hides a difference only if the two are taken for strangers."""
    rng = np.random.default_rng(7)
    own = rng.normal(size=50) ** 2
    other = own - 0.01 + 0.001 * rng.normal(size=50)
    found = [
        scores.Score("cell", name, ours, scores.mean_of(errors), each=errors)
        for name, ours, errors in (("a", True, own), ("b", False, other))
    ]
    assert scores.verdict(found).startswith("we lose")
    assert scores.verdict([one._replace(each=None) for one in found]).startswith("even")


def test_standard_errors_of_means_without_tails():
    """Of 100 normal errors; those of what is kept alone are too small by a third."""
    errors = np.random.default_rng(8).normal(size=(4000, 100))
    means, stated = np.array([scores.without_tails(own) for own in errors]).T
    kept = np.sort(errors, axis=1)[:, 10:90]
    np.testing.assert_allclose(means, kept.mean(axis=1))
    assert stated.mean() == pytest.approx(means.std(), rel=0.04)
    assert (kept.std(axis=1) / np.sqrt(80)).mean() < 0.8 * means.std()


def test_what_is_kept_is_read_again(tmp_path):
    one = scores.Score("cell", "a", True, (1.2, 0.01), each=np.array([1.0, 1.4]), tail=(1.1, 1.4))
    other = scores.Score("cell", "b [2; 0.5]", False, (1.3, 0.02), (2.0, 0.1), (0.3, 0.1))
    arena.keep(tmp_path / "kept", [one, other], 3.2)
    again = arena.kept(tmp_path / "kept")["cell"]
    assert again[1] == other and again[0]._replace(each=None) == one._replace(each=None)
    np.testing.assert_array_equal(again[0].each, one.each)
    assert arena.kept(tmp_path / "none") == {}
    with open(tmp_path / "kept", "a") as stream:
        stream.write('{"cell": "anoth')  # killed while it wrote
    assert list(arena.kept(tmp_path / "kept")) == ["cell"]
    arena.keep(tmp_path / "kept", [one._replace(cell="third")], 3.2)
    assert list(arena.kept(tmp_path / "kept")) == ["cell", "third"]


def test_what_was_run_with_other_code_is_run_again(tmp_path, monkeypatch):
    arena.keep(tmp_path / "kept", [scores.Score("cell", "a", True, (1.2, 0.01))], 3.2)
    monkeypatch.setattr(arena, "code", lambda: "other")
    assert arena.kept(tmp_path / "kept") == {}


def test_each_data_set_has_its_own_noise():
    """And draws of settings are others than those that judge them."""
    parts = [cells.Points(jgd.Euclidean(2), 1.0, 40, "mu", 1.0, data_set=own) for own in (0, 1)]
    given = [cells.Given("name", None, "mu", 1.0, own) for own in (0, 1)]
    keys = {str(jax.random.key_data(means.key_of(own, part))) for own in parts for part in (1, 2, 3, 4, 5, 6, 9)}
    assert len(keys) == 14
    assert not np.array_equal(*(jax.random.key_data(means.key_of(own, 2)) for own in given))
    values = [means.ambient_normal(own, np.zeros((40, 2)), 3) for own in parts]
    assert not np.any(np.isclose(*values))


def test_one_step_may_stay_at_the_public_centre():
    """Of records that lie there, in too small a number: the shortest step is the best setting."""
    cell = cells.Points(jgd.Euclidean(8), 1.0, 5, "epsilon", 1.0)
    data = 1e-3 * jax.random.normal(jax.random.key(0), (5, 8))
    found = means.descents(cell, data, data.mean(axis=0), 20)
    assert "[1 step of length 0.1, clipped at 0.1 r]" in found[0].method


def test_the_page_has_what_was_kept(tmp_path, monkeypatch):
    """Tables between their marks, in the order of the grid, and the picture."""
    pairs = (("AdaptiveMechanism", True, 1.0), ("DP-RGD, best of 3", False, 0.9), ("public centre, nothing", None, 3.0))
    cell = [str(own) for own in arena.mean_cells(False)]
    found = [[scores.Score(name, *own[:2], (own[2], 0.01)) for own in pairs] for name in (cell[6], cell[0], cell[1])]
    page = tmp_path / "page.md"
    marks = [f"<!-- {name} -->\n<!-- /{name} -->\n" for name in ("overview", "normal μ", "normal ε")]
    page.write_text("Before\n" + "".join(marks))
    arena.write(found, page)
    text = page.read_text()
    assert f"| | {cell[0]} | {cell[6]} |" in text and text.index(f"| {cell[0]} |") < text.index(f"| {cell[1]} |")
    assert "| DP-RGD | 0.9000 | 1.11 | 3.0000 |" in text
    assert page.with_suffix(".png").stat().st_size > 10_000


def test_data_sets_are_averaged_where_a_method_has_entered_all():
    def entered(*rows):
        return [scores.Score("cell", name, True, pair) for name, pair in rows]

    pooled = scores.pooled(
        [entered(("a [1]", (1.0, 0.3)), ("b", (2.0, 0.1))), entered(("a [2]", (3.0, 0.4)), ("c", (9.0, 0.1)))]
    )
    assert [(own.method, own.distance) for own in pooled] == [("a", (2.0, pytest.approx(0.25)))]
