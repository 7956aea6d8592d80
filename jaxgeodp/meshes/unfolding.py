"""Removing folds from a map of a mesh into the disk.

A harmonic map with cotangent weights may fold where angles are obtuse: at corners of the mouth, in nostrils. There the
map is replaced by one with equal weights on all edges, which never folds inside a convex polygon (Tutte 1963).
"""

import numpy as np
from scipy import sparse

from jaxgeodp.checks import InputError
from jaxgeodp.meshes.connectivity import adjacency
from jaxgeodp.meshes.distortion import flips
from jaxgeodp.meshes.laplacian import Dirichlet
from jaxgeodp.meshes.mesh import Mesh

_RINGS = 2


def unfold(mesh: Mesh, z) -> np.ndarray:
    """Return the map z (V,) without folded triangles; only vertices near folds move, the boundary never.

    Inner vertices up to two edges from a fold are placed anew. The region grows while folds remain, at worst to all of
    the disk, where equal weights cannot fold as the boundary is convex.

    Raises:
        ValueError: folds remain all the same.
    """
    z, rings = np.array(z, dtype=complex), _RINGS
    folded = flips(mesh, z)
    if len(folded) == 0:
        return z
    near = adjacency(mesh.faces, len(z))
    weights = (sparse.diags_array(near.sum(axis=1)) - near).tocsr()
    movable = np.zeros(len(z), dtype=bool)
    movable[mesh.interior] = True
    while len(folded):
        free = _region(near, mesh.faces[folded], rings) & movable
        z = Dirichlet(weights, np.flatnonzero(~free)).fill(z[~free])
        folded, rings = flips(mesh, z), rings + 1
        if len(folded) and free.sum() == len(mesh.interior):
            raise InputError(
                f"disk_conformal_map: triangle {folded[0]} stays folded over in the plane; remesh the surface around "
                "it with fewer triangles, closer to equilateral."
            )
    return z


def _region(near, faces, rings):
    """Return which vertices lie within ``rings`` edges of the triangles."""
    inside = np.zeros(near.shape[0])
    inside[faces] = 1.0
    for _ in range(rings):
        inside = np.minimum(inside + near @ inside, 1.0)
    return inside > 0
