"""Released values are loaded, drawn and shown from their records alone."""

import html
import json
import math
import re

import jax.numpy as jnp
import numpy as np
import pytest
from IPython.core.formatters import HTMLFormatter
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d import proj3d
from PIL import Image
from strategies import exhaustive
from typer.testing import CliRunner

from jaxgeodp import (
    SPD,
    ConvexRisk,
    Euclidean,
    GeodesicBall,
    GibbsMechanism,
    Grassmann,
    Hyperbolic,
    LandmarkLaplace,
    MetricLaplace,
    PlanarShapes,
    Product,
    Rotations,
    Shapes3D,
    Sphere,
    TangentLaplace,
    WrappedGaussian,
)
from jaxgeodp.cli import app
from jaxgeodp.functional import FunctionalGaussianMechanism, PeriodicKernel
from jaxgeodp.mechanisms import plan_mechanisms
from jaxgeodp.mechanisms.names import MECHANISMS
from jaxgeodp.pictures import color_of, draw_record, page_of, picture_of
from jaxgeodp.pictures.colors import OTHERS
from jaxgeodp.pictures.lines import landmarks_to_turn, lines_of
from jaxgeodp.pictures.sweep import Line, draw_sweep
from jaxgeodp.privacy.release import Release, record_digest


def released(manifold, radius=0.3, n=500, make=TangentLaplace):
    ball = GeodesicBall(manifold, manifold.origin, radius)
    return make(ball, 1.0).release(np.stack([np.asarray(manifold.origin)] * n))


def curves():
    mechanism = FunctionalGaussianMechanism(PeriodicKernel(1.0), 1e-3, 1.0, 1.0)
    return mechanism.release(np.random.default_rng(0).normal(size=(30, 4, 16)) * 0.01)


RELEASES = {
    "direction": lambda: released(Sphere(2)),
    "direction in four dimensions": lambda: released(Sphere(3)),
    "ellipsoid": lambda: released(SPD(3)),
    "matrix": lambda: released(SPD(5)),
    "axes": lambda: released(Rotations()),
    "landmarks": lambda: released(PlanarShapes(6)),
    "outline": lambda: released(PlanarShapes(40), n=5000),
    "vector": lambda: released(Euclidean(4)),
    "subspace": lambda: released(Grassmann(4, 2)),
    "pair": lambda: released(Product(Sphere(2), SPD(2))),
    "landmarks off the manifold": lambda: released(PlanarShapes(6), make=LandmarkLaplace),
    "by a Gaussian mechanism": lambda: released(Sphere(2), make=WrappedGaussian),
    "curves": curves,
}


# Pictures of all kinds of values but those that are a grid of numbers again, or more of the same.
AGAIN = ("matrix", "outline", "pair")


@pytest.mark.parametrize("name", [*(name for name in RELEASES if name not in AGAIN), *exhaustive(*AGAIN)])
def test_a_release_is_saved_loaded_drawn_and_shown(name, tmp_path):
    release = RELEASES[name]()
    release.save(tmp_path / "release.json")
    again = Release.load(tmp_path / "release.json")
    assert again.record == json.loads(release.to_json())
    assert again.value.dtype == release.value.dtype
    np.testing.assert_array_equal(again.as_array(), release.value)
    again.as_array()[:] = 0.0
    np.testing.assert_array_equal(again.value, release.value)
    assert again.plot().axes, "without a file it is a figure"
    again.plot(tmp_path / "value.png")
    with Image.open(tmp_path / "value.png") as picture:
        # Something is drawn: not all of it has one colour.
        assert len(picture.convert("L").getcolors(256)) > 5
    page = page_of(again.record, record_digest(again.record))
    assert page.startswith("<!doctype html>") and record_digest(release.record) in page
    assert ("<canvas" in page) == (name in ("direction", "ellipsoid", "axes", "by a Gaussian mechanism"))
    # Complete in itself: nothing is loaded from elsewhere. (The letters of a picture spell "http" once in 300.)
    page = re.sub(r'base64,[^"]*', "", page)
    assert "http" not in page.replace("http-equiv=", "") and "src=" not in page.replace('src="data:', "")


