"""One registry feeds the command line, plans, sweeps and audits: what a plugin enters, they know."""

import ast
import dataclasses
import json
import math
import pathlib
import re

import jax.numpy as jnp
import numpy as np
import pytest
from strategies import exhaustive
from typer.testing import CliRunner

import jaxgeodp
from jaxgeodp import SPD, Grassmann, Manifold, Product, PureDP, Sphere
from jaxgeodp.bounds.sensitivity import Sensitivity
from jaxgeodp.checks import InputError
from jaxgeodp.cli.app import app
from jaxgeodp.cli.completion import audited_names, released_names, simulated_names, summed_names
from jaxgeodp.cli.lazily import loaded
from jaxgeodp.manifolds import names as manifold_names
from jaxgeodp.manifolds import tables
from jaxgeodp.manifolds.names import NamedManifold, manifold_named, records_in
from jaxgeodp.mechanisms import BallMechanism
from jaxgeodp.mechanisms import names as mechanism_names
from jaxgeodp.mechanisms.names import NamedMechanism
from jaxgeodp.releases.noise import Coordinates
from jaxgeodp.releases.vector import Summary, vector_law
from jaxgeodp.statistics.records import points_and_weights


@dataclasses.dataclass(frozen=True)
class Scales(Manifold):
    """A plugin: positive numbers with the metric du^2/p^2, a line."""

    dim = 1
    shape = (1,)
    homogeneous = True
    curvature_bounds = (0.0, 0.0)
    injectivity_radius = math.inf
    origin = np.ones(1)

    def inner(self, point, u, v):
        return jnp.sum(u * v / point**2)

    def exp(self, point, tangent):
        return point * jnp.exp(tangent / point)

    def log(self, p, q):
        return p * jnp.log(q / p)

    def project(self, x):
        return jnp.where(x > 0, x, jnp.nan)

    def to_tangent(self, point, v):
        return v


@dataclasses.dataclass(frozen=True)
class MeanOfScales(Summary):
    """A plugin: the logarithm of the geometric mean."""

    def clipped(self, ball, data):
        return ball.clip(data)

    def carried(self, ball, data):
        return ball, ball.clip(data), lambda x: x, lambda value: value

    def center(self, ball, points):
        return None

    def location(self, ball, points, center):
        points, weights = points_and_weights(points)
        return weights @ jnp.log(points)

    def to_value(self, ball, vector):
        return jnp.exp(vector)

    def to_vector(self, ball, x):
        return jnp.log(x), 0.0

    def as_point(self, ball, value):
        return value, jnp.asarray(True)


@dataclasses.dataclass(frozen=True, eq=False)
class GeometricMeanLaplace(BallMechanism):
    """A plugin: the mean of logarithms plus Laplace noise, on scales."""

    epsilon: float

    @property
    def guarantee(self):
        return PureDP(self.epsilon)

    def law(self, n, shape=()):
        sensitivity = Sensitivity(2.0 * self.ball.radius / n, "2r/n")
        return vector_law(self, n, MeanOfScales(), Coordinates(), sensitivity, self.epsilon, "geometric mean")


@pytest.fixture
def plugin(monkeypatch):
    monkeypatch.setitem(manifold_names.MANIFOLDS, "scales", NamedManifold(Scales, (), lambda t: ((), t)))
    suits = lambda manifold: isinstance(manifold, Scales)  # noqa: E731
    monkeypatch.setitem(mechanism_names.MECHANISMS, "geometric", NamedMechanism(GeometricMeanLaplace, suits=suits))


def run(*arguments):
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    return result.output


