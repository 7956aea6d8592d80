"""``jaxgeodp simulate``: the mean error of one mechanism, for research."""

import math
from typing import Annotated

import typer

from jaxgeodp.checks import InputError
from jaxgeodp.cli.completion import manifolds, one_of, simulated_names
from jaxgeodp.cli.frame import one_sentence_errors, quiet_libraries, say
from jaxgeodp.cli.progress import peak_memory, replicates_bar
from jaxgeodp.cli.registries import MANIFOLD_HELP, SIZE_HELP, with_several
from jaxgeodp.mechanisms.names import MECHANISMS


def simulate(
    manifold: Annotated[str, typer.Option(help=MANIFOLD_HELP, autocompletion=manifolds)],
    radius: Annotated[float, typer.Option(help="Radius of the public ball.")],
    n: Annotated[int, typer.Option("--n", help="Records per data set.")],
    mechanism: Annotated[
        str,
        typer.Option(
            help=f"{', '.join(MECHANISMS)}, or located or located-gaussian, which find their ball; see docs/sweeps.md.",
            autocompletion=simulated_names,
        ),
    ],
    size: Annotated[int | None, typer.Option(help=SIZE_HELP)] = None,
    epsilon: Annotated[float | None, typer.Option(help="Privacy parameter of the pure mechanisms.")] = None,
    mu: Annotated[float | None, typer.Option(help="Privacy parameter of the Gaussian mechanisms.")] = None,
    calibration: Annotated[
        str,
        typer.Option(
            help=f"tight, theorem or paper, of {with_several('calibrations')}.",
            autocompletion=one_of("tight", "theorem", "paper"),
        ),
    ] = "tight",
    data: Annotated[
        str,
        typer.Option(
            help="polar, wishart, outlines or digits.", autocompletion=one_of("polar", "wishart", "outlines", "digits")
        ),
    ] = "polar",
    replicates: Annotated[int, typer.Option(help="Independent data sets.")] = 1000,
    seed: Annotated[int, typer.Option(help="All numbers follow from it.")] = 0,
) -> None:
    """Mean error of one mechanism over synthetic data sets: reproducible, hence not private."""
    with one_sentence_errors():
        from jaxgeodp.experiments.replicates import run_replicates
        from jaxgeodp.experiments.sweep import Sweep
        from jaxgeodp.mechanisms.ball_mechanism import BallMechanism

        if (epsilon is None) == (mu is None):
            raise InputError("simulate: give either --epsilon or --mu, not both.")
        description = Sweep(
            manifold, radius, (mechanism,), (n,), size, calibrations=(calibration,), data=data, replicates=replicates,
            seed=seed, epsilon=() if epsilon is None else (epsilon,), mu=() if mu is None else (mu,),
        )  # fmt: skip
        (cell,) = description.cells()
        if cell.calibration != calibration:
            raise InputError(f"--calibration is for {with_several('calibrations')}, got --mechanism {mechanism}.")
        with quiet_libraries(), replicates_bar() as report:
            generator = description.generator()
            chosen = description.mechanism(cell, generator.ball)
            done = 0

            def advance(count):
                nonlocal done
                done += count
                report(cell.label, done, replicates)

            errors = run_replicates(chosen, generator, n, replicates, seed, cell.label, progress=advance)
    for name, words in {"distance": "distance", "euclidean": "Euclidean distance"}.items():
        values = getattr(errors, name)
        values = values[values == values]
        if values.size > 1:
            error = values.std(ddof=1) / math.sqrt(values.size)
            mean = f"{values.mean():.5g} +- {2 * error:.1g} (two standard errors)"
            say(f"mean {words} of a release from the mean: {mean}")
    told = isinstance(chosen, BallMechanism)
    scale = f"scale {chosen.scale(n):.4g}, " if told else ""
    proposals = f", {errors.proposals.mean():.3g} proposals per draw" if told else ""
    say(
        f"{cell.label}: {scale}{errors.on_manifold.mean():.1%} of values on "
        f"{generator.ball.manifold}{proposals}; {peak_memory()}"
    )
