"""Self-contained HTML page about a release: a one-page summary, how it was made and how to verify it."""

import json
import math

import numpy as np

from jaxgeodp.pictures.drawn import picture_of
from jaxgeodp.pictures.elements import Element, element, image, page
from jaxgeodp.pictures.lines import SEARCH, caption_of, is_found, is_moment, landmarks_to_turn, lines_of
from jaxgeodp.pictures.mesh_page import TURN_MESH, mesh_canvas
from jaxgeodp.pictures.plain_words import in_plain_words, in_unit, in_words, no_nearer
from jaxgeodp.pictures.style import STYLE, TURN
from jaxgeodp.units import several, unit_of

_OF_NOTEBOOKS = 0.7
_PLAIN = {"FrechetMean": "mean", "FrechetMedian": "median"}


def page_of(record: dict, digest: str, surface: tuple[np.ndarray, np.ndarray] | None = None) -> str:
    """Return a page about one release: picture, guarantee, how it was made and how to verify it.

    Args:
        record: `Release.record`, or the same read from a file.
        digest: SHA-256 by which a ledger knows the record: `jaxgeodp.privacy.record_digest` of it.
        surface: vertices (V, 3) and triangles (F, 3) that the value stands for, to be turned instead of its lines.

    Returns:
        HTML that needs no other file and loads nothing.
    """
    name = record["manifold"]["name"]
    lines = lines_of(record) or landmarks_to_turn(record)
    if surface is not None:
        shown, script = (
            [
                mesh_canvas(*surface, np.arange(len(surface[0]))),
                element("p", "Turn it by hand; zoom by the wheel.", id="turn"),
            ],
            TURN_MESH,
        )
    elif lines is None:
        shown, script = [image(picture_of(record), "the released value")], ""
    else:
        shown, script = (
            [_canvas(lines), element("p", f"Turn it by hand; {caption_of(record)}.".replace("\n", "; "))],
            TURN,
        )
    unit = unit_of(record)
    places = f" places for {several(unit)}" if "count" in record else f" {several(unit)}"
    promise = in_words(record["guarantee"], _change(record, unit))
    rows = {
        "Statistic": _words(record["statistic"]),
        "Of": f"{record['n']}{places} on {name}{_parameters(record['manifold'])}{_weighted(record)}",
        "Promise": promise,
        "Per distance": _metric(record),
        "In plain words": in_plain_words(record["guarantee"], unit),
        "What it cost": _cost(record),
        "How far off": _how_far(record),
        "Proven by": record["guarantee"].get("theorem", ""),
        "Neighbours": record["guarantee"].get("adjacency", ""),
        "Supposed": _supposed(record),
        "The custodian's word": _custodians_word(record, unit),
        "Made": f"by {record['mechanism']}, {record['created']}",
        "Digest": digest,
        "Released by": "name, date: ____________________",
        "Approved by": "name, date: ____________________",
    }
    made = {
        "Mechanism": record["mechanism"],
        "Chosen by": record.get("chosen", {}).get("by", ""),
        "Records made ready by": record.get("prepared", {}).get("by", ""),
        "Expected errors": _errors(record.get("chosen", {}).get("expected_errors", {})),
        "Drawn towards a public point": _drawn(record.get("post_processing", {})),
        "Expected errors of steps": _errors(record.get("expected_errors", {})),
        "Over one release": _errors(record.get("chosen", {}).get("over_one_release", {})),
        "Found with a part of the budget": _stages(record.get("stages", [])),
        "Steps": _steps(record.get("steps", [])),
        "Stage of a search": _words(record.get("search")),
        "Ball that was found" if is_found(record) else "Public ball": _ball(record),
        "Sensitivity": _words(record["sensitivity"]),
        "Scale of the noise": _words(record["scale"]),
        "Support": _words(record["support"]),
        "Sampler": _words(record["sampler"]),
        "Numbers": _words(record["numerics"]),
        "Made with": _words(record["library"]),
        "Created": record["created"],
    }
    return page(
        title_of(record),
        element("h1", title_of(record)),
        *shown,
        element("h2", "What was promised"),
        table(rows),
        element("h2", "How it was made", id="made"),
        table(made),
        element("h2", "How to verify it"),
        _verification(record, digest),
        element("h2", "The record"),
        element("pre", json.dumps(record, indent=2)),
        style=STYLE,
        script=script,
    )