def test_a_plugin_reaches_release_plan_sweep_and_audit(plugin, tmp_path):
    np.save(tmp_path / "data.npy", np.exp(np.random.default_rng(0).uniform(-1, 1, (50, 1))))
    out = tmp_path / "release.json"
    own = ["--manifold", "scales", "--radius", 1.5, "--epsilon", 2]
    run("release", tmp_path / "data.npy", *own, "--mechanism", "geometric", "--out", out)
    assert json.loads(out.read_text())["mechanism"] == "GeometricMeanLaplace"
    assert "GeometricMeanLaplace" in run("plan", *own, "--n", 50, "--draws", 50)
    audited = run("audit", *own, "--mechanism", "geometric", "--draws", 2000)
    assert "GeometricMeanLaplace on Scales()" in audited and "not contradicted" in audited
    config = tmp_path / "sweep.toml"
    config.write_text(
        'manifold = "scales"\nradius = 1.5\nmechanisms = ["geometric"]\nn = [10]\nepsilon = [2.0]\nreplicates = 20\n'
    )
    run("sweep", config, "--out", tmp_path / "results")
    assert "geometric" in (tmp_path / "results" / "summary.csv").read_text()


def test_without_the_plugin_its_names_are_refused():
    with pytest.raises(ValueError, match="manifold must be one of euclidean, sphere"):
        manifold_named("scales", None)
    with pytest.raises(ValueError, match="mechanism must be one of kng, laplace"):
        mechanism_names.mechanism_named("geometric", None, 1.0)


@pytest.mark.parametrize(
    ("name", "shape", "manifold"),
    [
        ("grassmann", (4, 5, 2), Grassmann(5, 2)),
        ("grassmann(5, 2)", (4, 5, 2), Grassmann(5, 2)),
        ("sphere(2) * spd(3)", (4, 12), Product(Sphere(2), SPD(3))),
        ("spd(3)", (4, 6), SPD(3)),
    ],
)
def test_names_with_sizes_and_products(name, shape, manifold):
    found, points = records_in(name, np.ones(shape))
    assert found == manifold and points.shape == (4, *manifold.shape)


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("grassmann(5, 3)", (4, 5, 2), "must be points of grassmann"),
        ("sphere * spd(3)", (4, 12), "size is needed for sphere: its dimension; write sphere"),
        ("sphere(2) * spd(3)", (4, 11), "must have shape"),
        ("spd(3", (4, 6), "manifold must be one of"),
        ("spd(99999999999999999999)", (4, 6), "must be points of"),
    ],
)
def test_names_that_do_not_fit_are_refused(name, shape, message):
    with pytest.raises(ValueError, match=message):
        records_in(name, np.ones(shape))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("grassmann(3, 4)", "p must be below n = 3"),
        ("grassmann(6 4)", "manifold must be one of"),
        (f"sphere({' ' * 50_000}", "manifold must be one of"),
    ],
)
def test_names_of_no_manifold_are_a_wrong_call(name, message):
    """Found by benchmarks/audit/fuzz.py: the command line told of an unexpected error."""
    with pytest.raises(InputError, match=message):
        manifold_named(name)


@pytest.mark.parametrize("kind", ["product", *exhaustive("subspaces")])
def test_subspaces_and_products_reach_the_command_line(kind, tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "bases.npy", np.eye(4, 2) + 0.1 * rng.normal(size=(30, 4, 2)))
    rows = np.hstack([rng.normal(size=(30, 2)) * 0.1, np.ones((30, 1)), rng.normal(size=(30, 1))])
    np.save(tmp_path / "rows.npy", rows)
    data, manifold, radius = {
        "subspaces": ("bases.npy", "grassmann", 0.4),
        "product": ("rows.npy", "sphere(2) * euclidean(1)", 0.5),
    }[kind]
    out = tmp_path / f"{data}.json"
    own = ("--manifold", manifold, "--radius", radius, "--epsilon", 5, "--mechanism", "tangent", "--out", out)
    own += ("--center", "origin")
    run("release", tmp_path / data, *own)
    assert json.loads(out.read_text())["guarantee"]["epsilon"] == 5.0


def test_only_manifolds_know_which_manifold_they_are():
    """Outside of `manifolds` nothing asks for a class of manifold."""
    named = [entry.make for entry in manifold_names.MANIFOLDS.values()]
    own = {kind.__name__ for kind in [*named, Product] if isinstance(kind, type)}
    root = pathlib.Path(jaxgeodp.__file__).parent
    found = set()
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
                if any(isinstance(x, ast.Name) and x.id in own for x in ast.walk(node.args[1])):
                    found.add(str(path.relative_to(root)))
    assert {place for place in found if not place.startswith("manifolds/")} == set()


