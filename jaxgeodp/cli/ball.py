"""``jaxgeodp ball``: a public ball from public data, in a file that other commands take."""

import io
import json
import pathlib
from typing import Annotated

import jax
import numpy as np
import typer

from jaxgeodp._version import __version__
from jaxgeodp.checks import InputError, positive_integer
from jaxgeodp.cli.conventions import tell
from jaxgeodp.cli.file_options import reads
from jaxgeodp.cli.frame import OUTPUT, check_name, check_writable, one_sentence_errors, quiet_libraries, say
from jaxgeodp.cli.group_options import as_word
from jaxgeodp.domains import Shape
from jaxgeodp.files import write_atomically
from jaxgeodp.io.balls import shape_document
from jaxgeodp.io.records import Source
from jaxgeodp.io.tables import read_labels
from jaxgeodp.manifolds.described import describe
from jaxgeodp.mechanisms import Suggestion, suggest_ball
from jaxgeodp.nested_lists import to_lists

# Of a bias that is none.
_ROUNDING = 1e-12


@reads("PUBLIC records, in the formats of 'jaxgeodp release'.", "template", "missing", "group")
def ball(
    source: Source,
    n: Annotated[int, typer.Option("--n", help="Number of the private records that are to be released.")],
    out: Annotated[pathlib.Path, typer.Option(help="The file to write (JSON; a picture beside it).")],
    epsilon: Annotated[float | None, typer.Option(help="Privacy parameter of the release, or --mu.")] = None,
    mu: Annotated[float | None, typer.Option(help="Privacy parameter of a release by a Gaussian mechanism.")] = None,
    shape: Annotated[
        bool,
        typer.Option(
            "--shape",
            help="Also a shape for the noise of tangent and tangent-gaussian: that in which the public groups of "
            "--group differ from the centre; without --group, that of smooth deformations.",
        ),
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file --out if it exists.")] = False,
) -> None:
    """Centre and radius from PUBLIC data: the radius whose expected error is least for n private records."""
    with one_sentence_errors():
        if (epsilon is None) == (mu is None):
            raise InputError("jaxgeodp ball: give either --epsilon or --mu, not both.")
        if source.layout.group is not None and not shape:
            raise InputError(
                "--group is for --shape, which is estimated from public groups of records; add --shape or leave out "
                "--group."
            )
        check_name(out)
        picture = out.with_suffix(".png")
        if picture == out:
            raise InputError(
                f"--out {out}: must not end in .png, which is for the picture beside it; name a .json file."
            )
        positive_integer("ball", "n", n, 2)
        for path in (out, picture):
            check_writable(path, overwrite, source.inputs)
        with (
            OUTPUT.status("Compiling, and looking for the centre ...") as status,
            quiet_libraries(),
            jax.enable_x64(True),
        ):
            space, records = source.array()
            groups = _groups(source, np.asarray(records))

            def report(done, total):
                status.update(f"Trying radii: step {done} of {total} ...")

            found = suggest_ball(space, records, n, epsilon, mu, report)
            own = made = _shape(found, groups, n, epsilon, mu) if shape else None
            pays = made is not None and made.expected is not None and made.expected < found.error.min()
            own = own if pays else None
        write_atomically(out, _document(found, n, epsilon, mu, len(records), source, own), replace=overwrite)
        write_atomically(picture, _picture(found, n), replace=overwrite)
    say("radius   noise    bias     error")
    proven = np.isfinite(found.error)
    nearer = bool(found.error.min() < found.without)
    tell(file=str(out), radius=found.ball.radius, mechanism=found.mechanism, inside=found.inside, records=found.records)
    tell(
        radii=found.radii[proven].tolist(),
        errors=found.error[proven].tolist(),
        release_is_nearer_than_centre=nearer,
        notes=list(_edges(found, proven)),
    )
    for radius, noise, bias, error in zip(
        *(own[proven] for own in (found.radii, found.noise, found.bias, found.error)), strict=True
    ):
        mark = "  <- suggested" if radius == found.ball.radius else ""
        say(f"{radius:<8.4g} {noise:<8.3g} {0.0 if bias < _ROUNDING else bias:<8.3g} {error:<8.3g}{mark}")
    say(
        f"Wrote {out} and {picture}: a ball on {space} of radius {found.ball.radius:.4g} around the "
        f"median of {found.records} public records, {100 * found.inside:.0f} % of which lie inside; the expected error "
        f"for n = {n} is smallest by {found.mechanism}. Radius and errors are distances on the manifold. The file is "
        "PUBLIC: it must come from public records alone."
    )
    for line in _edges(found, proven):
        say(line)
    if made is not None and own is None:
        say(
            f"NO SHAPE IS IN THE FILE: the noise of the ball is expected to be off by {found.error.min():.3g}, that of "
            f"the shape by {made.expected:.3g}."
        )
    if own is not None:
        mechanism = "TangentLaplace" if mu is None else "TangentGaussian"
        say(
            f"Shape: {len(own.vectors)} of {found.ball.manifold.dim} directions by {own.source}; with it "
            f"{mechanism} has an expected error of {own.expected:.3g} (root mean "
            "square) for populations as it supposes."
        )
    if found.outliers:
        say(f"{found.outliers} public records lie so far from the others that the radius leaves them out.")
    better = (
        "If it does, the release is expected to be nearer; where private records are much like these, it need not be."
        if nearer
        else ("A RELEASE IS NOT EXPECTED TO BE NEARER: use the public centre, or more records or budget.")
    )
    say(
        f"The public centre alone is supposed to lie {found.without:.3g} from the private mean, half the spread of the "
        f"public records. {better}"
    )


def _edges(found: Suggestion, proven):
    """Yield remarks on radii that were not tried, or not allowed."""
    radii = found.radii[proven]
    if not proven.all():
        say_of = f"{len(proven) - len(radii)} of the radii tried, up to {found.radii.max():.3g}, are left out"
        yield f"{say_of}: no mechanism is proven there, or none works with so much noise."
    if found.ball.radius in (radii.min(), radii.max()) and len(radii) > 1:
        side, other = ("smallest", "smaller") if found.ball.radius == radii.min() else ("largest", "larger")
        yield f"The suggestion is the {side} radius of the table: a {other} one, to be written by hand, was not tried."


def _groups(source: Source, records: np.ndarray) -> list[np.ndarray] | None:
    """Return the records of each group, without those that have no label; None where no column is named."""
    if (column := source.layout.group) is None:
        return None
    words = [as_word(label) for label in read_labels(source.path, source.layout, "group", len(records))]
    names = sorted({word for word in words if word is not None})
    if not names:
        raise InputError(f"--group {column}: no record has a label.")
    for name in names:
        if words.count(name) < 2:
            raise InputError(f"--group {column}: '{name}' has only one record, and a group needs at least two.")
    return [records[[word == name for word in words]] for name in names]


def _shape(found: Suggestion, groups: list[np.ndarray] | None, n, epsilon, mu) -> Shape:
    ball, strength = found.ball, {"epsilon": epsilon, "mu": mu}
    if groups is None:
        return Shape.smooth(ball.manifold, ball.center, n, radius=ball.radius, offset=found.without, **strength)
    return Shape.from_groups(ball.manifold, ball.center, groups, n, **strength)


def _document(found: Suggestion, n, epsilon, mu, count, source, shape: Shape | None) -> str:
    document = {
        "manifold": describe(found.ball.manifold.whole),
        "center": to_lists(found.ball.center),
        "radius": found.ball.radius,
        "made": {
            "from": f"{found.records} points of {count} records, supposed to be public",
            "inside": found.inside,
            "for": {"n": n} | ({"epsilon": epsilon} if mu is None else {"mu": mu}),
            "mechanism": found.mechanism,
            "radii": found.radii.tolist(),
            "expected_error": [None if error == float("inf") else error for error in found.error.tolist()],
            "library": {"name": "jaxgeodp", "version": __version__},
        }
        | source.described,
    } | ({} if shape is None else {"shape": shape_document(shape)})
    return json.dumps(document, indent=2) + "\n"


def _picture(found: Suggestion, n) -> bytes:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0, 3.6), layout="constrained")
    axes = figure.subplots()
    proven = np.isfinite(found.error)
    for values, color, width, words in (
        (found.noise, "C0", 1.5, "noise"),
        (found.bias, "C1", 1.5, "bias of clipping"),
        (found.error, "black", 2.0, "both"),
    ):
        axes.plot(found.radii[proven], values[proven], color=color, linewidth=width, label=words)
    axes.axvline(found.ball.radius, color="0.6", linestyle="--", linewidth=1.0, label="suggested")
    axes.set(xlabel="radius of the public ball", ylabel="expected error", title=f"n = {n} private records")
    axes.set(ylim=(0.0, None))
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=150)
    return file.getvalue()
