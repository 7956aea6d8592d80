"""Membership inference: how well a published summary tells who is in it, with and without privacy.

Somebody knows the law of the population, and a record; the summary is of n records of the population, or of that record
and n - 1 others. In coordinates at the population's mean both laws of the summary are nearly normal: the record moves
it by a vector, its influence over n. The logarithm of the ratio of two normal densities is the score of the test
(docs/mathematics.md, section 25); its moments are found from draws, and other draws are scored.

That is for the custodian's eyes: what is found depends on the private records.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.checks import InputError, positive_integer
from jaxgeodp.manifolds.manifold import Manifold
from jaxgeodp.privacy.auditing import Audit, audit
from jaxgeodp.privacy.composition import compose
from jaxgeodp.privacy.guarantee import Guarantee
from jaxgeodp.privacy.normal_scores import NormalScores, areas_in_theory, learned_scores
from jaxgeodp.privacy.power import most_area, most_power
from jaxgeodp.privacy.published import (
    ALL_DIGITS,
    STATISTICS,
    Clipped,
    Moment,
    Part,
    Plain,
    Published,
    Released,
    released,
)
from jaxgeodp.privacy.supposed import SupposedLaw, fitted_law, supposed_law, usable_points
from jaxgeodp.privacy.two_laws import Told, told_apart

#: False positive rate at which the true positive rate of a test is reported.
FALSE = 0.01
# Numbers of records in all simulated data sets of a test, and at a time.
_WORK, _AT_ONCE = 8_000_000, 400_000
_LEAST_DRAWS, _MOST_DRAWS = 1_000, 20_000
# Draws of an audit from one data set; fewer where each searches for a ball.
_AUDITED = 20_000
# How much slower a median is than a mean, for its many steps.
_SLOWER = 8
# Points of the population about which influences are computed.
_REFERENCE = 2_000
# Least number of records; targets that stand for typical records; draws for each published number.
_LEAST_RECORDS, _TARGETS, _A_NUMBER = 3, 500, 20


class Test(NamedTuple):
    """Power of one membership test: a member against another person of the population."""

    published: str  #: name of the summary
    told: Told  #: from draws, for typical records
    exposed: Told  #: from draws, for the most exposed record
    theory: tuple[float, float]  #: area and true positive rate, by normal theory
    theory_exposed: tuple[float, float]  #: the same for the most exposed record
    most: tuple[float, float]  #: upper bounds of the same; 1 without a guarantee

    @property
    def found(self) -> float:
        """Return the true positive rate at a false positive rate of one in a hundred."""
        return self.told.power(FALSE)

    @property
    def found_exposed(self) -> float:
        """Return the same rate for the most exposed record."""
        return self.exposed.power(FALSE)


@dataclasses.dataclass(frozen=True)
class Membership:
    """Result of `membership`.

    Attributes:
        tests: one for each summary.
        n: number of records.
        place: index of the record that the first summary exposes most, from 0.
        population: what the attacker is supposed to know, in words.
        draws: data sets that were simulated for each of the two laws.
        audits: one for each mechanism, none if the two data sets are equal: an attacker who knows all other records
            asks whether the most exposed record is there or the population's mean.
        left_out: number of invalid records, which are left out.
    """

    tests: tuple[Test, ...]
    n: int
    place: int
    population: str
    draws: int
    audits: tuple[Audit, ...] = ()
    left_out: int = 0

    @property
    def violated(self) -> bool:
        """Return whether draws contradict a guarantee."""
        return any(own.violated for own in self.audits)

    def __str__(self):
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """Return a table: how often a test is right about typical records and the most exposed one, per summary."""
        head = ("what is published", "typical", "theory", "found", "exposed", "theory", "found", "at most")
        rows = [head] + [
            (
                test.published,
                *(f"{test.told.area:.3f}", f"{test.theory[0]:.3f}", f"{test.found:.1%}"),
                *(f"{test.exposed.area:.3f}", f"{test.theory_exposed[0]:.3f}", f"{test.found_exposed:.1%}"),
                "-" if test.most[0] >= 1.0 else f"{test.most[0]:.3f}, {test.most[1]:.1%}",
            )
            for test in self.tests
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return [
            "  ".join(
                cell.ljust(width) if place == 0 else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        ]


def membership(
    records,
    manifold: Manifold,
    mechanisms: Sequence[Any] = (),
    *,
    statistics: Sequence[str] = ("mean",),
    digits: int | None = 3,
    population=None,
    draws: int | None = None,
    seed: int = 0,
    progress: Callable[[str, int, int], None] | None = None,
) -> Membership:
    """Return how well a published summary tells members from others; as private as the records.

    Three summaries are compared: the statistics as they are, the same with means rounded as they would be printed, and
    the releases of ``mechanisms``, all of them together. Somebody sees one of them, knows a record and the population,
    and says whether the record is in it. Runs in double precision.

    What is found holds for this test. With a guarantee no test does better than `Test.most`; without one nothing says
    that none does.

    Args:
        records: (n, \\*shape), points of the manifold, private; n at least 3, or 2 with ``population``. Those that are
            none are left out.
        manifold: of the records.
        mechanisms: what would be released of the records: of a mean, a median, or a moment (`SpreadMechanism`).
        statistics: what would be published without privacy, of "mean", "median", "variance", "covariance".
        digits: significant ones to which the numbers of a plain mean or median are rounded; None for no such row.
        population: public records (m, \\*shape), m at least twice the dimension, which others of the population are
            drawn from. By default they, and records as they come, are drawn from the wrapped normal law with mean and
            covariance of the records, drawn towards a multiple of the identity; for the record that is told best, of
            the other records.
        draws: data sets to simulate for each law, at least twenty a number that is published; from 1,000 to 20,000 by
            default, fewer the larger n is.
        seed: of the draws.
        progress: called with what is done, how many draws of it are done, and how many there are.

    Raises:
        ValueError: a number is out of range, a mechanism is for something else, or there are too few records.

    Example:
        >>> import numpy as np
        >>> from jaxgeodp import Euclidean, GaussianDP, GeodesicBall, TangentGaussian
        >>> from jaxgeodp.privacy import membership
        >>> records = np.random.default_rng(0).normal(size=(10, 6))
        >>> ball = GeodesicBall(Euclidean(6), np.zeros(6), 4.0)
        >>> found = membership(records, Euclidean(6), [TangentGaussian(ball, mu=1.0)], draws=2000)
        >>> [test.published for test in found.tests]
        ['mean', 'mean, 3 digits', 'release']
        >>> found.tests[0].told.area > 0.65 > found.tests[2].told.area
        True
    """
    owner = "membership"
    for name in statistics:
        if name not in STATISTICS:
            raise InputError(f"{owner}: statistics must be of {', '.join(STATISTICS)}, got {name!r}.")
    if not statistics:
        raise InputError(f"{owner}: statistics must name at least one statistic.")
    if digits is not None:
        positive_integer(owner, "digits", digits, 1)
    positive_integer(owner, "seed", seed, 0)
    with jax.enable_x64(True):
        points, places = usable_points(
            owner, "records", manifold, records, 2 if population is not None else _LEAST_RECORDS
        )
        n = len(points)
        law, words = supposed_law(owner, manifold, points, population)
        base = law.base
        summaries: list[tuple[str, Published, Guarantee | None]] = []
        joined = ", ".join(statistics)
        plain = Plain(base, tuple(statistics), jnp.asarray(ALL_DIGITS))
        summaries.append((joined, plain, None))
        if digits is not None and {"mean", "median"} & set(statistics):
            rounded = dataclasses.replace(plain, digits=jnp.asarray(float(digits)))
            summaries.append((f"{joined}, {digits} digits", rounded, None))
        if mechanisms:
            promised = compose([mechanism.guarantee for mechanism in mechanisms])
            summaries.append(("release", released(owner, mechanisms, n, base), promised))
        numbers = max(own.count for _, own, _ in summaries)
        draws = _draws(owner, n * (_SLOWER if "median" in statistics else 1), draws, _A_NUMBER * numbers)
        tests: list[Test] = []
        mixed = points[np.random.default_rng(0).permutation(n)]
        place, without = -1, law
        for number, (name, published, promised) in enumerate(summaries):
            key = jax.random.fold_in(jax.random.key(seed), number)
            if place < 0:
                place = _told_best(published, law, points, key)
                if population is None:  # it would make its own covariance
                    without = fitted_law(manifold, np.delete(points, place, axis=0))
            # In no order of the file, as the first ones are taken: a file may be sorted by site.
            typical = law.draw(jax.random.fold_in(key, 1), _TARGETS) if population is None else mixed
            run = _Run(name, published, n, draws, progress)
            told, theory = run.told(law, typical, jax.random.fold_in(key, 2), 0)
            exposed, theory_exposed = run.told(without, points[[place]], jax.random.fold_in(key, 3), 1)
            most = (1.0, 1.0) if promised is None else (most_area(promised), float(most_power(promised, FALSE)))
            tests.append(Test(name, told, exposed, theory, theory_exposed, most))
        audits = []
        if mechanisms:
            data, neighbour = points, points.copy()
            neighbour[place] = np.asarray(base.point)
            audits = [_audited(own, data, neighbour, place, seed) for own in mechanisms]
    found = tuple(own for own in audits if own is not None)
    return Membership(tuple(tests), n, int(places[place]), words, draws, found, len(np.asarray(records)) - n)


def _audited(mechanism, data, neighbour, place, seed) -> Audit | None:
    """Return the audit of a mechanism; None if the two data sets are equal."""
    if np.array_equal(data[place], neighbour[place]):
        return None
    searches = getattr(mechanism, "ball", None) is None
    return audit(mechanism, data, neighbour, _LEAST_DRAWS if searches else _AUDITED, seed=seed)


def _draws(owner, n, draws, least) -> int:
    if draws is None:
        return max(int(np.clip(_WORK // (8 * n), _LEAST_DRAWS, _MOST_DRAWS)), least)
    positive_integer(owner, "draws", draws, max(200, least))
    return draws


def _theory(published, law, n, points, key) -> tuple[np.ndarray, NormalScores]:
    """Return the influences of records, and the moments of what is published of n records."""
    reference = law.draw(key, _REFERENCE) if law.points is None else law.points[:_REFERENCE]
    found, mean = _influences(published.parts, jnp.concatenate([reference, jnp.asarray(points)]), len(reference))
    of_population, own = found[: len(reference)], found[len(reference) :]
    covariance = np.atleast_2d(np.cov(of_population, rowvar=False)) / n
    return own, NormalScores(mean, covariance)


def _influences(parts: tuple[Part, ...], records, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return derivatives of the published numbers by each record's share, mixed with the first ``count``; and these."""
    weights = jnp.where(jnp.arange(len(records)) < count, 1.0 / count, 0.0)
    found = []
    for part in parts:
        own = part.statistic if isinstance(part, Clipped) else part  # one program for all balls
        if isinstance(own, Moment):  # linear in the weights
            one = np.asarray(jax.vmap(lambda v, own=own: own.of(v[None], jnp.ones(1)))(part.prepared(records)))
            mean = one[:count].mean(axis=0)
            found.append((one - mean, mean))
        else:
            found.append(tuple(map(np.asarray, _slopes(own, part.prepared(records), weights))))
    influences, means = zip(*found, strict=True)
    return np.concatenate(influences, axis=1), np.concatenate(means)


