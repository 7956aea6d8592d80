"""What a release is worth and how far off it may be, in lines: after a release, and again by ``show``."""

from collections.abc import Iterator

from jaxgeodp.pictures.plain_words import in_plain_words, in_unit, no_nearer
from jaxgeodp.units import unit_of


def worth(record: dict) -> Iterator[str]:
    """Yield in plain words what the guarantee of a release record is worth."""
    if words := in_plain_words(record["guarantee"], unit_of(record)):
        yield f"worth:   {words}"


def how_far(record: dict) -> Iterator[str]:
    """Yield the expected error that a release record states, beside the radius of its ball."""
    if "toward" in (drawn := record.get("post_processing", {})):
        yield f"drawn:   towards a public point, {drawn['share']:.3g} of the way is left"
        yield f"ledger:  knows {drawn['of']}"
        yield f"error:   {drawn['expected_error']:.3g} (root mean square), if the mean is as near there as was supposed"
    elif populations := record.get("expected_errors"):
        least, most = (f"{own(populations.values()):.3g}" for own in (min, max))
        yield (
            f"error:   {least} to {most} on average{in_unit(record)}, by how the records lie (for reference "
            "populations in the ball, in flat space; what records outside it would move is not in it: 'jaxgeodp check' "
            "shows them)"
        )
    elif stated := record.get("expected_error"):
        ball = f"; the ball's radius is {record['ball']['radius']:.3g}" if record.get("ball") else ""
        yield (
            f"error:   {stated['mean']:.3g} on average, {stated['level']:.0%} below {stated['radius']:.3g}"
            f"{in_unit(record)} (for public reference records in the ball{ball}; what records outside it would move is "
            "not in it: 'jaxgeodp check' shows them)"
        )
        if words := no_nearer(record):
            yield f"         {words}"
