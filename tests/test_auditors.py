"""The recorder of noise: what it says of mechanisms, and of planted mistakes (benchmarks/audit/auditors.py has all)."""

from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from strategies import exhaustive

from benchmarks.audit import auditors, cells, options, outside, recorded
from benchmarks.audit.planted import DISK, N, planted
from benchmarks.compare import published
from jaxgeodp import KNGMechanism, TangentLaplace
from jaxgeodp.mechanisms.names import MECHANISMS
from jaxgeodp.privacy import adversarial_neighbours
from jaxgeodp.releases.ways.fixed_time import draw_in_fixed_time

KEY = jax.random.key(3)
PAIR = tuple(map(jnp.asarray, adversarial_neighbours(DISK, N)["edge"]))
PLANTED = planted()
DRAWS = 4_000
# Of a scale that so many draws of two coordinates tell, five standard errors.
MARGIN = 1.0 + 5.0 / np.sqrt(2.0 * DRAWS)


def recorder_of(audited, draws):
    return recorded.Recorder(lambda key, records: audited.simulate(key, records, draws), KEY, PAIR[0])


def used(audited):
    """How much of epsilon = 1 the pair uses, and what is found besides."""
    recorder = recorder_of(audited, DRAWS)
    (distance,) = recorded.distances(recorder, KEY, *PAIR, "norm")
    return distance, recorder


def test_noise_that_a_program_adds_is_recorded_and_replayed():
    distance, recorder = used(TangentLaplace(DISK, 1.0))
    assert 1.0 / MARGIN < distance < MARGIN
    assert recorder.label == recorded.RELEASED
    assert (recorder.findings, recorder.loops, recorder.additions) == ([], [], 1)


def test_half_the_noise_is_recorded_as_twice_the_distance():
    distance, recorder = used(PLANTED["half the noise"])
    assert 2.0 / MARGIN < distance < 2.0 * MARGIN
    assert recorder.findings == []


def test_noise_of_real_releases_on_a_grid_is_recorded_and_replayed():
    """Independent coordinates for a move along one: 1/sqrt(2) of epsilon."""
    mechanism = TangentLaplace(DISK, 1.0)
    data, neighbour = map(np.asarray, PAIR)
    release = partial(mechanism.release, numerics="grid")
    assert recorded.on_grid(release, data, neighbour) == pytest.approx(0.5**0.5, rel=1e-6)
    assert recorded.on_grid(release, data, data) == 0.0


def test_only_a_sampler_in_fixed_time_has_no_loop_that_depends_on_records():
    law = KNGMechanism(DISK, 1.0).law(N)
    fixed = recorded.Recorder(lambda key, records: draw_in_fixed_time(law, key, records, 2048), KEY, PAIR[0])
    assert (fixed.findings, fixed.loops) == ([], [])
    assert recorder_of(KNGMechanism(DISK, 1.0), 1).loops == ["a loop depends on records"]


@pytest.mark.parametrize(
    ("mistake", "finding"),
    [
        ("a key used twice", "a key is used twice"),
        ("a barrier about the mean", "beside the noisy vector"),
        ("a coordinate without noise", "beside the noisy vector"),
        ("a value read", "read while the program is made"),
    ],
)
def test_mistakes_are_found_in_the_program_alone(mistake, finding):
    (found,) = set(recorder_of(PLANTED[mistake], 2).findings)
    assert finding in found


def test_noise_whose_scale_depends_on_records_is_not_added_noise():
    for mistake in ("records left out", "a branch"):
        recorder = recorder_of(PLANTED[mistake], 2)
        assert recorder.additions == 0
        assert recorder.label & recorded.RECORDS
    assert recorder.loops == ["a branch depends on records"]


def test_rounds_that_depend_on_records_are_counted():
    recorder = recorder_of(PLANTED["rounds"], 2)
    assert recorder.loops == ["a loop depends on records"]
    first, second = (recorder.run(KEY, jnp.asarray(records))[2][0] for records in PLANTED["rounds"].pairs["alike"])
    assert first == 0 < second


# What asks them -----------------------------------------------------------------------------------------


def only(name, monkeypatch):
    """The tables are of one mistake and one pair."""
    cell = next(cell for cell in cells.mistakes() if cell.name == name)
    monkeypatch.setattr(auditors, "compared", list)
    monkeypatch.setattr(auditors, "cells", list)
    monkeypatch.setattr(auditors, "mistakes", lambda: [cell._replace(pairs={"edge": cell.pairs["edge"]})])


