"""Draws from the mechanisms: jaxgeodp against NumPy.

    python -m benchmarks.compare.draws [--quick]

*Replicates* are what a simulation study needs: for each of many data sets on the sphere, clip, take the mean,
draw once from the K-norm gradient mechanism. jaxgeodp runs all of them as one program. Compared with

* *rejection*: an exact rejection sampler in plain NumPy, vectorised over points and proposals, in a loop
  over replicates (its proposal is a truncated Gamma radius in a uniform direction around the mean);
* *chain*: a geodesic random-walk Metropolis chain in NumPy, the usual sampler for this mechanism. One
  independent draw costs 20,000 burn-in steps, each with one gradient. Step size tuned to an acceptance of
  0.3 to 0.5 before the clock starts.

Both are timed on a few replicates, and given per draw. The last column of the first table, the mean distance
between draw and statistic, shows that the two exact samplers draw from the same law. The second table is many
draws for one data set, where "first call" includes compilation; the third is what bounds of the gradient spare
(Theorem Z), the last what a few records do (Theorem V).
"""

import argparse
import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.tools.timing import (
    measure,
    milliseconds,
    print_machine,
    print_table,
    ratio,
    restart_with_fair_environment,
)
from jaxgeodp import SPD, GeodesicBall, GibbsMechanism, KNGMechanism, LaplaceMechanism, PlanarShapes, Sphere
from jaxgeodp.datasets import digit_outlines, template_outline
from jaxgeodp.mechanisms.kng import GradientNorm
from jaxgeodp.mechanisms.potential import Potential

SPHERE = Sphere(2)
POLE = np.array([0.0, 0.0, 1.0])
RADIUS = math.pi / 8
RECORDS = 100
BLOCK = 8  # proposals at a time for one draw, as in the library
BURN_IN = 20_000


def sphere_data(sets):
    """(sets, 100, 3): uniform in a tangent disc, then shifted together, so that a few lie outside the ball."""
    length_key, angle_key, tilt_key = jax.random.split(jax.random.key(0), 3)
    length = RADIUS * jnp.sqrt(jax.random.uniform(length_key, (sets, RECORDS)))
    angle = 2.0 * math.pi * jax.random.uniform(angle_key, (sets, RECORDS))
    planar = jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=-1) * jnp.sin(length)[..., None]
    data = jnp.concatenate([planar, jnp.cos(length)[..., None]], axis=-1)
    data = data + 0.05 * jax.random.normal(tilt_key, (sets, 1, 3))
    return data / jnp.linalg.norm(data, axis=-1, keepdims=True)


# The same replicate in NumPy ---------------------------------------------------------------------------


def clip(data):
    """Records outside the ball moved to its boundary along the geodesic to the pole."""
    cosine = data[:, 2]
    planar = data[:, :2] / np.maximum(np.hypot(data[:, 0], data[:, 1]), 1e-300)[:, None]
    boundary = np.concatenate([math.sin(RADIUS) * planar, np.full((len(data), 1), math.cos(RADIUS))], axis=1)
    return np.where((cosine < math.cos(RADIUS))[:, None], boundary, data)


def gradient(x, points):
    """Minus the gradient at each row of x (m, 3): the average of the logarithms of the points."""
    cosine = np.minimum(x @ points.T, 1.0)
    sine = np.sqrt(1.0 - cosine**2)
    factor = np.where(sine > 1e-12, np.arccos(cosine) / np.maximum(sine, 1e-12), 1.0)
    return (factor @ points - np.sum(factor * cosine, axis=1, keepdims=True) * x) / len(points)


def gradient_norm(x, points):
    return np.linalg.norm(gradient(x, points), axis=1)


def exponential(x, tangent):
    length = np.linalg.norm(tangent, axis=-1, keepdims=True)
    return np.cos(length) * x + np.sinc(length / math.pi) * tangent


def frechet_mean(points):
    x = POLE[None]
    for _ in range(100):
        tangent = gradient(x, points)
        x = exponential(x, tangent)
        if np.linalg.norm(tangent) < 1e-12:
            break
    return x[0] / np.linalg.norm(x[0])


def tangent_basis(x):
    first = np.cross(x, np.eye(3)[np.argmin(np.abs(x))])
    first /= np.linalg.norm(first)
    return np.stack([first, np.cross(x, first)])


