"""``jaxgeodp plan --center auto --radius auto``: what a search for the ball costs, before any data are touched."""

from jaxgeodp.checks import InputError
from jaxgeodp.cli.conventions import tell
from jaxgeodp.cli.frame import OUTPUT, say
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.locating import LocatedMechanism
from jaxgeodp.manifolds import Manifold
from jaxgeodp.privacy import grid
from jaxgeodp.releases.expected import expected_error
from jaxgeodp.releases.ways import Idealized

# Radii of the last ball for which errors are told.
_RADII = 5


def plan_located(space: Manifold, n: int, epsilon: float | None, mu: float | None, domain: float | None) -> None:
    """Print the stages of a search for each privacy parameter, and what it leaves for the release.

    Raises:
        ValueError: every search is refused: the reason of the first.
    """
    strengths = {name: own for name, own in {"epsilon": epsilon, "mu": mu}.items() if own is not None}
    found, refusals = {}, {}
    for name in strengths:
        try:
            own = {"epsilon": epsilon, "mu": None} if name == "epsilon" else {"epsilon": None, "mu": mu}
            found[name] = LocatedMechanism(space, domain=domain, **own).law(n)
        except InputError as refusal:
            refusals[name] = refusal
    if not found:
        raise next(iter(refusals.values()))
    plans = [_told(law, name, strengths[name]) for name, law in found.items()]
    refused = [{name: strengths[name], "refusal": str(refusal)} for name, refusal in refusals.items()]
    tell(manifold=str(space), n=n, searches=plans + refused)
    for name, refusal in refusals.items():
        say(f"{name} = {strengths[name]:g}: {refusal}")


def _told(law, name, strength) -> dict:
    """Print a search; return it for ``--json``."""
    plan = law.schedule
    wide = [part for part in plan.parts if part.open]
    say(f"{name} = {strength:g}, n = {law.n}, {law.manifold}: {plan.rounds} round{'s' * (plan.rounds > 1)}.")
    if wide:
        say(f"  radius of each round: counts with discrete Laplace noise of scale {plan.counts}")
    for part, noise in zip(plan.parts, plan.centers, strict=True):
        kind = "Gaussian" if noise.gaussian else "Laplace"
        unit = "the radius" if part.open else "the length of the extrinsic vectors"
        mean = f"a mean with discrete {kind} noise, {noise.scale / grid.STEPS / law.n:.2g} of {unit} a coordinate"
        kind = "RiemannianGaussian, mu" if name == "mu" else "LaplaceMechanism, epsilon"
        what = f"a draw of {kind} = {getattr(plan.drawn, name):.4g}" if plan.draws and part.open else mean
        say(f"  centre{f' on {part.manifold}' * (len(plan.parts) > 1)}: {what}")
    say(f"  last radius: counts with discrete Laplace noise of scale {plan.last_counts}")
    last = law.terms.more["last"]
    say(f"  release: {last['mechanism']}, {name} = {plan.rest:.4g}")
    share = plan.rest / strength
    say(
        f"The whole {name} for a public ball with {1.0 / share:.2f} times the radius of the one that is found has the "
        "same noise: who knows a smaller one needs no search."
    )
    say("Expected error of the release about the mean of the clipped records, by the radius of the ball that is found:")
    radii, errors = law.last.radii, []
    for radius in [radii[-1 - 4 * j] for j in range(_RADII) if 4 * j < len(radii)][::-1]:
        with OUTPUT.status("Simulating ..."):
            error = expected_error(
                law.last.mechanism(GeodesicBall(law.manifold, law.manifold.origin, radius)), law.n, Idealized()
            )
        say(f"  {radius:10.4g}  {error.mean:.4g} (95% below {error.radius:.4g})")
        errors.append({"radius_of_ball": float(radius)} | error._asdict())
    noise = {"counts": plan.counts if wide else None, "last_counts": plan.last_counts}
    rest = {"mechanism": last["mechanism"], name: float(plan.rest), "errors": errors}
    return {name: strength, "rounds": plan.rounds} | noise | {"release": rest}
