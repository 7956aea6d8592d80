"""The whole way from meshes to a private mean face, evaluated on faces whose vertices correspond.

    python -m benchmarks.measure.faces [--quick] [--faces 1000] [--others 100] [--registered 40]

With the environment variable JAXGEODP_PUBLIC_DATA naming a folder that holds ict_face_patch.npz (a disk-like patch of
the identity model of ICT FaceKit, MIT licence, in centimetres: mean (V, 3), modes (100, V, 3), faces (F, 3), nose_tip,
landmarks68), a face is the mean plus all modes with standard normal weights, clipped to [-2, 2]; without it, the
library's synthetic faces are used, and the output says so. Vertex v is the same place of all faces: the truth that
maps, curves and registration are compared with. The template is the mean of 24 other faces: public.

Times are in seconds of one core: processor time of all worker processes, over the number of faces.
"""

import argparse
import concurrent.futures
import multiprocessing
import os
import pathlib
import resource
import sys
import tempfile
import time

import jax
import numpy as np
from scipy.spatial import cKDTree

from benchmarks.tools.timing import print_machine, print_table, restart_with_fair_environment
from jaxgeodp.meshes.disk_flow import flow_size
from jaxgeodp.meshes.grid import DiskLocator, polar_points
from jaxgeodp.meshes.registration import energy, warp, warp_points
from jaxgeodp.meshes.square_root import square_root_field
from jaxgeodp.surfaces import (
    FaceTemplate,
    Mesh,
    PointwiseGaussian,
    SurfaceBasis,
    SyntheticFaces,
    angle_distortion,
    beltrami,
    design_faces,
    design_surfaces,
    disk_conformal_map,
    flips,
    moebius_center,
    normalize,
    process_faces,
    register,
    similarity,
    surface_from_curves,
)

REFERENCE, RADII, ANGLES = 24, 24, 80
RIDGES = (1.0, 0.1, 0.01)
BATCH = 10
NEAR_NOSE = 20.0  # mm
TARGET_DEGREES = 1.3


class IctFaces:
    """Faces of the ICT FaceKit identity model, in millimetres."""

    def __init__(self, path):
        with np.load(path, allow_pickle=False) as file:
            self.triangles = file["faces"].astype(int)
            self._mean, self._modes = 10.0 * file["mean"].astype(float), 10.0 * file["modes"]
            self.nose, self.up = int(file["nose_tip"]), int(file["landmarks68"][27])

    def face(self, number):
        weights = np.clip(np.random.default_rng([0, number]).normal(size=len(self._modes)), -2.0, 2.0)
        return self._mean + np.tensordot(weights.astype(self._modes.dtype), self._modes, 1)


class OwnFaces:
    """The library's synthetic faces, in millimetres."""

    def __init__(self, rings):
        self._faces = SyntheticFaces(rings)
        self.triangles, self.nose, self.up = self._faces.triangles, self._faces.nose_tip, self._faces.nasion

    def face(self, number):
        return np.asarray(self._faces.records(jax.random.fold_in(jax.random.key(0), number), 1)[0], float)


def data(quick):
    path = pathlib.Path(os.environ.get("JAXGEODP_PUBLIC_DATA", "")) / "ict_face_patch.npz"
    if path.is_file():
        print("faces      ICT FaceKit, identity model")
        return IctFaces(path)
    print("faces      synthetic: JAXGEODP_PUBLIC_DATA does not name a folder with ict_face_patch.npz")
    return OwnFaces(16 if quick else 48)


# Maps ----------------------------------------------------------------------------------------------------------


def one_map(vertices, triangles, method):
    """Distortion in degrees, folds, largest |mu|, seconds; and the map."""
    mesh = Mesh(vertices, triangles)
    start = time.process_time()
    z = disk_conformal_map(mesh, method)
    seconds = time.process_time() - start
    numbers = angle_distortion(mesh, z), len(flips(mesh, z)), np.abs(beltrami(mesh, z)).max(), seconds
    return numbers, z


def maps(source, counts, keep):
    """Table (a), and the "newton" maps of the first faces."""
    rows, kept = [], []
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(os.cpu_count(), context) as pool:
        for method, count in counts.items():
            found = []
            for start in range(0, count, 50):  # so that only few faces wait in memory
                jobs = [
                    pool.submit(one_map, source.face(REFERENCE + j), source.triangles, method)
                    for j in range(start, min(start + 50, count))
                ]
                for job in jobs:
                    numbers, z = job.result()
                    found.append(numbers)
                    if method == "newton" and len(kept) < keep:
                        kept.append(z)
            degrees, folds, mu, seconds = np.array(found).T
            rows.append(
                [
                    method,
                    f"{count:,}",
                    f"{degrees.mean():.3f} ({degrees.min():.3f}-{degrees.max():.3f})",
                    f"{np.mean(degrees <= TARGET_DEGREES):.1%}",
                    f"{int(folds.sum())}",
                    f"{mu.max():.2f}",
                    f"{seconds.mean():.2f} ({seconds.max():.2f})",
                ]
            )
    header = ["method", "faces", "degrees, mean (range)", f"<= {TARGET_DEGREES}"]
    print_table(
        "(a) conformal maps: change of angles, after repair", [*header, "folds", "largest |mu|", "s (max)"], rows
    )
    return kept


