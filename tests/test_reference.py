"""The reference of docs/reference has every public name, once, with an example that runs."""

import importlib
import inspect
import pathlib
import re

import pytest

PAGES = sorted((pathlib.Path(__file__).parents[1] / "docs" / "reference").glob("*.md"))
PUBLIC = (
    *("bounds", "domains", "experiments", "functional", "inference", "io", "locating", "manifolds", "mechanisms"),
    *("pictures", "privacy", "releases", "samplers", "sites", "sklearn", "statistics", "surfaces", "testing"),
)
DIRECTIVE = re.compile(r"^\.\. (?:py:)?(auto)?(?:class|function|data|exception)(?:tion)?:: ([\w.]+)", re.MULTILINE)


def names_of(module):
    """Public names of a module, and of the package those that are nowhere else."""
    return [name for name in importlib.import_module(module).__all__ if name != "__version__"]


def documented():
    """The names that pages document, and whether an example is in their section or names them; none is there twice."""
    found = {}
    for page in PAGES:
        text = page.read_text()
        code = "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
        for section in re.split(r"^## ", text, flags=re.MULTILINE):
            for name in (match[2].rpartition(".")[2] for match in DIRECTIVE.finditer(section)):
                assert name not in found, f"{name} is there twice, the second time on {page.name}"
                found[name] = "```python\n" in section or bool(re.search(rf"\b{name}\b", code))
    return found


ENTRIES = documented()


@pytest.mark.parametrize("module", ["jaxgeodp", *(f"jaxgeodp.{part}" for part in PUBLIC)])
def test_every_public_name_is_documented_with_an_example(module):
    missing, without = [], []
    for name in names_of(module):
        if name not in ENTRIES:
            missing.append(name)
        elif ">>> " not in (inspect.getdoc(getattr(importlib.import_module(module), name)) or ""):
            without += [] if ENTRIES[name] else [name]
    assert not missing and not without, f"{module}: not in docs/reference: {missing}; without an example: {without}"


def test_what_is_documented_is_public():
    known = {name for module in ("jaxgeodp", *(f"jaxgeodp.{part}" for part in PUBLIC)) for name in names_of(module)}
    assert ENTRIES.keys() <= known, sorted(ENTRIES.keys() - known)
