"""Shapes of landmarks in space, beyond the laws of every manifold (`test_manifolds`)."""

import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.spatial.transform import Rotation
from strategies import a_point, exhaustive
from typer.testing import CliRunner

from jaxgeodp import (
    AdaptiveMechanism,
    Euclidean,
    GeodesicBall,
    GibbsMechanism,
    KNGMechanism,
    LaplaceMechanism,
    MetricLaplace,
    Product,
    Release,
    RiemannianGaussian,
    Shape,
    Shapes3D,
    Sphere,
    TangentGaussian,
    WrappedLaplace,
    frechet_mean,
)
from jaxgeodp.cli.app import app
from jaxgeodp.domains import assumption_limit
from jaxgeodp.io import read
from jaxgeodp.manifolds.smoothness import smoothness
from jaxgeodp.testing import LAWS, check_mechanism

SPACE = Shapes3D(5)
TEMPLATE = np.array([[0.0, 0.0, 0.0], [3.0, 0.0, 0.0], [0.0, 2.5, 0.0], [0.0, 0.0, 2.0], [1.0, 1.0, 1.0]])


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def center():
    return np.asarray(SPACE.from_landmarks(TEMPLATE))


def specimens(count, seed=0, spread=0.1):
    """Noisy configurations in any pose and size."""
    random = np.random.default_rng(seed)
    turns = Rotation.random(count, random_state=seed).as_matrix()
    noisy = TEMPLATE + spread * random.normal(size=(count, *TEMPLATE.shape))
    return random.uniform(0.5, 2.0, (count, 1, 1)) * noisy @ turns + random.normal(size=(count, 1, 3))


def phi(x):
    return math.acos(min(np.linalg.svd(x, compute_uv=False)[0], 1.0))


# The others repeat what these show; `test_manifolds` tries all of them on several sizes.
SHORT = ("points_belong", "round_trips", "minimal_geodesics", "parallel_transport", "volume")


@pytest.mark.parametrize("law", SHORT)
def test_law(law):
    LAWS[law](Shapes3D(5, 0.4), "float64")


# Geometry -----------------------------------------------------------------------------------------------


def test_distances_are_those_of_optimal_superimposition():
    for seed in range(20):
        p, q = (np.asarray(a_point(SPACE, 2 * seed + own)) for own in (0, 1))
        _, rest = Rotation.align_vectors(p, q)  # Kabsch, of centred configurations of size 1
        expected = 2.0 * math.asin(0.5 * rest)
        np.testing.assert_allclose(SPACE.dist(p, q), expected, rtol=1e-9)
        turn = Rotation.random(random_state=seed).as_matrix()
        np.testing.assert_allclose(SPACE.dist(p, q @ turn), expected, rtol=1e-9)
        np.testing.assert_allclose(SPACE.log(p, q @ turn), SPACE.log(p, q), atol=1e-12)


def test_only_flat_configurations_are_their_own_mirror_images():
    mirror = np.array([1.0, 1.0, -1.0])
    flat = SPACE.from_landmarks(TEMPLATE * [1.0, 1.0, 0.0])
    turned = np.asarray(flat) @ Rotation.random(random_state=1).as_matrix()
    assert SPACE.dist(flat, SPACE.project(turned * mirror)) < 1e-12
    assert SPACE.dist(SPACE.project(TEMPLATE), SPACE.project(TEMPLATE * mirror)) > 0.1


def steepest_plane(x):
    """Two horizontal unit vectors whose plane has the curvature 1 + 3/sin(phi)^2 (Proposition 2)."""
    _, _, right = np.linalg.svd(x)
    w = np.linalg.svd(np.column_stack([np.ones(len(x)), x]))[0][:, 4]  # orthogonal to constants and columns
    return np.outer(w, right[1]), np.outer(w, right[2])


