"""How far a command is that takes long, and what it took."""

import contextlib
import resource
import sys

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from jaxgeodp.checks import printable
from jaxgeodp.cli.frame import OUTPUT


@contextlib.contextmanager
def progress_bar(what, total):
    """Show a bar on the terminal; yield a function that takes the number done, and the total if it was None."""
    columns = (_words(), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(
        *columns, TimeRemainingColumn(), console=OUTPUT, transient=True, disable=not OUTPUT.is_terminal
    ) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done, total=total: bar.update(task, completed=done, total=total)


@contextlib.contextmanager
def replicates_bar():
    """Show a bar with rate and remaining time; yield a function ``(label, done, total)`` that moves it."""
    columns = (_words(), BarColumn(), _Rate(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=OUTPUT, transient=True, disable=not OUTPUT.is_terminal) as bar:
        task = bar.add_task("compiling", total=None)
        yield lambda label, done, total: bar.update(task, description=printable(label), completed=done, total=total)


def peak_memory() -> str:
    """Return the peak memory of this process, in words."""
    unit = 2**30 if sys.platform == "darwin" else 2**20
    return f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit:.2f} GiB"


def _words():
    """Return a column of what is done, without markup."""
    return TextColumn("{task.description}", markup=False)


class _Rate(ProgressColumn):
    """Replicates per second."""

    def render(self, task):
        """Return one cell."""
        return Text("" if task.speed is None else f"{task.speed:,.0f}/s")
