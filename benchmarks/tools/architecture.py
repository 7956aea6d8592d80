"""The picture of docs/architecture.md: the parts of the package and who imports whom, read off the code.

    python -m benchmarks.tools.architecture    # draws docs/architecture.png

A part is a folder of jaxgeodp, or a file that lies beside the folders. Files that need no part but each other are drawn
as one box, as every part may use them. An arrow that follows from others is left out: if a part imports mechanisms, it
may import all that mechanisms stand on.
"""

import ast
import collections
import pathlib
import textwrap

import matplotlib.pyplot as plt
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

ROOT = pathlib.Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "architecture.png"
PACKAGE = ROOT / "jaxgeodp"
TOOLS = "tools"
# The table of contents, which imports what it lists, and the start of the command.
LEFT_OUT = ("__init__", "__main__", "public")


def part_of(name: str) -> str | None:
    """The part that a module's dotted name belongs to; None for what is not drawn."""
    package, _, rest = name.partition(".")
    part = rest.partition(".")[0]
    return part if package == PACKAGE.name and part and part not in LEFT_OUT else None


def imported(path: pathlib.Path) -> set[str]:
    """Names of modules that a file imports, at its top or within functions."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == PACKAGE.name:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return names


def imports_of_parts() -> dict[str, set[str]]:
    """Which parts each part imports."""
    found = collections.defaultdict(set)
    for path in sorted(PACKAGE.rglob("*.py")):
        part = part_of(".".join(path.relative_to(ROOT).with_suffix("").parts))
        if part is not None:
            found[part] |= {other for name in imported(path) if (other := part_of(name)) not in (None, part)}
    return dict(found)


def tools(imports: dict[str, set[str]]) -> set[str]:
    """Files beside the folders that need nothing but each other."""
    chosen = {part for part in imports if (PACKAGE / f"{part}.py").exists()}
    while needy := {part for part in chosen if imports[part] - chosen}:
        chosen -= needy
    return chosen


def with_tools_as_one(imports: dict[str, set[str]]) -> dict[str, set[str]]:
    """The parts that are drawn with an arrow each, without those that all may use."""
    common = tools(imports)
    return {part: others - common for part, others in imports.items() if part not in common}


def reachable(imports: dict[str, set[str]], part: str) -> set[str]:
    """What a part stands on, at any distance."""
    below: set[str] = set()
    waiting = list(imports[part])
    while waiting:
        other = waiting.pop()
        if other not in below:
            below.add(other)
            waiting += imports[other]
    return below


def arrows(imports: dict[str, set[str]]) -> list[tuple[str, str]]:
    """The imports that follow from no others."""
    return [
        (part, other)
        for part in sorted(imports)
        for other in sorted(imports[part])
        if not any(other in reachable(imports, third) for third in imports[part] - {other})
    ]


def floors(imports: dict[str, set[str]]) -> dict[str, int]:
    """How many imports lie between a part and those that import none; 0 for these.

    Raises:
        ValueError: parts import each other in a circle.
    """
    for part in imports:
        if part in reachable(imports, part):
            raise ValueError(f"{part} imports itself by way of other parts")
    height: dict[str, int] = {}
    while len(height) < len(imports):
        height |= {
            part: 1 + max((height[other] for other in imports[part]), default=-1)
            for part in imports
            if part not in height and all(other in height for other in imports[part])
        }
    return height


def described(part: str) -> str:
    """The first line of a part's docstring."""
    folder = PACKAGE / part / "__init__.py"
    path = folder if folder.exists() else PACKAGE / f"{part}.py"
    return ast.get_docstring(ast.parse(path.read_text())).splitlines()[0].replace("`", "")


def facts() -> str:
    """What the picture shows, as text: kept in the file, so that a test can tell an old picture."""
    imports = imports_of_parts()
    lines = [f"{part} -> {other}" for part, other in arrows(with_tools_as_one(imports))]
    return "\n".join([*lines, f"{TOOLS}: {', '.join(sorted(tools(imports)))}"])


def draw(path: pathlib.Path) -> None:
    """Write the picture."""
    imports = imports_of_parts()
    drawn = with_tools_as_one(imports)
    height = floors(drawn)
    width, tall, across, up = 4.3, 0.94, 4.7, 1.32
    places = {}
    for floor in sorted(set(height.values())):
        row = sorted(part for part in drawn if height[part] == floor)
        for j, part in enumerate(row):
            places[part] = (across * (j - (len(row) - 1) / 2), up * (floor + 1))
    widest = max(abs(x) for x, _ in places.values()) + width / 2
    top = max(y for _, y in places.values())
    figure, axes = plt.subplots(figsize=(2 * widest + 0.4, top + 1.6))
    for part, (x, y) in places.items():
        box(axes, x, y, width, tall, part, textwrap.fill(described(part), 52))
    box(axes, 0, 0, 2 * widest, tall, "for all of them", textwrap.fill(", ".join(sorted(tools(imports))), 120))
    for part, other in arrows(drawn):
        (x, y), (end, low) = places[part], places[other]
        sideways = 0.0 if x == end else 0.35 * width * (1 if end > x else -1)
        axes.add_patch(
            FancyArrowPatch(
                (x + sideways, y - tall / 2 - 0.06),
                (end, low + tall / 2 + 0.06),
                arrowstyle="-|>",
                mutation_scale=14,
                color="0.35",
                linewidth=1.3,
                zorder=0,
            )
        )
    axes.set(xlim=(-widest - 0.2, widest + 0.2), ylim=(-0.6, top + 0.6))
    axes.set_aspect("equal")
    axes.axis("off")
    figure.savefig(path, dpi=100, bbox_inches="tight", metadata={"Description": facts(), "Software": None})
    plt.close(figure)


def box(axes, x: float, y: float, width: float, tall: float, name: str, text: str) -> None:
    """A named box around a point."""
    corner = (x - width / 2, y - tall / 2)
    axes.add_patch(
        FancyBboxPatch(
            corner, width, tall, boxstyle="round,pad=0,rounding_size=0.08", facecolor="#eef3f8", edgecolor="#4a6a8a"
        )
    )
    axes.text(x, y + 0.31 * tall, name, ha="center", va="center", fontsize=12, fontweight="bold")
    axes.text(x, y - 0.15 * tall, text, ha="center", va="center", fontsize=8, color="0.25")


if __name__ == "__main__":
    draw(PICTURE)
    print(facts())
