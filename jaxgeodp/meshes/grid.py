"""A surface on polar coordinates of the disk, and its radial curves: f(r, t) = surface at z = r exp(i t).

A mesh whose vertices have places z in the unit disk is a piecewise linear function on the disk. `DiskLocator` finds the
triangle of any point through a grid of buckets; a point between the polygonal rim and the circle belongs to the rim at
its angle. A flipped triangle covers its surroundings three times: those that keep their orientation count.

Polar grids have cell-centred radii r_i = (i + 1/2)/R and angles t_j = 2 pi j/T, and continue through the centre by
f(-r, t) = f(r, t + pi). Radial curves lie at r_j = j/J, j = 1..J (Soto, "Gaussian Differentially Private Human Faces",
2024, section 3).
"""

import math

import numpy as np
from scipy.interpolate import CubicSpline

from jaxgeodp.checks import InputError, positive_integer

#: Rows of a known surface inside its first curve, the centre among them.
INNER_ROWS = 6
# How far the rim may be from the unit circle, and how far outside a triangle still counts as inside.
_RIM_TOLERANCE, _INSIDE = 1e-3, 1e-10


class DiskLocator:
    """Point location in a triangulation of the unit disk, reusable for any function on it.

    Args:
        faces: (F, 3) indices of vertices.
        z: places of the vertices in the unit disk, complex (V,); those of the rim on the circle.

    Raises:
        ValueError: shapes do not fit, places are not finite, or the rim is not the unit circle.
    """

    def __init__(self, faces, z):
        """Check the arguments and fill the buckets."""
        self.faces, self.z = _checked(faces, z)
        self._corners = self.z[self.faces]
        self._doubled = _cross(
            self._corners[:, 1] - self._corners[:, 0], self._corners[:, 2] - self._corners[:, 0]
        )  # twice the signed areas
        # The winding of most triangles counts as upright, whatever the order of their corners is.
        self._doubled_sign = 1.0 if np.sum(self._doubled) > 0 else -1.0
        self._rim = self._ordered_rim()
        self._build_buckets()

    def sample(self, values, points):
        """Interpolate vertex values (V, ...) at complex points (...) of the disk, linearly in each triangle."""
        values, points = np.asarray(values, float), np.asarray(points, complex)
        if values.shape[:1] != self.z.shape:
            raise InputError(f"DiskLocator: values must have one row for each of {len(self.z)} vertices.")
        vertices, weights = self.locate(points.reshape(-1))
        found = np.einsum("nk,nk...->n...", weights, values[vertices])
        return found.reshape(points.shape + values.shape[1:])

    def locate(self, points):
        """Return the triangle's vertices (N, 3) around each of N complex points, and barycentric weights (N, 3)."""
        points = np.asarray(points, complex)
        if not np.all(np.isfinite(points)):
            raise InputError("DiskLocator: points must be finite.")
        vertices, weights, inside = self._by_buckets(points)
        outside = ~inside & ~self._within_rim(points)
        # Inside the rim but in no triangle, by rounding at a sliver: the nearest one, clipped.
        clipped = np.maximum(weights, 0.0)
        weights = np.where(inside[:, None], weights, clipped / np.maximum(clipped.sum(axis=1), 1e-300)[:, None])
        vertices[outside], weights[outside] = self.locate_rim(np.angle(points[outside]))
        return vertices, weights

    def locate_rim(self, angles):
        """Locate points of the circle, as `locate`, between the two rim vertices around their angle."""
        after = np.searchsorted(self._rim_angles, np.mod(angles, 2.0 * math.pi), side="right")
        low, high = self._rim_angles[after - 1], self._rim_angles[after % len(self._rim)]
        share = np.mod(np.asarray(angles) - low, 2.0 * math.pi) / np.maximum(np.mod(high - low, 2.0 * math.pi), 1e-300)
        first, second = self._rim[after - 1], self._rim[after % len(self._rim)]
        return np.stack([first, second, second], axis=-1), np.stack([1.0 - share, share, 0.0 * share], axis=-1)

    def _ordered_rim(self):
        """Return the boundary vertices in the order of their angles."""
        edges = np.sort(np.concatenate([self.faces[:, [0, 1]], self.faces[:, [1, 2]], self.faces[:, [2, 0]]]), axis=1)
        edges, counts = np.unique(edges, axis=0, return_counts=True)
        rim = np.unique(edges[counts == 1])
        if len(rim) < 3 or np.max(np.abs(np.abs(self.z[rim]) - 1.0)) > _RIM_TOLERANCE:
            raise InputError("DiskLocator: the boundary of the mesh must lie on the unit circle.")
        angles = np.mod(np.angle(self.z[rim]), 2.0 * math.pi)
        order = np.argsort(angles)
        self._rim_angles = angles[order]
        return rim[order]

    def _within_rim(self, points):
        """Return whether points lie inside the polygon of the rim."""
        vertices, _ = self.locate_rim(np.angle(points))
        a, b = self.z[vertices[:, 0]], self.z[vertices[:, 1]]
        return _cross(b - a, points - a) >= 0

    def _build_buckets(self):
        """List for each cell of a square grid the triangles whose bounding boxes meet it."""
        self._side = max(1, int(math.sqrt(len(self.faces))))
        x, y = np.real(self._corners), np.imag(self._corners)
        lower = self._cells(x.min(axis=1)), self._cells(y.min(axis=1))
        upper = self._cells(x.max(axis=1)), self._cells(y.max(axis=1))
        across, up = upper[0] - lower[0] + 1, upper[1] - lower[1] + 1
        owner = np.repeat(np.arange(len(self.faces)), across * up)
        number = _count_within(across * up)
        column = lower[0][owner] + number % across[owner]
        row = lower[1][owner] + number // across[owner]
        cell = row * self._side + column
        order = np.argsort(cell, kind="stable")
        self._members = owner[order]
        self._starts = np.searchsorted(cell[order], np.arange(self._side**2 + 1))

    def _cells(self, coordinates):
        return np.clip(((coordinates + 1.0) * 0.5 * self._side).astype(int), 0, self._side - 1)

    def _by_buckets(self, points):
        """Return the best triangle in each point's bucket, and whether it contains the point."""
        cell = self._cells(points.imag) * self._side + self._cells(points.real)
        counts = self._starts[cell + 1] - self._starts[cell]
        point = np.repeat(np.arange(len(points)), counts)
        triangle = self._members[self._starts[cell][point] + _count_within(counts)]
        a, b, c = self._corners[triangle].T
        area = self._doubled[triangle]
        with np.errstate(divide="ignore", invalid="ignore"):
            second = _cross(points[point] - a, c - a) / area
            third = _cross(b - a, points[point] - a) / area
        weights = np.stack([1.0 - second - third, second, third], axis=1)
        depth = np.min(weights, axis=1)
        depth = np.where(np.isfinite(depth), depth, -np.inf)
        inside = depth >= -_INSIDE
        upright = area * self._doubled_sign > 0
        # Upright triangles that contain the point, then flipped ones, then the nearest in barycentric terms.
        usable = np.isfinite(depth)
        near = np.where(usable, depth, 0.0)
        rank = np.where(inside, 2.0 + upright, np.where(usable, near / (1.0 + np.abs(near)), -2.0))
        order = np.lexsort((rank, point))
        last = np.cumsum(counts) - 1
        found = np.zeros(len(points), int)
        chosen = np.zeros((len(points), 3))
        chosen[:, 0] = 1.0
        within = np.zeros(len(points), bool)
        any_member = counts > 0
        best = order[last[any_member]]
        rows = np.flatnonzero(any_member)[usable[best]]
        best = best[usable[best]]
        found[rows], chosen[rows], within[rows] = triangle[best], weights[best], inside[best]
        return self.faces[found].copy(), chosen, within


