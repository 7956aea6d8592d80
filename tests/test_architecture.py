"""The parts of the package stand on each other as docs/architecture.md shows and says."""

import ast

import pytest
from PIL import Image

import jaxgeodp
from benchmarks.tools import architecture

WITHOUT_PRIVACY = ("manifolds", "domains", "bounds", "statistics", "samplers")


def test_the_picture_shows_the_imports_of_the_code():
    """To be drawn again after a change: ``python -m benchmarks.tools.architecture``."""
    with Image.open(architecture.PICTURE) as picture:
        assert picture.text["Description"] == architecture.facts()


def test_parts_stand_on_each_other_without_a_circle():
    imports = architecture.imports_of_parts()
    height = architecture.floors(imports)
    assert all(height[other] < height[part] for part, others in imports.items() for other in others)
    assert {"manifolds", "mechanisms", "cli"} <= set(imports)
    with pytest.raises(ValueError, match="imports itself"):
        architecture.floors({"a": {"b"}, "b": {"c"}, "c": {"a"}})


def test_arrows_are_the_imports_that_follow_from_no_others():
    imports = {"top": {"middle", "bottom", "side"}, "middle": {"bottom"}, "side": set(), "bottom": set()}
    assert architecture.arrows(imports) == [("middle", "bottom"), ("top", "middle"), ("top", "side")]


@pytest.mark.parametrize("part", WITHOUT_PRIVACY)
def test_geometry_and_statistics_know_nothing_of_privacy(part):
    below = architecture.reachable(architecture.imports_of_parts(), part)
    assert not below & {"privacy", "mechanisms", "functional", "surfaces", "experiments", "cli"}


def test_entropy_is_read_in_one_part():
    asking = {
        path.relative_to(architecture.PACKAGE).parts[0]
        for path in architecture.PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in ("urandom", "randbelow", "randbits", "SystemRandom")
    }
    assert asking == {"privacy"}


def test_the_citation_is_of_this_version():
    assert f"\nversion: {jaxgeodp.__version__}\n" in (architecture.ROOT / "CITATION.cff").read_text()