def curvature(space, x, v, w, size):
    """From how geodesics of a small triangle spread; even in its size."""

    def squared(sign):
        ends = [space.exp(x, sign * size * own) for own in (v, w)]
        return float(space.squared_dist(*ends))

    return 3.0 * (2.0 * size**2 - 0.5 * (squared(1.0) + squared(-1.0))) / size**4


def test_the_curvature_bound_is_attained_and_never_exceeded():
    space = Shapes3D(6)
    for seed in range(4):
        x = np.asarray(a_point(space, seed))
        bound = 1.0 + 3.0 / math.sin(phi(x)) ** 2
        np.testing.assert_allclose(curvature(space, x, *steepest_plane(x), 1e-2), bound, rtol=3e-3)
        for own in range(5):
            keys = jax.random.split(jax.random.key(100 * seed + own))
            v, w = (np.asarray(space.random_tangent(key, x)) for key in keys)
            v = v / np.linalg.norm(v)
            w = w - np.sum(v * w) * v
            found = curvature(space, x, v, w / np.linalg.norm(w), 1e-2)
            assert 1.0 - 3e-3 < found < bound * 1.003


def test_geodesics_are_minimal_up_to_the_distance_from_a_line_and_no_farther():
    dist, exp = jax.jit(jax.vmap(SPACE.dist, (None, 0))), jax.jit(SPACE.exp)
    for seed in range(10):
        x = np.asarray(a_point(SPACE, seed))
        reach = phi(x)
        left, _, right = np.linalg.svd(x, full_matrices=False)
        line = np.outer(left[:, 0], right[0])
        towards = line - math.cos(reach) * x
        towards = np.asarray(SPACE.to_tangent(x, towards / np.linalg.norm(towards)))
        random = np.asarray(jax.vmap(SPACE.random_tangent, (0, None))(jax.random.split(jax.random.key(seed), 9), x))
        # From nearly towards the line to anywhere.
        mixed = np.stack([towards, *(towards + 0.3 * k * own for k, own in enumerate(random))])
        mixed = mixed / np.linalg.norm(mixed, axis=(1, 2), keepdims=True)
        ends = np.stack([exp(x, 0.999 * reach * own) for own in mixed])
        np.testing.assert_allclose(dist(x, ends), 0.999 * reach, rtol=1e-9)
        assert dist(x, exp(x, (reach + 0.1) * towards)[None])[0] < reach + 0.1 - 1e-3
        assert np.isneginf(SPACE.log_det_exp(x, (reach + 0.1) * towards))


def test_lines_and_points_are_no_shapes():
    along = np.outer([0.0, 1.0, 3.0, 4.0, 7.0], [1.0, 2.0, -1.0])
    for bad in (along, np.ones((5, 3)), np.full((5, 3), np.nan)):
        assert not SPACE.admissible(jnp.asarray(bad))
    assert SPACE.admissible(jnp.asarray(TEMPLATE * [1.0, 1.0, 0.0]))
    assert np.all(np.isfinite(SPACE.log(SPACE.origin, SPACE.project(along + 1e-13))))
    with pytest.raises(ValueError, match="at least 4"):
        Shapes3D(3)
    for clearance in (0.0, 2.0, math.nan, "near"):
        with pytest.raises(ValueError, match="Shapes3D: clearance"):
            Shapes3D(5, clearance)
    with pytest.raises(ValueError, match="xyz must be real numbers"):
        SPACE.from_landmarks(np.zeros((4, 5, 2)))


# Facts that hold in a ball ------------------------------------------------------------------------------