def test_the_lines_lie_where_the_value_is():
    record = released(SPD(3)).record
    value = np.array(record["value"])
    ends = np.concatenate([line.points for line in lines_of(record)[-3:]])
    sizes = np.linalg.norm(ends, axis=1)[::2]
    expected = np.sqrt(np.linalg.eigvalsh(value) / np.linalg.eigvalsh(value)[-1])
    np.testing.assert_allclose(np.sort(sizes), expected, rtol=1e-9)
    record = released(Sphere(2)).record
    rim, arrow, tip = lines_of(record)[-3:]
    np.testing.assert_allclose(arrow.points, [np.zeros(3), record["value"]], atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(tip.points - record["value"], axis=1), 0.04, rtol=1e-3)
    angles = np.arccos(rim.points @ np.array(record["ball"]["center"]))
    np.testing.assert_allclose(angles, 0.3, atol=1e-9)
    around = lines_of(record | {"region": 0.1})[-3]
    np.testing.assert_allclose(np.arccos(around.points @ np.array(record["value"])), 0.1, atol=1e-7)
    doubled = lines_of(released(SPD(3)).record | {"value": value, "limit": 4.0 * np.linalg.eigvalsh(value)[-1]})
    np.testing.assert_allclose(2.0 * np.concatenate([line.points for line in doubled[-3:]]), ends, rtol=1e-9)


@pytest.mark.parametrize("turn", [0.0, 0.5, 2.0])
def test_the_axes_of_a_rotation_are_seen_beside_each_other(turn):
    """About z by .5, seen from where Matplotlib looks from by itself, y lies behind z."""
    record = released(Rotations()).record
    frame = np.array([[math.cos(turn), -math.sin(turn), 0.0], [math.sin(turn), math.cos(turn), 0.0], [0.0, 0.0, 1.0]])
    draw_record(record | {"value": frame.tolist()}, figure := Figure())
    axes = figure.axes[0]
    figure.canvas.draw()
    tips = np.array([proj3d.proj_transform(*tip, axes.get_proj())[:2] for tip in (*frame.T, np.zeros(3))])
    first, second, third = (tips[:3] - tips[3]) / np.linalg.norm(tips[:3] - tips[3], axis=1)[:, None]
    assert max(first @ second, first @ third, second @ third) < math.cos(math.radians(40))


@pytest.mark.parametrize("place", ["about", "geodesic"])
def test_a_moment_is_a_matrix_whatever_the_manifold(place):
    """Of rotations it is 3 x 3, too, and no rotation."""
    record = released(Rotations()).record
    moment = {"value": np.diag([0.3, 0.2, 0.1]).tolist(), "statistic": "second moment of logarithms"}
    record |= {place: record["value"], "frame": [record["value"]] * 3, **moment}
    assert lines_of(record) is None
    draw_record(record, figure := Figure())
    axes = figure.axes[0]
    assert axes.get_title() == "second moment of logarithms, in the frame of the record"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2", "3"]
    assert "0.30" in {text.get_text() for text in axes.texts}
    small = record | {"value": np.diag([3e-4, 2e-4, -1e-4]).tolist()}
    draw_record(small, figure := Figure())
    assert figure.axes[0].get_title().endswith("in the frame of the record; divided by 1e-3")
    assert {"0.30", "0.20", "-0.10"} <= {text.get_text() for text in figure.axes[0].texts}


def test_rows_of_a_subspace_are_counted():
    """Ticks between them, at -0.5 and the like, mean nothing, and ran into each other."""
    draw_record(released(Grassmann(4, 2)).record, figure := Figure())
    axes = figure.axes[0]
    assert axes.get_xlim() == (0.5, 2.5) and axes.get_ylim() == (4.5, 0.5)
    assert all(float(tick).is_integer() for tick in [*axes.get_xticks(), *axes.get_yticks()])


