"""The private mean face as one surface, against radial curves, one bound for a face, and what is public.

    python -m benchmarks.measure.surfaces [--quick] [--picture docs/surfaces.png]

Three settings: the demo's 200 synthetic people and 1000 of them (`jaxgeodp.experiments.face_study`: one public person
is the template, 24 others the reference, all private people are of another population), and 150 faces of ICT FaceKit,
if the environment variable JAXGEODP_PUBLIC_DATA names a folder with ict_face_patch.npz (see `faces`); with 24 other
such faces as reference, or the synthetic people who stand for them; around their mean, or around one person.
The first 24 of 174 people are the reference there; last, other 24 of them are, at random.

Errors are mean squared distances of points of the curves from the private mean, in faces of area 1, times 10,000. By
curvature: weighted by area and absolute mean curvature of the private mean, cut at its 95 % quantile, so that nose,
eyes and mouth count. Rings: the part of the error in waves shorter than 4 curves along the radii.
"""

import argparse
import os
import pathlib
import time
from typing import NamedTuple

import jax
import numpy as np
from scipy import fft

from benchmarks.measure.faces import REFERENCE, IctFaces, template_of
from benchmarks.tools.timing import print_machine, print_table, restart_with_fair_environment
from jaxgeodp.experiments.face_study import face_study
from jaxgeodp.meshes.grid import polar_faces
from jaxgeodp.meshes.laplacian import cotangent_laplacian
from jaxgeodp.surfaces import (
    FaceTemplate,
    JointGaussian,
    Mesh,
    SurfaceBasis,
    SyntheticFaces,
    design_faces,
    design_surfaces,
    process_faces,
    synthetic_reference,
)

MUS = (1.0, 2.0, 3.0)
DRAWS = 20
FUNCTIONS = (10, 25, 50, 100, 150, 250, 400)
SIZES = (10, 20, 50, 100, 200, 500, 1000)
_ONE_PERSON = 9999
_PRIVATE = 150
# Random splits of the people into public and private ones: for a release, and for the mean of the public ones alone.
_SPLITS, _MANY_SPLITS = 10, 500


class Setting(NamedTuple):
    """Curves of people who are public and of those who are not."""

    name: str
    template: np.ndarray
    reference: np.ndarray
    private: np.ndarray
    counts: float = 10.0


def settings(quick):
    generator = SyntheticFaces(rings=10) if quick else None
    study = face_study(20 if quick else 1000, 6 if quick else REFERENCE, generator=generator)
    template, public, people = study.template.curves, study.reference.curves, study.private.curves
    yield Setting(f"demo, n = {min(200, len(people))}", template, public, people[:200])
    if not quick:
        yield Setting("faces-2024, n = 1000", template, public, people)
    path = pathlib.Path(os.environ.get("JAXGEODP_PUBLIC_DATA", "")) / "ict_face_patch.npz"
    if path.is_file() and not quick:
        yield from _ict(IctFaces(path))


def _ict(source):
    meshes = [Mesh(source.face(j), source.triangles) for j in range(REFERENCE + _PRIVATE)]
    person = Mesh(source.face(_ONE_PERSON), source.triangles)
    for name, mesh in (("mean of the 24", template_of(source)[0]), ("one person", person)):
        template = FaceTemplate.from_mesh(mesh, source.nose, source.up)
        curves = process_faces(meshes, source.nose, source.up, template).curves
        public, people = curves[:REFERENCE], curves[REFERENCE:]
        yield Setting(f"ICT, n = 150, template: {name}, reference: ICT", template.curves, public, people)
        stand_ins = synthetic_reference(template)
        title = f"ICT, n = 150, template: {name}, reference: synthetic"
        yield Setting(title, template.curves, stand_ins, people, np.inf)


def one_bound(setting, mu):
    points = setting.template.reshape(-1, 3)
    apart = setting.reference.reshape(len(setting.reference), -1, 3) - points
    bound = 1.25 * np.sqrt(np.mean(np.sum(apart**2, axis=-1), axis=-1)).max()
    return JointGaussian(points, float(bound), mu)


def attention(curves):
    """Weights of points (J, m) of sum 1, by area and absolute mean curvature."""
    rows, samples, _ = curves.shape
    mesh = Mesh(np.concatenate([curves[0].mean(axis=0)[None], curves.reshape(-1, 3)]), polar_faces(rows, samples))
    areas = np.bincount(mesh.faces.reshape(-1), np.repeat(mesh.areas / 3.0, 3))
    normals = cotangent_laplacian(mesh) @ mesh.vertices
    curvatures = (np.linalg.norm(normals, axis=1) / 2.0 / areas)[1:].reshape(rows, samples)
    curvatures[-1] = 0.0  # at the rim it is a cut, no curvature
    weights = np.minimum(curvatures, np.quantile(curvatures, 0.95)) * areas[1:].reshape(rows, samples)
    return weights / weights.sum()


