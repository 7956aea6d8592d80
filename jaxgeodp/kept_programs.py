"""Compiled programs that JAX keeps, and that are forgotten before a process has room for no other.

Linux allows a process some 65,530 memory maps. XLA takes about fifty for a program, and ends the process when it gets
none. Each number of records needs programs of its own: 270 releases with other numbers filled a process.
"""

import gc
import itertools
import pathlib

import jax

_MAPS, _LIMIT = pathlib.Path("/proc/self/maps"), pathlib.Path("/proc/sys/vm/max_map_count")
#: Calls from one count to the next, in which far less than half of the maps are taken.
_EVERY = 8
_calls = itertools.count()


def forget_programs_if_many() -> None:
    """Clear JAX's caches if the process has half of the memory maps that Linux allows it.

    Which programs there are hangs on public numbers alone. Those that are called again, also the caller's own, are
    compiled again. Where there is no such limit nothing is done.
    """
    if next(_calls) % _EVERY or not (_MAPS.exists() and _LIMIT.exists()):
        return
    if _MAPS.read_bytes().count(b"\n") > int(_LIMIT.read_text()) // 2:
        jax.clear_caches()
        gc.collect()
