"""Traced programs are kept by what they are made of: found again, never in place of another, and without a value."""

import dataclasses
import functools
import hashlib
import math
import os
import pathlib
import shutil
import subprocess
import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from strategies import exhaustive

import jaxgeodp
from jaxgeodp import Euclidean, GeodesicBall, LaplaceMechanism, Sphere, TangentLaplace, release_groups, traced_programs
from jaxgeodp.compiling import COMPILED_SOON, called, compiled_ahead
from jaxgeodp.manifolds.analytic import cos_sqrt
from jaxgeodp.mechanisms import plan_mechanisms
from jaxgeodp.privacy.entropy import public_key, system_key
from jaxgeodp.traced_programs import LEAST_SECONDS, keep_in, keeping_none

BALL = GeodesicBall(Sphere(2), [0.0, 0.0, 1.0], 0.5)
PLANE = GeodesicBall(Euclidean(2), [0.0, 0.0], 0.5)
VALUE = 0.7310585786300049


@pytest.fixture
def folder(tmp_path):
    keep_in(tmp_path)
    yield tmp_path
    keep_in(None)


@pytest.fixture
def planted(monkeypatch):
    """A module of the package, whose functions count how often they are traced."""
    module, traced = types.ModuleType("jaxgeodp.planted"), []
    monkeypatch.setitem(sys.modules, module.__name__, module)

    def plant(name, function, **options):
        @functools.wraps(function)
        def counted(*arguments, **static):
            traced.append(name)
            return function(*arguments, **static)

        del counted.__wrapped__
        counted.__module__, counted.__qualname__ = module.__name__, name
        setattr(module, name, jax.jit(counted, **options))
        return getattr(module, name)

    return traced, plant


def scaled(x, factor=2.0):
    return {"sum": jnp.sum(x * factor), "all": (x * factor, None)}


def files(folder):
    return sorted(path for path in folder.iterdir() if path.is_file())


def elsewhere(folder):
    """As another process would find it."""
    other = folder / "again"
    other.mkdir()
    for path in files(folder):
        shutil.copy(path, other)
    keep_in(other)
    return other


def test_another_process_finds_what_was_traced(folder, planted):
    traced, plant = planted
    function = plant("scaled", scaled, static_argnames="factor")
    x = jnp.arange(3.0)
    first = called(function, x, options=COMPILED_SOON, factor=3.0)
    assert len(files(folder)) == 1 and traced == ["scaled"]
    again = elsewhere(folder)
    second = called(function, x, options=COMPILED_SOON, factor=3.0)
    assert traced == ["scaled"] and len(files(again)) == 1  # not traced
    jax.tree.map(np.testing.assert_array_equal, first, scaled(x, 3.0))
    jax.tree.map(np.testing.assert_array_equal, first, second)


def test_a_program_stands_for_its_shapes_types_and_static_arguments_only(folder, planted):
    _, plant = planted
    function = plant("scaled", scaled, static_argnames="factor")
    calls = [
        (jnp.ones(3), 2.0),
        (jnp.ones(4), 2.0),
        (jnp.ones(3, jnp.float32), 2.0),
        (jnp.ones(3), 5.0),
        (1.0, 2.0),  # a weak type
        (jnp.ones(()), 2.0),
    ]
    for count, (x, factor) in enumerate(calls, 1):
        found = called(function, x, options=None, factor=factor)
        np.testing.assert_allclose(found["sum"], np.sum(np.asarray(x)) * factor, rtol=1e-6)
        assert len(files(folder)) == count
        called(function, 7 * x, options=None, factor=factor)  # another value
        assert len(files(folder)) == count
    other = plant("other", lambda x, factor=2.0: {"sum": jnp.sum(x) - factor}, static_argnames="factor")
    assert called(other, jnp.ones(3), options=None, factor=2.0)["sum"] == 1.0


