"""The first part of the arena: Frechet means of records on SPD matrices and spheres, with a public ball or none."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxgeodp as jgd
from benchmarks.compare.arena_descents import AT_THE_CENTRE, NAMES, descent, schedules
from benchmarks.compare.arena_scores import BUDGETS, Score, best_setting, mean_of, scored
from jaxgeodp.experiments.paper_chains import paper_chain

_PILOTS = 200  # draws by which settings are chosen

SEARCH = "LocatedMechanism (told no ball)"
AMBIENT = "ambient"


class Points(NamedTuple):
    """A cell: n records on a manifold, in a public ball about the origin.

    By default they fill only a part of it, about a point half a radius off the centre; if ``wide`` all of it.
    """

    space: Any
    radius: float
    n: int
    budget: str  # "mu" or "epsilon"
    strength: float
    wide: bool = False

    def __str__(self):
        name = f"SPD({self.space.size})" if isinstance(self.space, jgd.SPD) else f"S^{self.space.dim}"
        filled = ", filled" if self.wide else ""
        return f"{name}, r = {self.radius:.3g}{filled}, n = {self.n}, {BUDGETS[self.budget]} = {self.strength:g}"

    @property
    def ball(self) -> jgd.GeodesicBall:
        """The public ball."""
        return jgd.GeodesicBall(self.space, self.space.origin, self.radius)


def records(cell: Points, data_set: int = 0) -> jax.Array:
    """Normal in a tangent space half a radius from the centre, .35 radii wide, clipped into the ball.

    If wide, in that of the centre, 1 radius wide, so that many lie on the sphere around the ball. ``data_set`` says
    which of many.
    """
    space, origin = cell.space, jnp.asarray(cell.space.origin)
    direction = space.random_tangent(jax.random.key(9 + 100 * data_set), origin)
    middle = space.exp(origin, (0.0 if cell.wide else 0.5) * cell.radius / space.norm(origin, direction) * direction)
    spread = (1.0 if cell.wide else 0.35) * cell.radius / np.sqrt(space.dim)

    def record(key):
        return space.project(space.exp(middle, spread * space.random_tangent(key, middle)))

    return jax.jit(lambda keys: cell.ball.clip(jax.vmap(record)(keys)))(
        jax.random.split(jax.random.key(1 + 100 * data_set), cell.n)
    )


def scores(cell: Points, draws: int, *, chains: int = 0, names: tuple[str, ...] | None = None) -> list[Score]:
    """All who enter, on one data set; ``chains`` says how many chains of the papers, ``names`` which entries."""
    data = records(cell)
    truth = jgd.frechet_mean(cell.space, data)
    found = []
    for place, (name, (ours, mechanism)) in enumerate(entries(cell).items()):
        if names is not None and name not in names:
            continue
        key = jax.random.fold_in(jax.random.key(2), place)  # the same law of another scale would err alike
        try:
            found.append(judged(cell, name, ours, mechanism.simulate(key, data, draws), truth))
        except ValueError:
            continue  # no such law for this n: refused from public numbers alone
    found += without_noise(cell, data, truth)
    found += descents(cell, data, truth, draws)
    if cell.budget == "mu":
        values = ambient_normal(cell, data, draws)
        found.append(judged(cell, f"{AMBIENT} normal noise", False, values, truth))
    elif chains:
        name = "sphere" if isinstance(cell.space, jgd.Sphere) else "matrices"
        mechanism = jgd.KNGMechanism(cell.ball, cell.strength, calibration="paper")
        ran = paper_chain(jax.random.key(4), name, mechanism, data, 1, chains, thin=1)
        found.append(judged(cell, "chain of the 2022 paper (KNG)", None, ran.points[:, 0], truth))
    return found


def judged(cell, name, ours, values, truth) -> Score:
    """Against the mean of the records; matrices of the ambient space get eigenvalues that the ball has."""
    if isinstance(cell.space, jgd.SPD):
        values = np.asarray(values)
        if name.startswith(AMBIENT):
            eigenvalues, vectors = np.linalg.eigh(values)
            eigenvalues = np.clip(eigenvalues, np.exp(-cell.radius), np.exp(cell.radius))
            values = (vectors * eigenvalues[:, None, :]) @ np.swapaxes(vectors, 1, 2)
        return scored(cell, name, ours, values, np.asarray(truth))
    distances = jax.vmap(lambda x: cell.space.dist(truth, x))(values)
    return Score(cell, name, ours, mean_of(distances))


def entries(cell: Points) -> dict[str, tuple[bool | None, Any]]:
    """Mechanisms of this package that enter, and whether law or scale are ours; others' have their calibration.

    Noise that is wrapped by exp has been published for curvature that is nowhere positive (Exponential-Wrapped
    Mechanisms, ICLR 2026), and is ours only where it is.
    """
    ball, strength, matrices = cell.ball, cell.strength, isinstance(cell.space, jgd.SPD)
    domain = {"domain": 4.0} if matrices else {}
    located = jgd.LocatedMechanism(cell.space, **{cell.budget: strength}, **domain)
    # Where curvature is positive, the sensitivity of the 2021 theorem, which the later papers use, is larger than ours.
    theorem = jgd.LaplaceMechanism(ball, 1.0, calibration="theorem")
    larger = theorem.sensitivity(cell.n) / jgd.LaplaceMechanism(ball, 1.0).sensitivity(cell.n)
    # Its scale is that of twice the radius of an ambient ball.
    wider = 2.0 * cell.space.ambient_radius(ball.center, ball.radius) / ambient_diameter(cell)
    if cell.budget == "mu":
        found = {
            "RiemannianGaussian": (True, jgd.RiemannianGaussian(ball, strength)),
            "GibbsMechanism": (True, jgd.GibbsMechanism(ball, strength)),
            "WrappedGaussian": (not matrices, jgd.WrappedGaussian(ball, strength)),
        }
        if larger > 1.0 + 1e-9:
            # Their scale for the larger sensitivity is, but for 1 %, ours for mu that is as much smaller.
            name = "Riemannian Gaussian of Jiang et al., sensitivity of 2021"
            found[name] = (False, jgd.RiemannianGaussian(ball, strength / larger))
    else:
        found = {
            "LaplaceMechanism, tight": (True, jgd.LaplaceMechanism(ball, strength)),
            "KNGMechanism, tight": (True, jgd.KNGMechanism(ball, strength)),
            "Laplace of the 2021 paper": (False, jgd.LaplaceMechanism(ball, strength, calibration="theorem")),
            "KNG of the 2022 paper, exact draws": (False, jgd.KNGMechanism(ball, strength, calibration="theorem")),
            "WrappedLaplace": (not matrices, jgd.WrappedLaplace(ball, strength)),
            "tangent Laplace at the centre": (False, jgd.TangentLaplace(ball, strength)),
            f"{AMBIENT} Laplace": (False, jgd.EuclideanLaplace(ball, strength * wider, project=not matrices)),
        }
    if matrices:
        # About the identity both metrics have the same balls.
        flat = jgd.GeodesicBall(jgd.LogEuclidean(cell.space.size), cell.space.origin, cell.radius)
        law = jgd.WrappedGaussian if cell.budget == "mu" else jgd.TangentLaplace
        found["log-Euclidean mean and noise"] = (False, law(flat, strength))
    for name, symmetric in (("AdaptiveMechanism", False), ("AdaptiveMechanism, symmetric", True)):
        found[name] = (True, jgd.AdaptiveMechanism(ball, **{cell.budget: strength}, symmetric=symmetric))
    return found | {SEARCH: (True, located)}


def without_noise(cell, data, truth) -> list[Score]:
    """What others' means are off by without any noise: they are other points than the Frechet mean."""
    space, center = cell.space, jnp.asarray(cell.ball.center)
    found = {
        "mean of logarithms at the centre": space.exp(
            center, jnp.mean(jax.vmap(lambda x: space.log(center, x))(data), axis=0)
        ),
        f"{AMBIENT} mean": space.project(jnp.mean(data, axis=0)),
    }
    return [judged(cell, f"{name}, no noise", None, jnp.stack([value] * 2), truth) for name, value in found.items()]


