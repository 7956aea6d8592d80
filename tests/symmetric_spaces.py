"""Derivatives of half the squared distance on model spaces, by differences of group elements in NumPy.

The point x_0 moves to e^{P(p)} e^{P(c)} x_0, P(v) the infinitesimal transvection along v: transvections translate in
parallel, so that a derivative in p of derivatives in c is the covariant one. The datum y = e^{t P(u)} x_0 moves to
e^{t P(u)} e^{P(h)} x_0. Nothing of the library is used: what its theorems call q, e, b ... is here a number measured.
"""

import itertools

import numpy as np

# Fourth-order differences at 0: nodes and weights of the first derivative.
STEP = 0.01
NODES = STEP * np.array([-2.0, -1.0, 1.0, 2.0])
WEIGHTS = np.array([1.0, -8.0, 8.0, -1.0]) / (12.0 * STEP)


class ModelSpace:
    """S^m, H^m or CP^m: lines or rays in the vector space of one more dimension; real frame of tangent vectors at x_0.

    Args:
        kind: "sphere", "hyperbolic" or "projective".
        complex_dim: m, the number of coordinates of tangent vectors.
    """

    def __init__(self, kind, m):
        self.kind, self.m = kind, m
        rows = np.eye(m, dtype=complex)
        # u, Ju, e, Je ... on CP^m.
        self.frame = np.array([f * r for r in rows for f in (1.0, 1j)]) if kind == "projective" else rows

    def transvection(self, v):
        """e^{P(v)}, by P^3 = -|v|^2 P (+ on hyperbolic space)."""
        sign = -1.0 if self.kind == "hyperbolic" else 1.0
        p = np.zeros((*v.shape[:-1], self.m + 1, self.m + 1), complex)
        p[..., 1:, 0], p[..., 0, 1:] = v, -sign * v.conj()
        length = np.maximum(np.linalg.norm(v, axis=-1), 1e-150)[..., None, None]
        odd, even = np.sin(length) / length, 2.0 * (np.sin(0.5 * length) / length) ** 2
        if sign < 0:
            odd, even = np.sinh(length) / length, 2.0 * (np.sinh(0.5 * length) / length) ** 2
        return np.eye(self.m + 1) + odd * p + even * (p @ p)

    def half_square(self, x, y):
        """Half the squared distance."""
        if self.kind == "hyperbolic":
            return 0.5 * np.arccosh(2.0 * (x[..., 0] * y[..., 0]).real - np.sum(x * y, axis=-1).real) ** 2
        product = np.sum(x.conj() * y, axis=-1)
        return 0.5 * np.arccos(np.abs(product) if self.kind == "projective" else product.real) ** 2

    def _moved(self, t, second, first, datum):
        """Half the squared distance after all motions, for arrays of vectors (..., m)."""
        start = np.eye(self.m + 1)[0]
        x = (self.transvection(second) @ (self.transvection(first) @ start)[..., None])[..., 0]
        y = (self.transvection(t * self.frame[0]) @ (self.transvection(datum) @ start)[..., None])[..., 0]
        return self.half_square(x, y)

    def _difference(self, t, places, directions):
        """Derivative in several scalars; scalar i multiplies a frame vector in the motion ``places[i]``."""
        count = len(directions)
        grid = np.stack(np.meshgrid(*[NODES] * count, indexing="ij"), -1)
        weights = np.prod(np.stack(np.meshgrid(*[WEIGHTS] * count, indexing="ij"), -1), axis=-1)
        motions = {place: np.zeros((*grid.shape[:-1], self.m), complex) for place in ("second", "first", "datum")}
        for i, (place, direction) in enumerate(zip(places, directions, strict=True)):
            motions[place] = motions[place] + grid[..., i, None] * self.frame[direction]
        return float(np.sum(weights * self._moved(t, **motions)))

    def hessian(self, t, j, k):
        """Of half the squared distance to y, at x_0, in frame vectors j and k."""
        return self._difference(t, ("second", "first"), (j, k))

    def field(self, t, k, h):
        """<w, e_k> for w = D log_x(y)[e_h]."""
        return -self._difference(t, ("first", "datum"), (k, h))

    def hessian_change(self, t, i, j, k):
        """(nabla_i Hess)(j, k)."""
        return self._difference(t, ("second", "first", "first"), (i, j, k))

    def field_change(self, t, i, j, h):
        """<nabla_i w, e_j> for w = D log_x(y)[e_h]."""
        return -self._difference(t, ("first", "first", "datum"), (i, j, h))

    def tensor(self, entry, t, dim):
        """All entries of a third derivative in the first ``dim`` frame vectors."""
        places = itertools.product(range(dim), repeat=3)
        return np.array([entry(t, *place) for place in places]).reshape(dim, dim, dim)
