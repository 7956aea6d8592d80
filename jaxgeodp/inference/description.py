"""Mean, variance and covariance of records under one budget, and what a reader can make of them."""

import dataclasses
import functools
import json
import math
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.checks import InputError, number_between, positive_integer
from jaxgeodp.domains.geodesic_ball import GeodesicBall, assumption_limit
from jaxgeodp.files import all_reserved, folder_for
from jaxgeodp.inference.against_center import AgainstCenter, against_center, ball_of_record, expected_square
from jaxgeodp.inference.chain import budget_of, following, split, together
from jaxgeodp.inference.matrix_noise import is_smaller
from jaxgeodp.inference.mechanism_of_mean import in_steps, in_steps_if_they_gain, mechanism_of_mean, way_of_mean
from jaxgeodp.inference.moments import FrechetVariance, TangentCovariance
from jaxgeodp.inference.population import Population, PrincipalGeodesics, draw_points, geodesics_of, population_of
from jaxgeodp.inference.population import reference as reference_of
from jaxgeodp.inference.regions import ConfidenceBall, Procedure, ball_of
from jaxgeodp.inference.shares import noises, shares_of
from jaxgeodp.inference.spread import SpreadMechanism
from jaxgeodp.inference.stored import LEAST, check_stored
from jaxgeodp.inference.unclipped import unclipped
from jaxgeodp.manifolds import Manifold
from jaxgeodp.privacy.guarantee import ADJACENCY
from jaxgeodp.privacy.ledger import Ledger
from jaxgeodp.privacy.release import Draft, ExpectedError, Release, make_releases, record_digest
from jaxgeodp.releases.context import releasing
from jaxgeodp.releases.drafts import Request, drafted, raw_records
from jaxgeodp.releases.expected import expected_error
from jaxgeodp.releases.mechanism import checked_again
from jaxgeodp.releases.ways import Idealized, OnGrid

_PARTS = ("mean", "variance", "covariance")
_FILE = "description.json"
# Of the limit of Assumption 1, where a ball that was found has no radius of its own.
_INSIDE = 0.9
# How far within the rim spread is measured, if the mean lies outside: so that rounding leaves it within.
_WITHIN = 1.0 - 1e-6


