"""``jaxgeodp init``: questions about the data, and a project file with the answers."""

import json
import pathlib
from typing import Annotated

import typer

from jaxgeodp.checks import InputError
from jaxgeodp.cli.frame import check_writable, one_sentence_errors, say
from jaxgeodp.cli.project import FILE
from jaxgeodp.files import write_atomically
from jaxgeodp.io.charts import NAMES, PERIODS, chart_named
from jaxgeodp.io.csv_files import TABLES, opened
from jaxgeodp.io.layout import Layout
from jaxgeodp.io.tables import check_manifold, kind_of
from jaxgeodp.io.text_files import suffix_of
from jaxgeodp.manifolds.names import MANIFOLDS

# Whose rows say nothing without it.
_NEEDS_CHART = ("circle", "torus")


def init(
    overwrite: Annotated[bool, typer.Option("--overwrite", help=f"Replace {FILE} if it exists.")] = False,
) -> None:
    """Ask what the data are, and write jaxgeodp.toml, so that 'jaxgeodp check' and 'release' need no options.

    Nothing is read of the data but the names of columns, and nothing is released.
    """
    with one_sentence_errors():
        check_writable(FILE, overwrite, [], "the project file")
        answers = _answers()
        text = "".join(f"{key} = {_in_toml(value)}\n" for key, value in answers.items())
        write_atomically(FILE, f"{_HEAD}{text}", replace=overwrite)
    say(f"Wrote {FILE}. Now, in this folder:")
    for line in _next(answers):
        say(f"  {line}")


_HEAD = "# Options of jaxgeodp for the data in this folder; a call's own win. Below [release] stand its own.\n"


def _answers() -> dict[str, str | bool]:
    """What is asked, by names of options; what is not said is left out."""
    answers: dict[str, str | bool] = {}
    data = typer.prompt("The file with the private records")
    if not pathlib.Path(data).exists():
        raise InputError(f"{data}: there is no such file.")
    answers["data"] = data
    names = _names(pathlib.Path(data), answers)
    say(f"The space that a record is a point of: {', '.join(MANIFOLDS)}; docs/manifolds.md says which is which.")
    manifold = typer.prompt("Space")
    check_manifold(manifold)
    answers["manifold"] = manifold
    if names:
        say(f"Its columns: {', '.join(names)}")
        _ask(answers, "columns", "Columns of a record, such as x1-y9 or 2-7; empty for all")
        _ask(answers, "person", "The column that says whose a record is; empty if each person has one record")
    charts = [name for name in NAMES if kind_of(manifold) in chart_named(name).kinds]
    if charts:
        units = kind_of(manifold) in _NEEDS_CHART
        words = (
            f"The unit of angles: {', '.join(PERIODS)}"
            if units
            else f"How they are written, {', '.join(charts)}; empty"
        )
        _ask(answers, "as", words if units else f"{words} for the space's own coordinates")
    _ask(answers, "ball", "The public ball, a file that 'jaxgeodp ball' makes of public data", "ball.json")
    _ask(answers, "ledger", "The ledger, a file that counts what is spent", "budget.db")
    _ask(answers, "dataset", "The name of the data in the ledger", "default")
    fields = {"chart" if key == "as" else key: value for key, value in answers.items()}
    Layout(**{key: fields[key] for key in ("header", "delimiter", "columns", "person", "chart") if key in fields})  # pyright: ignore[reportArgumentType]
    return answers


def _names(path, answers) -> list[str]:
    """The names of the columns of a table, if its first line is said to have them."""
    if path.is_dir() or suffix_of(path) not in TABLES:
        return []
    if typer.confirm("Does its first line name the columns?", default=True):
        answers["header"] = True
    _ask(answers, "delimiter", "What stands between cells: a character, tab or space; empty for commas")
    delimiter = Layout(delimiter=str(answers["delimiter"])).delimiter if "delimiter" in answers else None
    return list(opened(path, True, delimiter).names or ()) if "header" in answers else []


def _ask(answers, option, question, default=""):
    answer = typer.prompt(question, default=default, show_default=bool(default)).strip()
    if answer:
        answers[option] = answer


def _in_toml(value) -> str:
    return str(value).lower() if isinstance(value, bool) else json.dumps(value)


def _next(answers):
    yield "jaxgeodp check"
    if "ball" in answers:
        yield f"jaxgeodp ball PUBLIC.csv --n N --epsilon 1 --out {answers['ball']}    (public records of the same kind)"
    if "ledger" in answers:
        yield f"jaxgeodp ledger init {answers['ledger']} --epsilon 2 --dataset {answers['dataset']}"
    yield "jaxgeodp release --epsilon 1 --out release.json"
