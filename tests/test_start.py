"""The start: what takes long to import is imported when it is used."""

import json
import pathlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from strategies import exhaustive

import jaxgeodp
from jaxgeodp import SPD, Euclidean, EuclideanLaplace, GeodesicBall, LaplaceMechanism, WrappedLaplace, frechet_mean
from jaxgeodp.mechanisms import plan_mechanisms

# Importable without any of them, each costs from a tenth of a second to several.
HEAVY = ("matplotlib", "numpyro", "optax", "pyarrow", "scipy", "sklearn", "trimesh")


# One after the other; what the last needs is heavy.
STEPS = (
    "import jaxgeodp.public",
    "from jaxgeodp.cli import app; app(['--help'], standalone_mode=False)",
    "from jaxgeodp.cli import app; app(['release', '--help'], standalone_mode=False)",
    "from jaxgeodp.privacy.guarantee import PureDP; PureDP(1.0).to_gdp()",
)


@pytest.fixture(scope="module")
def heavy_modules():
    """Which of them a new process has imported after each step."""
    listing = f"import json, sys; print('heavy', json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"
    code = "".join(f"{step}\n{listing}\n" for step in STEPS)
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = [line.removeprefix("heavy ") for line in answer.stdout.splitlines() if line.startswith("heavy ")]
    return dict(zip(STEPS, map(json.loads, found), strict=True))


@pytest.mark.parametrize("step", STEPS[:-1])
def test_the_start_imports_nothing_heavy(heavy_modules, step):
    assert heavy_modules[step] == []


def test_privacy_imports_no_jax():
    code = "import sys, jaxgeodp.privacy; print('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_an_import_that_is_heavy_would_be_seen(heavy_modules):
    assert heavy_modules[STEPS[-1]] == ["scipy"]


def test_a_plan_for_another_n_compiles_nothing():
    compiled = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, duration, **facts: compiled.append(event) if event.endswith("backend_compile_duration") else None
    )
    ball = GeodesicBall(Euclidean(1), [0.0], 0.3)
    first = plan_mechanisms(ball, n=200, epsilon=1.0, draws=50)
    assert compiled
    compiled.clear()
    second = plan_mechanisms(ball, n=5000, epsilon=2.0, draws=50)
    assert compiled == []
    assert all(b.error < a.error for a in first for b in second if a.mechanism == b.mechanism and a.error == a.error)


@pytest.mark.parametrize("names", [("laplace", "euclidean"), *exhaustive((("laplace", "wrapped", "euclidean"),))])
def test_planned_errors_are_those_of_releases_wherever_the_centre_lies(names):
    manifold = SPD(2)
    center, n, draws = np.diag([4.0, 0.25]), 64, 1000
    ball = GeodesicBall(manifold, center, 1.0)
    planned = {plan.mechanism: plan for plan in plan_mechanisms(ball, n, 1.0, draws=draws, names=names)}
    away = manifold.exp(center, 0.25 * manifold.frame(center)[0])

    def record(key):
        tangent = manifold.random_tangent(key, away)
        return manifold.exp(away, 0.25 * tangent / manifold.norm(away, tangent))

    records = jax.jit(jax.vmap(record))(jax.random.split(jax.random.key(9), n))
    mean = frechet_mean(manifold, records)
    distances = {
        LaplaceMechanism: lambda x: manifold.dist(mean, x),
        WrappedLaplace: lambda x: manifold.dist(mean, x),
        EuclideanLaplace: lambda x: jnp.linalg.norm(mean - x),
    }
    assert len(planned) == len(names)
    for kind in (own for own in distances if own.__name__ in planned):
        distance = distances[kind]
        errors = jax.jit(jax.vmap(distance))(kind(ball, 1.0).simulate(jax.random.key(4), records, draws))
        row = planned[kind.__name__]
        assert abs(float(errors.mean()) - row.error) < 6.0 * row.standard_error
    # At another centre the ambient error is another.
    home = {plan.mechanism: plan.error for plan in plan_mechanisms(ball.at_home, n, 1.0, draws=draws, names=names)}
    assert home["LaplaceMechanism"] == planned["LaplaceMechanism"].error
    assert home["EuclideanLaplace"] < 0.8 * planned["EuclideanLaplace"].error


def test_what_reads_records_and_ledgers_does_not_wait_for_jax(tmp_path):
    mechanism = LaplaceMechanism(GeodesicBall(Euclidean(1), [0.0], 1.0), 1.0)
    mechanism.release(np.zeros((20, 1))).save(tmp_path / "mean.json")
    calls = (
        ["--help"],
        ["--version"],
        ["ledger", "init", "b.db", "--mu", "1"],
        ["ledger", "show", "b.db"],
        ["show", "mean.json"],
    )
    code = f"""
import sys, jaxgeodp
from jaxgeodp.cli import app
for call in {calls!r}:
    app(call, standalone_mode=False)
    assert "jax" not in sys.modules, call
jaxgeodp.SPD, jaxgeodp.manifolds.SPD, jaxgeodp.describe
assert "jax" in sys.modules and set(jaxgeodp.__all__) <= set(dir(jaxgeodp))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_every_folder_can_be_the_first_that_is_imported():
    root = pathlib.Path(jaxgeodp.__file__).parent
    names = sorted(
        ".".join(path.relative_to(root.parent).with_suffix("").parts).removesuffix(".__init__")
        for path in [*root.glob("*.py"), *root.glob("*/__init__.py")]
        if path.stem != "__main__"
    )
    code = """
import importlib, os, sys
import jax, numpy
for name in sys.argv[1:]:
    if not os.fork():
        importlib.import_module(name)
        os._exit(0)
    assert os.wait()[1] == 0, name
"""
    done = subprocess.run([sys.executable, "-c", code, *names], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
