"""Conversions and sums of guarantees: ours against those of OpenDP and dp-accounting."""

import importlib.util
from typing import NamedTuple

import numpy as np

from jaxgeodp.privacy import GaussianDP, PureDP, ZeroConcentratedDP, compose

EPSILONS, MUS, RHOS, DELTAS = (0.01, 0.1, 1.0, 5.0), (0.1, 0.5, 1.0, 3.0), (0.005, 0.1, 1.0), (1e-3, 1e-6, 1e-10)
# Relative: rounding of theirs, whose numbers are not rounded to the safe side by as much.
ROUNDING = 1e-9


class Conversion(NamedTuple):
    """One number, twice."""

    start: str
    end: str
    ours: float
    theirs: float
    whose: str
    verdict: str


def compared() -> list[Conversion]:
    """All of them; packages that are not installed give a row that says so."""
    rows = []
    for package, of in (("opendp", _opendp), ("dp_accounting", _dp_accounting)):
        if importlib.util.find_spec(package) is None:
            rows.append(Conversion("all", "", np.nan, np.nan, package, "not installed"))
        else:
            rows += of()
    return rows


def _row(start, end, ours, theirs, whose, tight, least=None):
    """``least`` is the exact number, where theirs is only a bound of it."""
    exact = theirs if least is None else least
    if ours < exact * (1.0 - ROUNDING):
        verdict = "**ours is below**"
    elif abs(ours - theirs) <= tight * theirs:
        verdict = "equal"
    else:
        verdict = "ours is above" if ours > theirs else "theirs is looser"
    return Conversion(start, end, ours, theirs, whose, verdict)


def _opendp():
    import opendp.prelude as dp

    dp.enable_features("contrib", "honest-but-curious")
    rows = []
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    for epsilon in EPSILONS:
        # A Laplace mechanism of sensitivity 1 and this epsilon.
        pure = dp.m.make_laplace(*space, scale=1.0 / epsilon)
        theirs = dp.c.make_pureDP_to_zCDP(pure).map(1.0)
        rows.append(_row(f"ε = {epsilon:g}", "ρ", PureDP(epsilon).to_zcdp().rho, theirs, "OpenDP", 1e-9))
    for rho in RHOS:
        scale = (0.5 / rho) ** 0.5
        gaussian = dp.m.make_gaussian(*space, scale=scale)
        curve = dp.c.make_zCDP_to_approxDP(gaussian).map(1.0)
        for delta in DELTAS:
            ours = ZeroConcentratedDP(rho).to_approximate(delta).epsilon
            rows.append(_row(f"ρ = {rho:g}", f"ε at δ = {delta:g}", ours, curve.epsilon(delta), "OpenDP", 1e-6))
    for parts in ([0.1, 0.2], [0.1] * 10):
        measurements = [dp.m.make_laplace(*space, scale=1.0 / own) for own in parts]
        theirs = dp.c.make_composition(measurements).map(1.0)
        ours = compose([PureDP(own) for own in parts]).epsilon
        rows.append(_row(f"{len(parts)} × PureDP, sum {sum(parts):.1f}", "ε", ours, theirs, "OpenDP", 1e-9))
    for parts in ([0.1, 0.2], [0.01] * 10):
        measurements = [dp.m.make_gaussian(*space, scale=(0.5 / own) ** 0.5) for own in parts]
        theirs = dp.c.make_composition(measurements).map(1.0)
        ours = compose([ZeroConcentratedDP(own) for own in parts]).rho
        rows.append(_row(f"{len(parts)} × zCDP, sum {sum(parts):.1f}", "ρ", ours, theirs, "OpenDP", 1e-9))
    return rows


def _dp_accounting():
    import dp_accounting
    from dp_accounting import pld, rdp
    from dp_accounting.pld import privacy_loss_distribution as losses

    rows = []
    for mu in MUS:
        for delta in DELTAS:
            ours = GaussianDP(mu).to_approximate(delta).epsilon
            exact = dp_accounting.get_epsilon_gaussian(1.0 / mu, delta)
            rows.append(_row(f"μ = {mu:g}", f"ε at δ = {delta:g}", ours, exact, "dp-accounting, exact", 1e-9))
            accountant = pld.PLDAccountant().compose(dp_accounting.GaussianDpEvent(1.0 / mu))
            theirs = accountant.get_epsilon(delta)
            rows.append(
                _row(f"μ = {mu:g}", f"ε at δ = {delta:g}", ours, theirs, "dp-accounting, PLD", 2e-3, least=exact)
            )
    orders = np.linspace(1.01, 500.0, 20_000)
    for rho in RHOS:
        for delta in DELTAS:
            ours = ZeroConcentratedDP(rho).to_approximate(delta).epsilon
            theirs = rdp.RdpAccountant(orders).compose(dp_accounting.ZCDpEvent(rho)).get_epsilon(delta)
            # Theirs is of these orders only; no zCDP guarantee implies less than that of the Gaussian mechanism.
            least = GaussianDP(float(np.sqrt(2.0 * rho))).to_approximate(delta).epsilon
            rows.append(_row(f"ρ = {rho:g}", f"ε at δ = {delta:g}", ours, theirs, "dp-accounting, RDP", 1e-5, least))
    for parts in ([GaussianDP(0.3)] * 4, [PureDP(0.1)] * 20, [PureDP(0.1)] * 10 + [GaussianDP(0.5)]):
        together = losses.identity(1e-4)
        for own in parts:
            together = together.compose(_loss(losses, own))
        for delta in (1e-3, 1e-6):
            ours = compose(parts, delta=delta).epsilon
            theirs = together.get_epsilon_for_delta(delta)
            kinds = " + ".join(f"{parts.count(own)} × {own}" for own in dict.fromkeys(parts))
            # A sum by Fourier transforms has its own rounding, which ours allows for.
            rows.append(
                _row(kinds, f"ε at δ = {delta:g}", ours, theirs, "dp-accounting, PLD", 2e-3, least=_least(parts, delta))
            )
    return rows


def _loss(losses, own):
    if isinstance(own, GaussianDP):
        return losses.from_gaussian_mechanism(1.0 / own.mu, value_discretization_interval=1e-4)
    from dp_accounting.pld import common

    parameters = common.DifferentialPrivacyParameters(own.epsilon, getattr(own, "delta", 0.0))
    return losses.from_privacy_parameters(parameters, value_discretization_interval=1e-4)


def _least(parts, delta):
    """Exact, where all are Gaussian; else nothing better than theirs is known."""
    if all(isinstance(own, GaussianDP) for own in parts):
        import dp_accounting

        return dp_accounting.get_epsilon_gaussian(1.0 / sum(own.mu**2 for own in parts) ** 0.5, delta)
    return None
