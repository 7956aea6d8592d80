"""``jaxgeodp face``: meshes in, a private mean face out."""

import contextlib
import io
import pathlib
import time
from typing import Annotated

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from jaxgeodp.checks import InputError, positive_number
from jaxgeodp.cli.frame import OUTPUT, one_sentence_errors, quiet_libraries

# The demo: releases of these strengths, by people who do not exist.
_MUS = (1.0, 2.0, 3.0)
_DEMO_FACES, _DEMO_REFERENCE = 200, 24
# Radial curves of a face, as `FaceTemplate.from_mesh` has them.
_CURVES = 23


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
        typer.Option(
            help="Public bound of a curve's deviation from the template in faces of area 1: one number, X,Y,Z, or a "
            "file of 23 rows X,Y,Z; from the reference by default."
        ),
    ] = None,
    reference: Annotated[
        pathlib.Path | None,
        typer.Option(help="A folder of other public meshes, to set bounds and budget; else synthetic people do."),
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
) -> None:
    """Release the private mean of 3D faces; 'jaxgeodp face demo' shows it on synthetic ones."""
    with one_sentence_errors():
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise InputError(f"--out {out} exists and is not an empty folder; name another.")
        positive_number("face", "--mu", mu)
        private = out.with_name(out.name + "-private") if work is None else work
        if private.resolve() == out.resolve() or out.resolve() in private.resolve().parents:
            raise InputError("--work must lie outside --out: it holds private data.")
        if folder == "demo":
            with quiet_libraries():
                _demo(out)
            return
        with quiet_libraries():
            _of_folder(folder, mu, template, nose, up, norm_bound, reference, registration, fill_holes, out, private)


def _of_folder(folder, mu, template, nose, up, norm_bound, reference, registration, fill_holes, out, private):
    from jaxgeodp.surfaces.face_curves import FaceTemplate
    from jaxgeodp.surfaces.face_design import read_norm_bound
    from jaxgeodp.surfaces.folder import mesh_files, process_faces
    from jaxgeodp.surfaces.mesh_files import read_mesh

    for name, value in (("--template", template), ("--up", up)):
        if value is None:
            raise InputError(f"face needs {name}; it is public, and no default would be right.")
    bound = None if norm_bound is None else read_norm_bound(norm_bound, _CURVES)
    if reference is not None and reference.resolve() == pathlib.Path(folder).resolve():
        raise InputError("--reference is the folder of the private faces; name a folder of other, public ones.")
    files = mesh_files(folder)
    if len(files) < 2:
        raise InputError(f"{folder} holds one mesh; a mean needs at least 2.")
    mesh, report = read_mesh(template, fill_holes)
    for name, vertex in (("--nose", nose), ("--up", up)):
        if not 0 <= vertex < len(report.numbering) or report.numbering[vertex] < 0:
            raise InputError(f"{name} {vertex} is no vertex of the template; name one that is.")
    public = FaceTemplate.from_mesh(mesh, int(report.numbering[nose]), int(report.numbering[up]))
    ridge = 0.1 if registration else None
    design = _design(public, reference, nose, up, ridge, fill_holes, len(files), mu, bound)
    with _progress("faces", len(files)) as advance:
        faces = process_faces(files, nose, up, public, ridge, fill_holes, private, None, advance)
    release = design.release(faces.curves)
    out.mkdir(parents=True, exist_ok=True)
    release.save(out / "release.json")
    _draw(out / "face.png", [(f"private mean, μ = {mu:g}", release.value), ("template (public)", public.curves)])
    OUTPUT.print(
        f"Wrote {escape(str(out))}. What each mesh needed is in {escape(str(private / 'report.csv'))}: private.",
        soft_wrap=True,
        highlight=False,
    )


def _design(public, reference, nose, up, ridge, fill_holes, n, mu, bound):
    """From public faces: a folder of them, or synthetic ones."""
    from jaxgeodp.surfaces.face_design import design_faces, reference_folder, synthetic_reference

    if reference is None:
        curves = synthetic_reference(public, ridge)
    else:
        curves = reference_folder(public, reference, nose, up, ridge=ridge, fill_holes=fill_holes)
    return design_faces(public.curves, curves, n, mu, bound)


def _demo(out):
    from jaxgeodp.experiments.face_study import face_study, points_alone, points_together, squared_error
    from jaxgeodp.surfaces.face_design import design_faces

    start = time.perf_counter()
    with _progress("faces", 1 + _DEMO_REFERENCE + _DEMO_FACES) as advance:
        study = face_study(_DEMO_FACES, _DEMO_REFERENCE, progress=advance)
    template, public, people = study.template, study.reference, study.private
    mean, point_mean = people.curves.mean(axis=0), people.points.mean(axis=0)
    out.mkdir(parents=True, exist_ok=True)
    shown = [("template: one public person", template.curves), ("mean of the 200 (not private)", mean)]
    alone = squared_error(template.curves, mean), squared_error(public.curves.mean(axis=0), mean)
    rows = {
        "template alone (no data)": [alone[0]] * len(_MUS),
        f"mean of {_DEMO_REFERENCE} public people (no data)": [alone[1]] * len(_MUS),
    }
    for mu in _MUS:
        release = design_faces(template.curves, public.curves, _DEMO_FACES, mu).release(people.curves)
        release.save(out / f"release-mu-{mu:g}.json")
        shown.append((f"private, μ = {mu:g}", release.value))
        rows.setdefault("radial curves", []).append(squared_error(release.value, mean))
        noisy = {
            "noise on every point, one bound for a face": points_together(study, mu),
            "noise on every point, bounds by coordinate": points_alone(study, mu),
        }
        noisy = {name: mechanism.release(people.points).value for name, mechanism in noisy.items()}
        for name, value in noisy.items():
            rows.setdefault(name, []).append(squared_error(value, point_mean))
    _draw_points(out / "pointwise.png", noisy, study.generator.triangles, _MUS[-1])
    _draw(out / "faces.png", shown)
    _draw_lines(out / "curves.png", shown)
    OUTPUT.print("mean squared error of a point against the mean of the 200, faces of area 1, times 10,000:")
    OUTPUT.print(" " * 46 + "".join(f"{f'μ = {mu:g}':>9}" for mu in _MUS), highlight=False)
    for name, errors in rows.items():
        OUTPUT.print(f"  {name:<44}" + "".join(f"{1e4 * error:9.3f}" for error in errors), highlight=False)
    seconds = time.perf_counter() - start
    OUTPUT.print(f"Wrote {escape(str(out))} in {seconds:.0f} s; look at faces.png.", soft_wrap=True, highlight=False)


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


def _draw_points(path, surfaces, triangles, mu):
    from jaxgeodp.surfaces.rendering import draw_surfaces

    titles = [f"{name.replace(', ', ',' + chr(10))}, μ = {mu:g}" for name in surfaces]
    _save(draw_surfaces(list(surfaces.values()), triangles, titles=titles, size=3), path)


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
