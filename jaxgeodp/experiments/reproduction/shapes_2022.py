"""Shapes of Soto et al. 2022 (Figs. 2, 3; supplement 2.5), claims S1-S2, on outlines instead of brains."""

import functools
import itertools
import math

import jax
import jax.numpy as jnp
import matplotlib.figure
import numpy as np

from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.experiments.generators import OutlineData
from jaxgeodp.experiments.reproduction.run import Estimate, Run, all_of, compare, within
from jaxgeodp.experiments.shapes import crossings, smooth_outline
from jaxgeodp.manifolds import PlanarShapes
from jaxgeodp.mechanisms import KNGMechanism, LandmarkLaplace, TangentLaplace
from jaxgeodp.plotting import draw_outline
from jaxgeodp.statistics import frechet_mean

LANDMARKS, RECORDS, RADIUS, EPSILON = 50, 409, 0.19, 1.0
_DRAWS = 200
# Half-width of the smoothing weights in landmarks: the outline has 50.
_BANDWIDTH = 1.5


def reproduce(run: Run) -> None:
    """Fill ``run`` with S1 and S2."""
    run.settings = {"landmarks": LANDMARKS, "records": RECORDS, "radius": RADIUS, "epsilon": EPSILON}
    manifold = PlanarShapes(LANDMARKS)
    ball = GeodesicBall(manifold, OutlineData.template(manifold), RADIUS)
    with jax.enable_x64(True):
        points = jax.jit(lambda key: OutlineData(ball).records(key, RECORDS))(jax.random.key(run.seed))
        mean = jax.jit(lambda x: frechet_mean(manifold, x))(points)
        count = run.count(_DRAWS)
        draws = {}
        for setting in ("paper", "theorem", "tight"):
            for name, values in _draws(run, setting, ball, points, mean, count).items():
                draws[name, setting] = np.asarray(values)
        smooth = {key: np.stack([smooth_outline(x, _BANDWIDTH) for x in values]) for key, values in draws.items()}
        for (name, setting), values in draws.items():
            _remember(run, name, setting, manifold, mean, values, smooth[name, setting])
    for setting in ("paper", "theorem", "tight"):
        _claim(run, "S1", setting, "distance", "crossings")
        _claim(run, "S2", setting, "smoothed_distance", "smoothed_crossings")
    pose = np.asarray(ball.center)
    run.figures["figure-2"] = _figure(points, mean, pose, draws, "Figure 2: private means")
    run.figures["figure-3"] = _figure(points, mean, pose, smooth, "Figure 3: the same, smoothed")


def _draws(run, setting, ball, points, mean, count):
    """Return private means by name."""
    keys = jax.random.split(jax.random.fold_in(jax.random.key(run.seed), 7), 5)
    run.say(f"shapes, {setting}: KNG")
    values = {"KNG": KNGMechanism(ball, EPSILON, calibration=setting).simulate(keys[0], points, count)}
    if setting == "paper":
        values["landmarks, aligned"] = _as_printed(keys[1], points, mean, count)
        values["landmarks, not aligned"] = _as_printed(keys[2], points, None, count)
        return values
    for align, name, key in ((True, "landmarks, aligned", keys[1]), (False, "landmarks, not aligned", keys[2])):
        values[name] = LandmarkLaplace(ball, EPSILON, align).simulate(key, points, count)
    if setting == "tight":
        values["TangentLaplace"] = TangentLaplace(ball, EPSILON).simulate(keys[3], points, count)
    return values


