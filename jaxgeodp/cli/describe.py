"""``jaxgeodp describe``: a data file in; its private mean with variance, covariance and region, and a report, out."""

import pathlib
from typing import Annotated

import jax
import numpy as np
import typer

from jaxgeodp.checks import InputError
from jaxgeodp.cli.ball_options import BALL, CENTER, DOMAIN, RADIUS_OR_AUTO, BallOptions, radius_of
from jaxgeodp.cli.frame import OUTPUT, check_writable, one_sentence_errors, quiet_libraries, say, shown
from jaxgeodp.cli.layout import (
    ARRAY,
    COLUMNS,
    DEGREES,
    DELIMITER,
    EXPECT_N,
    HEADER,
    MANIFOLD,
    SIZE,
    TRIANGLE,
    Layout,
)
from jaxgeodp.cli.ledger import DATASET, LEDGER, opened_ledger
from jaxgeodp.cli.reading import check_manifold_name, read_records
from jaxgeodp.files import write_atomically
from jaxgeodp.manifolds.described import to_lists

_FILES = ("mean.json", "variance.json", "covariance.json", "description.json", "report.html")
# Principal geodesics that the report shows.
_SHOWN = 2
# And that are told of.
_TOLD = 5
_ACROSS = ("rim of the region", "released", "opposite rim")
_DEVIATIONS = tuple(f"{word} standard deviations" for word in ("-2", "0", "+2"))


def describe(
    data: Annotated[pathlib.Path, typer.Argument(help="Records, as of 'jaxgeodp release'.")],
    manifold: MANIFOLD,
    out: Annotated[pathlib.Path, typer.Option(help="The folder for three records, a summary and report.html.")],
    epsilon: Annotated[float | None, typer.Option(help="Privacy parameter of all together, pure; or")] = None,
    mu: Annotated[float | None, typer.Option(help="that of Gaussian noise: mu^2/2-zCDP.")] = None,
    center: CENTER = None,
    radius: RADIUS_OR_AUTO = None,
    domain: DOMAIN = None,
    ball: BALL = None,
    array: ARRAY = None,
    header: HEADER = False,
    delimiter: DELIMITER = ",",
    columns: COLUMNS = None,
    size: SIZE = None,
    triangle: TRIANGLE = None,
    degrees: DEGREES = None,
    expect_n: EXPECT_N = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files of --out that exist.")] = False,
    ledger: LEDGER = None,
    dataset: DATASET = None,
) -> None:
    """Release mean, variance and covariance with one budget, and say what the mean is worth."""
    with one_sentence_errors():
        if (epsilon is None) == (mu is None):
            raise InputError("give one of --epsilon and --mu.")
        layout = Layout(array, header, delimiter, columns, size, triangle, degrees, expect_n, None, None)
        check_manifold_name(manifold)
        found = "auto" if (center, radius, ball) == (None, None, None) else None
        center, radius = found or center, found or radius
        public = BallOptions(center, radius_of(center, radius, ball, domain), ball)
        public.check(manifold)
        inputs = [data, *public.files, *([] if ledger is None else [ledger])]
        if out.is_dir():
            for name in _FILES:
                check_writable(out / name, overwrite, inputs)
        else:
            check_writable(out, overwrite, inputs)  # made after the releases, as a folder
        book = opened_ledger(ledger, dataset)
        from jaxgeodp.inference import describe as describe_records

        with OUTPUT.status("Compiling and releasing ..."), quiet_libraries(), jax.enable_x64(True):
            space, records = read_records(data, manifold, layout, None)
            where = None if center == "auto" else public.ball(space, layout)
            description = describe_records(
                records, space, epsilon=epsilon, mu=mu, ball=where, domain=domain, ledger=book
            )
            description.save(out, overwrite=True)
        with OUTPUT.status("Simulating releases for the region ..."), quiet_libraries(), jax.enable_x64(True):
            rows, geodesics = _summary(description)
            page = _page(description, rows, geodesics)
        created = description.mean.record["created"]
        write_atomically(out / "report.html", page, replace=True, changed=created)
    for name, words in rows.items():
        say(f"{name}: {shown(words)}")
    say(f"Wrote {', '.join(_FILES)} to {shown(out)}.")


def _summary(description):
    """What is said of a description, and its principal geodesics."""
    from jaxgeodp.inference import principal_geodesics

    promise = description.guarantee
    kind = next(name for name in ("epsilon", "rho") if name in promise)
    rows = {
        "Records": str(description.mean.record["n"]),
        "Promise": f"{promise['kind']}, {kind} = {promise[kind]:g}, of all together",
    }
    if not description.has_spread:
        return rows | {"Spread": "could not be computed about the mean that was released; there is no region"}, None
    region, own = description.region, principal_geodesics(description)
    deviation = float(np.sqrt(description.population.variance))
    rows |= {
        "Region": f"the mean of the population is within {region.radius:.4g} of the released mean, at level "
        f"{region.level:g} (a parametric bootstrap; of the population clipped to the ball)",
        "Spread": f"root mean square distance {deviation:.4g}",
        "Principal geodesics": "their noise hides them"
        if not description.population.kept
        else "; ".join(
            f"{share:.0%} of the variance, standard deviation {np.sqrt(variance):.4g} "
            f"({np.sqrt(low):.4g} to {np.sqrt(high):.4g})"
            for share, variance, (low, high) in list(zip(own.shares, own.variances, own.intervals, strict=True))[:_TOLD]
        )
        + f" (intervals for all of them together, at level {own.level:g})",
    }
    return rows, own


def _page(description, rows, own):
    from jaxgeodp.pictures import page_of_description  # Matplotlib

    mean = description.mean.record
    if own is None:
        return page_of_description(mean, rows, [])
    radius, drawn = description.region.radius, []
    if description.population.kept:
        length = radius / float(np.sqrt(own.variances[0]))
        title = "How far the mean may be off: to the rim of its region, both ways along principal geodesic 1"
        drawn.append((title, _beside(mean, own.along(0, [-length, 0.0, length]), _ACROSS)))
        for place in range(min(_SHOWN, len(own.variances))):
            title = f"Along principal geodesic {place + 1}: -2, 0 and +2 standard deviations"
            drawn.append((title, _beside(mean, own.along(place, [-2.0, 0.0, 2.0]), _DEVIATIONS)))
    return page_of_description(mean | {"region": radius}, rows, drawn)


def _beside(mean, points, captions):
    """Records to be drawn beside each other: numbers have one scale of colours, and ellipsoids one size."""
    grey = "; grey: centre of the ball" if mean["manifold"]["name"] == "PlanarShapes" else ""
    limit = float(np.max(np.linalg.norm(points, 2, axis=(1, 2)) if points.ndim == 3 else np.abs(points)))
    return [
        mean | {"value": to_lists(point), "limit": limit, "caption": caption + grey}
        for point, caption in zip(points, captions, strict=True)
    ]
