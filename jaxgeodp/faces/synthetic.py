"""Synthetic faces: registered surfaces without personal data, in any number.

A disk of hexagonal rings is stretched onto the outline of a face and carries a height field, in millimetres: an
ellipsoid plus named smooth features (nose, sockets, lips ...). A face is linear in independent standard normal
coefficients,

    vertices = template + sum_k c_k mode_k:

features vary in height by about a tenth, neighbouring ones together; the parts of the face move in the plane (width of
the mouth, length of the nose ...); and a smooth random field is added. Vertex v means the same place of every face.
"""

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.checks import InputError, positive_integer

# Outline, with the nose tip at the origin, y up and z towards the viewer.
_TOP, _BOTTOM, _HALF_WIDTH = 96.0, -74.0, 67.0
_EXPONENT = 2.25
_NASION = 42.0
# Share of the variation that neighbouring features have in common, and the distance of neighbours.
_SHARED, _NEIGHBOURHOOD = 0.7, 30.0
_FIELD_DEGREE = 4


class _Bump(NamedTuple):
    """A Gaussian bump, mirrored if it is off the midline."""

    name: str
    x: float
    y: float
    width: float
    height: float
    amplitude: float
    tilt: float = 0.0  #: of its axes, in degrees, on the side x > 0


_BUMPS = (
    _Bump("nose tip", 0, -1.0, 6.5, 6.5, 6.0),
    _Bump("alae", 13.0, -3.2, 3.8, 4.4, 9.0),
    _Bump("alar grooves", 19.5, -2.0, 3.0, 6.0, -2.0),
    _Bump("nostrils", 6.5, -9.0, 2.8, 2.2, -3.0),
    _Bump("nasal root", 0, 43.0, 9.0, 7.0, -2.0),
    _Bump("sockets", 31.0, 39.5, 14.0, 9.5, -8.0),
    _Bump("eyeballs", 31.0, 37.5, 9.5, 6.5, 7.0),
    _Bump("inner corners", 15.0, 38.5, 5.0, 6.0, -5.0),
    _Bump("outer corners", 44.0, 38.0, 4.0, 4.0, -1.5),
    _Bump("lower lids", 31.0, 26.5, 11.0, 3.0, -1.0),
    _Bump("brow heads", 17.0, 53.0, 10.0, 5.0, 2.0),
    _Bump("brow arches", 36.0, 56.0, 13.0, 6.0, 3.0, -10.0),
    _Bump("glabella", 0, 54.0, 10.0, 8.0, 2.0),
    _Bump("forehead", 0, 78.0, 34.0, 16.0, 3.0),
    _Bump("frontal eminences", 24.0, 76.0, 14.0, 11.0, 1.5),
    _Bump("temples", 60.0, 58.0, 9.0, 16.0, -4.0),
    _Bump("cheekbones", 45.0, 14.0, 15.0, 9.0, 6.0, 25.0),
    _Bump("cheeks", 35.0, -4.0, 13.0, 13.0, 4.0),
    _Bump("cheek hollows", 47.0, -24.0, 11.0, 15.0, -2.5),
    _Bump("muzzle", 0, -24.0, 21.0, 15.0, 6.0),
    _Bump("philtrum", 0, -15.0, 2.0, 3.5, -1.6),
    _Bump("philtral ridges", 4.2, -15.5, 1.6, 4.0, 0.8),
    _Bump("mouth corners", 25.0, -26.0, 3.5, 3.0, -2.5),
    _Bump("mentolabial fold", 0, -39.5, 13.0, 4.5, -3.0),
    _Bump("chin", 0, -55.0, 12.0, 9.0, 7.0),
    _Bump("chin sides", 20.0, -52.0, 8.0, 8.0, -1.5),
    _Bump("jaw", 44.0, -42.0, 11.0, 13.0, 3.5, 40.0),
)


