"""What another radius, n or budget would change: the numbers, the programs they take, and their picture."""

import dataclasses
import io
import json
import math

import jax
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image
from typer.testing import CliRunner

from jaxgeodp import Euclidean, GeodesicBall, Sphere
from jaxgeodp.checks import InputError
from jaxgeodp.cli import app
from jaxgeodp.manifolds.described import describe
from jaxgeodp.mechanisms import Curves, Plan, PlanCurves, plan_curves, plan_mechanisms
from jaxgeodp.pictures import draw_plan, picture_of_plan

ON_A_LINE = ("plan", "--manifold", "euclidean(1)", "--epsilon", 1, "--draws", 40)


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def simple_plans(ball, n, epsilon, mu, spread, draws):
    """Errors 2r/(n epsilon) of one mechanism and half of it of another, which refuses radii below 0.2."""
    if n < 20:
        raise InputError("too few")
    error = 2.0 * ball.radius / n / (mu if epsilon is None else epsilon)
    refused = Plan("kng", "kng", "", refusal="too small a radius")
    kng = refused if ball.radius < 0.2 else Plan("kng", "KNGMechanism", "", error=0.5 * error)
    return [kng, Plan("euclidean", "EuclideanLaplace", "", error=error), Plan("laplace", "laplace", "", refusal="no")]


@pytest.fixture
def simple(monkeypatch):
    monkeypatch.setattr("jaxgeodp.mechanisms.curves.plan_mechanisms", simple_plans)


def test_curves_go_through_the_plan_and_need_its_programs_only():
    compiled = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, duration, **facts: compiled.append(event) if event.endswith("backend_compile_duration") else None
    )
    ball, heard = GeodesicBall(Euclidean(1), [0.0], 0.3), []
    plans = plan_mechanisms(ball, n=100, epsilon=1.0, mu=0.5, draws=40)
    compiled.clear()
    curves = plan_curves(
        ball, n=100, epsilon=1.0, mu=0.5, draws=40, report=lambda done, total: heard.append((done, total))
    )
    assert compiled == []
    assert heard == [(done, 19) for done in range(1, 20)]
    for panel in (curves.radius, curves.n, curves.strength):
        given = panel.errors[:, panel.values == panel.given][:, 0]
        assert dict(zip(curves.mechanisms, given, strict=True)) == {plan.mechanism: plan.error for plan in plans}
        assert panel.errors.shape == (len(plans), 7)
    assert np.all(np.diff(curves.radius.errors) > 0)
    assert np.all(np.diff(curves.n.errors) < 0) and np.all(np.diff(curves.strength.errors) < 0)
    gaussian = curves.parameters.index("mu")
    alone = plan_mechanisms(ball, n=100, mu=4.0, draws=40, names=["gaussian", "wrapped-gaussian", "gibbs"])
    assert curves.strength.errors[gaussian, -1] in [plan.error for plan in alone]
    compiled.clear()
    plan_curves(ball, n=900, epsilon=0.7, mu=0.2, draws=40)
    assert compiled == []


def test_curves_know_where_mechanisms_refuse_and_assumption_1_ends(simple):
    ball = GeodesicBall(Sphere(2), Sphere(2).origin, 0.6)
    curves = plan_curves(ball, 80, 1.0)
    assert curves.mechanisms == ("KNGMechanism", "EuclideanLaplace")
    assert curves.on_manifold == (True, False)
    np.testing.assert_allclose(curves.radius.values[[0, 2, 4]], [0.15, 0.3, 0.6])
    assert curves.radius.values[-1] == pytest.approx(0.95 * math.pi / 4)
    flat = plan_curves(GeodesicBall(Euclidean(2), [0.0, 0.0], 0.5), 80, 1.0)
    assert flat.radius.values[-1] == 1.0, "twice the radius, where nothing ends it"
    # As large as it may be: no radius twice.
    radius = curves.radius.values[-1]
    assert np.all(np.diff(plan_curves(GeodesicBall(Sphere(2), Sphere(2).origin, radius), 80, 1.0).radius.values) > 0)
    np.testing.assert_allclose(curves.radius.values[-1], 0.95 * np.pi / 4)
    assert np.isnan(curves.radius.errors).tolist() == [[True] + [False] * 6, [False] * 7]
    assert curves.n.values.tolist() == [10, 20, 40, 80, 160, 320, 640]
    assert np.isnan(curves.n.errors).tolist() == [[True] + [False] * 6] * 2
    np.testing.assert_allclose(curves.strength.errors[1], 0.015 / 2.0 ** np.arange(-3, 4))
    near = plan_curves(GeodesicBall(Sphere(2), Sphere(2).origin, 0.78), 80, mu=2.0)
    assert near.radius.values[-1] == near.radius.given == 0.78 and near.strength.given == 2.0
    assert plan_curves(ball, 20, 1.0).n.values.tolist() == [2, 5, 10, 20, 40, 80, 160]
    with pytest.raises(InputError, match="too few"):
        plan_curves(ball, 19, 1.0)


