"""The cotangent Laplacian of a mesh, and harmonic functions with given values on part of it.

``L_ij = -(cot a_ij + cot b_ij)/2`` for the angles a, b opposite to the edge ij; rows sum to 0, and 1/2 u'Lu is the
Dirichlet energy of the piecewise linear function u (Pinkall & Polthier 1993). Cotangents of obtuse angles are negative
and stay so: clamping them would change the angles.
"""

import functools

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

# Right-hand sides solved together: bounds memory on long boundaries.
_COLUMNS = 256


def cotangent_laplacian(mesh):
    """Return the positive semidefinite matrix L of a mesh, sparse (V, V)."""
    count = len(mesh.vertices)
    weights = 0.5 * mesh.cotangents
    # The angle at a corner is opposite to the edge of the two others.
    ends = np.stack([np.roll(mesh.faces, -1, axis=1), np.roll(mesh.faces, -2, axis=1)])
    a, b = ends.reshape(2, -1)
    half = sparse.coo_array((weights.reshape(-1), (a, b)), shape=(count, count)).tocsr()
    off = half + half.T
    return (sparse.diags_array(off.sum(axis=1)) - off).tocsr()


class Dirichlet:
    """Solver of L u = 0 at the free vertices for given values at the fixed ones, factorised once.

    Args:
        laplacian: sparse and symmetric, positive definite on the free vertices, (V, V).
        fixed: vertex numbers, in the order in which their values are given.
    """

    def __init__(self, laplacian, fixed):
        """Factorise the rows and columns of the free vertices."""
        self.fixed = np.asarray(fixed)
        self.free = np.setdiff1d(np.arange(laplacian.shape[0]), self.fixed)
        rows = laplacian[self.free]
        self._coupling = rows[:, self.fixed].tocsr()
        self._own = laplacian[self.fixed][:, self.fixed]
        self._inner = rows[:, self.free].tocsr()
        self._factor = _factor(self._inner) if len(self.free) else None

    def fill(self, values) -> np.ndarray:
        """Return the harmonic function (V,) of real or complex values (fixed,)."""
        result = np.empty(len(self.free) + len(self.fixed), dtype=np.result_type(values, float))
        result[self.fixed] = values
        if self._factor is not None:
            right = -(self._coupling @ np.asarray(values))
            columns = np.stack([right.real, right.imag], axis=1) if np.iscomplexobj(right) else right
            found = self._factor.solve(columns)
            result[self.free] = found[:, 0] + 1j * found[:, 1] if np.iscomplexobj(right) else found
        return result

    @functools.cached_property
    def schur(self) -> np.ndarray:
        """Return dense S (fixed, fixed), with 1/2 u'Su the energy of the harmonic function of fixed values u."""
        if self._factor is None:
            return self._own.toarray()
        last = self._last_block()
        result = self._schur_by_solves(self._factor.solve) if last is None else last
        return 0.5 * (result + result.T)

    def _last_block(self):
        """Return S by elimination of the free vertices, tens of times faster than a solve per fixed vertex.

        None where the factorisation does not keep the fixed vertices last, or nothing is free.
        """
        if self._factor is None:
            return None
        free, fixed = len(self.free), len(self.fixed)
        # L is singular; with an identity on the fixed vertices it is definite, and S + identity is left.
        inner = self._factor.perm_c.argsort()
        coupling = self._coupling[inner]
        whole = sparse.block_array(
            [[self._inner[inner][:, inner], coupling], [coupling.T, self._own + sparse.eye_array(fixed)]]
        )
        factor = _factor(whole, "NATURAL")
        places = factor.perm_c[free:] - free
        if np.any(places < 0) or not np.array_equal(factor.perm_r, factor.perm_c):
            return None
        product = (factor.L.tocsr()[free:, free:] @ factor.U.tocsr()[free:, free:]).toarray()
        return product[np.ix_(places, places)] - np.eye(fixed)

    def _schur_by_solves(self, solve):
        result = self._own.toarray()
        for start in range(0, len(self.fixed), _COLUMNS):
            block = self._coupling[:, start : start + _COLUMNS]
            result[:, start : start + _COLUMNS] -= self._coupling.T @ solve(block.toarray())
        return result


def _factor(matrix, ordering="MMD_AT_PLUS_A"):
    # Definite: no pivoting, and an ordering for symmetric matrices.
    return splu(matrix.tocsc(), permc_spec=ordering, diag_pivot_thresh=0.0, options={"SymmetricMode": True})
