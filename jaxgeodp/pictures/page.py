"""One HTML page about a release, complete in itself: the picture, what was promised, what it cost, how to verify it."""

import json
from typing import LiteralString

import numpy as np

from jaxgeodp.pictures.drawn import picture_of
from jaxgeodp.pictures.elements import Element, element, image, page
from jaxgeodp.pictures.lines import caption_of, lines_of

#: Of pages.
STYLE: LiteralString = """
body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;color:#222}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:1.6rem}table{border-collapse:collapse;width:100%}
td{padding:.25rem .6rem .25rem 0;vertical-align:top;border-bottom:1px solid #e4e4e4}
td:first-child{color:#666;width:11rem}
canvas{width:100%;max-width:30rem;touch-action:none;cursor:grab;display:block}img{max-width:100%}
pre{background:#f6f6f6;padding:.8rem;overflow:auto;font-size:.8rem;max-height:24rem}"""
# What a stage of a search is released by.
_SEARCH = "SearchInRounds"
# Turns the lines with the mouse or a finger; orthographic, what is behind is paler. The lines are data of the canvas,
# and so the script is the same on all pages.
_TURN: LiteralString = """
const c=document.getElementById("space"),L=JSON.parse(c.dataset.lines),g=c.getContext("2d");let a=.6,b=.35,d=null;
const R=Math.max(...L.flatMap(l=>l.p.map(q=>Math.hypot(...q))))||1;
function draw(){const w=c.width,s=.46*w/R;g.clearRect(0,0,w,w);const ca=Math.cos(a),sa=Math.sin(a),cb=Math.cos(b),
sb=Math.sin(b);for(const l of L){g.strokeStyle=l.c;g.lineWidth=2*l.w;
for(let k=1;k<l.p.length;k++){let z=0;g.beginPath();
[l.p[k-1],l.p[k]].forEach((q,i)=>{const x=ca*q[0]-sa*q[1],y=sa*q[0]+ca*q[1];z+=cb*y-sb*q[2];
g[i?"lineTo":"moveTo"](w/2+s*x,w/2-s*(sb*y+cb*q[2]))});g.globalAlpha=z>0?.35:1;g.stroke()}}}
c.onpointerdown=e=>{d=[e.clientX,e.clientY];c.setPointerCapture(e.pointerId)};c.onpointerup=()=>d=null;
c.onpointermove=e=>{if(d){a+=(e.clientX-d[0])/120;b=Math.max(-1.57,Math.min(1.57,b+(e.clientY-d[1])/120));
d=[e.clientX,e.clientY];draw()}};draw()"""
_PROMISES = {
    "pure": "pure differential privacy with epsilon = {epsilon:g}: whatever anybody does with this value, no "
    "probability of any conclusion changes by more than a factor of e^{epsilon:g} = {factor:.3g} when {change}",
    "gdp": "Gaussian differential privacy with mu = {mu:g}: telling which of two neighbouring data sets this value "
    "came from is at least as hard as telling a draw of N(0, 1) from one of N({mu:g}, 1)",
    "approx": "({epsilon:g}, {delta:g})-differential privacy: no probability of any conclusion exceeds "
    "e^{epsilon:g} times what it is for a neighbouring data set by more than {delta:g}",
    "zcdp": "zero-concentrated differential privacy with rho = {rho:g}",
}


