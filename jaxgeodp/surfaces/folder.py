"""Radial curves of many faces: parallel over the cores, face by face, so that a run may be killed and resumed."""

import concurrent.futures
import csv
import hashlib
import io
import multiprocessing
import os
import pathlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from jaxgeodp.array_files import MOST_BYTES
from jaxgeodp.checks import InputError, positive_integer
from jaxgeodp.files import only_writer, write_atomically
from jaxgeodp.surfaces.face_curves import FaceTemplate, face_curves
from jaxgeodp.surfaces.mesh import Mesh
from jaxgeodp.surfaces.mesh_files import FORMATS, read_mesh


class Faces(NamedTuple):
    """Faces relative to a template: private."""

    curves: np.ndarray  #: radial curves, (n, J, m, 3); NaN for a face that could not be processed
    vertices: np.ndarray | None  #: (n, V, 3), where all have the same number
    reports: list[str]  #: what each mesh needed, or why it could not be processed: for the custodian only


def mesh_files(folder) -> list[pathlib.Path]:
    """The meshes of a folder, by name.

    Raises:
        ValueError: there is no such folder, or no mesh in it.
    """
    folder = pathlib.Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder; name a folder of meshes.")
    files = sorted(path for path in folder.iterdir() if path.suffix.lower() in FORMATS and path.is_file())
    if not files:
        raise InputError(f"{folder} holds no mesh; put files {', '.join(FORMATS)} there.")
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
) -> Faces:
    """`face_curves` of many faces; one that cannot be processed is NaN and counts as the template in a release.

    Args:
        sources: meshes, or files that `read_mesh` reads.
        nose, up: vertex numbers of the landmarks, the same in all meshes.
        template: public.
        ridge: of the registration; None turns faces only.
        fill_holes: see `read_mesh`.
        keep: a private folder for what is done, so that a later call goes on from there, and for ``report.csv``.
        workers: processes; as many as cores by default.
        progress: called with the number of faces done.

    Raises:
        ValueError: another process works in ``keep``.
    """
    workers = os.cpu_count() if workers is None else workers
    positive_integer("process_faces", "workers", workers, 1)
    if keep is None:
        return _collect(
            _process(sources, nose, up, template, ridge, fill_holes, [None] * len(sources), workers, progress)
        )
    keep = pathlib.Path(keep)
    keep.mkdir(parents=True, exist_ok=True)
    keep.chmod(0o700)
    with only_writer(keep):
        common = hashlib.sha256(repr((nose, up, ridge, fill_holes)).encode())
        for array in (template.grid, template.curves):
            common.update(np.ascontiguousarray(array).tobytes())
        places = [keep / f"{_fingerprint(common, source)}.npz" for source in sources]
        faces = _collect(_process(sources, nose, up, template, ridge, fill_holes, places, workers, progress))
        table = io.StringIO()
        writer = csv.writer(table, lineterminator="\n")
        writer.writerow(["face", "report"])
        writer.writerows(zip((_name(source, j) for j, source in enumerate(sources)), faces.reports, strict=True))
        write_atomically(keep / "report.csv", table.getvalue())
    return faces


def _name(source, number):
    return source.name if isinstance(source, pathlib.Path) else str(number)


def _fingerprint(common, source):
    own = common.copy()
    if isinstance(source, Mesh):
        own.update(np.ascontiguousarray(source.vertices).tobytes() + np.ascontiguousarray(source.faces).tobytes())
    else:
        own.update(source.read_bytes())
    return own.hexdigest()[:32]


def _process(sources, nose, up, template, ridge, fill_holes, places, workers, progress):
    done = [_read(place, template) for place in places]
    waiting = [j for j, result in enumerate(done) if result is None]
    if progress is not None:
        progress(len(sources) - len(waiting))
    shared = (nose, up, template, ridge, fill_holes)
    if workers == 1:
        for count, j in enumerate(waiting, len(sources) - len(waiting) + 1):
            done[j] = _one(sources[j], places[j], *shared)
            if progress is not None:
                progress(count)
        return done
    # Forking would copy JAX's threads in an unknown state.
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(min(workers, max(1, len(waiting))), context) as pool:
        futures = {pool.submit(_one, sources[j], places[j], *shared): j for j in waiting}
        for count, future in enumerate(concurrent.futures.as_completed(futures), len(sources) - len(waiting) + 1):
            done[futures[future]] = future.result()
            if progress is not None:
                progress(count)
    return done


def _one(source, place, nose, up, template, ridge, fill_holes):
    """Curves, vertices and report of one face."""
    try:
        mesh, report = source, ""
        if not isinstance(source, Mesh):
            mesh, report = read_mesh(source, fill_holes)
            nose, up = (report.numbering[_within(vertex, report.numbering)] for vertex in (nose, up))
            if min(nose, up) < 0:
                raise InputError("a landmark's vertex was dropped when the mesh was mended; choose another vertex")
        found = face_curves(mesh, nose, up, template, ridge)
        result = found.curves, found.vertices, str(report)
        if not np.all(np.isfinite(found.curves)):
            raise InputError("the curves are not finite")
    except Exception as error:  # whatever a mesh does must not show in what others see
        result = np.full(template.curves.shape, np.nan), np.zeros((0, 3)), f"not used: {error}"
    if place is not None:
        stream = io.BytesIO()
        np.savez(stream, curves=result[0], vertices=result[1], report=np.array(result[2]))
        write_atomically(place, stream.getvalue())
    return result


def _within(vertex, numbering):
    if not 0 <= vertex < len(numbering):
        raise InputError(f"landmark {vertex} is no vertex: the mesh has {len(numbering)}")
    return vertex


def _read(place, template):
    """What an earlier call kept; None to do it again, also where the file is not what `_one` wrote."""
    if place is None or not place.is_file():
        return None
    try:
        with np.load(place, allow_pickle=False) as file:
            if sum(member.file_size for member in file.zip.infolist()) > MOST_BYTES:
                return None
            curves, vertices, report = (file[name] for name in ("curves", "vertices", "report"))
    except Exception:  # damaged by others; the readers raise whatever they meet
        return None
    numbers = curves.dtype == vertices.dtype == float and report.dtype.kind == "U"
    known = curves.shape == template.curves.shape and vertices.ndim == 2 and vertices.shape[1] == 3
    return (curves, vertices, str(report)) if numbers and known else None


def _collect(results):
    curves, vertices, reports = zip(*results, strict=True)
    counts = {len(v) for v in vertices if len(v)}
    together = None
    if len(counts) == 1:
        shape = (counts.pop(), 3)
        together = np.stack([v if len(v) else np.full(shape, np.nan) for v in vertices])
    return Faces(np.stack(curves), together, list(reports))
