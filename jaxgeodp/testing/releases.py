"""Laws of releases: two outcomes, records that tell nothing but the value, charges, and the law that was simulated."""

import dataclasses
import json
import math
import pathlib
import tempfile
import warnings
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.privacy import Ledger, NotProven, PureDP
from jaxgeodp.statistics import Statistic
from jaxgeodp.testing.records import hostile_records, ordinary_records

_COUNTS = (5, 20, 80, 320, 1280, 4096)
_RELEASES = 400
_DRAWS = 20_000
# Of a false alarm of `releases_follow_simulation`, the one law whose randomness nobody can fix.
_LEVEL = 1e-7
_KEYS = (
    *("value", "guarantee", "mechanism", "statistic", "manifold", "ball", "n", "sensitivity", "scale", "support"),
    *("sampler", "numerics", "library", "created"),
)
# Of a record, what is drawn: the value, and what stages before it have released with noise; and the time.
_DRAWN = ("value", "steps", "created")


def statistic_of(mechanism):
    """Return the statistic that says what records are; None where they are points of the manifold."""
    match mechanism:
        case object(summarised=Statistic() as statistic):
            return statistic
    return None


def enough(mechanism) -> int:
    """Return the fewest records of a few numbers for which a mechanism exists and can be drawn from.

    Raises:
        ValueError: there are none; the refusal of the largest number.
    """
    for n in _COUNTS[:-1]:
        try:
            _try(mechanism, n)
            return n
        except ValueError:
            continue
    _try(mechanism, _COUNTS[-1])
    return _COUNTS[-1]


# Laws ---------------------------------------------------------------------------------------------------


def two_outcomes(mechanism):
    """Whatever a record is, a release is made: no exception, warning or public entry tells of it."""
    statistic, ball, n = statistic_of(mechanism), mechanism.ball, enough(mechanism)
    quiet = ordinary_records(statistic, ball, n)
    expected = _outcome(mechanism, quiet)
    assert expected.startswith("released"), f"ordinary records are refused: {expected}"
    records = hostile_records(statistic, ball)
    hostile = np.stack([*quiet[2:], records["all nan"]])
    for beside, rest in (("ordinary records", quiet[1:]), ("one that is none", hostile)):
        for name, record in records.items():
            found = _outcome(mechanism, np.stack([record, *rest]))
            assert found == expected, f"a record {name} beside {beside} shows: {found}; without it: {expected}"


def release_record(mechanism):
    """Check that the record is JSON, says the public numbers, holds the value, and tells nothing else of the data."""
    statistic, ball, n = statistic_of(mechanism), mechanism.ball, enough(mechanism)
    releases = [mechanism.release(ordinary_records(statistic, ball, n, seed)) for seed in (0, 1)]
    for release in releases:
        record = _from_json(release)
        missing = [key for key in _KEYS if key not in record]
        assert not missing, f"the record lacks {', '.join(missing)}"
        value = np.asarray(record["value"])
        own = np.asarray(release.value)
        own = np.stack([np.real(own), np.imag(own)], axis=-1) if np.iscomplexobj(own) else own
        assert np.array_equal(value, own), "the record holds another value than the release"
        assert bool(np.all(np.isfinite(own))), "the value is not finite"
        assert record["n"] == n, f"the record says n = {record['n']}, not {n}"
        assert record["scale"] == mechanism.scale(n), "the record says another scale"
        assert record["sensitivity"]["value"] == mechanism.sensitivity(n), "the record says another sensitivity"
        promised = dataclasses.asdict(mechanism.guarantee)
        assert promised.items() <= record["guarantee"].items(), "the record says another guarantee"
    public = [_public(release.record) for release in releases]
    different = [key for key in public[0] if public[0][key] != public[1].get(key)]
    assert not different, f"the record's {', '.join(different)} depends on the data"
    assert not np.array_equal(releases[0].value, releases[1].value), "two releases have the same value"


