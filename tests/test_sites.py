"""Sites that mask their sums: what all together give, what fewer show, keys that serve once; the commands."""

import concurrent.futures
import dataclasses
import errno
import hmac
import json
import os
import sys

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

from jaxgeodp import Euclidean, GeodesicBall, TangentLaplace
from jaxgeodp.cli import app
from jaxgeodp.cli.record_words import record_lines
from jaxgeodp.pictures.page import page_of
from jaxgeodp.privacy.chacha20 import chacha20_blocks
from jaxgeodp.releases import merged
from jaxgeodp.sites import MaskedState, PublicSite, SiteKey, combined, masked, session_of
from jaxgeodp.sites.keys import use_up

masking = sys.modules[masked.__module__]  # the function has the name of its module
BALL = GeodesicBall(Euclidean(3), np.zeros(3), 1.0)
MECHANISM = TangentLaplace(BALL, 1.0)
DATA = np.random.default_rng(0).normal(size=(60, 3)) / 3.0
NAMES = ("north", "east", "south")


def session(keys, parts):
    public = [key.public for key in keys]
    states = [MECHANISM.prepare(part) for part in parts]
    return states, [masked(state, key, public) for state, key in zip(states, keys, strict=True)]


def test_all_together_give_the_sum_of_all():
    for count in (2, 3, 7):
        keys = [SiteKey.new(f"site-{place}") for place in range(count)]
        states, hidden = session(keys, np.array_split(DATA, count))
        together = combined(hidden[::-1])
        np.testing.assert_array_equal(together.sums, merged(states).sums)
        assert together.n == 60 and MECHANISM.finish(together).record["n"] == 60


# Places of 53 of the 256 bits of a number, which cover all of them.
_PLACES = (203, 152, 101, 50, 0)


def levels_of_masked_numbers():
    """P-values of uniform bits: of numbers of single sites and pairs, and of differences within a state."""
    seen = {"alone": [], "of a pair": [], "within a state": []}
    for seed in range(60):
        keys = [SiteKey.new(name) for name in NAMES]
        data = np.random.default_rng(seed % 2).normal(size=(60, 3)) / 3.0
        _, hidden = session(keys, np.array_split(data, 3))
        numbers = np.array([state.numbers for state in hidden], object)
        seen["alone"] += [*numbers.ravel()]
        seen["of a pair"] += [*(numbers[0] + numbers[1]), *(numbers[1] - numbers[2])]
        seen["within a state"] += [*(numbers[:, 1:] - numbers[:, :-1]).ravel()]
    return {
        (name, place): stats.kstest([float(own >> place & (2**53 - 1)) / 2.0**53 for own in some], "uniform").pvalue
        for name, some in seen.items()
        for place in _PLACES
    }


def test_fewer_than_all_show_uniform_numbers():
    """All bits of them, whatever the records are."""
    assert min(levels_of_masked_numbers().values()) > 1e-7


@pytest.mark.parametrize("mistake", ["no mask", "low bits", "one for all"])
def test_masks_that_hide_too_little_are_caught(mistake, monkeypatch):
    genuine = masking.mask_of

    def poor(secret, session, pair, count):
        numbers = genuine(secret, session, pair, count)
        return {
            "no mask": [0] * count,
            "low bits": [number >> 200 << 200 for number in numbers],
            "one for all": numbers[:1] * count,
        }[mistake]

    monkeypatch.setattr(masking, "mask_of", poor)
    assert min(levels_of_masked_numbers().values()) < 1e-7


def test_masks_are_those_of_the_standards():
    """HKDF (RFC 5869) by the standard library, and ChaCha20 (RFC 8439) by the one of this package."""
    secret, name, pair, count = bytes(range(32)), "ab" * 32, ["east", "north"], 5
    about = json.dumps(["jaxgeodp sites 1", name, *pair]).encode()
    extracted = hmac.digest(bytes(32), secret, "sha256")
    key = np.frombuffer(hmac.digest(extracted, about + b"\x01", "sha256"), "<u4")
    blocks = chacha20_blocks(jnp.asarray(key), jnp.arange(3, dtype=jnp.uint32), jnp.zeros(3, jnp.uint32))
    stream = np.asarray(blocks).astype("<u4").tobytes()
    numbers = [int.from_bytes(stream[32 * place : 32 * place + 32], "little") for place in range(count)]
    assert masking.mask_of(secret, name, pair, count) == numbers


