"""Compiled programs, kept between calls of the command in a folder that only its user may enter.

A program is looked up by a digest of what it computes, of the compiler and its settings; what it computes, by what it
was made of (`traced_programs`). Records, releases and keys of random numbers are arguments of programs, not parts of
them, so that neither a file nor its name depends on them (``tests/test_cache.py``); shapes do enter. The shapes of
private meshes are private, and so is a private number of records, and how many of them are points: work on those is
done within `traced_programs.keeping_none`, or in blocks of one shape. The number of places that follows from a count
with noise is neither: it is a part of the release, which is charged before.

``JAXGEODP_CACHE=off`` keeps nothing; ``JAX_COMPILATION_CACHE_DIR`` is JAX's own word for a folder and goes first.
"""

import contextlib
import hashlib
import os
import pathlib
import platform
import stat

import jax
import jaxlib.version

from jaxgeodp._version import __version__
from jaxgeodp.checks import InputError
from jaxgeodp.traced_programs import LEAST_SECONDS, keep_in

_SWITCH = "JAXGEODP_CACHE"
#: Bytes of all programs together, of all versions; where there are more, the oldest go until half of it is left.
MOST_BYTES = 2**30


def keep_compiled_programs() -> None:
    """Have JAX look for compiled programs in the user's folder of caches, and put new ones there.

    Raises:
        ValueError: ``JAXGEODP_CACHE`` has another value than ``off``.
    """
    switch = os.environ.get(_SWITCH, "")
    if switch not in ("", "off"):
        raise InputError(f"{_SWITCH} must be unset or 'off', but has another value.")
    if switch == "off" or jax.config.values["jax_compilation_cache_dir"] is not None:
        return
    versions = f"jaxgeodp-{__version__}-jax-{jax.__version__}-jaxlib-{jaxlib.version.__version__}"
    with contextlib.suppress(OSError, RuntimeError):  # no place to write, no home: compile every time
        base = pathlib.Path(os.environ.get("XDG_CACHE_HOME", ""))
        own = (base if base.is_absolute() else pathlib.Path.home() / ".cache") / "jaxgeodp"
        if not _is_private(own):
            return
        folder = own / "compiled" / f"{versions}-{_processor()}"
        folder.mkdir(parents=True, exist_ok=True)
        jax.config.update("jax_compilation_cache_dir", str(folder))
        traced = folder / "traced"
        traced.mkdir(mode=0o700, exist_ok=True)
        keep_in(traced)
        # What XLA writes for GPUs by itself is not told what is private.
        jax.config.update("jax_persistent_cache_enable_xla_caches", "none")
        # A command has dozens of small programs; together they take as long as a large one.
        jax.config.update(LEAST_SECONDS, 0.0)
        _forget_the_oldest(own / "compiled")


def _is_private(folder: pathlib.Path) -> bool:
    """Make a folder that nobody else may enter; False if somebody else can, or could, put programs there."""
    if not hasattr(os, "getuid"):  # Windows
        return False
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.stat(follow_symlinks=False)
    others = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or others:
        return False
    folder.chmod(0o700)
    return True


def _forget_the_oldest(folder: pathlib.Path) -> None:
    """Delete the oldest programs if all take too much space: each number of records and version has its own."""
    found = []
    for parent, _, names in os.walk(folder):
        for path in (os.path.join(parent, name) for name in names):
            with contextlib.suppress(FileNotFoundError):  # another command may be doing the same
                facts = os.stat(path, follow_symlinks=False)
                found.append((facts.st_mtime, facts.st_size, path))
    if sum(size for _, size, _ in found) <= MOST_BYTES:
        return
    room = MOST_BYTES / 2
    for _, size, path in sorted(found, reverse=True):
        room -= size
        if room < 0:
            pathlib.Path(path).unlink(missing_ok=True)


def _processor() -> str:
    """Return a name for this processor, so that a shared home folder brings no code made for another."""
    try:  # Linux, where `platform.processor` would start a program to find out
        lines = pathlib.Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
        words = {line for line in lines if line.startswith(("model name", "flags", "CPU part", "Features"))}
    except OSError:
        words = {platform.processor()}
    return hashlib.sha256(repr((platform.machine(), sorted(words))).encode()).hexdigest()[:16]
