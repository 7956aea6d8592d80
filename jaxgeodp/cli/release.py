"""``jaxgeodp release``: a data file in, a private mean or median and its record out."""

import math
import pathlib
from typing import Annotated

import jax
import typer

from jaxgeodp.checks import InputError
from jaxgeodp.cli.frame import (
    OUTPUT,
    check_writable,
    one_sentence_errors,
    quiet_libraries,
    record_room,
    say,
    shown,
    use_compilation_cache,
)
from jaxgeodp.cli.ledger import DATASET, LEDGER, opened_ledger
from jaxgeodp.cli.reading import read_center, read_records
from jaxgeodp.domain import GeodesicBall
from jaxgeodp.files import reserved
from jaxgeodp.mechanisms.names import GAUSSIAN, IN_TANGENT_SPACE, WITH_DENSITY
from jaxgeodp.statistics import FrechetMean, FrechetMedian


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
    say(
        f"Wrote {shown(out)}: {statistic} by {type(chosen).__name__} on {space}, {needed[2:]} = {given!r}, "
        f"n = {len(records)}, sensitivity {result.record['sensitivity']['value']:.4g}, scale "
        f"{result.record['scale']:.4g}."
    )
