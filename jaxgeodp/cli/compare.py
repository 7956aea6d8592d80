"""``jaxgeodp compare``: whether two descriptions are of populations with one mean; nothing is spent."""

import pathlib
from typing import Annotated

import jax
import typer

from jaxgeodp.cli.conventions import tell
from jaxgeodp.cli.frame import OUTPUT, one_sentence_errors, quiet_libraries, say

_FOLDER = "What 'jaxgeodp describe' wrote of"


def compare(
    first: Annotated[pathlib.Path, typer.Argument(help=f"{_FOLDER} one group.")],
    second: Annotated[pathlib.Path, typer.Argument(help=f"{_FOLDER} another group, of other people.")],
) -> None:
    """Test whether two described populations have one mean: no record is read, and nothing is spent."""
    with one_sentence_errors():
        from jaxgeodp.inference import Description, two_sample_test

        with OUTPUT.status("Simulating releases of both ..."), quiet_libraries(), jax.enable_x64(True):
            one, other = (Description.load(folder) for folder in (first, second))
            found = two_sample_test(one, other)
    tell(distance=float(found.distance), critical=float(found.critical), p_value=float(found.p_value))
    sizes = " and ".join(str(own.mean.record["n"]) for own in (one, other))
    say(f"Groups:    {first} and {second}, of {sizes} records on {one.manifold}")
    say(f"Distance:  {found.distance:.4g} between the released means")
    say(
        f"By chance: more than {found.critical:.4g} apart with probability 0.05, if the populations have one mean "
        "(of the populations clipped to their balls)"
    )
    if caution := of_other_balls(one.mean.record, other.mean.record):
        say(caution)
    say(f"p-value:   {found.p_value:.4g} (a parametric bootstrap of both releases; supposed are normal laws)")


def of_other_balls(one: dict, other: dict) -> str | None:
    """Return a caution where two records of means have other balls; None where they have one.

    Args:
        one, other: records of released means.
    """
    if one["ball"] == other["ball"]:
        return None
    radii = " and ".join(f"{own['ball']['radius']:.4g}" for own in (one, other))
    return (
        f"Balls:     they differ (radii {radii}): if one of them cuts off more records, the means differ even for the "
        "same people; describe both with one public ball to compare people"
    )