def test_pictures_say_what_their_lines_mean():
    captions = {
        SPD(3): "red: half axes, 1, 1, 1 long",
        Sphere(2): "red: the released direction; green: rim of the public ball",
        Rotations(): "grey: fixed axes",
    }
    for manifold, words in captions.items():
        record = released(manifold).record | {"value": np.asarray(manifold.origin).tolist()}
        figure = Figure()
        draw_record(record, figure)
        assert figure.axes[0].get_title().startswith(words)
        draw_record(record | {"caption": "another"}, other := Figure())
        assert other.axes[0].get_title() == "another"


def test_landmarks_in_space_are_turned_and_drawn_from_two_sides():
    own = np.array([[0, 0, 0], [4, 0, 1], [4, 2, 0], [0, 2, 1], [2, 1, 3.0]])
    own = own - own.mean(axis=0)
    ball = GeodesicBall(Shapes3D(5), Shapes3D(5).project(own), 0.02)
    record = TangentLaplace(ball, 1.0).release(np.tile(ball.center, (5000, 1, 1))).record
    lines = landmarks_to_turn(record)
    links, rings, dots = lines[:5], lines[5:10], lines[10:]
    assert [dot.label for dot in dots] == list("12345") and {ring.label for ring in rings} == {None}
    for link, ring, dot in zip(links, rings, dots, strict=True):
        np.testing.assert_array_equal(link.points, np.concatenate([ring.points, dot.points]))
    # Distances between landmarks are those of the value and of the centre.
    for found, given in ((dots, record["value"]), (rings, record["ball"]["center"])):
        points = np.concatenate([one.points for one in found])
        apart = [np.linalg.norm(np.subtract(x[:, None], x[None]), axis=-1) for x in (points, np.array(given))]
        np.testing.assert_allclose(*apart, atol=1e-12)
    assert "<canvas" in page_of(record, "0")
    draw_record(record, figure := Figure())
    assert [axes.get_xlabel() for axes in figure.axes] == ["principal axis 1"] * 2
    template = {"template": own.tolist()}
    flat = {"value": own.ravel().tolist(), "manifold": {"name": "Euclidean", "dim": 15}, "prepared": template}
    assert len(landmarks_to_turn(record | flat)) == 15


def test_a_point_of_the_hyperbolic_plane_is_drawn_in_the_disc():
    space = Hyperbolic(2, curvature=-0.25)  # distances are doubled, and the hyperboloid is of x0^2 - ... = 4
    center = space.exp(space.origin, jnp.array([0.0, 1.0, -0.5]))
    record = TangentLaplace(GeodesicBall(space, center, 0.5), 1.0).release(np.tile(center, (4000, 1))).record
    record |= {"region": 0.1}
    draw_record(record, figure := Figure())
    *_, rim, region, dot = figure.axes[0].lines
    for line, middle, radius in ((rim, record["ball"]["center"], 0.5), (region, record["value"], 0.1)):
        disc = np.array(line.get_xydata())
        square = np.sum(disc**2, axis=1, keepdims=True)
        points = 2.0 * np.concatenate([1.0 + square, 2.0 * disc], axis=1) / (1.0 - square)
        distances = [float(space.dist(jnp.asarray(middle), point)) for point in points[::30]]
        np.testing.assert_allclose(distances, radius, rtol=1e-6)
    value = np.array(record["value"])
    np.testing.assert_allclose(dot.get_xydata()[0], value[1:] / (2.0 + value[0]))
    assert "blue: rim of the region" in figure.axes[0].get_title()


def test_a_page_has_what_a_committee_asks():
    record = released(Sphere(2)).record
    page = page_of(record, "0")
    for words in ("In plain words", "right at most 73.2 %", "The custodian&#x27;s word", "Approved by", "viewport"):
        assert words in page
    assert "right at most" not in page_of(record | {"guarantee": {"kind": "not proven"}}, "0")


def test_curves_in_space_are_lines():
    record = curves().record | {"value": np.arange(60.0).reshape(2, 10, 3).tolist()}
    assert [line.points.shape for line in lines_of(record)] == [(11, 3)] * 2  # closed
    assert "<canvas" in page_of(record, "0")