def page_of(record: dict, digest: str) -> str:
    """A page about one release: its picture, what was promised, how it was made and how to verify it.

    Args:
        record: `Release.record`, or the same read from a file.
        digest: SHA-256 by which a ledger knows the record: `jaxgeodp.privacy.record_digest` of it.

    Returns:
        HTML that needs no other file and loads nothing.
    """
    name = record["manifold"]["name"]
    lines = lines_of(record)
    if lines is None:
        shown, script = [image(picture_of(record), "the released value")], ""
    else:
        shown, script = [_canvas(lines), element("p", f"Turn it by hand; {caption_of(record)}.")], _TURN
    unit = "person" if record.get("unit") == "person" else "record"
    places = f" places for {unit}s" if "count" in record else f" {unit}s"
    promise = _promise(record["guarantee"], _change(record, unit))
    rows = {
        "Statistic": _words(record["statistic"]),
        "Of": f"{record['n']}{places} on {name}{_parameters(record['manifold'])}",
        "Promise": promise,
        "How far off": _how_far(record),
        "Neighbours": record["guarantee"].get("adjacency", ""),
        "Because of": record["guarantee"].get("theorem", ""),
    }
    made = {
        "Mechanism": record["mechanism"],
        "Chosen by": record.get("chosen", {}).get("by", "the call"),
        "Records made ready by": record.get("prepared", {}).get("by", ""),
        "Expected errors": _errors(record.get("chosen", {}).get("expected_errors", {})),
        "Drawn towards a public point": _drawn(record.get("post_processing", {})),
        "Expected errors of steps": _errors(record.get("expected_errors", {})),
        "Over one release": _errors(record.get("chosen", {}).get("over_one_release", {})),
        "Found with a part of the budget": _stages(record.get("stages", [])),
        "Steps": _steps(record.get("steps", [])),
        "Stage of a search": _words(record.get("search")),
        "Ball that was found" if _is_found(record) else "Public ball": _ball(record),
        "Sensitivity": _words(record["sensitivity"]),
        "Scale of the noise": _words(record["scale"]),
        "Support": _words(record["support"]),
        "Sampler": _words(record["sampler"]),
        "Numbers": _words(record["numerics"]),
        "Made with": _words(record["library"]),
        "Created": record["created"],
    }
    return page(
        f"A private {name} value",
        element("h1", _title(record)),
        *shown,
        element("h2", "What was promised"),
        table(rows),
        element("h2", "How it was made"),
        table(made),
        element("h2", "How to verify it"),
        _verification(record, digest),
        element("h2", "The record"),
        element("pre", json.dumps(record, indent=2)),
        style=STYLE,
        script=script,
    )


def _is_found(record) -> bool:
    """Whether the ball is one that earlier stages have found."""
    return "stages" in record or ("search" in record and record["mechanism"] != _SEARCH)


def _title(record) -> str:
    name = record["manifold"]["name"]
    if record["mechanism"] == _SEARCH:
        return f"Stage {record['search']['stage']} of a search on {name}: a private {_words(record['statistic'])}"
    return f"A private value on {name}"


def _verification(record, digest):
    """How to verify what a record says."""
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
    """How the digest of a record relates to a ledger."""
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
    """In what neighbouring data sets differ."""
    together = ", for the releases of all groups together" if "group" in record else ""
    if record["guarantee"].get("adjacency", "").startswith("add-remove"):
        return f"one {unit} is added or taken out{together}"
    return f"one {unit} is replaced by another{together}"


def _promise(guarantee, change):
    kind = guarantee.get("kind")
    numbers = {key: value for key, value in guarantee.items() if isinstance(value, float | int)}
    if kind not in _PROMISES:
        return f"{kind}: no promise is proven for this value"
    return _PROMISES[kind].format(
        **numbers, change=change, factor=float(np.exp(min(numbers.get("epsilon", 0.0), 700.0)))
    )


def _canvas(lines):
    """What the script draws on; a line without a place, such as a rim about no direction, is left out."""
    parts = [
        {"p": np.round(line.points, 4).tolist(), "c": line.color, "w": line.width}
        for line in lines
        if np.all(np.isfinite(line.points))
    ]
    return element("canvas", id="space", width="960", height="960", data_lines=json.dumps(parts))


def table(rows: dict[str, str]) -> Element:
    """Return rows of names and words, but for empty ones."""
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
    if _is_found(record):
        return f"{numbers}, around the last centre that was found; records outside are clipped to it"
    return f"{numbers}, around a public centre"


def _stages(stages):
    words = [f"radius {stage['radius']:.4g}" if "radius" in stage else "a centre" for stage in stages]
    return "" if not stages else f"{', '.join(words)}; each with noise of integers, charged together with the release"


def _steps(steps):
    words = [f"{step['asked']}, scale {step['scale']:.3g}, share {step['share']:.3g}" for step in steps]
    return "; ".join(words)


def _how_far(record):
    stated = record.get("expected_error")
    if stated is None:
        return ""
    return (
        f"{stated['mean']:.3g} on average, and less than {stated['radius']:.3g} with probability {stated['level']:g}, "
        "from the mean or median of the records in the ball: a distance on the manifold, simulated for "
        f"{stated.get('of', 'public reference records')}. What records outside the ball would have moved is not in it."
    )


def _drawn(processed):
    if "toward" not in processed:
        return ""
    return f"{processed['share']:.3g} of the way is left; the ledger knows the record {processed['of']}"


def _errors(errors):
    return ", ".join(f"{name} {error:.3g}" for name, error in errors.items())