def fragment_of(record: dict) -> str:
    """Return a record's picture and guarantee as HTML for a notebook."""
    unit = unit_of(record)
    rows = {
        title_of(record): f"{_words(record['statistic'])}, n = {record['n']}, by {record['mechanism']}",
        "Promise": in_words(record["guarantee"], _change(record, unit)),
        "In plain words": in_plain_words(record["guarantee"], unit),
        "How far off": _how_far(record),
    }
    return f"{image(picture_of(record, _OF_NOTEBOOKS), 'the released value')}{table(rows)}"


def title_of(record: dict) -> str:
    """Return what was released, in words."""
    name = record["manifold"]["name"]
    if record["mechanism"] == SEARCH:
        what = f"Stage {record['search']['stage']} of a search on {name}: {_words(record['statistic'])}"
    elif is_moment(record) or np.ndim(record["value"]) == 0:
        what = f"{_words(record['statistic'])} on {name}"
    else:
        what = f"{_PLAIN.get(str(record['statistic']), 'value')} on {name}"
    return f"{what[0].upper()}{what[1:]}, released with differential privacy"


def _verification(record, digest):
    """Return how to verify a record."""
    # Of a search, the mechanism about the ball and its parameter; of a private count, the parameter.
    left = record.get("last") or record.get("count", {}).get("left")
    parameter = f"what earlier stages have left of the budget, {_words(left)}," if left else "the privacy parameter"
    of_steps = (
        " Of a step of strength s, which its share of the budget gives, the scale is 2 clip/(n s), of a count 1/s."
        if "steps" in record
        else ""
    )
    return element(
        "p",
        "The record below is all that was published.",
        of_steps,
        " ",
        *_digest_words(record, element("code", digest)),
        " compare it with what ",
        element("code", "jaxgeodp ledger export"),
        f" writes. Scale and sensitivity follow from n, the ball (or the clip of a shape), {parameter} and the "
        "calibration alone: make the mechanism in Python and compare ",
        element("code", "mechanism.scale(n)"),
        " (of a second moment in integers ",
        element("code", "mechanism.law(n).grid.noisy(()).scale"),
        "); ",
        element("code", "jaxgeodp audit"),
        " tries to refute the promise.",
    )


def _digest_words(record, digest: Element) -> tuple[Element | str, ...]:
    """Return how the digest of a record relates to a ledger."""
    if "group" not in record:
        return "The ledger that was charged, if there was one, has its digest, ", digest, ":"
    groups = ", ".join(map(str, record["group"]["of"]))
    return (
        "Its digest is ",
        digest,
        ". The ledger that was charged, if there was one, has the SHA-256 of the digests of all groups, written one "
        f"after the other in the order {groups}:",
    )


def _change(record, unit):
    """Return how neighbouring data sets differ."""
    together = ", for the releases of all groups together" if "group" in record else ""
    if record["guarantee"].get("adjacency", "").startswith("add-remove"):
        return f"one {unit} is added or taken out{together}"
    return f"one {unit} is replaced by another{together}"


def _metric(record):
    metric = record["guarantee"].get("metric")
    return f"epsilon = {metric['epsilon']:g} per {metric['per']}" if metric else ""


def _weighted(record):
    return ", with public weights" if "weights" in record else ""


def _cost(record):
    guarantee = record["guarantee"]
    numbers = [f"{name} = {guarantee[name]:.12g}" for name in ("epsilon", "delta", "mu", "rho") if name in guarantee]
    if not numbers:
        return ""
    together = ", of all groups together" if "group" in record else ""
    return (
        f"{', '.join(numbers)} of the budget of these records{together}; every other release from them costs its own, "
        "and they add up. Whether a ledger has counted this one is not in its record: the custodian says"
    )


