"""``jaxgeodp face``: meshes in, a private mean face out."""

import pathlib
from typing import Annotated

import typer

from jaxgeodp.checks import InputError
from jaxgeodp.cli.frame import check_writable, one_sentence_errors, quiet_libraries, say
from jaxgeodp.cli.ledger import DATASET, LEDGER, opened_ledger
from jaxgeodp.files import write_atomically


def face(
    folder: Annotated[
        str,
        typer.Argument(
            help="A folder of meshes (.obj, .ply, .stl, .off, .xyz), one per person; 'demo'; 'pick', with --template, "
            "for a page that tells vertex numbers; or a release.json to draw again."
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
        float | None,
        typer.Option(
            help="Public: about how far faces may be from the mean of the reference, root mean square over a face of "
            "area 1; one that is further, or differs as the reference does not, is shortened."
        ),
    ] = None,
    reference: Annotated[
        pathlib.Path | None,
        typer.Option(
            help="Folder of at least 3 other public meshes: centre, bound, directions. Else synthetic people do."
        ),
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
    force: Annotated[bool, typer.Option("--force", help="Release even if it tells hardly anything.")] = False,
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
        drawn = folder.endswith(".json")
        if folder == "pick":
            others = {"--mu": mu, "--nose": nose, "--up": up, "--norm-bound": norm_bound, "--landmarks": landmarks}
            others |= {"--register": registration or None, "--prepare": prepare or None, "--reference": reference}
            others |= {"--force": force or None, "--work": work, "--ledger": ledger, "--dataset": dataset}
            others |= {"--numerics": None if numerics == "idealized" else numerics}
            if extra := [name for name, value in others.items() if value is not None]:
                raise InputError(f"face pick takes no {extra[0]}; leave it out.")
            _pick(template, out, fill_holes, scan)
            return
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
            from jaxgeodp.cli.face_folder import FolderCall, check_out, draw_release, process_folder

            if folder == "demo":
                from jaxgeodp.cli.face_demo import run_demo

                check_out(chosen)
                chosen.mkdir(parents=True, exist_ok=True)
                run_demo(chosen)
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


def _pick(template, out, fill_holes, scan):
    """Write a page of the template that tells the number of a clicked vertex."""
    if template is None:
        raise InputError("face pick needs --template, the public mesh whose vertices are to be numbered.")
    if template.suffix.lower() == ".stl":
        raise InputError(f"--template {template}: an STL file does not number its vertices; give landmarks as points.")
    page = template.with_name(f"{template.stem}-vertices.html") if out is None else out
    check_writable(page, False, [template])
    with quiet_libraries():
        import numpy as np

        from jaxgeodp.meshes.files import read_mesh
        from jaxgeodp.pictures.mesh_page import page_of_mesh

        mesh, report = read_mesh(template, fill_holes, scan)
        numbers = np.full(len(mesh.vertices), -1)
        kept = np.flatnonzero(report.numbering >= 0)
        numbers[report.numbering[kept][::-1]] = kept[::-1]  # the first, where several became one
        write_atomically(page, page_of_mesh(template.name, np.asarray(mesh.vertices), np.asarray(mesh.faces), numbers))
    say(f"Wrote {page}: open it in a browser, and click on the tip of the nose and on its root.")
