"""``jaxgeodp attack``: what a plain mean tells of who is in it, beside a release; private, for the custodian alone."""

import dataclasses
import os
import pathlib
from typing import Annotated

import jax
import numpy as np
import typer
from rich.progress import Progress

from jaxgeodp.checks import InputError
from jaxgeodp.cli.ball_options import BALL, CENTER, RADIUS, BallOptions
from jaxgeodp.cli.choice import AUTO, Choice, released_mechanisms
from jaxgeodp.cli.completion import one_of, released_names
from jaxgeodp.cli.conventions import tell
from jaxgeodp.cli.file_options import reads
from jaxgeodp.cli.frame import OUTPUT, check_name, check_writable, one_sentence_errors, quiet_libraries, say
from jaxgeodp.cli.registries import listed
from jaxgeodp.files import write_atomically
from jaxgeodp.inference.attacked import mechanisms_of_description
from jaxgeodp.io.records import Source
from jaxgeodp.pictures.membership import picture_of_membership
from jaxgeodp.privacy import membership
from jaxgeodp.privacy.members import FALSE

_STATISTICS = {"mean": ("mean",), "median": ("median",), "description": ("mean", "variance", "covariance")}
_HEAD = """PRIVATE: for the custodian of the data alone. Nothing of this may be published, and the public ball may not
be chosen by it."""


@reads("Records, as for 'jaxgeodp release'.", "template", "missing", "expect_n")
def attack(
    source: Source,
    out: Annotated[pathlib.Path, typer.Option(help="The private report to write (text; a picture beside it).")],
    epsilon: Annotated[float | None, typer.Option(help="Privacy parameter of a release to compare; or")] = None,
    mu: Annotated[
        float | None, typer.Option(help="that of a Gaussian mechanism; without both none is compared.")
    ] = None,
    center: CENTER = None,
    radius: RADIUS = None,
    ball: BALL = None,
    mechanism: Annotated[
        str,
        typer.Option(
            help=f"Of the release: auto, adaptive, or {listed(released_mechanisms())}.", autocompletion=released_names
        ),
    ] = AUTO,
    statistic: Annotated[
        str,
        typer.Option(
            help="What is published: mean, median, or description (mean, variance and covariance).",
            autocompletion=one_of(*_STATISTICS),
        ),
    ] = "mean",
    digits: Annotated[int, typer.Option(help="Significant digits to which a plain mean would be rounded.")] = 3,
    population: Annotated[
        pathlib.Path | None,
        typer.Option(
            help="A file with PUBLIC records of the population, laid out as DATA. By default who asks is supposed to "
            "know its mean and covariance, as DATA have them."
        ),
    ] = None,
    draws: Annotated[int | None, typer.Option(help="Data sets to simulate for each test (1,000 to 20,000).")] = None,
    seed: Annotated[int, typer.Option(help="Of what is simulated.")] = 0,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace --out and its picture if they exist.")
    ] = False,
) -> None:
    """Measure how well somebody tells who is in a plain mean and in a release: a private report, not to publish."""
    with one_sentence_errors():
        if statistic not in _STATISTICS:
            raise InputError(f"--statistic must be one of {', '.join(_STATISTICS)}, got '{statistic}'.")
        if statistic == "description" and mechanism != AUTO:
            raise InputError("--statistic description chooses its own mechanisms: leave out --mechanism.")
        compared = epsilon is not None or mu is not None
        own = "mean" if statistic == "description" else statistic
        choice = Choice(mechanism, epsilon, mu, own, "tight", 0.0, "idealized") if compared else None
        public = BallOptions(center, radius, ball, source.center)
        if compared:
            public.check(source.manifold)
        elif mechanism != AUTO:
            raise InputError("--mechanism is for a private release: give --epsilon or --mu, too.")
        if population is not None and (str(population) == "-" or _same(population, source.path)):
            raise InputError(
                f"--population {population}: must be another file than the private one, not '-'; name a file of "
                "public records."
            )
        check_name(out)
        picture = out.with_suffix(".png")
        if picture == out:
            raise InputError(
                f"--out {out}: must not end in .png, which is for the picture beside it; name another file."
            )
        inputs = [*source.inputs, *public.files, *([] if population is None else [population])]
        for path in (out, picture):
            check_writable(path, overwrite, inputs)
        with quiet_libraries(), jax.enable_x64(True):
            with OUTPUT.status("Reading ..."):
                space, records = source.array()
                known = None if population is None else _records(population, source, space)
                mechanisms = _mechanisms(choice, public, space, source, len(records), statistic)
            with Progress(console=OUTPUT, transient=True) as bar:
                tasks = {}

                def report(name, done, total):
                    if name not in tasks:
                        tasks[name] = bar.add_task(name, total=total)
                    bar.update(tasks[name], completed=done)

                found = membership(
                    np.asarray(records),
                    space,
                    mechanisms,
                    statistics=_STATISTICS[statistic],
                    digits=digits,
                    population=known,
                    draws=draws,
                    seed=seed,
                    progress=report,
                )
            text, drawn = _report(source, space, found), picture_of_membership(found)
            write_atomically(out, text, private=True, replace=overwrite)
            write_atomically(picture, drawn, private=True, replace=overwrite)
    tell(
        private=True,
        report=str(out),
        n=found.n,
        record=found.place + 1,
        left_out=found.left_out,
        contradicted=found.violated,
        tests=[
            {
                "published": test.published,
                "area": test.told.area,
                "area_sd": test.told.area_sd,
                "found": test.found,
                "area_exposed": test.exposed.area,
                "found_exposed": test.found_exposed,
                "area_theory": test.theory[0],
                "area_at_most": test.most[0],
                "found_at_most": test.most[1],
            }
            for test in found.tests
        ],
    )
    for line in text.splitlines():
        say(line)
    if found.violated:
        say("BROKEN: draws contradict a guarantee of this library. Do not release by it; report it (SECURITY.md).")
    say(f"PRIVATE: this was printed for you and written to {out}, which only you may read, with {picture}.")


