"""``jaxgeodp audit``: a lower bound on what a mechanism spends, from draws."""

import math
from typing import Annotated

import typer
from rich.progress import Progress

from jaxgeodp.checks import InputError
from jaxgeodp.cli.ball_options import DOMAIN, radius_of
from jaxgeodp.cli.completion import audited_names, manifolds, one_of
from jaxgeodp.cli.frame import OUTPUT, one_sentence_errors, quiet_libraries, say
from jaxgeodp.cli.registries import MANIFOLD_HELP, SIZE_HELP, listed, with_several
from jaxgeodp.domains.geodesic_ball import GeodesicBall, assumption_limit
from jaxgeodp.locating import LocatedMechanism
from jaxgeodp.manifolds.names import manifold_named
from jaxgeodp.mechanisms.names import DEFAULTS, MECHANISMS, mechanism_named
from jaxgeodp.privacy import adversarial_neighbours
from jaxgeodp.privacy import audit as audited
from jaxgeodp.privacy.guarantee import ZeroConcentratedDP

# Of the limit of Assumption 1, where there is no domain.
_NEARLY = 0.9


def audit(
    manifold: Annotated[str, typer.Option(help=MANIFOLD_HELP, autocompletion=manifolds)],
    radius: Annotated[
        str, typer.Option(help="Radius of the public ball about the origin; or auto: a part of the budget finds it.")
    ],
    mechanism: Annotated[
        str,
        typer.Option(
            help=f"auto ({DEFAULTS['epsilon']} for epsilon, {DEFAULTS['mu']} for mu), {listed(MECHANISMS)}; with "
            "--radius auto the one that releases.",
            autocompletion=audited_names,
        ),
    ] = "auto",
    epsilon: Annotated[float | None, typer.Option(help="Of the mechanism, above 0.")] = None,
    mu: Annotated[float | None, typer.Option(help="Of the Gaussian mechanisms, above 0.")] = None,
    domain: DOMAIN = None,
    size: Annotated[int | None, typer.Option(help=SIZE_HELP)] = None,
    n: Annotated[int, typer.Option("--n", help="Number of records.")] = 5,
    calibration: Annotated[
        str,
        typer.Option(
            help=f"tight, theorem or paper, of {with_several('calibrations')}.",
            autocompletion=one_of("tight", "theorem", "paper"),
        ),
    ] = "tight",
    draws: Annotated[int, typer.Option(help="From each of the two laws, for each pair of neighbours.")] = 1_000_000,
    level: Annotated[float, typer.Option(help="Probability that a bound is wrong.")] = 1e-6,
    seed: Annotated[int, typer.Option(help="Of the draws, which are not private.")] = 0,
) -> None:
    """Lower bound on epsilon (mu, rho), from draws for invented neighbours: exit code 1 if the promise is broken."""
    with one_sentence_errors():
        if mechanism == "auto":
            mechanism = DEFAULTS["epsilon" if mu is None else "mu"]
        if mechanism not in MECHANISMS:
            raise InputError(f"--mechanism must be one of auto, {', '.join(MECHANISMS)}, got '{mechanism}'.")
        parameter = MECHANISMS[mechanism].parameter
        given = {"epsilon": epsilon, "mu": mu}[parameter]
        if given is None or None not in (mu, epsilon):
            raise InputError(f"--mechanism {mechanism} needs --{parameter} and no other privacy parameter.")
        if not 0.0 < level < 0.5:
            raise InputError(f"--level must be a number above 0 and below 0.5, got {level:g}.")
        found = {}
        with quiet_libraries():
            space = manifold_named(manifold, size)
            if radius == "auto":
                chosen, ball = _located(space, mechanism, parameter, given, domain)
                chosen.law(n)
            else:
                own = radius_of(None, radius, None, domain)
                assert own is not None  # --radius is required
                ball = GeodesicBall(space, space.origin, own)
                chosen = mechanism_named(mechanism, ball, given, calibration)
            pairs = adversarial_neighbours(ball, n)
        with quiet_libraries(), Progress(console=OUTPUT, transient=True) as bar:
            task = bar.add_task("Drawing", total=2 * draws * len(pairs))
            for name, (data, neighbour) in pairs.items():
                found[name] = audited(
                    chosen,
                    data,
                    neighbour,
                    draws,
                    level / len(pairs),
                    seed=seed,
                    progress=lambda done: bar.advance(task, done),
                )
    say(f"{type(chosen).__name__} on {space}, radius {radius}, n = {n}: {chosen.guarantee}")
    say("neighbours  lower bound  P(event | data)  P(event | neighbour)")
    for name, result in found.items():
        bound = "none" if math.isinf(result.lower_bound) and result.lower_bound < 0 else f"{result.lower_bound:.4f}"
        with_data, with_neighbour = result.probabilities
        say(f"{name:10}  {bound:>11}  {with_data:15.6f}  {with_neighbour:20.6f}")
    worst = max(found.values(), key=lambda result: result.lower_bound)
    verdict = "BROKEN" if worst.violated else "not contradicted"
    what = "rho" if isinstance(chosen.guarantee, ZeroConcentratedDP) else parameter
    say(
        f"{what} >= {worst.lower_bound:.4f} with confidence 1 - {level:g}, promised {worst.promised:g}: {verdict}. "
        f"{draws:,} draws from each law; finding nothing proves nothing.",
    )
    if worst.violated:
        raise typer.Exit(1)


def _located(space, mechanism, parameter, strength, domain):
    """Return the mechanism that finds its ball, and a ball with neighbours at its rim: the domain, or nearly all."""
    chosen = LocatedMechanism(space, mechanism, domain=domain, **{parameter: strength})
    limit = assumption_limit(space)
    return chosen, GeodesicBall(space, space.origin, min(chosen.reach, _NEARLY * limit))