@jax.jit
def _slopes(part, records, weights):
    value, pull = jax.vjp(lambda own: part.of(records, own / jnp.sum(own)), weights)
    (slopes,) = jax.vmap(pull)(jnp.eye(len(value)))
    return (slopes - (slopes @ weights)[:, None]).T, value


@functools.partial(jax.jit, static_argnames="n")
def _numbers(published, law, keys, targets, inside, *, n):
    """Return what is published of n records of the population, one of them a target if ``inside``."""

    def one(key, target):
        own, noise, where = jax.random.split(key, 3)
        places = jnp.arange(n).reshape(n, *[1] * target.ndim)
        chosen = inside & (places == jax.random.randint(where, (), 0, n))
        return published.numbers(noise, jnp.where(chosen, target, law.draw(own, n)))

    return jax.vmap(one)(keys, targets)


class _Run(NamedTuple):
    """Tests of one summary."""

    name: str
    published: Published
    n: int
    draws: int
    progress: Callable[[str, int, int], None] | None

    def told(self, law: SupposedLaw, targets, key, half: int) -> tuple[Told, tuple[float, float]]:
        """Return how well targets (m, \\*shape) are told from others, by draws and in theory; one half of the work."""
        learn, key = jax.random.split(key)
        influences, moments = _theory(self.published, law, self.n, targets, learn)
        which = np.resize(np.arange(len(targets)), self.draws)
        shifts, chosen = influences[which] / self.n, np.asarray(targets)[which]

        def simulated(stage, inside):
            keys = jax.random.split(jax.random.fold_in(key, stage), self.draws)
            size = max(1, min(_AT_ONCE // self.n, self.draws))
            parts = []
            for start in range(0, self.draws, size):
                some = jnp.asarray(chosen[start : start + size])
                own = keys[start : start + size]
                parts.append(np.asarray(_numbers(self.published, law, own, some, inside, n=self.n)))
                if self.progress is not None:
                    done = (3 * half + stage) * self.draws + min(start + size, self.draws)
                    self.progress(self.name, done, 6 * self.draws)
            return np.concatenate(parts)

        learned = learned_scores(simulated(0, False), moments.covariance, self.n)
        others, members = simulated(1, False), simulated(2, True)
        told = told_apart(learned.scores(members, shifts), learned.scores(others, shifts))
        known = learned if isinstance(self.published, Released) else moments  # noise has no theory of its own
        return told, areas_in_theory(known.lengths(influences / self.n), FALSE)


def _told_best(published, law, points, key) -> int:
    """Return the index of the record that moves the published numbers most, in their standard deviations."""
    influences, moments = _theory(published, law, len(points), points, key)
    return int(np.argmax(moments.lengths(influences)))