def errors(draws, truth, weights):
    """Mean squared error of a point, by curvature, and in short waves along the radii."""
    squares = np.sum((np.asarray(draws).reshape(-1, *truth.shape) - truth) ** 2, axis=-1)
    short = spectrum(draws, truth)[len(truth) // 2 + 1 :].sum()
    return np.array([1e4 * squares.mean(), 1e4 * np.mean(np.sum(weights * squares, axis=(1, 2))), short])


def spectrum(draws, truth):
    """The mean squared error of a point by frequencies along the radii, (J,): wave j is 2 J/j curves long."""
    apart = np.asarray(draws).reshape(-1, *truth.shape) - truth
    waves = np.sum(fft.dct(apart, axis=1, norm="ortho") ** 2, axis=-1)
    return 1e4 * np.mean(waves, axis=(0, 2)) / len(truth)


def table(setting, quick):
    truth = setting.private.mean(axis=0)
    weights, n = attention(truth), len(setting.private)
    basis, key = SurfaceBasis.of_curves(setting.template), jax.random.key(0)
    rows = []
    for name, value in (("template", setting.template), ("mean of the public", setting.reference.mean(axis=0))):
        rows.append(["", name, *(f"{x:.3g}" for x in errors(value, truth, weights)), ""])
    for mu in MUS[:1] if quick else MUS:
        ways = {
            "one bound for a face": one_bound(setting, mu),
            "radial curves": design_faces(setting.template, setting.reference, n, mu, steps=5 if quick else 150),
            "surface": design_surfaces(basis, setting.reference, n, mu, spectrum_counts=setting.counts),
        }
        found = {}
        for name, way in ways.items():
            data = setting.private.reshape(n, -1, 3) if name.startswith("one") else setting.private
            found[name] = errors(way.simulate(key, data, DRAWS), truth, weights)
            ratio = f"{found[name][0] / found['radial curves'][0]:.3f}" if name == "surface" else ""
            rows.append([f"{mu:g}", name, *(f"{x:.3g}" for x in found[name]), ratio])
    heads = ["mu", "", "error", "by curvature", "rings", "of that of curves"]
    print_table(f"{setting.name}: {DRAWS} releases, times 10,000", heads, rows)


def sweeps(setting, quick):
    """Errors over the number of functions and over n."""
    template, reference, people = setting[1:4]
    key, flat = jax.random.key(0), {}

    def error(basis, n, mu, curves=False):
        way = design_faces(template, reference, n, mu) if curves else design_surfaces(basis, reference, n, mu)
        truth = people[:n].mean(axis=0)
        return 1e4 * np.mean(np.sum((np.asarray(way.simulate(key, people[:n], DRAWS)) - truth) ** 2, axis=-1))

    counts, sizes = (FUNCTIONS[:2], SIZES[:1]) if quick else (FUNCTIONS, [n for n in SIZES if n <= len(people)])
    whole = SurfaceBasis.of_curves(template)
    some = min(200, len(people))
    for mu in MUS:
        flat["K", mu] = [error(SurfaceBasis.of_curves(template, count), some, mu) for count in counts]
        flat["n", mu] = [error(whole, n, mu) for n in sizes]
        flat["curves", mu] = [] if quick else [error(None, n, mu, True) for n in sizes]
    public = reference.mean(axis=0)
    known = [1e4 * np.mean(np.sum((public - people[:n].mean(axis=0)) ** 2, axis=-1)) for n in sizes]
    title = f"error over the number of functions, the first {some} of {setting.name}, times 10,000"
    rows = [[f"{mu:g}", *(f"{x:.3g}" for x in flat["K", mu])] for mu in MUS]
    print_table(title, ["mu", *map(str, counts)], rows)
    rows = [["", "mean of the public", *(f"{x:.3g}" for x in known)]]
    for name, label in (("n", "surface"), ("curves", "radial curves")):
        rows += [[f"{mu:g}", label, *(f"{x:.3g}" for x in flat[name, mu])] for mu in MUS if flat[name, mu]]
    print_table("error over n, times 10,000", ["mu", "", *map(str, sizes)], rows)
    some = people[:200]
    ways = {"radial curves": design_faces(template, reference, len(some), 1.0, steps=5 if quick else 150)}
    ways["surface"] = design_surfaces(whole, reference, len(some), 1.0)
    waves = {name: spectrum(way.simulate(key, some, DRAWS), some.mean(axis=0)) for name, way in ways.items()}
    return counts, sizes, flat, known, waves


def splits(setting):
    """Errors where other people are public, around the same template: medians and 95 % of random splits."""
    people, count = np.concatenate([setting.reference, setting.private]), len(setting.reference)
    basis, random = SurfaceBasis.of_curves(setting.template), np.random.default_rng(0)
    known, found = [], {mu: [] for mu in MUS}
    for number in range(_MANY_SPLITS):
        order = random.permutation(len(people))
        public, private = people[order[:count]], people[order[count:]]
        truth = private.mean(axis=0)
        known.append(1e4 * np.mean(np.sum((public.mean(axis=0) - truth) ** 2, axis=-1)))
        for mu in MUS if number < _SPLITS else ():
            draws = design_surfaces(basis, public, len(private), mu).simulate(jax.random.key(number), private, DRAWS)
            found[mu].append(1e4 * np.mean(np.sum((draws - truth) ** 2, axis=-1)))
    rows = []
    for name, values in [("mean of the public", known), *((f"surface, mu = {mu:g}", found[mu]) for mu in MUS)]:
        rows.append([name, str(len(values)), *(f"{np.quantile(values, q):.3g}" for q in (0.5, 0.95, 1.0))])
    print_table(f"random splits, {setting.name}, times 10,000", ["", "splits", "median", "95 %", "most"], rows)


def draw(path, counts, sizes, flat, known, waves):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 3.8), layout="constrained")
    left, right, last = figure.subplots(1, 3)
    for (name, powers), style in zip(waves.items(), ("x:", "o-"), strict=True):
        last.semilogy(np.arange(1, len(powers)), powers[1:], style, color="#1f77b4", markersize=4, label=name)
    last.set(xlabel="waves along a radius, in half periods", ylabel="part of the error × 10⁴ (n = 200, μ = 1)")
    last.legend(fontsize=8)
    for color, mu in zip(("#1f77b4", "#2ca02c", "#d62728"), MUS, strict=True):
        left.loglog(counts, flat["K", mu], "o-", color=color, markersize=4, label=f"μ = {mu:g}")
        right.loglog(sizes, flat["n", mu], "o-", color=color, markersize=4, label=f"surface, μ = {mu:g}")
        right.loglog(sizes, flat["curves", mu], "x:", color=color, markersize=4, label=f"curves, μ = {mu:g}")
    right.loglog(sizes, known, "s--", color="0.4", markersize=4, label="mean of 24 public people")
    left.set(xlabel="functions K (n = 200)", ylabel="mean squared error of a point × 10⁴")
    right.set(xlabel="private people n (K = 150)")
    left.legend(fontsize=8)
    right.set_ylim(top=60.0)  # room for what lines mean
    right.legend(fontsize=7, ncols=2, loc="upper right")
    figure.savefig(path, dpi=120)
    print(f"wrote {path}")


