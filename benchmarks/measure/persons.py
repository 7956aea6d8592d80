"""What it costs to protect a writer instead of an image, on the digits of the demo.

    python -m benchmarks.measure.persons

The digits were written on forms, all with the same 130 digits in the same order, and each form by one person; some
digits are missing. Where a form ends is read off the order of the labels, which are public here. For each of three
ways and several epsilons: the distance of a release from the Frechet mean of all images, mean of 400 simulated ones.
"""

import difflib

import jax
import numpy as np
from sklearn.datasets import load_digits

from jaxgeodp import SPD, GeodesicBall, LaplaceMechanism, PlanarShapes, TangentLaplace, frechet_mean
from jaxgeodp.compiling import like
from jaxgeodp.datasets import digit_covariances, digit_outlines, template_covariance, template_outline
from jaxgeodp.domains.persons import frechet_means, person_places

DIGIT, DRAWS, LANDMARKS = 3, 400, 20
FORM = 130  # digits on a form, of which up to ten are missing


def forms(labels: np.ndarray) -> np.ndarray:
    """The form of each image, from 0: the first begins a sequence that the others repeat."""
    form, starts = labels[:FORM].tolist(), [0]
    while len(labels) - starts[-1] > FORM + 2:
        near = range(starts[-1] + FORM - 10, starts[-1] + FORM + 2)
        likeness = [difflib.SequenceMatcher(None, form[:40], labels[s : s + 40].tolist(), False).ratio() for s in near]
        starts.append(near[int(np.argmax(likeness))])
    return np.searchsorted(starts, np.arange(len(labels)), side="right") - 1


def table(name, ball, records, whose):
    """Errors for a data set, by epsilon."""
    places, count = person_places("persons", whose, len(records))
    most = int(np.bincount(places).max())
    persons = frechet_means("persons", ball, like(records))(records, places, count)
    mean = frechet_mean(ball.manifold, ball.clip(records))
    apart = float(ball.manifold.dist(mean, frechet_mean(ball.manifold, persons)))
    fewest = np.bincount(places).min()
    print(f"{name}: {len(records)} images of {count} writers, {fewest} to {most} each, r = {ball.radius:g}")
    print(f"  distance between the means of images and of writers: {apart:.3f}")
    print(f"  public template's distance from the mean: {float(ball.manifold.dist(mean, ball.center)):.3f}")
    print("  epsilon | image | writer | writer, as a group of images")
    for epsilon in (1.0, 3.0, 10.0, 30.0):
        cells = []
        for data, own in ((records, epsilon), (persons, epsilon), (records, epsilon / most)):
            try:
                cells.append(f"{error(ball, data, own, mean):.3f}")
            except ValueError:
                cells.append("refused")
        print(f"  {epsilon:7g} | " + " | ".join(cells))


def error(ball, data, epsilon, mean):
    """The smaller of two mechanisms' mean distances from the mean of all images."""
    errors = []
    for kind in (TangentLaplace, LaplaceMechanism):
        try:
            draws = kind(ball, epsilon).simulate(jax.random.key(0), data, DRAWS)
        except ValueError:
            continue
        errors.append(float(jax.vmap(lambda x: ball.manifold.dist(mean, x))(draws).mean()))
    if not errors:
        raise ValueError("both refuse")
    return min(errors)


def main():
    """Print both tables."""
    jax.config.update("jax_enable_x64", True)
    labels = load_digits().target
    whose = forms(labels)
    counts = np.bincount(whose)
    print(f"{len(counts)} forms with {', '.join(map(str, counts))} digits")
    own = whose[labels == DIGIT]
    table("region covariances", GeodesicBall(SPD(5), template_covariance(DIGIT), 1.0), digit_covariances(DIGIT), own)
    shapes = PlanarShapes(LANDMARKS)
    center = shapes.from_landmarks(template_outline(DIGIT, LANDMARKS))
    outlines = np.asarray(shapes.from_landmarks(digit_outlines(DIGIT, LANDMARKS)))
    table("outlines", GeodesicBall(shapes, center, 0.35), outlines, own)


if __name__ == "__main__":
    main()
