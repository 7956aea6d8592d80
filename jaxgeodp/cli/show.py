"""``jaxgeodp show``: what a release record says, in words, and as one HTML page with a picture."""

import pathlib
import sys
from typing import Annotated

import typer

from jaxgeodp.checks import InputError
from jaxgeodp.cli.conventions import tell
from jaxgeodp.cli.frame import OUTPUT, check_writable, one_sentence_errors, quiet_libraries, say
from jaxgeodp.cli.record_words import record_lines, row_of
from jaxgeodp.cli.streams import STANDARD, given_file
from jaxgeodp.files import write_atomically
from jaxgeodp.pictures.plain_words import most_right
from jaxgeodp.privacy.release import Release, record_digest

# Whose values are radial curves of a face, and how much finer than these its surface is drawn.
_OF_FACES, _FINER = ("SurfaceMeanMechanism", "FaceMeanMechanism"), 2
# What comes of reading a document that has other entries.
_ANOTHER = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError)


def show(
    record: Annotated[
        pathlib.Path, typer.Argument(help="A release record (release.json), '-', or a folder of describe.")
    ],
    html: Annotated[pathlib.Path | None, typer.Option("--html", help="The page to write, complete in itself.")] = None,
    csv: Annotated[
        pathlib.Path | None,
        typer.Option("--csv", help="A table to write with the value as one line, written as the records were (--as)."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace --html and --csv if they exist.")] = False,
) -> None:
    """Show what a release promises, what it cost and how it was made; with --html as a page with a picture.

    Of a folder of 'jaxgeodp describe' what it has told; no record is read, and nothing is spent.
    """
    with one_sentence_errors():
        if (record / "description.json").is_file():
            if csv is not None:
                raise InputError(f"--csv is for one release: name {record / 'mean.json'}.")
            _show_description(record, html, overwrite)
            return
        record = given_file(record, ".json")
        try:
            found = Release.load(record)
            digest = record_digest(found.record)
            lines = (*record_lines(found.record), f"digest:  {digest}", *_together(found.record))
            page = None if html is None else _page(found.record, digest)
            row = None if csv is None else row_of(found.record)
        except InputError:
            raise
        except _ANOTHER:
            raise InputError(f"{record}: is not a complete release record.") from None
        printed = csv == STANDARD
        written = {path for path in (html, None if printed else csv) if path is not None}
        if html is not None and html == csv:
            raise InputError("--html and --csv must name two different files.")
        for path in written:
            check_writable(path, overwrite, [record, *(written - {path})], "--html" if path == html else "--csv")
        if html is not None and page is not None:
            write_atomically(html, page, replace=overwrite)
        if csv is not None and row is not None:
            line = ",".join(map(repr, row.tolist())) + "\n"
            if printed:
                sys.stdout.write(line)
            else:
                write_atomically(csv, line, replace=overwrite)
    tell(record=found.record, digest=digest, right_at_most=most_right(found.record["guarantee"]))
    for line in lines:
        say(line)
    for path in (html, csv):
        if path is not None:
            say(f"Wrote {path}.")


def _show_description(folder, html, overwrite):
    """Print the description in a folder; write its page if ``html`` is given."""
    import jax

    from jaxgeodp.cli.cache import keep_compiled_programs
    from jaxgeodp.cli.description_report import summary_and_page
    from jaxgeodp.inference import Description

    keep_compiled_programs()
    if html is not None:
        check_writable(html, overwrite, sorted(folder.glob("*.json")), "--html")
    with OUTPUT.status("Simulating releases for the region ..."), quiet_libraries(), jax.enable_x64(True):
        found = Description.load(folder)
        try:
            rows, page = summary_and_page(found)
            if html is not None:
                write_atomically(html, page, replace=overwrite, changed=found.mean.record["created"])
        except InputError:
            raise
        except _ANOTHER:
            raise InputError(f"{folder}: is not a complete description.") from None
    tell(summary=rows)
    for name, words in rows.items():
        say(f"{name}: {words}")
    if html is not None:
        say(f"Wrote {html}.")


def _together(record):
    """Yield what a ledger holds of releases of groups."""
    if "group" in record:
        groups = ", ".join(map(str, record["group"]["of"]))
        yield f"The ledger has the SHA-256 of the digests of {groups}, written one after the other."


def _page(record, digest):
    from jaxgeodp.pictures import page_of  # Matplotlib

    return page_of(record, digest, _surface(record))


def _surface(record):
    """Return the mesh through the radial curves of a face; None where the value is none."""
    import numpy as np

    value = np.asarray(record["value"], float)
    if record["mechanism"] not in _OF_FACES or value.ndim != 3 or not np.all(np.isfinite(value)):
        return None
    from jaxgeodp.meshes.grid import mesh_of_curves  # SciPy

    return mesh_of_curves(value, _FINER)
