"""Execute notebooks and save them with what they show: ``python notebooks/render.py quickstart geometry``.

Without names all of them. A notebook's metadata then holds the digest of the code that made its outputs, by which
the tests see whether the saved outputs are those of the saved code.
"""

import base64
import hashlib
import io
import pathlib
import sys
import tempfile

import nbformat
from nbclient import NotebookClient
from PIL import Image

# Surfaces that a mouse turns are megabytes: saved are the pictures that are drawn where plotly is not installed.
WITHOUT_PLOTLY = ["--IPKernelApp.exec_lines=import sys; sys.modules['plotly'] = None"]
FOLDER = pathlib.Path(__file__).resolve().parent
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def digest_of_code(notebook) -> str:
    """SHA-256 of the code cells, in their order."""
    sources = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    return hashlib.sha256("\0".join(sources).encode()).hexdigest()


def outputs_of(notebook) -> list:
    """The outputs of all code cells, in their order."""
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def execute(notebook, folder, arguments=()) -> None:
    """Run all cells in ``folder``, with arguments to the kernel; raises CellExecutionError where one fails."""
    client = NotebookClient(
        notebook,
        timeout=3600,
        kernel_name="python3",
        resources={"metadata": {"path": folder}},
        record_timing=False,
        extra_arguments=list(arguments),
    )
    client.execute()


def with_fewer_colors(notebook) -> None:
    """Pictures with 128 colors each: a third of the size."""
    for output in outputs_of(notebook):
        if "image/png" in output.get("data", {}):
            picture = Image.open(io.BytesIO(base64.b64decode(output.data["image/png"]))).convert("RGB")
            file = io.BytesIO()
            picture.quantize(128).save(file, "PNG", optimize=True)
            output.data["image/png"] = base64.b64encode(file.getvalue()).decode()


def render(path) -> None:
    """Execute a notebook and save it in place, with its outputs."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        execute(notebook, folder, WITHOUT_PLOTLY)
    with_fewer_colors(notebook)
    # Of this machine, not of the notebook.
    notebook.metadata["language_info"] = {"name": "python"}
    notebook.metadata["jaxgeodp"] = {"digest_of_executed_code": digest_of_code(notebook)}
    nbformat.write(notebook, path)


if __name__ == "__main__":
    for chosen in [FOLDER / f"{name}.ipynb" for name in sys.argv[1:]] or NOTEBOOKS:
        print(chosen.name)
        render(chosen)