@pytest.mark.exhaustive
def test_the_tables_have_all_mechanisms_and_mistakes():
    names = {cell.name for cell in cells.cells()}
    assert set(MECHANISMS) <= names
    assert {"tangent, with a shape", "adaptive (mu)", "describe (epsilon)", "search (mu)", "JointGaussian"} <= names
    assert set(PLANTED) < {cell.name for cell in cells.mistakes()}


def test_the_status_says_whether_all_mistakes_are_found(monkeypatch, capsys):
    only("half the noise", monkeypatch)
    absent = [auditor.name for auditor in outside.OF_DRAWS]
    asked = ["--draws", "4000", "--only", "half the noise", "--without", "dp-recorder", *absent]
    assert auditors.main(asked) == 0
    assert "mistakes that nobody found: none" in capsys.readouterr().out
    # Who sees nothing is not taken for one who finds nothing to see.
    monkeypatch.setattr(auditors, "ours", lambda *_: outside.Found(0.0, 1.0, False))
    monkeypatch.setattr(auditors, "noise_recorder", lambda *_: (None, "no", []))
    assert auditors.main(asked) == 1
    assert "mistakes that nobody found: half the noise" in capsys.readouterr().out


def test_a_loop_that_a_right_sampler_has_finds_no_mistake(monkeypatch, capsys):
    """Laplace's law draws by rejection: that its time depends on records is no sign of a scale that is too small."""
    only("half the scale of a density", monkeypatch)
    absent = [auditor.name for auditor in outside.OF_DRAWS]
    asked = ["--draws", "2000", "--only", "half the scale of a density", "--without", "dp-recorder", *absent]
    assert auditors.main(asked) == 0
    assert "a loop depends on records" in capsys.readouterr().out
    monkeypatch.setattr(auditors, "ours", lambda *_: outside.Found(0.0, 1.0, False))
    monkeypatch.setattr(auditors, "_losses", lambda *_: outside.Found(0.0, 1.0, False))
    assert auditors.main(asked) == 1
    assert "mistakes that nobody found: half the scale of a density" in capsys.readouterr().out


def test_several_additions_of_noise_use_a_budget_together():
    cell = next(cell for cell in cells.mistakes() if cell.name == "all of the budget twice")
    found, _, findings = auditors.noise_recorder(cell, [])
    assert not findings and found.value == pytest.approx(2.0, rel=0.03) and found.broken
    assert recorded.together([0.6, 0.8], "gaussian") == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["wrapped-gaussian", *exhaustive("gaussian")])
def test_noise_that_is_a_fifth_too_small_is_recorded(name):
    """Of a density that claims mu = 1, and of integers that claim rho = 1/2."""
    (cell,) = (cell for cell in cells.too_strong() if cell.name.startswith(name))
    pair = cell.pairs["edge"]
    samples = [] if cell.grid else [auditors.sampled(cell, 20_000, *pair)]
    found, _, _ = auditors.noise_recorder(cell._replace(pairs={"edge": pair}), samples)
    assert found.broken and 1.1 < found.value < 1.26


def test_a_threshold_minds_delta():
    """Of normal scores that are 1 apart: what is above it is far more than delta, and shows more."""
    rng = np.random.default_rng(0)
    first, second = rng.normal(0.5, size=20_000), rng.normal(-0.5, size=20_000)
    shown = {}
    for delta in (0.0, 0.05):
        at = outside.threshold_of(first, second, delta)
        shown[delta] = (np.mean(first >= at) - 0.05) / np.mean(second >= at)
    assert shown[0.05] > 1.5 * max(shown[0.0], 0.1)


def test_the_table_of_coinpress_has_a_row_for_each_size(monkeypatch, capsys):
    monkeypatch.setattr(published, "PRESSED", {200: published.PRESSED[3000]})
    published.covariances(10)
    assert capsys.readouterr().out.count("| 200 |") == 3


@pytest.mark.parametrize(
    "name", [("TangentLaplace, flat", "persons, groups, replace-one"), ("planted", "groups share persons")]
)
def test_options_together_use_what_is_promised_and_less_is_seen(name):
    (row,) = [row for row in options.releases() if (row.mechanism, row.options) == name]
    used = options.measured(row._replace(pairs=row.pairs[:2]))
    assert (used > row.promised) == row.planted and used > 0.5


def test_what_is_released_beside_the_noise_is_seen():
    mechanism = TangentLaplace(DISK, 1.0)

    def release(data):
        return SimpleNamespace(value=mechanism.release(data, numerics="grid").value + 1e-9 * data.mean())

    with pytest.raises(AssertionError, match="depends on records beside"):
        recorded.on_grid(release, *map(np.asarray, PAIR))


@pytest.mark.exhaustive
def test_all_options_together(capsys):
    options.main()
    assert capsys.readouterr().out.count("**") == 8  # of the four that are planted
