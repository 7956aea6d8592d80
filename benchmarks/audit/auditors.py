"""Other people's auditors, and a recorder of noise, on every mechanism in every way of releasing it: one table.

    python -m benchmarks.audit.auditors [--draws 20000] [--json FILE] [--only WORD] [--without WORD ...]

Mistakes are planted, too, and at least one auditor must find each. Packages that are not installed are named, not
skipped silently. Beside the auditors, conversions of guarantees are compared with OpenDP's and dp-accounting's.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.audit import decorated, outside, recorded
from benchmarks.audit.audited import DividedByNTwice, HalfTheScale, InFixedTime, OnTheGrid, RadiusFromTheData, ReusedKey
from benchmarks.audit.conversions import compared
from benchmarks.audit.outside import OF_DRAWS, Found, Sample
from benchmarks.audit.planted import planted
from benchmarks.tools.timing import print_machine
from jaxgeodp import (
    Euclidean,
    FrechetMedian,
    GaussianDP,
    GeodesicBall,
    Hyperbolic,
    KNGMechanism,
    LaplaceMechanism,
    PlanarShapes,
    Sphere,
    frechet_mean,
)
from jaxgeodp.checks import InputError
from jaxgeodp.functional import FunctionalGaussianMechanism, PeriodicKernel
from jaxgeodp.mechanisms.names import MECHANISMS
from jaxgeodp.privacy import adversarial_neighbours, audit, delta_of_epsilon
from jaxgeodp.releases.vector import VectorLaw
from jaxgeodp.releases.ways.fixed_time import draw_in_fixed_time

N, STRENGTH, DELTA = 20, 1.0, 1e-6
SPHERE = GeodesicBall(Sphere(2), np.array([0.0, 0.0, 1.0]), 0.4)
HYPERBOLIC = GeodesicBall(Hyperbolic(2), np.array([1.0, 0.0, 0.0]), 0.8)
SHAPES = GeodesicBall(PlanarShapes(4), np.array([1.0, 1.0j, -1.0, -1.0j]) / 2.0, 0.3)
PLANE = GeodesicBall(Euclidean(2), np.zeros(2), 1.0)
# Draws that are recorded at once: the scale of the noise is known to 1 % from them.
RECORDED = 20_000
# Where only the flow of the program is looked at.
FEW = 16
# Standard errors, where a recorded scale is an estimate.
ERRORS = 5.0


# A draw in fixed time takes thousands of proposals.
FEWER, FEWEST = 5, 1000
# Auditors that are ours; all others are other people's.
OWN_TOOLS = {"noise recorder", "noise recorder, flow", "jaxgeodp audit"}
# What planted mechanisms have of the strength that they claim.
STRONGER = 1.25


class Cell(NamedTuple):
    """A mechanism in one way of releasing it, or a planted mistake."""

    name: str
    way: str
    on: str
    audited: Any  #: with ``guarantee`` and ``simulate``
    pairs: dict[str, tuple[np.ndarray, np.ndarray]]
    score: Callable  #: of a pair, a function of a value
    program: Callable | None = None  #: of a key and records, for the recorder; makes ``RECORDED`` draws
    family: str | None = None  #: of the noise that is added; None for a density
    grid: Any = None  #: the mechanism, where real releases on a grid are recorded
    plain: Any = None  #: the mechanism, where dp-recorder takes its steps one after the other
    density: bool = False  #: whether log densities are compared at recorded draws
    mistake: bool = False


# What there is -------------------------------------------------------------------------------------------------


def cells():
    """Every mechanism of the registry in every way, and what the registry does not name."""
    for name, entry in MECHANISMS.items():
        for ball in _balls(name, entry):
            mechanism = entry.make(ball, STRENGTH)
            pairs = adversarial_neighbours(ball, N)
            yield _idealized(name, mechanism, pairs)
            if ball is HYPERBOLIC:
                continue  # the other ways have been tried on the sphere
            if "delta" in mechanism.supports:
                yield _in_fixed_time(name, mechanism, pairs)
            if "grid" in mechanism.supports:
                yield _on_grid(name, mechanism, pairs)
    pairs = adversarial_neighbours(SPHERE, N)
    for name, mechanism in {
        "kng of the median": KNGMechanism(SPHERE, STRENGTH, FrechetMedian()),
        "kng, papers' sensitivity": KNGMechanism(SPHERE, STRENGTH, calibration="theorem"),
        "laplace, papers' sensitivity": LaplaceMechanism(SPHERE, STRENGTH, calibration="theorem"),
    }.items():
        yield _idealized(name, mechanism, pairs)
    yield _curves()


def _balls(name, entry):
    if not entry.suits(SPHERE.manifold):
        return (SHAPES,)
    return (SPHERE, HYPERBOLIC) if entry.suits(HYPERBOLIC.manifold) and not name.startswith("euclid") else (SPHERE,)


def _idealized(name, mechanism, pairs):
    law = mechanism.law(N)
    additive = isinstance(law, VectorLaw)
    return Cell(
        name,
        "idealized",
        _where(mechanism),
        mechanism,
        pairs,
        _score(mechanism),
        lambda key, data: mechanism.simulate(key, data, RECORDED if additive else FEW),
        law.noise.name if additive else None,
        plain=mechanism,
        density=not additive,
    )


def _in_fixed_time(name, mechanism, pairs):
    audited = InFixedTime(mechanism, DELTA)
    law = mechanism.law(N)
    count = audited.proposals(law)

    def program(key, data):
        return draw_in_fixed_time(law, key, data, count)

    return Cell(name, "fixed time", _where(mechanism), audited, pairs, _score(mechanism), program, density=True)


def _on_grid(name, mechanism, pairs):
    return Cell(name, "on grid", _where(mechanism), OnTheGrid(mechanism), pairs, _score(mechanism), grid=mechanism)


def _curves():
    t = np.arange(16) / 16
    waves = {j: np.sqrt(2.0) * np.cos(2 * np.pi * j * t) for j in range(1, 4)} | {0: np.ones(16)}
    pairs = {f"wave {j}": tuple(np.stack([w] * 4 + [s * w])[:, None] for s in (1, -1)) for j, w in waves.items()}
    mechanism = FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.05, 1.0, np.ones(1))

    def program(key, data):
        # One by one: a loop over blocks is not an addition to the recorder.
        return jax.vmap(lambda own: mechanism.simulate(own, data, 1)[0])(jax.random.split(key, RECORDED))

    return Cell("curves", "idealized", "16 places", OneCurve(mechanism), pairs, _score(mechanism), program, "any")


class OneCurve:
    """Curves, whose number is known: then something is promised."""

    def __init__(self, mechanism):
        self.guarantee, self.simulate = mechanism.guarantee_for(1), mechanism.simulate


def mistakes():
    """What must be found."""
    for name, own in planted().items():

        def program(key, data, own=own):
            return own.simulate(key, data, RECORDED)

        yield Cell(name, "planted", "disk", own, own.pairs, own.score, program, own.family, plain=own, mistake=True)
    edge = {"edge": adversarial_neighbours(HYPERBOLIC, 5)["edge"]}
    for name, mechanism in {
        "half the scale of a density": HalfTheScale(HYPERBOLIC, 1.0),
        "1/n twice in a density": DividedByNTwice(HYPERBOLIC, 1.0),
        "the same key for all": ReusedKey(LaplaceMechanism(HYPERBOLIC, 1.0)),
    }.items():

        def program(key, data, own=mechanism):
            return own.simulate(key, data, FEW)

        density = not isinstance(mechanism, ReusedKey)
        yield Cell(name, "planted", "H²", mechanism, edge, _score(mechanism), program, density=density, mistake=True)
    alone = np.tile(SPHERE.center, (5, 1))
    other = np.concatenate([alone[1:], [[np.sin(0.4), 0.0, np.cos(0.4)]]])
    radius = RadiusFromTheData(SPHERE)

    def program(key, data):
        return radius.simulate(key, data, FEW)

    yield from too_strong()
    pair = {"one outlier": (alone, other)}
    yield Cell("radius from the data", "planted", "S²", radius, pair, _own(radius.log_density), program, mistake=True)


def too_strong():
    """Mechanisms of each kind of promise whose noise is a fifth too small."""

    def made(name, ball):
        return MECHANISMS[name].make(ball, STRONGER), adversarial_neighbours(ball, N)

    density, ratio, grid, fixed = (
        _idealized("laplace", *made("laplace", HYPERBOLIC)),
        _idealized("gaussian", *made("gaussian", HYPERBOLIC)),
        _on_grid("wrapped-gaussian", *made("wrapped-gaussian", SPHERE)),
        _in_fixed_time("laplace", *made("laplace", SPHERE)),
    )
    added = _idealized("wrapped", *made("wrapped", HYPERBOLIC))
    for cell in (density, ratio, added, grid, fixed):
        right = MECHANISMS[cell.name].make(cell.audited.ball, STRENGTH)
        promise = {"on grid": OnTheGrid, "fixed time": lambda own: InFixedTime(own, DELTA)}.get(cell.way)
        claim = Claims(cell.audited, (promise(right) if promise else right).guarantee)
        yield cell._replace(name=f"{cell.name}, {STRONGER:g} times too strong", audited=claim, plain=None, mistake=True)


class Claims:
    """Planted: a mechanism with the guarantee of another one."""

    def __init__(self, mechanism, guarantee):
        self.guarantee, self.simulate, self.ball = guarantee, mechanism.simulate, mechanism.ball


def _where(mechanism):
    names = {"Sphere": "S²", "Hyperbolic": "H²", "PlanarShapes": "shapes, k = 4", "Euclidean": "R²"}
    return names[type(mechanism.ball.manifold).__name__]


def _own(log_density):
    return lambda data, neighbour: lambda x: log_density(x, jnp.asarray(data))


def _score(mechanism):
    """The log-density ratio, or where there is none the difference of distances from the two means."""

    def of(data, neighbour):
        data, neighbour = jnp.asarray(data), jnp.asarray(neighbour)
        try:
            jax.eval_shape(mechanism.log_density, data[0], data)
        except (InputError, AttributeError):
            manifold = mechanism.ball.manifold
            own, other = (frechet_mean(manifold, points) for points in (data, neighbour))
            return lambda x: jnp.linalg.norm(_real(x - other)) - jnp.linalg.norm(_real(x - own))

        def score(x):
            own, other = mechanism.log_density(x, data), mechanism.log_density(x, neighbour)
            ratio = jnp.where(jnp.isneginf(own) & jnp.isneginf(other), 0.0, own - other)
            return jnp.clip(ratio, -50.0, 50.0)

        return score

    return of


def _real(x):
    x = jnp.ravel(x)
    return jnp.concatenate([x.real, x.imag]) if jnp.iscomplexobj(x) else x


# What is found -------------------------------------------------------------------------------------------------


def ours(cell, draws, pair):
    """`audit`, with the score that all auditors of draws have."""
    own = audit(cell.audited, *pair, draws=draws, score=cell.score(*pair))
    return Found(own.lower_bound, own.promised, own.violated)


def noise_recorder(cell, samples):
    """What the recorder finds: numbers for each pair, flow, and what is wrong for every data set."""
    if cell.grid is not None:
        found = [recorded.on_grid(cell.grid, *pair) for pair in cell.pairs.values()]
        return _worst([Found(used, STRENGTH, used > STRENGTH) for used in found]), "no", []
    if cell.program is None:
        return None, "not run", []
    key = jax.random.key(11)
    first = jnp.asarray(next(iter(cell.pairs.values()))[0])
    recorder = recorded.Recorder(cell.program, key, first)
    findings, found = list(recorder.findings), []
    if cell.family is not None and not findings and recorder.label & recorded.RECORDS:
        findings.append("noise is mixed with what depends on records, not added")
    trips = set()
    for data, neighbour in (tuple(map(jnp.asarray, pair)) for pair in cell.pairs.values()):
        if recorder.loops:
            counts = [tuple(map(int, recorder.run(key, records)[2])) for records in (data, neighbour)]
            trips.add(
                f"{counts[0]} {recorded.DIFFERENT} {counts[1]}"
                if counts[0] != counts[1]
                else "the same for these pairs"
            )
        if recorder.additions and not findings and cell.family != "any":
            used = recorded.together(recorded.distances(recorder, key, data, neighbour, cell.family), cell.family)
            margin = 1.0 + ERRORS / np.sqrt(RECORDED)
            found.append(Found(used, STRENGTH, used > STRENGTH * margin))
    if cell.density and not findings:
        found = [_losses(cell.audited.guarantee, sample) for sample in samples]
    flow = "; ".join([*recorder.loops, *sorted(trips)]) if recorder.loops else "no"
    return (_worst(found) if found else None), flow, findings


def _losses(guarantee, sample):
    """Log-density ratios at recorded draws, with the ratio of the two normalising constants from the same draws.

    Under a pure guarantee none exceeds epsilon; under mu-GDP the mean of (1 - e^(t - loss))+ is at most delta(t).
    """
    worst = allowed = 0.0
    for ratio in (sample.scores, -sample.others):
        weights = np.exp(-ratio)
        losses = ratio + np.log(np.mean(weights))
        error = ERRORS * np.std(weights) / np.mean(weights) / np.sqrt(len(weights))
        if isinstance(guarantee, GaussianDP):
            worst, allowed = max(worst, _mu(losses, error, guarantee.mu)), guarantee.mu
        else:
            worst, allowed = max(worst, float(np.max(losses)) - error), guarantee.epsilon
    return Found(worst, allowed, worst > allowed)


def _mu(losses, error, mu):
    """The largest mu that some epsilon proves, the mean being ERRORS standard errors lower than it is seen."""
    best = 0.0
    for epsilon in np.linspace(0.0, 2.0 * mu + 0.5, 26):
        parts = np.maximum(-np.expm1(epsilon - losses + error), 0.0)
        least = np.mean(parts) - ERRORS * np.std(parts) / np.sqrt(len(parts))
        tried = np.linspace(0.0, 4.0 * mu, 401)[1:]
        below = [own for own in tried if delta_of_epsilon(float(own), float(epsilon)) <= least]
        best = max(best, *below, 0.0)
    return float(best)


def outsiders(cell, samples, worst, without):
    """Every auditor of draws: name -> the worst of all pairs, of the worst pair alone if it trains a network."""
    found = {}
    for auditor in OF_DRAWS:
        if auditor.name in without:
            found[auditor.name] = "–"
            continue
        try:
            chosen = [worst] if auditor.trains else samples
            own = [auditor.audit(sample, cell.audited.guarantee) for sample in chosen]
        except Exception as error:  # their refusals are results
            found[auditor.name] = f"{type(error).__name__}: {str(error).splitlines()[0][:80]}"
            continue
        found[auditor.name] = "no such guarantee" if None in own else _worst(own)
    return found


def _told_apart(sample):
    """How well the scores tell two data sets apart."""
    tried = np.quantile(np.concatenate([sample.scores, sample.others]), np.linspace(0.01, 0.99, 99))
    above, others = (np.mean(s[:, None] >= tried, axis=0) for s in (sample.scores, sample.others))
    return float(np.max(above - others))


def sampled(cell, draws, data, neighbour):
    scored = jax.jit(jax.vmap(cell.score(data, neighbour)))
    vectors, scores = [], []
    for key, records in zip(jax.random.split(jax.random.key(2)), (data, neighbour), strict=True):
        values = cell.audited.simulate(key, jnp.asarray(records), draws)
        # Rounded, so that the audit is about laws, not about last bits.
        scores.append(np.round(np.asarray(scored(values)), 7))
        flat = np.asarray(values).reshape(draws, -1)
        vectors.append(np.concatenate([flat.real, flat.imag], axis=1) if np.iscomplexobj(flat) else flat)
    return Sample(*vectors, *scores)


def their_recorder(cell):
    """dp-recorder on all pairs."""
    if cell.grid is not None:
        found = [decorated.of_release(cell.grid, *pair) for pair in cell.pairs.values()]
    elif cell.plain is None:
        return None
    elif cell.mistake:
        found = [decorated.of_planted(cell.plain, *pair) for pair in cell.pairs.values()]
    else:
        found = [decorated.of_law(cell.plain, *pair) for pair in cell.pairs.values()]
    finding = next((own.finding for own in found if own.finding), "")
    used = float(np.nanmax([own.used for own in found])) if any(np.isfinite(own.used) for own in found) else np.nan
    epsilons = [own.epsilon for own in found if own.epsilon is not None]
    promised = getattr(cell.audited.guarantee, "epsilon", None)
    epsilon = max(epsilons) if epsilons and promised is not None else None
    return {
        "used": used,
        "finding": finding,
        "epsilon": epsilon,
        "broken": bool(finding) or (epsilon is not None and epsilon > promised),
    }


def key_reuse(cell):
    """JAX's own checker of keys that are used twice."""
    if cell.program is None:
        return "not run"
    first = jnp.asarray(next(iter(cell.pairs.values()))[0])
    try:
        with jax.debug_key_reuse(True):
            jax.jit(cell.program)(jax.random.key(0), first)
    except jax.errors.KeyReuseError:
        return "reused"
    except jax.errors.JAXTypeError:
        return "no program"
    return "no"


