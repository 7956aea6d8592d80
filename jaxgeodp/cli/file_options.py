"""The options that say how files are read, the same for all commands that read records."""

import dataclasses
import functools
import inspect
import pathlib
from typing import Annotated, Any

import typer

from jaxgeodp.checks import InputError
from jaxgeodp.cli.completion import manifolds, one_of
from jaxgeodp.cli.frame import one_sentence_errors
from jaxgeodp.cli.registries import listed
from jaxgeodp.cli.streams import given_file
from jaxgeodp.io.balls import manifold_in
from jaxgeodp.io.charts import NAMES
from jaxgeodp.io.layout import Layout
from jaxgeodp.io.records import Source
from jaxgeodp.manifolds.names import MANIFOLDS

_OPTIONS: dict[str, Any] = {
    "manifold": Annotated[
        str | None,
        typer.Option(
            help=f"{listed(MANIFOLDS)}; sizes are read off the file's shape. Or a product with its sizes, as "
            "'sphere(2) * spd(3)'. Default: that of the file --ball, where there is one.",
            autocompletion=manifolds,
        ),
    ],
    "template": Annotated[
        pathlib.Path | None,
        typer.Option(
            help="A file with PUBLIC landmarks (k,2) or (k,3), the centre unless --center or --ball names one. On "
            "euclidean every record is first superimposed on them (Procrustes) and scaled to their centroid size."
        ),
    ],
    "missing": Annotated[
        str,
        typer.Option(
            help="A record that misses landmarks counts as the public center, or takes them from the --template, laid "
            "over those that are there: center or template.",
            autocompletion=one_of("center", "template"),
        ),
    ],
    "array": Annotated[
        str | None,
        typer.Option(help="Name of the array in a .npz, .mat or .h5 file that holds several, or of a sheet."),
    ],
    "header": Annotated[
        bool, typer.Option("--header", help="The first line of tables holds names of columns; never guessed.")
    ],
    "delimiter": Annotated[
        str | None,
        typer.Option(
            help="What stands between the cells of tables: a character, 'tab' or 'space'. Default: what a first line "
            "such as sep=; says, a tab in .tsv files, else a comma."
        ),
    ],
    "decimal": Annotated[
        str, typer.Option(help="The decimal mark of tables, '.' or ','; with commas cells are separated by ';'.")
    ],
    "columns": Annotated[
        str | None,
        typer.Option(
            help="The columns of a table that make a record, in this order: numbers from 1 and ranges, '3-18', or "
            "names, 'x1,y1,x2,y2'."
        ),
    ],
    "size": Annotated[
        int | None,
        typer.Option(help="The size that records must have: a dimension, matrix size or number of landmarks."),
    ],
    "triangle": Annotated[
        str | None,
        typer.Option(
            help="Rows of symmetric matrices hold the lower triangle by rows, x11,x21,x22,... (default; DIPY), or the "
            "upper, x11,x12,x13,x22,... (FSL): lower or upper.",
            autocompletion=one_of("lower", "upper"),
        ),
    ],
    "degrees": Annotated[
        str | None,
        typer.Option(
            help="Directions are two angles in degrees: 'lat,lon', 'dec,inc' or 'ra,dec', of axes 'trend,plunge', "
            "'strike,dip' or 'dipdir,dip', too, in the order of the columns.",
            autocompletion=one_of(
                "lat,lon", "lon,lat", "dec,inc", "inc,dec", "ra,dec", "trend,plunge", "strike,dip", "dipdir,dip"
            ),
        ),
    ],
    "chart": Annotated[
        str | None,
        typer.Option(
            "--as",
            help="How points are written, never guessed. The unit of angles on a circle or torus: degrees, radians, "
            "hours, turns. Directions: as --degrees. Rotations: matrix, quaternions wxyz or xyzw, rotvec, "
            "euler-XYZ-degrees (capitals: about turning axes); of rigid motions after the translation. Hyperbolic "
            "space: poincare, klein, half-space, hyperboloid. Correlations: covariance, to be scaled.",
            autocompletion=one_of(*NAMES),
        ),
    ],
    "expect_n": Annotated[int | None, typer.Option(help="Refuse a file that does not hold so many records.")],
    "person": Annotated[
        str | None,
        typer.Option(
            help="The column (a number from 1, or a name) that says whose each record is: all that a person "
            "contributes is protected, and each counts once. In a .npz file the name of an array of labels."
        ),
    ],
    "group": Annotated[
        str | None,
        typer.Option(
            help="The column that says which group each record is in: one release a group, charged once; "
            "of 'jaxgeodp ball', which public group."
        ),
    ],
}
# Those that only some commands have.
_SPECIAL = ("template", "missing", "expect_n", "person", "group")


def reads(words: str, *special: str):
    """Give a command, in place of its first parameter, the options that make this `Source`.

    Args:
        words: the help of its argument, the file.
        special: which it has of the options that only some commands have.
    """
    keyword = inspect.Parameter.KEYWORD_ONLY
    names = [name for name in _OPTIONS if name not in _SPECIAL or name in special]
    laid_out = {field.name: field.default for field in dataclasses.fields(Layout)}
    defaults = laid_out | {"manifold": None, "template": None, "missing": "center"}
    file = inspect.Parameter("data", keyword, annotation=Annotated[pathlib.Path, typer.Argument(help=words)])
    manifold, *others = (
        inspect.Parameter(name, keyword, annotation=_OPTIONS[name], default=defaults[name]) for name in names
    )

    def with_options(command):
        @functools.wraps(command)
        def called(data, manifold, template=None, missing="center", **given):
            layout = {name: given.pop(name) for name in names if name in laid_out}
            with one_sentence_errors():
                if manifold is None and "ball" not in given:
                    raise InputError("--manifold is needed.")
                manifold = manifold_in(given["ball"]) if manifold is None else manifold
                source = Source.of(given_file(data, ".csv"), manifold, Layout(**layout), template, missing)
            command(source, **given)

        _, *own = (one.replace(kind=keyword) for one in inspect.signature(command).parameters.values())
        called.__signature__ = inspect.Signature(  # pyright: ignore[reportAttributeAccessIssue]
            [file, manifold, *own, *others]
        )
        return called

    return with_options
