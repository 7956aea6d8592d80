"""Which mechanism? Expected errors before any data are touched, from public numbers alone."""

import dataclasses
import functools
import os
import threading
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np

from jaxgeodp.checks import InputError, positive_integer
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.mechanisms.euclidean import EuclideanLaplace
from jaxgeodp.mechanisms.landmarks import LandmarkLaplace
from jaxgeodp.mechanisms.names import MECHANISMS, NamedMechanism, mechanism_named
from jaxgeodp.releases.density import DensityLaw
from jaxgeodp.releases.expected import DRAWS, SPREAD, errors_of, reference_records


@dataclasses.dataclass(frozen=True)
class Plan:
    """What to expect of one mechanism.

    Attributes:
        name: in the registry (`mechanisms.names.MECHANISMS`).
        mechanism: how it is called.
        guarantee: what a release promises.
        sensitivity: for n records.
        scale: of the noise, for n records.
        support: radius of the ball outside which nothing is released; None for the whole manifold.
        error: mean distance of a release from the Frechet mean of the reference records.
        standard_error: of ``error``, from the number of draws.
        refusal: why it cannot be used here; the numbers are then NaN.
    """

    name: str
    mechanism: str
    guarantee: str
    sensitivity: float = np.nan
    scale: float = np.nan
    support: float | None = None
    error: float = np.nan
    standard_error: float = np.nan
    refusal: str = ""


class Plans(list[Plan]):
    """List of plans that prints as a table."""

    def __repr__(self):
        rows = [("mechanism", "guarantee", "scale", "expected error")]
        for plan in self:
            error = plan.refusal or f"{plan.error:.4g} +- {2 * plan.standard_error:.1g}"
            rows.append((plan.mechanism, plan.guarantee, "" if plan.refusal else f"{plan.scale:.4g}", error))
        widths = [max(len(cells[column]) for cells in rows) for column in range(3)]
        return "\n".join(
            "  ".join([*(cell.ljust(width) for cell, width in zip(cells[:3], widths, strict=True)), cells[3]]).rstrip()
            for cells in rows
        )


def plan_mechanisms(
    ball: GeodesicBall,
    n: int,
    epsilon: float | None = None,
    mu: float | None = None,
    spread: float = SPREAD,
    draws: int = DRAWS,
    names: Collection[str] | None = None,
    calibration: str = "tight",
) -> Plans:
    """Return the expected error of every mechanism that applies, the smallest first; no data are needed.

    Errors are simulated with public reference records (`releases.expected.reference_records`). For values
    off the manifold (Euclidean and landmark-wise baselines) distances are those of the ambient space.

    Args:
        ball: the public ball.
        n: number of records, at least 2.
        epsilon: privacy parameter of the pure mechanisms, which are left out without it.
        mu: of the Gaussian mechanisms, which are left out without it (their guarantee is another one).
        spread: how far reference records reach from the centre, in units of the radius, in (0, 1].
        draws: simulated releases per mechanism, at least 2.
        names: of the mechanisms to compare, of `mechanisms.names.MECHANISMS`; all that suit by default.
        calibration: of those that have several.

    Returns:
        A plan for each; those that are refused come last. It is a list that prints as a table.

    Raises:
        ValueError: a parameter is out of range, none of the mechanisms suits the manifold, or every mechanism
            refuses: the reason of the first.

    Example:
        >>> from jaxgeodp import Euclidean, GeodesicBall
        >>> from jaxgeodp.mechanisms import plan_mechanisms
        >>> ball = GeodesicBall(Euclidean(2), [0.0, 0.0], 1.0)
        >>> plan_mechanisms(ball, n=100, epsilon=1.0)[0].error < 0.05
        True
    """
    positive_integer("plan", "n", n, 2)
    positive_integer("plan", "draws", draws, 2)
    if not 0 < spread <= 1:
        raise InputError(f"plan: spread must be in (0, 1], got {spread!r}.")
    with jax.enable_x64(True):
        # Errors on the manifold are the same wherever the centre lies, ambient ones are not.
        balls = {True: ball.at_home, False: ball}
        references = {where: _Once(functools.partial(reference_records, own, spread)) for where, own in balls.items()}

    def planned(applicable):
        with jax.enable_x64(True):  # a thread has a setting of its own
            name, entry, strength = applicable
            own = calibration if len(entry.calibrations) > 1 else "tight"
            make = functools.partial(mechanism_named, name, balls[entry.on_manifold], strength, own)
            return _plan(name, entry, make, strength, n, references[entry.on_manifold], draws)

    chosen = _applicable(ball.manifold, {"epsilon": epsilon, "mu": mu}, MECHANISMS if names is None else names)
    if not chosen:
        raise InputError("plan: no mechanism supports this manifold with these privacy parameters.")
    # Compiling takes the time, and keeps to one core.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        plans = list(pool.map(planned, chosen))
    if all(plan.refusal for plan in plans):
        raise InputError(plans[0].refusal)
    return Plans(sorted(plans, key=lambda plan: (np.isnan(plan.error), plan.error)))


class _Once:
    """Value that is computed when any thread first asks for it."""

    def __init__(self, make):
        self._make, self._lock, self._made = make, threading.Lock(), None

    def get(self):
        with self._lock:
            if self._made is None:
                self._made = self._make()
            return self._made


def _applicable(manifold, strengths, names) -> list[tuple[str, NamedMechanism, float]]:
    """Return the registry entries that suit the manifold and whose privacy parameter is given, each with it."""
    return [
        (name, entry, strengths[entry.parameter])
        for name, entry in MECHANISMS.items()
        if name in names
        if strengths[entry.parameter] is not None and entry.suits(manifold)
    ]


def _plan(name, entry, make, strength, n, reference, draws) -> Plan:
    guarantee, called = f"{entry.parameter} = {strength:g}", name
    try:
        mechanism = make()
        called = _called(mechanism)
        law = mechanism.law(n)
        law.check()
        if isinstance(law, DensityLaw):
            law.target.check(law)  # what a release of it refuses
        records, center = reference.get()
        errors = np.asarray(errors_of(law, records, center, draws, entry.on_manifold))
    except InputError as refusal:
        return Plan(name, called, guarantee, refusal=str(refusal))
    return Plan(
        name,
        called,
        guarantee,
        law.terms.sensitivity,
        float(law.scale),
        None if law.support is None else law.support.radius,
        float(errors.mean()),
        float(errors.std(ddof=1) / np.sqrt(draws)),
    )


def _called(mechanism):
    projected = isinstance(mechanism, EuclideanLaplace) and mechanism.project
    unaligned = isinstance(mechanism, LandmarkLaplace) and not mechanism.align
    return f"{type(mechanism).__name__}{' (projected)' if projected else ' (unaligned)' if unaligned else ''}"
