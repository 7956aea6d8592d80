"""The rooms of the package and the arrows between them, as its own imports draw them."""

import ast
import functools
import inspect
import pathlib
import re
import subprocess
import sys

import pytest
import typer

import jaxgeodp
from jaxgeodp.cli import app
from jaxgeodp.cli.lazily import loaded

PACKAGE = pathlib.Path(jaxgeodp.__file__).parent


@functools.cache
def sources():
    """Syntax trees of all modules, by name; a package bears the name of its folder."""
    names = {path: path.relative_to(PACKAGE.parent).with_suffix("").parts for path in sorted(PACKAGE.rglob("*.py"))}
    return {
        ".".join(parts[:-1] if parts[-1] == "__init__" else parts): ast.parse(path.read_text())
        for path, parts in names.items()
    }


def imports(trees):
    """Which modules of the package each of them imports, be it at its top or in a function."""

    def targets(node):
        if isinstance(node, ast.Import):
            return {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            return {name if (name := f"{node.module}.{a.name}") in trees else node.module for a in node.names}
        return set()

    return {
        name: {target for node in ast.walk(tree) for target in targets(node) if target in trees} - {name}
        for name, tree in trees.items()
    }


def circle(arrows):
    """Modules of which each imports one of the others; none if there is no circle."""
    left = {name: set(targets) for name, targets in arrows.items()}
    while leaves := {name for name, targets in left.items() if not targets}:
        left = {name: targets - leaves for name, targets in left.items() if name not in leaves}
    return set(left)


ARROWS = imports(sources())


def room(name):
    return name.split(".")[1] if "." in name else name


def test_no_module_imports_itself_by_way_of_others():
    assert circle(ARROWS) == set()


def test_a_circle_is_found():
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == {"a", "b", "c"}
    planted = ARROWS | {"jaxgeodp.meshes.mesh": {"jaxgeodp.faces.curves"}}
    assert {"jaxgeodp.meshes.mesh", "jaxgeodp.faces.curves"} <= circle(planted)


def test_meshes_know_no_faces_and_no_privacy():
    reached = {room(target) for name, targets in ARROWS.items() if room(name) == "meshes" for target in targets}
    assert reached == {"checks", "meshes", "pytrees"}


def imported(tree):
    """Packages that a module imports, anywhere in it."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = [name for node in nodes for name in ([node.module] if isinstance(node, ast.ImportFrom) else node.names)]
    return {getattr(name, "name", name).partition(".")[0] for name in names}


def test_files_are_read_without_the_command_line():
    files = [name for name in ARROWS if room(name) == "io"]
    assert {room(target) for name in files for target in ARROWS[name]}.isdisjoint({"cli", "experiments", "mechanisms"})
    assert not {"typer", "click", "rich", "matplotlib"} & {
        found for name in files for found in imported(sources()[name])
    }
    assert imported(ast.parse("import rich.console\ndef f():\n    from typer.testing import x")) == {"rich", "typer"}


LEAVES = {"meshes", "faces", "functional", "surfaces"}


def callers_of_leaves(arrows):
    """Rooms that import a leaf, but for leaves themselves."""
    return {room(name) for name, targets in arrows.items() if LEAVES & set(map(room, targets))} - LEAVES


def test_leaves_could_be_lifted_out():
    """Only commands and experiments import them."""
    assert callers_of_leaves(ARROWS) == {"cli", "experiments"}
    planted = ARROWS | {"jaxgeodp.inference.spread": {"jaxgeodp.functional.kernels"}}
    assert callers_of_leaves(planted) == {"cli", "experiments", "inference"}


def test_surfaces_are_a_table_of_contents():
    (name,) = [name for name in ARROWS if room(name) == "surfaces"]
    assert {room(target) for target in ARROWS[name]} == {"faces", "meshes"}
    kinds = {type(node) for node in sources()[name].body}
    assert kinds == {ast.Expr, ast.ImportFrom, ast.Assign}  # docstring, names, __all__


def test_every_command_is_a_file_of_its_name():
    for name in typer.main.get_command(app).commands:
        command, module = loaded(name), f"jaxgeodp.cli.{name}"
        assert module in ARROWS and command.help
        if not getattr(command, "commands", None):
            assert (inspect.unwrap(command.callback).__module__, command.callback.__name__) == (module, name)


def private_uses(tree):
    """Private members of anything but the object itself; the methods of a named tuple only look private."""
    own, public = {"self", "cls"}, {"_asdict", "_fields", "_replace"}
    return {
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__")
        if node.attr not in public and not (isinstance(node.value, ast.Name) and node.value.id in own)
    }


@pytest.mark.parametrize("name", ["cli", "faces", "functional", "io", "meshes", "surfaces"])
def test_no_file_uses_what_is_private_to_another(name):
    found = {
        module: uses for module, tree in sources().items() if room(module) == name and (uses := private_uses(tree))
    }
    assert found == {}


def test_private_uses_are_found():
    tree = ast.parse("self._mine, result._replace(x=1), other._secret, self.part._secret, type(self)._kind, f.__name__")
    assert private_uses(tree) == {"other._secret", "self.part._secret", "type(self)._kind"}


def root(node):
    """The first name of a dotted one."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return getattr(node, "id", None)


def own_names(trees):
    """Private names that files define for themselves."""
    nodes = [node for tree in trees for node in ast.walk(tree)]
    stored = [node for node in nodes if isinstance(getattr(node, "ctx", None), ast.Store)]
    names = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    names |= {getattr(node, "id", None) or getattr(node, "attr", "") for node in stored}
    return {name for name in names if re.match("_[^_]", name)}


def borrowed(tree, private):
    """Which private names of the package a file imports, reads, or replaces by their text."""
    nodes, found, ours = list(ast.walk(tree)), set(), {"jaxgeodp"}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "jaxgeodp":
            ours |= {alias.asname or alias.name for alias in node.names}
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            ours |= {alias.asname for alias in node.names if alias.name.startswith("jaxgeodp.")}
            found |= {alias.name for alias in node.names if alias.name.startswith("jaxgeodp.")}
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            found |= {name for name in [str(node.args[0].value)] if name.startswith("jaxgeodp.")}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("setattr") and root(node.args[0]) in ours:
            owner, name = map(ast.unparse, node.args[:2])
            found.add(f"{owner}.{name.strip(chr(39))}")
    read = {use for use in private_uses(tree) if use.rpartition(".")[2] in private}
    return read | {name for name in found if re.search(r"\._[^_]", name)}


def test_private_names_of_the_package_are_used_by_tests_of_inner_laws_alone():
    private = own_names(sources().values())
    found = {
        path.stem: borrowed(ast.parse(path.read_text()), private) for path in pathlib.Path(__file__).parent.glob("*.py")
    }
    assert not {name: uses for name, uses in found.items() if uses}


def test_borrowed_names_are_found():
    private = own_names([ast.parse("_NUMBER = 1\ndef _draw(): ...\nclass A:\n    def __init__(self): self._one = 2")])
    assert private == {"_NUMBER", "_draw", "_one"}
    tree = ast.parse(
        "from jaxgeodp.releases import law, _draw\nfrom jaxgeodp._version import x\nimport walk\n"
        "law._NUMBER, self._one, jitted._cache_size()\nmonkeypatch.setattr(law, '_draw', 1)\n"
        "monkeypatch.setattr(walk, '_draw', 1)\nmonkeypatch.setattr('jaxgeodp.files._draw', 1)\n"
        "monkeypatch.setattr(law, '__name__', 1)"
    )
    mine = {"law._NUMBER", "law._draw", "jaxgeodp.files._draw"}
    assert borrowed(tree, private) == mine | {"jaxgeodp.releases._draw", "jaxgeodp._version.x"}


def classes(trees):
    """Of all classes by name, what they define and the names of their bases."""
    found = {}
    for node in (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        own = {getattr(part, "name", ast.unparse(getattr(part, "target", part))): part for part in node.body}
        bases = [ast.unparse(base).rpartition(".")[2] for base in node.bases]
        found[node.name] = own, bases
    return found


def mere_pointers(trees):
    """Overriding methods whose docstring only points to another: what they override has one already."""
    known = classes(trees)

    def inherited(name):
        bases = known[name][1] if name in known else []
        return set().union(*({*known.get(base, ({},))[0], *inherited(base)} for base in bases))

    return {
        f"{name}.{method}"
        for name, (own, _) in known.items()
        for method, node in own.items()
        if isinstance(node, ast.FunctionDef) and method in inherited(name)
        if re.fullmatch(r"See `[\w.]+`\.", ast.get_docstring(node) or "")
    }


def test_methods_that_override_do_not_only_point_to_another():
    assert mere_pointers(sources().values()) == set()


def test_mere_pointers_are_found():
    base = 'class A:\n    size: int\n    def f(self):\n        """What it is."""\nclass B(x.A): ...\n'
    own = 'class C(B):\n    def f(self):\n        """See `A.f`."""\n    def size(self):\n        """See `A.g`."""\n'
    assert mere_pointers([ast.parse(base + own + own.replace("C", "D").replace("B", "E"))]) == {"C.f", "C.size"}


@pytest.mark.parametrize("module", ["matplotlib", "pyarrow", "sklearn", "trimesh"])
def test_help_does_not_wait_for(module, loaded_by_the_command_line):
    assert module not in loaded_by_the_command_line


@pytest.fixture(scope="module")
def loaded_by_the_command_line():
    names = "check", "release", "describe", "face", "ledger", "sweep"
    code = f"import sys, jaxgeodp.cli.lazily as own; list(map(own.loaded, {names})); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "jaxgeodp.cli.face" in done.stdout.split()
    return done.stdout.split()