# From files to curves ------------------------------------------------------------------------------------------


def template_of(source):
    first = source.face(0)
    mesh = Mesh(sum(_onto(source.face(j), first) for j in range(REFERENCE)) / REFERENCE, source.triangles)
    return mesh, FaceTemplate.from_mesh(mesh, source.nose, source.up, RADII, ANGLES)


def _onto(vertices, others):
    """Turned and moved onto other vertices (Kabsch)."""
    center, other = vertices.mean(axis=0), others.mean(axis=0)
    left, _, right = np.linalg.svd((vertices - center).T @ (others - other))
    left[:, -1] *= np.sign(np.linalg.det(left @ right))
    return (vertices - center) @ left @ right + other


def preprocess(source, count, template):
    """Tables (b) and (c): as `jaxgeodp face FOLDER` does it, from binary PLY files to kept results."""
    import trimesh

    before = _processor_seconds()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "meshes").mkdir()
        files = []
        for j in range(REFERENCE + count):
            files.append(folder / "meshes" / f"{j:05}.ply")
            trimesh.Trimesh(source.face(j), source.triangles, process=False).export(files[-1])
        start = time.perf_counter()
        faces = process_faces(files, source.nose, source.up, template, keep=folder / "private")
        wall = time.perf_counter() - start
    core = (_processor_seconds() - before) / len(files)
    gibi = 2**30 if sys.platform == "darwin" else 2**20
    own, largest = (
        resource.getrusage(who).ru_maxrss / gibi for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    workers = os.cpu_count()
    bad = sum(not np.all(np.isfinite(curves)) for curves in faces.curves)
    print_table(
        f"(b), (c) {len(files):,} files to curves, without registration, {workers} processes",
        ["s per face and core", "wall, s", "wall * cores / faces, s", "not usable", "peak memory, GiB at most"],
        [
            [
                f"{core:.2f}",
                f"{wall:.0f}",
                f"{wall * workers / len(files):.2f}",
                f"{bad}",
                f"{own + workers * largest:.2f} ({own:.2f} + {workers} x {largest:.2f})",
            ]
        ],
    )
    return faces


def _processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# Registration --------------------------------------------------------------------------------------------------


def registration(source, maps_of_faces, template_mesh, template):
    """Tables (d) and (e)."""
    public = moebius_center(disk_conformal_map(template_mesh), source.nose, source.up)
    shapes = [source.face(REFERENCE + j) for j in range(len(maps_of_faces))]
    locators = [DiskLocator(source.triangles, moebius_center(z, source.nose, source.up)) for z in maps_of_faces]
    places = polar_points(RADII, ANGLES)
    raw = [jax.numpy.asarray(locator.sample(x, places)) for locator, x in zip(locators, shapes, strict=True)]
    grids = jax.numpy.stack([similarity(grid, template.grid)(grid) for grid in raw])
    from_nose = np.linalg.norm(template_mesh.vertices - template_mesh.vertices[source.nose], axis=1)

    def errors(all_places):
        gaps = [locator.sample(x, at) - x for locator, x, at in zip(locators, shapes, all_places, strict=True)]
        gaps = np.linalg.norm(gaps, axis=-1)
        near = gaps[:, from_nose < NEAR_NOSE]
        return [f"{x:.2f}" for x in (gaps.mean(), np.median(gaps), np.quantile(gaps, 0.95), near.mean())]

    rows = [["nose and nasion only", "", "", "", *errors([public] * len(shapes))]]
    jax.block_until_ready(register(grids[:BATCH], template.grid, RIDGES[0]))  # compilation
    for ridge in RIDGES:
        start = time.perf_counter(), time.process_time()
        parts = [register(grids[j : j + BATCH], template.grid, ridge) for j in range(0, len(grids), BATCH)]
        found = jax.tree.map(lambda *x: np.concatenate(x), *parts)
        wall, core = (
            (b - a) / len(grids) for a, b in zip(start, (time.perf_counter(), time.process_time()), strict=True)
        )
        fall = 1.0 - float(np.mean(found.energy / found.energy_before))
        warped = [warp_points(c, public) for c in found.coefficients]
        rows.append([f"registered, ridge {ridge:g}", f"{wall:.2f}", f"{core:.2f}", f"{fall:.0%}", *errors(warped)])
    header = ["", "s per face", "of processor", "energy falls", "mean", "median", "95 %", f"< {NEAR_NOSE:g} mm of nose"]
    print_table(
        f"(d), (e) registration of {len(shapes)} faces on {RADII} x {ANGLES}; where the same vertex lands, mm",
        header,
        rows,
    )
    known_warps(locators, shapes, places)


def known_warps(locators, shapes, places, size=0.02):
    """A face seen through a known warp: how much of the energy is left when it is found again.

    Seen by the grid, it is the surface through the nodes; by the mesh, it has detail that the nodes miss.
    """
    rows = []
    for seen in ("grid", "mesh"):
        numbers = []
        for j, (locator, x) in enumerate(zip(locators[:10], shapes, strict=False)):
            coefficients = jax.numpy.asarray(size * np.random.default_rng([1, j]).normal(size=flow_size()))
            straight = normalize(locator.sample(x, places))
            if seen == "grid":
                through = normalize(warp(straight, coefficients))
            else:
                through = normalize(locator.sample(x, warp_points(coefficients, places)))
            found = register(straight[None], through, 1e-3)
            truth = energy(square_root_field(straight), square_root_field(through), coefficients)[0]
            numbers.append([float(found.energy_before[0]), float(found.energy[0]), float(truth)])
        before, left, truth = np.array(numbers).T
        shares = [f"{np.mean(y / before):.1%} ({np.max(y / before):.1%})" for y in (left, truth)]
        rows.append([seen, f"{before.mean():.3f}", *shares])
    print_table(
        f"(d) known warps of {len(numbers)} faces, ridge 0.001",
        ["seen by the", "energy before", "left when found: mean (max)", "left at the known warp itself"],
        rows,
    )


# The mean ------------------------------------------------------------------------------------------------------


def means(source, faces, template, template_mesh):
    """Table (f): the mean of the curves against the mean of the vertices, and releases of both."""
    known, points = faces.curves[:REFERENCE], faces.vertices[REFERENCE:]
    curves = faces.curves[REFERENCE:]
    millimetres = np.sqrt(template_mesh.area)
    mean, truth = curves.mean(axis=0), points.mean(axis=0)
    tree = cKDTree(surface_from_curves(mean, 6, template)[0])
    gap = millimetres * tree.query(truth)[0]
    print(
        f"\n(f) mean of {len(curves):,} faces: vertices of the mean of the vertices are {gap.mean():.2f} mm (mean), "
        f"{np.quantile(gap, 0.95):.2f} mm (95 %) from the surface through the mean curves"
    )
    for name, public in (("a spline", None), ("the template's detail", template)):
        tip = surface_from_curves(mean, 2, public)[0][0]
        print(f"    tip of the nose by {name}: {millimetres * np.linalg.norm(tip - truth[source.nose]):.2f} mm off")
    base = faces.vertices[:REFERENCE].mean(axis=0)
    half_range = 1.25 * np.abs(faces.vertices[:REFERENCE] - base).max(axis=(0, 1))
    basis, rows = SurfaceBasis.of_curves(template.curves), []
    for mu in (1.0, 2.0, 3.0):
        squares = []
        for mechanism, records, around in (
            (design_surfaces(basis, known, len(curves), mu), curves, mean),
            (design_faces(template.curves, known, len(curves), mu), curves, mean),
            (PointwiseGaussian(base, half_range, mu), points, truth),
        ):
            draws = np.asarray(mechanism.simulate(jax.random.key(2), records, 20))
            squares.append(np.mean(np.sum((draws - around) ** 2, axis=-1)))
        rows.append([f"{mu:g}", *(f"{1e4 * s:.3g} ({millimetres * np.sqrt(s):.2f} mm)" for s in squares)])
    print_table(
        "mean squared error of a point, area 1, times 10,000 (and its root in mm); 20 releases",
        ["mu", "a surface", "radial curves", "every point by itself"],
        rows,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes: a test of the script")
    parser.add_argument("--faces", type=int, default=1000)
    parser.add_argument("--others", type=int, default=100, help="faces for the other two maps")
    parser.add_argument("--registered", type=int, default=40, help="faces to register, a multiple of 10")
    arguments = parser.parse_args()
    restart_with_fair_environment()
    jax.config.update("jax_enable_x64", True)
    print_machine()
    count, others, registered = (
        (6, 2, 2) if arguments.quick else (arguments.faces, arguments.others, arguments.registered)
    )
    source = data(arguments.quick)
    template_mesh, template = template_of(source)
    faces = preprocess(source, count, template)
    kept = maps(source, {"newton": count, "fast": others, "linear": others}, registered)
    means(source, faces, template, template_mesh)
    registration(source, kept, template_mesh, template)


if __name__ == "__main__":
    main()
