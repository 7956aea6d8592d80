"""``jaxgeodp demo``: private means of handwritten digits, as shapes and as covariance matrices.

The digits ship with scikit-learn; they are public, which is why the pictures may show the data and the mean
beside the releases. The centre of each ball is a printed digit of a font, the radii are constants.
"""

import pathlib
import time
import zlib
from typing import Annotated

import jax
import numpy as np
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from jaxgeodp import datasets, plotting
from jaxgeodp.checks import InputError
from jaxgeodp.cli.frame import OUTPUT, one_sentence_errors, quiet_libraries, say
from jaxgeodp.domains import GeodesicBall, Shape
from jaxgeodp.manifolds import SPD, PlanarShapes
from jaxgeodp.mechanisms import LaplaceMechanism, TangentLaplace
from jaxgeodp.pictures import color_of
from jaxgeodp.statistics import frechet_mean

DIGIT = 2
LANDMARKS = 16
# Releases that might have been, beside the one that is.
DRAWS = 20
SHAPE_RADIUS = 0.3
COVARIANCE_RADIUS = 1.0
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)
FEATURES = ("x", "y", "I", "|Ix|", "|Iy|")
# Beyond about this Procrustes distance from the mean a "2" is no longer told from other curves by eye.
SHAPE_LOST = 0.15
# Beyond this distance the variance of some combination of the features may be off by 65 %.
COVARIANCE_LOST = 0.5
# Entries of the log-ratio to the mean beyond this have the deepest colour; 0.4 is 49 % more or 33 % less.
RATIO_LIMIT = 0.4
_TITLES = {"laplace": "Ball", "tangent": "Shape"}
# The yellow of TangentLaplace would hide the dots of gold.
_DRAWN = {"laplace": color_of("laplace"), "tangent": "#00695c"}
_LEGEND = f"""private means, ε-DP →

above: noise of the ball
(LaplaceMechanism)
below: of a smooth shape
made of centre and radius
(Shape.smooth)

black: what was released
coloured: {DRAWS} draws that
might have been
dots of gold: the mean

error: distance from the
mean, median of the draws
(least to largest)
lost: above {SHAPE_LOST:g}, where a 2
is no longer told by eye"""


def demo(
    out: Annotated[pathlib.Path, typer.Option(help="Folder for the pictures and records.")] = pathlib.Path(
        "jaxgeodp-demo"
    ),
) -> None:
    """Private mean shape and mean covariance of handwritten digits: pictures and release records, in a minute."""
    with one_sentence_errors():
        if out.exists() and not out.is_dir():
            raise InputError(f"--out {out} is a file; name a folder.")
        with quiet_libraries():
            _run(out)


def _run(out: pathlib.Path) -> None:
    """Release, draw and record everything into the folder ``out``."""
    started = time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    with OUTPUT.status("Making shapes and matrices of digits; compiling their means ..."):
        shapes = _shape_study()
        covariances = _covariance_study()
    total = 2 * len(_TITLES) * len(EPSILONS)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=OUTPUT, transient=True) as progress:
        task = progress.add_task("private releases; the first of a kind is compiled", total=total)
        for study in (shapes, covariances):
            for name in _TITLES:
                for epsilon in EPSILONS:
                    study.release(name, epsilon, out)
                    progress.advance(task)
    with OUTPUT.status("Drawing pictures ..."):
        _draw_shapes(shapes, out / "shapes.png")
        _draw_covariances(covariances, out / "covariances.png")
    _report(shapes, covariances, out, time.perf_counter() - started)


