"""The first part of the arena: Frechet means of records on a manifold, with a public ball or none."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import jaxgeodp as jgd
from benchmarks.compare.arena_cells import Given, Points
from benchmarks.compare.arena_descents import AT_THE_CENTRE, NAMES, descent, schedules
from benchmarks.compare.arena_scores import Score, best_setting, mean_of, scored
from jaxgeodp.checks import InputError
from jaxgeodp.experiments.paper_chains import paper_chain

_PILOTS = 50  # draws by which settings are chosen
_CLIPS = 60  # that the limit is the least of
_ALL_SETTINGS = 20  # dimensions up to which descent chooses from all schedules, then from one step and two rounds

SEARCH = "LocatedMechanism (told no ball)"
AMBIENT = "ambient"
LIMIT = "limit: the best clip about the mean itself"
CENTRE = "public centre, nothing released"


def scores(cell: Points | Given, draws: int, *, chains: int = 0, names: tuple[str, ...] | None = None) -> list[Score]:
    """All who enter, on one data set; ``chains`` says how many chains of the papers, ``names`` which entries."""
    data = cell.records
    truth = jgd.frechet_mean(cell.space, data)
    found = []
    for place, (name, (ours, made)) in enumerate((entries(cell) | shaped(cell)).items()):
        if names is not None and name not in names:
            continue
        key = jax.random.fold_in(key_of(cell, 2), place)  # the same law of another scale would err alike
        try:
            values = made().simulate(key, data, draws)
        except InputError as error:
            print(f"{cell}: no {name}: {error}", flush=True)  # refused from public numbers alone
            continue
        found.append(judged(cell, name, ours, values, truth))
    found += without_noise(cell, data, truth)
    found += descents(cell, data, truth, draws)
    found.append(Score(cell, LIMIT, None, (limit(cell, data, truth), 0.0)))
    found.append(judged(cell, CENTRE, None, jnp.stack([jnp.asarray(cell.ball.center)] * 2), truth))
    if cell.budget == "mu" and has_ambient(cell):
        values = ambient_normal(cell, data, draws)
        found.append(judged(cell, f"{AMBIENT} normal noise", False, values, truth))
    elif chains and isinstance(cell.space, jgd.Sphere | jgd.SPD):
        name = "sphere" if isinstance(cell.space, jgd.Sphere) else "matrices"
        mechanism = jgd.KNGMechanism(cell.ball, cell.strength, calibration="paper")
        ran = paper_chain(key_of(cell, 4), name, mechanism, data, 1, chains, thin=1)
        found.append(judged(cell, "chain of the 2022 paper (KNG)", None, ran.points[:, 0], truth))
    return found


def key_of(cell, number: int) -> jax.Array:
    """Of a part of the randomness; each data set has its own."""
    return jax.random.key(number + 100 * cell.data_set)


def has_ambient(cell) -> bool:
    """Whether the arithmetic mean of records is a rival: vectors and matrices, not shapes."""
    return isinstance(cell.space, jgd.SPD | jgd.Sphere | jgd.Euclidean)


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


def entries(cell: Points | Given) -> dict[str, tuple[bool, Callable]]:
    """What makes each mechanism of this package that enters, and whether law or scale are ours; others' have theirs.

    Noise that is wrapped by exp has been published for curvature that is nowhere positive (Exponential-Wrapped
    Mechanisms, ICLR 2026), and is ours only where it is.
    """
    ball, strength, matrices = cell.ball, cell.strength, isinstance(cell.space, jgd.SPD)
    domain = {"domain": max(4.0, 2.0 * cell.radius)} if matrices else {}
    located = partial(jgd.LocatedMechanism, cell.space, **{cell.budget: strength}, **domain)
    # Where curvature is positive, the sensitivity of the 2021 theorem, which the later papers use, is larger than ours.
    theorem = jgd.LaplaceMechanism(ball, 1.0, calibration="theorem")
    larger = theorem.sensitivity(cell.n) / jgd.LaplaceMechanism(ball, 1.0).sensitivity(cell.n)
    if cell.budget == "mu":
        found = {
            "RiemannianGaussian": (True, partial(jgd.RiemannianGaussian, ball, strength)),
            "GibbsMechanism": (True, partial(jgd.GibbsMechanism, ball, strength)),
            "WrappedGaussian": (not matrices, partial(jgd.WrappedGaussian, ball, strength)),
        }
        if larger > 1.0 + 1e-9:
            # Their scale for the larger sensitivity is, but for 1 %, ours for mu that is as much smaller.
            name = "Riemannian Gaussian of Jiang et al., sensitivity of 2021"
            found[name] = (False, partial(jgd.RiemannianGaussian, ball, strength / larger))
    else:
        found = {
            "LaplaceMechanism, tight": (True, partial(jgd.LaplaceMechanism, ball, strength)),
            "KNGMechanism, tight": (True, partial(jgd.KNGMechanism, ball, strength)),
            "Laplace of the 2021 paper": (False, partial(jgd.LaplaceMechanism, ball, strength, calibration="theorem")),
            "KNG of the 2022 paper, exact draws": (
                False,
                partial(jgd.KNGMechanism, ball, strength, calibration="theorem"),
            ),
            "WrappedLaplace": (not matrices, partial(jgd.WrappedLaplace, ball, strength)),
            "tangent Laplace at the centre": (False, partial(jgd.TangentLaplace, ball, strength)),
        }
        if has_ambient(cell):
            # Its scale is that of twice the radius of an ambient ball.
            wider = 2.0 * cell.space.ambient_radius(ball.center, ball.radius) / ambient_diameter(cell)
            own = partial(jgd.EuclideanLaplace, ball, strength * wider, project=not matrices)
            found[f"{AMBIENT} Laplace"] = (False, own)
    if matrices:
        # About the identity both metrics have the same balls.
        flat = jgd.GeodesicBall(jgd.LogEuclidean(cell.space.size), cell.space.origin, cell.radius)
        law = jgd.WrappedGaussian if cell.budget == "mu" else jgd.TangentLaplace
        found["log-Euclidean mean and noise"] = (False, partial(law, flat, strength))
    for name, symmetric in (("AdaptiveMechanism", False), ("AdaptiveMechanism, symmetric", True)):
        found[name] = (True, partial(jgd.AdaptiveMechanism, ball, **{cell.budget: strength}, symmetric=symmetric))
    return found | {SEARCH: (True, located)}


def shaped(cell: Points | Given) -> dict[str, tuple[bool, Callable]]:
    """Noise with a shape from what is public, in one release and in steps; normal records have none."""
    found = {}
    for name, shape in cell.shapes().items():
        once = jgd.TangentGaussian if cell.budget == "mu" else jgd.TangentLaplace
        steps = partial(jgd.AdaptiveMechanism, cell.ball, **{cell.budget: cell.strength}, shape=shape)
        found[f"shape: {name}"] = (True, partial(once, cell.ball, cell.strength, shape))
        found[f"shape: {name}, in steps"] = (True, steps)
    return found


def limit(cell: Points | Given, data, truth) -> float:
    """Of the mean of logarithms at the truth, shortened to the best clip, plus noise, over how much it moves."""
    space, dim = cell.space, cell.space.dim
    frame = space.frame(truth)
    logs = np.asarray(jax.vmap(lambda x: space.coordinates(truth, space.log(truth, x), frame))(data))
    lengths, draws = np.linalg.norm(logs, axis=1), np.random.default_rng(cell.data_set)
    noise = draws.normal(size=(4000, dim))
    if cell.budget == "epsilon":
        noise *= draws.gamma(dim, size=(4000, 1)) / np.linalg.norm(noise, axis=1, keepdims=True)
    least = np.inf
    for clip in np.geomspace(0.05, 2.0, _CLIPS) * cell.radius:
        mean = np.mean(logs * np.minimum(1.0, clip / lengths)[:, None], axis=0)
        slope = np.mean(np.where(lengths < clip, 1.0, (1.0 - 1.0 / dim) * clip / lengths))
        values = mean + 2.0 * clip / (cell.n * cell.strength) * noise
        least = min(least, float(np.mean(np.linalg.norm(values, axis=1))) / max(slope, 1e-9))
    return least


def without_noise(cell, data, truth) -> list[Score]:
    """What others' means are off by without any noise: they are other points than the Frechet mean."""
    space, center = cell.space, jnp.asarray(cell.ball.center)
    found = {
        "mean of logarithms at the centre": space.exp(
            center, jnp.mean(jax.vmap(lambda x: space.log(center, x))(data), axis=0)
        ),
    }
    if has_ambient(cell):
        found[f"{AMBIENT} mean"] = space.project(jnp.mean(data, axis=0))
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
    noise = sigma * jax.random.normal(key_of(cell, 5), (draws, *mean.shape))
    values = jax.vmap(space.from_ambient)(mean + noise)
    return values if isinstance(space, jgd.SPD) else jax.vmap(space.project)(values)


def descents(cell, data, truth, draws) -> list[Score]:
    """Noisy gradient descent with the best of `schedules`; and the normal mechanism in the tangent space.

    The best one, for each kind of error, is found with other draws, by errors that nobody who has to choose could know.
    """
    few, many = (jax.random.split(key_of(cell, own), count) for own, count in ((6, _PILOTS), (3, draws)))

    def scored_with(name, schedule, keys):
        return judged(cell, name, False, descent(cell.ball, data, cell.budget, cell.strength, schedule, keys), truth)

    settings = schedules(cell.budget)
    if cell.space.dim > _ALL_SETTINGS:
        settings = {name: own for name, own in settings.items() if len(own) == 1 or "then" in name}
    name = f"{NAMES[cell.budget]}, best of {len(settings)}"
    tried = {setting: scored_with(name, schedule, few) for setting, schedule in settings.items()}
    found = [best_setting(tried, lambda own: scored_with(f"{name} [{own}]", settings[own], many))]
    if cell.budget == "mu":
        found.append(scored_with("tangent Gaussian at the centre", AT_THE_CENTRE, many))
    return found
