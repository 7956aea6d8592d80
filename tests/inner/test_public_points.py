"""Statistics of public points refuse what is no point; operations refuse other shapes; landmarks count as shapes."""

import ast
import dataclasses
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from strategies import ONE_OF_EACH_KIND, a_point, name

import jaxgeodp
from jaxgeodp import (
    Euclidean,
    Hyperbolic,
    Manifold,
    PlanarShapes,
    Product,
    Sphere,
    certified_distance,
    frechet_mean,
    frechet_median,
    power_mean,
)
from jaxgeodp.checks import InputError
from jaxgeodp.statistics.public_points import checked, checked_point, explained
from jaxgeodp.testing import LAWS

SPHERE, BASIS = Sphere(2), np.eye(3)
QUADRILATERALS = np.array([[0, 0], [1, 0], [1, 1], [0, 1.0]]) + 0.1 * np.random.default_rng(0).normal(size=(5, 4, 2))


def check(manifold, points, weights=None):
    return checked("test", manifold, points, weights)


# Values ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("statistic", [frechet_mean, frechet_median, lambda m, x: power_mean(m, x, 3.0)])
def test_points_off_the_manifold_are_named_with_their_deviation(statistic):
    around = BASIS + np.array([0, 0, 5.0])  # their "mean" was the south pole
    for points, index, deviation in ((5 * BASIS, 0, "0.8"), (np.stack([BASIS[0], 3 * BASIS[1]]), 1, "0.667")):
        with pytest.raises(
            InputError, match=rf"points\[{index}\] is not a point of Sphere.*{deviation}, above 1e-05; proj"
        ):
            statistic(SPHERE, points)
    with pytest.raises(InputError, match=r"points\[2\] is not a point"):
        statistic(SPHERE, around)


def test_the_point_given_as_the_mean_is_checked_too():
    with pytest.raises(InputError, match=r"certified_distance: mean is not a point of Sphere.*0.5, above"):
        certified_distance(SPHERE, 2 * BASIS[0], BASIS)
    with pytest.raises(InputError, match="certified_distance: mean must have shape"):
        certified_distance(SPHERE, BASIS, BASIS)
    with pytest.raises(InputError, match=r"certified_distance: points\[0\] is not a point"):
        certified_distance(SPHERE, BASIS[0], 2 * BASIS)


@pytest.mark.parametrize("manifold", ONE_OF_EACH_KIND, ids=name)
def test_points_pass_in_both_precisions_and_others_do_not(manifold):
    x = np.asarray(a_point(manifold, 1))
    single = x.astype(np.complex64 if manifold.dtype_kind == "complex" else np.float32)
    for points in (x[None], single[None], single.astype(x.dtype)[None]):
        assert np.all(np.isfinite(check(manifold, points)[1]))
    bad = np.stack([x, x])
    bad[1].flat[0] = np.nan
    with pytest.raises(InputError, match=r"points\[1\] is not a point of .* and cannot be projected"):
        check(manifold, bad)
    if not isinstance(manifold, Euclidean):
        bad[1] = x
        bad[1].flat[1] += 1e-3 * np.max(np.abs(x))
        with pytest.raises(InputError, match=r"points\[1\] is not a point of .*project first"):
            check(manifold, bad)
        np.testing.assert_array_equal(np.isnan(jax.jit(lambda p: check(manifold, p)[1])(bad)), [False, True])


def test_the_tolerance_is_relative():
    plane = Hyperbolic(2)
    for distance in (1.0, 8.0, 15.0):
        x = np.array([np.cosh(distance), np.sinh(distance), 0.0])
        check(plane, x[None])
        check(plane, x[None].astype(np.float32))
        with pytest.raises(InputError, match=r"relative deviation is 0\.0001,"):
            check(plane, x[None] * [1.0001, 1.0, 1.0])
    tiny = Sphere(2, 1e12)
    check(tiny, 1e-6 * BASIS)
    with pytest.raises(InputError, match="relative deviation"):
        check(tiny, 1.001e-6 * BASIS)
    both = Product(tiny, Euclidean(1))
    with pytest.raises(InputError, match="relative deviation"):
        check(both, np.array([[0.0, 0.0, 1.1e-6, 1e9]]))


