"""Demonstration data on two manifolds, made from the handwritten digits inside scikit-learn.

Source: ``sklearn.datasets.load_digits``, the test part of "Optical Recognition of Handwritten Digits"
(Alpaydin & Kaynak 1998, UCI Machine Learning Repository, CC BY 4.0): 1797 images of 8 x 8 pixels. Each
image becomes

* an *outline*, equispaced landmarks on the outer contour, a point of Kendall's planar shape space, or
* a *region covariance*, the 5 x 5 covariance of per-pixel features (Tuzel, Porikli & Meer 2006), a point
  of the manifold of symmetric positive definite matrices.

Privacy rule: each row is a function of one image alone. Nothing is fitted to the data set: there is no
mean, quantile or reference record, and every constant below is public. The start point of an outline is
registered to a *public* template, a digit drawn in a font that ships with Matplotlib. Every record yields
exactly one row; an image without a contour yields a row of NaN, so that the number of rows says nothing
about the images. The template is also the natural public centre of a ball that should hold the records.

The constants were chosen once, by eye and by the spread of shapes, on these published images. With
private data they must be chosen without looking at them.
"""

from __future__ import annotations

import importlib.util
from functools import lru_cache
from pathlib import Path
from typing import cast

import numpy as np

from jaxgeodp.checks import InputError

SIDE = 8  # pixels along each side of an image
PADDING = 2  # empty pixels around an image: strokes reach the border, and contours must close
UPSAMPLING = 8  # fine cells per pixel
SMOOTHING = 0.5  # standard deviation of the Gaussian filter, in pixels: bridges gaps in thin strokes
LEVEL = 0.2  # intensity of the iso-contour: below one half, because smoothing flattens thin strokes
START_SLOPE = 3.0  # how much height off the centroid costs, against reach to the right, in the start rule
REGISTRATION_POINTS = 512  # resolution of the search for the start point along a contour

TEMPLATE_FONT = "DejaVuSans-Bold.ttf"  # its strokes are about as wide as the pen in the 8 x 8 images
TEMPLATE_WIDTH = 0.7  # horizontal scale of the glyph: handwritten digits are narrower than bold print
TEMPLATE_SUBPIXELS = 8  # samples per pixel and axis in the area average

RIDGE = 0.01  # public ridge on region covariances: even an empty image gets a positive definite matrix


def digit_images(digit: int) -> np.ndarray:
    """Return all images of one digit.

    Args:
        digit: an integer in 0..9.

    Returns:
        Array (n, 8, 8) of float64 in [0, 1], where 1 is full ink; n is between 174 and 183.

    Raises:
        ValueError: if ``digit`` is not an integer in 0..9.
    """
    _check_digit(digit)
    images, labels = digits_table()
    return images[labels == digit]


def outline(image: np.ndarray, landmarks: int, reference: np.ndarray | None = None) -> np.ndarray:
    """Return landmarks on the outer contour of one image, counter-clockwise and equispaced along it.

    The image is padded, upsampled by cubic splines and smoothed; the outline is its longest contour at
    a fixed level. The coordinates are those of the image square [-1, 1]^2 with y upwards.

    Args:
        image: array (8, 8) with values in [0, 1].
        landmarks: number of points, at least 3.
        reference: optional public closed outline (m, 2), m >= 3, equispaced and counter-clockwise. With
            it, the first landmark is where the outline corresponds best to the first reference point: the
            cyclic shift with the smallest Kendall shape distance, among those whose best rotation onto
            the reference is below a quarter turn. Without it, the first landmark is the contour point
            that lies farthest to the right near the height of the centroid.

    Returns:
        Array (landmarks, 2) of float64; all NaN if the image has no contour or a non-finite pixel.

    Raises:
        ValueError: if ``landmarks`` is not an integer >= 3, or an array has the wrong shape.
    """
    _check_landmarks(landmarks)
    contour = _outer_contour(_as_image(image))
    if contour is None:
        return np.full((landmarks, 2), np.nan)
    offset = 0.0 if reference is None else _registered_start(contour, reference)
    return _equispaced(contour, landmarks, offset)


def digit_outlines(digit: int, landmarks: int) -> np.ndarray:
    """Return the outlines of all images of one digit, each registered to the public template.

    Args:
        digit: an integer in 0..9.
        landmarks: number of points on each outline, at least 3.

    Returns:
        Array (n, landmarks, 2) of float64; row i is
        ``outline(digit_images(digit)[i], landmarks, template_outline(digit, REGISTRATION_POINTS))``.

    Raises:
        ValueError: if ``digit`` is not an integer in 0..9 or ``landmarks`` is not an integer >= 3.
    """
    reference = template_outline(digit, REGISTRATION_POINTS)
    return np.stack([outline(image, landmarks, reference) for image in digit_images(digit)])


