"""``jaxgeodp face DIR``: a folder of meshes, processed in a private folder, and released.

Everything that could be wrong about the call is said before the first mesh is read; from then on no message and no exit
code depends on a mesh.
"""

import contextlib
import hashlib
import json
import math
import os
import pathlib
from typing import NamedTuple, TypeVar

import numpy as np

from jaxgeodp.checks import InputError, positive_number
from jaxgeodp.cli.face_pictures import draw_errors, draw_faces, picture_of_faces
from jaxgeodp.cli.frame import OUTPUT, say
from jaxgeodp.cli.progress import progress_bar
from jaxgeodp.cli.room import PICTURE_ROOM, record_room
from jaxgeodp.faces.curves import FaceTemplate
from jaxgeodp.faces.design import reference_folder, synthetic_reference
from jaxgeodp.faces.folder import make_private, mesh_files, process_faces
from jaxgeodp.faces.landmarks import read_landmarks
from jaxgeodp.faces.surface_design import SPECTRUM_COUNTS, design_surfaces
from jaxgeodp.files import all_reserved, folder_for, state_change, write_atomically
from jaxgeodp.meshes.files import file_triangles
from jaxgeodp.meshes.spectrum import SurfaceBasis
from jaxgeodp.privacy.clock import now
from jaxgeodp.privacy.ledger import Ledger
from jaxgeodp.releases.limits import check_numbers
from jaxgeodp.releases.ways import way_of
from jaxgeodp.traced_programs import keeping_none

_Value = TypeVar("_Value")
_MU = 3.0
# A release that is expected to err by more than this part of what the public centre does is not worth its budget.
_MOST_ERROR = 0.95
_RIDGE = 0.1
_RECORD, _PICTURE = "release.json", "face.png"
# What a release of a face may be of, and their values alike: curves of points.
_MECHANISMS = ("SurfaceMeanMechanism", "FaceMeanMechanism")
_UNIT = "one mesh file; for a person with k files, mu is k times as large"


class FolderCall(NamedTuple):
    """Options of ``jaxgeodp face DIR``; None where not given."""

    folder: str
    mu: float | None
    template: pathlib.Path | None
    nose: int | None
    up: int | None
    norm_bound: float | None
    reference: pathlib.Path | None
    landmarks: pathlib.Path | None
    registration: bool
    fill_holes: bool
    scan: bool
    prepare: bool
    force: bool
    numerics: str
    out: pathlib.Path
    work: pathlib.Path | None
    ledger: Ledger | None


def process_folder(call: FolderCall) -> None:
    """Process the meshes of a folder, and release their mean unless the call only prepares it.

    Raises:
        ValueError: a public parameter is wrong; nothing has been processed then.
    """
    mu, nose, up = _checked_numbers(call)
    way_of("face", 0.0, call.numerics)  # refuses an unknown word before any mesh is read
    files, own = _files(call)
    out, private = _places(call)
    with OUTPUT.status("Reading the template; designing the release with public faces ..."):
        public = _template(call)
        triangles = file_triangles(call.template)
        design = _design(call, public, triangles, len(files), mu)
    # Before the work, and before anything is written: what a release would refuse.
    law = design.mechanism.law(len(files))
    check_numbers(law.terms, law.scale, law.size)
    _check_error(design, len(files), call.force or call.prepare)
    if not call.prepare and call.ledger is not None:
        call.ledger.check(_guarantee(design, call.numerics))
    described = _described(call, public)
    with _folder(call, out):
        make_private(private)
        if not call.prepare:
            # Before the work: what cannot be written or drawn shows now.
            faces = [
                ("template (public)", public.curves),
                ("centre (public), without a release", design.mechanism.center),
            ]
            draw_faces(out / "template.png", faces, public)
            draw_errors(out / "expected.png", design, len(files), public)
        with _place(call, out, public) as write:
            with keeping_none(), progress_bar("faces", len(files)) as advance:
                faces = process_faces(
                    files,
                    nose,
                    up,
                    public,
                    _RIDGE if call.registration else None,
                    call.fill_holes,
                    private,
                    None,
                    advance,
                    own,
                    design.mechanism,
                    call.scan,
                    triangles,
                )
            report = private / "report.csv"
            if write is None:
                say(f"Nothing is released. Read {report} (private), mend meshes, then call again without --prepare.")
                return
            with OUTPUT.status("Compiling and releasing ..."):
                release = design.release(faces.curves, call.ledger, numerics=call.numerics, more=described)
                write[out / _RECORD](release.to_json())
            with OUTPUT.status("Drawing the face ..."):
                write[out / _PICTURE](_picture(out / _RECORD, public))
    say(f"Wrote {out}. What each mesh needed is in {report}: private.")