@pytest.mark.parametrize("weights", [[1.0, -0.1, 1.0], [0.0, 0.0, 0.0], [1.0, np.nan, 1.0], [1.0, np.inf, 1.0]])
def test_other_weights_are_refused(weights):
    with pytest.raises(InputError, match="frechet_mean: weights must be finite"):
        frechet_mean(SPHERE, BASIS, weights)


def test_under_jit_it_is_nan_and_a_constant_is_still_checked():
    means = jax.jit(jax.vmap(lambda x: frechet_mean(SPHERE, x)))(jnp.stack([BASIS, 5 * BASIS]))
    np.testing.assert_allclose(means[0], np.full(3, 3**-0.5))
    assert np.all(np.isnan(means[1]))
    assert np.all(np.isnan(jax.jit(lambda x: checked_point("test", "x", SPHERE, x))(2 * BASIS[0])))
    constant, far = jnp.asarray(BASIS), jnp.asarray(5 * BASIS)
    assert jax.jit(lambda t: t * check(SPHERE, constant)[1][0])(2.0) == 2.0
    with pytest.raises(InputError, match="is not a point"):
        jax.jit(lambda t: t * check(SPHERE, far)[1][0])(2.0)


def test_no_mechanism_takes_private_records_to_these_checks():
    """An exception about a record would tell of it. Those that import them make records, or take public ones, or tell
    their custodian alone."""
    names = {
        "frechet_mean",
        "frechet_median",
        "power_mean",
        "certified_distance",
        "checked",
        "checked_point",
        "explained",
    }
    package = pathlib.Path(jaxgeodp.__file__).parent
    found = set()
    folders = ("mechanisms", "releases", "releases/ways", "domains", "privacy", "locating")
    for path in [path for folder in folders for path in package.glob(f"{folder}/*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and names & {alias.name for alias in node.names}:
                found.add(path.name)
    assert found <= {"expected.py", "suggestion.py", "auditing.py", "supposed.py", "published.py"}


# Shapes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("manifold", ONE_OF_EACH_KIND, ids=name)
def test_operations_refuse_arrays_of_other_shapes(manifold):
    x = jnp.asarray(manifold.origin)
    for wrong in (jnp.stack([x, x]), x[..., None], x.reshape(-1)[:-1]):
        for act in (manifold.project, manifold.belongs, manifold.admissible, manifold.deviation):
            for call in (act, jax.jit(act)):
                with pytest.raises(InputError, match=r"x must be one array of shape .* got \(.*use jax\.vmap for many"):
                    call(wrong)
        for act in (manifold.dist, manifold.exp, manifold.log):
            with pytest.raises(InputError, match="must be one array of shape"):
                act(x, wrong)
    with pytest.raises(InputError, match="got list"):
        manifold.project(list(np.asarray(x)))


@dataclasses.dataclass(frozen=True)
class Flat(Manifold):
    """The plane, by the defaults of `Manifold`."""

    dim = 2
    shape = (2,)

    def inner(self, point, u, v):
        return jnp.sum(u * v)

    def exp(self, point, tangent):
        return point + tangent


def test_the_defaults_refuse_other_shapes_too():
    for act in (Flat().project, Flat().belongs, Flat().admissible, Flat().deviation):
        with pytest.raises(InputError, match="must be one array of shape"):
            act(jnp.zeros((3, 2)))


# Landmarks -------------------------------------------------------------------------------------------------------


def test_landmarks_count_as_shapes():
    shapes = PlanarShapes(4)
    expected = frechet_mean(shapes, jax.vmap(shapes.from_landmarks)(QUADRILATERALS))
    np.testing.assert_array_equal(frechet_mean(shapes, QUADRILATERALS), expected)
    mean = QUADRILATERALS.mean(axis=0)
    assert certified_distance(shapes, mean, QUADRILATERALS) < 0.1
    np.testing.assert_array_equal(
        jax.jit(lambda x: check(shapes, x)[0])(QUADRILATERALS), check(shapes, QUADRILATERALS)[0]
    )
    for other in (QUADRILATERALS.swapaxes(1, 2), QUADRILATERALS.astype(complex)):
        with pytest.raises(InputError, match="points must have shape"):
            frechet_mean(shapes, other)
    with pytest.raises(InputError, match="project first"):
        frechet_mean(shapes, QUADRILATERALS[..., 0])
    with pytest.raises(InputError, match=r"points\[1\] is not a point .* and cannot be projected"):
        frechet_mean(shapes, np.stack([QUADRILATERALS[0], np.ones((4, 2))]))


def test_as_points_changes_the_form_and_nothing_else():
    shapes = PlanarShapes(4)
    xy = QUADRILATERALS.copy()
    xy[0, 0] = np.nan, np.inf
    xy[1, 2] = -0.0, np.inf
    for given in (xy, jnp.asarray(xy), xy[0], xy[None], xy[:, ::-1]):
        points = np.asarray(shapes.as_points(given))
        np.testing.assert_array_equal(np.stack([points.real, points.imag], axis=-1), given)
    assert isinstance(shapes.as_points(xy), np.ndarray)
    for dtype, result in ((np.float16, np.complex64), (np.float32, np.complex64), (np.int64, np.complex128)):
        assert shapes.as_points(np.ones((4, 2), dtype)).dtype == result
        assert shapes.as_points(jnp.ones((4, 2), dtype)).dtype == result
    for kept in (xy[..., 0], xy.astype(complex), xy.astype(str), xy > 0, xy.swapaxes(1, 2)):
        assert shapes.as_points(kept) is kept
    assert SPHERE.as_points(xy) is xy


def test_from_landmarks_refuses_what_it_would_mix_up():
    shapes = PlanarShapes(4)
    for wrong in (QUADRILATERALS.swapaxes(1, 2), QUADRILATERALS.reshape(5, 8), QUADRILATERALS.astype(complex)):
        with pytest.raises(InputError, match=r"xy must be real numbers of shape \(\.\.\., 4, 2\)"):
            shapes.from_landmarks(wrong)


# A manifold of one's own -----------------------------------------------------------------------------------------


class Careless(Flat):
    """Flat, but its exponential map goes by the length of a vector, which has no derivative at 0."""

    def exp(self, point, tangent):
        length = jnp.sqrt(jnp.sum(tangent**2))
        return point + length * jnp.where(length > 0, tangent / length, 0.0)


class Dividing(Flat):
    """Flat, with 0/0 in its exponential map and a logarithm that is right."""

    def exp(self, point, tangent):
        length = jnp.sqrt(jnp.sum(tangent**2))
        return point + length * (tangent / length)

    def log(self, p, q):
        return q - p


def test_an_exponential_map_without_a_derivative_is_found_out():
    nothing = jnp.full(2, jnp.nan)
    with pytest.raises(InputError, match=r"frechet_mean: exp of Dividing\(\) has no finite derivative.*check_manifold"):
        frechet_mean(Dividing(), np.ones((3, 2)))
    with pytest.raises(InputError, match=r"mean: exp of Careless\(\) has no finite derivative"):
        explained("mean", Careless(), nothing)
    assert explained("mean", Flat(), nothing) is nothing, "NaN for another reason stays NaN"
    for manifold in (Careless(), Dividing()):
        with pytest.raises(AssertionError, match=r"exp\(p, .*is not finite"):
            LAWS["exp_at_zero"](manifold, "float64")
    for manifold in (Flat(), SPHERE, PlanarShapes(4)):
        LAWS["exp_at_zero"](manifold, "float64")