def test_settings_of_jax_are_part_of_a_program(folder, planted):
    _, plant = planted
    function = plant("product", lambda x: x @ x)
    x = jnp.ones((2, 2), jnp.float32)
    called(function, x, options=None)
    with jax.default_matmul_precision("highest"):
        called(function, x, options=None)
    assert len(files(folder)) == 2
    with jax.enable_x64(False):
        called(function, x, options=None)
    assert len(files(folder)) == 3


def test_what_a_file_lacks_is_traced_again(folder, planted):
    traced, plant = planted
    function = plant("scaled", scaled, static_argnames="factor")
    x = jnp.arange(3.0)
    called(function, x, options=None)
    (path,) = files(folder)
    whole = path.read_bytes()
    called(function, x, options=None, factor=3.0)
    (foreign,) = set(files(folder)) - {path}
    traced.pop()
    damages = b"", whole[: len(whole) // 2], whole[:-1] + bytes([whole[-1] ^ 1]), foreign.read_bytes()
    for number, damaged in enumerate(damages):
        path.write_bytes(damaged)
        other = folder / str(number)
        other.mkdir()
        shutil.copy(path, other)
        keep_in(other)
        np.testing.assert_array_equal(called(function, x, options=None)["sum"], 6.0)
        assert traced == ["scaled"] * (number + 2)
        elsewhere(other)
        called(function, x, options=None)
        assert traced == ["scaled"] * (number + 2)  # it is whole again


@dataclasses.dataclass(frozen=True)
class OfAUser:
    factor: float = 2.0


def of_a_user(x):
    return 2.0 * x


@pytest.mark.parametrize(
    "static",
    [OfAUser(), of_a_user, lambda x: 2.0 * x, (1, OfAUser())],
    ids=["object", "function", "lambda", "tuple"],
)
def test_what_a_user_may_change_is_not_kept(folder, planted, static):
    _, plant = planted
    function = plant("with_static", lambda x, static: jnp.sum(x), static_argnames="static")
    assert called(function, jnp.ones(3), options=None, static=static) == 3.0
    assert files(folder) == []
    # A function of the package can be named.
    assert called(function, jnp.ones(3), options=None, static=jaxgeodp.frechet_mean) == 3.0
    assert len(files(folder)) == 1


def test_functions_that_cannot_be_named_are_not_kept(folder):
    assert called(jax.jit(of_a_user), 1.0, options=None) == 2.0  # of another package
    assert called(jax.jit(lambda x: 3.0 * x), 1.0, options=None) == 3.0
    assert files(folder) == []


def test_arguments_that_hold_a_function_of_a_user_are_not_kept(folder, planted):
    _, plant = planted
    function = plant("applied", lambda held, x: held(x))
    assert called(function, jax.tree_util.Partial(of_a_user), 1.0, options=None) == 2.0
    assert files(folder) == []
    assert called(function, jax.tree_util.Partial(cos_sqrt), 0.0, options=None) == 1.0
    assert len(files(folder)) == 1


def test_keys_are_arguments_and_are_not_kept_as_results(folder, planted):
    _, plant = planted
    draw = plant("draw", lambda key: jax.random.uniform(key, (2,)))
    program = compiled_ahead("test", draw, public_key())
    key = system_key()
    np.testing.assert_array_equal(program(key), jax.random.uniform(key, (2,)))
    assert len(files(folder)) == 1
    split = plant("split", lambda key: jax.random.split(key)[0])
    assert jnp.issubdtype(called(split, public_key(), options=None).dtype, jax.dtypes.prng_key)
    assert len(files(folder)) == 1


def test_tracers_and_private_shapes_are_left_alone(folder, planted):
    _, plant = planted
    function = plant("scaled", scaled, static_argnames="factor")
    np.testing.assert_array_equal(
        jax.vmap(lambda x: called(function, x, options=None)["sum"])(jnp.ones((2, 3))), [6.0, 6.0]
    )
    with keeping_none():
        called(function, jnp.ones(3), options=None)
    assert files(folder) == []
    called(function, jnp.ones(3), options=None)
    assert len(files(folder)) == 1


class ByName:
    """Pickled as the name of a variable, whatever that holds."""

    def __reduce__(self):
        return "BY_NAME"


BY_NAME = ByName()


def test_what_is_pickled_by_its_name_is_asked_for_its_class(folder, planted):
    _, plant = planted
    function = plant("named", lambda x, thing: x + 1.0, static_argnames="thing")
    np.testing.assert_array_equal(called(function, jnp.ones(3), options=None, thing=BY_NAME), 2.0)
    assert files(folder) == []


def test_the_setting_of_jax_comes_back_whoever_leaves_last():
    """As threads do, which leave in another order than they came."""
    setting = jax.config.values[LEAST_SECONDS]
    first, second = keeping_none(), keeping_none()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert jax.config.values[LEAST_SECONDS] == math.inf != setting
    second.__exit__(None, None, None)
    assert jax.config.values[LEAST_SECONDS] == setting


def test_no_name_depends_on_a_private_number_of_records(folder):
    """Of how many persons, and of how many records they have, nothing is kept.

    What a release takes its number of places for is a shape, and part of the release: with so little noise the least.
    """
    mechanism, kept = TangentLaplace(PLANE, 100.0), []
    for n, persons in ((40, 20), (55, 23)):
        own = folder / str(n)
        own.mkdir()
        keep_in(own)
        records = PLANE.clip(np.random.default_rng(0).normal(size=(n, 2)))
        whose = np.arange(n) % persons
        one = mechanism.release(records, persons=whose, adjacency="add-remove")
        groups = release_groups(mechanism, records, whose % 2, [0, 1], persons=whose)
        assert max(release.record["n"] for release in (one, *groups.values())) <= 64
        kept.append({path.name for path in files(own)})
    assert kept[0] == kept[1] != set()
    mechanism.release(records, persons=whose)  # where they are public, more is kept
    assert {path.name for path in files(own)} > kept[1]


def test_numbers_of_numpy_and_of_python_have_programs_of_their_own(folder, planted):
    """JAX takes the former for strong types, and NumPy for instances of the latter."""
    _, plant = planted
    function = plant("times", lambda x, factor: x * factor)
    x = jnp.ones(3, jnp.float32)
    kinds = [called(function, x, factor, options=None).dtype for factor in (2.0, np.float64(2.0))]
    assert kinds == [function(x, 2.0).dtype, function(x, np.float64(2.0)).dtype] == [jnp.float32, jnp.float64]


def test_functions_of_others_are_not_kept(folder, monkeypatch):
    module = types.ModuleType("theirs")
    monkeypatch.setitem(sys.modules, "theirs", module)

    def double(x):
        return 2.0 * x

    double.__module__, double.__qualname__ = "theirs", "double"
    theirs = jax.jit(double)
    monkeypatch.setattr(module, "double", theirs, raising=False)
    np.testing.assert_array_equal(called(theirs, jnp.ones(3), options=None), 2.0)
    assert files(folder) == []


def test_what_cannot_be_read_is_written_anew_and_what_is_read_is_young(folder, planted):
    _, plant = planted
    function = plant("function", lambda x: 2.0 * x)
    called(function, jnp.ones(3), options=None)
    (path,) = files(folder)
    whole = path.read_bytes()
    broken = b"no pickle"
    path.write_bytes(hashlib.sha256(path.name.encode() + broken).digest() + broken)
    traced_programs._ready.clear()
    np.testing.assert_array_equal(called(function, jnp.ones(3), options=None), 2.0)
    assert len(path.read_bytes()) == len(whole)
    os.utime(path, (0, 0))
    traced_programs._ready.clear()
    called(function, jnp.ones(3), options=None)
    assert path.stat().st_mtime > 0


def test_nothing_is_kept_where_jax_compiles_nothing(folder, planted):
    _, plant = planted
    with jax.disable_jit():
        np.testing.assert_array_equal(called(plant("f", lambda x: 2.0 * x), jnp.ones(3), options=None), 2.0)
    assert files(folder) == []


def test_a_number_within_a_program_would_be_seen(folder, planted):
    """A planted mistake: a record that is a constant."""
    _, plant = planted
    called(plant("right", lambda x: 2.0 * x), VALUE, options=None)
    (right,) = files(folder)
    called(plant("wrong", lambda: VALUE * jnp.ones(3)), options=None)
    (wrong,) = set(files(folder)) - {right}
    pattern = np.float64(VALUE).tobytes()
    assert pattern in wrong.read_bytes() and pattern not in right.read_bytes()


@pytest.mark.parametrize("mechanism", [TangentLaplace, *exhaustive(LaplaceMechanism)])
def test_draws_and_plans_are_those_of_programs_that_are_not_kept(folder, mechanism):
    records = BALL.clip(np.random.default_rng(0).normal([0.0, 0.0, 5.0], 1.0, (12, 3)))
    kept = mechanism(BALL, 1.0).simulate(jax.random.key(3), records, 5)
    (plan,) = plan_mechanisms(BALL, 12, epsilon=1.0, draws=10, names=[mechanism.__name__.lower()[:7]])
    assert len(files(folder)) == 3  # draws, errors, reference records
    elsewhere(folder)
    np.testing.assert_array_equal(kept, mechanism(BALL, 1.0).simulate(jax.random.key(3), records, 5))
    with keeping_none():
        np.testing.assert_allclose(kept, mechanism(BALL, 1.0).simulate(jax.random.key(3), records, 5), atol=1e-12)
        (other,) = plan_mechanisms(BALL, 12, epsilon=1.0, draws=10, names=[plan.name])
    np.testing.assert_allclose(plan.error, other.error, rtol=1e-9)


def test_programs_with_lapack_run_in_a_process_that_has_lowered_none(tmp_path):
    """They crashed, in JAX 0.9."""
    code = """
import sys, types, pathlib, jax, jax.numpy as jnp
from jaxgeodp.compiling import called
from jaxgeodp.traced_programs import keep_in
module = sys.modules["jaxgeodp.planted"] = types.ModuleType("jaxgeodp.planted")
def program(a):
    assert len(sys.argv) == 2, "traced again"
    inverse = jax.scipy.linalg.solve_triangular(jnp.linalg.cholesky(a), a, lower=True)
    return jnp.linalg.eigh(a), jnp.linalg.qr(a), jnp.linalg.svd(a), jnp.linalg.solve(a, a), inverse
program.__module__ = module.__name__
module.program = jax.jit(program)
keep_in(pathlib.Path(sys.argv[1]))
print([leaf.tolist() for leaf in jax.tree.leaves(called(module.program, jnp.diag(jnp.arange(1.0, 5.0)), options=None))])
"""
    run = [sys.executable, "-c", code, tmp_path]
    first = subprocess.run(run, check=True, capture_output=True).stdout
    assert subprocess.run([*run, "later"], check=True, capture_output=True).stdout == first != b""


def test_the_source_is_part_of_a_name(tmp_path):
    """Of two copies of the package that differ in a comment, none takes what the other has kept."""
    package = pathlib.Path(jaxgeodp.__file__).parent
    code = (
        "import sys, pathlib; from jaxgeodp.traced_programs import keep_in; "
        "from jaxgeodp import Euclidean, GeodesicBall; from jaxgeodp.releases.expected import reference_records; "
        "keep_in(pathlib.Path(sys.argv[1])); reference_records(GeodesicBall(Euclidean(1), [0.0], 0.5), 0.5)"
    )
    kept = tmp_path / "kept"
    kept.mkdir()
    for number in (1, 1, 2):
        copy = tmp_path / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(package, copy / "jaxgeodp", ignore=shutil.ignore_patterns("__pycache__"))
        with open(copy / "jaxgeodp" / "blocks.py", "a", encoding="utf-8") as source:
            source.write(f"# {number}\n")
        subprocess.run([sys.executable, "-c", code, kept], cwd=copy, check=True)
        assert len(files(kept)) == number