def rejection(generator, data, scale, num=1, block=BLOCK):
    """Exact draws (num, 3): the gradient norm is at least slope * distance in the ball (concave growth).

    Proposals have the density t exp(-slope t / scale) dt, a Gamma law, in a uniform direction.
    """
    points = clip(data)
    center = frechet_mean(points)
    farthest, reach = 2.0 * RADIUS, RADIUS + math.acos(min(center[2], 1.0))
    bend = (1.0 - farthest / math.tan(farthest)) / farthest**2
    spread = np.mean(np.arccos(np.minimum(points @ center, 1.0)) ** 2)
    slope = 1.0 - bend * (spread + reach**2 / 3.0)
    basis = tangent_basis(center)
    draws, found = [], 0
    while found < num:
        radius = generator.gamma(2.0, scale / slope, block)
        angle = generator.uniform(0.0, 2.0 * math.pi, block)
        unit = np.cos(angle)[:, None] * basis[0] + np.sin(angle)[:, None] * basis[1]
        candidates = np.cos(radius)[:, None] * center + np.sin(radius)[:, None] * unit
        log_ratio = (slope * radius - gradient_norm(candidates, points)) / scale + np.log(np.sinc(radius / math.pi))
        inside = (candidates[:, 2] >= math.cos(RADIUS)) & (radius < reach)
        accepted = inside & (np.log1p(-generator.uniform(size=block)) <= log_ratio)
        draws.append(candidates[accepted])
        found += np.count_nonzero(accepted)
    return np.concatenate(draws)[:num]


def chain(generator, data, scale, step, burn_in=BURN_IN):
    """The last state (1, 3) of a geodesic random walk, and the share of moves that were accepted."""
    points = clip(data)
    x = frechet_mean(points)
    potential, accepted = gradient_norm(x[None], points)[0], 0
    for _ in range(burn_in):
        normal = generator.normal(size=3)
        tangent = step * (normal - (normal @ x) * x)
        candidate = exponential(x, tangent)
        candidate /= math.sqrt(candidate @ candidate)
        if candidate[2] < math.cos(RADIUS):
            continue
        proposed = gradient_norm(candidate[None], points)[0]
        if math.log1p(-generator.random()) <= (potential - proposed) / scale:
            x, potential, accepted = candidate, proposed, accepted + 1
    return x[None], accepted / burn_in


def tuned_step(data, scale):
    """A step size with an acceptance of 0.3 to 0.5."""
    step, generator = scale, np.random.default_rng(0)
    while True:
        acceptance = chain(generator, data, scale, step, 2000)[1]
        if 0.3 <= acceptance <= 0.5:
            return step, acceptance
        step *= 1.3 if acceptance > 0.5 else 0.8


# Tables ------------------------------------------------------------------------------------------------


def replicates(sets, loop_sets, chain_sets, burn_in, repeats):
    mechanism = sphere_mechanism()
    scale = mechanism.scale(RECORDS)
    data, keys = sphere_data(sets), jax.random.split(jax.random.key(1), sets)
    records, generator = np.asarray(data), np.random.default_rng(2)
    step, acceptance = tuned_step(records[0], scale)
    program = jax.jit(jax.vmap(lambda key, data: mechanism.simulate(key, data, 1)))

    def rejections():
        return np.concatenate([rejection(generator, one, scale) for one in records[:loop_sets]])

    def chains():
        return np.concatenate([chain(generator, one, scale, step, burn_in)[0] for one in records[:chain_sets]])

    tasks = {"jaxgeodp": lambda: program(keys, data), "rejection": rejections, "chain": chains}
    counts = {"jaxgeodp": sets, "rejection": loop_sets, "chain": chain_sets}
    measured = measure(tasks, repeats)
    per_draw = {name: measured[name].per_item(counts[name]) for name in tasks}
    names = {"jaxgeodp": "jaxgeodp", "rejection": "NumPy rejection", "chain": f"NumPy chain, {burn_in} steps"}
    rows = []
    for name in tasks:
        rows.append(
            [
                names[name],
                f"{counts[name]:,}",
                f"{measured[name].median:.3g} s",
                milliseconds(per_draw[name].median),
                f"{1.0 / per_draw[name].median:,.3g}",
                ratio(per_draw[name], per_draw["jaxgeodp"]),
                f"{measured[name].first:.2f} s",
                distance_to_mean(np.asarray(tasks[name]()).reshape(-1, 3), records),
            ]
        )
    title = f"One K-norm gradient draw for each data set of {RECORDS} records on S^2, radius pi/8, epsilon 1"
    header = ["sampler", "draws timed", "seconds", "per draw", "draws/s", "time / jaxgeodp", "first call"]
    print_table(title, [*header, "distance to mean"], rows)
    print(f"\nchain: step {step:.3g}, acceptance {acceptance:.2f}; per draw = per independent draw.")


