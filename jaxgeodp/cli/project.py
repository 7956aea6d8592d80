"""The project file ``jaxgeodp.toml``: options that calls in its folder need not repeat; ``jaxgeodp init`` writes it.

What stands at its top is for all commands that read or release the data and have such an option; a table such as
``[release]`` is for that command alone, and wins. What a call says wins over both, and over what contradicts it.
"""

import os
import pathlib
import tomllib
from collections.abc import Collection, Iterable
from typing import NamedTuple

from jaxgeodp.checks import InputError

FILE = pathlib.Path("jaxgeodp.toml")
#: The data file, which is an argument of the commands that read it.
DATA = "data"
#: Of the layout of files, public data among them.
LAYOUT = (
    *("manifold", "template", "missing", "array", "header", "delimiter", "decimal", "columns", "size", "triangle"),
    *("degrees", "as"),
)
#: What else may stand at the top.
SHARED = (
    *(DATA, *LAYOUT, "expect-n", "person", "center", "radius", "ball", "ledger", "dataset", "n", "epsilon", "mu"),
    *("mechanism", "statistic", "numerics"),
)
#: What stands at the top and is for a command; all of it, but for those that name less.
COMMANDS = {
    **dict.fromkeys(("check", "release", "describe", "attack"), SHARED),
    "plan": tuple(key for key in SHARED if key != "center"),  # errors do not depend on it
    "ball": (*LAYOUT, "n", "epsilon", "mu"),
}
_TABLES = ("check", "plan", "release", "describe", "attack")
_PUBLIC = "ball"
# What says who or what is protected, or how records are made ready: no command may leave it out.
_PROTECTING = ("person", "template", "missing")
# Of a single call.
_NOT_SAID = ("json", "quiet", "overwrite", "no-project")
# Of which a call says one.
_INSTEAD = (("ball", "center"), ("ball", "radius"), ("epsilon", "mu"), ("degrees", "as"))
_LONGEST = 2**20


class Defaults(NamedTuple):
    """Options that a project file sets for a call."""

    values: dict[str, str | float | bool]  #: by names of options, without hyphens in front
    words: str  #: the same, as they would be written


def defaults(command: str, options: Collection[str], said: Collection[str], file: str | None = None) -> Defaults:
    """Return what the project file of the working folder says for a call that does not say it; nothing without a file.

    Args:
        command: its name.
        options: those that it has, without hyphens in front, and "data" where it reads a data file.
        said: those of the call.
        file: the data file that the call names, if it does.

    Raises:
        ValueError: a file that is no project file, or names what the command does not have; or the private data are
            to be taken for public ones.
    """
    if command not in COMMANDS or not FILE.is_file():
        return Defaults({}, "")
    document = _read()
    if command == _PUBLIC and file is not None and DATA in document and _same(file, document[DATA]):
        raise InputError(
            f"{file}: is the private data file of {FILE}, but 'jaxgeodp ball' needs public records; name another file."
        )
    own = document.get(command, {}) if command in _TABLES else {}
    for key in own:
        if key not in options or key in _NOT_SAID:
            raise InputError(f"{FILE}: [{command}] {key}: jaxgeodp {command} has no such option; remove it.")
    for key in _PROTECTING:
        if key in document and key in COMMANDS[command] and key not in options and command != "plan":
            raise InputError(
                f"{FILE}: {key}: jaxgeodp {command} has no --{key}, so this setting would have no effect; if it is "
                "not meant for this command, put it under [release] and [check]."
            )
    shared = {key: value for key, value in document.items() if key in COMMANDS[command] and key in options}
    shared = {key: value for key, value in shared.items() if key not in _instead_of(own, command)}
    chosen = {key: value for key, value in (shared | own).items() if key not in {*said, *_instead_of(said, command)}}
    if command in ("check", "attack"):  # which look for no ball
        chosen = {key: value for key, value in chosen.items() if value != "auto"}
    if command == "plan" and "ball" in {*chosen, *said}:  # which has its manifold
        chosen = {key: value for key, value in chosen.items() if key not in ("manifold", "size")}
    return Defaults(chosen, " ".join(_words(chosen)))


def _instead_of(said, command) -> set[str]:
    """Return the options that these stand in place of."""
    pairs = [pair for pair in _INSTEAD if command != "plan" or pair != ("epsilon", "mu")]
    return {other for pair in pairs for one, other in (pair, pair[::-1]) if one in said}


def _same(one, other) -> bool:
    return os.path.realpath(str(one)) == os.path.realpath(str(other))


def _read() -> dict:
    try:
        with open(FILE, "rb") as stream:
            document = tomllib.loads(stream.read(_LONGEST).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise InputError(f"{FILE}: is not a valid TOML file; 'jaxgeodp init' writes one.") from None
    for key, value in document.items():
        table = isinstance(value, dict)
        if key not in (_TABLES if table else SHARED):
            raise InputError(f"{FILE}: {key}: there is no such {'command' if table else 'option'} for a project.")
        for name, one in value.items() if table else ((key, value),):
            if not isinstance(one, str | int | float | bool):
                raise InputError(f"{FILE}: {name}: must be text, a number, or true or false.")
    return document


def _words(values: dict) -> Iterable[str]:
    for key, value in values.items():
        if key == DATA:
            yield str(value)
        elif value is True:
            yield f"--{key}"
        elif value is not False:
            yield f"--{key} {value}"
