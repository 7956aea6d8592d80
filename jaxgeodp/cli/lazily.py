"""Commands that are imported when they are called: help of all of them needs their first lines alone."""

import ast
import functools
import inspect
import pathlib
from importlib import import_module
from typing import NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typing_extensions import override


class Entry(NamedTuple):
    """A command: a file of this folder with a function, or a `typer.Typer`, of its name."""

    name: str
    panel: str  #: of the help


class _Later(TyperCommand):
    """A command that stands for one that is not imported yet."""

    def __init__(self, entry: Entry):
        super().__init__(entry.name, help=_help(entry.name), rich_help_panel=entry.panel)

    @override
    def make_context(self, info_name, args, parent=None, **extra):
        from jaxgeodp.cli.conventions import called

        command = loaded(self.name)
        project = {} if extra.get("resilient_parsing") or "--help" in args else called(command, args)  # no completion
        return command.make_context(info_name, args, parent, **(project | extra))


class LazyGroup(TyperGroup):
    """The commands of `entries`, in their order."""

    entries: tuple[Entry, ...] = ()

    def __init__(self, **options):
        """Add the commands of `entries`; each is imported only when it is called."""
        super().__init__(**options)
        self.commands = {entry.name: _Later(entry) for entry in self.entries}


@functools.cache
def loaded(name: str):
    """Return the command of a name, imported."""
    module = import_module(f"jaxgeodp.cli.{name}")
    group = getattr(module, f"{name}_app", None)
    if group is not None:
        command = typer.main.get_command(group)
        command.name = name
        return command
    from jaxgeodp.cli.conventions import arrange, furnished

    group = typer.Typer(add_completion=False)
    group.command(name)(furnished(name, getattr(module, name)))
    command = typer.main.get_command(group)
    command.name = name
    arrange(command)
    return command


def _help(name) -> str:
    """Return the docstring of a command, or the help of a group, from the text of its file."""
    file = pathlib.Path(__file__).with_name(f"{name}.py")
    if not file.exists():  # of an installation without sources
        command = loaded(name)
        return command.help or ""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return inspect.cleandoc(ast.get_docstring(node) or "")
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == f"{name}_app":
            call = node.value
            assert isinstance(call, ast.Call)
            return next(ast.literal_eval(word.value) for word in call.keywords if word.arg == "help")
    raise LookupError(name)