def test_a_site_that_is_missing_or_different_is_seen():
    keys = [SiteKey.new(name) for name in NAMES]
    public, parts = [key.public for key in keys], np.array_split(DATA, 3)
    states, hidden = session(keys, parts)
    stranger = SiteKey.new("south")
    other = masked(states[2], stranger, [*public[:2], stranger.public])
    damaged = dataclasses.replace(hidden[2], numbers=(hidden[2].numbers[0] ^ (1 << 100), *hidden[2].numbers[1:]))
    nearly = dataclasses.replace(
        hidden[2], numbers=(*hidden[2].numbers[:2], hidden[2].numbers[2] ^ 1, *hidden[2].numbers[3:])
    )
    lied = dataclasses.replace(other, session=hidden[0].session)
    for wrong, words in (
        (hidden[:2], "the masked state of south is missing"),
        ([*hidden, hidden[0]], "once"),
        ([*hidden[:2], other], "different sessions"),
        ([*hidden[:2], damaged], "do not fit together"),
        ([*hidden[:2], nearly], "do not fit together"),
        ([*hidden[:2], lied], "do not fit together"),
        ([], "no masked state"),
    ):
        with pytest.raises(ValueError, match=words):
            combined(wrong)
    with pytest.raises(ValueError, match="not in the list"):
        masked(states[0], keys[0], public[1:])
    with pytest.raises(ValueError, match="at least two"):
        masked(states[0], keys[0], public[:1])
    with pytest.raises(ValueError, match="exactly once, with its own key"):
        masked(states[0], keys[0], [*public, public[0]])
    with pytest.raises(ValueError, match="not usable"):
        masked(states[0], keys[0], [public[0], PublicSite("evil", "0" * 64)])
    with pytest.raises(ValueError, match="name must be"):
        SiteKey.new("../x")
    with pytest.raises(ValueError, match="too large"):
        masked(dataclasses.replace(states[0], sums=states[0].sums * 2**200), keys[0], public)
    with pytest.raises(ValueError, match="has masked another state"):
        masked(MECHANISM.prepare(parts[1]), keys[0], public)
    wider = TangentLaplace(BALL, 2.0).prepare(parts[0])
    assert session_of(states[0], public) == session_of(states[1], public[::-1]) != session_of(wider, public)


def test_masks_are_others_in_another_session():
    """One key, two sessions: the difference of the masked numbers is not that of the sums."""
    keys = [SiteKey.new(name) for name in NAMES]
    public, state = [key.public for key in keys], MECHANISM.prepare(DATA)
    first, second = masked(state, keys[0], public), masked(state, keys[0], public, {"release": 2})
    assert all(a != b for a, b in zip(first.numbers, second.numbers, strict=True))


def test_a_key_serves_once_whoever_asks(tmp_path):
    """Eight at once: one gets it. A link to it is refused, and what was its file holds no secret."""
    key = SiteKey.new("north")
    key.save(tmp_path / "north.key")
    (tmp_path / "link.key").symlink_to(tmp_path / "north.key")
    with pytest.raises(ValueError, match="not a symbolic or hard link"):
        use_up(tmp_path / "link.key")
    (tmp_path / "link.key").unlink()
    os.link(tmp_path / "north.key", tmp_path / "other.key")
    with pytest.raises(ValueError, match="not a symbolic or hard link"):
        use_up(tmp_path / "north.key")
    (tmp_path / "other.key").unlink()

    def attempt(_):
        try:
            return use_up(tmp_path / "north.key").secret
        except (ValueError, OSError):
            return None

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        got = list(pool.map(attempt, range(8)))
    assert [own for own in got if own] == [key.secret]
    assert not any(key.secret in path.read_text() for path in tmp_path.iterdir())
    with pytest.raises(ValueError, match="used"):
        use_up(tmp_path / "north.key")