def polar_grid(vertices, faces, z, radii: int = 24, angles: int = 80):
    """Sample the surface on a polar grid (R, T, 3), at radii (i + 1/2)/R and angles 2 pi j/T.

    Args:
        vertices: (V, 3), or values of any shape (V, ...), of which the grid is (R, T, ...).
        faces: (F, 3).
        z: places of the vertices in the unit disk, complex (V,); those of the boundary on the circle.
        radii: R, at least 4.
        angles: T, at least 8 and even, so that the grid continues through the centre.

    Raises:
        ValueError: a parameter is out of range, shapes do not fit, or the boundary is not on the unit circle.
    """
    return DiskLocator(faces, z).sample(vertices, polar_points(radii, angles))


def radial_curves(vertices, faces, z, curves: int = 23, samples: int = 80):
    """Return closed curves (J, m, 3) around the centre at radii j/J, j = 1..J; the last is the boundary.

    Args:
        vertices: (V, 3).
        faces: (F, 3).
        z: places of the vertices in the unit disk, complex (V,); those of the boundary on the circle.
        curves: J, at least 1.
        samples: m, at least 3, equispaced in the angle from 0; the first is not repeated.

    Raises:
        ValueError: a parameter is out of range, shapes do not fit, or the boundary is not on the unit circle.
    """
    return DiskLocator(faces, z).sample(vertices, curve_points(curves, samples))


