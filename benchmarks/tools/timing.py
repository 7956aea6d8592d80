"""Timing and printing shared by the benchmarks.

Tasks that are compared are timed in turns, A B A B, in one process: what slows the machine down slows both,
and the ratio of each turn is taken before the median. A turn repeats a short task until it fills
`TURN_SECONDS`. The first call of a task, which compiles it, is timed on its own and never counted as warm.
"""

import dataclasses
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable

import jax
import numpy as np

import jaxgeodp

TURN_SECONDS = 0.02
# What a fair NumPy needs, set before the process starts. By default glibc returns every large array to the
# operating system and takes it back, page by page, at the next allocation: programs that materialise arrays
# of 1 MB lose a factor of up to 5. OpenBLAS threads do not pay at these sizes, and on busy cores their
# spinning costs up to a factor of 100. JAX runs in the same environment (its eigh is LAPACK, too).
ENVIRONMENT = {
    "MALLOC_MMAP_THRESHOLD_": "1073741824",
    "MALLOC_TRIM_THRESHOLD_": "1073741824",
    "OPENBLAS_NUM_THREADS": "1",
}


def restart_with_fair_environment() -> None:
    """Start this script again in the environment in which NumPy is fastest."""
    if any(os.environ.get(name) != value for name, value in ENVIRONMENT.items()):
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, **ENVIRONMENT})


def print_machine() -> None:
    """Print what the numbers were measured on."""
    device = jax.devices()[0]
    print(f"platform   {platform.platform()}, Python {platform.python_version()}")
    print(f"device     {device.platform} ({device.device_kind}), {os.cpu_count()} cores")
    print(f"versions   jaxgeodp {jaxgeodp.__version__}, jax {jax.__version__}, numpy {np.__version__}")
    print(f"load       {os.getloadavg()[0]:.1f} processes at the start")
    print(f"precision  {'float64' if jax.config.jax_enable_x64 else 'float32'} throughout")


@dataclasses.dataclass(frozen=True)
class Measurement:
    """Seconds of one task: its first call (with compilation, for a JAX program) and each warm turn."""

    first: float
    turns: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.turns)

    def per_item(self, count: int) -> "Measurement":
        """The same for one of the ``count`` items that a turn makes."""
        return Measurement(self.first / count, [seconds / count for seconds in self.turns])


def measure(tasks: dict[str, Callable[[], object]], repeats: int) -> dict[str, Measurement]:
    """Time all tasks in turns; a task returns what it computed, and is waited for."""
    first = {name: _seconds(task, 1) for name, task in tasks.items()}
    calls = {name: max(1, round(TURN_SECONDS / _seconds(task, 1))) for name, task in tasks.items()}
    turns = {name: [] for name in tasks}
    for _ in range(repeats):
        for name, task in tasks.items():
            turns[name].append(_seconds(task, calls[name]))
    return {name: Measurement(first[name], turns[name]) for name in tasks}


def ratio(slow: Measurement, fast: Measurement) -> str:
    """How many times faster: the median over turns, and the smallest and largest."""
    ratios = [a / b for a, b in zip(slow.turns, fast.turns, strict=True)]
    middle, lowest, highest = (_digits(value) for value in (statistics.median(ratios), min(ratios), max(ratios)))
    return f"{middle}x ({lowest}-{highest})"


def milliseconds(seconds: float) -> str:
    return f"{_digits(1e3 * seconds)} ms"


def print_table(title: str, header: list[str], rows: list[list[str]]) -> None:
    """Print a table that is also Markdown."""
    widths = [max(len(row[j]) for row in [header, *rows]) for j in range(len(header))]
    print(f"\n{title}\n")
    for row in [header, ["-" * width for width in widths], *rows]:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |")


def _seconds(task, calls):
    start = time.perf_counter()
    for _ in range(calls):
        jax.block_until_ready(task())
    return (time.perf_counter() - start) / calls


def _digits(value):
    """Three significant digits, without an exponent."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
