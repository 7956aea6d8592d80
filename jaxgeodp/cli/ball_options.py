"""The public ball, as the options ``--center``, ``--radius`` and ``--ball`` name it."""

import dataclasses
import pathlib
from typing import Annotated

import jax.numpy as jnp
import numpy as np
import typer

from jaxgeodp.checks import InputError
from jaxgeodp.cli.registries import listed
from jaxgeodp.domains import GeodesicBall, Shape
from jaxgeodp.io.balls import read_ball, read_center, read_shape
from jaxgeodp.io.layout import Layout
from jaxgeodp.io.records import Source
from jaxgeodp.manifolds import Manifold
from jaxgeodp.manifolds.names import MANIFOLDS, has_natural_origin

CENTER = Annotated[
    str | None,
    typer.Option(
        help="Centre of the public ball: a file with one point, or 'origin'; by default the --template, or, on "
        f"{listed((name for name, entry in MANIFOLDS.items() if entry.natural_origin), 'and')}, the origin."
    ),
]
RADIUS = Annotated[
    float | None, typer.Option(help="Radius of the public ball, chosen without looking at the private data.")
]
RADIUS_OR_AUTO = Annotated[
    str | None,
    typer.Option(
        "--radius",
        help="Radius of the public ball, chosen without looking at the private data; or, with --center auto, auto: a "
        "part of the budget finds the ball.",
    ),
]
DOMAIN = Annotated[
    float | None,
    typer.Option(
        help="With --radius auto: a radius about the origin within which records surely lie (by default "
        "14 on spd, 10 on hyperbolic)."
    ),
]
BALL = Annotated[
    pathlib.Path | None,
    typer.Option("--ball", help="The public ball in a file that 'jaxgeodp ball' wrote, in place of centre and radius."),
]


def radius_of(center: str | None, radius: str | None, ball: pathlib.Path | None, domain: float | None) -> float | None:
    """Return the radius that ``--radius`` gives; None where none is given, or the ball is to be found.

    Raises:
        ValueError: no number, or options that contradict a ball that is to be found.
    """
    if "auto" in (center, radius):
        if center != radius or ball is not None:
            raise InputError("--center auto and --radius auto must be given together, without --ball.")
        return None
    if domain is not None:
        raise InputError("--domain is only for --center auto --radius auto.")
    try:
        return None if radius is None else float(radius)
    except ValueError:
        raise InputError(f"--radius must be a number or, with --center auto, auto, got '{radius}'.") from None


@dataclasses.dataclass(frozen=True)
class BallOptions:
    """Values of the options above.

    Args:
        default: the centre if none is named; None for the origin, where that is natural.
    """

    center: str | None
    radius: float | None
    file: pathlib.Path | None
    default: np.ndarray | None = None

    def check(self, manifold: Manifold | str) -> None:
        """Refuse what is missing or said twice, before any record is read."""
        if self.center == "auto":
            return
        if self.file is not None:
            if self.center is not None or self.radius is not None:
                raise InputError("--ball gives the centre and the radius; leave out --center and --radius.")
            return
        if self.radius is None:
            raise InputError(
                "a public ball is needed: give --radius (and --center), or --ball with a file of 'jaxgeodp ball'."
            )
        if not self.has_center(manifold):
            raise InputError(
                f"--center is needed on {manifold}, whose origin is rarely near the data: name a file with one public "
                "point ('jaxgeodp ball' makes one from public data), or say --center origin."
            )

    def has_center(self, manifold: Manifold | str) -> bool:
        """Return whether a centre is named, or there is a default."""
        named = self.center is not None or self.default is not None or self.file is not None
        return named or (isinstance(manifold, str) and has_natural_origin(manifold))

    @property
    def files(self) -> list[pathlib.Path]:
        """Return the files that are read for the ball."""
        center = [] if self.center in (None, "origin", "auto") else [pathlib.Path(self.center)]
        return center if self.file is None else [self.file]

    def ball(self, manifold: Manifold, layout: Layout) -> GeodesicBall:
        """Return the ball, on the manifold of the records.

        Raises:
            ValueError: a file that holds no point or no ball of this manifold, or a radius that is none.
        """
        if self.file is not None:
            return read_ball(self.file, manifold)
        assert self.radius is not None  # see `check`
        if self.center is None and self.default is not None:
            center = manifold.project(manifold.as_points(jnp.asarray(self.default)))
            return GeodesicBall(manifold, center, self.radius)
        return GeodesicBall(manifold, read_center(self.center or "origin", manifold, layout), self.radius)

    def shape(self, manifold: Manifold) -> Shape | None:
        """Return the shape that the ball's file holds, if there is one.

        Raises:
            ValueError: see `read_shape`.
        """
        return None if self.file is None else read_shape(self.file, manifold)

    def if_any(self, source: Source, manifold: Manifold) -> tuple[GeodesicBall, float | None] | None:
        """Return the ball, of radius 1 if none is given, and the given radius; None without a centre; see `ball`."""
        if not self.has_center(source.manifold):
            return None
        ball = dataclasses.replace(self, radius=1.0 if self.radius is None else self.radius).ball(
            manifold, source.layout
        )
        return ball, self.radius if self.file is None else ball.radius
