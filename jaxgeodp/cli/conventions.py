"""What all commands have in common: panels of their help, examples, --quiet and --json, and the project file."""

import functools
import inspect
import sys
from collections.abc import Callable
from json import dumps as to_json
from typing import Annotated, Any

import typer
from typer.core import TyperArgument, TyperOption

from jaxgeodp.checks import InputError
from jaxgeodp.cli.frame import OUTPUT, one_sentence_errors, say
from jaxgeodp.cli.project import COMMANDS, DATA, FILE, defaults
from jaxgeodp.cli.streams import STANDARD

_PANELS = {
    "The file": (
        *("array", "header", "delimiter", "decimal", "columns", "size", "triangle", "degrees", "as", "expect-n"),
        *("person", "group", "groups", "groups-per-person", "weights", "missing"),
    ),
    "Space and public ball": ("manifold", "template", "center", "radius", "ball", "domain", "shape"),
    "Mechanism and budget": (
        *("mechanism", "statistic", "calibration", "numerics", "symmetric", "epsilon", "mu", "delta", "n"),
        *("adjacency", "ledger", "dataset"),
    ),
    "Output": ("out", "html", "csv", "plot", "overwrite", "quiet", "json", "no-project"),
}
_PANEL_OF = {option: panel for panel, options in _PANELS.items() for option in options}
_EXAMPLES = {
    "check": ("jaxgeodp check scans.csv --manifold spd --header --columns 2-7 --ball ball.json",),
    "ball": ("jaxgeodp ball public.csv --manifold spd --n 600 --epsilon 1 --out ball.json",),
    "plan": ("jaxgeodp plan --ball ball.json --n 600 --epsilon 1",),
    "release": (
        "jaxgeodp release scans.csv --ball ball.json --epsilon 1 --ledger budget.db --out release.json",
        "jaxgeodp release directions.csv --manifold sphere --center north.csv --radius .4 --mu 1 --out release.json",
        "gpg -d scans.csv.gpg | jaxgeodp release - --ball ball.json --epsilon 1 --ledger budget.db --out release.json",
    ),
    "describe": ("jaxgeodp describe scans.csv --manifold spd --ball ball.json --mu 1 --out described",),
    "attack": ("jaxgeodp attack scans.csv --manifold spd --ball ball.json --mu 1 --out attack.txt",),
    "show": ("jaxgeodp show release.json --html release.html",),
    "export": ("jaxgeodp export release.json --ledger budget.db --out to-check",),
}
# Those that tell what they found as JSON, too.
_WITH_JSON = ("attack", "check", "ball", "plan", "release", "describe", "show", "export", "compare", "ledger show")
_NO_PROJECT = "--no-project"
_told: dict[str, Any] = {}


def tell(**facts) -> None:
    """Keep what a command found, for ``--json``: numbers, text, lists and dicts."""
    _told.update(facts)


def furnished(name: str, function: Callable) -> Callable:
    """Return a command's function with the options that all have."""
    words = {"quiet": "Print nothing but errors."}
    if name in _WITH_JSON:
        words["json"] = "Print what was found as JSON, and nothing else."
    if name in COMMANDS:
        words["no-project"] = f"Do not look for a file {FILE}."
    own = inspect.signature(function).parameters.values()
    more = [
        inspect.Parameter(
            word.replace("-", "_"), inspect.Parameter.KEYWORD_ONLY, default=False, annotation=_flag(word, text)
        )
        for word, text in words.items()
    ]

    @functools.wraps(function)
    def with_output(*, quiet=False, json=False, no_project=False, **given):
        printed = STANDARD in (given.get("out"), given.get("csv"))
        if json and printed:
            with one_sentence_errors():
                raise InputError("--json prints to the standard output, as '-' does; leave out one.")
        before, OUTPUT.quiet = OUTPUT.quiet, OUTPUT.quiet or quiet or json or printed
        try:
            function(**given)
        finally:
            OUTPUT.quiet = before
        if json:
            sys.stdout.write(to_json(_told, indent=2) + "\n")

    with_output.__signature__ = inspect.Signature(  # pyright: ignore[reportAttributeAccessIssue]
        [*(one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own), *more]
    )
    return with_output


def furnished_as(name: str) -> Callable[[Callable], Callable]:
    """Furnish the function of a command in a group, by the name of both."""
    return functools.partial(furnished, name)


def _flag(word, text):
    return Annotated[bool, typer.Option(f"--{word}", help=text)]


def arrange(command) -> None:
    """Give the help of a command its panels, in their order, and examples at its end."""
    for param in command.params:
        if isinstance(param, TyperOption) and not param.rich_help_panel:
            names = [word.lstrip("-") for word in param.opts]
            param.rich_help_panel = next((_PANEL_OF[name] for name in names if name in _PANEL_OF), None)
    panels = list(_PANELS)
    command.params.sort(
        key=lambda param: (
            panels.index(param.rich_help_panel) if getattr(param, "rich_help_panel", None) in panels else -1
        )
    )
    if command.name in _EXAMPLES:
        command.epilog = "\n\n".join(("For example:", *_EXAMPLES[command.name]))


def called(command, arguments: list[str]) -> dict[str, Any]:
    """Return the keywords of the context of a call: what a project file says, by parameters."""
    _told.clear()
    if _NO_PROJECT in arguments:
        return {}
    parameters = {
        (DATA if isinstance(param, TyperArgument) else word.removeprefix("--")): param.name
        for param in command.params
        for word in (param.opts if isinstance(param, TyperOption) else param.opts[:1])
    }
    said, files = _said(command, arguments)
    with one_sentence_errors():
        found = defaults(str(command.name), parameters.keys(), said, files[0] if files else None)
        flags = {word.removeprefix("--") for word in _flags(command)}
        for key, value in found.values.items():
            if isinstance(value, bool) != (key in flags):
                raise InputError(f"{FILE}: {key}: must be {'true or false' if key in flags else 'text or a number'}.")
    if found.words and not {"--quiet", "--json"} & set(arguments):
        say(f"From {FILE}: {found.words}")
    tell(project=found.values)
    return {"default_map": {parameters[key]: value for key, value in found.values.items()}} if found.values else {}


def _flags(command) -> set[str]:
    return {word for param in command.params if getattr(param, "is_flag", False) for word in param.opts}


def _said(command, arguments) -> tuple[set[str], list[str]]:
    """Return the options that a call has, and "data" where it has an argument; and its arguments."""
    flags, said, files, value, rest = _flags(command), set(), [], False, False
    for word in arguments:
        if rest or (not value and not word.startswith("--")):
            files.append(word)
        elif not value and word == "--":
            rest = True
        elif not value:
            said.add(word[2:].partition("=")[0])
            value = "=" not in word and word not in flags
            continue
        value = False
    return said | ({DATA} if files else set()), files
