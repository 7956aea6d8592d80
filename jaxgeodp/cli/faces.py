"""``jaxgeodp face``: meshes in, a private mean face out."""

import contextlib
import io
import pathlib
import time
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from jaxgeodp.checks import InputError
from jaxgeodp.cli.frame import OUTPUT, one_sentence_errors, quiet_libraries, shown
from jaxgeodp.cli.ledger import DATASET, LEDGER, opened_ledger

# The demo: releases of these strengths, by people who do not exist.
_MUS = (1.0, 2.0, 3.0)
_DEMO_FACES, _DEMO_REFERENCE = 200, 24


def face(
    folder: Annotated[
        str,
        typer.Argument(
            help="A folder of meshes (.obj, .ply, .stl, .off, .xyz), one per person; 'demo'; or a release.json to draw "
            "again."
        ),
    ],
    mu: Annotated[
        float | None, typer.Option(help="Privacy parameter of the whole face (Gaussian DP) per mesh; 3 by default.")
    ] = None,
    template: Annotated[
        pathlib.Path | None, typer.Option(help="A public mesh, never one of the folder or their mean.")
    ] = None,
    nose: Annotated[
        int | None, typer.Option(help="Vertex number of the tip of the nose, in the template and all meshes like it.")
    ] = None,
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
    landmarks: Annotated[
        pathlib.Path | None,
        typer.Option(help="A .csv of file,nose,up for meshes of other numbering: vertex numbers, or places 'x y z'."),
    ] = None,
    registration: Annotated[bool, typer.Option("--register", help="Also warp every face onto the template.")] = False,
    fill_holes: Annotated[bool, typer.Option("--fill-holes", help="Close holes of the meshes.")] = False,
    scan: Annotated[
        bool, typer.Option("--scan", help="Cut off fins and loose parts of raw scans, close hair-wide seams.")
    ] = False,
    prepare: Annotated[
        bool, typer.Option("--prepare", help="Process the meshes and write their report; release nothing.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Release even if the noise drowns the face.")] = False,
    numerics: Annotated[
        str, typer.Option(help="idealized, or grid: slower, and the guarantee covers rounding, too.")
    ] = "idealized",
    out: Annotated[
        pathlib.Path | None, typer.Option(help="Folder of the release and its picture; jaxgeodp-face by default.")
    ] = None,
    work: Annotated[
        pathlib.Path | None,
        typer.Option(help="Private folder of processed faces and report.csv; that of the meshes plus '-private'."),
    ] = None,
    ledger: LEDGER = None,
    dataset: DATASET = None,
) -> None:
    """Release the private mean of 3D faces; 'jaxgeodp face demo' shows it on synthetic ones.

    The guarantee is for each mesh file: a person with two files has twice the mu. Prepare, read the private report,
    then release.
    """
    with one_sentence_errors():
        from jaxgeodp.cli.face_folder import FolderCall, check_out, draw_release, process_folder

        drawn = folder.endswith(".json")
        if folder == "demo" or drawn:
            given = {"--mu": mu, "--template": template, "--nose": nose, "--up": up, "--norm-bound": norm_bound}
            given |= {"--landmarks": landmarks, "--register": registration or None, "--fill-holes": fill_holes or None}
            given |= {"--scan": scan or None, "--prepare": prepare or None, "--force": force or None}
            given |= {"--reference": reference, "--work": work, "--ledger": ledger, "--dataset": dataset}
            given |= {"--numerics": None if numerics == "idealized" else numerics}
            extra = [name for name, value in given.items() if value is not None]
            if extra:
                raise InputError(f"face {folder} takes no {extra[0]}; leave it out, --out is the only option.")
        chosen = pathlib.Path("jaxgeodp-face") if out is None else out
        with quiet_libraries():
            if folder == "demo":
                check_out(chosen)
                chosen.mkdir(parents=True, exist_ok=True)
                _demo(chosen)
            elif drawn:
                record = pathlib.Path(folder)
                draw_release(record, record.parent if out is None else out)
            else:
                process_folder(
                    FolderCall(
                        folder=folder,
                        mu=mu,
                        template=template,
                        nose=nose,
                        up=up,
                        norm_bound=norm_bound,
                        reference=reference,
                        landmarks=landmarks,
                        registration=registration,
                        fill_holes=fill_holes,
                        scan=scan,
                        prepare=prepare,
                        force=force,
                        numerics=numerics,
                        out=chosen,
                        work=work,
                        ledger=opened_ledger(ledger, dataset),
                    )
                )