def _same(one, other) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _records(path, source: Source, space):
    """Return the records of another file, laid out as the data."""
    layout = source.layout
    own = Source(path, space, dataclasses.replace(layout, expect_n=None), source.prepare, None)
    return np.asarray(own.array()[1])


def _mechanisms(choice, public: BallOptions, space, source: Source, n, statistic) -> list:
    if choice is None:
        return []
    where = public.ball(space, source.layout)
    if statistic == "description":
        return mechanisms_of_description(where, choice.parameter, choice.strength, n)
    return [choice.made(where, n, public.shape(space))[0]]


def _report(source, space, found) -> str:
    lines = [
        _HEAD,
        f"{source.path.name}: {found.n} records on {space}.",
        f"Supposed: somebody knows a record and the {found.population}; sees what is published; and says whether the "
        "record is in it.",
        "typical, exposed: how often a record that is in it scores higher than one that is not (0.5 is guessing), of "
        f"records as they come and of record {found.place + 1}, which is told best; theory: the same from formulas.",
        f"found: how many members are found where {FALSE:.0%} of others are taken for members. at most: what no test "
        "exceeds, by the guarantee.",
        "",
        *found.lines(),
    ]
    off = 2.0 * max(told.area_sd for test in found.tests for told in (test.told, test.exposed))
    lines.append(f"Simulated numbers are off by up to about {off:.3f}, those of found by a few per cent of themselves.")
    for one in found.audits:
        lines.append(
            f"Audit, of somebody who knows all other records: draws say {max(one.lower_bound, 0.0):.3f} at least, "
            f"promised is {one.guarantee}."
        )
    if found.left_out:
        lines.append(f"Left out, as no points of {space}: {found.left_out}.")
    return "\n".join(lines) + "\n"
