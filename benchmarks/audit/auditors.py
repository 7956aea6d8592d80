"""Other people's auditors, and a recorder of noise, on every mechanism in every way of releasing it: one table.

    python -m benchmarks.audit.auditors [--draws 20000] [--json FILE] [--only WORD] [--without WORD ...]

Mistakes are planted, too, and at least one auditor must find each. Packages that are not installed are named, not
skipped silently. Beside the auditors, conversions of guarantees are compared with OpenDP's and dp-accounting's.
"""

import argparse
import functools
import json
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.audit import decorated, outside, recorded
from benchmarks.audit.cells import RECORDED, STRENGTH, N, cells, mistakes
from benchmarks.audit.conversions import compared
from benchmarks.audit.outside import OF_DRAWS, Found, Sample
from benchmarks.tools.timing import print_machine
from jaxgeodp import GaussianDP
from jaxgeodp.privacy import audit, delta_of_epsilon

# Standard errors, where a recorded scale is an estimate.
ERRORS = 5.0


# A draw in fixed time takes thousands of proposals.
FEWER, FEWEST = 5, 1000
# Auditors that are ours; all others are other people's.
OWN_TOOLS = {"noise recorder", "noise recorder, flow", "jaxgeodp audit"}


# What is found -------------------------------------------------------------------------------------------------


def ours(cell, draws, pair):
    """`audit`, with the score that all auditors of draws have."""
    own = audit(cell.audited, *pair, draws=draws, score=cell.score(*pair))
    return Found(own.lower_bound, own.promised, own.violated)


def noise_recorder(cell, samples):
    """What the recorder finds: numbers for each pair, flow, and what is wrong for every data set."""
    if cell.grid is not None:
        release = functools.partial(cell.grid.release, numerics="grid")
        found = [recorded.on_grid(release, *pair) for pair in cell.pairs.values()]
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