@contextlib.contextmanager
def _folder(call, out):
    """Make the folder of the release; at the end it and the record state when the work began.

    The record is read again, and into the folder the other files are put; one of somebody else keeps its time.
    """
    if call.prepare:
        yield
        return
    with folder_for(out, now()):
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                state_change(out / _RECORD, now())


def _place(call, out, public):
    """Reserve disk space for record and picture before the work: what is charged and cannot be written is lost.

    None where nothing is released.
    """
    if call.prepare:
        return contextlib.nullcontext()
    sizes = {out / _RECORD: record_room(public.curves.size), out / _PICTURE: PICTURE_ROOM}
    return all_reserved(sizes, replace=False, changed=now())


def draw_release(path: pathlib.Path, folder: pathlib.Path, template=None) -> None:
    """Draw the face of a release record in a folder; with the tip of the nose of a `FaceTemplate`.

    The picture of release.json is face.png, of others they have the record's name.

    Raises:
        ValueError: it is no record of a face, or cannot be drawn, or a file is there that is not its own; the record
            stays as it is.
    """
    name = _PICTURE if path.name == _RECORD else f"{path.stem}.png"
    if os.path.lexists(folder / name) and not (path.name == _RECORD and path.parent.resolve() == folder.resolve()):
        raise InputError(f"{folder / name} exists; name another folder with --out, or remove it.")
    picture = _picture(path, template)
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / name, picture, changed=now())


def _picture(path, template=None) -> bytes:
    """Return the picture of the face in a release record, as the bytes of a PNG file."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        value = np.array(record["value"], dtype=float)
        if record["mechanism"] not in _MECHANISMS or value.ndim != 3 or value.shape[2] != 3:
            raise ValueError
        title = f"private mean, {_strength(record['guarantee'])}"
    except FileNotFoundError:
        raise InputError(f"there is no file {path}; name the release.json of a face.") from None
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        raise InputError(f"{path} is not a release of a face; name the release.json of one.") from None
    try:
        return picture_of_faces([(title, value)], template)
    except Exception:
        raise InputError(
            f"{path} is complete, but its picture could not be drawn; try 'jaxgeodp face {path}' again."
        ) from None


def _strength(guarantee):
    name, symbol = ("rho", "ρ") if guarantee["kind"] == "zcdp" else ("mu", "μ")
    return f"{symbol} = {float(guarantee[name]):.4g}"


def _given(name: str, value: _Value | None) -> _Value:
    if value is None:
        raise InputError(f"face needs {name}, a public choice that has no default.")
    return value


def _checked_numbers(call: FolderCall) -> tuple[float, int, int]:
    """Return mu and the numbers of the landmarks' vertices."""
    _given("--template", call.template)
    nose, up = _given("--nose", call.nose), _given("--up", call.up)
    if call.reference is not None and call.reference.resolve() == pathlib.Path(call.folder).resolve():
        raise InputError("--reference is the folder of the private faces; name a folder of other, public ones.")
    if call.norm_bound is not None:
        positive_number("face", "--norm-bound", call.norm_bound)
    mu = _MU if call.mu is None else call.mu
    positive_number("face", "--mu", mu)
    return mu, nose, up


def _guarantee(design, numerics):
    """Return what the release will take from a budget, nearly: on the grid a little less."""
    return design.guarantee if numerics == "idealized" else design.guarantee.to_zcdp()


def _files(call):
    """Return the meshes of the folder, and the landmarks of those that have their own."""
    files = mesh_files(call.folder)
    if len(files) < 2:
        raise InputError(f"{call.folder} holds one mesh; a mean needs at least 2.")
    _check_public(call, files)
    if call.landmarks is None:
        return files, None
    own = read_landmarks(call.landmarks)
    unknown = sorted(own.keys() - {path.name for path in files})
    if unknown:
        raise InputError(f"--landmarks names {unknown[0]!r}, which is not a mesh of {call.folder}; correct it.")
    return files, [own.get(path.name) for path in files]