def _supposed(record):
    """Return the assumptions of the guarantee beside its theorem."""
    formula = str(record["sensitivity"].get("formula") or "")
    of_sensitivity = formula[formula.index("supposed") :] if "supposed" in formula else ""
    return "; ".join(filter(None, (str(record["numerics"].get("note", "")), of_sensitivity)))


def _custodians_word(record, unit):
    """Return what only the custodian can vouch for."""
    whose = "that no person has two of the records" if unit == "record" else "whose each record is"
    needs_ball = record.get("ball") and not is_found(record) and "metric" not in record["guarantee"]
    public = [
        *(["the ball"] if needs_ball else []),
        *(["weights"] if "weights" in record else []),
        *(["the template"] if "template" in record.get("prepared", {}) else []),
    ]
    chosen = f"that {' and '.join(public)} {'was' if len(public) == 1 else 'were'} chosen without the records, "
    return f"{chosen if public else ''}{whose}, and that all other releases from these records are in a ledger"


def _canvas(lines):
    """Return the script's canvas; lines with non-finite points are left out."""
    largest = max((float(np.abs(line.points).max()) for line in lines if np.all(np.isfinite(line.points))), default=1.0)
    digits = 4 - min(math.floor(math.log10(largest or 1.0)), 0)
    parts = [
        {"p": np.round(line.points, digits).tolist(), "c": line.color, "w": line.width}
        | ({} if line.label is None else {"t": line.label})
        for line in lines
        if np.all(np.isfinite(line.points))
    ]
    return element("canvas", id="space", width="960", height="960", data_lines=json.dumps(parts))


def table(rows: dict[str, str]) -> Element:
    """Return a table of names and words, without empty rows."""
    cells = [(name, str(text)) for name, text in rows.items() if text not in ("", None)]
    return element("table", *(element("tr", element("td", name), element("td", text)) for name, text in cells))


def _words(value):
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_words(part)}" for key, part in value.items() if part is not None)
    if isinstance(value, list):
        return f"{len(value)} numbers" if len(str(value)) > 80 else str(value)
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _parameters(manifold):
    own = ", ".join(f"{key} = {value}" for key, value in manifold.items() if key != "name")
    return f" ({own})" if own else ""


def _ball(record):
    numbers = _words({key: value for key, value in record["ball"].items() if key != "center"})
    if is_found(record):
        return f"{numbers}, around the last centre that was found; records outside are clipped to it"
    return f"{numbers}, around a public centre"


def _stages(stages):
    words = [f"radius {stage['radius']:.4g}" if "radius" in stage else "a centre" for stage in stages]
    return "" if not stages else f"{', '.join(words)}; each with noise of integers, charged together with the release"


def _steps(steps):
    words = [f"{step['asked']}, scale {step['scale']:.3g}, share {step['share']:.3g}" for step in steps]
    return "; ".join(words)


def _how_far(record):
    if "toward" in (drawn := record.get("post_processing", {})):
        return f"{drawn['expected_error']:.3g} (root mean square), if the mean is as near there as was supposed"
    if populations := record.get("expected_errors"):
        least, most = (f"{own(populations.values()):.3g}" for own in (min, max))
        return (
            f"{least} to {most} on average{in_unit(record)}, by how the records lie (simulated for reference "
            "populations in the ball, in flat space). What records outside the ball would have moved is not in it."
        )
    stated = record.get("expected_error")
    if stated is None:
        return ""
    return (
        f"{stated['mean']:.3g} on average, and less than {stated['radius']:.3g} with probability {stated['level']:g}, "
        f"from the mean or median of the records, clipped to the ball: a distance on the manifold{in_unit(record)}, "
        f"simulated for {stated.get('of', 'public reference records')}. What records outside the ball would have moved "
        f"is not in it.{f' Beware: {words}.' if (words := no_nearer(record)) else ''}"
    )


def _drawn(processed):
    if "toward" not in processed:
        return ""
    return f"{processed['share']:.3g} of the way is left; the ledger knows the record {processed['of']}"


def _errors(errors):
    return "; ".join(f"{name}: {error:.3g}" for name, error in errors.items())
