"""``jaxgeodp release``: a data file in, a private mean or median and its record out."""

import math
import pathlib
from typing import Annotated

import jax
import typer

from jaxgeodp.checks import InputError
from jaxgeodp.cli.ball_options import BALL, CENTER, RADIUS, BallOptions
from jaxgeodp.cli.choice import AUTO, Choice
from jaxgeodp.cli.frame import (
    OUTPUT,
    check_writable,
    one_sentence_errors,
    quiet_libraries,
    record_room,
    say,
    shown,
)
from jaxgeodp.cli.layout import (
    ARRAY,
    COLUMNS,
    DEGREES,
    DELIMITER,
    EXPECT_N,
    HEADER,
    MANIFOLD,
    PERSON,
    SIZE,
    TRIANGLE,
    Layout,
)
from jaxgeodp.cli.ledger import DATASET, LEDGER, opened_ledger
from jaxgeodp.cli.preparing import MISSING, TEMPLATE, preparation
from jaxgeodp.cli.reading import check_manifold_name, read_persons, read_records
from jaxgeodp.domains.persons import person_places
from jaxgeodp.files import reserved, write_atomically
from jaxgeodp.privacy.clock import now
from jaxgeodp.releases.mechanism import release_in
from jaxgeodp.releases.ways import way_of


def release(
    data: Annotated[
        pathlib.Path,
        typer.Argument(
            help="Records: .npy/.npz/.csv/.parquet (a line or row is a record), .tps/.nts; landmarks as (n,k,2), "
            "with --template also (n,k,3); SPD as (n,k,k) or vech rows."
        ),
    ],
    manifold: MANIFOLD,
    out: Annotated[pathlib.Path, typer.Option(help="The release record to write (JSON).")],
    epsilon: Annotated[
        float | None, typer.Option(help="Privacy parameter, above 0, of all mechanisms but the Gaussian ones.")
    ] = None,
    mu: Annotated[float | None, typer.Option(help="Privacy parameter of the Gaussian mechanisms, above 0.")] = None,
    center: CENTER = None,
    radius: RADIUS = None,
    ball: BALL = None,
    template: TEMPLATE = None,
    missing: MISSING = "center",
    statistic: Annotated[str, typer.Option(help="mean or, with kng, median.")] = "mean",
    mechanism: Annotated[
        str,
        typer.Option(
            help="laplace, kng, wrapped, tangent, wrapped-gaussian or gaussian; or auto: the one with the smallest "
            "expected error, as 'jaxgeodp plan' finds it from public numbers."
        ),
    ] = AUTO,
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
    array: ARRAY = None,
    header: HEADER = False,
    delimiter: DELIMITER = ",",
    columns: COLUMNS = None,
    size: SIZE = None,
    triangle: TRIANGLE = None,
    degrees: DEGREES = None,
    expect_n: EXPECT_N = None,
    person: PERSON = None,
    plot: Annotated[pathlib.Path | None, typer.Option(help="Also a picture of the value (.png).")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace --out and --plot if they exist.")] = False,
    ledger: LEDGER = None,
    dataset: DATASET = None,
) -> None:
    """Release the Frechet mean or median of a data file with differential privacy for each record."""
    with one_sentence_errors():
        choice = Choice(mechanism, epsilon, mu, statistic, calibration, delta, numerics)
        layout = Layout(array, header, delimiter, columns, size, triangle, degrees, expect_n, person)
        check_manifold_name(manifold)
        prepare = preparation(template, missing, manifold, layout)
        public = BallOptions(center, radius, ball, None if prepare is None else prepare.center)
        public.check(manifold)
        inputs = [data, *public.files, *(path for path in (template, ledger) if path is not None)]
        check_writable(out, overwrite, inputs)
        if plot is not None:
            if plot.suffix.lower() != ".png":
                raise InputError(f"--plot {plot}: must end in .png.")
            check_writable(plot, overwrite, [out, *inputs])
        book = opened_ledger(ledger, dataset)
        # On the standard output: the error stream is closed while compiled code works.
        with OUTPUT.status("Compiling and sampling ..."), quiet_libraries(), jax.enable_x64(True):
            space, records = read_records(data, manifold, layout, prepare)
            persons = read_persons(data, layout, len(records))
            # The number of persons is public, as that of records is.
            count = len(records) if persons is None else person_places("--person", persons, len(records))[1]
            chosen, why = choice.made(public.ball(space, layout), count)
            numbers = math.prod(space.shape) * (2 if space.dtype_kind == "complex" else 1)
            way = way_of(type(chosen).__name__, delta, numerics)
            # Room on the disk before the charge: a value that cannot be written would be lost.
            with reserved(out, record_room(numbers), replace=overwrite, changed=now()) as write:
                more = why | ({} if prepare is None else prepare.described)
                result = release_in(chosen, way, records, book, persons=persons, more=more)
                write(result.to_json())
        if plot is not None:
            from jaxgeodp.pictures import picture_of  # Matplotlib

            write_atomically(plot, picture_of(result.record), replace=overwrite, changed=result.record["created"])
    own = result.record["statistic"]  # TangentLaplace has another mean, which auto may take
    what = own if isinstance(own, str) and own.startswith("mean of") else statistic
    whose = "" if persons is None else " persons"
    say(
        f"Wrote {shown(out)}: {what} by {type(chosen).__name__} on {space}, {choice.parameter} = "
        f"{choice.strength!r}, n = {count}{whose}, sensitivity {result.record['sensitivity']['value']:.4g}, scale "
        f"{result.record['scale']:.4g}."
    )