def test_a_ball_knows_the_clearance_and_no_more():
    ball = GeodesicBall(SPACE, center(), 0.1)
    found = ball.manifold
    assert phi(ball.center) - 0.1 - 2e-6 < found.clearance < phi(ball.center) - 0.1
    assert found.whole == SPACE and found != SPACE and str(SPACE) == "Shapes3D(5)"
    assert GeodesicBall(found, ball.center, 0.05).manifold == found  # still true
    wider = GeodesicBall(found, ball.center, 0.2).manifold
    assert found.clearance - 0.1 - 2e-6 < wider.clearance < found.clearance - 0.1 + 2e-6
    assert GeodesicBall(SPACE, ball.center, 1.5).manifold == SPACE  # a line is in it
    limit = assumption_limit(SPACE, ball.center)
    assert GeodesicBall(SPACE, ball.center, 0.999 * limit).satisfies_assumption
    assert not GeodesicBall(SPACE, ball.center, 1.001 * limit).satisfies_assumption
    assert assumption_limit(SPACE) == 0.0
    limit = assumption_limit(Shapes3D(5, 0.4))
    assert 0.1 < limit and abs(assumption_limit(Shapes3D(5, 0.4), ball.center) - limit) < 1e-9
    product = Product(SPACE, Euclidean(1))
    joined = GeodesicBall(product, product.join(ball.center, [0.0]), 0.1)
    assert joined.manifold == Product(found, Euclidean(1)) and joined.manifold.whole == product
    # From section 22 of the docs.
    for share, limit in ((1 / 3, 0.270), (0.5, 0.229), (0.7, 0.174), (0.9, 0.099)):
        assert abs(assumption_limit(SPACE, of_share(share)) - limit) < 1e-3


def of_share(share):
    """A configuration with this largest squared singular value."""
    sizes = np.sqrt([share, (1.0 - share) / 2.0, (1.0 - share) / 2.0])
    return SPACE.origin * math.sqrt(3.0) @ (np.linalg.svd(SPACE.origin)[2].T * sizes)


@pytest.mark.parametrize(
    "make",
    [
        lambda: LaplaceMechanism(GeodesicBall(SPACE, center(), 0.3), 1.0),
        lambda: GibbsMechanism(GeodesicBall(Shapes3D(5, 0.7), center(), 0.25), 1.0),
        lambda: KNGMechanism(GeodesicBall(SPACE, center(), 0.1), 1.0, support_radius=0.101),
        lambda: RiemannianGaussian(GeodesicBall(SPACE, center(), 0.1), 1.0),
        lambda: MetricLaplace(SPACE, 1.0),
    ],
)
def test_what_no_theorem_covers_is_refused(make):
    with pytest.raises(ValueError, match=r"must be below|must define|support_radius must|needs a"):
        make()


def test_a_named_clearance_allows_a_larger_support():
    ball = GeodesicBall(Shapes3D(5, 0.4), center(), 0.08)
    larger = KNGMechanism(ball, 1.0, support_radius=0.1)
    assert larger.law(50).support.radius == 0.1
    assert larger.sensitivity(50) > KNGMechanism(ball, 1.0).sensitivity(50)


@pytest.mark.parametrize(
    "kind",
    [TangentGaussian, *exhaustive(LaplaceMechanism, WrappedLaplace, KNGMechanism, GibbsMechanism)],
)
def test_mechanisms_keep_their_promises(kind):
    check_mechanism(kind(GeodesicBall(SPACE, center(), 0.1), 1.0))


# Laws ---------------------------------------------------------------------------------------------------


def distances_of_laplace(space, x, sigma, log_volume):
    """The distribution function of the distance from x, by quadrature over lengths and many directions."""
    lengths = np.linspace(1e-6, math.pi / 2, 400)
    directions = jax.vmap(lambda key: space.random_tangent(key, x))(jax.random.split(jax.random.key(7), 4000))
    directions = directions / jnp.linalg.norm(directions.reshape(len(directions), -1), axis=1)[:, None, None]
    volumes = jax.jit(jax.vmap(lambda t: jnp.mean(jax.vmap(lambda u: jnp.exp(log_volume(x, t * u)))(directions))))
    density = np.exp(-lengths / sigma) * lengths ** (space.dim - 1) * np.asarray(volumes(lengths))
    mass = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]))])
    return lambda t: np.interp(t, lengths, mass / mass[-1])


