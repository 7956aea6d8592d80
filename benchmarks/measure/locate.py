"""What finding the ball costs: errors of `LocatedMechanism` over those of an oracle that is told the smallest ball.

    python -m benchmarks.measure.locate              # first table of docs/locate.md, about a quarter of an hour
    python -m benchmarks.measure.locate --coinpress  # its second table, a minute
    python -m benchmarks.measure.locate --picture    # docs/locate.png: the stages of one search
    python -m benchmarks.measure.locate --quick      # to see that it runs

All spend the same whole budget. The oracle's ball is the smallest around the true mean that holds all records (within
Assumption 1), by `LaplaceMechanism` for epsilon and `WrappedGaussian` for mu. "Naive" is that mechanism on the ball of
the whole domain about the origin (on compact manifolds of .9 of Assumption 1's limit). Data are normal in the tangent
space of a point at the given distance from the origin, with spread .7, on compact manifolds .3 or .15.
"""

import sys

import jax
import numpy as np

import jaxgeodp as jgd
from benchmarks.compare.arena_scores import without_tails
from jaxgeodp.domains.geodesic_ball import assumption_limit

FLAT = 30.0
CASES = [
    *[(jgd.SPD(2), away, 0.7, budget, n) for away in (2, 4, 8, 12) for budget, n in (("mu", 300), ("mu", 1000))],
    *[(jgd.SPD(2), away, 0.7, "epsilon", n) for away in (2, 4, 8, 12) for n in (1000, 10_000)],
    *[(jgd.SPD(3), away, 0.7, budget, n) for away in (4, 8) for budget, n in (("mu", 1000), ("epsilon", 3000))],
    *[(jgd.SPD(8), 4, 0.7, "mu", n) for n in (1000, 3000)],
    *[(jgd.Hyperbolic(2), away, 0.7, budget, 1000) for away in (4, 8) for budget in ("mu", "epsilon")],
    *[(jgd.Euclidean(10), 8, 0.7, budget, 1000) for budget in ("mu", "epsilon")],
    *[(jgd.Sphere(2), 0, 0.3, budget, 1000) for budget in ("mu", "epsilon")],
    *[(jgd.Sphere(50), 0, 0.3, budget, n) for budget, n in (("mu", 1000), ("epsilon", 10_000))],
    *[(jgd.Rotations(), 0, 0.3, budget, 1000) for budget in ("mu", "epsilon")],
    *[(jgd.PlanarShapes(10), 0, 0.15, budget, n) for budget, n in (("mu", 1000), ("epsilon", 10_000))],
    *[(jgd.Grassmann(4, 2), 0, 0.2, budget, n) for budget, n in (("mu", 1000), ("epsilon", 3000))],
]


def data_on(space, away, spread, n):
    """Records around a point away from the origin."""
    origin = jax.numpy.asarray(space.origin)
    direction = space.random_tangent(jax.random.key(9), origin)
    center = space.exp(origin, away / space.norm(origin, direction) * direction)

    def record(key):
        return space.project(space.exp(center, spread / np.sqrt(space.dim) * space.random_tangent(key, center)))

    return jax.jit(jax.vmap(record))(jax.random.split(jax.random.key(1), n))


def errors_of_all(space, away, spread, budget, n, draws):
    """Located, the oracle's and, with the domain as ball, a naive custodian's; and how many rounds there were."""
    data = data_on(space, away, spread, n)
    mean = jgd.frechet_mean(space, data)
    reach = float(jax.vmap(lambda x: space.dist(mean, x))(data).max())
    ball = jgd.GeodesicBall(space, mean, min(1.001 * reach, 0.9 * assumption_limit(space)))
    domain = FLAT if isinstance(space, jgd.Euclidean) else None
    located = jgd.LocatedMechanism(space, domain=domain, **{budget: 1.0})
    told = jgd.LaplaceMechanism if budget == "epsilon" else jgd.WrappedGaussian
    distances = jax.jit(jax.vmap(lambda x: space.dist(mean, x)))

    def errors(own):
        return np.asarray(distances(own.simulate(jax.random.key(0), data, draws)))

    widest = min(located.reach, 0.9 * assumption_limit(space))
    try:
        naive = errors(told(jgd.GeodesicBall(space, space.origin, widest), 1.0))
    except ValueError:
        naive = None
    return errors(located), errors(told(ball, 1.0)), naive, located.law(n).schedule.rounds


def coinpress(key, data, reach, rho, rounds):
    """A private mean by Biswas, Dong, Kamath & Ullman (2020), Algorithm 2, written anew from their paper.

    It is told that the covariance is the identity, and a ball of radius ``reach`` about 0 that holds the mean. Of rho
    the last of the rounds has three quarters. Records are clipped where nearly all of a normal sample about a point of
    the ball lies, rather than all of it, which is better and is what their experiments do.
    """
    n, dim = data.shape
    tail = np.log(100.0)
    wide = np.sqrt(dim + 2.0 * np.sqrt(dim * tail) + 2.0 * tail)  # the length of a normal vector, at most
    center, radius = jax.numpy.zeros(dim), reach
    shares = [rho] if rounds == 1 else [*[0.25 * rho / (rounds - 1)] * (rounds - 1), 0.75 * rho]
    for own, share in zip(jax.random.split(key, rounds), shares, strict=True):
        away = data - center
        limit = min(radius + wide, np.sqrt(radius**2 + 6.0 * radius + wide**2))
        clipped = center + away * jax.numpy.minimum(1.0, limit / jax.numpy.linalg.norm(away, axis=1, keepdims=True))
        sigma = 2.0 * limit / n / np.sqrt(2.0 * share)
        center = clipped.mean(axis=0) + sigma * jax.random.normal(own, (dim,))
        radius = wide * np.sqrt(1.0 / n + sigma**2)
    return center


