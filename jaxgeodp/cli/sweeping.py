"""``jaxgeodp sweep`` and ``jaxgeodp simulate``: replicates of data and releases, for research."""

import contextlib
import math
import pathlib
import resource
import sys
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from jaxgeodp.checks import InputError
from jaxgeodp.cli.frame import OUTPUT, one_sentence_errors, quiet_libraries, shown, use_compilation_cache


def sweep(
    config: Annotated[pathlib.Path, typer.Argument(help="A TOML file: what to compare; see docs/sweeps.md.")],
    out: Annotated[pathlib.Path, typer.Option(help="Folder of the results; an unfinished one is resumed.")],
    coordinator: Annotated[
        str | None,
        typer.Option(help="host:port of process 0, when several processes share the work; 'auto' on Slurm and others."),
    ] = None,
    processes: Annotated[int | None, typer.Option(help="How many processes, with --coordinator host:port.")] = None,
    process: Annotated[int | None, typer.Option(help="The number of this process, from 0.")] = None,
) -> None:
    """Compare mechanisms over many replicates; may be killed and called again."""
    with one_sentence_errors():
        import jax

        if config.is_dir() or not config.exists():
            raise InputError(f"{config} is no file; name a TOML file.")
        if out.exists() and not out.is_dir():
            raise InputError(f"--out {out} is a file; name a folder.")
        use_compilation_cache()
        with quiet_libraries():
            _join(coordinator, processes, process)
            from jaxgeodp.experiments.results import run_sweep
            from jaxgeodp.experiments.sweep import read_sweep

            description = read_sweep(config)
            with _progress() as report:
                results = run_sweep(description, out, report)
            alone = jax.process_index() == 0
        if alone:
            print_summary(results.summary)
            _say(f"Wrote {shown(out)}; {_memory()}")


def simulate(
    manifold: Annotated[str, typer.Option(help="euclidean, sphere, hyperbolic, spd, rotations or shapes.")],
    radius: Annotated[float, typer.Option(help="Radius of the public ball.")],
    n: Annotated[int, typer.Option("--n", help="Records per data set.")],
    mechanism: Annotated[str, typer.Option(help="kng, laplace, wrapped, tangent, euclidean, ...; see docs/sweeps.md.")],
    size: Annotated[
        int | None,
        typer.Option(help="Dimension (euclidean, sphere, hyperbolic), matrix size (spd), landmarks (shapes)."),
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="Privacy parameter of the pure mechanisms.")] = None,
    mu: Annotated[float | None, typer.Option(help="Privacy parameter of the Gaussian mechanisms.")] = None,
    calibration: Annotated[str, typer.Option(help="tight, theorem or paper, of kng and laplace.")] = "tight",
    data: Annotated[str, typer.Option(help="polar, wishart, outlines or digits.")] = "polar",
    replicates: Annotated[int, typer.Option(help="Independent data sets.")] = 1000,
    seed: Annotated[int, typer.Option(help="All numbers follow from it.")] = 0,
) -> None:
    """Mean error of one mechanism over synthetic data sets: reproducible, hence not private."""
    with one_sentence_errors():
        from jaxgeodp.experiments.replicates import run_replicates
        from jaxgeodp.experiments.sweep import Sweep

        given = {name: (value,) for name, value in (("epsilon", epsilon), ("mu", mu)) if value is not None}
        if len(given) != 1:
            raise InputError("simulate needs one of --epsilon and --mu.")
        description = Sweep(
            manifold, radius, (mechanism,), (n,), size, calibrations=(calibration,), data=data, replicates=replicates,
            seed=seed, epsilon=given.get("epsilon", ()), mu=given.get("mu", ()),
        )  # fmt: skip
        (cell,) = description.cells()
        if cell.calibration != calibration:
            raise InputError(f"--calibration is for laplace and kng, got --mechanism {mechanism}.")
        use_compilation_cache()
        with quiet_libraries(), _progress() as report:
            generator = description.generator()
            chosen = description.mechanism(cell, generator.ball)
            done = 0

            def advance(count):
                nonlocal done
                done += count
                report(cell.label, done, replicates)

            errors = run_replicates(chosen, generator, n, replicates, seed, cell.label, progress=advance)
    for name in ("distance", "euclidean"):
        values = getattr(errors, name)
        values = values[values == values]
        if values.size > 1:
            error = values.std(ddof=1) / math.sqrt(values.size)
            _say(f"mean {name} distance of a release from the mean: {values.mean():.5g} +- {2 * error:.1g}")
    _say(
        f"{cell.label}: scale {chosen.scale(n):.4g}, {errors.on_manifold.mean():.1%} of values on "
        f"{generator.ball.manifold}, {errors.proposals.mean():.3g} proposals per draw; {_memory()}"
    )


def print_summary(rows) -> None:
    """The table of a sweep."""
    cells: list[tuple[str, ...]] = [("cell", "scale", "distance", "euclidean", "on manifold")]
    for row in rows:
        if "refusal" in row:
            cells.append((row["label"], "-", "-", "-", row["refusal"]))
            continue
        means = [f"{row[name]:.4g} +- {2 * row[name + '_se']:.1g}" for name in ("distance", "euclidean")]
        cells.append((row["label"], f"{row['scale']:.4g}", *means, f"{row['on_manifold']:.1%}"))
    widths = [max(len(row[j]) for row in cells if len(row[4]) < 20) for j in range(4)]
    for row in cells:
        line = "  ".join([*(text.ljust(width) for text, width in zip(row, widths, strict=False)), row[4]])
        _say(shown(line.rstrip()))


def _say(text):
    OUTPUT.print(text, soft_wrap=True, highlight=False)


def _memory() -> str:
    unit = 2**30 if sys.platform == "darwin" else 2**20
    return f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit:.2f} GiB"


def _join(coordinator, processes, process):
    """Become one of several processes."""
    import jax

    if coordinator is None:
        if processes is not None or process is not None:
            raise InputError("--processes and --process need --coordinator.")
        return
    if coordinator == "auto":
        jax.distributed.initialize()
        return
    if processes is None or process is None or not 0 <= process < processes:
        raise InputError("--coordinator host:port needs --processes P and --process from 0 to P - 1.")
    jax.distributed.initialize(coordinator, processes, process)


class _Rate(ProgressColumn):
    """Replicates per second."""

    def render(self, task):
        """One cell."""
        return Text("" if task.speed is None else f"{task.speed:,.0f}/s")


@contextlib.contextmanager
def _progress():
    """A bar with rate and remaining time; a function ``(label, done, total)`` moves it."""
    columns = (TextColumn("{task.description}"), BarColumn(), _Rate(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=OUTPUT, transient=True, disable=not OUTPUT.is_terminal) as bar:
        task = bar.add_task("compiling", total=None)
        yield lambda label, done, total: bar.update(task, description=shown(label), completed=done, total=total)
