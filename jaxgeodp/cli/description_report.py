"""Report of a description, in words and as one page, for `describe` and `show`."""

import numpy as np

from jaxgeodp.nested_lists import to_lists
from jaxgeodp.pictures.plain_words import in_plain_words
from jaxgeodp.privacy.release import record_digest
from jaxgeodp.privacy.silence import silent

_KINDS = {"pure": "pure differential privacy", "zcdp": "zero-concentrated differential privacy"}
# Principal geodesics that the report shows.
_SHOWN = 2
# And that are told of.
_TOLD = 5
# Standard deviations that are seen in a picture.
_SEEN = 0.75
# Share of clipped records that is not worth a word.
_FEW = 0.01
_ACROSS = ("rim of the region", "released", "opposite rim")
_DEVIATIONS = tuple(f"{word} standard deviations" for word in ("-2", "0", "+2"))


def summary_and_page(description) -> tuple[dict[str, str], str]:
    """Return the summary of a description, by name, and its page in HTML: all that is released, and nothing else.

    Args:
        description: what `jaxgeodp.inference.describe` gives, or `Description.load`.
    """
    rows, geodesics = _summary(description)
    return rows, _page(description, rows, geodesics)


def report_of_new(description) -> tuple[dict[str, str], str]:
    """Return what `summary_and_page` does of a description that was just released.

    Of values for which that cannot be computed it says so: all parts have been paid for and written.
    """
    from jaxgeodp.pictures.elements import element, page
    from jaxgeodp.pictures.page import table
    from jaxgeodp.pictures.style import STYLE

    with silent():
        try:
            return summary_and_page(description)
        except Exception:
            rows = _promised(description) | {"Summary": "could not be computed of what was released"}
            title = "Mean with its spread, released with differential privacy"
            return rows, page(title, element("h1", title), table(rows), style=STYLE)


def _promised(description):
    """Return the rows that are public."""
    promise = description.guarantee
    kind = next(name for name in ("epsilon", "rho") if name in promise)
    return {
        "Records": f"{description.mean.record['n']}, on {description.manifold}",
        "Promise": f"{_KINDS[promise['kind']]}, {kind} = {promise[kind]:g}{_as_mu(promise)}, of all three together",
        "In plain words": in_plain_words(promise),
    }


def _summary(description):
    """Return the summary of a description, and its principal geodesics."""
    from jaxgeodp.inference import principal_geodesics

    rows = _promised(description)
    words = "; ".join(filter(None, (_of_steps(description), _against_center(description))))
    rows |= {"Mean": words} if words else {}
    if not description.has_spread:
        return rows | {"Spread": "could not be computed about the mean that was released; there is no region"}, None
    region, own = description.region, principal_geodesics(description)
    population = description.population
    most = _most(population)
    rows |= {
        "Region": f"the mean of the population is within {region.radius:.4g} of the released mean, at level "
        f"{region.level:g} (a parametric bootstrap; of the population clipped to the ball)",
        "Spread": f"hidden by its noise: root mean square distance of at most about {most}"
        if population.hidden
        else f"root mean square distance {float(np.sqrt(population.variance)):.4g} of the records, clipped to the "
        f"ball, and at most about {most}{_beyond(population)}",
        "Principal geodesics": "their noise hides them"
        if _hides_all(population, own)
        else "; ".join(_told(own, place) for place in range(min(_TOLD, len(own.variances))))
        + f" (of records clipped to the ball; intervals for all of them together, at level {own.level:g})",
    }
    return rows, own


def _of_steps(description) -> str:
    """Return a note on a mean that was released in steps; empty for others."""
    if "steps" not in description.mean.record:
        return ""
    return "of records shortened about a released point, in steps; biased where many far records lie on one side"


def _against_center(description) -> str:
    """Return a note on a mean that may be worth less than the centre of its ball; empty for others."""
    outside, center_is_nearer = description.against_center
    center = "centre of the ball that was found" if description.public["located"] else "public centre"
    if not (outside or center_is_nearer):
        return ""
    if not center_is_nearer:
        return "outside the ball, in which the mean of the records, clipped to it, lies: noise has moved it there"
    nearer = f"the {center} is expected to be nearer to the mean of the records, clipped to the ball"
    return f"outside the ball: {nearer}" if outside else f"{nearer}, as noise alone may have moved this one so far"


def _most(population) -> str:
    """Return in words what a root mean square distance hardly exceeds, and whether the ball alone says so."""
    words = f"{float(np.sqrt(population.most_variance)):.4g}"
    return f"{words}, the radius of the ball" if population.most_variance >= population.bound else words


