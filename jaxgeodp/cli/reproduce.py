"""``jaxgeodp reproduce``: the papers' figures and claims."""

import pathlib
import time
from typing import Annotated

import typer
from rich.text import Text

from jaxgeodp.checks import InputError
from jaxgeodp.cli.completion import papers
from jaxgeodp.cli.frame import OUTPUT, one_sentence_errors, quiet_libraries, say
from jaxgeodp.files import only_writer


def reproduce(
    paper: Annotated[
        str, typer.Argument(help="laplace-2021, kng-2022, shapes-2022 or faces-2024.", autocompletion=papers)
    ],
    out: Annotated[pathlib.Path | None, typer.Option(help="Folder of figures and tables; named as the paper.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Few replicates: to see that it works.")] = False,
    seed: Annotated[int, typer.Option(help="All numbers follow from it.")] = 0,
) -> None:
    """Repeat a paper's simulations as they ran them, as they proved them, and with our bounds; judge its claims."""
    with one_sentence_errors():
        folder = pathlib.Path(paper) if out is None else out
        _check_empty(folder)
        with OUTPUT.status("Compiling ...") as status, quiet_libraries():
            from jaxgeodp.experiments.reproduction import PAPERS
            from jaxgeodp.experiments.reproduction.run import Run

            if paper not in PAPERS:
                raise InputError(f"the paper must be one of {', '.join(PAPERS)}, got '{paper}'.")
            folder.mkdir(parents=True, exist_ok=True)
            with only_writer(folder):
                _check_empty(folder)  # another may have written meanwhile
                run = Run(quick, seed, lambda text: status.update(Text(text)))
                start = time.perf_counter()
                PAPERS[paper](run)
                seconds = time.perf_counter() - start
                run.write(folder, paper, seconds)
    for claim in run.claims:
        line = f"{claim.id:5}  {claim.setting:8}  {claim.verdict:18}  {claim.claim}: {claim.found}"
        say(line)
    say(f"Wrote {folder} in {seconds:.0f} s.")


def _check_empty(folder):
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"--out {folder} exists and is not an empty folder; name another.")
