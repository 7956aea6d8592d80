"""``jaxgeodp describe``: a data file in; its private mean with variance, covariance and region, and a report, out."""

import pathlib
from typing import Annotated

import jax
import typer

from jaxgeodp.checks import InputError
from jaxgeodp.cli.ball_options import BALL, CENTER, DOMAIN, RADIUS_OR_AUTO, BallOptions, radius_of
from jaxgeodp.cli.conventions import tell
from jaxgeodp.cli.description_report import report_of_new
from jaxgeodp.cli.file_options import reads
from jaxgeodp.cli.frame import OUTPUT, check_writable, one_sentence_errors, quiet_libraries, say
from jaxgeodp.cli.ledger import DATASET, LEDGER, opened_ledger
from jaxgeodp.cli.room import description_room
from jaxgeodp.files import all_reserved, folder_for
from jaxgeodp.io.records import Source
from jaxgeodp.manifolds import Euclidean
from jaxgeodp.privacy.clock import now

_REPORT = "report.html"
_FILES = tuple(description_room(Euclidean(1)))


@reads("Records, as of 'jaxgeodp release'.", "expect_n")
def describe(
    source: Source,
    out: Annotated[pathlib.Path, typer.Option(help="The folder for three records, a summary and report.html.")],
    epsilon: Annotated[float | None, typer.Option(help="Privacy parameter of all together, pure; or")] = None,
    mu: Annotated[float | None, typer.Option(help="that of Gaussian noise: mu^2/2-zCDP.")] = None,
    center: CENTER = None,
    radius: RADIUS_OR_AUTO = None,
    domain: DOMAIN = None,
    ball: BALL = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files of --out that exist.")] = False,
    ledger: LEDGER = None,
    dataset: DATASET = None,
) -> None:
    """Release mean, variance and covariance with one budget, and say what the mean is worth."""
    with one_sentence_errors():
        if (epsilon is None) == (mu is None):
            raise InputError("give either --epsilon or --mu, not both.")
        found = "auto" if (center, radius, ball) == (None, None, None) else None
        center, radius = found or center, found or radius
        public = BallOptions(center, radius_of(center, radius, ball, domain), ball)
        public.check(source.manifold)
        inputs = [*source.inputs, *public.files, *([] if ledger is None else [ledger])]
        if out.is_dir():
            for name in _FILES:
                check_writable(out / name, overwrite, inputs)
        else:
            check_writable(out, overwrite, inputs)  # made as a folder
        book = opened_ledger(ledger, dataset)
        from jaxgeodp.inference import describe as describe_records

        with quiet_libraries(), jax.enable_x64(True):
            with OUTPUT.status("Reading ..."):
                space, records = source.array()
                where = None if center == "auto" else public.ball(space, source.layout)
            sizes = {out / name: size for name, size in description_room(space).items()}
            # Before the charge: a part that cannot be written would be lost.
            with folder_for(out, now()), all_reserved(sizes, replace=overwrite, changed=now()) as write:
                with OUTPUT.status("Compiling and releasing ..."):
                    description = describe_records(
                        records, space, epsilon=epsilon, mu=mu, ball=where, domain=domain, ledger=book
                    )
                    for name, text in description.files.items():
                        write[out / name](text)
                with OUTPUT.status("Simulating releases for the region ..."):
                    rows, page = report_of_new(description)
                    write[out / _REPORT](page)
    tell(folder=str(out), summary=rows)
    for name, words in rows.items():
        say(f"{name}: {words}")
    say(f"Wrote {', '.join(_FILES)} to {out}.")
