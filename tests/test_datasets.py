import numpy as np
import pytest
from strategies import exhaustive

from jaxgeodp import datasets

DIGITS = range(10)


def signed_area(points):
    x, y = np.moveaxis(points, -1, 0)
    return 0.5 * np.sum(x * np.roll(y, -1, axis=-1) - y * np.roll(x, -1, axis=-1), axis=-1)


def shape_distance(first, second):
    complex_shapes = []
    for points in (first, second):
        shape = points[:, 0] + 1j * points[:, 1]
        shape = shape - shape.mean()
        complex_shapes.append(shape / np.linalg.norm(shape))
    product = np.vdot(*complex_shapes)
    residual = complex_shapes[1] - complex_shapes[0] * product
    return np.arctan2(np.linalg.norm(residual), np.abs(product))


def disc(radius):
    axis = np.arange(8) - 3.5
    return np.clip(radius + 0.5 - np.hypot(*np.meshgrid(axis, axis)), 0.0, 1.0)


some_digits = pytest.mark.parametrize("digit", [2, 6, 9, *exhaustive(*(d for d in DIGITS if d not in (2, 6, 9)))])


@some_digits
def test_rows_shapes_and_values(digit):
    images = datasets.digit_images(digit)
    outlines = datasets.digit_outlines(digit, 24)
    covariances = datasets.digit_covariances(digit)
    assert images.shape[1:] == (8, 8) and images.dtype == np.float64
    assert images.min() == 0.0 and images.max() == 1.0
    assert outlines.shape == (len(images), 24, 2) and outlines.dtype == np.float64
    assert np.all(np.isfinite(outlines))
    assert covariances.shape == (len(images), 5, 5)
    # The outer contour of a digit surrounds a fair part of the square [-1, 1]^2, counter-clockwise.
    assert np.all(signed_area(outlines) > 0.4)
    assert np.all(np.abs(outlines) < 1.5)


def test_every_record_of_the_source_is_used_once():
    assert sum(len(datasets.digit_images(digit)) for digit in DIGITS) == 1797


def test_caller_cannot_change_the_cached_data():
    datasets.digit_images(3)[:] = -1.0
    datasets.template_image(3)[:] = -1.0
    assert datasets.digit_images(3).min() == 0.0
    assert datasets.template_image(3).min() == 0.0


def test_each_row_depends_on_its_record_alone(monkeypatch):
    images, labels = datasets.digits_table()
    outlines = datasets.digit_outlines(3, 20)
    covariances = datasets.digit_covariances(3)
    reference = datasets.template_outline(3, datasets.REGISTRATION_POINTS)
    record = datasets.digit_images(3)[11]
    np.testing.assert_array_equal(datasets.outline(record, 20, reference), outlines[11])
    np.testing.assert_array_equal(datasets.region_covariance(record), covariances[11])

    # Replace one record by something quite different, an empty image: only its own row may change.
    position = np.flatnonzero(labels == 3)[5]
    changed = images.copy()
    changed[position] = 0.0
    monkeypatch.setattr(datasets, "digits_table", lambda: (changed, labels))
    others = np.arange(len(outlines)) != 5
    neighbour = datasets.digit_outlines(3, 20)
    assert neighbour.shape == outlines.shape
    assert np.all(np.isnan(neighbour[5]))
    np.testing.assert_array_equal(neighbour[others], outlines[others])
    neighbour = datasets.digit_covariances(3)
    assert not np.allclose(neighbour[5], covariances[5])
    np.testing.assert_array_equal(neighbour[others], covariances[others])


@pytest.mark.parametrize("digit", DIGITS)
def test_landmarks_are_equispaced_along_the_arc(digit):
    image = datasets.digit_images(digit)[0]
    fine = datasets.outline(image, 3000)
    steps = np.linalg.norm(np.roll(fine, -1, axis=0) - fine, axis=1)
    # Chords are at most as long as arcs and, on a fine smooth curve, nearly as long.
    assert steps.max() < 1.001 * steps.mean()
    assert np.quantile(steps, 0.05) > 0.98 * steps.mean()
    np.testing.assert_allclose(datasets.outline(image, 30), fine[::100], atol=1e-12)


def test_disc_gives_a_circle_that_starts_on_the_right():
    points = datasets.outline(disc(2.5), 40)
    radii = np.hypot(*points.T)
    angles = np.unwrap(np.arctan2(points[:, 1], points[:, 0]))
    assert radii.std() < 0.02 * radii.mean()
    np.testing.assert_allclose(angles, 2 * np.pi * np.arange(40) / 40, atol=0.05)


