"""The commands of ``jaxgeodp``, put together; each is a file of this folder that bears its name.

A command imports inside its function only what takes long and ``--help`` does not need: meshes, pictures, Parquet.
"""

import gc
from typing import Annotated

import typer

from jaxgeodp._version import __version__
from jaxgeodp.cli.audit import audit
from jaxgeodp.cli.ball import ball
from jaxgeodp.cli.cache import keep_compiled_programs
from jaxgeodp.cli.check import check
from jaxgeodp.cli.compare import compare
from jaxgeodp.cli.demo import demo
from jaxgeodp.cli.describe import describe
from jaxgeodp.cli.face import face
from jaxgeodp.cli.frame import one_sentence_errors, robust_output
from jaxgeodp.cli.info import info
from jaxgeodp.cli.ledger import ledger_app
from jaxgeodp.cli.plan import plan
from jaxgeodp.cli.release import release
from jaxgeodp.cli.reproduce import reproduce
from jaxgeodp.cli.show import show
from jaxgeodp.cli.simulate import simulate
from jaxgeodp.cli.site import site_app
from jaxgeodp.cli.sweep import sweep
from jaxgeodp.cli.synthesize import synthesize

app = typer.Typer(
    name="jaxgeodp",
    help="Differential privacy on Riemannian manifolds: exact private means of matrices, directions and shapes.",
    no_args_is_help=True,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
)
# In the order of use.
_START, _CUSTODIAN, _RESEARCH = "Start", "For custodians of data", "For research"
for panel, commands in {
    _START: (demo, info),
    _CUSTODIAN: (check, ball, plan, release, describe, show, compare, synthesize, face, audit),
    _RESEARCH: (simulate, sweep, reproduce),
}.items():
    for command in commands:
        app.command(rich_help_panel=panel)(command)
app.add_typer(ledger_app, name="ledger", rich_help_panel=_CUSTODIAN)
app.add_typer(site_app, name="site", rich_help_panel=_CUSTODIAN)


def main() -> None:
    """Entry point of the ``jaxgeodp`` command."""
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
    with one_sentence_errors():
        keep_compiled_programs()
    if version:
        info()
        raise typer.Exit()
    if context.invoked_subcommand is None:
        context.fail("Missing command; 'jaxgeodp --help' lists them.")
