"""``jaxgeodp face``: meshes in, a private mean face out."""

import contextlib
import io
import pathlib
import time
from typing import Annotated

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from jaxgeodp.checks import InputError
from jaxgeodp.cli.frame import OUTPUT, one_sentence_errors, quiet_libraries
from jaxgeodp.cli.ledger import DATASET, LEDGER, opened_ledger

# The demo: releases of these strengths, by people who do not exist.
_MUS = (1.0, 2.0, 3.0)
_DEMO_FACES, _DEMO_REFERENCE = 200, 24


def face(
    folder: Annotated[
        str,
        typer.Argument(
            help="A folder of meshes (.obj, .ply, .stl, .off), one per person; 'demo'; or a release.json to draw again."
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
        typer.Option(help="Public bound of a curve's deviation from the template in faces of area 1: X,Y,Z or one."),
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
            given |= {"--work": work, "--ledger": ledger, "--dataset": dataset}
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
                        landmarks=landmarks,
                        registration=registration,
                        fill_holes=fill_holes,
                        scan=scan,
                        prepare=prepare,
                        force=force,
                        out=chosen,
                        work=work,
                        ledger=opened_ledger(ledger, dataset),
                    )
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
    with progress_bar("faces", len(meshes)) as advance:
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
    draw_faces(out / "faces.png", shown)
    _draw_lines(out / "curves.png", shown)
    OUTPUT.print("mean squared error of a point, faces of area 1, times 10,000:")
    for mu, ours, theirs in rows:
        OUTPUT.print(f"  μ = {mu:g}: radial curves {1e4 * ours:.3f}, every point by itself {1e4 * theirs:.3f}")
    seconds = time.perf_counter() - start
    OUTPUT.print(f"Wrote {escape(str(out))} in {seconds:.0f} s; look at faces.png.", soft_wrap=True, highlight=False)


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


def draw_faces(path, faces):
    """Faces side by side, from two views: pairs of a title and radial curves (J, m, 3)."""
    import matplotlib.figure

    from jaxgeodp.surfaces.rendering import draw_curves

    figure = matplotlib.figure.Figure(figsize=(3 * len(faces), 6.6), layout="constrained")
    axes = figure.subplots(2, len(faces), squeeze=False)
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
def progress_bar(what, total):
    """A bar on the terminal; yields what tells it the number done."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(
        *columns, TimeRemainingColumn(), console=OUTPUT, transient=True, disable=not OUTPUT.is_terminal
    ) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)