@functools.partial(jax.tree_util.register_dataclass, data_fields=[], meta_fields=["rings", "variation"])
@dataclasses.dataclass(frozen=True, eq=False)
class SyntheticFaces:
    """Generator of synthetic faces with corresponding vertices, in millimetres.

    Args:
        rings: of the disk mesh around the nose tip, at least 8; there are 1 + 3 rings (rings + 1) vertices.
        variation: scale of the differences between faces, from 0 to 2; 0 gives the template only.

    Raises:
        ValueError: a parameter is out of range.

    Example:
        >>> import jax
        >>> from jaxgeodp.surfaces import SyntheticFaces
        >>> faces = SyntheticFaces(rings=12)
        >>> faces.records(jax.random.key(0), 5).shape, faces.triangles.shape
        ((5, 469, 3), (864, 3))
    """

    rings: int = 48
    variation: float = 1.0

    def __post_init__(self):
        positive_integer("SyntheticFaces", "rings", self.rings, 8)
        if not (isinstance(self.variation, int | float) and 0 <= self.variation <= 2):
            raise InputError(f"SyntheticFaces: variation must be a number in [0, 2], got {self.variation!r}.")

    @property
    def triangles(self) -> np.ndarray:
        """Triangles (F, 3) shared by all faces, anticlockwise as seen from the front."""
        return _disk(self.rings)[1].copy()

    @property
    def template(self) -> np.ndarray:
        """The public face of zero coefficients, (V, 3)."""
        return _model(self.rings).template.copy()

    @property
    def nose_tip(self) -> int:
        """Vertex number of the nose tip, the first landmark."""
        return 0

    @property
    def nasion(self) -> int:
        """Vertex number of the nasion, the root of the nose; the second landmark, which fixes "up"."""
        return _nasion(self.rings)

    @property
    def size(self) -> int:
        """Number of coefficients of a face."""
        return len(_model(self.rings).modes)

    def face(self, coefficients):
        """Return the face (V, 3) of coefficients (size,), which are standard normal for typical faces."""
        coefficients = jnp.asarray(coefficients)
        if coefficients.shape != (self.size,):
            raise InputError(
                f"SyntheticFaces: a face needs {self.size} coefficients, got an array of shape {coefficients.shape}."
            )
        model = _model(self.rings)
        return jnp.asarray(model.template) + self.variation * jnp.tensordot(coefficients, jnp.asarray(model.modes), 1)

    def records(self, key, count: int):
        """Return the first ``count`` faces of the data set with this key, (count, V, 3).

        Args:
            key: JAX random key.
            count: how many.
        """
        normals = jax.random.normal(key, (count, self.size))
        # Tails are cut: no face tears or folds.
        return jax.lax.map(self.face, 2.0 * jnp.tanh(normals / 2.0))


def synthetic_face(key, rings: int = 48, variation: float = 1.0):
    """Draw one face (V, 3); see `SyntheticFaces`.

    Args:
        key: JAX random key.
        rings, variation: of `SyntheticFaces`.
    """
    return SyntheticFaces(rings, variation).records(key, 1)[0]


# The model ----------------------------------------------------------------------------------------------------


class _Model(NamedTuple):
    template: np.ndarray  #: (V, 3)
    modes: np.ndarray  #: (K, V, 3)


@functools.lru_cache(maxsize=8)
def _model(rings) -> _Model:
    x, y = _plane(rings)
    ellipsoid = _ellipsoid(x, y)
    names, heights, places = zip(*_features(x, y), strict=True)
    heights, places = np.stack(heights), np.array(places)
    template = np.stack([x, y, ellipsoid + heights.sum(axis=0)], axis=1)
    template[:, 2] -= template[0, 2]

    distance = np.linalg.norm(places[:, None] - places[None, :], axis=-1)
    correlation = _SHARED * np.exp(-0.5 * (distance / _NEIGHBOURHOOD) ** 2) + (1.0 - _SHARED) * np.eye(len(names))
    vertical = [0.1 * np.linalg.cholesky(correlation).T @ heights, 0.05 * ellipsoid[None], 0.8 * _field(x, y)]
    vertical = np.concatenate(vertical)
    modes = [np.stack([np.zeros_like(vertical), np.zeros_like(vertical), vertical], axis=-1)]
    moves = np.stack([np.stack([*move, np.zeros_like(x)], axis=-1) for move in _moves(x, y)])
    size = 0.03 * template[None]
    return _Model(template, np.concatenate([*modes, moves, size]))