def test_persons_are_those_of_one_site():
    keys = [SiteKey.new(name) for name in NAMES]
    public, parts = [key.public for key in keys], np.array_split(DATA, 3)
    states = [MECHANISM.prepare(part, persons=np.arange(20) // 2) for part in parts]
    record = MECHANISM.finish(
        combined([masked(state, key, public) for state, key in zip(states, keys, strict=True)])
    ).record
    assert record["guarantee"]["adjacency"] == "replace-one (all of a person at one site)" and record["n"] == 30
    assert record["unit"] == "person at one site"
    told, page = " ".join(record_lines(record)), page_of(record, "0" * 64)
    assert "n = 30 persons, each at one site" in told and "knows all else, also what other sites have of" in told
    assert "other persons" not in told + page and "one person at one site is replaced by another" in page
    alone = record | {"unit": "person"}
    assert "knows all other persons, for whom" in " ".join(record_lines(alone))


def command(*words):
    return CliRunner().invoke(app, ["site", *map(str, words)])


def test_from_files_to_a_release(tmp_path):
    for name, part in zip(NAMES, np.array_split(DATA, 3), strict=True):
        np.save(tmp_path / f"{name}.npy", part)
        assert command("key", name, "--out", tmp_path).exit_code == 0
        assert (tmp_path / f"{name}.key").stat().st_mode & 0o777 == 0o600
    everyone = ",".join(str(tmp_path / f"{name}.pub") for name in NAMES)

    def prepare(name, *more):
        options = ("--manifold", "euclidean", "--radius", 1, "--epsilon", 1, "--sites", everyone, *more)
        data, key, out = (tmp_path / f"{name}.{suffix}" for suffix in ("npy", "key", "masked"))
        return command("prepare", data, "--key", key, "--out", out, *options)

    bad = prepare("north", "--mechanism", "auto")
    assert bad.exit_code == 2 and "the same at all sites" in bad.output
    sessions = {prepare(name).output.split("Session")[1].split(":")[0] for name in NAMES}
    assert len(sessions) == 1
    again = prepare("north", "--overwrite")
    assert again.exit_code == 2 and "has masked a state" in " ".join(again.output.split())
    assert command("key", "north", "--out", tmp_path).exit_code == 2
    states = [tmp_path / f"{name}.masked" for name in NAMES]
    few = command("combine", *states[:2], "--out", tmp_path / "release.json")
    assert few.exit_code == 2 and "the masked state of south is missing" in " ".join(few.output.split())
    assert not (tmp_path / "release.json").exists()
    done = command("combine", *states, "--out", tmp_path / "release.json")
    assert done.exit_code == 0, done.output
    record = json.loads((tmp_path / "release.json").read_text())
    assert (record["n"], record["sites"], record["mechanism"]) == (60, 3, "TangentLaplace")
    assert record["guarantee"]["epsilon"] == 1.0
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in states)
    text = json.loads(states[0].read_text())
    for change in (
        {"title": "x"},
        {"numbers": ["zz"]},
        {"numbers": []},
        {"shape": [-1]},
        {"more": 1},
        {"public": 3},
    ):
        states[0].write_text(json.dumps(text | change))
        with pytest.raises(ValueError, match="is not a masked state"):
            MaskedState.load(states[0])
    states[0].write_text(json.dumps(text | {"site": ["a"]}))
    with pytest.raises(ValueError, match="is not a masked state"):
        MaskedState.load(states[0])
    for change in ({"public": {}}, {"public": text["public"] | {"mechanism": "kng"}}):
        for path in states:
            path.write_text(json.dumps(json.loads(path.read_text()) | {"title": text["title"]} | text | change))
        assert command("combine", *states, "--out", tmp_path / "other.json").exit_code == 2


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("change", [{"unit": "person"}, {"record": (4,)}, {"public": {"strength": 9.0}}, {"keys": ()}])
def test_words_that_the_session_does_not_stand_for_are_refused(place, change):
    """In one state, and in all of them alike."""
    keys = [SiteKey.new(name) for name in NAMES]
    _, hidden = session(keys, np.array_split(DATA, 3))
    changed = [dataclasses.replace(state, **change) for state in hidden]
    one = [changed[own] if own == place else state for own, state in enumerate(hidden)]
    for states in (one, changed):
        with pytest.raises(ValueError, match="do not fit together"):
            combined(states)


def test_a_key_is_not_used_up_where_there_is_no_room(tmp_path, monkeypatch):
    for name in NAMES:
        command("key", name, "--out", tmp_path)
    again = command("key", "north", "--out", tmp_path)
    assert again.exit_code == 2 and "another folder" in again.output and "--overwrite" not in again.output
    np.save(tmp_path / "north.npy", DATA)
    monkeypatch.setattr("jaxgeodp.files.allocate", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
    everyone = ",".join(str(tmp_path / f"{name}.pub") for name in NAMES)
    options = ("--manifold", "euclidean", "--radius", 1, "--epsilon", 1, "--sites", everyone)
    files = (tmp_path / "north.npy", "--key", tmp_path / "north.key", "--out", tmp_path / "north.masked")
    assert command("prepare", *files, *options).exit_code != 0
    assert SiteKey.load(tmp_path / "north.key").name == "north"
    assert not (tmp_path / "north.masked").exists()


def test_a_ball_that_is_to_be_found_is_for_python(tmp_path):
    command = (
        "site prepare data.npy --manifold sphere --center auto --radius auto --epsilon 1 --key k --sites a,b --out o"
    )
    refused = CliRunner().invoke(app, command.split())
    assert refused.exit_code == 2 and "SearchInRounds" in " ".join(refused.output.split())