def curves_by_hand():
    values, errors = np.array([1.0, 2.0, 4.0]), np.array([[3.0, 2.0, 1.0], [np.nan, 5.0, 4.0], [2.0, 1.0, 0.5]])
    panel = Curves(2.0, values, errors, 0.1 * errors)
    names, ball = ("LaplaceMechanism", "EuclideanLaplace", "WrappedGaussian"), GeodesicBall(Euclidean(1), [0.0], 2.0)
    parameters, inside = ("epsilon", "epsilon", "mu"), (True, False, True)
    n = Curves(200_000, 100_000 * values.astype(int), errors, 0.1 * errors)
    return PlanCurves(ball, names, parameters, inside, 2.0, 0.5, panel, n, panel)


def test_the_picture_has_three_panels_with_the_same_colours():
    curves = curves_by_hand()
    figure = Figure()
    draw_plan(curves, figure)
    first, second, third = figure.axes
    assert first.get_ylabel() == "expected error (distance)" and second.get_xlabel() == "n, number of records"
    assert "mu = 0.25 epsilon" in third.get_xlabel()
    drawn = [{line.get_label(): line for line in axes.get_lines()} for axes in figure.axes]
    for axes, lines in zip(figure.axes, drawn, strict=True):
        lines |= {bars.get_label(): bars.lines[0] for bars in axes.containers}
    (segments,) = first.containers[0].lines[2]
    np.testing.assert_allclose(segments.get_segments()[0][:, 1], [3.0 - 0.6, 3.0 + 0.6])
    assert "± 2 standard errors" in figure.get_suptitle()
    labels = ["LaplaceMechanism", "EuclideanLaplace, ambient distance", "WrappedGaussian (mu)"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [*labels, "as given"]
    assert len({drawn[0][label].get_color() for label in labels}) == 3
    for label, style in zip(labels, ("-", ":", "--"), strict=True):
        assert {lines[label].get_color() for lines in drawn} == {drawn[0][label].get_color()}
        assert drawn[0][label].get_linestyle() == style
    assert np.isnan(drawn[0][labels[1]].get_ydata()).tolist() == [True, False, False]
    assert [lines["as given"].get_xdata()[0] for lines in drawn] == [2.0, 200_000, 2.0]
    assert "200,000" in [text.get_text() for text in second.get_xticklabels()]
    assert {axes.get_xscale() + axes.get_yscale() for axes in figure.axes} == {"loglog"}
    of_mu = Figure()
    draw_plan(dataclasses.replace(curves, epsilon=None, mu=2.0), of_mu)
    assert of_mu.axes[2].get_xlabel() == "mu, privacy parameter"
    assert Image.open(io.BytesIO(picture_of_plan(curves))).format == "PNG"


def test_plan_draws_for_the_ball_of_a_file(tmp_path):
    ball, plot = tmp_path / "ball.json", tmp_path / "plan.png"
    ball.write_text(json.dumps({"manifold": describe(Euclidean(1)), "center": [7.0], "radius": 0.25}))
    result = run(*ON_A_LINE, "--n", 100, "--ball", ball, "--plot", plot)
    assert result.exit_code == 0, result.output
    assert "radius 0.25" in result.output and "plan.png" in result.output
    assert Image.open(plot).size[0] > 1000


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--radius", 1, "--plot", "plan.jpg"), "--plot plan.jpg: must end in .png"),
        (("--radius", 1, "--plot", "old.png"), "--plot old.png exists"),
        (("--ball", "ball.png", "--plot", "ball.png", "--overwrite"), "--plot ball.png is another file of this call"),
        (("--radius", 1, "--plot", "nowhere/plan.png"), "--plot nowhere/plan.png: the folder nowhere does not exist"),
        (("--radius", 1, "--ball", "ball.json"), "give either --radius or --ball, not both"),
        ((), "give either --radius or --ball, not both"),
        (("--ball", "nothing.json"), "there is no such file"),
    ],
)
def test_plan_refuses_before_it_works(tmp_path, monkeypatch, options, complaint):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("jaxgeodp.cli.plan.plan_mechanisms", lambda *_: pytest.fail("it worked"))
    (tmp_path / "old.png").write_bytes(b"old")
    result = run(*ON_A_LINE, "--n", 100, *options)
    assert result.exit_code == 2 and complaint in " ".join(result.output.split())
    assert (tmp_path / "old.png").read_bytes() == b"old"
