"""Every notebook runs from top to bottom."""

import pathlib

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((pathlib.Path(__file__).resolve().parents[1] / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path, tmp_path, monkeypatch):
    monkeypatch.delenv("MPLBACKEND", raising=False)  # else the kernel would inherit it and show no picture
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("image/png" in output.get("data", {}) for output in outputs), "a notebook shows a picture"


def test_faces_are_drawn_without_plotly(tmp_path, monkeypatch):
    monkeypatch.delenv("MPLBACKEND", raising=False)
    notebook = nbformat.read(next(path for path in NOTEBOOKS if path.stem == "faces"), as_version=4)
    last = next(j for j, cell in enumerate(notebook.cells) if cell.source.startswith("surfaces = "))
    notebook.cells = notebook.cells[: last + 1]
    notebook.cells.insert(0, nbformat.v4.new_code_cell("import sys\nsys.modules['plotly'] = None"))
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
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
    ]
