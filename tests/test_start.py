"""The start: what takes long to import is imported when it is used."""

import json
import subprocess
import sys

import jax
import pytest

from jaxgeodp import Euclidean, GeodesicBall
from jaxgeodp.mechanisms import plan_mechanisms

# Importable without any of them, each costs from a tenth of a second to several.
HEAVY = ("matplotlib", "numpyro", "optax", "pyarrow", "scipy", "sklearn", "trimesh")


def heavy_modules_after(code):
    """Which of them a new process has imported when it has run the code."""
    listing = f"import json, sys; print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"
    answer = subprocess.run([sys.executable, "-c", f"{code}\n{listing}"], capture_output=True, text=True, check=True)
    return json.loads(answer.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    "code",
    [
        "import jaxgeodp",
        "from jaxgeodp.cli import app; app(['--help'], standalone_mode=False)",
        "from jaxgeodp.cli import app; app(['release', '--help'], standalone_mode=False)",
    ],
)
def test_the_start_imports_nothing_heavy(code):
    assert heavy_modules_after(code) == []


def test_an_import_that_is_heavy_would_be_seen():
    assert heavy_modules_after("from jaxgeodp.privacy.guarantee import PureDP; PureDP(1.0).to_gdp()") == ["scipy"]


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