def _plane(rings):
    """Return the x and y coordinates of the vertices, (V,) each."""
    disk, _ = _disk(rings)
    radius, angle = np.abs(disk), np.angle(disk)
    reach = radius * _outline(angle)
    return reach * np.cos(angle), reach * np.sin(angle)


def _outline(angle):
    """Return the distance from nose tip to outline by angle: a superellipse, narrower towards the chin."""
    cosine, sine = np.cos(angle), np.sin(angle)

    def excess(reach):
        x, y = reach * cosine, reach * sine - (_TOP + _BOTTOM) / 2.0
        narrow = 1.0 - 0.20 * _step((-20.0 - y) / 22.0)
        return np.abs(x / (_HALF_WIDTH * narrow)) ** _EXPONENT + np.abs(2.0 * y / (_TOP - _BOTTOM)) ** _EXPONENT - 1.0

    low, high = np.zeros_like(angle), np.full_like(angle, 200.0)
    for _ in range(60):
        middle = 0.5 * (low + high)
        inside = excess(middle) < 0
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return low


def _ellipsoid(x, y):
    rest = 1.0 - (x / 78.0) ** 2 - ((y - 14.0) / 118.0) ** 2
    return 74.0 * np.sqrt(np.maximum(rest, 0.02))


def _features(x, y):
    """Yield name, height (V,) and place (2,) of each facial feature, with left and right separate."""
    for bump in _BUMPS:
        yield bump.name, _bump(bump, x, y), (bump.x, bump.y)
        if bump.x != 0:
            yield f"{bump.name}, other side", _bump(bump, -x, y), (-bump.x, bump.y)
    # The ridge rises from the root to the tip and ends softly above the lip.
    rise = 6.0 + 13.0 * _smoothstep((45.0 - y) / 45.0)
    width = 5.2 + 1.3 * _smoothstep((35.0 - y) / 35.0)
    ridge = (
        rise
        * _step((46.0 - y) / 3.5)
        * _step((y + 8.0 - 0.020 * x**2) / 2.4)
        * np.exp(-0.5 * (np.abs(x) / width) ** 2.2)
    )
    yield "nose ridge", ridge, (0.0, 15.0)
    half = np.abs(x)
    reach = _step((22.5 - half) / 2.5)
    # The line between the lips dips in the middle of the upper lip and at the corners.
    line = -25.0 + 0.8 * np.exp(-0.5 * ((half - 7.0) / 5.0) ** 2) - 0.0012 * half**2
    upper = line + 5.2 + 1.3 * np.exp(-0.5 * ((half - 5.0) / 3.0) ** 2) - 4.2 * (half / 25.0) ** 2
    full = np.sqrt(np.maximum(1.0 - (half / 27.0) ** 2, 0.0))
    yield "upper lip", 3.4 * reach * full * np.exp(-0.5 * ((y - 0.45 * line - 0.55 * upper) / 2.6) ** 2), (0.0, -21.0)
    lower = line - 6.0 + 2.0 * (half / 25.0) ** 2
    yield "lower lip", 3.6 * reach * full * np.exp(-0.5 * ((y - lower) / 3.4) ** 2), (0.0, -31.0)
    yield "mouth line", -3.0 * reach * np.exp(-0.5 * ((y - line) / 1.5) ** 2), (0.0, -25.0)
    lid = 38.0 + 5.2 * np.sqrt(np.maximum(1.0 - ((half - 31.0) / 17.0) ** 2, 0.0))
    along = np.exp(-(((half - 31.0) / 13.0) ** 4))
    yield "lid creases", -2.2 * along * np.exp(-0.5 * ((y - lid - 2.0) / 1.6) ** 2), (0.0, 45.0)
    slit = 33.0 + 0.014 * (half - 31.0) ** 2
    yield "lid slits", -2.4 * np.exp(-(((half - 31.0) / 11.5) ** 4) - 0.5 * ((y - slit) / 1.3) ** 2), (0.0, 37.0)
    # From the wings of the nose to the sides of the mouth.
    fold = 21.5 + 0.42 * (-4.0 - y)
    along = _step((-2.0 - y) / 3.0) * _step((y + 30.0) / 4.0)
    yield "nasolabial folds", -1.1 * along * np.exp(-0.5 * ((half - fold) / 2.8) ** 2), (0.0, -15.0)