def test_laplace_noise_has_its_law_on_all_of_the_space():
    space = Shapes3D(4)
    x = np.asarray(space.origin)
    ball = GeodesicBall(space, x, 0.1)
    mechanism = LaplaceMechanism(ball, 0.06)
    data = np.stack([x] * 20)
    sigma = mechanism.scale(20)
    assert 0.2 < sigma < 0.5  # so wide that nothing of the space is left out
    draws = mechanism.simulate(jax.random.key(3), data, 4000)
    found = np.asarray(jax.vmap(space.dist, (None, 0))(x, draws))
    right = distances_of_laplace(space, x, sigma, space.log_det_exp)
    assert stats.kstest(found, right).pvalue > 1e-6
    # Planted: the volume of the sphere above, which forgets that vertical directions turn.
    wrong = distances_of_laplace(
        space, x, sigma, lambda _, v: (space.dim - 1) * jnp.log(jnp.sinc(jnp.linalg.norm(v) / jnp.pi))
    )
    assert stats.kstest(found, wrong).pvalue < 1e-6
    narrow = distances_of_laplace(space, x, 0.5 * sigma, space.log_det_exp)
    assert stats.kstest(found, narrow).pvalue < 1e-6


def test_the_mean_moves_by_its_sensitivity_at_most_and_nearly_so():
    ball = GeodesicBall(SPACE, center(), 0.15)
    n, space = 4, ball.manifold
    bound = LaplaceMechanism(ball, 1.0).sensitivity(n)
    directions = [np.asarray(own) for own in steepest_plane(ball.center)]
    directions += [np.asarray(SPACE.random_tangent(jax.random.key(seed), ball.center)) for seed in range(4)]
    mean = jax.jit(lambda points: frechet_mean(space, points))
    largest = 0.0
    for first in directions:
        for other in directions:
            rim = [0.15 / np.linalg.norm(own) * own for own in (first, other)]
            ends = [SPACE.exp(ball.center, sign * own) for own in rim for sign in (1.0, -1.0)]
            for others in ([ends[2]] * 3, [ends[2], ends[3], ball.center]):
                means = [mean(jnp.stack([own, *map(jnp.asarray, others)])) for own in ends[:2]]
                largest = max(largest, float(space.dist(*means)))
    assert 0.85 * bound < largest <= bound


# Smooth shapes, and means -------------------------------------------------------------------------------


def test_smooth_shapes_turn_with_the_template_and_bend_least_in_affine_directions():
    turn = Rotation.random(random_state=2).as_matrix()
    covariances = []
    for point in (center(), center() @ turn):
        covariance, words = smoothness(SPACE, point, 1.5)
        frame = np.asarray(SPACE.frame(point))
        covariances.append(np.einsum("ab,aij,blm->ijlm", covariance, frame, frame))
    turned = np.einsum("ijlm,ja,mb->ialb", covariances[0], turn, turn)
    np.testing.assert_allclose(turned, covariances[1], atol=1e-12)
    assert words == "smoothness: bending energy of the landmarks"
    # The longest axis is an affine map of the template.
    longest = np.linalg.eigh(covariances[0].reshape(15, 15))[1][:, -1].reshape(5, 3)
    fitted = np.column_stack([np.ones(5), center()])
    rest = longest - fitted @ np.linalg.lstsq(fitted, longest, rcond=None)[0]
    assert np.linalg.norm(rest) < 1e-6
    assert Shape.smooth(SPACE, center(), 200, radius=0.1, mu=1.0).source == words


def procrustes_mean(shapes):
    """Generalised Procrustes analysis, as everybody writes it, with steps along logarithms."""
    reference = center()
    for _ in range(40):
        turned = np.stack([x @ Rotation.align_vectors(reference, x)[0].as_matrix().T for x in shapes])
        cosines = np.sum(turned * reference, axis=(1, 2))[:, None, None]
        across = turned - cosines * reference
        angles = np.arctan2(np.linalg.norm(across, axis=(1, 2), keepdims=True), cosines)
        step = np.mean(across / np.sinc(angles / np.pi), axis=0)
        size = np.linalg.norm(step)
        reference = np.cos(size) * reference + np.sinc(size / np.pi) * step
    return reference


