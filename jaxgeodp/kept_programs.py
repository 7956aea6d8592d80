"""Compiled programs that JAX keeps, and that are forgotten before a process has room for no other.

Linux allows a process some 65,530 memory maps. XLA takes about fifty for a program, and ends the process when it gets
none. Each number of records needs programs of its own, with Laplace noise 240 maps as measured (jax 0.9.2): some 270
numbers would fill a process.
"""

import contextlib
import gc
import itertools
import pathlib

_MAPS, _LIMIT = pathlib.Path("/proc/self/maps"), pathlib.Path("/proc/sys/vm/max_map_count")
#: Calls from one count to the next, in which far less than half of the maps are taken.
_EVERY = 8
_calls = itertools.count()


class _Room:
    """Maps at which programs are forgotten: where others hold many, halfway from them to the limit."""

    most = 0


def forget_programs_if_many() -> None:
    """Clear JAX's caches if the process has half of the memory maps that Linux allows it.

    Programs that are called again, also the caller's own, are compiled again. Where there is no such limit, or it
    cannot be read, nothing is done. Only how many programs there are counts, which follows from shapes.
    """
    if next(_calls) % _EVERY:
        return
    with contextlib.suppress(OSError, ValueError):
        limit = int(_LIMIT.read_text())
        if _MAPS.read_bytes().count(b"\n") > max(limit // 2, _Room.most):
            import jax  # late: who reads records does not wait for it

            jax.clear_caches()
            gc.collect()
            _Room.most = (_MAPS.read_bytes().count(b"\n") + limit) // 2