def against_coinpress(draws):
    """Print errors for normal data, of which CoinPress knows the covariance and we do not.

    Means without the tenth that is smallest and the tenth that is largest, as in their experiments.
    """
    dim, rho = 50, 0.5
    reach = 10.0 * np.sqrt(dim)
    print("| n | mean of the records | CoinPress, best number of rounds | LocatedMechanism |\n|---|---|---|---|")
    for n in (1000, 10_000):
        keys = jax.random.split(jax.random.key(n), draws)
        mechanism = jgd.LocatedMechanism(jgd.Euclidean(dim), mu=np.sqrt(2.0 * rho), domain=reach + 2.0 * np.sqrt(dim))

        def errors(key, n=n, mechanism=mechanism):
            data_key, key = jax.random.split(key)
            data = jax.random.normal(data_key, (n, dim))
            theirs = [coinpress(key, data, reach, rho, rounds) for rounds in (1, 2, 3, 4)]
            values = jax.numpy.stack([data.mean(axis=0), *theirs, mechanism.simulate(key, data, 1)[0]])
            return jax.numpy.linalg.norm(values, axis=1)

        found = np.asarray(jax.jit(lambda keys, errors=errors: jax.lax.map(errors, keys))(keys))
        mean, error = np.array([without_tails(own) for own in found.T]).T * [[1.0], [2.0]]
        best = 1 + int(np.argmin(mean[1:-1]))
        cells = [f"{mean[j]:.4f} ± {error[j]:.4f}" for j in (0, best, len(mean) - 1)]
        print(f"| {n} | {cells[0]} | {cells[1]} ({best}) | {cells[2]} |", flush=True)


def picture(path):
    """Draw the stages of one search in the hyperbolic plane, as the disk of Poincare."""
    from matplotlib import pyplot as plt

    plane = jgd.Hyperbolic(2)
    data = data_on(plane, 3.0, 0.7, 1000)
    stages = jgd.LocatedMechanism(plane, epsilon=1.0).release(data).record["stages"]
    stages = [{"center": plane.origin}, *stages]
    figure, axes = plt.subplots(1, 3, figsize=(12, 4.9))
    titles = ["first round", "second round", "the ball that is found"]
    for axis, title, place in zip(axes, titles, (0, 2, 4), strict=True):
        center, radius = jax.numpy.asarray(stages[place]["center"]), stages[place + 1]["radius"]
        turns = np.linspace(0.0, 2.0 * np.pi, 4000)
        directions = np.stack([np.cos(turns), np.sin(turns)], axis=1)
        frame = plane.frame(center)
        rim = jax.vmap(lambda own, c=center, r=radius, f=frame: plane.exp(c, plane.combine(r * own, f)))(directions)
        axis.plot(*directions.T, color="0.6", linewidth=1)
        axis.plot(*_in_disk(data).T, ".", color="0.5", markersize=2, label="records")
        axis.plot(*_in_disk(rim).T, color="tab:orange", label=f"radius {radius:.2g}")
        axis.plot(*_in_disk(center[None]).T, "+", color="tab:orange", markersize=9, label="its centre")
        if place < 4:
            found = np.asarray(stages[place + 2]["center"])
            axis.plot(*_in_disk(found[None]).T, "x", color="tab:blue", markersize=8, label="the next centre")
        axis.set_title(title)
        axis.set_aspect("equal")
        axis.set_axis_off()
        axis.legend(loc="lower center", ncols=2, frameon=False, bbox_to_anchor=(0.5, -0.2))
    figure.subplots_adjust(left=0.01, right=0.99, top=0.93, bottom=0.14, wspace=0.02)
    figure.savefig(path, dpi=110)


def _in_disk(points):
    return np.asarray(points)[:, 1:] / (1.0 + np.asarray(points)[:, :1])


def main(quick: bool):
    """Print the table."""
    jax.config.update("jax_enable_x64", True)
    if "--coinpress" in sys.argv:
        against_coinpress(20 if quick else 400)
        return
    if "--picture" in sys.argv:
        picture("docs/locate.png")
        return
    print(
        "| space | distance from the origin | n | budget | rounds | located | oracle | ratio | of 95 % quantiles "
        "| naive |\n|---|---|---|---|---|---|---|---|---|---|"
    )
    for space, away, spread, budget, n in CASES[:2] if quick else CASES:
        where = "" if away == 0 else f"{away}"
        try:
            draws = 20 if quick else 100 if isinstance(space, jgd.SPD) and space.size == 8 else 500
            own, oracle, naive, rounds = errors_of_all(space, away, spread, budget, n, draws)
            middle, outer = np.median(own) / np.median(oracle), np.quantile(own, 0.95) / np.quantile(oracle, 0.95)
            alone = "refused" if naive is None else f"{np.median(naive):.4f}"
            cells = f"{rounds} | {np.median(own):.4f} | {np.median(oracle):.4f} | {middle:.2f} | {outer:.2f} | {alone}"
        except ValueError as refusal:
            cells = f" | {'too few records' if 'too few' in str(refusal) else refusal} | | | | "
        print(f"| {space} | {where} | {n} | {budget} = 1 | {cells} |", flush=True)


if __name__ == "__main__":
    main("--quick" in sys.argv)
