"""``jaxgeodp sweep``: many mechanisms, sizes and strengths compared over replicates, for research."""

import math
import pathlib
from typing import Annotated

import jax
import typer

from jaxgeodp.checks import InputError
from jaxgeodp.cli.frame import one_sentence_errors, quiet_libraries, say
from jaxgeodp.cli.progress import peak_memory, replicates_bar


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
        if config.is_dir() or not config.exists():
            raise InputError(f"{config} is not a file; name a TOML file.")
        if out.exists() and not out.is_dir():
            raise InputError(f"--out {out} is a file; name a folder.")
        with quiet_libraries():
            _join(coordinator, processes, process)
            from jaxgeodp.experiments.results import run_sweep
            from jaxgeodp.experiments.sweep import read_sweep

            description = read_sweep(config)
            with replicates_bar() as report:
                results = run_sweep(description, out, progress=report)
            alone = jax.process_index() == 0
        if alone:
            _print_summary(results.summary)
            say(f"Wrote {out}; {peak_memory()}")


def _print_summary(rows) -> None:
    """Print the table of a sweep."""
    cells = [("cell", "scale", "distance", "euclidean", "on manifold")]
    for row in rows:
        if "refusal" in row:
            cells.append((row["label"], "-", "-", "-", row["refusal"]))
            continue
        distance, euclidean = (_mean(row[name], row[name + "_se"]) for name in ("distance", "euclidean"))
        scale = "-" if row["scale"] is None else f"{row['scale']:.4g}"
        cells.append((row["label"], scale, distance, euclidean, f"{row['on_manifold']:.1%}"))
    widths = [max(len(row[j]) for row in cells if len(row[4]) < 20) for j in range(4)]
    for row in cells:
        line = "  ".join([*(text.ljust(width) for text, width in zip(row, widths, strict=False)), row[4]])
        say(line.rstrip())
    say("+-: two standard errors of a mean over the replicates.")


def _mean(mean, standard_error):
    """Return a mean with two standard errors; a dash where no value is on the manifold."""
    return "-" if math.isnan(mean) else f"{mean:.4g} +- {2 * standard_error:.1g}"


def _join(coordinator, processes, process):
    """Become one of several processes."""
    if coordinator is None:
        if processes is not None or process is not None:
            raise InputError("--processes and --process need --coordinator.")
        return
    if coordinator == "auto":
        if processes is not None or process is not None:
            raise InputError("--coordinator auto finds --processes and --process; leave them out.")
        jax.distributed.initialize()
        return
    if processes is None or process is None or not 0 <= process < processes:
        raise InputError("--coordinator host:port needs --processes P and --process from 0 to P - 1.")
    jax.distributed.initialize(coordinator, processes, process)