@functools.partial(jax.jit, static_argnums=3)
def _as_printed(key, points, mean, count):
    """Return the mean with Laplace noise of scale 4 r_j k/(n epsilon) on each coordinate (supplement 2.5.2).

    r_j is the largest deviation of coordinate j from the mean in these very data, which is why it is not private.
    """
    if mean is not None:
        overlap = points.conj() @ mean
        points = points * (overlap / jnp.abs(overlap))[:, None]
    center = jnp.mean(points, axis=0) if mean is None else mean
    coordinates = jnp.concatenate([points.real, points.imag], axis=1)
    start = jnp.concatenate([center.real, center.imag])
    reach = jnp.max(jnp.abs(coordinates - start), axis=0)
    k = points.shape[1]
    noise = jax.random.laplace(key, (count, 2 * k), start.dtype) * (4.0 * k / (len(points) * EPSILON)) * reach
    return jax.lax.complex(start[:k] + noise[:, :k], start[k:] + noise[:, k:])


def _remember(run, name, setting, manifold, mean, values, smooth):
    distance = jax.jit(jax.vmap(lambda x: manifold.dist(mean, manifold.project(x))))
    run.numbers.append(
        {
            "manifold": str(manifold),
            "mechanism": name,
            "setting": setting,
            "n": RECORDS,
            "epsilon": EPSILON,
            "replicates": len(values),
            "distance": Estimate.of(distance(jnp.asarray(values))),
            "crossings": Estimate.of([crossings(x) for x in values]),
            "smoothed_distance": Estimate.of(distance(jnp.asarray(smooth))),
            "smoothed_crossings": Estimate.of([crossings(x) for x in smooth]),
        }
    )


def _claim(run, claim, setting, distance, count):
    rows = {row["mechanism"]: row for row in run.numbers if row["setting"] == setting}
    names = ("KNG", "landmarks, aligned", "landmarks, not aligned")
    words = {"S1": "", "S2": "after smoothing, "}[claim]
    why = {
        "paper": "bounds of the landmarks read off the data: not private; KNG with scale 2Δ/ε on a public ball",
        "theorem": "public bounds for all",
        "tight": "public bounds for all",
    }[setting]
    for below, above in itertools.pairwise(names):
        run.claim(
            claim,
            f"shapes: {words}{below} is nearer to the mean shape than {above}",
            setting,
            f"Procrustes distance {rows[below][distance]} against {rows[above][distance]}",
            compare(rows[below][distance], rows[above][distance]),
            why,
        )
    kept = rows["KNG"][count]
    run.claim(
        claim,
        f"shapes: {words}KNG keeps the outline (hardly any crossing), landmark noise does not",
        setting,
        ", ".join(f"{name}: {rows[name][count]}" for name in names) + " self-crossings",
        all_of([within(kept, 0.0, 1.0), within(rows["landmarks, aligned"][count], 1.0, math.inf)]),
        f"k = {LANDMARKS}, n = {RECORDS}, r = {RADIUS}, ε = {EPSILON:g}",
    )


def _figure(points, mean, pose, draws, title):
    """Draw data and mean on the left, and rows of six private means by mechanism and setting."""
    rows = list(draws)
    figure = matplotlib.figure.Figure(figsize=(13, 1.25 * len(rows) + 0.6), layout="constrained")
    axes = figure.subplots(len(rows), 8)
    figure.suptitle(title)

    def landmarks(x):
        return np.stack([np.real(x), np.imag(x)], axis=1)

    reference = landmarks(pose)

    for row, key in enumerate(rows):
        sample, centre = axes[row, 0], axes[row, 1]
        if row == 0:
            for x in np.asarray(points)[:10]:
                draw_outline(sample, landmarks(x), reference, linewidth=0.5)
            sample.set_title("ten records", fontsize=8)
            draw_outline(centre, reference)
            centre.set_title("Fréchet mean", fontsize=8)
        else:
            sample.axis("off")
            centre.axis("off")
        for axis, x in zip(axes[row, 2:], draws[key], strict=False):
            x = x - x.mean()
            turn = np.vdot(x, pose)
            closed = np.append(x, x[0]) * (turn / abs(turn))
            axis.plot(closed.real, closed.imag, color="black", linewidth=0.8)
            axis.set_aspect("equal")
            axis.axis("off")
        axes[row, 2].set_title(f"{key[0]}: {key[1]}", fontsize=8, loc="left")
    return figure