def _hides_all(population, own) -> bool:
    return population.hidden or not population.kept or bool(np.all(own.hidden))


def _told(own, place) -> str:
    """Return a principal geodesic in words; if noise hides it, a bound of its standard deviation."""
    low, high = np.sqrt(own.intervals[place])
    if own.hidden[place]:
        return f"number {place + 1} is hidden by noise, standard deviation of at most {high:.4g}"
    return (
        f"{own.shares[place]:.0%} of the variance, standard deviation {np.sqrt(own.variances[place]):.4g} "
        f"({low:.4g} to {high:.4g})"
    )


def _as_mu(promise) -> str:
    return f" (that is mu^2/2 for mu = {np.sqrt(2.0 * promise['rho']):.4g})" if "rho" in promise else ""


def _beyond(population) -> str:
    """Return a note if the ball cuts off more than a few; else an empty text."""
    if population.law is None or population.clipped < _FEW:
        return ""
    if population.wider:
        return "; most of the population may lie beyond the ball, and how wide it is cannot be seen"
    whole = float(np.sqrt(np.trace(population.law)))
    return (
        f"; if the population is normal, about {population.clipped:.0%} of it lie beyond the ball, and count as at its "
        f"rim, and it has {whole:.4g} without it"
    )


def _page(description, rows, own):
    from jaxgeodp.pictures import page_of_description  # Matplotlib

    mean, made = description.mean.record, _made(description)
    if own is None:
        return page_of_description(mean, rows, [], made)
    radius, drawn = description.region.radius, []
    if _hides_all(description.population, own):
        drawn.append(("No principal geodesic is drawn, as noise hides them", []))
    else:
        length = radius / float(np.sqrt(own.variances[0]))
        times = max(1, round(_SEEN / length))  # a small region shows nothing
        title = "How far the mean may be off: to the rim of its region, both ways along principal geodesic 1"
        title += f"; {times} times as far, so that it is seen" if times > 1 else ""
        across = [f"{words}, {times} times as far" if times > 1 and "rim" in words else words for words in _ACROSS]
        drawn.append((title, _beside(mean, own.along(0, [-times * length, 0.0, times * length]), across)))
        for place in range(min(_SHOWN, len(own.variances))):
            if own.hidden[place]:
                drawn.append((f"Principal geodesic {place + 1} is not drawn, as noise hides it", []))
            else:
                title = f"Along principal geodesic {place + 1}: -2, 0 and +2 standard deviations"
                drawn.append((title, _beside(mean, own.along(place, [-2.0, 0.0, 2.0]), _DEVIATIONS)))
    return page_of_description(mean | {"region": radius}, rows, drawn, made)


def _made(description):
    """Return rows of the report: how each part was released, and what its guarantee depends on."""
    public, ball = description.public, description.mean.record["ball"]
    searched = "ball that was found" if public["located"] else "public ball"
    rows = {
        "Neighbours": f"{public['guarantee']['adjacency']}; the number of records is public",
        "Records": f"clipped to the {searched}, of radius {ball['radius']:.6g}",
    }
    digests = "; ".join(f"{name} {record_digest(own.record)}" for name, own in description.releases.items())
    rows |= {
        "The custodian's word": f"{'' if public['located'] else 'that the ball was chosen without the records, '}that "
        "no person has two of the records, and that all other releases from these records are in a ledger",
        "Digests, which a ledger has": digests,
        "Released by": "name, date: ____________________",
        "Approved by": "name, date: ____________________",
    }
    for name, own in description.releases.items():
        record, promise = own.record, own.record["guarantee"]
        part = next(f"{word} = {promise[word]:.6g}" for word in ("epsilon", "rho") if word in promise)
        rows[name.capitalize()] = (
            f"{part} of it; {record['mechanism']}, {promise['theorem']}; sampler: {record['sampler']['name']}, "
            f"{record['sampler']['exactness']}; {record['numerics']['note']}; of sensitivity: "
            f"{record['sensitivity']['formula']}"
        )
    return rows


def _beside(mean, points, captions):
    """Return records for pictures side by side: numbers have one scale of colours, and ellipsoids one size."""
    grey = "; grey: centre of the ball" if mean["manifold"]["name"] == "PlanarShapes" else ""
    limit = float(np.max(np.linalg.norm(points, 2, axis=(1, 2)) if points.ndim == 3 else np.abs(points)))
    return [
        mean | {"value": to_lists(point), "limit": limit, "caption": caption + grey}
        for point, caption in zip(points, captions, strict=True)
    ]