def test_coordinates_point_right_and_up():
    image = np.zeros((8, 8))
    image[0:2, 5:8] = 1.0  # the first rows of an image are its top
    centre = datasets.outline(image, 32).mean(axis=0)
    np.testing.assert_allclose(centre, [2.5 / 4, 3.0 / 4], atol=0.02)
    covariance = datasets.region_covariance(image)
    assert covariance[0, 2] > 0.01 and covariance[1, 2] > 0.01


def test_outer_contour_wins_over_the_hole():
    image = disc(3.0)
    ring = np.clip(image - disc(1.0), 0.0, 1.0)
    assert shape_distance(datasets.outline(ring, 32), datasets.outline(image, 32)) < 0.02
    np.testing.assert_allclose(
        signed_area(datasets.outline(ring, 32)), signed_area(datasets.outline(image, 32)), rtol=0.02
    )


@pytest.mark.parametrize("digit", [2, 3, 5])
def test_vertical_mirror_image_gives_the_mirrored_outline(digit):
    image = datasets.digit_images(digit)[4]
    mirrored = datasets.outline(image[::-1], 30)
    assert signed_area(mirrored) > 0
    # A reflection reverses the direction; the start rule is symmetric in y, so the start point stays.
    expected = np.roll((datasets.outline(image, 30) * [1.0, -1.0])[::-1], 1, axis=0)
    np.testing.assert_allclose(mirrored, expected, atol=1e-6)
    assert shape_distance(mirrored, datasets.outline(image, 30)) > 0.05


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_registered_outline_turns_with_image_and_reference(turns):
    reference = datasets.template_outline(3, datasets.REGISTRATION_POINTS)
    image = datasets.digit_images(3)[0]
    cosine, sine = np.cos(turns * np.pi / 2), np.sin(turns * np.pi / 2)
    rotation = np.array([[cosine, sine], [-sine, cosine]])
    upright = datasets.outline(image, 30, reference)
    turned = datasets.outline(np.rot90(image, turns), 30, reference @ rotation)
    # The start is found up to one of REGISTRATION_POINTS steps along the contour.
    np.testing.assert_allclose(turned, upright @ rotation, atol=0.04)
    assert shape_distance(turned, upright) < 0.02


@pytest.mark.parametrize("digit", [2, 3, 5, 8])
def test_registration_takes_the_best_upright_start(digit):
    count = 64
    reference = datasets.template_outline(digit, count)
    centred = reference - reference.mean(axis=0)
    for image in datasets.digit_images(digit)[:10]:
        free = datasets.outline(image, count)
        shifted = [np.roll(free, -shift, axis=0) for shift in range(count)]
        # A positive sum of dot products means that the best rotation is below a quarter turn.
        upright = [points for points in shifted if np.sum(centred * points) > 0]
        best = min(upright, key=lambda points: shape_distance(points, reference))
        np.testing.assert_allclose(datasets.outline(image, count, reference), best, atol=1e-9)


@some_digits
def test_no_record_is_registered_upside_down(digit):
    template = datasets.template_outline(digit, 32)
    outlines = datasets.digit_outlines(digit, 32)
    assert np.all(np.sum((template - template.mean(axis=0)) * outlines, axis=(1, 2)) > 0)


def test_registration_ignores_position_and_size_of_the_reference():
    image = datasets.digit_images(5)[7]
    reference = datasets.template_outline(5, 64)
    np.testing.assert_array_equal(
        datasets.outline(image, 16, 3.0 * reference + [5.0, -2.0]), datasets.outline(image, 16, reference)
    )


@some_digits
def test_template_is_near_typical_records(digit):
    template = datasets.template_outline(digit, 32)
    assert signed_area(template) > 0.4
    distances = [shape_distance(template, points) for points in datasets.digit_outlines(digit, 32)]
    assert np.median(distances) < 0.27
    image = datasets.template_image(digit)
    assert image.shape == (8, 8) and image.min() >= 0.0 and image.max() <= 1.0
    assert image[0].max() > 0.5 and image[-1].max() > 0.5


def test_template_of_zero_has_a_hole():
    image = datasets.template_image(0)
    assert image[3:5, 3:5].max() < 0.5 < min(image[3, 2], image[3, 5])


def test_the_table_is_what_scikit_learn_loads(monkeypatch):
    images, labels = datasets.digits_table()
    datasets.digits_table.cache_clear()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for own, expected in zip((images, labels), datasets.digits_table(), strict=True):
        np.testing.assert_array_equal(own, expected)
    datasets.digits_table.cache_clear()


