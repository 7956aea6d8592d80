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
from jaxgeodp.io.layout import Layout, chosen_columns
from jaxgeodp.io.tables import check_manifold, kind_of
from jaxgeodp.io.text_files import suffix_of
from jaxgeodp.manifolds.names import MANIFOLDS

# Whose rows say nothing without it.
_NEEDS_CHART = ("circle", "torus")
# Whose rows are triangles, or all numbers.
_NEEDS_SIZE = ("spd", "correlations")


def init(
    overwrite: Annotated[bool, typer.Option("--overwrite", help=f"Replace {FILE} if it exists.")] = False,
) -> None:
    """Ask what the data are, and write jaxgeodp.toml, so that 'jaxgeodp check' and 'release' need no options.

    Nothing is read of the data but the names of columns, and nothing is released.
    """
    with one_sentence_errors():
        check_writable(FILE, overwrite, [], "the project file")
        try:
            answers = _answers()
        except typer.Abort:
            raise InputError("init: the input ended before all questions were answered; nothing was written.") from None
        text = "".join(f"{key} = {_in_toml(value)}\n" for key, value in answers.items())
        write_atomically(FILE, f"{_HEAD}{text}", replace=overwrite)
    say(f"Wrote {FILE}. Now, in this folder:")
    for line in _next(answers):
        say(f"  {line}")


_HEAD = "# Options of jaxgeodp for the data in this folder; a call's own win. Below [release] stand its own.\n"


def _answers() -> dict[str, str | bool]:
    """Ask all questions; return the answers by names of options, without empty ones."""
    answers: dict[str, str | bool] = {}

    def ask(option, question, check=None, default=""):
        """Ask until the answer is valid; an empty one is left out."""
        while True:
            answer = typer.prompt(question, default=default, show_default=bool(default)).strip()
            try:
                if answer and check is not None:
                    check(answer)
                break
            except InputError as refused:
                say(f"{refused}")
        if answer:
            answers[option] = answer
        return answer

    def needed(option, question, check):
        while not ask(option, question, check):
            say("This must be answered.")
        return answers[option]

    data = pathlib.Path(str(needed("data", "The file, or folder, with the private records", _check_file)))
    names: tuple[str, ...] = ()
    if data.is_file() and suffix_of(data) in TABLES:
        if typer.confirm("Does its first line name the columns?", default=True):
            answers["header"] = True
        ask(
            "delimiter",
            "What stands between cells: a character, tab or space; empty for commas",
            lambda answer: Layout(delimiter=answer),
        )
        if "header" in answers:
            said = Layout(delimiter=str(answers["delimiter"]) if "delimiter" in answers else None)
            names = opened(data, True, said.delimiter).names or ()
    say(f"The space that a record is a point of: {', '.join(MANIFOLDS)}; docs/reference/manifolds.md lists them.")
    manifold = str(needed("manifold", "Space", check_manifold))
    if names:
        say(f"Its columns: {', '.join(names)}")

        def chosen(**layout):
            chosen_columns(Layout(**layout), names, len(names))

        ask("columns", "Columns of a record, such as x1-y9 or 2-7; empty for all", lambda own: chosen(columns=own))
        ask(
            "person",
            "The column that says whose a record is; empty if each person has one record",
            lambda own: chosen(person=own, columns=answers.get("columns", "1")),
        )
    charts = [name for name in NAMES if kind_of(manifold) in chart_named(name).kinds]
    if kind_of(manifold) in _NEEDS_CHART:
        needed("as", f"The unit of angles: {', '.join(PERIODS)}", chart_named)
    elif charts:
        guess = next((own for own in charts if own.split(",") == [name.lower() for name in names]), "")
        words = f"How they are written, {', '.join(charts)}; empty for the space's own coordinates"
        ask("as", words, chart_named, default=guess)
    if kind_of(manifold) in _NEEDS_SIZE and "(" not in manifold and data.is_file() and suffix_of(data) in TABLES:
        ask(
            "size",
            "The size of the matrices, if lines hold all numbers and not a triangle; empty for a triangle",
            _whole,
        )
    ask("ball", "The public ball, a file that 'jaxgeodp ball' makes of public data", _check_json, default="ball.json")
    ask("ledger", "The ledger, a file that counts what is spent", default="budget.db")
    if "ledger" in answers:
        ask("dataset", "The name of the data in the ledger", default="default")
    return answers


def _whole(answer):
    if not answer.isdecimal():
        raise InputError(f"{answer}: must be a whole number.")


def _check_json(answer):
    if pathlib.Path(answer).suffix.lower() != ".json":
        raise InputError(f"{answer}: must end in .json.")


def _check_file(answer):
    if not pathlib.Path(answer).exists():
        raise InputError(f"{answer}: there is no such file.")


def _in_toml(value) -> str:
    return str(value).lower() if isinstance(value, bool) else json.dumps(value)


def _next(answers):
    if "ball" in answers:
        yield f"jaxgeodp ball PUBLIC.csv --n N --epsilon 1 --out {answers['ball']}    (public records of the same kind)"
    yield "jaxgeodp check"
    if "ledger" in answers:
        yield f"jaxgeodp ledger init {answers['ledger']} --epsilon 2 --dataset {answers['dataset']}"
    yield "jaxgeodp release --epsilon 1 --out release.json"
