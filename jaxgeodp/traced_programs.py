"""Programs as they are after tracing, kept between calls of the command, where most of a later one's time went to it.

JAX keeps compiled programs by what they compute, and has to trace and to lower them to know it. Here they are kept by
what they are made of: the function, the public arguments that are no arrays, shapes and types of those that are, the
source of this package, versions, and JAX's settings. What is kept is JAX's own format of exchange (`jax.export`), which
is then compiled, or found in JAX's cache, as any program is.

Only functions of this package are kept, of arguments of its own classes: the source of a user's manifold or loss may
change without a word. No value of an array enters a name or a file. On one CPU only, where the time matters.
"""

import contextlib
import functools
import hashlib
import importlib.metadata
import inspect
import io
import math
import operator
import os
import pathlib
import pickle
import platform
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jaxgeodp._version import __version__
from jaxgeodp.files import write_atomically

# Packages whose classes and functions stay what they are as long as the versions and this source do.
_KNOWN = frozenset(("jaxgeodp", "jax", "jaxlib", "numpy", "builtins", "functools", "collections", "operator"))
# Packages that run while a program is traced.
_TRACED = ("jax", "jaxlib", "numpy", "scipy", "optax", "numpyro", "chex", "ml_dtypes", "opt_einsum")
#: JAX's setting: programs that take less time to compile are not put into its own cache.
LEAST_SECONDS = "jax_persistent_cache_min_compile_time_secs"
# Parts of the names of JAX's settings that say where compiled programs are kept, not what a program is.
_OF_CACHES = ("cache", "compile_time")
_DIGEST_BYTES = 32
# The last one counts; None keeps nothing.
_folders: list[pathlib.Path | None] = [None]
# What JAX's setting was before.
_least: list[float] = []
_lock = threading.Lock()
# Programs of this process by folder, name and options, None for those that cannot be kept.
_ready: dict[tuple, "TracedProgram | None"] = {}


class TracedProgram(NamedTuple):
    """A compiled program that was made from a traced one, called as the function is, without static arguments."""

    compiled: Callable
    out_info: Any  #: shapes and types of the results

    def __call__(self, *arguments):
        """Return the program's results."""
        results = self.compiled(*_numbers(jax.tree.leaves(arguments)))
        return jax.tree.unflatten(jax.tree.structure(self.out_info), results)


def keep_in(folder: pathlib.Path | None) -> None:
    """Keep programs in a folder, which only the user may enter, from now on; None keeps none."""
    _folders[:1] = [folder]


@contextlib.contextmanager
def keeping_none() -> Iterator[None]:
    """Neither keep programs nor look for any, and let JAX keep none: for work whose very shapes are private."""
    with _lock:  # threads may do so at the same time: the first sets it, and the last sets it back
        if len(_folders) == 1:
            _least[:] = [jax.config.values[LEAST_SECONDS]]
            jax.config.update(LEAST_SECONDS, math.inf)
        _folders.append(None)
    try:
        yield
    finally:
        with _lock:
            _folders.pop()
            if len(_folders) == 1:
                jax.config.update(LEAST_SECONDS, _least[0])


def traced_program(function, arguments: tuple, static: dict[str, Any], options: dict | None) -> TracedProgram | None:
    """Return the program of a jitted function, from the folder if it is there, else made and put there.

    Args:
        function: made by `jax.jit`.
        arguments: arrays and pytrees of them, or what stands for their shapes and types.
        static: arguments that are part of the program.
        options: of the compiler.

    Returns:
        The program; None where programs are not kept, or not this one.
    """
    folder = _folders[-1]
    if folder is None or jax.config.values["jax_disable_jit"] or (name := _name(function, arguments, static)) is None:
        return None
    known = folder, name, repr(options)
    if known not in _ready:
        _ready[known] = _made_or_found(folder / name, function, arguments, static, options)
    return _ready[known]


def _made_or_found(path, function, arguments, static, options):
    """Return the program from the folder or make it; None on any failure, which is left to JAX to report."""
    leaves, tree = jax.tree.flatten(arguments)
    try:
        _start_lapack()
        exported, out_info = _read(path) or _exported(path, function, leaves, tree, static)
        program = jax.jit(exported.call).lower(*_numbers(leaves)).compile(compiler_options=options)
    except Exception:
        return None
    return TracedProgram(program, out_info)


@functools.cache
def _start_lapack():
    """Have JAX look up the functions of LAPACK, as it does where it lowers one of them.

    Before JAX 0.11 a program that was lowered elsewhere crashes without: https://github.com/jax-ml/jax/issues/29610.
    """
    jax.jit(jax.lax.linalg.cholesky).lower(jax.ShapeDtypeStruct((1, 1), np.float32))