@dataclasses.dataclass(frozen=True, eq=False)
class Description:
    """Three releases about the same records, charged together.

    Attributes:
        manifold: of the records.
        mean: the Frechet mean, a point.
        variance: mean squared distance of the records, clipped to the ball, from it (from the nearest point of the
            ball, if it lies outside), a number.
        covariance: second moment of their logarithms there, (dim, dim), in the frame of its record.
        public: what was known before: the privacy parameter of each, the domain of a search.
    """

    manifold: Manifold
    mean: Release
    variance: Release
    covariance: Release
    public: dict

    def __repr__(self):
        amounts = [f"{name} = {self.guarantee[name]:.6g}" for name in ("epsilon", "rho") if name in self.guarantee]
        return f"Description({', '.join([str(self.manifold), 'n = ' + str(self.mean.record['n']), *amounts])})"

    @property
    def releases(self) -> dict[str, Release]:
        """Return the three releases, by name."""
        return {name: getattr(self, name) for name in _PARTS}

    @property
    def guarantee(self) -> dict:
        """Return their joint guarantee, as in a record."""
        return self.public["guarantee"]

    @property
    def has_spread(self) -> bool:
        """Return whether variance and covariance could be computed when they were released."""
        return None not in (self.variance.record["scale"], self.covariance.record["scale"])

    @functools.cached_property
    def population(self) -> Population:
        """Return the wrapped normal law that fits the three releases.

        Raises:
            ValueError: variance or covariance could not be computed when they were released.
        """
        if not self.has_spread:
            raise InputError(
                "describe: the spread could not be computed when it was released; only the mean is available."
            )
        fitted = population_of(self.manifold, self.mean, self.variance, self.covariance, self._mean_noise())
        return unclipped(fitted, ball_of_record(self.manifold, self.mean.record["ball"]))

    @functools.cached_property
    def against_center(self) -> AgainstCenter:
        """Return whether the released mean lies outside the ball, and whether the ball's centre is expected nearer."""
        return against_center(self.manifold, self.mean, self.public["parameter"])

    @functools.cached_property
    def region(self) -> ConfidenceBall:
        """Return `confidence_ball` at level .95."""
        return ball_of(self.population, self.procedure, 0.95)

    @functools.cached_property
    def procedure(self) -> Procedure:
        """Return how the mean was released, for a parametric bootstrap."""
        parameter, strength = self.public["parameter"], self.public["strengths"]["mean"]
        record = self.mean.record
        ball = None if self.public["located"] else ball_of_record(self.manifold, record["ball"])
        found = mechanism_of_mean(self.manifold, ball, self.public["domain"], parameter, strength)
        return Procedure(in_steps(found) if "steps" in record else found, int(record["n"]))

    @property
    def files(self) -> dict[str, str]:
        """Return the text of each file that `save` writes, by name."""
        parts = {f"{name}.json": release.to_json() for name, release in self.releases.items()}
        return parts | {_FILE: json.dumps(self.public, indent=2) + "\n"}

    def save(self, folder, overwrite: bool = False) -> None:
        """Write mean.json, variance.json, covariance.json and description.json, from which `load` makes it again.

        Args:
            folder: made if it does not exist.
            overwrite: whether existing files are replaced.

        Raises:
            OSError: a file exists and ``overwrite`` is false, or there is no room for all of them; nothing has changed
                then.
        """
        folder, created = pathlib.Path(folder), self.mean.record["created"]
        texts = {folder / name: text for name, text in self.files.items()}
        if not overwrite and (taken := [path for path in texts if path.exists()]):
            raise FileExistsError(f"{taken[0]} exists; give overwrite=True to replace it.")
        sizes = {path: len(text.encode()) for path, text in texts.items()}
        with folder_for(folder, created), all_reserved(sizes, replace=overwrite, changed=created) as write:
            for path, text in texts.items():
                write[path](text)

    @classmethod
    def load(cls, folder) -> "Description":
        """Return the description that `save` wrote.

        Args:
            folder: of the four files.

        Raises:
            OSError: a file cannot be read.
            ValueError: it holds something else.
        """
        folder = pathlib.Path(folder)
        if folder.is_file():
            raise InputError(f"{folder}: is a file; a description is the folder that 'jaxgeodp describe' wrote.")
        mean, variance, covariance = (Release.load(folder / f"{name}.json") for name in _PARTS)
        try:
            public = json.loads((folder / _FILE).read_text())
            manifold = check_stored(dict(zip(_PARTS, (mean, variance, covariance), strict=True)), public)
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError):
            raise InputError(
                f"{folder}: does not hold exactly one description; name the folder that 'jaxgeodp describe' wrote."
            ) from None
        found = cls(manifold, mean, variance, covariance, public)
        expected = None if public["located"] else functools.partial(_error_of, found)
        return dataclasses.replace(found, mean=Release(mean.value, mean.record, expected))

    def _mean_noise(self) -> float:
        """Return what the noise of the mean adds to the variance."""
        if self.variance.record["about"] != self.mean.record["value"]:
            return 0.0  # not about the mean: the region is rather too wide than too narrow
        return expected_square(self.mean, self.manifold.dim, self.public["parameter"])


