"""The reference of docs/reference has every public name, once, with an example that runs."""

import importlib
import inspect
import pathlib
import re

import pytest

from jaxgeodp.manifolds.names import MANIFOLDS
from jaxgeodp.mechanisms.names import MECHANISMS

PAGES = sorted((pathlib.Path(__file__).parents[1] / "docs" / "reference").glob("*.md"))
PUBLIC = (
    *("bounds", "domains", "experiments", "functional", "inference", "io", "locating", "manifolds", "mechanisms"),
    *("lomas", "optimize"),
    *("pictures", "privacy", "releases", "samplers", "sites", "sklearn", "statistics", "surfaces", "testing"),
)
# With and without privacy.
OF_TWO = ("geodesic_regression",)
DIRECTIVE = re.compile(r"^\.\. (?:py:)?(auto)?(?:class|function|data|exception)(?:tion)?:: ([\w.]+)", re.MULTILINE)


def public(module):
    """Public names of a module, with what they are."""
    own = importlib.import_module(module)
    return {name: getattr(own, name) for name in own.__all__ if name != "__version__"}


def classes(registry):
    """Of manifolds or mechanisms that have a name on the command line: they need not be exported."""
    return {entry.make.__name__: entry.make for entry in registry.values() if isinstance(entry.make, type)}


def documented():
    """The names that pages document, and whether an example is in their section or names them; none is there twice."""
    found = {}
    for page in PAGES:
        text = page.read_text()
        code = "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
        for section in re.split(r"^## ", text, flags=re.MULTILINE):
            for name in (match[2].rpartition(".")[2] for match in DIRECTIVE.finditer(section)):
                assert name not in found or name in OF_TWO, f"{name} is there twice, the second time on {page.name}"
                shown = "```python\n" in section or bool(re.search(rf"\b{name}\b", code))
                found[name] = shown and found.get(name, True)
    return found


ENTRIES = documented()


NAMES = {module: public(module) for module in ("jaxgeodp", *(f"jaxgeodp.{part}" for part in PUBLIC))}


@pytest.mark.parametrize("names", [*NAMES.values(), classes(MECHANISMS)], ids=[*NAMES, "the registry of mechanisms"])
def test_every_public_name_is_documented_with_an_example(names):
    missing = names.keys() - ENTRIES.keys()
    without = [
        name for name, own in names.items() if ">>> " not in (inspect.getdoc(own) or "") and not ENTRIES.get(name)
    ]
    assert not missing and not without, f"not in docs/reference: {missing}; without an example: {without}"


def test_what_is_documented_is_public():
    known = set().union(*NAMES.values(), classes(MECHANISMS), classes(MANIFOLDS))
    assert ENTRIES.keys() <= known, sorted(ENTRIES.keys() - known)
