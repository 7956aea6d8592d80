"""``jaxgeodp face``: meshes in, a private mean face out."""

import contextlib
import io
import pathlib
import time
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from jaxgeodp.checks import InputError, positive_number
from jaxgeodp.cli.frame import OUTPUT, one_sentence_errors, quiet_libraries, shown
from jaxgeodp.cli.ledger import DATASET, LEDGER, opened_ledger

# The demo: releases of these strengths, by people who do not exist.
_MUS = (1.0, 2.0, 3.0)
_DEMO_FACES, _DEMO_REFERENCE = 200, 24
# The paper's split of the budget between the coordinates, to be scaled to the total.
_SPLIT = (0.2, 0.2, 0.55)


def face(
    folder: Annotated[str, typer.Argument(help="A folder of meshes (.obj, .ply, .stl, .off), or 'demo'.")],
    mu: Annotated[float, typer.Option(help="Privacy parameter of the whole face (Gaussian DP).")] = 3.0,
    template: Annotated[
        pathlib.Path | None, typer.Option(help="A public mesh, never one of the folder or their mean.")
    ] = None,
    nose: Annotated[int, typer.Option(help="Vertex number of the tip of the nose, in all meshes.")] = 0,
    up: Annotated[
        int | None, typer.Option(help="Vertex number of a landmark above it, such as the root of the nose.")
    ] = None,
    norm_bound: Annotated[
        str | None,
        typer.Option(help="Public bound of a curve's deviation from the template in faces of area 1: X,Y,Z or one."),
    ] = None,
    registration: Annotated[bool, typer.Option("--register", help="Also warp every face onto the template.")] = False,
    fill_holes: Annotated[bool, typer.Option("--fill-holes", help="Close holes of the meshes.")] = False,
    out: Annotated[pathlib.Path, typer.Option(help="Folder of the release and its picture.")] = pathlib.Path(
        "jaxgeodp-face"
    ),
    work: Annotated[
        pathlib.Path | None,
        typer.Option(help="Private folder of processed faces and report.csv; --out plus '-private' by default."),
    ] = None,
    ledger: LEDGER = None,
    dataset: DATASET = None,
) -> None:
    """Release the private mean of 3D faces; 'jaxgeodp face demo' shows it on synthetic ones."""
    with one_sentence_errors():
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise InputError(f"--out {out} exists and is not an empty folder; name another.")
        positive_number("face", "--mu", mu)
        private = out.with_name(out.name + "-private") if work is None else work
        if private.resolve() == out.resolve() or out.resolve() in private.resolve().parents:
            raise InputError("--work must lie outside --out: it holds private data.")
        book = opened_ledger(ledger, dataset)
        if folder == "demo":
            if book is not None:
                raise InputError("face demo takes no --ledger: its people do not exist.")
            with quiet_libraries():
                _demo(out)
            return
        with quiet_libraries():
            _of_folder(folder, mu, template, nose, up, norm_bound, registration, fill_holes, out, private, book)


def _of_folder(folder, mu, template, nose, up, norm_bound, registration, fill_holes, out, private, book):
    from jaxgeodp.surfaces.face_curves import FaceTemplate
    from jaxgeodp.surfaces.folder import mesh_files, process_faces
    from jaxgeodp.surfaces.mesh_files import read_mesh

    for name, value in (("--template", template), ("--up", up), ("--norm-bound", norm_bound)):
        if value is None:
            raise InputError(f"face needs {name}; it is public, and no default would be right.")
    bound = _numbers(norm_bound)
    files = mesh_files(folder)
    if len(files) < 2:
        raise InputError(f"{folder} holds one mesh; a mean needs at least 2.")
    mesh, report = read_mesh(template, fill_holes)
    for name, vertex in (("--nose", nose), ("--up", up)):
        if not 0 <= vertex < len(report.numbering) or report.numbering[vertex] < 0:
            raise InputError(f"{name} {vertex} is no vertex of the template; name one that is.")
    public = FaceTemplate.from_mesh(mesh, int(report.numbering[nose]), int(report.numbering[up]))
    mechanism = _mechanism(public, bound, mu)
    if book is not None:
        book.check(mechanism.guarantee)  # before the work
    with _progress("faces", len(files)) as advance:
        faces = process_faces(
            files, nose, up, public, 0.1 if registration else None, fill_holes, private, None, advance
        )
    release = mechanism.release(faces.curves, book)
    out.mkdir(parents=True, exist_ok=True)
    release.save(out / "release.json")
    _draw(out / "face.png", [(f"private mean, μ = {mu:g}", release.value), ("template (public)", public.curves)])
    OUTPUT.print(
        f"Wrote {shown(out)}. What each mesh needed is in {shown(private / 'report.csv')}: private.",
        soft_wrap=True,
        highlight=False,
    )