def template_outline(digit: int, landmarks: int) -> np.ndarray:
    """Return the outline (landmarks, 2) of the public template of one digit, independent of any data.

    Raises:
        ValueError: if ``digit`` is not an integer in 0..9 or ``landmarks`` is not an integer >= 3.
    """
    return outline(template_image(digit), landmarks)


def region_covariance(image: np.ndarray) -> np.ndarray:
    """Return the region covariance descriptor of one image (Tuzel, Porikli & Meer 2006).

    It is the covariance, over the 64 pixels, of the features x, y (both in [-1, 1], y upwards),
    intensity, |horizontal derivative| and |vertical derivative| (per pixel), plus ``RIDGE`` times the
    identity.

    Args:
        image: array (8, 8) with values in [0, 1].

    Returns:
        Symmetric positive definite array (5, 5) of float64; all NaN if a pixel is not finite.

    Raises:
        ValueError: if the image has the wrong shape.
    """
    pixels = _as_image(image)
    if not np.all(np.isfinite(pixels)):
        return np.full((5, 5), np.nan)
    axis = np.linspace(-1.0, 1.0, SIDE)
    horizontal, vertical = np.meshgrid(axis, -axis)
    vertical_derivative, horizontal_derivative = np.gradient(pixels)
    features = np.stack([horizontal, vertical, pixels, np.abs(horizontal_derivative), np.abs(vertical_derivative)])
    return np.cov(features.reshape(5, -1)) + RIDGE * np.eye(5)


def digit_covariances(digit: int) -> np.ndarray:
    """Return the region covariances (n, 5, 5) of all images of one digit; see ``region_covariance``.

    Raises:
        ValueError: if ``digit`` is not an integer in 0..9.
    """
    return np.stack([region_covariance(image) for image in digit_images(digit)])


def template_covariance(digit: int) -> np.ndarray:
    """Return the region covariance (5, 5) of the public template of one digit, for any digit in 0..9.

    Raises:
        ValueError: if ``digit`` is not an integer in 0..9.
    """
    return region_covariance(template_image(digit))


def template_image(digit: int) -> np.ndarray:
    """Return the public template of one digit: a font glyph, area-averaged to 8 x 8 pixels in [0, 1].

    The glyph fills the height of the image, as the digits of the data set do. 1 is full ink.

    Raises:
        ValueError: if ``digit`` is not an integer in 0..9.
    """
    _check_digit(digit)
    return drawn_template(int(digit)).copy()


@lru_cache(maxsize=1)
def digits_table() -> tuple[np.ndarray, np.ndarray]:
    """Return all images and their digits."""
    # The templates, and the rest of the library, work without scikit-learn; to import it takes a second, and the table
    # that comes with it is read in a hundredth of one.
    found = importlib.util.find_spec("sklearn")
    for folder in (found.submodule_search_locations or ()) if found else ():
        table = Path(folder) / "datasets" / "data" / "digits.csv.gz"
        if table.exists():
            return _split(np.loadtxt(table, delimiter=","))
    from sklearn.datasets import load_digits
    from sklearn.utils import Bunch

    data = cast(Bunch, load_digits())  # a pair only if asked for
    return _split(np.column_stack([data.data, data.target]))


def _split(rows):
    """Return images and digits of rows of 64 numbers from 0 to 16 and a digit."""
    return rows[:, :-1].reshape(-1, SIDE, SIDE) / 16.0, rows[:, -1].astype(int)


@lru_cache(maxsize=10)
def drawn_template(digit: int) -> np.ndarray:
    """Return the image of a digit of a font."""
    import matplotlib
    from matplotlib.font_manager import FontProperties
    from matplotlib.path import Path as Polygon
    from matplotlib.textpath import TextPath

    # The file inside the package, not a font looked up by name: the same glyph on every machine.
    font = FontProperties(fname=Path(matplotlib.get_data_path()) / "fonts" / "ttf" / TEMPLATE_FONT)
    polygons = TextPath((0.0, 0.0), str(digit), size=100, prop=font).to_polygons()
    vertices = np.vstack(polygons)
    lowest, highest = vertices.min(axis=0), vertices.max(axis=0)
    scale = SIDE / (highest[1] - lowest[1]) * np.array([TEMPLATE_WIDTH, 1.0])
    cells = SIDE * TEMPLATE_SUBPIXELS
    axis = (np.arange(cells) + 0.5) / TEMPLATE_SUBPIXELS - SIDE / 2
    points = np.stack(np.meshgrid(axis, -axis), axis=-1).reshape(-1, 2)
    inside = np.zeros(len(points), dtype=bool)
    for polygon in polygons:
        # Exclusive or leaves the counters (the holes of 0, 4, 6, 8, 9) empty.
        inside ^= Polygon((polygon - (lowest + highest) / 2) * scale).contains_points(points)
    blocks = inside.reshape(SIDE, TEMPLATE_SUBPIXELS, SIDE, TEMPLATE_SUBPIXELS)
    return blocks.mean(axis=(1, 3))