def describe(
    data,
    manifold: Manifold,
    *,
    epsilon: float | None = None,
    mu: float | None = None,
    ball: GeodesicBall | None = None,
    domain: float | None = None,
    ledger: Ledger | None = None,
) -> Description:
    """Release the Frechet mean, the variance and the covariance of records with one budget.

    The budget is split by public numbers (`inference.shares`). The mean comes first; where no ball is given, it finds
    one; where one is, and public numbers say that steps gain, it is released by `AdaptiveMechanism`. Variance and
    covariance are about it. Either everything is refused before anything is charged, or all three are released; a
    spread that double precision cannot hold is released as 0, and its record says so.

    What is told of spread is never more than records in the ball can have: r^2 for a ball of radius r, for which a
    released variance may be any number. Bounds and intervals hold as often as without this cap; regions hold in .957
    to .970 of 300 data sets a cell (docs/inference.md).

    With ``mu`` all noise is that of integers. With ``epsilon`` that of the mean, and from 2 to 12 dimensions that of
    the covariance (docs/mathematics.md, Theorem X), consists of real numbers: the promise supposes exact arithmetic.

    Args:
        data: (n, \\*shape of a point), n >= 40.
        manifold: of the records.
        epsilon: the whole budget, pure; or
        mu: that of Gaussian noise: all together promise mu^2/2-zCDP.
        ball: a public ball that holds the data; None to find one.
        domain: see `LocatedMechanism`.
        ledger: charged once, before anything is drawn.

    Returns:
        The three releases, and what follows from them.

    Raises:
        ValueError: wrong shape, not one privacy parameter, too few records, or the ledger has not enough left.

    Example:
        >>> import numpy as np
        >>> from jaxgeodp import GeodesicBall, SPD
        >>> from jaxgeodp.inference import describe
        >>> data = np.tile(np.eye(2), (200, 1, 1))
        >>> found = describe(data, SPD(2), mu=2.0, ball=GeodesicBall(SPD(2), np.eye(2), 1.0))
        >>> found.covariance.value.shape
        (3, 3)
    """
    parameter, whole = budget_of("describe", epsilon, mu)
    if not isinstance(manifold, Manifold) or not isinstance(ball, GeodesicBall | None):
        raise InputError("describe: needs a Manifold, and a GeodesicBall or None for ball.")
    if ball is not None and (ball.manifold.whole != manifold.whole or domain is not None):
        raise InputError("describe: ball must be on the manifold, and excludes domain; leave out domain.")
    manifold = manifold if ball is None else ball.manifold  # with the facts that hold in the ball
    with releasing():
        first = mechanism_of_mean(manifold, ball, domain, parameter, whole)
        records = raw_records(first, data)
        n = len(records)
        if n < LEAST:
            raise InputError(
                f"describe: needs at least {LEAST} records, as confidence regions of fewer are too small; got {n}."
            )
        shares = shares_of(parameter, whole, n, manifold.dim)
        strengths = dict(zip(_PARTS, split(parameter, whole, shares), strict=True))
        first = mechanism_of_mean(manifold, ball, domain, parameter, strengths["mean"])
        noise = noises(parameter, whole, n, manifold.dim, shares)[0]
        first = first if ball is None else in_steps_if_they_gain(first, n, noise)
        checked_again(first)
        shape = jax.ShapeDtypeStruct(records.shape[1:], records.dtype)
        try:
            draft = drafted(Request(first, way_of_mean(first)), n, shape)(lambda: records)
        except InputError as error:
            part = f"describe: the mean has {strengths['mean']:.4g} of {parameter} = {whole:g}. "
            raise InputError(f"{part}{error}") from None
        start = _largest_ball(manifold, ball)
        later = [_spread(start, start.center, name, parameter, strengths) for name in _PARTS[1:]]
        drafts = _chain(draft, later, manifold, ball, records)
        guarantee = together(drafts)
        releases = make_releases(drafts, ledger, guarantee)
    public = {
        "parameter": parameter,
        "strengths": strengths,
        "located": ball is None,
        "domain": None if domain is None else float(domain),
        "guarantee": guarantee.record("the sum of the three releases") | {"adjacency": ADJACENCY},
        # By which a reader sees that the three belong together.
        "records": {name: record_digest(own.record) for name, own in zip(_PARTS, releases, strict=True)},
    }
    mean, variance, covariance = releases
    return Description(manifold.of_values, mean, variance, covariance, public)


def _error_of(description: Description) -> ExpectedError:
    """Return the expected error of the released mean."""
    own = description.procedure
    return expected_error(own.mechanism, own.n, way_of_mean(own.mechanism))


def _way_of(mechanism: SpreadMechanism):
    """Return real-valued noise where it is smaller, else integer noise."""
    matrix = isinstance(mechanism.statistic, TangentCovariance) and mechanism.epsilon is not None
    return Idealized() if matrix and is_smaller(mechanism.ball.manifold.dim) else OnGrid()


def _spread(ball, about, name, parameter, strengths) -> SpreadMechanism:
    statistic = FrechetVariance() if name == "variance" else TangentCovariance()
    return SpreadMechanism(ball, about, statistic, **{parameter: strengths[name]})


