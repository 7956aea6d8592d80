"""``jaxgeodp check``: what a custodian should see of the records before a release; private, for nobody else's eyes."""

import dataclasses
import hashlib
import io
import pathlib
from typing import Annotated

import numpy as np
import typer

from jaxgeodp.checks import InputError
from jaxgeodp.cli.ball_options import BALL, CENTER, RADIUS, BallOptions
from jaxgeodp.cli.conventions import tell
from jaxgeodp.cli.file_options import reads
from jaxgeodp.cli.frame import OUTPUT, check_name, check_writable, one_sentence_errors, quiet_libraries, say
from jaxgeodp.cli.streams import was_sent
from jaxgeodp.files import write_atomically
from jaxgeodp.io.findings import NOT_COMPUTED, Finding, findings
from jaxgeodp.io.records import Source

_LONGEST = 2**24
_HEAD = """PRIVATE: for the custodian of the data alone. Nothing of this may be published, and neither centre nor radius
of the public ball may be chosen by it: they would tell of the records. Choose them from public data ('jaxgeodp ball').
"""


@reads("Records, as for 'jaxgeodp release'.", "template", "missing", "expect_n", "person")
def check(
    source: Source,
    out: Annotated[
        pathlib.Path | None,
        typer.Option(help="The private report to write (text; a picture beside it); default: DATA-private.txt."),
    ] = None,
    center: CENTER = None,
    radius: RADIUS = None,
    ball: BALL = None,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite",
            help="Replace what is there under the name of --out; a report as it was written always is.",
        ),
    ] = False,
) -> None:
    """Look at private records for mistakes, for the custodian alone: a private report, nothing to publish."""
    with one_sentence_errors():
        public = BallOptions(center, radius, ball, source.center)
        if out is None and was_sent(source.path):
            raise InputError("--out is needed, as data from the standard input have no folder for the report.")
        report = source.path.with_name(f"{source.path.stem}-private.txt") if out is None else out
        check_name(report)
        picture = report.with_suffix(".png")
        if picture == report:
            raise InputError(
                f"--out {report}: must not end in .png, which is for the picture beside it; name another file."
            )
        untouched = _is_untouched(report, picture, source.path.name)
        replaced = overwrite or untouched
        if report.is_file() and not replaced:
            raise InputError(
                f"--out {report}: exists, and is the report of another data file or was edited; name another file, or "
                "replace it with --overwrite."
            )
        for path in (report, picture):
            check_writable(path, replaced, [*source.inputs, *public.files])
        with OUTPUT.status("Looking at the records ..."), quiet_libraries():
            told = findings(source, lambda space: public.if_any(source, space))
            if radius is not None and told.distances is None and not public.has_center(source.manifold):
                unseen = Finding("distances", "The radius is not checked: say --center, or --template, too.")
                told = dataclasses.replace(told, found=(*told.found, unseen))
            text, drawn = _report(source.path, told)
        write_atomically(report, f"{text}{_mark(text, drawn)}", private=True, replace=replaced)
        if drawn is None and untouched:
            picture.unlink(missing_ok=True)  # of the earlier report
        elif drawn is not None:
            write_atomically(picture, drawn, private=True, replace=replaced)
    tell(
        n=told.n,
        manifold=str(told.manifold),
        usable=int(told.usable.sum()),
        private=True,
        report=str(report),
        findings=[{"about": finding.about, "text": finding.text} for finding in told.found],
    )
    for line in text.splitlines():
        say(line)
    say(f"PRIVATE: this was printed for you and written to {report}, which only you may read.")


def _mark(text, drawn) -> str:
    """Return the last line of a report, by which one is known in which nobody has written."""
    return f"(report {hashlib.sha256(text.encode() + (drawn or b'')).hexdigest()[:16]} of jaxgeodp check)\n"


def _is_untouched(report, picture, name) -> bool:
    """Return whether a file is an unchanged report of the same data, with its picture: the next may replace both."""
    if not report.is_file() or (picture.exists() and not picture.is_file()):
        return False
    try:
        with open(report, encoding="utf-8") as stream:
            text = stream.read(_LONGEST)
        drawn = picture.read_bytes() if picture.exists() else None
    except (OSError, UnicodeDecodeError):
        return False
    head, line, _ = text.rpartition("(report ")
    return bool(line) and text == f"{head}{_mark(head, drawn)}" and f"\n{name}: " in head


def _report(path, told) -> tuple[str, bytes | None]:
    """Return the text, and a picture of the distances from the centre if there is one."""
    lines = [_HEAD, f"{path.name}: {told.n} records on {told.manifold}."]
    lines += [finding.text for finding in told.found] or ["Nothing looks wrong."]
    try:
        drawn = picture_of(told)
    except Exception:  # for no content of a file may it stop the report
        drawn = None
        lines.append(NOT_COMPUTED)
    return "\n".join(lines) + "\n", drawn


def picture_of(told) -> bytes | None:
    """Return a picture of the distances from the centre; None where there are none."""
    distances, radius = told.distances, told.radius
    if distances is None or not np.isfinite(distances).any():
        return None
    from matplotlib.figure import Figure

    distances = distances[np.isfinite(distances)]
    figure = Figure(figsize=(6.0, 3.2), layout="constrained")
    axes = figure.subplots()
    # A record in other units would leave no room for all the rest.
    end = 1.5 * max(float(np.quantile(distances, 0.95)), radius or 0.0)
    shown, beyond = distances[distances <= end], int((distances > end).sum())
    axes.hist(shown, bins=_bins(shown), color="0.6", edgecolor="white", linewidth=0.4)
    if beyond:
        words = f"{beyond} farther, up to {distances.max():.3g} →"
        axes.text(0.99, 0.6, words, transform=axes.transAxes, ha="right", fontsize=8)
    if radius is not None:
        axes.axvline(radius, color="C3", label=f"radius {radius:g}")
        axes.legend(frameon=False)
    axes.set(xlabel="distance from the public centre", ylabel="records", title="PRIVATE: not to be published")
    axes.set_xlim(left=0.0)
    axes.spines[["top", "right"]].set_visible(False)
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=150)
    return file.getvalue()


def _bins(distances) -> list[float]:
    """Return bin edges from 0 to a hair above the largest distance, so that equal ones have a bar."""
    count = min(60, max(8, len(distances) // 5))
    return np.linspace(0.0, max(1.001 * float(distances.max()), 1e-300), count + 1).tolist()
