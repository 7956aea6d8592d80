"""Compiled programs are kept in a private folder, and nothing of it depends on a record or on a release."""

import json
import os
import shutil
import stat
import subprocess
import sys

import jax
import jaxlib
import numpy as np
import pytest
from jax._src.compilation_cache import decompress_executable
from strategies import exhaustive

import jaxgeodp

COMMAND = [sys.executable, "-c", "from jaxgeodp.cli import main; main()"]
# JAX puts the seconds of compilation before a program.
TIME_BYTES = 4


def call(arguments, caches, **variables):
    """Run the command in a process of its own; its keepings go to ``caches``."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    environment |= {"XDG_CACHE_HOME": str(caches), **variables}
    return subprocess.run([*COMMAND, *map(str, arguments)], env=environment, capture_output=True, text=True)


def kept(caches):
    """Contents of all files of a folder, decompressed, by their path in it."""
    files = [path for path in caches.rglob("*") if path.is_file()]
    compiled = {path for path in files if path.parent.name != "traced"}
    assert all(path.name.endswith("-cache") for path in compiled)
    return {
        str(path.relative_to(caches)): (
            decompress_executable(path.read_bytes())[TIME_BYTES:] if path in compiled else path.read_bytes()
        )
        for path in files
    }


def records(seed):
    """Unit vectors, and their numbers as they would lie in a file."""
    rows = np.random.default_rng(seed).normal([0.0, 0.0, 5.0], 1.0, (30, 3))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def patterns(numbers):
    """Bytes of numbers in both precisions."""
    return {np.asarray(number, kind).tobytes() for number in np.ravel(numbers) for kind in (np.float64, np.float32)}


def released(folder, seed, manifold, *options):
    """A new cache after a release of the records of a seed, and all private numbers and released ones."""
    # JAX makes the path a part of the key: it has to be the same.
    shutil.rmtree(folder / "caches", ignore_errors=True)
    data = records(seed)
    np.save(folder / "data.npy", data)
    arguments = ["release", folder / "data.npy", "--out", folder / "out.json", "--manifold", manifold]
    answer = call(
        [*arguments, "--center", "origin", "--radius", 0.7, "--epsilon", 1, "--overwrite", *options], folder / "caches"
    )
    assert answer.returncode == 0, answer.stderr
    value = json.loads((folder / "out.json").read_text())["value"]
    return kept(folder / "caches"), patterns(data) | patterns(value)


@pytest.mark.parametrize(
    ("manifold", "options"),
    [
        ("euclidean", ()),  # what an automatic choice tries costs least there
        *exhaustive(
            ("sphere", ()),
            ("sphere", ("--mechanism", "kng")),
            ("sphere", ("--mechanism", "kng", "--statistic", "median")),
            ("sphere", ("--mechanism", "laplace", "--delta", 1e-6)),
            ("sphere", ("--mechanism", "wrapped")),
            ("sphere", ("--mechanism", "tangent", "--numerics", "grid")),
        ),
    ],
)
def test_no_file_or_name_depends_on_a_record_or_on_a_release(tmp_path, manifold, options):
    one, private = released(tmp_path, 0, manifold, *options)
    other, _ = released(tmp_path, 1, manifold, *options)
    assert len(one) >= 2 and set(one) == set(other)  # where the centre lies, and the release
    traced = {name for name in one if "traced" in name}
    assert traced and all(one[name] == other[name] for name in traced)
    assert not any(pattern in one[name] for name in set(one) - traced for pattern in private)


def test_a_number_in_a_program_would_be_seen(tmp_path):
    """A planted mistake: a program that holds a record as a constant."""
    number = float(records(0)[0, 0])
    code = (
        "import jax; from jaxgeodp.cli.cache import keep_compiled_programs; keep_compiled_programs(); "
        f"jax.config.update('jax_enable_x64', True); jax.jit(lambda x: x * {number!r})(jax.numpy.ones(3))"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    subprocess.run([sys.executable, "-c", code], env=environment | {"XDG_CACHE_HOME": str(tmp_path)}, check=True)
    assert any(pattern in content for content in kept(tmp_path).values() for pattern in patterns(number))


def test_work_of_private_shapes_leaves_nothing(tmp_path):
    code = """
import jax
from jaxgeodp.cli.cache import keep_compiled_programs
from jaxgeodp.traced_programs import keeping_none
def private(x): return 2 * x
def public(x): return 3 * x
keep_compiled_programs()
with keeping_none():
    jax.jit(private)(1.0)