def _largest_ball(manifold, ball) -> GeodesicBall:
    """Return a public ball for compiling programs before the ball is known."""
    if ball is not None:
        return ball
    limit = _INSIDE * assumption_limit(manifold)
    return GeodesicBall(manifold, manifold.origin, limit if math.isfinite(limit) else 1.0)


def _chain(mean: Draft, later, manifold, ball, records) -> list[Draft]:
    """Return the drafts of all three, the later ones from what the first has drawn."""
    drawn: dict[str, Any] = {}

    def draw_mean():
        value, told = mean.draw()
        value = np.where(np.all(np.isfinite(value)), value, np.asarray(mean.fallback, value.dtype))
        drawn["mean"], drawn["ball"] = value, told.entries["ball"]
        return value, told

    def about_the_mean(mechanism):
        where = ball if ball is not None else ball_of_record(manifold, drawn["ball"])
        about = np.asarray(nearest_in_ball(where, jnp.asarray(drawn["mean"])))
        return dataclasses.replace(mechanism, ball=where, about=about)

    def known():
        return {"ball": drawn["ball"]}

    own = [following(one, records, functools.partial(about_the_mean, one), known, _way_of(one)) for one in later]
    return [dataclasses.replace(mean, draw=draw_mean), *own]


@jax.jit
def nearest_in_ball(ball, point):
    """Return the point, moved into the ball if it lies outside; computed where the ball is at home."""
    home = ball.at_home
    point = ball.manifold.confined(jnp.asarray(ball.center, point.dtype), point)
    own = ball.to_home(point)
    inner = GeodesicBall.tree_unflatten(ball.manifold, (home.center, _WITHIN * ball.radius))
    pulled = inner.pull_inside(own)
    outside = ball.manifold.dist(jnp.asarray(home.center), own) > _WITHIN * ball.radius
    return jnp.where(outside, ball.from_home(pulled), point)


def principal_geodesics(description: Description, level: float = 0.95) -> PrincipalGeodesics:
    """Return geodesics through the released mean in the directions of largest spread; post-processing.

    Args:
        description: see `describe`.
        level: of the intervals of their variances, in (0, 1), at most .9985 (2000 replicates, in three parts).

    Returns:
        As many geodesics as there are dimensions.

    Raises:
        ValueError: the level is out of range, or the spread could not be computed when it was released.
    """
    level = level_between("principal_geodesics", level)
    _check_description("principal_geodesics", description)
    return geodesics_of(description.population, level)


def synthesize(description: Description, n: int, key: jax.Array) -> np.ndarray:
    """Return synthetic records: draws of the wrapped normal law that fits the releases, whose guarantee they share.

    Where the ball clips records, it is the law whose clipped draws fit, so that some may lie beyond the ball.

    Args:
        description: see `describe`.
        n: how many, at least 1.
        key: JAX random key.

    Returns:
        (n, \\*shape of a point), in double precision.

    Raises:
        ValueError: n is out of range, the key is none, the spread could not be computed when it was released, or noise
            hides it: records without any would look as if there were none.
    """
    positive_integer("synthesize", "n", n, minimum=1)
    _check_description("synthesize", description)
    try:
        jax.random.bits(key)
    except (TypeError, ValueError):
        raise InputError("synthesize: key must be one JAX random key, such as jax.random.key(0).") from None
    if description.population.hidden:
        raise InputError(
            "synthesize: noise hides the spread of these records; a larger budget or more records show it."
        )
    with jax.enable_x64(True):
        mean, frame, root = reference_of(description.population)
        return np.asarray(draw_points(description.manifold, mean, frame, root, key, int(n)))


def level_between(owner: str, level) -> float:
    """Return a level of regions or intervals, in (0, 1).

    Raises:
        ValueError: it is none.
    """
    level = number_between(owner, "level", level, 0.0, 1.0)
    if level in (0.0, 1.0):
        raise InputError(f"{owner}: level must be between 0 and 1, got {level:g}.")
    return level


def _check_description(owner, description):
    if not isinstance(description, Description):
        raise InputError(f"{owner}: needs a description made by describe, got {type(description).__name__}.")
