"""Every option of a release with every other: docs/options.md says what each pair does, and each is tried."""

import inspect
import itertools
import pathlib

import numpy as np
import pytest

from jaxgeodp import Euclidean, GeodesicBall, LaplaceMechanism, LocatedMechanism, RecordBlocks, TangentLaplace
from jaxgeodp.checks import InputError
from jaxgeodp.inference import describe
from jaxgeodp.locating import SearchInRounds
from jaxgeodp.privacy import Ledger, PureDP, Release
from jaxgeodp.privacy.guarantee import KINDS
from jaxgeodp.releases.groups import release_groups
from jaxgeodp.sites import SiteKey, combined, masked
from jaxgeodp.sklearn import PrivateFrechetMean, PrivateNearestMean

PAGE = pathlib.Path(__file__).parent.parent / "docs" / "options.md"
PLANE = Euclidean(2)
BALL = GeodesicBall(PLANE, np.zeros(2), 1.0)
N = 1500
DATA = 0.2 * np.random.default_rng(5).normal(size=(N, 2))
LABELS = np.repeat(["a", "b"], N // 2)
#: What a pair of options is asked for with; those of a call that another option has taken the place of are not.
KEYWORDS = {
    "weights": {"weights": np.ones(N)},
    "persons": {"persons": np.arange(N) // 2},
    "add-remove": {"adjacency": "add-remove"},
    "delta": {"delta": 1e-6},
    "grid": {"numerics": "grid"},
}
#: Calls that take the place of `Mechanism.release`; the later of two is made, if it is made of the earlier one.
CALLS = ("groups", "states", "rounds", "sites", "sklearn", "describe")
MADE_OF = {
    frozenset(pair) for pair in (("states", "rounds"), ("states", "sites"), ("rounds", "sites"), ("groups", "sklearn"))
}


class NotOfferedError(Exception):
    """No call takes both."""


def _table():
    lines = PAGE.read_text().splitlines()
    rows = [line.strip().strip("|").split("|") for line in lines if line.startswith("|")]
    head, *body = [[cell.strip() for cell in row] for row in rows if not set("".join(row)) <= set("- ")]
    return {(row[0], name): cell for row in body for name, cell in zip(head[1:], row[1:], strict=True)}


TABLE = _table()
OPTIONS = list(dict.fromkeys(name for name, _ in TABLE))


def _given(function, keywords):
    if not keywords.keys() <= inspect.signature(function).parameters.keys():
        raise NotOfferedError
    return keywords


def _mechanism(options):
    if "located" in options or "rounds" in options:
        return LocatedMechanism(PLANE, "tangent", epsilon=8.0, domain=4.0)
    return (LaplaceMechanism if "delta" in options else TangentLaplace)(BALL, 1.0)


def _state_of(mechanism, options, keywords):
    if "sites" not in options:
        return mechanism.prepare(_data(options), **keywords)
    keys = [SiteKey.new(name) for name in ("one", "two")]
    public = [key.public for key in keys]
    parts = np.split(np.arange(N), [N // 3 * 2])
    states = [
        mechanism.prepare(_data(options, part), **{name: own[part] for name, own in keywords.items()}) for part in parts
    ]
    return combined([masked(state, key, public) for state, key in zip(states, keys, strict=True)])


def _data(options, part=slice(None)):
    return RecordBlocks(lambda: iter([DATA[part]]), DATA[part].shape) if "blocks" in options else DATA[part]


def _released(options, ledger) -> list[Release]:
    """What the options make together; the calls have the place of each other, in the order of `CALLS`."""
    called = [name for name in CALLS if name in options]
    if len(called) == 2 and frozenset(called) not in MADE_OF:
        raise NotOfferedError
    call = "sklearn" if "sklearn" in called else "rounds" if "rounds" in called else (called or [None])[0]
    keywords = {key: value for option in options for key, value in KEYWORDS.get(option, {}).items()}
    mechanism = _mechanism(options)
    if call is None:
        return [mechanism.release(_data(options), ledger, **_given(mechanism.release, keywords))]
    if call == "groups":
        given = _given(release_groups, keywords)
        return list(release_groups(mechanism, _data(options), LABELS, ["a", "b"], ledger, **given).values())
    if call == "rounds":
        search, releases = SearchInRounds(mechanism, n=N), []
        while search.now is not None:
            release = search.now.finish(_state_of(search.now, options, _given(search.now.prepare, keywords)), ledger)
            releases.append(release)
            search = search.after(release)
        return releases
    if call in ("states", "sites"):
        state = _state_of(mechanism, options, _given(mechanism.prepare, keywords))
        return [mechanism.finish(state, ledger)]
    if call == "describe":
        ball = {"domain": 4.0} if "located" in options else {"ball": BALL}
        found = describe(_data(options), PLANE, epsilon=8.0, ledger=ledger, **ball, **_given(describe, keywords))
        return list(found.releases.values())
    kind = PrivateNearestMean if "groups" in options else PrivateFrechetMean
    more = {"classes": ["a", "b"]} if "groups" in options else {}
    space = "sphere" if "located" in options else PLANE  # an estimator has no domain
    ball = {"mechanism": "tangent"} if "located" in options else {"radius": 1.0}
    made = {name: keywords.pop(name) for name in ("adjacency", "delta", "numerics") if name in keywords}
    estimator = kind(space, epsilon=8.0, ledger=ledger, **ball, **more, **_given(kind, made))
    data = _data(options)
    if "located" in options:
        data = np.column_stack([DATA, np.ones(N)]) / np.sqrt(1.0 + np.sum(DATA**2, axis=1, keepdims=True))
    fitted = estimator.fit(data, LABELS, **_given(estimator.fit, keywords))
    return list(fitted.releases_) if "groups" in options else [fitted.release_]


def test_the_table_is_whole_and_symmetric():
    assert len(OPTIONS) == 13
    for one, other in itertools.product(OPTIONS, OPTIONS):
        assert TABLE[one, other] == TABLE[other, one]


@pytest.mark.parametrize(("one", "other"), itertools.combinations_with_replacement(OPTIONS, 2))
def test_a_pair_does_what_the_table_says(one, other, tmp_path):
    ledger, options = Ledger(tmp_path / "budget.db", PureDP(1e3)), {one, other}
    if "delta" in options:
        from jaxgeodp.privacy import ApproximateDP

        ledger = Ledger(tmp_path / "approximate.db", ApproximateDP(1e3, 0.1))
    if "blocks" in options and not options & {"states", "sites", "rounds", "sklearn", "describe"}:
        options |= {"grid"}  # blocks are for integers
    says = TABLE[one, other]
    try:
        releases = _released(options, ledger)
    except NotOfferedError:
        assert says == "–"
    except InputError as refusal:
        assert says == "refused", refusal
        assert 20 < len(str(refusal)) < 500
        assert ledger.account().releases == 0
    else:
        assert says not in ("–", "refused")
        text = PAGE.read_text()
        for theorem in says.split(" + "):
            assert f"**{theorem}**" in text, "each letter is explained"
        for release in releases:
            assert release.record["guarantee"]["kind"] in KINDS
            assert release.record["guarantee"]["theorem"]
            assert np.all(np.isfinite(release.value))
        assert ledger.account().releases >= 1
