"""What the documentation shows runs: examples of docstrings, Python blocks, command lines and sweeps of the pages.

All as a user has it: in an empty folder, and in single precision unless the example says otherwise.
"""

import ast
import doctest
import importlib
import pathlib
import re
import shlex

import jax
import pytest
import typer.main

from jaxgeodp.cli.app import app
from jaxgeodp.cli.lazily import loaded
from jaxgeodp.experiments.sweep import read_sweep
from jaxgeodp.testing import manifolds, mechanisms, statistics

ROOT = pathlib.Path(__file__).parents[1]
FOLDERS = (ROOT, *(ROOT / "docs" / part for part in ("", "reference", "evidence")), ROOT / "benchmarks")
PAGES = sorted(page for folder in FOLDERS for page in folder.glob("*.md"))
MODULES_WITH_EXAMPLES = sorted(path for path in ROOT.glob("jaxgeodp/**/*.py") if ">>> " in path.read_text())
# tests/test_testing*.py have all laws.
QUICK_LAWS = {
    (manifolds, "LAWS"): ("points_belong", "inner_product", "exp_at_zero"),
    (mechanisms, "MECHANISM_LAWS"): ("public_numbers", "charges"),
    (statistics, "STATISTIC_LAWS"): ("mean_of_gradients", "minimizer_sensitivity"),
}
COMMAND = typer.main.get_command(app)
# Pages whose blocks compile for long run with --exhaustive; of these, by default, what their blocks import is there.
LONG = {
    *(f"docs/{page}.md" for page in ("inference", "jax", "locate", "other-libraries", "samplers")),
    *(f"docs/{page}.md" for page in ("scale", "sklearn", "statisticians")),
    *(
        f"docs/reference/{page}.md"
        for page in ("experiments", "functional", "inference", "manifolds", "mechanisms", "pictures")
    ),
    *(f"docs/reference/{page}.md" for page in ("privacy", "samplers", "sklearn", "statistics", "surfaces")),
}


def name_of(path):
    return str(path.relative_to(ROOT))


def blocks(page, language):
    """Pairs of the number of the first line and the text of the fenced blocks in a language."""
    text = page.read_text()
    return [
        (text.count("\n", 0, found.start(1)) + 1, found[1])
        for found in re.finditer(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    ]


def command_lines(page):
    """The whole calls of ``jaxgeodp`` in shell blocks and in lines that are set off, without comments."""
    lines = [line for _, block in blocks(page, "sh") for line in block.splitlines()]
    lines += [line for line in page.read_text().splitlines() if line.startswith("    ")]
    calls = [call for line in lines for call in re.split("&&", re.sub(" #.*", "", line))]
    return [found[1] for call in calls if (found := re.match(r"\s*(?:srun .*)?\bjaxgeodp ([a-z].*)", call))]


def parsed(line):
    """The parameters that a command gets, without calling it; raises what the command line would refuse it with."""
    command, words = found_command(line)
    return command.make_context(command.name, words).params


def found_command(line):
    """The command that a line calls, and the words after it."""
    command, words = COMMAND, shlex.split(line)
    while hasattr(command, "commands"):
        name = words.pop(0)
        command = loaded(COMMAND.commands[name].name) if command is COMMAND else command.commands[name]
    return command, words


def with_blocks(language):
    return [page for page in PAGES if blocks(page, language)]


@pytest.fixture(autouse=True)
def as_a_user_has_it(tmp_path, monkeypatch, request):
    monkeypatch.chdir(tmp_path)
    if not request.config.getoption("--exhaustive"):
        for (module, name), quick in QUICK_LAWS.items():
            monkeypatch.setattr(module, name, {law: getattr(module, name)[law] for law in quick})
    with jax.enable_x64(False):
        yield


@pytest.mark.parametrize("path", MODULES_WITH_EXAMPLES, ids=name_of)
def test_examples_of_docstrings(path):
    module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    documented = doctest.DocTestFinder().find(module)
    assert sum(len(one.examples) for one in documented) == path.read_text().count(">>> "), "doctest finds all of them"
    failures = []
    for one in documented:
        doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False).run(one, out=failures.append)
    assert not failures, "".join(failures)


PYTHON = with_blocks("python")


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.exhaustive if name_of(page) in LONG else []) for page in PYTHON],
    ids=name_of,
)
def test_python_of_pages(page):
    """The blocks of a page are one program, from top to bottom."""
    names = {"__name__": "__main__"}
    for line, code in blocks(page, "python"):
        exec(compile("\n" * (line - 1) + code, name_of(page), "exec"), names)
    assert names.keys() > {"__name__", "__builtins__"}, "the page's own names are there: its blocks have run"


def test_what_long_pages_import_is_there():
    """And their blocks are Python."""
    assert {name_of(page) for page in PYTHON} > LONG
    for page in PYTHON:
        for _, code in blocks(page, "python"):
            for node in ast.walk(ast.parse(code)):
                if isinstance(node, ast.Import | ast.ImportFrom) and "jaxgeodp" in ast.unparse(node):
                    exec(ast.unparse(node), {})


@pytest.mark.parametrize("page", [page for page in PAGES if command_lines(page)], ids=name_of)
def test_command_lines_of_pages(page):
    for line in command_lines(page):
        assert parsed(line) is not None, line


@pytest.mark.parametrize("page", [page for page in PAGES if "`jaxgeodp " in page.read_text()], ids=name_of)
def test_options_of_commands_in_sentences(page):
    """Sentences may leave out what is required, but what they name exists."""
    for line in re.findall(r"`jaxgeodp ([a-z][^`]+)`", page.read_text()):
        command, words = (loaded(line), []) if line in COMMAND.commands else found_command(line)
        options = {name for parameter in command.params for name in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= options, line


def test_command_lines_that_are_wrong_are_refused():
    assert parsed("plan --manifold spd --size 3 --radius 1.5 --n 200 --epsilon 1")["size"] == 3
    for wrong in ("plan --manifold spd --sides 3", "plan --manifold spd", "plan --manifold spd --n few"):
        with pytest.raises(typer.BadParameter.__mro__[1]):
            parsed(wrong)
    with pytest.raises(KeyError):
        parsed("publish data.npy")


@pytest.mark.parametrize("page", with_blocks("toml"), ids=name_of)
def test_sweeps_of_pages(page, tmp_path):
    for _, text in blocks(page, "toml"):
        (tmp_path / "sweep.toml").write_text(text)
        assert read_sweep(tmp_path / "sweep.toml").mechanisms