jax.jit(public)(1.0)
"""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    subprocess.run([sys.executable, "-c", code], env=environment | {"XDG_CACHE_HOME": str(tmp_path)}, check=True)
    (only,) = kept(tmp_path)
    assert "jit_public" in only


def test_a_look_at_records_leaves_nothing_that_tells_how_many_are_points(tmp_path):
    names = []
    for bad in (1, 3):
        table = np.tile([0.0, 0.0, 1.0], (40, 1))
        table[:bad] = np.nan
        np.save(tmp_path / "data.npy", table)
        options = ["--manifold", "sphere", "--center", "origin", "--radius", "0.5", "--overwrite"]
        shutil.rmtree(tmp_path / "caches", ignore_errors=True)
        answer = call(["check", tmp_path / "data.npy", *options], tmp_path / "caches")
        assert answer.returncode == 0, answer.stderr
        names.append(set(kept(tmp_path / "caches" / "jaxgeodp")))
    assert names[0] == names[1]


def test_without_a_home_every_call_compiles(tmp_path):
    code = """
import os, pathlib
from jaxgeodp.cli.cache import keep_compiled_programs
def home():
    raise RuntimeError("Could not determine home directory.")
pathlib.Path.home = home
import jax
for folder in ("", "relative"):
    os.environ["XDG_CACHE_HOME"] = folder
    keep_compiled_programs()
    assert jax.config.values["jax_compilation_cache_dir"] is None
"""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    subprocess.run([sys.executable, "-c", code], env=environment, cwd=tmp_path, check=True)
    assert list(tmp_path.iterdir()) == []


INFO = """
import contextlib, io, json, os, sys
import jax
from jaxgeodp.cli import main
answers = {}
for folder, switch in json.loads(sys.argv[1]).items():
    os.environ |= {"XDG_CACHE_HOME": folder, "JAXGEODP_CACHE": switch}
    jax.config.update("jax_compilation_cache_dir", None)
    sys.argv[1:] = ["info"]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as errors:
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code
    answers[folder] = code or 0, errors.getvalue()
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def informed(tmp_path_factory):
    """Folders of caches after ``jaxgeodp info``, with its exit codes and errors; one process for all."""
    kinds = {kind: tmp_path_factory.mktemp("informed") for kind in ("own", "open", "linked", "off", "wrong")}
    (kinds["own"] / "jaxgeodp").mkdir(mode=0o755)
    (kinds["open"] / "jaxgeodp").mkdir()
    (kinds["open"] / "jaxgeodp").chmod(0o775)
    (kinds["linked"] / "theirs").mkdir()
    (kinds["linked"] / "jaxgeodp").symlink_to(kinds["linked"] / "theirs")
    switches = {str(folder): {"off": "off", "wrong": "no"}.get(kind, "") for kind, folder in kinds.items()}
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    words = [sys.executable, "-c", INFO, json.dumps(switches)]
    answer = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    told = json.loads(answer.stdout)
    return {kind: (folder, *told[str(folder)]) for kind, folder in kinds.items()}


def test_a_folder_that_others_could_write_into_is_not_used(informed):
    folder, code, _ = informed["open"]
    assert code == 0 and list((folder / "jaxgeodp").iterdir()) == []


def test_the_folder_is_for_its_user_and_its_versions_only(informed):
    folder, code, _ = informed["own"]
    own = folder / "jaxgeodp"
    assert code == 0 and stat.S_IMODE(own.stat().st_mode) == 0o700
    (folder,) = (own / "compiled").iterdir()
    assert folder.name.startswith(f"jaxgeodp-{jaxgeodp.__version__}-jax-{jax.__version__}-jaxlib-{jaxlib.__version__}-")


def test_nothing_is_kept_where_others_could_have_put_programs(informed):
    folder, code, _ = informed["linked"]
    assert code == 0 and list((folder / "theirs").iterdir()) == []


def test_the_oldest_programs_go_where_there_are_too_many(tmp_path):
    """In a process of its own, as the settings of JAX change."""
    old = tmp_path / "jaxgeodp" / "compiled" / "an earlier version" / "traced"
    old.mkdir(parents=True)
    for age in range(4):
        (old / f"{age}").write_bytes(bytes(10_000))
        os.utime(old / f"{age}", (10**9 - age, 10**9 - age))
    code = """
import os, sys
import jax
from jaxgeodp.cli import cache
for most in (40_000, 39_999):
    cache.MOST_BYTES = most
    jax.config.update("jax_compilation_cache_dir", None)
    cache.keep_compiled_programs()
    print(*sorted(os.listdir(sys.argv[1])))
"""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    words, environment = [sys.executable, "-c", code, str(old)], environment | {"XDG_CACHE_HOME": str(tmp_path)}
    left = subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout
    assert left.splitlines() == ["0 1 2 3", "0"]


def test_the_cache_can_be_turned_off(informed):
    folder, code, _ = informed["off"]
    assert code == 0 and list(folder.iterdir()) == []
    folder, code, errors = informed["wrong"]
    assert code == 2 and errors == "Error: JAXGEODP_CACHE must be unset or 'off', but has another value.\n"
    assert list(folder.iterdir()) == []