def polar_points(radii: int = 24, angles: int = 80):
    """Return the nodes of the polar grid in the disk, complex (R, T)."""
    positive_integer("polar_points", "radii", radii, 4)
    positive_integer("polar_points", "angles", angles, 8)
    if angles % 2:
        raise InputError(f"polar_points: angles must be even, so that every angle has an opposite one, got {angles}.")
    return ((np.arange(radii) + 0.5) / radii)[:, None] * np.exp(2j * np.pi * np.arange(angles) / angles)


def curve_points(curves: int = 23, samples: int = 80):
    """Return the sample points of the radial curves in the disk, complex (J, m)."""
    positive_integer("curve_points", "curves", curves, 1)
    positive_integer("curve_points", "samples", samples, 3)
    return (np.arange(1, curves + 1) / curves)[:, None] * np.exp(2j * np.pi * np.arange(samples) / samples)


def inner_points(curves: int = 23, samples: int = 80):
    """Return points inside the first radial curve, at k/K of its radius, k < K = `INNER_ROWS`, complex (K, m)."""
    return np.arange(INNER_ROWS)[:, None] / INNER_ROWS * curve_points(curves, samples)[0]


def mesh_of_curves(curves, refine: int, inside: int | None = None):
    """Return vertices (V, 3) and faces (F, 3) through radial curves (J, m, 3), J >= 2; vertex 0 is the centre.

    Args:
        curves: as `radial_curves` gives them.
        refine: how many times finer the mesh is.
        inside: how many rows fill the first curve, by a spline; ``refine`` by default.

    Raises:
        ValueError: shapes do not fit, or values are not finite.
    """
    curves = _polar_array("a mesh of curves", curves)
    return _spline_mesh(curves, np.arange(1, len(curves) + 1) / len(curves), refine, inside)


def inner_vertices(inner, samples: int, refine: int):
    """Return the first vertices (N, 3) of `mesh_of_curves` with `INNER_ROWS` inside, from a known surface (K, m, 3).

    Args:
        inner: at `inner_points`.
        samples: of the curves.
        refine: of the mesh.
    """
    inner = _resampled(inner, _even(refine * samples))
    return np.concatenate([inner[0, :1], inner[1:].reshape(-1, 3)])


def surface_from_grid(grid, refine: int = 1):
    """Return vertices (V, 3) and faces (F, 3) through a polar grid (R, T, 3); vertex 0 is the centre.

    Args:
        grid: as `polar_grid` gives it.
        refine: how many times finer the mesh is.

    Raises:
        ValueError: the shape is wrong, or values are not finite.
    """
    grid = _polar_array("surface_from_grid", grid)
    return _spline_mesh(grid, (np.arange(len(grid)) + 0.5) / len(grid), refine)


