"""The recipes of CONTRIBUTING.md: what they number is all that a manifold or a mechanism touches, and it is needed.

Each is followed in a copy of the package, outside of it, for a manifold and a mechanism that the package does not have
(`tests/recipes`). A manifold touches three files. A mechanism touches four, if its theorem is known, as that of Laplace
noise is; a new theorem comes with its proof, in docs/mathematics.md, which is the fifth.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from strategies import exhaustive

ROOT = pathlib.Path(__file__).parents[1]
TOYS = ROOT / "tests" / "recipes"
SECTION = """## CoordinateLaplace

```{eval-rst}
.. autoclass:: jaxgeodp.mechanisms.coordinates.CoordinateLaplace
```

"""


def file_of(name):
    """A whole new file."""
    return lambda text: (TOYS / name).read_text()


def put(*places):
    """Lines before others, which the file has once: pairs of a line and of those that come before it."""

    def edited(text):
        for line, new in places:
            assert text.count(line) == 1, line
            text = text.replace(line, new + line)
        return text

    return edited


#: Of each recipe: its section of CONTRIBUTING.md, what is done to each file, and what must know it afterwards.
RECIPES = {
    "manifold": {
        "jaxgeodp/manifolds/scales.py": file_of("scales.py"),
        "jaxgeodp/manifolds/names.py": put(
            ("from jaxgeodp.manifolds.spd import SPD\n", "from jaxgeodp.manifolds.scales import Scales\n"),
            (
                '    "rotations": NamedManifold',
                '    "scales": NamedManifold(Scales, ("its dimension",), tables.vectors),\n',
            ),
        ),
        "tests/strategies.py": put(
            ("\n\ndef exhaustive", "from jaxgeodp.manifolds.scales import Scales\n"),
            ("    Product(Sphere(2), SPD(2)),\n]", "    Scales(2),\n"),
        ),
    },
    "mechanism": {
        "jaxgeodp/mechanisms/coordinates.py": file_of("coordinates.py"),
        "jaxgeodp/mechanisms/names.py": put(
            (
                "from jaxgeodp.mechanisms.euclidean import",
                "from jaxgeodp.mechanisms.coordinates import CoordinateLaplace\n",
            ),
            (
                '    "landmarks": NamedMechanism',
                '    "coordinates": NamedMechanism(CoordinateLaplace, unbiased=_is_flat),\n',
            ),
        ),
        "docs/reference/mechanisms.md": put(
            ("## MetricLaplace\n", SECTION), ("| kng | yes |", "| coordinates | – | – | yes | yes | yes | – |\n")
        ),
        "tests/test_coordinates.py": file_of("checks_of_own.py"),
    },
}
#: Which tests must know it, and of them those that compile little.
FILES = {
    "manifold": ("recipes/known_manifold.py", "test_manifolds.py", "test_reference.py"),
    "mechanism": (
        *("recipes/known_mechanism.py", "test_coordinates.py", "test_supports.py", "test_ledger.py"),
        *("test_reference.py", "test_registry.py", "test_pictures.py"),
    ),
}
QUICK = {
    "manifold": "test_by or (test_law and Scales and (round_trips or going_home or volume)) or public",
    "mechanism": "test_by or test_coordinates or (page and supports) or colour or public or help_names "
    "or ((charges_before or not_support) and coordinates)",
}
LONG = {"manifold": "test_by or Scales", "mechanism": "test_by or coordinates"}
#: What fails without a file of a recipe, and holds with it.
NEEDED = {
    ("manifold", "jaxgeodp/manifolds/scales.py"): "recipes/known_manifold.py::test_by_its_name",
    ("manifold", "jaxgeodp/manifolds/names.py"): "recipes/known_manifold.py::test_by_the_command_line",
    ("manifold", "tests/strategies.py"): "test_manifolds.py::test_law[going_home-Scales(dim=2)]",
    ("mechanism", "jaxgeodp/mechanisms/coordinates.py"): "recipes/known_mechanism.py::test_by_plans",
    ("mechanism", "jaxgeodp/mechanisms/names.py"): "recipes/known_mechanism.py::test_by_release",
    ("mechanism", "docs/reference/mechanisms.md"): "test_supports.py::test_the_page_says_what_each_mechanism_supports",
    ("mechanism", "tests/test_coordinates.py"): "test_coordinates.py::test_law[charges]",
}
#: What else must have been asked.
ASKED = {
    "manifold": ("recipes/known_manifold.py::test_by_the_command_line",),
    "mechanism": (
        *(f"recipes/known_mechanism.py::test_by_{part}" for part in ("release", "plans", "sweeps", "audits")),
        "test_ledger.py::test_every_mechanism_charges_before_it_reads_entropy[coordinates]",
        "test_supports.py::test_what_it_does_not_support_is_refused_by_one_sentence[coordinates]",
        "test_reference.py::test_every_public_name_is_documented_with_an_example[the registry of mechanisms]",
    ),
}


def section(kind):
    return (ROOT / "CONTRIBUTING.md").read_text().split(f"### A {kind}\n")[1].split("\n##")[0]


def files_of_recipe(kind, name):
    """The files that the steps of a recipe name, with a name in place of NAME."""
    return {path.replace("NAME", name) for path in re.findall(r"^\d\. `([^`]+)`", section(kind), re.MULTILINE)}


def followed(kind, place, without=None):
    """A copy of the package in which a recipe has been followed, but for one of its files; gives what has changed."""
    for folder in ("jaxgeodp", "tests", "docs"):
        shutil.copytree(ROOT / folder, place / folder)
    shutil.copy(ROOT / "pyproject.toml", place)
    for path, edited in RECIPES[kind].items():
        if path != without:
            file = place / path
            file.write_text(edited(file.read_text() if file.exists() else ""))
    files = [path.relative_to(place) for path in place.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    same = lambda path: (ROOT / path).exists() and (ROOT / path).read_bytes() == (place / path).read_bytes()  # noqa: E731
    return {str(path) for path in files if not same(path)}


def tried(place, *arguments):
    """Tests in the copy, by a process of their own, with the options of pytest."""
    call = [sys.executable, "-m", "pytest", "-n", "0", "-rA", "-p", "no:cacheprovider", *arguments]
    # As for a worker of these tests: what has been compiled is kept.
    own = os.environ | {"PYTHONPATH": str(place), "PYTEST_XDIST_WORKER": os.environ.get("PYTEST_XDIST_WORKER", "gw0")}
    return subprocess.run(call, cwd=place, env=own, capture_output=True, text=True)


def assert_holds(kind, place, *options):
    """All tests that know it have been tried, and hold."""
    answer = tried(place, *(f"tests/{name}" for name in FILES[kind]), *options)
    told = answer.stdout[-8000:] + answer.stderr
    assert answer.returncode == 0, told
    for test in (*ASKED[kind], *(test for (own, _), test in NEEDED.items() if own == kind)):
        assert f"\nPASSED tests/{test}\n" in answer.stdout, told


@pytest.mark.parametrize(("kind", "name", "count"), [("manifold", "scales", 3), ("mechanism", "coordinates", 4)])
def test_a_recipe_is_all_that_a_new_thing_touches(kind, name, count, tmp_path):
    touched = followed(kind, tmp_path)
    assert touched == files_of_recipe(kind, name) and len(touched) == count
    assert_holds(kind, tmp_path, "-k", QUICK[kind])


ALWAYS = ("tests/strategies.py", "docs/reference/mechanisms.md")


@pytest.mark.parametrize(
    ("kind", "path"),
    [own for own in NEEDED if own[1] in ALWAYS] + exhaustive(*(own for own in NEEDED if own[1] not in ALWAYS)),
)
def test_without_one_of_its_files_a_recipe_fails(kind, path, tmp_path):
    assert followed(kind, tmp_path, without=path) == RECIPES[kind].keys() - {path}
    answer = tried(tmp_path, f"tests/{NEEDED[kind, path]}")
    assert answer.returncode != 0 and "PASSED" not in answer.stdout


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", RECIPES)
def test_all_tests_of_all_names_hold_for_it(kind, tmp_path):
    followed(kind, tmp_path)
    more = ("test_examples", "test_weights_are_used", "test_order", "inner/test_limits") if kind == "mechanism" else ()
    words = f"{QUICK[kind]} or {LONG[kind]}"
    assert_holds(kind, tmp_path, *(f"tests/{name}.py" for name in more), "-k", words, "--exhaustive")


def test_recipes_need_the_words_of_their_table_only():
    recipes = (ROOT / "CONTRIBUTING.md").read_text().split("\n## Recipes\n")[1].split("\n## ")[0]
    table = "".join(line.split("|")[1] for line in recipes.splitlines() if line.startswith("|"))
    words, table = (set(re.findall(r"`([A-Z][a-z]+\w*)`", text)) for text in (recipes, table))
    assert words == table and len(table) <= 15, words - table