def distance_to_mean(draws, records):
    """Average distance (with its standard error) of draws from the mean of their own data."""
    if len(draws) < 20:
        return "(too few)"
    draws = draws[:2000]
    means = np.stack([frechet_mean(clip(one)) for one in records[: len(draws)]])
    distances = np.arccos(np.clip(np.sum(draws * means, axis=-1), -1.0, 1.0))
    return f"{distances.mean():.4f} +- {distances.std() / math.sqrt(distances.size):.4f}"


def many_draws(num, repeats):
    """The sphere, with NumPy's rejection sampler in large blocks beside it."""
    mechanism, data = sphere_mechanism(), sphere_data(1)[0]
    generator, scale, records = np.random.default_rng(3), mechanism.scale(RECORDS), np.asarray(data)
    title = "K-norm gradient, S^2, n = 100, epsilon 1"
    rivals = {"numpy": lambda: rejection(generator, records, scale, num, 4096)}
    measured, row = draw_row(title, mechanism, data, num, repeats, rivals)
    numpy_row = [f"NumPy rejection, the same: {ratio(measured['numpy'], measured['draws'])} the time", f"{num:,}"]
    seconds = measured["numpy"].median
    numpy_row += [milliseconds(seconds), milliseconds(seconds / num), f"{num / seconds:,.3g}", "", ""]
    return [row, numpy_row]


def digit_draws(epsilon, num, repeats):
    shapes = PlanarShapes(50)
    outlines = shapes.from_landmarks(digit_outlines(2, 50))
    template = shapes.from_landmarks(template_outline(2, 50))
    mechanism = KNGMechanism(GeodesicBall(shapes, template, 0.3), epsilon)
    title = f"K-norm gradient, digit outlines d = 96, n = {len(outlines)}, epsilon {epsilon:g}"
    return draw_row(title, mechanism, outlines, num, repeats)[1]


def sphere_mechanism():
    return KNGMechanism(GeodesicBall(SPHERE, POLE, RADIUS), epsilon=1.0)


def matrix_problem():
    matrices = SPD(2)
    ball = GeodesicBall(matrices, matrices.origin, 1.5)
    noise = 0.4 * jax.random.normal(jax.random.key(5), (RECORDS, 2, 2))
    origin = jnp.asarray(matrices.origin)
    data = jax.vmap(lambda tangent: matrices.exp(origin, tangent))(noise + noise.transpose(0, 2, 1))
    return LaplaceMechanism(ball, epsilon=1.0), data


class OfAllRecords(Potential):
    """The same exponent, for which all records are looked at for each proposal, as before Theorem V."""

    def spares(self, ball, n):
        return False


def few_records_row(size, n, radius, kind, num, repeats):
    """A few records against all of them; records near one point of the rim, or all over the rim."""
    space = SPD(size)
    ball = GeodesicBall(space, space.origin, radius)
    law, origin = GibbsMechanism(ball, 1.0).law(n), jnp.asarray(space.origin)
    tangents = jax.vmap(lambda key: space.random_tangent(key, origin))(jax.random.split(jax.random.key(7), n))
    lengths = jax.vmap(lambda tangent: space.norm(origin, tangent))(tangents)
    center = space.exp(origin, 0.95 * radius * space.frame(origin)[0]) if kind == "near one point" else origin
    scale = 0.01 if kind == "near one point" else (0.97 * radius / lengths)[:, None, None]
    data = jax.vmap(lambda tangent: space.exp(center, tangent))(scale * tangents)
    target = OfAllRecords(**{own.name: getattr(law.target, own.name) for own in dataclasses.fields(law.target)})
    laws = {"few": law, "all": dataclasses.replace(law, target=target)}
    tasks = {name: lambda own=own: own.simulated(jax.random.key(8), data, num) for name, own in laws.items()}
    measured = measure(tasks, repeats)
    few, every = (measured[name].median / num for name in ("few", "all"))
    return [
        f"SPD({size}), n = {n}, r = {radius:g}, {kind}",
        f"{num}",
        milliseconds(few),
        milliseconds(every),
        ratio(measured["all"], measured["few"]),
        f"{float(tasks['few']().acceptance):.2f}",
    ]


class OfEveryRecord(GradientNorm):
    """The same exponent, for which all records are looked at for each proposal, as before Theorem Z."""

    def at_home(self, ball):
        return OfEveryRecord(self.statistic.at_home(ball))

    def bounds(self, ball, center, points, scale):
        return None


