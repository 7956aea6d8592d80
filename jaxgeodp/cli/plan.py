"""``jaxgeodp plan``: the expected error of every mechanism, before any data are touched."""

import dataclasses
import pathlib
from typing import Annotated, Any

import typer

from jaxgeodp.checks import InputError
from jaxgeodp.cli.ball_options import BALL, DOMAIN, RADIUS_OR_AUTO, radius_of
from jaxgeodp.cli.completion import manifolds
from jaxgeodp.cli.conventions import tell
from jaxgeodp.cli.frame import OUTPUT, check_picture, one_sentence_errors, quiet_libraries, say
from jaxgeodp.cli.plan_located import plan_located
from jaxgeodp.cli.progress import progress_bar
from jaxgeodp.cli.registries import MANIFOLD_HELP, SIZE_HELP
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.files import write_atomically
from jaxgeodp.io.balls import manifold_in, read_ball, read_shape
from jaxgeodp.io.tables import kind_of
from jaxgeodp.manifolds.names import manifold_named
from jaxgeodp.mechanisms import plan_curves, plan_in_steps, plan_mechanisms
from jaxgeodp.mechanisms.names import MECHANISMS, unbiased_names
from jaxgeodp.mechanisms.populations import geometric_mean, is_better
from jaxgeodp.privacy.guarantee import GaussianDP

# At which mu is compared with epsilon.
_DELTA = 1e-6