def test_tables_keep_hostile_numbers():
    table = np.array([[np.nan, np.inf, 1.0], [1e300, -1e300, 5e-324]])
    np.testing.assert_array_equal(tables.symmetric_matrices(table)[1][:, 1, 0], table[:, 1])


# Completion -----------------------------------------------------------------------------------------------


def refused(*arguments):
    """What the command says of a call that fails at something else than the mechanism, if that is known."""
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 2
    return " ".join(done.output.split())


def asked(command, name):
    """A call of the command with this mechanism, which fails soon."""
    entry = mechanism_names.MECHANISMS.get(name)
    of_mu = "mu" if entry is None and name == "located-gaussian" else getattr(entry, "parameter", "epsilon")
    budget = ("--manifold", "spd", "--mechanism", name, f"--{of_mu}", 1)
    return {
        "release": ("release", "none.npy", *budget, "--radius", 1, "--center", "origin", "--out", "o.json"),
        "prepare": ("site", "prepare", "x.npy", *budget, "--radius", 1, "--key", "k", "--sites", "k", "--out", "o"),
        "simulate": ("simulate", *budget, *("--radius", 1, "--n", 20, "--replicates", 0, "--size", 2)),
        "audit": ("audit", *budget, *("--radius", 1, "--level", 1)),
    }[command]


@pytest.mark.parametrize(
    ("command", "completed", "extra"),
    [
        ("release", released_names, ["auto"]),
        ("prepare", summed_names, []),
        ("simulate", simulated_names, ["located", "located-gaussian"]),
        ("audit", audited_names, ["auto"]),
    ],
    ids=lambda own: own if isinstance(own, str) else "",
)
def test_shells_complete_the_mechanisms_that_each_command_takes_and_no_others(command, completed, extra):
    offered = completed("")
    assert set(extra) <= set(offered)
    for name in {*mechanism_names.MECHANISMS, "auto", "located", *offered}:
        said = refused(*asked(command, name))
        known = "--mechanism" not in said and "mechanisms must" not in said and "--numerics" not in said
        assert known == (name in offered), name
    assert completed("wrapped-g") == [name for name in offered if name == "wrapped-gaussian"]


def completed_options():
    """The options of all commands, each with the path to its command and the values that a shell completes."""
    from typer.main import get_command

    def walk(command, path):
        for name, own in getattr(command, "commands", {}).items():
            yield from walk(own if path else loaded(name), (*path, name))
        context = command.make_context("jaxgeodp", [], resilient_parsing=True)
        for parameter in command.params:
            yield path, parameter, [item.value for item in parameter.shell_complete(context, "")]

    return list(walk(get_command(app), ()))


def test_shells_complete_every_option_with_a_list_of_values():
    seen = {(*path, parameter.name): values for path, parameter, values in completed_options()}
    for option, values in {
        ("release", "numerics"): ["idealized", "grid"],
        ("release", "adjacency"): ["replace-one", "add-remove"],
        ("release", "triangle"): ["lower", "upper"],
        ("release", "missing"): ["center", "template"],
        ("simulate", "calibration"): ["tight", "theorem", "paper"],
        ("reproduce", "paper"): ["laplace-2021", "kng-2022", "shapes-2022", "faces-2024"],
    }.items():
        assert seen[option] == values
    assert "grassmann" in seen["plan", "manifold"] and "wrapped" in seen["site", "prepare", "mechanism"]


def test_help_names_each_manifold_and_mechanism_that_a_command_takes():
    named = [own for own in completed_options() if own[1].name in ("manifold", "mechanism")]
    assert len(named) > 8
    for path, parameter, values in named:
        assert set(values) <= set(re.findall(r"[a-z0-9-]+", parameter.help)), (path, parameter.name)