def _demo(out):
    from jaxgeodp.experiments.face_study import face_study, points_alone, points_together, squared_error
    from jaxgeodp.surfaces.face_design import design_faces

    start = time.perf_counter()
    with progress_bar("faces", 1 + _DEMO_REFERENCE + _DEMO_FACES) as advance:
        study = face_study(_DEMO_FACES, _DEMO_REFERENCE, progress=advance)
    template, public, people = study.template, study.reference, study.private
    mean, point_mean = people.curves.mean(axis=0), people.points.mean(axis=0)
    pictures = [("template: one public person", template.curves), ("mean of the 200 (not private)", mean)]
    alone = squared_error(template.curves, mean), squared_error(public.curves.mean(axis=0), mean)
    rows = {
        "template alone (no data)": [alone[0]] * len(_MUS),
        f"mean of {_DEMO_REFERENCE} public people (no data)": [alone[1]] * len(_MUS),
    }
    noisy = {}
    for mu in _MUS:
        release = design_faces(template.curves, public.curves, _DEMO_FACES, mu).release(people.curves)
        release.save(out / f"release-mu-{mu:g}.json")
        pictures.append((f"private, μ = {mu:g}", release.value))
        rows.setdefault("radial curves", []).append(squared_error(release.value, mean))
        pointwise = {
            "noise on every point, one bound for a face": points_together(study, mu),
            "noise on every point, bounds by coordinate": points_alone(study, mu),
        }
        noisy = {name: mechanism.release(people.points).value for name, mechanism in pointwise.items()}
        for name, value in noisy.items():
            rows.setdefault(name, []).append(squared_error(value, point_mean))
    _draw_points(out / "pointwise.png", noisy, study.generator.triangles, _MUS[-1])
    draw_faces(out / "faces.png", pictures, template)
    _draw_lines(out / "curves.png", pictures)
    OUTPUT.print("mean squared error of a point against the mean of the 200, faces of area 1, times 10,000:")
    OUTPUT.print(" " * 46 + "".join(f"{f'μ = {mu:g}':>9}" for mu in _MUS), highlight=False)
    for name, errors in rows.items():
        OUTPUT.print(f"  {name:<44}" + "".join(f"{1e4 * error:9.3f}" for error in errors), highlight=False)
    seconds = time.perf_counter() - start
    OUTPUT.print(f"Wrote {shown(out)} in {seconds:.0f} s; look at faces.png.", soft_wrap=True, highlight=False)


def draw_faces(path, faces, template=None):
    """Faces side by side, from two views: pairs of a title and radial curves (J, m, 3); see `surface_from_curves`."""
    import matplotlib.figure

    from jaxgeodp.surfaces.rendering import draw_curves

    figure = matplotlib.figure.Figure(figsize=(3 * len(faces), 6.6), layout="constrained")
    axes = figure.subplots(2, len(faces), squeeze=False)
    for column, (title, curves) in enumerate(faces):
        for axis, view in zip(axes[:, column], ("front", "three-quarter"), strict=True):
            draw_curves(axis, curves, view, template=template)
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
def progress_bar(what, total):
    """A bar on the terminal; yields what tells it the number done."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(
        *columns, TimeRemainingColumn(), console=OUTPUT, transient=True, disable=not OUTPUT.is_terminal
    ) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)
