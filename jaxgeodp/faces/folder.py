"""Radial curves of many faces, in parallel and resumable face by face."""

import contextlib
import dataclasses
import functools
import hashlib
import io
import json
import os
import pathlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from jaxgeodp._version import __version__
from jaxgeodp.array_files import MOST_BYTES
from jaxgeodp.checks import InputError, positive_integer
from jaxgeodp.faces.curves import FaceTemplate, face_curves
from jaxgeodp.faces.landmarks import Landmarks, Numbering, check_numbers, place_landmark
from jaxgeodp.faces.report import FaceReport, report_table
from jaxgeodp.faces.surface_mean import SurfaceMeanMechanism
from jaxgeodp.files import only_writer, write_atomically
from jaxgeodp.meshes.files import FORMATS, check_mesh_file, read_mesh
from jaxgeodp.meshes.mesh import Mesh
from jaxgeodp.workers import Ended, in_processes, leave_inside_import

# Raise it whenever faces come out differently: what was kept under another number is done again.
_PIPELINE = 2
_MARKER = ".jaxgeodp-faces"


class Faces(NamedTuple):
    """Faces relative to a template: private."""

    curves: np.ndarray  #: radial curves, (n, J, m, 3); NaN for a face that is not used
    #: of meshes with as many vertices as the template's, (n, V, 3), NaN for others; None, by public numbers, for a
    #: template without numbering or more than 4 GiB
    vertices: np.ndarray | None
    #: what each mesh needed, or why it is not used, for the custodian only. Each has ``used``, ``note``, ``distance``,
    #: ``inverted``, ``flips``, ``distortion``, ``map`` and ``repairs``, the columns of ``report.csv``
    reports: list[FaceReport]


class _Settings(NamedTuple):
    """Public settings shared by all faces."""

    nose: int
    up: int
    template: FaceTemplate
    ridge: float | None
    fill_holes: bool
    scan: bool
    triangles: np.ndarray | None


class _Result(NamedTuple):
    curves: np.ndarray
    vertices: np.ndarray
    report: FaceReport
    final: bool = True  #: the next attempt would end alike


def mesh_files(folder) -> list[pathlib.Path]:
    """Return the mesh files of a folder (.obj, .ply, .stl, .off, .xyz), by name.

    Raises:
        ValueError: there is no such folder, or no mesh in it.
    """
    folder = pathlib.Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; name a folder of meshes.")
    files = sorted(path for path in folder.iterdir() if path.suffix.lower() in FORMATS and path.is_file())
    if not files:
        raise InputError(f"{folder} holds no mesh; put files of type {', '.join(FORMATS)} there.")
    return files


