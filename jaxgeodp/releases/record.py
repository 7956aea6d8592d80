"""Entries of a release record beside its value, from public things alone (docs/record.md)."""

from jaxgeodp.checks import InputError
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.nested_lists import plain_number
from jaxgeodp.releases.law import Ready
from jaxgeodp.releases.weights import Weights

# Of every record, beside "manifold" and "ball" of the domain.
_ENTRIES = {
    *("value", "guarantee", "mechanism", "statistic", "n", "sensitivity", "scale", "support", "sampler"),
    *("numerics", "library", "created"),
}


def entries_of(ready: Ready, domain: dict, n: int, support: GeodesicBall | None) -> dict:
    """Return the entries of every release record except value, guarantee and circumstances.

    Args:
        ready: the release.
        domain: entries of the domain, which follow mechanism and statistic.
        n: number of records.
        support: see `Law`.
    """
    terms = ready.terms
    return {
        "mechanism": terms.mechanism,
        "statistic": terms.statistic,
        **domain,
        "n": n,
        "sensitivity": {
            "value": plain_number(terms.sensitivity),
            "formula": terms.formula,
            "calibration": terms.calibration,
        },
        "scale": plain_number(ready.scale),
        "support": support and {"center": "as ball", "radius": support.radius},
        "sampler": terms.sampler,
    }


def entries_of_noise(ready: Ready, support: GeodesicBall | None) -> dict:
    """Return the entries of `entries_of` that depend on the ball found by an earlier release."""
    own = entries_of(ready, {}, ready.terms.n, support)
    return {name: own[name] for name in ("sensitivity", "scale", "support", "sampler")}


def entries_without_noise(why: str, calibration: str) -> dict:
    """Return the entries of `entries_of_noise` for a value that is public already, and has no noise.

    Args:
        why: there is no noise, and what is released.
        calibration: see `Terms`.
    """
    return {
        "sensitivity": {"value": None, "formula": why, "calibration": calibration},
        "scale": None,
        "support": None,
        "sampler": {"name": why, "exactness": "exact"},
    }


def further_entries(owner: str, law: dict | None, weights: Weights | None, call: dict, domain: dict) -> dict:
    """Return the further entries that the law, weights and the call add to a record.

    Args:
        owner: whom a refusal names.
        law: see `Terms.more`.
        weights: of the records.
        call: see `Request.more`.
        domain: see `entries_of`.

    Raises:
        ValueError: an entry that every record has would be replaced.
    """
    more = (law or {}) | ({} if weights is None else weights.described) | call
    if taken := more.keys() & (domain.keys() | _ENTRIES):
        raise InputError(f"{owner}: more must not replace {', '.join(sorted(taken))} of the record.")
    return more
