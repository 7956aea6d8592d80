"""Compiled programs, kept between calls of the command in a folder that only its user may enter.

A program is looked up by a digest of what it computes, of the compiler and its settings; what it computes, by what it
was made of (`traced_programs`). Records, releases and keys of random numbers are arguments of programs, not parts of
them, so that neither a file nor its name depends on them (``tests/test_cache.py``); shapes do enter. The shapes of
private meshes are private: `nothing_new`.

``JAXGEODP_CACHE=off`` keeps nothing; ``JAX_COMPILATION_CACHE_DIR`` is JAX's own word for a folder and goes first.
"""

import contextlib
import hashlib
import os
import pathlib
import platform
import stat
from collections.abc import Iterator

import jax
import jaxlib.version

from jaxgeodp._version import __version__
from jaxgeodp.checks import InputError
from jaxgeodp.traced_programs import keep_in, keeping_none

_SWITCH = "JAXGEODP_CACHE"
_LEAST_SECONDS = "jax_persistent_cache_min_compile_time_secs"


def keep_compiled_programs() -> None:
    """Have JAX look for compiled programs in the user's folder of caches, and put new ones there.

    Raises:
        ValueError: ``JAXGEODP_CACHE`` has another value than ``off``.
    """
    switch = os.environ.get(_SWITCH, "")
    if switch not in ("", "off"):
        raise InputError(f"{_SWITCH} must be off, or not be set; it is neither.")
    if switch == "off" or jax.config.values["jax_compilation_cache_dir"] is not None:
        return
    base = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    versions = f"jaxgeodp-{__version__}-jax-{jax.__version__}-jaxlib-{jaxlib.version.__version__}"
    with contextlib.suppress(OSError, RuntimeError):  # no place to write, no home: compile every time
        own = base / "jaxgeodp"
        if not _is_private(own):
            return
        folder = own / "compiled" / f"{versions}-{_processor()}"
        folder.mkdir(parents=True, exist_ok=True)
        jax.config.update("jax_compilation_cache_dir", str(folder))
        traced = folder / "traced"
        traced.mkdir(mode=0o700, exist_ok=True)
        keep_in(traced)
        # A command has dozens of small programs; together they take as long as a large one.
        jax.config.update(_LEAST_SECONDS, 0.0)


@contextlib.contextmanager
def nothing_new() -> Iterator[None]:
    """Put no program into the cache: for work whose very shapes are private."""
    before = jax.config.values[_LEAST_SECONDS]
    jax.config.update(_LEAST_SECONDS, float("inf"))
    try:
        with keeping_none():
            yield
    finally:
        jax.config.update(_LEAST_SECONDS, before)


def _is_private(folder: pathlib.Path) -> bool:
    """Make a folder that nobody else may enter; False if it is somebody else's, who could put programs there."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.stat(follow_symlinks=False)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        return False
    folder.chmod(0o700)
    return True


def _processor() -> str:
    """A name for this processor, so that a shared home folder brings no code made for another."""
    try:  # Linux, where `platform.processor` would start a program to find out
        lines = pathlib.Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
        words = {line for line in lines if line.startswith(("model name", "flags", "CPU part", "Features"))}
    except OSError:
        words = {platform.processor()}
    return hashlib.sha256(repr((platform.machine(), sorted(words))).encode()).hexdigest()[:16]
