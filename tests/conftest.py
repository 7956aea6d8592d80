"""Shared settings: float64 is on (tests of float32 pass float32 arrays), caches go to a temporary folder.

But for compiled programs of the tests: they are kept in the user's, so that a later run compiles what has changed.
"""

import contextlib
import ctypes
import gc
import hashlib
import importlib.metadata
import math
import os
import pathlib
import platform
import random
import secrets
import shutil
import sys
import tempfile

import pytest
from resumed import ROOT, Resumed

# Tests import benchmarks; last, so that the package is the one that is installed.
sys.path.append(str(ROOT))

# Compiling is most of the time; before JAX starts, and not where other flags are set. The lowest level of code
# generation halves it; so do the plain emitters of loops; and one piece of code a program, instead of many for further
# threads, saves an eighth of what is left. JAX 0.8 and 0.9 can be told to do the last two. All may change the last bits
# of a result (which multiplications and additions are fused), so that an exhaustive run has the code generation of
# users.
if "--exhaustive" not in sys.argv:
    plain = importlib.metadata.version("jaxlib").startswith(("0.8.", "0.9."))
    further = " --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1" if plain else ""
    os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0" + further)
if "PYTEST_XDIST_WORKER" not in os.environ:  # workers inherit the folders
    kept = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "jaxgeodp-tests"
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="jaxgeodp-tests-")
    # What one process has compiled, the others, those that tests start and later runs need not compile. JAX finds a
    # program by what it computes, by the version and by XLA's flags; the folder tells processors apart.
    facts = pathlib.Path("/proc/cpuinfo")
    processor = facts.read_text().split("\n\n")[0] if facts.exists() else platform.processor()
    told = [line for line in processor.splitlines() if line.startswith(("model name", "flags", "Features"))]
    folder = hashlib.sha256("\n".join(told or [processor]).encode()).hexdigest()[:16]
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(kept / folder)
    # Where such a program is loaded, XLA warns of features that the processor is told to have; not in tests of silence.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"
import jax  # after its settings

jax.config.update("jax_enable_x64", True)
# Tracing makes many objects that stay: to look through them for cycles was a tenth of the time.
gc.set_threshold(100_000, 50, 100)
MEMORY_MAPS, MEMORY_BYTES = 30_000, 4 * 2**30
KEPT_BYTES = 2**31  # of programs
# The longest first: a process that starts one of them last keeps the others waiting.
LONGEST = (
    *("test_manifolds", "test_samplers", "test_mechanisms", "test_sweeps", "test_statistics", "test_chains"),
    *("test_examples", "test_testing", "test_frechet_mean", "test_privacy", "test_functional", "test_cli"),
    *("test_audit", "test_face_folder", "test_faces", "test_bounds", "test_entropy", "test_grid_releases"),
    *("test_two_outcomes", "test_ledger", "test_gaussian", "test_notebooks", "test_cache", "test_face_design"),
    "test_recipes",
)


def pytest_addoption(parser):
    parser.addoption("--exhaustive", action="store_true", help="also the repetitions on further manifolds")
    parser.addoption(
        "--resume", metavar="FILE", help="run what FILE does not say has passed with this code; write --resume=FILE"
    )


def pytest_configure(config):
    if path := config.getoption("--resume"):
        config.pluginmanager.register(Resumed(config, pathlib.Path(path)))


def pytest_collection_modifyitems(config, items):
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.stem, len(LONGEST)))
    if not config.getoption("--exhaustive"):
        repetitions = [item for item in items if item.get_closest_marker("exhaustive")]
        config.hook.pytest_deselected(items=repetitions)
        items[:] = [item for item in items if not item.get_closest_marker("exhaustive")]


@pytest.fixture(autouse=True)
def _entropy_is_the_tests_own(request, monkeypatch):
    """A release draws from the system's entropy: here from a stream that is the same in each run of a test.

    Otherwise a test of what holds with probability .999 fails in each tenth run, as there are a hundred of them.
    Words, integers and names of files have streams of their own: how many files are written depends on caches.
    Processes that a test starts have the system's.
    """
    words, integers, names = (random.Random(f"{request.node.nodeid} {kind}") for kind in ("words", "integers", "names"))
    monkeypatch.setattr(os, "urandom", words.randbytes)
    monkeypatch.setattr(random, "_urandom", integers.randbytes)  # what `secrets` and `random.SystemRandom` draw from
    monkeypatch.setattr(secrets, "token_hex", lambda count=32: names.randbytes(count).hex())


def pytest_unconfigure():
    if "PYTEST_XDIST_WORKER" not in os.environ:
        shutil.rmtree(os.environ["XDG_CACHE_HOME"], ignore_errors=True)
        _forget_the_oldest_programs()


def _forget_the_oldest_programs():
    """JAX would do it after each program, and look at all of them each time."""
    programs, room = [], KEPT_BYTES
    for path in pathlib.Path(os.environ["JAX_COMPILATION_CACHE_DIR"]).glob("*"):
        with contextlib.suppress(FileNotFoundError):  # another run may end at the same time
            facts = path.stat()
            programs.append((facts.st_mtime, facts.st_size, path))
    for _, size, path in sorted(programs, reverse=True):
        room -= size
        if room < 0:
            path.unlink(missing_ok=True)


@pytest.fixture(autouse=True, scope="module")
def _compiled_programs_are_forgotten():
    """Linux allows a process 65,530 memory maps; the programs of the whole suite need more, and 6 GB of memory."""
    yield
    _forget_if_there_are_many()


@pytest.fixture(autouse=True)
def _programs_of_long_repetitions_are_forgotten(request):
    """Those of one module can be too many: XLA ends the process where it gets no further map."""
    yield
    if request.node.get_closest_marker("exhaustive"):
        _forget_if_there_are_many()


def _forget_if_there_are_many():
    if _counted("maps") > MEMORY_MAPS or _resident_bytes() > MEMORY_BYTES:
        jax.clear_caches()
        gc.collect()
        with contextlib.suppress(OSError, AttributeError):  # what has been freed goes back to the system, with glibc
            ctypes.CDLL(None).malloc_trim(0)


def _counted(name):
    path = pathlib.Path("/proc/self") / name
    return path.read_bytes().count(b"\n") if path.exists() else math.inf


def _resident_bytes():
    path = pathlib.Path("/proc/self/statm")
    return int(path.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if path.exists() else 0
