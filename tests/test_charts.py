"""Points written as files write them, and back."""

import math

import jax
import numpy as np
import pytest

from jaxgeodp import Axes, Circle, Correlations, Hyperbolic, RigidMotions, Rotations, Sphere, Torus
from jaxgeodp.checks import InputError
from jaxgeodp.io import from_chart, to_chart
from jaxgeodp.io.charts import NAMES, chart_named

SPACES = {
    "sphere": Sphere(2),
    "axes": Axes(2),
    "circle": Circle(),
    "torus": Torus(3),
    "rotations": Rotations(),
    "rigidmotions": RigidMotions(2.0),
    "hyperbolic": Hyperbolic(3, curvature=-0.25),
    "correlations": Correlations(3),
}
WAYS = [(name, kind) for name in (*NAMES, "euler-ZYX-degrees", "euler-zxz-radians") for kind in chart_named(name).kinds]


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize(("name", "kind"), WAYS)
def test_points_written_and_read_are_the_same_points(name, kind):
    space = SPACES[kind]
    points = np.array(jax.vmap(space.random_point)(jax.random.split(jax.random.key(1), 40)))
    back = from_chart(space, to_chart(space, points, name), name)
    assert np.max(np.asarray(jax.vmap(space.dist)(points, back))) < 1e-14
    points[3] = np.nan
    written = to_chart(space, points, name)
    assert np.isnan(written[3]).any() and np.isfinite(np.delete(written, 3, axis=0)).all()


def test_angles_are_within_their_usual_ranges():
    np.testing.assert_allclose(to_chart(Axes(2), [[0.0, 0.0, -1.0]], "trend,plunge")[0, 1], 90.0)
    np.testing.assert_allclose(to_chart(Axes(2), [[0.0, 1.0, -1.0]], "trend,plunge"), [[270.0, 45.0]])
    np.testing.assert_allclose(to_chart(Axes(2), [[1.0, 0.0, 1.0]], "strike,dip"), [[90.0, 45.0]])
    np.testing.assert_allclose(to_chart(Sphere(2), [[0.0, -1.0, 0.0]], "ra,dec"), [[270.0, 0.0]])
    np.testing.assert_allclose(to_chart(Circle(), [[math.pi], [-math.pi], [-0.1]], "turns")[:2], [[0.5], [0.5]])
    np.testing.assert_allclose(to_chart(Circle(), [[-math.pi / 12.0]], "hours"), [[23.0]])
    assert to_chart(Circle(), [[-1e-20]], "hours")[0, 0] == 0.0
    assert to_chart(Axes(2), [[1.0, -1e-20, 0.0]], "trend,plunge")[0, 0] == 0.0


def test_far_points_of_the_half_space_keep_their_digits():
    height = np.array([1e-9, 1e9])
    points = from_chart(Hyperbolic(2), np.stack([np.full(2, 0.3), height], axis=1), "half-space")
    np.testing.assert_allclose(to_chart(Hyperbolic(2), points, "half-space")[1], [0.3, 1e9], rtol=1e-6)


@pytest.mark.parametrize(
    ("space", "points", "name", "said"),
    [
        (Sphere(2), [[0.0, 1.0]], "lat,lon", r"to_chart: points must have shape \(n, 3\), got \(n, 2\)"),
        (Sphere(2), [[0.0, 1.0, 0.0]], "wxyz", "to_chart: wxyz is not for "),
        (Sphere(2), [0.0, 1.0, 0.0], "lat,lon", "to_chart: points must have shape"),
        (Sphere(2), "pole", "lat,lon", "to_chart: points must "),
    ],
)
def test_what_is_no_point_in_shape_is_refused(space, points, name, said):
    with pytest.raises(InputError, match=said):
        to_chart(space, points, name)
