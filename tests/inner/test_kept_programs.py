"""A process that meets many numbers of records does not end for want of memory maps."""

import itertools
import pathlib
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgeodp import Euclidean, GeodesicBall, WrappedLaplace, kept_programs
from jaxgeodp.releases import release_groups

DISK = GeodesicBall(Euclidean(2), jnp.zeros(2), 1.0)


@pytest.fixture(autouse=True)
def what_is_known_of_others_is_as_it_was():
    before = kept_programs._Room.most
    yield
    kept_programs._Room.most = before


@pytest.mark.parametrize("call", ["release", "simulate"])
@pytest.mark.parametrize(("limit", "forgets"), [("100", True), ("1000000000", False)])
def test_programs_are_forgotten_where_there_are_many(monkeypatch, tmp_path, call, limit, forgets):
    (tmp_path / "limit").write_text(limit)
    (tmp_path / "maps").write_text("a map\n" * 60)
    monkeypatch.setattr(kept_programs, "_LIMIT", tmp_path / "limit")
    monkeypatch.setattr(kept_programs, "_MAPS", tmp_path / "maps")
    monkeypatch.setattr(kept_programs._Room, "most", 0)
    cleared = []
    monkeypatch.setattr(jax, "clear_caches", lambda: cleared.append(call))
    mechanism, records = WrappedLaplace(DISK, 1.0), jnp.zeros((9, 2))
    for _ in range(2 * kept_programs._EVERY):
        mechanism.release(records) if call == "release" else mechanism.simulate(jax.random.key(0), records, 1)
    assert len(cleared) == (1 if forgets else 0)  # as it did not help, there is no second time
    jax.eval_shape(lambda key: mechanism.simulate(key, records, 1), jax.random.key(0))  # not in a program


def test_each_group_counts(monkeypatch):
    monkeypatch.setattr(kept_programs, "_calls", calls := itertools.count())
    groups = np.repeat(["a", "b", "c"], 5)
    release_groups(WrappedLaplace(DISK, 1.0), np.zeros((15, 2)), groups, ["a", "b", "c"])
    assert next(calls) == 3


def test_programs_are_forgotten_at_any_time(monkeypatch, tmp_path):
    """Really, before each call: in threads, and while a caller's program is traced."""
    monkeypatch.setattr(kept_programs, "_EVERY", 1)
    (tmp_path / "limit").write_text("0")
    monkeypatch.setattr(kept_programs, "_LIMIT", tmp_path / "limit")
    mechanism, records = WrappedLaplace(DISK, 1.0), np.zeros((9, 2))
    with ThreadPoolExecutor(4) as pool:
        for released in pool.map(lambda _: mechanism.release(records), range(8)):
            assert np.all(np.isfinite(released.value))

    def around(x):
        kept_programs._Room.most = 0
        return x + mechanism.simulate(jax.random.key(0), records, 3)

    np.testing.assert_allclose(jax.jit(around)(jnp.ones(2)), around(jnp.ones(2)), rtol=1e-12)


@pytest.mark.parametrize(("maps", "forgets"), [("none", False), ("maps", True)])
def test_elsewhere_than_on_linux_nothing_is_done(monkeypatch, tmp_path, maps, forgets):
    (tmp_path / "maps").write_text("a map\n")
    (tmp_path / "limit").write_text("0")
    monkeypatch.setattr(kept_programs, "_MAPS", tmp_path / maps)
    monkeypatch.setattr(kept_programs, "_LIMIT", tmp_path / "limit")
    monkeypatch.setattr(kept_programs._Room, "most", 0)
    cleared = []
    monkeypatch.setattr(jax, "clear_caches", lambda: cleared.append(maps))
    for _ in range(2 * kept_programs._EVERY):
        kept_programs.forget_programs_if_many()
    assert bool(cleared) == forgets


@pytest.mark.exhaustive
@pytest.mark.skipif(not pathlib.Path("/proc/sys/vm/max_map_count").exists(), reason="no limit of memory maps")
@pytest.mark.parametrize(("every", "ends_well"), [("8", True), ("10**9", False)])
def test_a_process_with_little_room_makes_releases_of_many_numbers_of_records(every, ends_well):
    """Most maps are taken before; where nothing is forgotten, the process must end by a signal."""
    program = f"""
        import itertools, mmap
        import numpy as np
        from jaxgeodp import GeodesicBall, LaplaceMechanism, Sphere, kept_programs

        kept_programs._EVERY = {every}
        kept_programs._calls = itertools.count(1)
        most = int(kept_programs._LIMIT.read_text())
        kinds = (mmap.PROT_READ, mmap.PROT_READ | mmap.PROT_WRITE)  # neighbours of one kind would be one map
        taken = [mmap.mmap(-1, 4096, prot=kinds[k % 2]) for k in range(most - 7000)]
        sphere = Sphere(2)
        mechanism = LaplaceMechanism(GeodesicBall(sphere, sphere.origin, 0.3), 1.0)
        for n in range(20, 70):
            mechanism.release(np.tile(sphere.origin, (n, 1)))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, timeout=900)
    assert (done.returncode == 0) == ends_well and done.returncode <= 0, done.stderr
