"""The options that say how files are read: their words, and what a shell completes; `jaxgeodp.io` reads by them."""

import pathlib
from typing import Annotated

import typer

from jaxgeodp.cli.completion import manifolds, one_of

MANIFOLD = Annotated[
    str,
    typer.Option(
        help="euclidean, sphere, hyperbolic, spd, rotations, shapes or grassmann; sizes are read off the file's "
        "shape. Or a product with its sizes, as 'sphere(2) * spd(3)'.",
        autocompletion=manifolds,
    ),
]
ARRAY = Annotated[str | None, typer.Option(help="Name of the array in an .npz file that holds several.")]
HEADER = Annotated[
    bool, typer.Option("--header", help="The first line of .csv files holds names of columns; never guessed.")
]
DELIMITER = Annotated[
    str, typer.Option(help="What stands between the cells of .csv files: a character, 'tab' or 'space'.")
]
COLUMNS = Annotated[
    str | None,
    typer.Option(
        help="The columns of a table that make a record, in this order: numbers from 1 and ranges, '3-18', or names, "
        "'x1,y1,x2,y2'."
    ),
]
SIZE = Annotated[
    int | None,
    typer.Option(help="The size that records must have: a dimension, matrix size or number of landmarks."),
]
TRIANGLE = Annotated[
    str | None,
    typer.Option(
        help="Rows of symmetric matrices hold the lower triangle by rows, x11,x21,x22,... (default; DIPY), or the "
        "upper, x11,x12,x13,x22,... (FSL): lower or upper.",
        autocompletion=one_of("lower", "upper"),
    ),
]
DEGREES = Annotated[
    str | None,
    typer.Option(
        help="Directions are two angles in degrees: 'lat,lon' or 'dec,inc', in the order of the columns.",
        autocompletion=one_of("lat,lon", "lon,lat", "dec,inc", "inc,dec"),
    ),
]
PERSON = Annotated[
    str | None,
    typer.Option(
        help="The column (a number from 1, or a name) that says whose each record is: all that a person contributes is "
        "protected, and each counts once. In a .npz file the name of an array of labels."
    ),
]
EXPECT_N = Annotated[int | None, typer.Option(help="Refuse a file that does not hold so many records.")]
TEMPLATE = Annotated[
    pathlib.Path | None,
    typer.Option(
        help="A file with PUBLIC landmarks (k,2) or (k,3), the centre unless --center or --ball names one. On "
        "euclidean every record is first superimposed on them (Procrustes) and scaled to their centroid size."
    ),
]
MISSING = Annotated[
    str,
    typer.Option(
        help="A record that misses landmarks counts as the public center, or takes them from the --template, laid over "
        "those that are there: center or template.",
        autocompletion=one_of("center", "template"),
    ),
]
