"""Mesh and point cloud files: OBJ, PLY, STL, OFF and XYZ, read by trimesh."""

import operator
import warnings
from pathlib import Path

import numpy as np

from jaxgeodp.checks import InputError
from jaxgeodp.meshes.mesh import Mesh
from jaxgeodp.meshes.point_cloud import mesh_from_points
from jaxgeodp.meshes.repair import RepairReport, repair

FORMATS = (".obj", ".ply", ".stl", ".off", ".xyz")
#: Of one file: 512 MiB, as text with normals and texture (210 bytes for a vertex) 2.5 million vertices.
MOST_BYTES = 2**29


def read_mesh(path, fill_holes: bool = False, scan: bool = False, template=None) -> tuple[Mesh, RepairReport]:
    """Read a mesh file and repair it, see `repair`; triangulate point clouds, see `mesh_from_points`.

    Args:
        path: of a file that ends in .obj, .ply, .stl, .off or .xyz, of at most 512 MiB.
        fill_holes: close every boundary loop but the longest.
        scan: also cut off what does not belong to the surface of a raw scan.
        template: triangles (F, 3) for a file of points alone that holds as many as they have vertices, the highest
            number plus 1, in the same order. Other files do not use it.

    Returns:
        The mesh, and what was changed; ``report.numbering`` takes vertex numbers of the file to those of the mesh.

    Raises:
        ValueError: there is no such file, its name ends otherwise, it is empty, too large, not valid or without
            triangles and points, or the surface is not a disk.
    """
    path = check_mesh_file(path)
    vertices, faces = _arrays(path)
    if len(faces):
        return repair(vertices, faces, fill_holes=fill_holes, scan=scan)
    if len(vertices) < 4:
        raise InputError(
            f"read_mesh: {path.name!r} holds no triangles and only {len(vertices)} points; export the mesh again."
        )
    fits = template is not None and np.max(template) + 1 == len(vertices)
    return mesh_from_points(vertices, template if fits else None, fill_holes, scan)


def file_triangles(path) -> np.ndarray | None:
    """Return a file's triangles (F, 3) in its own numbering; None for a file of points.

    Raises:
        ValueError: `check_mesh_file` refuses it, or it is not valid.
    """
    faces = np.asarray(_arrays(check_mesh_file(path))[1])
    return faces if len(faces) else None


def check_mesh_file(path) -> Path:
    """Return the path if size and name allow a mesh; nothing of the file is read.

    Raises:
        ValueError: there is no such file, it is empty or larger than `MOST_BYTES`, or its name ends otherwise.
    """
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise InputError(
            f"read_mesh: {path.name!r} does not end in one of {', '.join(FORMATS)}; convert the file first."
        )
    if not path.is_file():
        raise InputError(f"read_mesh: there is no file {str(path)!r}; check the path.")
    size = path.stat().st_size
    if size == 0:
        raise InputError(f"read_mesh: {path.name!r} is empty; export the mesh again.")
    if size > MOST_BYTES:
        raise InputError(f"read_mesh: {path.name!r} has more than {MOST_BYTES >> 20} MiB; make the mesh coarser.")
    return path


def _arrays(path):
    # Slow to import, and needed for files alone.
    import trimesh

    try:
        # In the order of the file: processing would merge and reorder vertices.
        with warnings.catch_warnings():  # of overflows, which would speak of the data
            warnings.simplefilter("ignore")
            loaded = trimesh.load(path, process=False, maintain_order=True, skip_materials=True)
        # Parts of an OBJ file with several materials, each with all vertices.
        if isinstance(loaded, trimesh.Scene):
            loaded = trimesh.util.concatenate(loaded.dump())
        faces = getattr(loaded, "faces", None)
        return operator.attrgetter("vertices")(loaded), () if faces is None else faces
    except Exception as error:
        # The parsers raise whatever they meet.
        raise InputError(
            f"read_mesh: {path.name!r} is not a valid {path.suffix[1:].upper()} file ({type(error).__name__}); export "
            "the mesh again."
        ) from None
