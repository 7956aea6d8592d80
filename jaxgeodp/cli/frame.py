"""What surrounds every command: errors of one sentence, quiet libraries.

Exit codes: 0 done, 1 failed, 2 bad usage. An error is one sentence: what is wrong, where, what to do; it never
contains a private value.
"""

import contextlib
import os
import pathlib
import sys
import warnings

import typer
from rich.console import Console

from jaxgeodp.checks import InputError, printable
from jaxgeodp.privacy.clock import work_begins

# Without emoji and markup: ":name:" in the name of a file is no picture, and "[bold]" in a record is no style.
MESSAGES = Console(stderr=True, emoji=False, markup=False)
OUTPUT = Console(emoji=False, markup=False)
_SUFFIXES_OF_LEDGERS = ("-wal", "-shm", "-journal")


@contextlib.contextmanager
def one_sentence_errors():
    """Turn errors into one sentence: ours about the call exit with 2, failures of the system with 1.

    The words of any other error are not ours and could quote the data: only its class is named. Warnings are
    withheld for the same reason.
    """
    try:
        with warnings.catch_warnings(), work_begins():
            warnings.simplefilter("ignore")
            yield
    except InputError as error:
        _fail(str(error), 2)
    except OSError as error:
        _fail(f"{error.filename or 'the file system'}: {error.strerror or 'input/output error'}.", 1)
    except Exception as error:
        _fail(f"stopped by an unexpected {type(error).__name__}; its text is withheld, as it could quote data.", 1)


def _fail(message: str, code: int) -> None:
    MESSAGES.print(f"Error: {printable(' '.join(message.split()))}", soft_wrap=True, highlight=False)
    raise typer.Exit(code)


@contextlib.contextmanager
def robust_output():
    """Let no character stop a message, whatever the console's encoding; report a full output in words."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    try:
        yield
    except OSError as error:
        # What could not be written must not be tried again when Python ends.
        with open(os.devnull, "w") as nothing:
            os.dup2(nothing.fileno(), 1)
        MESSAGES.print(f"Error: the standard output: {error.strerror}.", soft_wrap=True, highlight=False)
        raise SystemExit(1) from None


def say(text) -> None:
    """Print a line as it is, however long: no markup, and characters that could steer a terminal as their codes."""
    OUTPUT.print(printable(text), soft_wrap=True, highlight=False)


def check_writable(out: pathlib.Path, overwrite: bool, inputs: list[pathlib.Path], option: str = "--out") -> None:
    """Refuse a file that cannot be written, that exists, or that is one of the inputs; ``option`` names it."""
    if str(out) == "-":
        raise InputError(f"{option} -: the standard output cannot be used here; name a file.")
    folder = out.parent
    if not folder.is_dir():
        raise InputError(f"{option} {out}: the folder {folder} does not exist; create it first.")
    if out.is_dir():
        raise InputError(f"{option} {out} is a folder; name a file.")
    if out.exists() and not out.is_file():
        raise InputError(f"{option} {out} is not a regular file; name another file.")
    names = {name for path in inputs for name in (path, os.path.realpath(path))}
    own = [pathlib.Path(f"{name}{suffix}") for name in names for suffix in ("", *_SUFFIXES_OF_LEDGERS)]
    if any(_same(out, path) for path in own):
        raise InputError(f"{option} {out} is another file of this call; choose another name.")
    if os.path.lexists(out) and not overwrite:
        # Perhaps the only trace of epsilon that has been spent.
        raise InputError(f"{option} {out} exists; name another file, or replace it with --overwrite.")
    if not os.access(folder, os.W_OK):
        raise InputError(f"{option} {out}: the folder {folder} is not writable.")


def check_name(out: pathlib.Path) -> None:
    """Refuse an --out that names no file, such as ".", from which no other name can be made."""
    if not out.name or out.name == "..":
        raise InputError(f"--out {out}: names no file; give a file's name.")


def check_picture(plot: pathlib.Path, overwrite: bool, inputs: list[pathlib.Path]) -> None:
    """Refuse a file of ``--plot`` that is no .png; and see `check_writable`."""
    if plot.suffix.lower() != ".png":
        raise InputError(f"--plot {plot}: must end in .png.")
    check_writable(plot, overwrite, inputs, "--plot")


def _same(out, path):
    if out.exists() and path.exists():
        return out.samefile(path)
    return os.path.realpath(out) == os.path.realpath(path)


@contextlib.contextmanager
def quiet_libraries():
    """Close the error stream to compiled libraries, unless TF_CPP_MIN_LOG_LEVEL=0 asks for XLA's log.

    XLA writes there, alarmingly, that it cannot check features of code from the cache. Raising that variable
    here would be too late: it is read when jax is imported. Our own errors are printed afterwards.
    """
    if sys.stderr is None or os.environ.get("TF_CPP_MIN_LOG_LEVEL") == "0":
        yield
        return
    sys.stderr.flush()
    kept = os.dup(2)
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
