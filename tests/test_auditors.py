"""The recorder of noise: what it says of mechanisms, and of planted mistakes (benchmarks/auditors.py has all)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import recorded
from planted import DISK, N, planted

from jaxgeodp import KNGMechanism, TangentLaplace
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
    assert recorded.on_grid(mechanism, data, neighbour) == pytest.approx(0.5**0.5, rel=1e-6)
    assert recorded.on_grid(mechanism, data, data) == 0.0


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
