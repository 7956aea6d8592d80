"""Reading meshes from files: OBJ, PLY, STL and OFF, by trimesh."""

import warnings
from pathlib import Path

from jaxgeodp.checks import InputError
from jaxgeodp.surfaces.mesh import Mesh
from jaxgeodp.surfaces.repair import RepairReport, repair

FORMATS = (".obj", ".ply", ".stl", ".off")


def read_mesh(path, fill_holes: bool = False) -> tuple[Mesh, RepairReport]:
    """Read a mesh file and mend it, see `repair`.

    Args:
        path: of a file that ends in .obj, .ply, .stl or .off.
        fill_holes: close every boundary loop but the longest.

    Returns:
        The mesh, and what was changed; ``report.numbering`` takes vertex numbers of the file to those of the mesh.

    Raises:
        ValueError: there is no such file, it holds no triangles or is of another format, or the surface is not a disk.
    """
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise InputError(
            f"read_mesh: {path.name!r} does not end in one of {', '.join(FORMATS)}; convert the file first."
        )
    if not path.is_file():
        raise InputError(f"read_mesh: there is no file {str(path)!r}; check the path.")
    if path.stat().st_size == 0:
        raise InputError(f"read_mesh: {path.name!r} is empty; export the mesh again.")
    vertices, faces = _arrays(path)
    if len(faces) == 0:
        raise InputError(
            f"read_mesh: {path.name!r} holds points but no triangles; triangulate the point cloud first."
            if len(vertices)
            else f"read_mesh: {path.name!r} holds no triangles; export the mesh again."
        )
    return repair(vertices, faces, fill_holes=fill_holes)


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
        return loaded.vertices, getattr(loaded, "faces", ())
    except Exception as error:
        # The parsers raise whatever they meet.
        raise InputError(
            f"read_mesh: {path.name!r} is not a valid {path.suffix[1:].upper()} file ({type(error).__name__}); export "
            "the mesh again."
        ) from None