def test_templates_need_no_data(monkeypatch):
    def fail(*_arguments, **_keywords):
        raise AssertionError("the data set was loaded")

    expected = datasets.template_outline(4, 20)
    datasets.digits_table.cache_clear()
    datasets.drawn_template.cache_clear()
    monkeypatch.setattr(np, "loadtxt", fail)
    np.testing.assert_array_equal(datasets.template_outline(4, 20), expected)
    assert datasets.template_covariance(4).shape == (5, 5)
    with pytest.raises(AssertionError, match="the data set was loaded"):
        datasets.digit_images(4)


@pytest.mark.parametrize("digit", DIGITS)
def test_covariances_are_positive_definite(digit):
    matrices = np.concatenate([datasets.digit_covariances(digit), datasets.template_covariance(digit)[np.newaxis]])
    np.testing.assert_array_equal(matrices, np.swapaxes(matrices, 1, 2))
    eigenvalues = np.linalg.eigvalsh(matrices)
    assert eigenvalues.min() >= datasets.RIDGE * (1 - 1e-9)
    assert np.max(eigenvalues[:, -1] / eigenvalues[:, 0]) < 100


def test_region_covariance_of_a_ramp():
    ramp = np.tile(np.arange(8) / 7, (8, 1))
    covariance = datasets.region_covariance(ramp)
    variance = np.var(np.repeat(np.linspace(-1, 1, 8), 8), ddof=1)
    expected = np.zeros((5, 5))
    # The intensity is (x + 1) / 2; both derivatives are constant.
    expected[:3, :3] = variance * np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.0], [0.5, 0.0, 0.25]])
    np.testing.assert_allclose(covariance, expected + datasets.RIDGE * np.eye(5), atol=1e-12)


def test_region_covariance_separates_the_two_derivatives():
    stripes = np.tile([0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0], (8, 1))
    vertical_stroke = datasets.region_covariance(stripes)
    horizontal_stroke = datasets.region_covariance(stripes.T)
    assert vertical_stroke[3, 3] > datasets.RIDGE + 0.05
    assert vertical_stroke[4, 4] == pytest.approx(datasets.RIDGE)
    assert horizontal_stroke[4, 4] == pytest.approx(vertical_stroke[3, 3])
    assert horizontal_stroke[3, 3] == pytest.approx(datasets.RIDGE)


def test_degenerate_images():
    blank = np.zeros((8, 8))
    broken = datasets.template_image(3)
    broken[2, 2] = np.nan
    reference = datasets.template_outline(3, 64)
    for image in (blank, broken):
        for start in (None, reference):
            points = datasets.outline(image, 12, start)
            assert points.shape == (12, 2) and np.all(np.isnan(points))
    assert np.linalg.eigvalsh(datasets.region_covariance(blank))[0] == pytest.approx(datasets.RIDGE)
    assert np.all(np.isnan(datasets.region_covariance(broken)))
    full = datasets.outline(np.ones((8, 8)), 400)
    # Smoothing moves a straight edge outwards by 0.84 standard deviations at level 0.2.
    assert signed_area(full) == pytest.approx((2.0 + 2 * 0.84 * 0.5 / 4) ** 2, rel=0.03)


@pytest.mark.parametrize("digit", [-1, 10, 3.0, "3", None])
def test_bad_digit(digit):
    for function in (
        datasets.digit_images,
        datasets.digit_covariances,
        datasets.template_image,
        datasets.template_covariance,
        lambda value: datasets.digit_outlines(value, 10),
        lambda value: datasets.template_outline(value, 10),
    ):
        with pytest.raises(ValueError, match=r"digit must be an integer in 0\.\.9"):
            function(digit)


@pytest.mark.parametrize("landmarks", [2, 0, -5, 10.0, None])
def test_bad_landmarks(landmarks):
    for function in (
        lambda value: datasets.outline(np.zeros((8, 8)), value),
        lambda value: datasets.digit_outlines(3, value),
        lambda value: datasets.template_outline(3, value),
    ):
        with pytest.raises(ValueError, match="landmarks must be an integer >= 3"):
            function(landmarks)


def test_bad_arrays():
    for function in (lambda image: datasets.outline(image, 10), datasets.region_covariance):
        with pytest.raises(ValueError, match="image must have shape"):
            function(np.zeros((8, 9)))
    with pytest.raises(ValueError, match="reference must have shape"):
        datasets.outline(disc(2.5), 10, np.zeros((2, 2)))


def test_smallest_and_numpy_integer_arguments():
    assert datasets.template_outline(np.int64(3), np.int64(3)).shape == (3, 2)