def process_faces(
    sources: Sequence[Mesh | pathlib.Path],
    nose: int,
    up: int,
    template: FaceTemplate,
    ridge: float | None = None,
    fill_holes: bool = False,
    keep: pathlib.Path | None = None,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
    landmarks: Sequence[Landmarks | None] | None = None,
    mechanism: SurfaceMeanMechanism | None = None,
    scan: bool = False,
    triangles: np.ndarray | None = None,
) -> Faces:
    """Apply `face_curves` to many faces; an unusable one is NaN and counts as the centre of a release.

    Faces are processed in other processes, which import the calling script: call this under
    ``if __name__ == "__main__":``, or with ``workers=1``. What a mesh does to its process, such as taking all memory,
    ends the call only with ``workers=1``.

    Args:
        sources: meshes, or files that `read_mesh` reads.
        nose, up: vertex numbers of the landmarks in all meshes; a mesh that is not numbered like the template's is not
            used, nor is an STL file.
        template: public.
        ridge: of the registration; None turns faces only.
        fill_holes: see `read_mesh`.
        keep: a private folder for what is done, so that a later call goes on from there, and for ``report.csv``. It is
            made, or empty, or of an earlier call.
        workers: other processes; as many as cores by default. With 1 the calling process does the work itself.
        progress: called with the number of faces done.
        landmarks: of single meshes, instead of ``nose`` and ``up``: each a pair of vertex numbers of its file or of
            places (x, y, z) in its coordinates; None where those hold.
        mechanism: of a later release of the curves: how much of a face its bound takes away goes into ``report.csv``.
        scan: see `repair`.
        triangles: of a template, for files of points without triangles; see `read_mesh`.

    Returns:
        Curves, vertices and a report of each face, in the order of the sources.

    Raises:
        ValueError: there are no meshes, ``keep`` holds other files, or another process works in it.
    """
    sources = list(sources)
    if workers is not None:
        positive_integer("process_faces", "workers", workers, 1)
    if not sources:
        raise InputError("process_faces: sources is empty; give at least one mesh.")
    own = [None] * len(sources) if landmarks is None else list(landmarks)
    if len(own) != len(sources):
        raise InputError(
            f"process_faces: landmarks must have {len(sources)} entries, landmarks or None for each mesh, got "
            f"{len(own)}."
        )
    if workers != 1:
        leave_inside_import()
    settings = _Settings(nose, up, template, ridge, fill_holes, scan, triangles)
    if keep is None:
        return _collect(processed(sources, own, settings, [None] * len(sources), workers, progress), template)
    keep = pathlib.Path(keep)
    make_private(keep)
    with only_writer(keep):
        for rest in keep.glob(".part-*"):  # of a killed run
            rest.unlink()
        common = _fingerprint_of_settings(settings)
        places = [_place(keep, common, *pair) for pair in zip(sources, own, strict=True)]
        faces = _collect(processed(sources, own, settings, places, workers, progress), template)
        names = [source.name if isinstance(source, pathlib.Path) else str(j) for j, source in enumerate(sources)]
        clipped = None if mechanism is None else mechanism.shortened(faces.curves)
        # The names of files are bytes, which need not be text.
        table = report_table(names, faces.reports, clipped).encode(errors="backslashreplace")
        with contextlib.suppress(OSError):  # likewise a full disk
            write_atomically(keep / "report.csv", table, private=True)
    return faces


def make_private(folder):
    """Create a folder for processed faces, readable only by its owner, if it does not exist.

    Raises:
        ValueError: it is there and holds other files; it is left alone.
    """
    marker = folder / _MARKER
    if folder.exists() and not (folder.is_dir() and (marker.exists() or not any(folder.iterdir()))):
        raise InputError(
            f"{folder} is neither empty nor a folder of processed faces; name a new folder, which will hold private "
            "files."
        )
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    marker.touch(mode=0o600)


def _fingerprint_of_settings(settings):
    template = settings.template
    public = (_PIPELINE, __version__, settings._replace(template=None, triangles=None))
    common = hashlib.sha256(repr(public).encode())
    numbering = () if template.numbering is None else dataclasses.astuple(template.numbering)
    triangles = () if settings.triangles is None else (settings.triangles,)
    for array in (template.grid, template.curves, *map(np.asarray, numbering), *triangles):
        common.update(repr(array.shape).encode() + np.ascontiguousarray(array).tobytes())
    return common


def _place(keep, common, source, own):
    """Return the cache file of a face's result, by all its inputs; None for an unreadable file.

    This is done in the calling process: whatever a file is, it takes little memory and raises nothing.
    """
    digest = common.copy()
    digest.update(repr(own).encode())
    try:
        if isinstance(source, Mesh):
            digest.update(np.ascontiguousarray(source.vertices).tobytes())
            digest.update(np.ascontiguousarray(source.faces).tobytes())
        else:
            digest.update(source.suffix.lower().encode())
            with check_mesh_file(source).open("rb") as stream:
                hashlib.file_digest(stream, lambda: digest)
    except Exception:  # whatever a mesh does must not show in what others see; what it was, its report tells
        return None
    return keep / f"{digest.hexdigest()[:32]}.npz"


def processed(sources, own, settings, places, workers, progress):
    """Return a result for each source, from the cache or computed."""
    done = [kept_face(place, settings.template) for place in places]
    waiting = [j for j, result in enumerate(done) if result is None]
    say = (lambda count: None) if progress is None else progress
    say(len(sources) - len(waiting))
    one = functools.partial(processed_face, settings)
    jobs = [(sources[j], own[j], places[j]) for j in waiting]
    if workers == 1:
        answers = ((k, one(*job), None) for k, job in enumerate(jobs))
    else:
        answers = in_processes("process_faces", one, jobs, workers or os.cpu_count() or 1)
    with contextlib.closing(answers):
        for count, (k, result, before) in enumerate(answers, len(sources) - len(waiting) + 1):
            done[waiting[k]] = _told(result, before, settings.template)
            say(count)
    return done