@pytest.mark.parametrize(
    "make", [lambda ball: TangentGaussian(ball, 1.0), *exhaustive(lambda ball: smooth_steps(ball))]
)
def test_a_mean_of_specimens_in_any_pose_is_found_privately(make):
    records = specimens(2000, 1)
    shapes = SPACE.from_landmarks(records)
    mean = frechet_mean(SPACE, shapes)
    assert SPACE.dist(frechet_mean(SPACE, shapes[:50]), procrustes_mean(np.asarray(shapes[:50]))) < 1e-7
    ball = GeodesicBall(SPACE, center(), 0.15)
    release = make(ball).release(records)
    assert float(SPACE.dist(mean, release.as_array())) < 0.01
    assert release.record["manifold"] == {"name": "Shapes3D", "landmarks": 5, "clearance": ball.manifold.clearance}


def smooth_steps(ball):
    """Private Procrustes analysis in rounds, with the bending energy of the template."""
    shape = Shape.smooth(SPACE, ball.center, 2000, radius=ball.radius, mu=1.0)
    return AdaptiveMechanism(ball, mu=1.0, shape=shape)


# Files --------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("template.npy", TEMPLATE)
    for name, count, seed in (("private", 200, 1), ("public", 30, 2)):
        names = ",".join(f"{axis}{k}" for k in range(1, 6) for axis in "xyz")
        np.savetxt(f"{name}.csv", specimens(count, seed).reshape(count, -1), delimiter=",", header=names, comments="")
    return tmp_path


def run(words):
    found = CliRunner().invoke(app, words.split())
    return found.exit_code, found.output


IN_SPACE = "--manifold shapes3d --header"


def test_names_of_columns_say_whether_landmarks_are_in_space(folder):
    import pyarrow as pa
    import pyarrow.parquet as pq

    code, said = run("check private.csv --manifold shapes --header --columns 1-12")
    assert code == 2 and "'z1' is by its name the third coordinate" in said and "--manifold shapes3d" in said
    table = np.loadtxt("private.csv", delimiter=",", skiprows=1)
    columns = {f"lm{k}_{axis}": table[:, 3 * k + j] for k in range(4) for j, axis in enumerate("xyz")}
    pq.write_table(pa.table(columns), "p.parquet")
    for path in ("p.parquet", "p*.parquet"):
        with pytest.raises(ValueError, match="third coordinate of a landmark: say manifold shapes3d"):
            read(path, "shapes")
    assert read("p.parquet", "shapes3d").shape == (200, 4, 3)
    pq.write_table(pa.table({f"{axis}{k}": table[:, k] for k in range(6) for axis in "xy"}), "q.parquet")
    with pytest.raises(ValueError, match="without z: say manifold shapes"):
        read("q.parquet", "shapes3d")
    np.testing.assert_allclose(read("private.csv", "shapes3d", header=True).reshape(200, -1), table)


def released(words):
    code, said = run(words)
    assert code == 0, said
    release = Release.load("r.json")
    mean = frechet_mean(SPACE, SPACE.from_landmarks(specimens(200, 1)))
    assert release.as_array().shape == (5, 3) and float(SPACE.dist(mean, release.as_array())) < 0.1


@pytest.mark.exhaustive
def test_a_ball_of_public_shapes_in_space_and_a_release_in_it(folder):
    code, said = run(f"ball public.csv {IN_SPACE} --n 200 --mu 1 --shape --out ball.json")
    assert code == 0 and "a ball on Shapes3D(5)" in said
    released(f"release private.csv {IN_SPACE} --ball ball.json --mu 1 --out r.json")


