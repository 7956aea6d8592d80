"""``jaxgeodp ledger``: budgets of data sets, and what has been spent of them."""

import csv
import dataclasses
import decimal
import io
import json
import pathlib
from decimal import ROUND_CEILING, ROUND_FLOOR
from typing import Annotated

import typer

from jaxgeodp.checks import InputError
from jaxgeodp.cli.conventions import furnished_as, tell
from jaxgeodp.cli.frame import check_writable, one_sentence_errors, say
from jaxgeodp.files import write_atomically
from jaxgeodp.privacy import ApproximateDP, GaussianDP, PureDP, ZeroConcentratedDP
from jaxgeodp.privacy.ledger import Account, Ledger, add_budget, contents

ledger_app = typer.Typer(
    help="Budgets of data sets, and what releases have spent of them; see docs/ledger.md.",
    no_args_is_help=True,
    add_completion=False,
)

LEDGER = Annotated[
    pathlib.Path | None,
    typer.Option("--ledger", help="Charge the release to this ledger ('jaxgeodp ledger init') before it is drawn."),
]
DATASET = Annotated[str | None, typer.Option("--dataset", help="Id of the data set in the ledger ('default').")]
_PATH = Annotated[pathlib.Path, typer.Argument(help="The ledger's file.")]
_DEFAULT = "default"
# Of a budget: less is what adding up in decimals has left.
_OF_ROUNDING = 1e-11
_COLUMNS = (
    *("entry", "dataset", "time", "mechanism", "kind", "epsilon", "delta", "mu", "rho"),
    *("adjacency", "state", "record"),
)


def opened_ledger(path: pathlib.Path | None, dataset: str | None) -> Ledger | None:
    """Return the ledger of the options --ledger and --dataset, or None."""
    if path is None:
        if dataset is not None:
            raise InputError("--dataset needs --ledger, the ledger that holds the data set.")
        return None
    return Ledger(path, dataset=_DEFAULT if dataset is None else dataset)


@ledger_app.command()
@furnished_as("ledger init")
def init(
    path: _PATH,
    epsilon: Annotated[float | None, typer.Option(help="All that may be spent, in epsilon (pure).")] = None,
    delta: Annotated[float | None, typer.Option(help="With --epsilon: a budget of (epsilon, delta).")] = None,
    mu: Annotated[float | None, typer.Option(help="All that may be spent, in mu (Gaussian DP).")] = None,
    rho: Annotated[float | None, typer.Option(help="All that may be spent, in rho (zCDP), which takes both.")] = None,
    dataset: Annotated[str, typer.Option(help="Id of the data set; one ledger may hold many.")] = _DEFAULT,
) -> None:
    """Give a data set its budget, in a new ledger or in one that exists; it cannot be changed afterwards."""
    with one_sentence_errors():
        one = sum(number is not None for number in (epsilon, mu, rho)) == 1 and (delta is None or epsilon is not None)
        if one and epsilon is not None:
            budget = PureDP(epsilon) if delta is None else ApproximateDP(epsilon, delta)
        elif one and mu is not None:
            budget = GaussianDP(mu)
        elif one and rho is not None:
            budget = ZeroConcentratedDP(rho)
        else:
            raise InputError("ledger init needs exactly one budget: --epsilon, --epsilon with --delta, --mu or --rho.")
        ledger = add_budget(path, budget, dataset)
    say(f"{path}: data set '{ledger.dataset}' may spend {_words(ledger.budget)}.")


@ledger_app.command()
@furnished_as("ledger show")
def show(path: _PATH) -> None:
    """Print what is spent and left of every budget, and how many releases were lost."""
    with one_sentence_errors():
        accounts, _ = contents(path)
    tell(budgets=_budgets(accounts))
    rows = [("data set", "budget", "spent", "left", "releases", "lost", "neighbours")]
    rows += [
        (
            *(a.dataset, _words(a.budget), _rounded(a.spent, ROUND_CEILING), left_in_words(a)),
            *(str(a.releases), str(a.lost), a.adjacency),
        )
        for a in accounts
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for cells in rows:
        say("  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip())


@ledger_app.command()
@furnished_as("ledger export")
def export(
    path: _PATH,
    out: Annotated[pathlib.Path, typer.Option(help="The file to write: .csv (releases) or .json (budgets, too).")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file --out if it exists.")] = False,
) -> None:
    """Write all entries of a ledger to a file."""
    with one_sentence_errors():
        if out.suffix.lower() not in (".csv", ".json"):
            raise InputError(f"--out {out}: must end in .csv or .json.")
        check_writable(out, overwrite, [path])
        accounts, rows = contents(path)
        write_atomically(
            out, table_of(rows) if out.suffix.lower() == ".csv" else _document(accounts, rows), replace=overwrite
        )
    say(f"Wrote {out}: {len(rows)} releases.")


def left_in_words(account: Account) -> str:
    """Return what is left of a budget, rounded down; what rounding alone has left is nothing."""
    whole = _parameters(account.budget)
    left = {name: 0.0 if number < _OF_ROUNDING * whole[name] else number for name, number in account.left.items()}
    return _rounded(left, ROUND_FLOOR)


def what_is_left(ledger: Ledger) -> str:
    """Return what a data set's ledger has left, in words."""
    accounts, _ = contents(ledger.path)
    return next(left_in_words(account) for account in accounts if account.dataset == ledger.dataset)


def table_of(rows: list[dict]) -> str:
    """Return entries of a ledger as a table of comma-separated values."""
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(row | row["guarantee"] for row in rows)
    return text.getvalue()


def _document(accounts, rows):
    return json.dumps({"budgets": _budgets(accounts), "releases": rows}, indent=2) + "\n"


def _budgets(accounts):
    return [
        {
            "dataset": account.dataset,
            "budget": _parameters(account.budget),
            "spent": account.spent,
            "left": account.left,
            "releases": account.releases,
            "lost": account.lost,
            "adjacency": account.adjacency,
        }
        for account in accounts
    ]


def _parameters(guarantee):
    return dataclasses.asdict(guarantee)


def _words(guarantee):
    return _numbers(_parameters(guarantee))


def _rounded(parameters, direction):
    """Return parameters to six digits: what is spent rounded up, what is left down."""
    digits = decimal.Context(prec=6, rounding=direction)
    return ", ".join(
        f"{name} = {float(digits.create_decimal(repr(number))):.6g}" for name, number in parameters.items()
    )


def _numbers(parameters):
    return ", ".join(f"{name} = {number!r}" for name, number in parameters.items())