def ambient_diameter(cell: Points) -> float:
    """How far apart two records are in the ambient space at most.

    On spheres twice the radius of the ball. Of matrices exp(S) and exp(T), |S| and |T| at most r, the Frobenius
    distance is largest for S and T that commute, with eigenvalues s and t in opposite order (von Neumann's trace
    inequality). With f(x) = e^x - 1, f(-x) >= -x, and coordinates where s > 0 > t (else one of them may be 0) apart
    from those where t > 0 > s: if the first have norms a of s and b' of t, and the others b of t and a' of s, it is at
    most |(f(a) + b', f(b) + a')|, as |f(s)| <= f(|s|) for vectors of positive numbers; by the triangle inequality and
    a^2 + a'^2, b^2 + b'^2 <= r^2 at most |(f(a), f(b))| + sqrt(2 r^2 - a^2 - b^2). The convex function f(sqrt(x))^2 of
    two numbers of a given sum is largest at an end: max over b of |(f(r), f(b))| + sqrt(r^2 - b^2), or what is less.
    """
    if not isinstance(cell.space, jgd.SPD):
        return 2.0 * cell.space.ambient_radius(cell.ball.center, cell.ball.radius)
    r, edges = cell.radius, np.linspace(0.0, cell.radius, 2**16)
    # In each piece the first term is largest at its upper end, the second at its lower.
    return float(np.max(np.hypot(np.expm1(r), np.expm1(edges[1:])) + np.sqrt(r**2 - edges[:-1] ** 2)))


def ambient_normal(cell, data, draws) -> jax.Array:
    """Normal noise on the arithmetic mean of unit vectors or matrices, which a record moves by 1/n of the diameter."""
    space = cell.space
    sigma = ambient_diameter(cell) / data.shape[0] / cell.strength
    mean = space.to_ambient(jnp.mean(data, axis=0))
    noise = sigma * jax.random.normal(jax.random.key(5), (draws, *mean.shape))
    values = jax.vmap(space.from_ambient)(mean + noise)
    return values if isinstance(space, jgd.SPD) else jax.vmap(space.project)(values)


def descents(cell, data, truth, draws) -> list[Score]:
    """Noisy gradient descent with the best of `schedules`; and the normal mechanism in the tangent space.

    The best one, for each kind of error, is found with other draws, by errors that nobody who has to choose could know.
    """
    few, many = (jax.random.split(jax.random.key(own), count) for own, count in ((6, _PILOTS), (3, draws)))

    def scored_with(name, schedule, keys):
        return judged(cell, name, False, descent(cell.ball, data, cell.budget, cell.strength, schedule, keys), truth)

    settings = schedules(cell.budget)
    name = f"{NAMES[cell.budget]}, best of {len(settings)}"
    tried = {setting: scored_with(name, schedule, few) for setting, schedule in settings.items()}
    found = [best_setting(tried, lambda own: scored_with(f"{name} [{own}]", settings[own], many))]
    if cell.budget == "mu":
        found.append(scored_with("tangent Gaussian at the centre", AT_THE_CENTRE, many))
    return found