def _check_public(call, files):
    """Refuse what is said to be public and lies among the private faces, also by a link; no file is opened."""
    folder = pathlib.Path(call.folder).resolve()
    private = {path.resolve() for path in files} | _identities(files)
    if _among(call.template.resolve(), folder, private):
        raise InputError("--template lies in the folder of the private faces; name a public mesh outside it.")
    if call.reference is None:
        return
    for path in mesh_files(call.reference):
        if _among(path.resolve(), folder, private):
            raise InputError(f"--reference: {path} is one of the private faces; name a folder of other, public ones.")


def _among(path, folder, private):
    return folder in path.parents or path in private or not private.isdisjoint(_identities([path]))


def _identities(paths):
    """Return device and number of existing files, by which hard links to one are told."""
    found = set()
    for path in paths:
        with contextlib.suppress(OSError):
            status = path.stat()
            found.add((status.st_dev, status.st_ino))
    return found


def _places(call):
    """Return the folders of the release and of private things, as absolute paths."""
    folder, out = pathlib.Path(call.folder).resolve(), call.out.resolve()
    private = folder.with_name(folder.name + "-private") if call.work is None else call.work.resolve()
    if private in (out, folder) or out in private.parents or private in out.parents:
        raise InputError(
            "--work holds private files, so it must lie outside --out and differ from the folder of the faces."
        )
    if not call.prepare:
        check_out(out, frozenset({"template.png", "expected.png"}))
    return out, private


def check_out(out: pathlib.Path, known: frozenset[str] = frozenset()) -> None:
    """Refuse a folder of a release that holds more than what a killed run may have left, such as ``known`` files."""
    if not out.exists():
        return
    held = {path.name for path in out.iterdir() if not path.name.startswith(".part-")} if out.is_dir() else {""}
    if held - known:
        raise InputError(f"--out {out} exists and is not an empty folder; name another.")


def _template(call):
    try:
        return FaceTemplate.from_file(call.template, call.nose, call.up, call.fill_holes, call.scan)
    except InputError as error:
        raise InputError(f"--template {call.template}: {error}") from None


def _design(call, public, triangles, n, mu):
    """Return the design from public faces: a folder, or synthetic ones, which do not tell how others differ."""
    ridge = _RIDGE if call.registration else None
    if call.reference is None:
        curves, counts = synthetic_reference(public, ridge), math.inf
    else:
        options = {"ridge": ridge, "fill_holes": call.fill_holes, "scan": call.scan, "triangles": triangles}
        curves = reference_folder(public, call.reference, call.nose, call.up, **options)
        counts = SPECTRUM_COUNTS
    return design_surfaces(SurfaceBasis.of_curves(public.curves), curves, n, mu, call.norm_bound, counts)


def _check_error(design, n, force):
    """Print the expected error, in parts of the distance of the centre's points from its middle.

    Raises:
        ValueError: a release tells hardly anything, and is not forced.
    """
    center = design.mechanism.center.reshape(-1, 3)
    size = np.sqrt(np.mean(np.sum((center - center.mean(axis=0)) ** 2, axis=1)))
    error, known = (
        float(np.sqrt(np.mean(errors(n) ** 2)) / size) for errors in (design.expected_error, design.error_without_data)
    )
    text = (
        f"Expect an error of {100 * error:.2g} % of the size of a face; without a release, of {100 * known:.2g} % "
        f"(n = {n})"
    )
    if error > _MOST_ERROR * known and not force:
        raise InputError(
            f"{text[0].lower() + text[1:]}: the release would hardly differ from the public centre. Give more faces "
            "or a larger --mu, or release it all the same with --force."
        )
    say(f"{text}.")


def _described(call, public):
    """Return record entries on what was done to the meshes, all of it public."""
    preprocessing = {
        "template": {"sha256": hashlib.sha256(call.template.read_bytes()).hexdigest()},
        "landmarks": {"nose": call.nose, "up": call.up, "own": call.landmarks is not None},
        "grid": list(public.grid.shape[:2]),
        "curves": list(public.curves.shape[:2]),
        "registration": {"ridge": _RIDGE} if call.registration else None,
        "fill_holes": call.fill_holes,
        "scan": call.scan,
        "reference": "synthetic people" if call.reference is None else "public meshes",
        "unusable_meshes": "count as the centre",
    }
    return {"unit": _UNIT, "preprocessing": preprocessing}