def _bump(bump, x, y):
    angle = np.deg2rad(bump.tilt)
    along = (x - bump.x) * np.cos(angle) + (y - bump.y) * np.sin(angle)
    across = (y - bump.y) * np.cos(angle) - (x - bump.x) * np.sin(angle)
    return bump.amplitude * np.exp(-0.5 * ((along / bump.width) ** 2 + (across / bump.height) ** 2))


def _moves(x, y):
    """Yield in-plane displacements (dx, dy) per unit coefficient; none moves the nose tip."""
    none = np.zeros_like(x)
    half = np.abs(x)

    def around(across, up, width, height):
        return np.exp(-0.5 * (((half - across) / width) ** 2 + ((y - up) / height) ** 2))

    yield 0.035 * x, none
    yield none, 0.035 * y
    yield 0.06 * x * _step((-20.0 - y) / 15.0), none  # width of the jaw
    yield 0.04 * x * _step((y - 45.0) / 15.0), none  # width of the forehead
    yield 0.10 * x * around(0, -3.0, 16.0, 10.0), none  # width of the nose
    yield 0.08 * x * around(0, -25.0, 26.0, 9.0), none  # width of the mouth
    yield 0.06 * x * around(31.0, 38.0, 14.0, 12.0), none  # distance of the eyes
    yield none, 0.9 * around(31.0, 38.0, 16.0, 10.0)  # height of the eyes
    yield none, 2.0 * _step((y - 18.0) / 8.0)  # length of the nose
    yield none, 1.4 * around(0, -25.0, 30.0, 11.0)  # height of the mouth
    yield none, -2.5 * _step((-42.0 - y) / 6.0)  # length of the chin
    yield 0.8 * np.exp(-0.5 * ((x / 40.0) ** 2 + ((y + 55.0) / 20.0) ** 2)), none  # the chin is off the middle


def _field(x, y):
    """Return smooth random-field modes (terms, V): products of cosines, damped with frequency."""
    across, up = (x + _HALF_WIDTH) / (2.0 * _HALF_WIDTH), (y - _BOTTOM) / (_TOP - _BOTTOM)
    terms = [
        np.exp(-0.5 * ((i**2 + j**2) / 2.0**2)) * np.cos(np.pi * i * across) * np.cos(np.pi * j * up)
        for i in range(_FIELD_DEGREE + 1)
        for j in range(_FIELD_DEGREE + 1)
        if 0 < i + j <= _FIELD_DEGREE
    ]
    return 2.0 * np.stack(terms)


def _step(t):
    return 0.5 * (1.0 + np.tanh(t))


def _smoothstep(t):
    t = np.clip(t, 0.0, 1.0)
    return t * t * (3.0 - 2.0 * t)


# The disk mesh ------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=8)
def _disk(rings):
    """Return vertices (V,), complex, of hexagonal rings in the unit disk, and triangles (F, 3), anticlockwise."""
    places = [np.zeros(1, complex)]
    for k in range(1, rings + 1):
        places.append(k / rings * np.exp(2j * np.pi * np.arange(6 * k) / (6 * k)))

    def ring(k, i):
        return 1 + 3 * k * (k - 1) + i % (6 * k) if k > 0 else 0 * i

    triangles = []
    for k in range(1, rings + 1):
        for side in range(6):
            i = np.arange(k)
            inner, outer = ring(k - 1, side * (k - 1) + i), ring(k, side * k + i)
            following = ring(k, side * k + i + 1)
            triangles.append(np.stack([inner, outer, following], axis=1))
            after = ring(k - 1, side * (k - 1) + i[:-1] + 1)
            triangles.append(np.stack([inner[:-1], following[:-1], after], axis=1))
    return np.concatenate(places), np.concatenate(triangles).astype(np.int64)


def _nasion(rings):
    """Return the vertex straight above the nose tip on the ring nearest to the root of the nose."""
    k = 2 * max(1, round(_NASION / _TOP * rings / 2.0))
    return 1 + 3 * k * (k - 1) + 3 * k // 2
