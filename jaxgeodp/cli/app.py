"""The commands of ``jaxgeodp``, put together; each is a file of this folder that bears its name.

They are imported when they are called. A command imports inside its function only what takes long and ``--help`` does
not need: meshes, pictures, Parquet.
"""

import gc
from typing import Annotated

import typer

from jaxgeodp._version import __version__
from jaxgeodp.cli.frame import one_sentence_errors, robust_output
from jaxgeodp.cli.lazily import Entry, LazyGroup

# In the order of use.
_START, _CUSTODIAN, _RESEARCH = "Start", "For custodians of data", "For research"
_NAMES = {
    _START: ("demo", "init", "info"),
    _CUSTODIAN: (
        *("check", "ball", "plan", "release", "describe", "show", "export", "compare", "synthesize", "face", "attack"),
        *("audit", "ledger", "site"),
    ),
    _RESEARCH: ("simulate", "sweep", "reproduce"),
}
# They read what is written, without JAX.
_READING = ("ledger", "show")


class Commands(LazyGroup):
    """Group of all commands."""

    entries = tuple(Entry(name, panel) for panel, names in _NAMES.items() for name in names)


app = typer.Typer(
    name="jaxgeodp",
    cls=Commands,
    help="Differential privacy on Riemannian manifolds: exact private means of matrices, directions and shapes.",
    no_args_is_help=True,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the ``jaxgeodp`` command."""
    # Tracing makes many objects that stay: to look through them for cycles was a tenth of a command's time.
    gc.set_threshold(100_000, 50, 100)
    with robust_output():
        app()


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="With --version: of everything below it too, and the devices.")
    ] = False,
) -> None:
    if version and not verbose:
        typer.echo(f"jaxgeodp {__version__}")
        raise typer.Exit()
    if verbose and not version:
        raise typer.BadParameter("only goes with --version.", context, param_hint="--verbose")
    if context.invoked_subcommand not in _READING:
        from jaxgeodp.cli.cache import keep_compiled_programs  # JAX

        with one_sentence_errors():
            keep_compiled_programs()
    if version:
        from jaxgeodp.cli.info import info

        info()
        raise typer.Exit()
    if context.invoked_subcommand is None:
        context.fail("Missing command; 'jaxgeodp --help' lists them.")