def _demo(out):
    import jax
    import numpy as np

    from jaxgeodp.surfaces.face_curves import FaceTemplate
    from jaxgeodp.surfaces.face_mean import PointwiseGaussian
    from jaxgeodp.surfaces.folder import process_faces
    from jaxgeodp.surfaces.mesh import Mesh
    from jaxgeodp.surfaces.synthetic import SyntheticFaces

    start = time.perf_counter()
    generator = SyntheticFaces()
    with jax.enable_x64(True):
        everybody = np.asarray(generator.records(jax.random.key(0), _DEMO_FACES + _DEMO_REFERENCE))
    nose, up = generator.nose_tip, generator.nasion
    public = FaceTemplate.from_mesh(Mesh(generator.template, generator.triangles), nose, up)
    meshes = [Mesh(vertices, generator.triangles) for vertices in everybody]
    with _progress("faces", len(meshes)) as advance:
        faces = process_faces(meshes, nose, up, public, progress=advance)
    reference, curves = faces.curves[:_DEMO_REFERENCE], faces.curves[_DEMO_REFERENCE:]
    points = faces.vertices[_DEMO_REFERENCE:]
    # What one learns from public faces: bounds with a margin, and the best design.
    bound = 1.25 * np.sqrt(np.mean((reference - public.curves) ** 2, axis=2)).max(axis=0)
    base = faces.vertices[:_DEMO_REFERENCE].mean(axis=0)
    half_range = 1.25 * np.abs(faces.vertices[:_DEMO_REFERENCE] - base).max(axis=(0, 1))
    mean, point_mean = curves.mean(axis=0), points.mean(axis=0)
    shown, rows = [("mean of the 200 (not private)", mean)], []
    out.mkdir(parents=True, exist_ok=True)
    for mu in _MUS:
        mechanism = _designed(public, reference, bound, len(curves), mu)
        release = mechanism.release(curves)
        release.save(out / f"release-mu-{mu:g}.json")
        noisy = PointwiseGaussian(base, half_range, mu).release(points)
        shown.append((f"private, μ = {mu:g}", release.value))
        rows.append((mu, _mse(release.value, mean), _mse(noisy.value, point_mean)))
        if mu == _MUS[-1]:
            _draw_points(out / "pointwise.png", noisy.value, generator.triangles, mu)
    _draw(out / "faces.png", shown)
    _draw_lines(out / "curves.png", shown)
    OUTPUT.print("mean squared error of a point, faces of area 1, times 10,000:")
    for mu, ours, theirs in rows:
        OUTPUT.print(f"  μ = {mu:g}: radial curves {1e4 * ours:.3f}, every point by itself {1e4 * theirs:.3f}")
    seconds = time.perf_counter() - start
    OUTPUT.print(f"Wrote {shown(out)} in {seconds:.0f} s; look at faces.png.", soft_wrap=True, highlight=False)


def _mechanism(public, bound, mu):
    import numpy as np

    from jaxgeodp.surfaces.face_mean import FaceMeanMechanism

    share = np.asarray(_SPLIT) / np.linalg.norm(_SPLIT) / np.sqrt(len(public.curves))
    return FaceMeanMechanism(public.curves, bound, mu * share * (1.0 - 1e-14))


def _designed(public, reference, bound, n, mu):
    """Length scale, penalty and split by coordinate, from public faces."""
    import numpy as np

    from jaxgeodp.functional import PeriodicMatern, optimize_budget
    from jaxgeodp.surfaces.face_mean import FaceMeanMechanism, flat_curves

    count = len(public.curves)
    design = optimize_budget(
        PeriodicMatern(1.0, 2.5),
        flat_curves(reference),
        n,
        bound.reshape(-1),
        mu,
        flat_curves(public.curves),
        np.tile(np.arange(3), count),
        steps=150,
    ).mechanism
    return FaceMeanMechanism(
        public.curves, bound, design.mu.reshape(count, 3), design.penalty.reshape(count, 3), design.kernel
    )


def _mse(value, truth):
    return float(((value - truth) ** 2).sum(axis=-1).mean())


def _numbers(text):
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) not in (1, 3) or not all(0 < number < float("inf") for number in numbers):
        raise InputError(f"--norm-bound must be one number above 0, or three as X,Y,Z, got '{text}'.")
    return numbers[0] if len(numbers) == 1 else numbers


def _draw(path, faces):
    import matplotlib.figure

    from jaxgeodp.surfaces.rendering import draw_curves

    figure = matplotlib.figure.Figure(figsize=(3 * len(faces), 6.6), layout="constrained")
    axes = figure.subplots(2, len(faces))
    for column, (title, curves) in enumerate(faces):
        for axis, view in zip(axes[:, column], ("front", "three-quarter"), strict=True):
            draw_curves(axis, curves, view)
        axes[0, column].set_title(title, fontsize=10)
    _save(figure, path)


def _draw_points(path, vertices, triangles, mu):
    from jaxgeodp.surfaces.rendering import draw_surfaces

    figure = draw_surfaces([vertices], triangles, titles=[f"every point by itself, μ = {mu:g}"], size=3)
    _save(figure, path)


def _draw_lines(path, faces):
    import matplotlib.figure
    import numpy as np

    figure = matplotlib.figure.Figure(figsize=(3 * len(faces), 3.6), layout="constrained")
    for axis, (title, curves) in zip(figure.subplots(1, len(faces)), faces, strict=True):
        for curve in np.concatenate([curves, curves[:, :1]], axis=1):
            axis.plot(curve[:, 0], curve[:, 1], color="C0", linewidth=0.6)
        axis.set_aspect("equal")
        axis.axis("off")
        axis.set_title(title, fontsize=10)
    _save(figure, path)


def _save(figure, path):
    from jaxgeodp.files import write_atomically

    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=110, metadata={"Software": None})
    write_atomically(path, picture.getvalue())


@contextlib.contextmanager
def _progress(what, total):
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(
        *columns, TimeRemainingColumn(), console=OUTPUT, transient=True, disable=not OUTPUT.is_terminal
    ) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)