def costs(setting):
    """Seconds of each step, compiled before."""
    rows, n = [], len(setting.private)
    start = time.perf_counter()
    basis = SurfaceBasis.of_curves(setting.template)
    rows.append(["basis", f"{time.perf_counter() - start:.2f}"])
    start = time.perf_counter()
    design = design_surfaces(basis, setting.reference, n, 1.0)
    rows.append(["design", f"{time.perf_counter() - start:.2f}"])
    start = time.perf_counter()
    curves = design_faces(setting.template, setting.reference, n, 1.0)
    rows.append(["design of radial curves", f"{time.perf_counter() - start:.2f}"])
    for name, way, numerics in (
        ("release", design, "idealized"),
        ("release on the grid", design, "grid"),
        ("release of radial curves", curves, "idealized"),
        ("release of radial curves on the grid", curves, "grid"),
    ):
        way.release(setting.private, numerics=numerics)
        start = time.perf_counter()
        way.release(setting.private, numerics=numerics)
        rows.append([name, f"{time.perf_counter() - start:.2f}"])
    print_table(f"seconds, {setting.name}", ["", "s"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes: a test of the script")
    parser.add_argument("--picture", help="draw error over K and n into this file")
    arguments = parser.parse_args()
    restart_with_fair_environment()
    jax.config.update("jax_enable_x64", True)
    print_machine()
    largest, split = None, False
    for number, setting in enumerate(settings(arguments.quick)):
        table(setting, arguments.quick)
        if number == 0:
            costs(setting)
        if setting.name.startswith("ICT") and not split:
            splits(setting)
            split = True
        if largest is None or len(setting.private) > len(largest.private):
            largest = setting
    found = sweeps(largest, arguments.quick)
    if arguments.picture:
        draw(arguments.picture, *found)


if __name__ == "__main__":
    main()