def _worst(found):
    return max(found, key=lambda own: (own.broken, own.value - own.allowed))


# Tables ----------------------------------------------------------------------------------------------------------


def row(cell, draws, without):
    """Everything about one cell."""
    start = time.perf_counter()
    draws = max(draws // FEWER, FEWEST) if cell.way == "fixed time" else draws
    samples = [sampled(cell, draws, *pair) for pair in cell.pairs.values()]
    worst = max(range(len(samples)), key=lambda j: _told_apart(samples[j]))
    used, flow, findings = noise_recorder(cell, samples)
    audited = ours(cell, draws, list(cell.pairs.values())[worst])
    found = outsiders(cell, samples, samples[worst], without)
    theirs = "–" if "dp-recorder" in without else their_recorder(cell)
    keys = key_reuse(cell)
    verdicts = {
        "noise recorder": bool(findings) or (used is not None and used.broken),
        # A right sampler has loops that depend on records, too: what counts is that neighbours take other ways.
        "noise recorder, flow": recorded.DIFFERENT in flow,
        "jaxgeodp audit": audited.broken,
        "dp-recorder": isinstance(theirs, dict) and theirs["broken"],
        "JAX key reuse": keys == "reused",
        **{name: isinstance(own, Found) and own.broken for name, own in found.items()},
    }
    return {
        "mechanism": cell.name,
        "way": cell.way,
        "on": cell.on,
        "claims": str(cell.audited.guarantee),
        "draws": draws,
        "mistake": cell.mistake,
        "noise recorder": {"used": _text(used), "flow": flow, "findings": findings},
        "jaxgeodp audit": _text(audited),
        **{name: _text(own) for name, own in found.items()},
        "dp-recorder": theirs,
        "JAX key reuse": keys,
        "found by": [name for name, broken in verdicts.items() if broken],
        "seconds": round(time.perf_counter() - start, 1),
    }


def _text(found):
    if found is None:
        return "–"
    return found.text if isinstance(found, Found) else found


def _cells_of(own):
    """A row as the cells of a table."""
    recorder, theirs = own["noise recorder"], own["dp-recorder"]
    noted = "; ".join(recorder["findings"]) or recorder["used"]
    their = "–"
    if isinstance(theirs, dict):
        their = theirs["finding"] or f"{theirs['used']:.2f} (1.00)"
        their += "" if theirs["epsilon"] is None else f"; samples {theirs['epsilon']:.2f}"
    elif theirs:
        their = theirs
    draws = [own[auditor.name] for auditor in OF_DRAWS]
    found_by = (
        ", ".join(own["found by"]) if own["mistake"] else ("broken" if _contradicted(own) else "not contradicted")
    )
    kept = [own["mechanism"], own["way"], own["on"], own["claims"], noted, recorder["flow"], own["jaxgeodp audit"]]
    return [*kept, *draws, their, own["JAX key reuse"], found_by or "nobody"]


def _contradicted(own):
    """Whether anybody contradicts what is claimed; a running time that depends on records is no contradiction."""
    return set(own["found by"]) - {"noise recorder, flow"}


HEADER = [
    *("mechanism", "way", "on", "claims", "recorder: used", "recorder: loops", "`audit`"),
    *(auditor.name for auditor in OF_DRAWS),
    *("dp-recorder", "JAX key reuse", "verdict"),
]


def main(arguments=None) -> int:
    """Print the tables; 1 if nobody finds a mistake, or somebody contradicts a promise."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--draws", type=int, default=20_000, help="from each law of each pair")
    parser.add_argument("--json", help="where to write all of it")
    parser.add_argument("--only", default="", help="cells whose name has this word")
    parser.add_argument("--without", nargs="*", default=[], help="auditors to leave out")
    arguments = parser.parse_args(arguments)
    jax.config.update("jax_enable_x64", True)
    print_machine()
    # JAX has started before TensorFlow, which some of them bring.
    jnp.zeros(1).block_until_ready()
    without = {name: "left out" for name in arguments.without}
    for auditor in OF_DRAWS:
        if auditor.name not in without and (why := outside.missing(auditor.module)):
            without[auditor.name] = why
    if "dp-recorder" not in without and (why := outside.missing("dp_recorder.auditing")):
        without["dp-recorder"] = why
    versions = {auditor.package: outside.version(auditor.package) for auditor in OF_DRAWS}
    versions |= {name: outside.version(name) for name in ("dp-recorder", "opendp", "dp-accounting", "tensorflow-cpu")}
    absent = {auditor.package for auditor in OF_DRAWS if auditor.name in without} | (without.keys() & versions.keys())
    absent |= {name for name in ("opendp", "tensorflow-cpu") if outside.missing(name.removesuffix("-cpu"))}
    versions = {name: own for name, own in versions.items() if name not in absent}
    print("packages  ", ", ".join(f"{name} {own}" for name, own in versions.items()))
    for name, why in without.items():
        print(f"missing    {name}: {why}")
    print(f"n = {N}, {arguments.draws:,} draws of each law, level {outside.LEVEL:g}; in brackets what is allowed")
    rows = []
    for title, of in (("Mechanisms", cells), ("Planted mistakes", mistakes)):
        print(f"\n{title}\n\n| {' | '.join(HEADER)} |\n|{'---|' * len(HEADER)}")
        for cell in of():
            if arguments.only in f"{cell.name}, {cell.way}, {cell.on}":
                rows.append(row(cell, arguments.draws, without))
                print(f"| {' | '.join(map(str, _cells_of(rows[-1])))} |", flush=True)
    conversions = compared()
    print("\nConversions\n\n| from | to | ours | theirs | whose | |\n|---|---|---|---|---|---|")
    for own in conversions:
        print(f"| {own.start} | {own.end} | {own.ours} | {own.theirs} | {own.whose} | {own.verdict} |")
    if arguments.json:
        numbers = [own._asdict() for own in conversions]
        everything = {"versions": versions, "missing": without, "rows": rows, "conversions": numbers}
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(everything, file, indent=1, ensure_ascii=False)
    planted_here = [own for own in rows if own["mistake"] and own["mechanism"] != "none"]
    unnoticed = [own["mechanism"] for own in planted_here if not own["found by"]]
    by_us = [own["mechanism"] for own in planted_here if not set(own["found by"]) - OWN_TOOLS]
    broken = [own["mechanism"] for own in rows if not own["mistake"] and _contradicted(own)]
    print(f"\nmistakes that nobody found: {', '.join(unnoticed) or 'none'}")
    print(f"mistakes that no outsider found: {', '.join(by_us) or 'none'}")
    print(f"promises that somebody contradicts: {', '.join(broken) or 'none'}")
    return int(bool(unnoticed or broken))


if __name__ == "__main__":
    sys.exit(main())