def test_a_face_stands_upright_and_its_curves_are_closed():
    """A face is drawn with y of the file, its height, upwards: z of the picture."""
    angles = 2.0 * np.pi * np.arange(16) / 16
    rings = [np.stack([r * np.cos(angles), 3.0 * r * np.sin(angles), np.full(16, 0.1)], axis=1) for r in (0.1, 0.2)]
    record = curves().record | {"value": np.array(rings).tolist(), "mechanism": "FaceMeanMechanism"}
    lines = lines_of(record)
    for line, ring in zip(lines, rings, strict=True):
        np.testing.assert_array_equal(line.points[0], line.points[-1])
        np.testing.assert_allclose(line.points[:-1, 2], ring[:, 1])
        np.testing.assert_allclose(line.points[:-1, [0, 1]], ring[:, [0, 2]] * [1.0, -1.0])
    figure = Figure()
    draw_record(record, figure)
    (axes,) = figure.axes
    assert axes.get_zlim()[1] - axes.get_zlim()[0] < 1.3  # the face fills its frame
    opened = record | {"statistic": {"name": "RKHSMean", "kernel": {"name": "IntervalKernel"}}}
    assert [len(line.points) for line in lines_of(opened)] == [16, 16]


@pytest.mark.parametrize(("size", "words"), [(1.0, ""), (7e-4, "divided by 1e-3"), (4e5, "divided by 1e5")])
def test_numbers_of_small_and_large_matrices_can_be_read(size, words):
    record = released(SPD(5)).record | {"value": (size * (np.eye(5) + 0.2)).tolist(), "caption": "mean"}
    figure = Figure()
    draw_record(record, figure)
    axes = figure.axes[0]
    assert axes.get_title() == "; ".join(filter(None, ["mean", words]))
    numbers = [float(text.get_text()) for text in axes.texts]
    assert 0.1 <= max(numbers) < 10.0 and max(numbers) == pytest.approx(6.0 * min(numbers), abs=0.05)


def test_pictures_beside_each_other_have_captions_and_one_scale():
    many = PlanarShapes(30)
    outline = np.asarray(many.project(jnp.exp(2j * np.pi * np.arange(30) / 30)))
    shape = WrappedGaussian(GeodesicBall(many, outline, 0.2), 1.0).release(np.stack([outline] * 500))
    vector, array = released(Euclidean(2)), released(SPD(13))
    for record in (vector.record, array.record, shape.record):
        figure = Figure()
        draw_record(record | {"caption": "one of three", "limit": 50.0}, figure)
        assert figure.axes[0].get_title() == "one of three"
        if record is vector.record:
            assert figure.axes[0].get_ylim()[1] >= 50.0
        if record is array.record:
            assert figure.axes[0].images[0].get_clim() == (-50.0, 50.0)


def test_small_landmarks_keep_their_digits_on_a_page():
    space = Shapes3D(5)
    record = released(space, 0.2).record
    tiny = 1e-4 * np.random.default_rng(0).normal(size=(5, 3))
    small = {"manifold": {"name": "Euclidean"}, "value": tiny.tolist(), "prepared": {"template": tiny.tolist()}}
    page = page_of(record | small, "0")
    found = [line["p"] for line in json.loads(html.unescape(re.search(r'data-lines="([^"]*)"', page)[1]))]
    assert len({tuple(point) for line in found for point in line}) == 5


def test_a_page_shows_what_a_foreign_record_says_as_text(tmp_path):
    record = released(Euclidean(3)).record
    hostile = json.loads(json.dumps(record).replace("TangentLaplace", "<script>alert(1)</script>"))
    hostile["manifold"]["name"] = "<b>Euclidean</b>"
    page = page_of(hostile, "0")
    assert "<script>alert" not in page and "<b>" not in page