def plan(
    n: Annotated[int, typer.Option("--n", help="Number of records.")],
    epsilon: Annotated[
        float | None, typer.Option(help="Privacy parameter of the pure mechanisms, above 0; or --mu, or both.")
    ] = None,
    manifold: Annotated[
        str | None,
        typer.Option(help=f"{MANIFOLD_HELP} Default: that of the file --ball.", autocompletion=manifolds),
    ] = None,
    center: Annotated[
        str | None, typer.Option(help="auto, with --radius auto: what does it cost to find the ball?")
    ] = None,
    radius: RADIUS_OR_AUTO = None,
    domain: DOMAIN = None,
    ball: BALL = None,
    size: Annotated[int | None, typer.Option(help=SIZE_HELP)] = None,
    mu: Annotated[float | None, typer.Option(help="Privacy parameter of the Gaussian mechanisms.")] = None,
    spread: Annotated[
        float, typer.Option(help="How far reference records lie from the centre, in units of the radius.")
    ] = 0.5,
    draws: Annotated[int, typer.Option(help="Simulated releases per mechanism.")] = 1000,
    plot: Annotated[
        pathlib.Path | None,
        typer.Option(help="Also a picture (.png): errors against the radius, n and epsilon around the given ones."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file --plot if it exists.")] = False,
) -> None:
    """Expected error of every mechanism, without data: choose before you spend privacy."""
    with one_sentence_errors():
        if epsilon is None and mu is None:
            raise InputError("jaxgeodp plan needs --epsilon or --mu, or both.")
        given = radius_of("auto" if radius == "auto" and center is None else center, radius, ball, domain)
        if radius == "auto":
            if plot is not None:
                raise InputError("--plot needs a public ball; leave it out with --center auto --radius auto.")
            with quiet_libraries():
                plan_located(_space(manifold, size, None), n, epsilon, mu, domain)
            return
        if center not in (None, "auto"):
            raise InputError(
                "jaxgeodp plan: --center can only be auto, as the errors do not depend on the centre; leave it out."
            )
        if (given is None) == (ball is None):
            raise InputError("jaxgeodp plan: give either --radius or --ball, not both.")
        if plot is not None:
            check_picture(plot, overwrite, [] if ball is None else [ball])
        with OUTPUT.status("Compiling and simulating every mechanism ..."), quiet_libraries():
            space = _space(manifold, size, ball)
            public = _public_ball(space, given, ball)
            plans = plan_mechanisms(public, n, epsilon, mu, spread, draws)
        if plot is not None:
            from jaxgeodp.pictures import picture_of_plan  # Matplotlib

            with progress_bar("Other radii, n and budgets", None) as report, quiet_libraries():
                curves = plan_curves(public, n, epsilon, mu, spread, draws, report)
            write_atomically(plot, picture_of_plan(curves), replace=overwrite)
    tell(
        manifold=str(space),
        radius=public.radius,
        n=n,
        plans=[
            {name: None if value != value else value for name, value in dataclasses.asdict(row).items()}
            for row in plans
        ],
    )
    rows = [("mechanism", "guarantee", "sensitivity", "scale", "support", "expected error", "/ radius")]
    for row in plans:
        support = "all" if row.support is None else f"{row.support:.4g}"
        error = f"{row.error:.4g} +- {2 * row.standard_error:.1g}"
        if not row.refusal:
            share = f"{row.error / public.radius:.2g}" if MECHANISMS[row.name].on_manifold else "-"
            numbers = (f"{row.sensitivity:.4g}", f"{row.scale:.4g}", support, error, share)
            rows.append((row.mechanism, row.guarantee, *numbers))
    _say_table(rows)
    for row in plans:
        if row.refusal:
            say(f"{row.mechanism}: {row.refusal.removeprefix(f'{row.mechanism}: ')}")
    # In the order of their errors; the Gaussian mechanisms promise something else.
    pure = [row for row in plans if row.guarantee.startswith("epsilon") and row.error == row.error]
    if pure:
        best = pure[0]
        equal = [
            row.mechanism for row in pure[1:] if row.error - best.error < 2 * (row.standard_error + best.standard_error)
        ]
        tie = f"; within the simulation's error of it: {', '.join(equal)}" if equal else ""
        say(
            f"Smallest expected error at epsilon = {epsilon:g}: {best.mechanism}{tie} (n = {n}, {space}, "
            f"radius {public.radius:g}, records up to {spread:g} radii from the centre)."
        )
    if mu is not None:
        weaker = GaussianDP(mu).to_approximate(_DELTA)
        say(
            f"mu = {mu:g} and epsilon = {mu:g} are different guarantees, and mu is weaker in the tails: it implies "
            f"epsilon = {weaker.epsilon:.3g} but for a probability of {_DELTA:g}."
        )
    for parameter, strength in {"epsilon": epsilon, "mu": mu}.items():
        found = None if strength is None else plan_in_steps(public, n, **_named(parameter, strength))
        if found:
            _say_steps(found, f"{parameter} = {strength:g}")
        if not (found and is_better(found)):
            _say_taken([row for row in plans if row.guarantee.startswith(parameter) and row.error == row.error], space)
    if plot is not None:
        say(f"Wrote {plot}: the same errors for other radii, n and budgets.")


def _named(parameter, strength) -> dict[str, Any]:
    return {parameter: strength}


def _say_taken(plans, space):
    """Print which mechanism a release takes by itself, where that is not the best of the table."""
    itself = [row for row in plans if row.name in unbiased_names(space)]
    if itself and plans[0] is not itself[0]:
        say(
            f"'jaxgeodp release' takes {itself[0].mechanism} ({itself[0].guarantee}) where no --mechanism is named: "
            f"{plans[0].mechanism} releases a point that may be off the mean where records fill a large ball."
        )


def _say_steps(found, budget):
    """Print the expected errors of steps for each reference population."""
    heads = f"in steps (adaptive), {budget}: records", "in steps", "one release", "centre", "ratio"
    rows = [(own.population.words, *(f"{x:.3g}" for x in own[1:]), f"{own.ratio:.2f}") for own in found]
    _say_table([heads, *rows])
    alone = [own.population.words for own in found if own.center <= min(own.steps, own.one)]
    taken = "auto takes steps" if is_better(found) else "auto takes one release"
    near = f"; the public centre alone is expected to be as near for: {', '.join(alone)}" if alone else ""
    say(
        "Offset and spread in radii, mean distances from the mean, simulated in flat space. Ratio "
        f"{geometric_mean(found):.2f} on the whole: {taken}{near}."
    )


def _say_table(rows):
    widths = [max(len(cells[column]) for cells in rows) for column in range(len(rows[0]))]
    for cells in rows:
        say("  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip())


def _space(name, size, ball):
    """Return the manifold that is named, or that of the ball."""
    if ball is not None and size is None and (name is None or name == kind_of(manifold_in(ball))):
        return manifold_in(ball)
    if name is not None:
        return manifold_named(name, size)
    if size is not None:
        raise InputError("--size is for --manifold; the file of --ball states its own.")
    return manifold_in(ball)


def _public_ball(space, radius, file):
    if file is not None:
        if read_shape(file, space) is not None:
            say("The file has a shape, which 'jaxgeodp release' takes; the errors here are without it.")
        return read_ball(file, space)
    return GeodesicBall(space, space.origin, radius)