def _outer_contour(image: np.ndarray) -> np.ndarray | None:
    """Return the longest contour (v + 1, 2), closed, counter-clockwise, from its start; None if none."""
    from contourpy import contour_generator
    from scipy import ndimage

    if not np.all(np.isfinite(image)):
        return None
    fine = ndimage.zoom(np.pad(image, PADDING), UPSAMPLING, order=3, mode="grid-constant", grid_mode=True)
    fine = ndimage.gaussian_filter(fine, SMOOTHING * UPSAMPLING, mode="constant")
    axis = ((np.arange(len(fine)) + 0.5) / UPSAMPLING - PADDING) * (2.0 / SIDE) - 1.0
    # The padding keeps the border of the fine grid below the level, so that every contour closes.
    contours = cast(list[np.ndarray], contour_generator(x=axis, y=-axis, z=fine).lines(LEVEL))
    if not contours:
        return None
    longest = max(contours, key=lambda contour: _arc_length(contour)[-1])
    x, y = longest[:-1].T
    if np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)) < 0:
        longest = longest[::-1]
    vertices = longest[:-1]
    relative = vertices - _equispaced(longest, REGISTRATION_POINTS, 0.0).mean(axis=0)
    start = np.argmax(relative[:, 0] - START_SLOPE * np.abs(relative[:, 1]))
    vertices = np.roll(vertices, -start, axis=0)
    return np.vstack([vertices, vertices[:1]])


def _registered_start(contour: np.ndarray, reference: np.ndarray) -> float:
    """Return where, as a fraction of the contour's length, the point matching ``reference[0]`` lies."""
    reference = np.asarray(reference, dtype=np.float64)
    if reference.ndim != 2 or reference.shape[0] < 3 or reference.shape[1] != 2:
        raise InputError(f"reference must have shape (m, 2) with m >= 3, got {reference.shape}.")
    count = len(reference)
    shape = _equispaced(contour, count, 0.0) @ np.array([1.0, 1.0j])
    target = reference @ np.array([1.0, 1.0j])
    # <target, shifted shape> for all shifts at once: the larger its modulus, the smaller the Kendall
    # distance, and its angle is the best rotation. Centring one of the two is enough.
    products = np.fft.ifft(np.fft.fft(shape) * np.conj(np.fft.fft(target - target.mean())))
    # Images are upright. Without this, 2 and 5, which half a turn hardly changes, would flip at random.
    upright = np.where(products.real > 0.0, np.abs(products), 0.0)
    return float(np.argmax(upright)) / count


def _equispaced(contour: np.ndarray, count: int, offset: float) -> np.ndarray:
    """Return ``count`` points on a closed contour, from the fraction ``offset`` of its length on."""
    length = _arc_length(contour)
    wanted = (offset + np.arange(count) / count) % 1.0 * length[-1]
    return np.stack([np.interp(wanted, length, contour[:, axis]) for axis in (0, 1)], axis=-1)


def _arc_length(contour: np.ndarray) -> np.ndarray:
    return np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(contour, axis=0), axis=1))])


def _as_image(image: np.ndarray) -> np.ndarray:
    pixels = np.asarray(image, dtype=np.float64)
    if pixels.shape != (SIDE, SIDE):
        raise InputError(f"image must have shape ({SIDE}, {SIDE}), got {pixels.shape}.")
    return pixels


def _check_digit(digit: int) -> None:
    if not isinstance(digit, (int, np.integer)) or not 0 <= digit <= 9:
        raise InputError(f"digit must be an integer in 0..9, got {digit!r}.")


def _check_landmarks(landmarks: int) -> None:
    if not isinstance(landmarks, (int, np.integer)) or landmarks < 3:
        raise InputError(f"landmarks must be an integer >= 3, got {landmarks!r}.")
