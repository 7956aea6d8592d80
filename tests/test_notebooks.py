"""Notebooks are saved with the outputs of their code, and run from top to bottom."""

import nbformat
import pytest
from render import NOTEBOOKS, WITHOUT_PLOTLY, digest_of_code, execute, outputs_of


def read(path):
    return nbformat.read(path, as_version=4)


def by_name(name):
    return next(path for path in NOTEBOOKS if path.stem == name)


def shows_a_picture(notebook):
    return any("image/png" in output.get("data", {}) for output in outputs_of(notebook))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_saved_outputs_are_those_of_the_saved_code(path):
    """To be run after a change: ``python notebooks/render.py`` with the notebook's name."""
    notebook = read(path)
    nbformat.validate(notebook)
    assert notebook.metadata["jaxgeodp"]["digest_of_executed_code"] == digest_of_code(notebook)
    executed = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    assert executed == list(range(1, len(executed) + 1)), "from top to bottom"
    assert not any(output.output_type == "error" for output in outputs_of(notebook))
    assert not any(output.get("name") == "stderr" for output in outputs_of(notebook)), "no warnings"
    assert shows_a_picture(notebook)
    # No place of the machine that it ran on.
    text = "".join(str(output) for output in outputs_of(notebook))
    assert "/tmp/" not in text and "/home/" not in text and str(path.parent) not in text


def test_another_code_has_another_digest():
    notebook = read(NOTEBOOKS[0])
    before = digest_of_code(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    cells[0].outputs = []
    assert digest_of_code(notebook) == before
    cells[-1].source += "\n1 + 1"
    assert digest_of_code(notebook) != before


def test_a_notebook_runs_as_far_as_its_picture(tmp_path, monkeypatch):
    """The first half of the shortest."""
    monkeypatch.delenv("MPLBACKEND", raising=False)  # else the kernel would inherit it and show no picture
    notebook = read(by_name("quickstart"))
    last = next(j for j, cell in enumerate(notebook.cells) if cell.source.startswith("draws = "))
    notebook.cells = notebook.cells[: last + 1]
    execute(notebook, tmp_path)
    assert shows_a_picture(notebook)


@pytest.mark.exhaustive
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path, tmp_path, monkeypatch):
    monkeypatch.delenv("MPLBACKEND", raising=False)  # else the kernel would inherit it and show no picture
    monkeypatch.setenv("QUICK", "1")  # the saved outputs are those of full runs
    notebook = read(path)
    execute(notebook, tmp_path)
    assert shows_a_picture(notebook)


@pytest.mark.exhaustive  # test_interactive.py has it without a notebook
def test_faces_are_drawn_without_plotly(tmp_path, monkeypatch):
    monkeypatch.delenv("MPLBACKEND", raising=False)
    notebook = read(by_name("faces"))
    last = next(j for j, cell in enumerate(notebook.cells) if cell.source.startswith("surfaces = "))
    notebook.cells = notebook.cells[: last + 1]
    execute(notebook, tmp_path, WITHOUT_PLOTLY)
    shown = [key for output in notebook.cells[-1].outputs for key in output.get("data", {})]
    assert "image/png" in shown
    assert "application/vnd.plotly.v1+json" not in shown


def test_there_is_a_notebook():
    assert [path.stem for path in NOTEBOOKS] == [
        "curves",
        "faces",
        "geometry",
        "kng_2022",
        "laplace_2021",
        "quickstart",
        "shapes_2022",
        "spaces",
        "training",
    ]
