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
)
from jaxgeodp.cli.ledger import DATASET, LEDGER, opened_ledger
from jaxgeodp.cli.reading import read_center, read_records
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.files import reserved
from jaxgeodp.mechanisms.names import MECHANISMS, mechanism_named, names_with
from jaxgeodp.privacy.clock import now
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
            help="euclidean, sphere, hyperbolic, spd, rotations, shapes or grassmann; sizes are read off the file's "
            "shape. Or a product with its sizes, as 'sphere(2) * spd(3)'."
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
        entry = _entry(mechanism)
        parameter, given = entry.parameter, {"epsilon": epsilon, "mu": mu}[entry.parameter]
        if given is None or None not in (mu, epsilon):
            raise InputError(f"--mechanism {mechanism} needs --{parameter} and no other privacy parameter.")
        if calibration == "paper":
            raise InputError("--calibration must be tight or theorem: under 'paper' nothing is proven.")
        if calibration != "tight" and len(entry.calibrations) == 1:
            raise InputError(f"--calibration is for {_with('calibrations')}, got --mechanism {mechanism}.")
        if delta != 0.0 and "delta" not in entry.ways:
            raise InputError(
                f"--delta is for {' and '.join(names_with('delta'))}, got --mechanism {mechanism}, whose time tells "
                "nothing anyway."
            )
        if numerics not in ("idealized", "grid"):
            raise InputError(f"--numerics must be idealized or grid, got '{numerics}'.")
        if numerics == "grid" and "grid" not in entry.ways:
            raise InputError(f"--numerics grid is for {', '.join(names_with('grid'))}, got '{mechanism}'.")
        statistics = {"mean": FrechetMean, "median": FrechetMedian}
        if statistic not in statistics:
            raise InputError(f"--statistic must be one of {', '.join(statistics)}, got '{statistic}'.")
        if statistic not in entry.statistics:
            raise InputError(
                f"--statistic {statistic} needs --mechanism {_with('statistics')}, got --mechanism {mechanism}."
            )
        inputs = [data, *([] if center == "origin" else [pathlib.Path(center)]), *([] if ledger is None else [ledger])]
        check_writable(out, overwrite, inputs)
        book = opened_ledger(ledger, dataset)
        space, records = read_records(data, manifold, array, header)
        # On the standard output: the error stream is closed while compiled code works.
        with OUTPUT.status("Compiling and sampling ..."), quiet_libraries(), jax.enable_x64(True):
            ball = GeodesicBall(space, read_center(center, space, header), radius)
            more = {"statistic": statistics[statistic]()} if len(entry.statistics) > 1 else {}
            chosen = mechanism_named(mechanism, ball, given, calibration, **more)
            numbers = math.prod(space.shape) * (2 if space.dtype_kind == "complex" else 1)
            # Room on the disk before the charge: a value that cannot be written would be lost.
            with reserved(out, record_room(numbers), replace=overwrite, changed=now()) as write:
                result = chosen.release(records, book, delta=delta, numerics=numerics)
                write(result.to_json())
    say(
        f"Wrote {shown(out)}: {statistic} by {type(chosen).__name__} on {space}, {parameter} = {given!r}, "
        f"n = {len(records)}, sensitivity {result.record['sensitivity']['value']:.4g}, scale "
        f"{result.record['scale']:.4g}."
    )


def _entry(name):
    """The registry's entry of a mechanism whose values are points of the manifold."""
    known = {other: entry for other, entry in MECHANISMS.items() if entry.on_manifold and "project" not in other}
    if name not in known:
        raise InputError(f"--mechanism must be one of {', '.join(known)}, got '{name}'.")
    return known[name]


def _with(field):
    """The names of the mechanisms that have several."""
    return " and ".join(name for name, entry in MECHANISMS.items() if len(getattr(entry, field)) > 1)