def _exported(path, function, leaves, tree, static):
    """Trace a program and put it into its file, where there is room."""
    from jax import export

    kinds = [jax.random.key_impl(leaf) if _is_key(leaf) else None for leaf in leaves]
    inner, structures = inspect.unwrap(function), []  # options of the compiler are not for a function within another

    @jax.jit
    def flat(*numbers):
        own = [
            leaf if kind is None else jax.random.wrap_key_data(leaf, impl=kind)
            for leaf, kind in zip(numbers, kinds, strict=True)
        ]
        results, structure = jax.tree.flatten(inner(*jax.tree.unflatten(tree, own), **static))
        structures.append(structure)
        return results

    exported = export.export(flat)(*_numbers(leaves))
    shapes = [jax.ShapeDtypeStruct(result.shape, result.dtype) for result in exported.out_avals]
    out_info = jax.tree.unflatten(structures[0], shapes)
    content = _pickled((bytes(exported.serialize()), out_info))
    with contextlib.suppress(OSError):  # a full disk: traced again next time
        write_atomically(path, _checksum(path, content) + content, private=True)
    return exported, out_info


def _read(path):
    """Return a program and its results' shapes; None where there is no file, half of one, or one of another name."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, content = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    if _checksum(path, content) != digest:
        return None
    from jax import export

    try:
        serialized, out_info = pickle.loads(content)
        found = export.deserialize(bytearray(serialized)), out_info
    except Exception:  # written anew
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # where there is no more room, what has not been used for long goes
    return found


def _checksum(path, content) -> bytes:
    return hashlib.sha256(path.name.encode() + content).digest()


def _name(function, arguments, static) -> str | None:
    """Return a digest of all that decides what a program is; None where that is not known."""
    leaves, tree = jax.tree.flatten(arguments)
    if any(isinstance(leaf, Tracer) for leaf in leaves):
        return None
    inner = inspect.unwrap(function)
    try:
        if inner.__module__.split(".")[0] != "jaxgeodp":
            return None
        if operator.attrgetter(inner.__qualname__)(sys.modules[inner.__module__]) is not function:
            return None
        types = [(np.shape(leaf), str(_type(leaf)), _is_weak(leaf)) for leaf in leaves]
        # Leaves are told apart by their places alone.
        parts = inner.__module__, inner.__qualname__, types, jax.tree.unflatten(tree, range(len(leaves))), static
        content = _pickled((_surroundings(), _settings(), parts))
    except Exception:  # a class of a user, a function without a name, a check that refuses a place for a number
        return None
    return hashlib.sha256(content).hexdigest()


@functools.cache
def _surroundings() -> tuple:
    """Return versions, and the source of this package; refused on more than a CPU."""
    (only,) = jax.devices()
    if only.platform != "cpu":
        raise ValueError("traced programs are kept for one CPU.")
    source, root = hashlib.sha256(), pathlib.Path(__file__).parent
    for path in sorted(root.rglob("*.py")):
        source.update(f"{path.relative_to(root)} {path.stat().st_size} ".encode() + path.read_bytes())
    versions = [(name, importlib.metadata.version(name)) for name in _TRACED]
    return __version__, platform.python_version(), versions, source.hexdigest()


def _settings() -> tuple[str, ...]:
    """Return JAX's settings, as this thread has them now."""
    names = [name for name in sorted(jax.config.values) if not any(part in name for part in _OF_CACHES)]
    return tuple(f"{name} {getattr(jax.config, name, None)!r}" for name in names)


def _numbers(leaves) -> list:
    """Return leaves of arguments as they can be exchanged: random keys as their numbers."""
    return [jax.random.key_data(leaf) if _is_key(leaf) else leaf for leaf in leaves]


def _is_key(leaf) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _type(leaf):
    return leaf.dtype if hasattr(leaf, "dtype") else jax.dtypes.result_type(leaf)


def _is_weak(leaf) -> bool:
    # A number of NumPy may be an instance of one of Python, and is not weak.
    return type(leaf) in (bool, int, float, complex) or bool(getattr(leaf, "weak_type", False))


def _pickled(value) -> bytes:
    stream = io.BytesIO()
    _KnownOnly(stream, pickle.HIGHEST_PROTOCOL).dump(value)
    return stream.getvalue()


class _KnownOnly(pickle.Pickler):
    """Pickler that refuses what is not known to be the same in another process."""

    def reducer_override(self, obj):
        """Pickle as usual what is made of known classes and functions; refuse the rest."""
        named = obj if isinstance(obj, type) or callable(obj) else type(obj)
        module = getattr(named, "__module__", None) or type(named).__module__
        if module.split(".")[0] not in _KNOWN:
            raise pickle.PicklingError(f"{obj!r} may be another tomorrow.")
        return NotImplemented