def charges(mechanism):
    """Check that a release charges its guarantee once; a call that is refused charges nothing."""
    guarantee, n = mechanism.guarantee, enough(mechanism)
    data = ordinary_records(statistic_of(mechanism), mechanism.ball, n)
    with tempfile.TemporaryDirectory() as folder:
        proven = not isinstance(guarantee, NotProven)
        ledger = Ledger(pathlib.Path(folder) / "budget.db", guarantee if proven else PureDP(1.0))

        def refuses(call) -> bool:
            before = ledger.account().releases
            try:
                call()
            except ValueError:
                assert ledger.account().releases == before, "a call that was refused is charged"
                return True
            return False

        assert refuses(lambda: mechanism.release(data[:1], ledger)), "a single record is not refused"
        assert refuses(lambda: mechanism.release(data[..., None], ledger)), "records of another shape are not refused"
        assert refuses(lambda: mechanism.release(data.astype(str), ledger)), "records that are texts are not refused"
        if not proven:
            assert refuses(lambda: mechanism.release(data, ledger)), "a ledger takes what is not proven"
            return
        mechanism.release(data, ledger)
        account = ledger.account()
        assert (account.releases, account.lost) == (1, 0), f"one release is charged {account.releases} times"
        # The budget was for one.
        assert refuses(lambda: mechanism.release(data, ledger)), "a release is charged less than its guarantee"


def releases_follow_simulation(mechanism):
    """Releases have the law of simulate: Kolmogorov's distance of 400 of them from 20,000 draws.

    The system's entropy cannot be fixed: this law fails with a probability of 1e-7 where nothing is wrong.
    """
    n = enough(mechanism)
    data = ordinary_records(statistic_of(mechanism), mechanism.ball, n)
    values = np.stack([np.asarray(mechanism.release(data).value) for _ in range(_RELEASES)])
    with jax.enable_x64(True):
        draws = np.asarray(mechanism.simulate(jax.random.key(5), jnp.asarray(data), _DRAWS))
    values, draws = (_rows(array) for array in (values, draws))
    middle, axis = np.median(draws, axis=0), np.argmax(np.std(draws, axis=0))
    # Both empirical laws, for either score (Dvoretzky, Kiefer & Wolfowitz, with Massart's constant).
    most = sum(math.sqrt(math.log(8.0 / _LEVEL) / (2.0 * count)) for count in (_RELEASES, _DRAWS))
    for name, score in (
        ("distance from the middle", lambda rows: np.linalg.norm(rows - middle, axis=1)),
        ("largest coordinate", lambda rows: rows[:, axis]),
    ):
        found = kolmogorov_distance(score(values), score(draws))
        assert found <= most, (
            f"releases and draws differ in their {name}: {found:.3f} apart, at most {most:.3f} by chance"
        )


RELEASE_LAWS: dict[str, Callable] = {
    law.__name__: law for law in (two_outcomes, release_record, charges, releases_follow_simulation)
}


def kolmogorov_distance(first, second) -> float:
    """Return the largest difference of two empirical distribution functions."""
    both = np.sort(np.concatenate([first, second]))
    shares = [np.searchsorted(np.sort(sample), both, side="right") / len(sample) for sample in (first, second)]
    return float(np.max(np.abs(shares[0] - shares[1])))


def _try(mechanism, n):
    with jax.enable_x64(True):
        mechanism.scale(n)
        data = jnp.asarray(ordinary_records(statistic_of(mechanism), mechanism.ball, n))
        jax.eval_shape(lambda key: mechanism.simulate(key, data, 2), jax.random.key(0))


def _outcome(mechanism, data) -> str:
    """Return what everybody can see of a release but its value."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            release = mechanism.release(data)
        except Exception as error:  # whatever it is, it tells
            return f"{type(error).__name__}: {error}"
    value = np.asarray(release.value)
    public = _public(release.record)
    finite = "a finite value" if np.all(np.isfinite(value)) else "a value that is not finite"
    heard = ", ".join(str(warning.message) for warning in caught) or "no warning"
    return f"released {finite} of shape {value.shape} and type {value.dtype}, {heard}, {public}"


def _public(record) -> dict:
    return {key: entry for key, entry in record.items() if key not in _DRAWN}


def _from_json(release) -> dict:
    try:
        return json.loads(release.to_json())
    except (TypeError, ValueError) as error:
        raise AssertionError(f"the record is no JSON: {error}") from error


def _rows(array):
    flat = array.reshape(len(array), -1)
    return np.concatenate([flat.real, flat.imag], axis=1) if np.iscomplexobj(flat) else flat