def test_a_custodian_releases_a_shape_in_space(folder):
    code, said = run(f"check private.csv {IN_SPACE} --template template.npy --radius 0.1")
    assert code == 0 and "200 records on Shapes3D(5)" in said and "Distances from the centre" in said
    named = "--template template.npy --radius 0.1 --mechanism tangent-gaussian"
    released(f"release private.csv {IN_SPACE} {named} --mu 1 --out r.json --plot r.png")
    assert (folder / "r.png").stat().st_size > 5000
    code, said = run(f"release private.csv {IN_SPACE} --radius 0.1 --epsilon 1 --out s.json")
    assert code == 2 and "--center is needed" in said


@pytest.mark.parametrize(
    ("kind", "names", "columns"),
    [
        ("shapes3d", "X0,X1,X2,X3,Y0,Y1,Y2,Y3,Z0,Z1,Z2,Z3", "X0,Y0,Z0,X1,Y1,Z1,X2,Y2,Z2,X3,Y3,Z3"),
        ("shapes", "x1,x2,x3,y1,y2,y3", "x1,y1,x2,y2,x3,y3"),
        ("shapes", "x1,x2,x3,y3,y2,y1", "x1,y1,x2,y2,x3,y3"),
        ("shapes", "x[1],y[1],x[3],y[2],x[2],y[3]", "x[1],y[1],x[2],y[2],x[3],y[3]"),
        ("shapes", "lm1_y,lm1_x,lm2_y,lm2_x,lm3_y,lm3_x", "lm1_x,lm1_y,lm2_x,lm2_y,lm3_x,lm3_y"),
    ],
)
def test_names_in_another_order_are_refused_with_the_right_one(kind, names, columns, folder):
    numbers = np.random.default_rng(0).normal(size=(20, len(names.split(","))))
    np.savetxt("other.csv", numbers, delimiter=",", header=names, comments="")
    with pytest.raises(ValueError, match=re.escape(f"say columns {columns}")):
        read("other.csv", kind, header=True)
    assert read("other.csv", kind, header=True, columns=columns).shape[0] == 20
    assert read("other.csv", kind, header=True, columns=names).shape[0] == 20  # said, so taken


@pytest.mark.parametrize(
    "names", ["x,y,x.1,y.1,x.2,y.2", "x,y,x,y,x,y", "x_mean,y_mean,a,b,c,d", "P1_X,P1_Y,P2_X,P2_Y,P3_X,P3_Y"]
)
def test_names_that_say_no_other_order_are_taken(names, folder):
    np.savetxt("fine.csv", np.random.default_rng(0).normal(size=(20, 6)), delimiter=",", header=names, comments="")
    assert read("fine.csv", "shapes", header=True).shape == (20, 3)


def test_landmarks_on_a_template_have_names_in_order_too(folder):
    names = "x1,x2,x3,x4,x5,y1,y2,y3,y4,y5,z1,z2,z3,z4,z5"
    np.savetxt("other.csv", np.random.default_rng(0).normal(size=(20, 15)), delimiter=",", header=names, comments="")
    with pytest.raises(ValueError, match="say columns x1,y1,z1,x2"):
        read("other.csv", "euclidean", header=True, template="template.npy")


@pytest.mark.parametrize(
    ("space", "point", "kind"),
    [
        (Product(Sphere(2), Euclidean(1)), [0.0, 0.0, 1.0, 0.0], KNGMechanism),
        *exhaustive(
            (Product(Sphere(2), Euclidean(1)), [0.0, 0.0, 1.0, 0.0], GibbsMechanism),
            (Product(SPACE, Euclidean(1)), [*SPACE.origin.reshape(-1), 0.0], KNGMechanism),
        ),
    ],
)
def test_products_are_released_from(space, point, kind):
    """The facts of a product are asked for within programs, too."""
    ball = GeodesicBall(space, point, 0.1)
    assert np.all(np.isfinite(kind(ball, 1.0).release(np.tile(ball.center, (30, 1))).value))