def test_the_command_shows_what_a_promise_hangs_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sphere = GeodesicBall(Sphere(2), Sphere(2).origin, 0.4)

    def loss(x, y):
        return 0.5 * jnp.sum((x - y) ** 2)

    data = np.tile(Sphere(2).origin, (50, 1))
    own = ConvexRisk(loss, lipschitz=1.0, convexity_bound=0.5, smoothness=2.0)
    GibbsMechanism(sphere, 1.0, own).release(data).save("own.json")
    MetricLaplace(Sphere(2), 2.0).release(data[:1]).save("metric.json")
    texts = [CliRunner().invoke(app, ["show", name]).output for name in ("own.json", "metric.json")]
    assert "supposed: lipschitz=1" in texts[0] and "barrier: radius" in texts[0]
    assert "epsilon = 2 per unit of distance" in texts[1]


def test_the_command_shows_a_record(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    released(SPD(2)).save("release.json")

    def run(*arguments):
        return CliRunner().invoke(app, ["show", *arguments])

    result = run("release.json", "--html", "page.html")
    assert result.exit_code == 0 and "promise: pure, epsilon = 1, replace-one" in result.output
    assert record_digest(json.loads((tmp_path / "release.json").read_text())) in result.output
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    assert run("release.json", "--html", "page.html").exit_code == 2
    (tmp_path / "described").mkdir()
    for part in ("description", "mean", "variance", "covariance"):
        (tmp_path / "described" / f"{part}.json").write_text((tmp_path / "release.json").read_text())
    result = run("described")
    assert result.exit_code == 2 and "does not hold exactly one description" in " ".join(result.output.split())
    assert run("release.json", "--html", "page.html", "--overwrite").exit_code == 0
    for content in ("", "{}", "[1]", '{"value": 1, "numerics": {"dtype": "float64"}, "guarantee": {}}'):
        (tmp_path / "no.json").write_text(content)
        result = run("no.json")
        assert result.exit_code == 2 and "is not a release record" in " ".join(result.output.split())
    half = released(SPD(2)).record | {"guarantee": {"kind": "pure", "epsilon": "x", "adjacency": "replace-one"}}
    (tmp_path / "half.json").write_text(json.dumps(half))
    result = run("half.json", "--html", "half.html")
    assert result.exit_code == 2 and not (tmp_path / "half.html").exists()
    assert run("nothing.json").exit_code == 1


def test_a_release_with_a_picture(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("data.npy", np.zeros((20, 2)))
    own = (
        "release",
        "data.npy",
        "--manifold",
        "euclidean",
        "--radius",
        "1",
        "--epsilon",
        "1",
        "--mechanism",
        "tangent",
    )
    for plot, code in (("value.pdf", 2), ("release.json", 2), ("data.npy", 2), ("value.png", 0)):
        result = CliRunner().invoke(app, [*own, "--out", "release.json", "--plot", plot])
        assert result.exit_code == code, result.output
        assert (tmp_path / "release.json").exists() == (code == 0)
    assert (tmp_path / "value.png").stat().st_mtime == (tmp_path / "release.json").stat().st_mtime
    assert CliRunner().invoke(app, [*own, "--out", "other.json", "--plot", "value.png"]).exit_code == 2


def test_each_mechanism_has_a_colour_of_its_own():
    """By its name in the registry and by that of its class; the forms of one class differ. A new one may do without."""
    colors = {name: color_of(name) for name in (*MECHANISMS, "located", "located-gaussian")}
    own = {name: color for name, color in colors.items() if color not in OTHERS}
    assert {"kng", "laplace", "wrapped", "located"} <= own.keys() and len(set(own.values())) == len(own)
    for name, entry in MECHANISMS.items():
        if isinstance(entry.make, type) and name in own:
            assert color_of(entry.make.__name__) == own[name]
    assert color_of("geometric") == color_of("geometric") in OTHERS


def test_the_picture_of_a_sweep_says_what_its_axes_and_bars_are():
    rows = [
        {"label": f"{name}, n={n}, epsilon={e}", "n": n, "on_manifold": inside}
        | {"distance": 1 / n / e if inside else float("nan"), "euclidean": 2 / n / e}
        | {"distance_se": 0.01 / n, "euclidean_se": 0.02 / n}
        for name, inside in (("kng, tight", 1.0), ("kng, theorem", 1.0), ("euclidean, tight", 0.0))
        for e in (0.5, 1.0)
        for n in (10, 1000)
    ]
    rows.append({"label": "refused", "refusal": "too large", "n": 7})
    settings = [row["label"].replace(f", n={row['n']}", "") for row in rows]
    lines = [Line(own.partition(",")[0], own, int("theorem" in own), int("1.0" in own)) for own in settings]
    figure = Figure()
    draw_sweep(rows, lines, "sphere(2)", 1000, figure)
    left, right = figure.axes
    assert "geodesic" in left.get_ylabel() and "Euclidean" in right.get_ylabel()
    assert "1,000 replicates; bars: ± 2 standard errors" in figure.get_suptitle()
    assert [len(axes.containers) for axes in (left, right)] == [4, 6], "values off the manifold have no geodesic error"
    drawn = {bars.get_label(): bars.lines[0] for bars in right.containers}
    assert drawn["kng, tight, epsilon=1.0"].get_color() == drawn["kng, theorem, epsilon=0.5"].get_color()
    assert len({(line.get_color(), line.get_linestyle(), line.get_marker()) for line in drawn.values()}) == 6
    np.testing.assert_allclose(drawn["euclidean, tight, epsilon=0.5"].get_ydata(), [0.4, 0.004])
    (segments,) = right.containers[0].lines[2]
    np.testing.assert_allclose(segments.get_segments()[0][:, 1], [0.4 - 0.004, 0.4 + 0.004])


def test_a_picture_is_a_png():
    assert picture_of(released(PlanarShapes(5)).record).startswith(b"\x89PNG")


def test_a_release_is_drawn_in_axes_of_others():
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2)
    assert released(Sphere(2)).plot(ax=axes[0]) is figure
    assert axes[0] not in figure.axes and axes[1] in figure.axes
    (part,) = figure.subfigs
    assert part.axes[0].name == "3d" and part.axes[0].lines
    pyplot.close(figure)


def test_releases_and_plans_show_themselves():
    release = released(SPD(3))
    text = repr(release)
    assert text.startswith("Release(TangentLaplace, n = 500, epsilon = 1, value of shape (3, 3):") and len(text) < 300
    shown = HTMLFormatter()(release)
    assert "at most 73.2 %" in shown and 'src="data:image/png' in shown and "<script" not in shown
    ball = GeodesicBall(Sphere(2), Sphere(2).origin, 0.4)
    plans = plan_mechanisms(ball, 60, epsilon=1.0, draws=20, names=("tangent", "kng"))
    lines = repr(plans).splitlines()
    assert lines[0].split("  ")[0] == "mechanism" and len(lines) == 3 and "TangentLaplace" in repr(plans)
    assert plans[0].error == plans[0].error, "still a list"


def test_a_face_is_turned_as_a_surface(tmp_path):
    around = np.linspace(0.0, 2.0 * np.pi, 24, endpoint=False)
    rings = [np.stack([k * np.cos(around), k * np.sin(around), np.full(24, -0.1 * k * k)], axis=1) for k in range(1, 6)]
    record = curves().record | {"value": np.array(rings).tolist()}
    pages = []
    for mechanism in ("FaceMeanMechanism", "FunctionalGaussianMechanism"):
        (tmp_path / "face.json").write_text(json.dumps(record | {"mechanism": mechanism}))
        own = ["show", str(tmp_path / "face.json"), "--html", str(tmp_path / f"{mechanism}.html")]
        assert CliRunner().invoke(app, own).exit_code == 0
        pages.append((tmp_path / f"{mechanism}.html").read_text())
    mesh = json.loads(html.unescape(re.search('data-mesh="([^"]*)"', pages[0])[1]))
    vertices = np.array(mesh["v"])
    assert np.ptp(vertices[:, 0]) == pytest.approx(1.0) and np.ptp(vertices[:, 2]) == pytest.approx(0.25, abs=0.01)
    assert "data-mesh" not in pages[1] and "data-lines" in pages[1]