def _spline_mesh(rows, radii, refine, inside=None):
    """Fit cubic splines around the curves, then along the diameters, filling the centre with rows."""
    positive_integer("a mesh of curves", "refine", refine, 1)
    angles = _even(refine * rows.shape[1])
    rows = _resampled(rows, angles)
    half = angles // 2
    diameters = np.concatenate([rows[::-1, half:], rows[:, :half]])
    nodes = np.append(-radii[::-1], radii)
    centre = CubicSpline(nodes, diameters)(0.0).mean(axis=0)
    # All diameters must meet there, or they would make wrinkles.
    middle = len(radii)
    along = CubicSpline(np.insert(nodes, middle, 0.0), np.insert(diameters, middle, centre, axis=0))
    steps = np.arange(1, refine + 1) / refine
    inner = steps if inside is None else np.arange(1, inside + 1) / inside
    between = radii[:-1, None] + steps * np.diff(radii)[:, None]
    fine = np.concatenate([radii[0] * inner, between.reshape(-1)])
    rows = np.concatenate([along(fine), along(-fine)], axis=1)
    return np.concatenate([centre[None], rows.reshape(-1, 3)]), polar_faces(len(fine), angles)


def _even(number):
    return 2 * math.ceil(number / 2)


def _resampled(rows, angles):
    """Resample closed curves (J, m, 3) at equispaced angles, (J, angles, 3)."""
    turn = np.arange(rows.shape[1] + 1) / rows.shape[1]
    around = CubicSpline(turn, np.append(rows, rows[:, :1], 1), axis=1, bc_type="periodic")
    return around(np.arange(angles) / angles)


def polar_faces(rows: int, angles: int):
    """Return anticlockwise triangles (F, 3) of a centre, vertex 0, and rows of vertices around it."""
    j = np.arange(angles)
    following = (j + 1) % angles
    triangles = [np.stack([np.zeros(angles, int), 1 + j, 1 + following], axis=1)]
    for i in range(rows - 1):
        inner, outer = 1 + i * angles, 1 + (i + 1) * angles
        corners = inner + j, outer + j, outer + following, inner + following
        # Diagonals mirror each other left and right, so that a symmetric surface looks symmetric.
        right = np.cos(2.0 * np.pi * (j + 0.5) / angles)[:, None] > 0
        for one, other in (((0, 1, 2), (1, 2, 3)), ((0, 2, 3), (1, 3, 0))):
            pair = (np.stack([corners[k] for k in chosen], axis=1) for chosen in (one, other))
            triangles.append(np.where(right, *pair))
    return np.concatenate(triangles)


def _polar_array(owner, rows):
    rows = np.asarray(rows, float)
    if rows.ndim != 3 or rows.shape[2] != 3 or len(rows) < 2 or not np.all(np.isfinite(rows)):
        raise InputError(f"{owner}: needs finite values of shape (rows, angles, 3), got {rows.shape}.")
    return rows


def _checked(faces, z):
    faces, z = np.asarray(faces), np.asarray(z, complex)
    if faces.ndim != 2 or faces.shape[1] != 3 or faces.dtype.kind not in "iu" or len(faces) == 0:
        raise InputError(f"DiskLocator: faces must be integers of shape (F, 3), got {faces.shape}.")
    if z.ndim != 1 or not np.all(np.isfinite(z)):
        raise InputError(f"DiskLocator: z must be finite complex numbers of shape (V,), got {z.shape}.")
    if faces.min() < 0 or faces.max() >= len(z):
        raise InputError(f"DiskLocator: faces must refer to the {len(z)} vertices of z, numbered from 0.")
    return faces, z


def _cross(a, b):
    return a.real * b.imag - a.imag * b.real


def _count_within(counts):
    """Return 0, 1, ..., counts[0]-1, 0, 1, ..., counts[1]-1, ..."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