class _Study:
    """One data set in its public ball, and the releases made of it."""

    def __init__(self, title, ball, points, lost):
        self.title, self.ball, self.points, self.lost = title, ball, points, lost
        with jax.enable_x64(True):
            self.mean = np.asarray(frechet_mean(ball.manifold, ball.clip(points)))
        self.releases, self.draws = {}, {}

    def mechanism(self, name, epsilon):
        """Return the mechanism of a setting, made of public numbers alone."""
        if name == "laplace":
            return LaplaceMechanism(self.ball, epsilon)
        n = len(self.points)
        shape = Shape.smooth(self.ball.manifold, self.ball.center, n, radius=self.ball.radius, epsilon=epsilon)
        return TangentLaplace(self.ball, epsilon, shape)

    def release(self, name, epsilon, out):
        """Release once, and draw what might have been released instead."""
        private = self.mechanism(name, epsilon)
        release = private.release(self.points)
        release.save(out / f"{self.title}-{name}-epsilon-{epsilon:g}.json")
        self.releases[name, epsilon] = release.value
        with jax.enable_x64(True):
            key = jax.random.key(zlib.crc32(f"{self.title} {name} {epsilon}".encode()))
            self.draws[name, epsilon] = np.asarray(private.simulate(key, self.points, DRAWS))

    def distance(self, point) -> float:
        """Return the distance of a point from the mean: public only because these data are."""
        with jax.enable_x64(True):
            return float(self.ball.manifold.dist(self.mean, point))

    def distances(self, name, epsilon) -> np.ndarray:
        """Return the distances of the draws, in their order."""
        with jax.enable_x64(True):
            of_draws = jax.vmap(lambda point: self.ball.manifold.dist(self.mean, point))(self.draws[name, epsilon])
        return np.sort(np.asarray(of_draws))

    def heading(self, name, epsilon) -> dict:
        """Return the title of the panel of one setting, bold if half of its draws are beyond the public ``lost``."""
        distances = self.distances(name, epsilon)
        lost = np.median(distances) > self.lost
        label = (
            f"{_TITLES[name]}, ε = {epsilon:g}{': lost' if lost else ''}\n"
            f"error {np.median(distances):.2g} ({distances[0]:.2g} to {distances[-1]:.2g})"
        )
        return {"label": label, "fontweight": "bold" if lost else "normal"}


def _shape_study():
    manifold = PlanarShapes(LANDMARKS)
    with jax.enable_x64(True):
        center = manifold.from_landmarks(datasets.template_outline(DIGIT, LANDMARKS))
        points = np.asarray(manifold.from_landmarks(datasets.digit_outlines(DIGIT, LANDMARKS)))
        return _Study("shapes", GeodesicBall(manifold, center, SHAPE_RADIUS), points, SHAPE_LOST)


def _covariance_study():
    with jax.enable_x64(True):
        ball = GeodesicBall(SPD(5), datasets.template_covariance(DIGIT), COVARIANCE_RADIUS)
        return _Study("covariances", ball, datasets.digit_covariances(DIGIT), COVARIANCE_LOST)


def _draw_shapes(study, path):
    from matplotlib.figure import Figure

    manifold = study.ball.manifold
    to_landmarks = lambda point: np.asarray(manifold.to_landmarks(point))  # noqa: E731
    # Everything is turned onto the upright font outline.
    upright = datasets.template_outline(DIGIT, LANDMARKS)
    upright = upright - upright.mean(axis=0)
    figure = Figure(figsize=(13, 5.4), layout="constrained")
    axes = figure.subplots(2, len(EPSILONS) + 2)
    axes[0, 0].set_title(f"{len(study.points)} outlines (data)", fontsize=9)
    for point in study.points:
        plotting.draw_outline(axes[0, 0], to_landmarks(point), upright, color="0.4", linewidth=0.4, alpha=0.25)
    away = study.distance(study.ball.center)
    axes[1, 0].set_title(f"public centre (font)\nerror {away:.2g}", fontsize=9)
    plotting.draw_outline(axes[1, 0], to_landmarks(study.ball.center), upright, color="0.4")
    axes[0, 1].set_title("Fréchet mean (not private)", fontsize=9)
    plotting.draw_outline(axes[0, 1], to_landmarks(study.mean), upright, color="black")
    axes[1, 1].axis("off")
    axes[1, 1].text(0.5, 0.5, _LEGEND, ha="center", va="center", fontsize=9)
    for row, name in enumerate(_TITLES):
        for column, epsilon in enumerate(EPSILONS):
            panel = axes[row, column + 2]
            heading = study.heading(name, epsilon)
            panel.set_title(fontsize=9, **heading)
            for draw in study.draws[name, epsilon]:
                plotting.draw_outline(panel, to_landmarks(draw), upright, color=_DRAWN[name], linewidth=0.6, alpha=0.35)
            released = to_landmarks(study.releases[name, epsilon])
            plotting.draw_outline(panel, released, upright, color="black", linewidth=1.4)
            mean = {"color": "gold", "linestyle": (0, (1, 1.2)), "linewidth": 1.4}
            plotting.draw_outline(panel, to_landmarks(study.mean), upright, **mean)
    figure.suptitle(
        f"Private mean shape of the handwritten “{DIGIT}”: {len(study.points)} images, {LANDMARKS} landmarks "
        f"(dimension {manifold.dim}), public radius {study.ball.radius:g}",
        fontsize=11,
    )
    figure.savefig(path, dpi=130)


