"""Smooth functions on a surface: Laplace-Beltrami eigenfunctions, in order of increasing eigenvalue.

With the cotangent Laplacian L (positive semidefinite) and the mass M of vertices, a third of the areas of the triangles
around each, they solve ``L f = lambda M f`` (Levy 2006): on a disk they are what sines and cosines are on a circle.
"""

import dataclasses

import numpy as np
from scipy import linalg
from scipy.sparse import diags_array
from scipy.sparse.linalg import eigsh

from jaxgeodp.checks import InputError, positive_integer
from jaxgeodp.meshes.grid import polar_faces
from jaxgeodp.meshes.laplacian import cotangent_laplacian
from jaxgeodp.meshes.mesh import Mesh
from jaxgeodp.pytrees import Pytree

#: Default number of functions. On faces at mu = 2 and 3, more lower the error by up to a quarter and take longer
#: (docs/faces.md).
FUNCTIONS = 150
# Up to this many vertices, or 3 per function, a dense solver is used.
_FEW = 600
# The solver looks for eigenvalues near this one; on a surface of mass 1 the first that is not 0 is about 10.
_SHIFT = -1.0


@dataclasses.dataclass(frozen=True, eq=False)
class SurfaceBasis(Pytree, leaves=("functions", "weights")):
    """K smooth functions on the N points of a public surface, orthonormal in the point weights.

    Args:
        functions: their values, (N, K).
        weights: of the points, (N,), above 0, of sum 1: parts of the area.

    Raises:
        ValueError: shapes do not fit, or the functions are not orthonormal.
    """

    functions: np.ndarray
    weights: np.ndarray

    def __post_init__(self):
        for name, dims in (("functions", 2), ("weights", 1)):
            array = _real_numbers(f"SurfaceBasis: {name}", getattr(self, name))
            if array.ndim != dims or 0 in array.shape or not np.all(np.isfinite(array)):
                raise InputError(f"SurfaceBasis: {name} must be finite numbers of {dims} dimensions.")
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if len(self.functions) != len(self.weights) or np.min(self.weights) <= 0:
            raise InputError("SurfaceBasis: needs a weight above 0 for each of the points of its functions.")
        products = self.functions.T @ (self.weights[:, None] * self.functions)
        if not np.allclose(products, np.eye(len(products)), atol=1e-6):
            raise InputError("SurfaceBasis: functions are not orthonormal in the weights; see SurfaceBasis.of_mesh.")

    @classmethod
    def of_mesh(cls, mesh: Mesh, count: int = FUNCTIONS) -> "SurfaceBasis":
        """Return the smoothest functions on the vertices of a public mesh.

        Args:
            mesh: public, such as a template; never the mean of private surfaces.
            count: how many functions, at least 1; no more than half as many as vertices are taken.

        Raises:
            ValueError: count is out of range.

        Example:
            >>> from jaxgeodp.surfaces import Mesh, SurfaceBasis, SyntheticFaces
            >>> faces = SyntheticFaces(rings=8)
            >>> SurfaceBasis.of_mesh(Mesh(faces.template, faces.triangles), 20).functions.shape
            (217, 20)
        """
        if not isinstance(mesh, Mesh):
            raise InputError("SurfaceBasis.of_mesh: mesh must be a Mesh; Mesh(vertices, faces) makes one.")
        positive_integer("SurfaceBasis.of_mesh", "count", count, 1)
        weights = np.bincount(mesh.faces.reshape(-1), np.repeat(mesh.areas / 3.0, 3), len(mesh.vertices))
        weights = weights / weights.sum()
        return cls(_smoothest(cotangent_laplacian(mesh), weights, min(count, len(weights) // 2)), weights)

    @classmethod
    def of_curves(cls, curves, count: int = FUNCTIONS) -> "SurfaceBasis":
        """Return the smoothest functions on the surface through public radial curves, at the curves' points.

        Args:
            curves: of a template, (J, m, 3).
            count: see `of_mesh`.

        Raises:
            ValueError: they are no curves of a surface, or count is out of range.
        """
        curves = _real_numbers("SurfaceBasis.of_curves: curves", curves)
        if curves.ndim != 3 or curves.shape[2] != 3 or 0 in curves.shape:
            raise InputError(f"SurfaceBasis.of_curves: curves must have shape (J, m, 3), got {curves.shape}.")
        rows, samples, _ = curves.shape
        vertices = np.concatenate([curves[0].mean(axis=0)[None], curves.reshape(-1, 3)])
        whole = cls.of_mesh(Mesh(vertices, polar_faces(rows, samples)), count)
        # Nothing is known of records at the centre, which has hardly any area: without it they are orthonormal again.
        functions, weights = whole.functions[1:], whole.weights[1:] / whole.weights[1:].sum()
        factor = linalg.cholesky(functions.T @ (weights[:, None] * functions))
        return cls(linalg.solve_triangular(factor, functions.T, trans=1).T, weights)


def _real_numbers(name, values):
    try:
        array = np.array(values)
    except ValueError:
        raise InputError(f"{name} must be one array; nested lists must have equal lengths.") from None
    if array.dtype.kind not in "fiu":
        raise InputError(f"{name} must be real numbers.")
    return array.astype(float)


def _smoothest(laplacian, weights, count):
    """Return the eigenvectors (N, count) of the smallest eigenvalues, orthonormal in the weights."""
    if len(weights) <= max(_FEW, 3 * count):
        root = np.sqrt(weights)
        dense = laplacian.toarray() / root / root[:, None]
        return linalg.eigh(dense, subset_by_index=[0, count - 1])[1] / root[:, None]
    start = np.random.default_rng(0).normal(size=len(weights))  # the same for all, so that the result is
    values, vectors = eigsh(laplacian.tocsc(), count, diags_array(weights).tocsc(), sigma=_SHIFT, v0=start)
    return vectors[:, np.argsort(values)]