def squeeze_row(space, n, radius, num, repeats):
    """The K-norm gradient with and without bounds, the same draws; records in a ball around the centre."""
    origin = jnp.asarray(space.origin)

    def record(key):
        tangent = space.random_tangent(key, origin)
        length = radius * jnp.sqrt(jax.random.uniform(jax.random.fold_in(key, 1)))
        return space.exp(origin, length * tangent / space.norm(origin, tangent))

    data = jax.vmap(record)(jax.random.split(jax.random.key(7), n))
    law = KNGMechanism(GeodesicBall(space, space.origin, radius), epsilon=1.0).law(n)
    laws = {"bounds": law, "all": dataclasses.replace(law, target=OfEveryRecord(law.target.statistic))}
    tasks = {name: lambda own=own: own.simulated(jax.random.key(8), data, num) for name, own in laws.items()}
    measured = measure(tasks, repeats)
    moved = float(jnp.max(jnp.abs(tasks["bounds"]().points - tasks["all"]().points)))
    return [
        f"{space}, n = {n}, r = {radius:.3g}",
        f"{num:,}",
        *(milliseconds(measured[name].median / num) for name in ("bounds", "all")),
        ratio(measured["all"], measured["bounds"]),
        f"{float(tasks['bounds']().acceptance):.2f}",
        f"{moved:.0e}",
    ]


SQUEEZED = [
    (SPHERE, 100, RADIUS, 20_000),
    (SPHERE, 1000, RADIUS, 20_000),
    (PlanarShapes(10), 400, 0.19, 4000),
    (SPD(3), 1000, 1.0, 4000),
    (SPD(8), 1091, 1.0, 1000),
]

FEW_RECORDS = [
    (3, 1000, 1.0, "over the rim", 256),
    (10, 70, 2.0, "over the rim", 64),
    (10, 100, 1.0, "over the rim", 64),
    (10, 1000, 1.0, "over the rim", 64),
    (10, 1000, 1.0, "over the rim", 256),
    (10, 1000, 2.0, "over the rim", 256),
    (10, 1000, 3.0, "near one point", 256),
    (10, 200, 3.0, "near one point", 1),
]


def draw_row(title, mechanism, data, num, repeats, rivals=None):
    # `simulate` drops the acceptance rate; the sampler behind it reports it.
    program = jax.jit(lambda key, data: mechanism.law(len(data)).simulated(key, data, num))
    key = jax.random.key(6)
    measured = measure({"draws": lambda: program(key, data), **(rivals or {})}, repeats)
    seconds = measured["draws"].median
    draws = program(key, data)
    if not bool(draws.complete):
        raise RuntimeError(f"{title}: incomplete.")
    row = [title, f"{num:,}", milliseconds(seconds), milliseconds(seconds / num), f"{num / seconds:,.3g}"]
    return measured, [*row, f"{float(draws.acceptance):.3f}", f"{measured['draws'].first:.2f} s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    quick = parser.parse_args().quick
    jax.config.update("jax_enable_x64", True)
    print_machine()
    replicates(*((20, 5, 1, 200, 2) if quick else (10_000, 300, 2, BURN_IN, 7)))
    num, repeats = (100, 2) if quick else (20_000, 7)
    rows = [draw_row("Laplace, SPD(2), n = 100, epsilon 1", *matrix_problem(), num, repeats)[1]]
    if not quick:
        rows = many_draws(num, repeats) + rows + [digit_draws(epsilon, 1000, repeats) for epsilon in (1.0, 10.0)]
    header = ["mechanism", "draws per call", "warm call", "per draw", "draws/s", "acceptance", "first call"]
    print_table("Many draws for one data set", header, rows)
    print_table(
        "Draws of the K-norm gradient mechanism, epsilon = 1, for one data set: bounds against all records",
        ["records", "draws per call", "bounds, per draw", "all, per draw", "all / bounds", "acceptance", "moved by"],
        [squeeze_row(*cell, repeats) for cell in ([(SPHERE, 70, RADIUS, 1000)] if quick else SQUEEZED)],
    )
    cells = [(3, 70, 1.0, "over the rim", 8)] if quick else FEW_RECORDS
    print_table(
        "Draws of the Gibbs mechanism, mu = 1, for one data set: a few records against all",
        ["records", "draws per call", "a few, per draw", "all, per draw", "all / a few", "acceptance"],
        [few_records_row(*cell, repeats) for cell in cells],
    )


if __name__ == "__main__":
    restart_with_fair_environment()
    main()