def _told(result, before, template):
    """Return the result, with a note if its process was ended."""
    if isinstance(result, Ended) and not result.begun:
        return _unused(template, "the system ended each process that was started for it; run again, with more memory")
    if isinstance(result, Ended):
        return _unused(
            template,
            f"the system ended the process that worked on it (exit code {result.code}), most likely for want of "
            "memory; run again, or make the mesh coarser",
        )
    if before is None:
        return result
    note = f"done again after the system ended its process (exit code {before.code})"
    note = f"{result.report.note}; {note}" if result.report.note else note
    return result._replace(report=result.report._replace(note=note))


def processed_face(settings, source, own, place):
    """Process one face; cache the result if another attempt would give the same."""
    template = settings.template
    try:
        result = _face(settings, source, own)
    except InputError as error:
        result = _unused(template, str(error), final=True)
    except Exception as error:  # whatever a mesh does must not show in what others see
        result = _unused(template, f"{type(error).__name__}: {error}; run again")
    if place is not None and result.final:
        stream = io.BytesIO()
        report = np.array(json.dumps(result.report._asdict()))
        np.savez(stream, curves=result.curves, vertices=result.vertices, report=report)
        # A full disk must not show either; the face is done again next time.
        with contextlib.suppress(OSError):
            write_atomically(place, stream.getvalue(), private=True)
    return result


def _face(settings, source, own):
    template = settings.template
    marks = Landmarks(settings.nose, settings.up) if own is None else Landmarks(*own)
    mesh, repairs, numbers = source, None, None
    if not isinstance(source, Mesh):
        check_numbers(marks, source.suffix)
        mesh, report = read_mesh(source, settings.fill_holes, settings.scan, settings.triangles)
        numbers, repairs = report.numbering, report.counts()
    if own is None and template.numbering is not None and not Numbering.of(mesh, numbers).agrees(template.numbering):
        raise InputError(
            "its vertices are not numbered like the template's, so the landmarks' numbers refer to other places; give "
            "this mesh landmarks of its own."
        )
    nose, up = (place_landmark(name, mark, mesh, numbers) for name, mark in zip(("nose", "up"), marks, strict=True))
    found = face_curves(mesh, nose, up, template, settings.ridge)
    if not np.all(np.isfinite(found.curves)):
        raise InputError("the curves are not finite; check the mesh for errors.")
    measures = {name: getattr(found, name) for name in ("distance", "inverted", "flips", "distortion", "map")}
    return _Result(found.curves, found.vertices, FaceReport(repairs=repairs, **measures))


def _unused(template, note, final=False):
    report = FaceReport(f"not used: {note}", used=False)
    return _Result(np.full(template.curves.shape, np.nan), np.zeros((0, 3)), report, final)


def kept_face(place, template):
    """Return the cached result; None if there is none or it is unreadable."""
    if place is None or not place.is_file():
        return None
    try:
        with np.load(place, allow_pickle=False) as file:
            if sum(member.file_size for member in file.zip.infolist()) > MOST_BYTES:
                return None
            result = _Result(file["curves"], file["vertices"], FaceReport(**json.loads(str(file["report"]))))
    except Exception:  # a damaged archive raises many things
        return None
    numbers = result.curves.dtype == result.vertices.dtype == float
    known = result.curves.shape == template.curves.shape and result.vertices.ndim == 2 and result.vertices.shape[1] == 3
    return result if numbers and known else None


def _collect(results, template):
    together, numbering = None, template.numbering
    if numbering is not None and 24 * numbering.in_mesh * len(results) <= MOST_BYTES:
        together = np.full((len(results), numbering.in_mesh, 3), np.nan)
        for own, result in zip(together, results, strict=True):
            if result.vertices.shape == own.shape:
                own[...] = result.vertices
    return Faces(np.stack([result.curves for result in results]), together, [result.report for result in results])
