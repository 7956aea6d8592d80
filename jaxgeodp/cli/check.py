"""``jaxgeodp check``: what a custodian should see of the records before a release; private, for nobody else's eyes."""

import pathlib
from typing import Annotated

import jax
import typer

from jaxgeodp.checks import InputError
from jaxgeodp.cli.ball_options import BALL, CENTER, RADIUS, BallOptions
from jaxgeodp.cli.frame import OUTPUT, check_writable, one_sentence_errors, quiet_libraries, say
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
from jaxgeodp.cli.preparing import MISSING, TEMPLATE, preparation
from jaxgeodp.files import write_atomically
from jaxgeodp.traced_programs import keeping_none


def check(
    data: Annotated[pathlib.Path, typer.Argument(help="Records, as for 'jaxgeodp release'.")],
    manifold: MANIFOLD,
    out: Annotated[
        pathlib.Path | None,
        typer.Option(help="The private report to write (text; a picture beside it); default: DATA-private.txt."),
    ] = None,
    center: CENTER = None,
    radius: RADIUS = None,
    ball: BALL = None,
    template: TEMPLATE = None,
    missing: MISSING = "center",
    array: ARRAY = None,
    header: HEADER = False,
    delimiter: DELIMITER = ",",
    columns: COLUMNS = None,
    size: SIZE = None,
    triangle: TRIANGLE = None,
    degrees: DEGREES = None,
    expect_n: EXPECT_N = None,
    person: PERSON = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace what is there under the name of --out.")
    ] = False,
) -> None:
    """Look at private records for mistakes, for the custodian alone: a private report, nothing to publish."""
    with one_sentence_errors():
        # Only here: what it needs takes long to import.
        from jaxgeodp.cli.findings import findings
        from jaxgeodp.cli.reading import check_manifold_name

        layout = Layout(array, header, delimiter, columns, size, triangle, degrees, expect_n, person)
        check_manifold_name(manifold)
        prepare = preparation(template, missing, manifold, layout)
        public = BallOptions(center, radius, ball, None if prepare is None else prepare.center)
        report = data.with_name(f"{data.stem}-private.txt") if out is None else out
        picture = report.with_suffix(".png")
        if picture == report:
            raise InputError(f"--out {report}: must not end in .png, as the picture beside it does.")
        for path in (report, picture):
            check_writable(path, overwrite, [data, *public.files, *([] if template is None else [template])])
        # How many records are points is private.
        with OUTPUT.status("Looking at the records ..."), quiet_libraries(), jax.enable_x64(True), keeping_none():
            text, drawn = findings(data, manifold, layout, public, prepare)
        write_atomically(report, text, private=True, replace=overwrite)
        if drawn is None:
            picture.unlink(missing_ok=True)  # of an earlier report, which --overwrite replaces
        else:
            write_atomically(picture, drawn, private=True, replace=overwrite)
    for line in text.splitlines():
        say(line)
    say(f"PRIVATE: this was printed for you and written to {report}, which only you may read.")
