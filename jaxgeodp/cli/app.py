"""The commands and their arguments; the work is done elsewhere.

Exit codes: 0 done, 1 failed, 2 bad usage. An error is one sentence: what is wrong, where, what to do; it never
contains a private value.
"""

import math
import os
import pathlib
import platform
from typing import Annotated

import typer

from jaxgeodp._version import __version__
from jaxgeodp.checks import InputError
from jaxgeodp.cli.auditing import audit
from jaxgeodp.cli.faces import face
from jaxgeodp.cli.frame import (
    OUTPUT,
    check_writable,
    one_sentence_errors,
    quiet_libraries,
    record_room,
    robust_output,
    shown,
    use_compilation_cache,
)
from jaxgeodp.cli.ledger import DATASET, LEDGER, ledger_app, opened_ledger
from jaxgeodp.cli.reproducing import reproduce
from jaxgeodp.cli.sweeping import simulate, sweep

app = typer.Typer(
    name="jaxgeodp",
    help="Differential privacy on Riemannian manifolds: exact private means of matrices, directions and shapes.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


app.command()(reproduce)
app.command()(sweep)
app.command()(simulate)
app.command()(face)
app.add_typer(ledger_app, name="ledger")
app.command()(audit)


def main() -> None:
    """Entry point of the ``jaxgeodp`` command."""
    with robust_output():
        app()


def _version(requested: bool) -> None:
    if requested:
        typer.echo(f"jaxgeodp {__version__}")
        raise typer.Exit()


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    out: Annotated[pathlib.Path, typer.Option(help="Folder for the pictures and records.")] = pathlib.Path(
        "jaxgeodp-demo"
    ),
) -> None:
    """Private mean shape and mean covariance of handwritten digits: pictures and release records, in a minute."""
    with one_sentence_errors():
        from jaxgeodp.cli.demo import run_demo

        if out.exists() and not out.is_dir():
            raise InputError(f"--out {out} is a file; name a folder.")
        use_compilation_cache()
        with quiet_libraries():
            run_demo(out, OUTPUT)


@app.command()
def release(
    data: Annotated[
        pathlib.Path,
        typer.Argument(
            help="Records: .npy/.npz/.csv/.parquet (a line or row is a record); landmarks as (n,k,2), SPD as (n,k,k) "
            "or vech rows."
        ),
    ],
    manifold: Annotated[
        str,
        typer.Option(
            help="euclidean, sphere, hyperbolic, spd, rotations or shapes; sizes are read off the file's shape."
        ),
    ],
    radius: Annotated[float, typer.Option(help="Radius of the public ball, chosen without looking at the data.")],
    out: Annotated[pathlib.Path, typer.Option(help="The release record to write (JSON).")],
    epsilon: Annotated[
        float | None, typer.Option(help="Privacy parameter, above 0, of all mechanisms but the Gaussian ones.")
    ] = None,
    mu: Annotated[float | None, typer.Option(help="Privacy parameter of the Gaussian mechanisms, above 0.")] = None,
    center: Annotated[
        str, typer.Option(help="Centre of the public ball: 'origin', or a file with one point.")
    ] = "origin",
    statistic: Annotated[str, typer.Option(help="mean or, with kng, median.")] = "mean",
    mechanism: Annotated[
        str,
        typer.Option(
            help="laplace, kng, wrapped, tangent, wrapped-gaussian or gaussian; 'jaxgeodp plan' compares them."
        ),
    ] = "laplace",
    calibration: Annotated[str, typer.Option(help="tight or theorem, of laplace and kng.")] = "tight",
    delta: Annotated[
        float,
        typer.Option(help="Of laplace and kng: above 0, a fixed number of proposals, so that time tells nothing."),
    ] = 0.0,
    numerics: Annotated[
        str,
        typer.Option(
            help="idealized, or, of wrapped, tangent and wrapped-gaussian: grid, whose guarantee covers rounding, too."
        ),
    ] = "idealized",
    array: Annotated[str | None, typer.Option(help="Name of the array in an .npz file that holds several.")] = None,
    header: Annotated[
        bool, typer.Option("--header", help="The first line of .csv files holds names of columns; never guessed.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file --out if it exists.")] = False,
    ledger: LEDGER = None,
    dataset: DATASET = None,
) -> None:
    """Release the Frechet mean or median of a data file with differential privacy for each record."""
    with one_sentence_errors():
        import jax

        from jaxgeodp.cli.reading import read_center, read_records
        from jaxgeodp.domain import GeodesicBall
        from jaxgeodp.files import reserved
        from jaxgeodp.mechanisms.names import GAUSSIAN, IN_TANGENT_SPACE, WITH_DENSITY
        from jaxgeodp.statistics import FrechetMean, FrechetMedian

        others = IN_TANGENT_SPACE | GAUSSIAN
        if mechanism not in WITH_DENSITY | others:
            names = ", ".join(WITH_DENSITY | others)
            raise InputError(f"--mechanism must be one of {names}, got '{mechanism}'.")
        needed, given = ("--mu", mu) if mechanism in GAUSSIAN else ("--epsilon", epsilon)
        if given is None or None not in (mu, epsilon):
            raise InputError(f"--mechanism {mechanism} needs {needed} and no other privacy parameter.")
        if mechanism in others and calibration != "tight":
            raise InputError(f"--calibration is for laplace and kng, got --mechanism {mechanism}.")
        if mechanism in others and delta != 0.0:
            raise InputError(
                f"--delta is for laplace and kng, got --mechanism {mechanism}, whose time tells nothing anyway."
            )
        if numerics not in ("idealized", "grid"):
            raise InputError(f"--numerics must be idealized or grid, got '{numerics}'.")
        if numerics == "grid" and mechanism not in IN_TANGENT_SPACE | {"wrapped-gaussian": None}:
            raise InputError(f"--numerics grid is for wrapped, tangent and wrapped-gaussian, got '{mechanism}'.")
        if calibration == "paper":
            raise InputError("--calibration must be tight or theorem: under 'paper' nothing is proven.")
        statistics = {"mean": FrechetMean, "median": FrechetMedian}
        if statistic not in statistics:
            raise InputError(f"--statistic must be one of {', '.join(statistics)}, got '{statistic}'.")
        if statistic == "median" and mechanism != "kng":
            raise InputError(f"--statistic median needs --mechanism kng, got --mechanism {mechanism}.")
        inputs = [data, *([] if center == "origin" else [pathlib.Path(center)]), *([] if ledger is None else [ledger])]
        check_writable(out, overwrite, inputs)
        book = opened_ledger(ledger, dataset)
        space, records = read_records(data, manifold, array, header)
        use_compilation_cache()
        # On the standard output: the error stream is closed while compiled code works.
        with OUTPUT.status("Compiling and sampling ..."), quiet_libraries(), jax.enable_x64(True):
            ball = GeodesicBall(space, read_center(center, space, header), radius)
            if mechanism in others:
                chosen = others[mechanism](ball, given)
            else:
                chosen = WITH_DENSITY[mechanism](ball, given, statistics[statistic](), calibration=calibration)
            options = {"delta": delta} if delta else {}
            options |= {} if numerics == "idealized" else {"numerics": numerics}
            options |= {} if book is None else {"ledger": book}
            numbers = math.prod(space.shape) * (2 if space.dtype_kind == "complex" else 1)
            # Room on the disk before the charge: a value that cannot be written would be lost.
            with reserved(out, record_room(numbers), replace=overwrite) as write:
                result = chosen.release(records, **options)
                write(result.to_json())
    OUTPUT.print(
        f"Wrote {shown(out)}: {statistic} by {type(chosen).__name__} on {space}, {needed[2:]} = {given!r}, "
        f"n = {len(records)}, sensitivity {result.record['sensitivity']['value']:.4g}, scale "
        f"{result.record['scale']:.4g}.",
        soft_wrap=True,
        highlight=False,
    )