def _draw_covariances(study, path):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 5.6), layout="constrained")
    axes = figure.subplots(2, len(EPSILONS) + 1)
    axes[0, 0].set_title("Fréchet mean (not private):\ncorrelations; diagonal: deviations", fontsize=9)
    deviations = np.sqrt(np.diag(study.mean))
    correlations = study.mean / np.outer(deviations, deviations)
    np.fill_diagonal(correlations, deviations)
    plotting.draw_matrix(axes[0, 0], correlations, FEATURES, 1.0, "PuOr_r")
    axes[1, 0].set_title(f"public centre (font)\ndistance {study.distance(study.ball.center):.3f}", fontsize=9)
    plotting.draw_matrix(axes[1, 0], _log_ratio(study.ball.center, study.mean), FEATURES, RATIO_LIMIT)
    images = []
    for row, name in enumerate(_TITLES):
        for column, epsilon in enumerate(EPSILONS):
            panel = axes[row, column + 1]
            panel.set_title(fontsize=9, **study.heading(name, epsilon))
            ratio = _log_ratio(study.releases[name, epsilon], study.mean)
            spread = np.std([_log_ratio(draw, study.mean) for draw in study.draws[name, epsilon]], axis=0)
            images.append(plotting.draw_matrix(panel, ratio, FEATURES, RATIO_LIMIT, spread=spread))
    bar = figure.colorbar(images[-1], ax=axes, extend="both", shrink=0.8, pad=0.01)
    bar.set_label("log-ratio to the mean: white = nothing changed", fontsize=9)
    bar.ax.tick_params(labelsize=8)
    figure.suptitle(
        f"Private mean of {len(study.points)} region covariances of the handwritten “{DIGIT}” (affine-invariant "
        f"SPD(5), public radius {study.ball.radius:g}): logarithm of mean^(-1/2) · release · mean^(-1/2)\n"
        f"± standard deviation, and errors: median (least to largest), of {DRAWS} draws that might have been released; "
        f"lost: above {study.lost:g}",
        fontsize=11,
    )
    figure.savefig(path, dpi=130)


def _log_ratio(matrix, mean):
    """Return log(mean^-1/2 matrix mean^-1/2): zero at the mean, and its Frobenius norm is the distance from it."""
    values, vectors = np.linalg.eigh(mean)
    whitening = (vectors / np.sqrt(values)) @ vectors.T
    ratios, axes = np.linalg.eigh(whitening @ np.asarray(matrix) @ whitening)
    return (axes * np.log(ratios)) @ axes.T


def _report(shapes, covariances, out, seconds):
    table = Table(
        title=f"distance of private means from the mean, median of {DRAWS} draws\n(shown because these data are public)"
    )
    table.add_column("data")
    table.add_column("noise")
    for epsilon in EPSILONS:
        table.add_column(f"ε = {epsilon:g}", justify="right")
    for study in (shapes, covariances):
        for name in _TITLES:
            found = [study.distances(name, epsilon) for epsilon in EPSILONS]
            table.add_row(study.title, _TITLES[name].lower(), *(f"{np.median(distances):.2g}" for distances in found))
    OUTPUT.print(table)
    say(
        f"Wrote shapes.png, covariances.png and {len(shapes.releases) + len(covariances.releases)} release records "
        f"to {out} in {seconds:.0f} s."
    )