@app.command()
def plan(
    manifold: Annotated[str, typer.Option(help="euclidean, sphere, hyperbolic, spd, rotations or shapes.")],
    radius: Annotated[float, typer.Option(help="Radius of the public ball.")],
    n: Annotated[int, typer.Option("--n", help="Number of records.")],
    epsilon: Annotated[float, typer.Option(help="Privacy parameter of the pure mechanisms, above 0.")],
    size: Annotated[
        int | None,
        typer.Option(help="Dimension (euclidean, sphere, hyperbolic), matrix size (spd), landmarks (shapes)."),
    ] = None,
    mu: Annotated[float | None, typer.Option(help="Also the Gaussian mechanisms, at this mu.")] = None,
    spread: Annotated[
        float, typer.Option(help="How far reference records lie from the centre, in units of the radius.")
    ] = 0.5,
    draws: Annotated[int, typer.Option(help="Simulated releases per mechanism.")] = 1000,
) -> None:
    """Expected error of every mechanism, without data: choose before you spend privacy."""
    with one_sentence_errors():
        from jaxgeodp.domain import GeodesicBall
        from jaxgeodp.manifolds.names import manifold_named
        from jaxgeodp.mechanisms import plan_mechanisms

        use_compilation_cache()
        with OUTPUT.status("Simulating ..."), quiet_libraries():
            space = manifold_named(manifold, size)
            plans = plan_mechanisms(GeodesicBall(space, space.origin, radius), n, epsilon, mu, spread, draws)
    rows = [("mechanism", "guarantee", "sensitivity", "scale", "support", "expected error")]
    for row in plans:
        support = "all" if row.support is None else f"{row.support:.4g}"
        error = f"{row.error:.4g} +- {2 * row.standard_error:.1g}"
        if not row.refusal:
            numbers = (f"{row.sensitivity:.4g}", f"{row.scale:.4g}", support, error)
            rows.append((row.mechanism, row.guarantee, *numbers))
    widths = [max(len(cells[column]) for cells in rows) for column in range(len(rows[0]))]
    for cells in rows:
        line = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        OUTPUT.print(line.rstrip(), soft_wrap=True, highlight=False)
    for row in plans:
        if row.refusal:
            OUTPUT.print(f"{row.mechanism}: {shown(row.refusal)}", soft_wrap=True, highlight=False)
    # In the order of their errors; the Gaussian mechanisms promise something else.
    pure = [row for row in plans if row.guarantee.startswith("epsilon") and row.error == row.error]
    if pure:
        best = pure[0]
        equal = [
            row.mechanism for row in pure[1:] if row.error - best.error < 2 * (row.standard_error + best.standard_error)
        ]
        tie = f"; within the simulation's error of it: {', '.join(equal)}" if equal else ""
        OUTPUT.print(
            f"Smallest expected error at epsilon = {epsilon:g}: {best.mechanism}{tie} (n = {n}, {space}, "
            f"radius {radius:g}, records up to {spread:g} radii from the centre).",
            soft_wrap=True,
            highlight=False,
        )


@app.command()
def info() -> None:
    """Print versions and the devices that JAX sees."""
    import jax
    import jaxlib.version

    devices = ", ".join(f"{device.platform}:{device.id} ({device.device_kind})" for device in jax.devices())
    typer.echo(f"jaxgeodp {__version__}")
    typer.echo(f"python {platform.python_version()}, jax {jax.__version__}, jaxlib {jaxlib.version.__version__}")
    typer.echo(f"devices: {devices}; {os.cpu_count()} CPU cores")
