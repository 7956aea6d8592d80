"""The law of an adaptive release: the walk, answered with noise."""

import dataclasses
import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import jax.numpy as jnp
import numpy as np
from typing_extensions import override

from jaxgeodp.checks import InputError
from jaxgeodp.compiling import compiled_ahead
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.mechanisms.adaptive_grid import ready_on_grid
from jaxgeodp.mechanisms.adaptive_rules import Rule
from jaxgeodp.mechanisms.adaptive_simulation import Numbers, simulated
from jaxgeodp.mechanisms.adaptive_stages import clipped, lengths, mean_stage, normal, pair_lengths, whole_stage
from jaxgeodp.mechanisms.adaptive_walk import Mean, Moved, Pairs, Spending, Whole, refine, strength_of
from jaxgeodp.mechanisms.tangent_vectors import MeanOfVectors, vector_length
from jaxgeodp.nested_lists import to_lists
from jaxgeodp.privacy import grid
from jaxgeodp.privacy.decimals import written
from jaxgeodp.privacy.entropy import public_key, system_key
from jaxgeodp.pytrees import Pytree
from jaxgeodp.releases.law import Law, Terms, Told, without_derivatives
from jaxgeodp.releases.vector import VectorLaw
from jaxgeodp.samplers.discrete import discrete_laplace

# Discrete noise is added to counts in so many steps each: it is then about as fine as a real number's.
_STEPS = 64


@dataclasses.dataclass(frozen=True, eq=False)
class AdaptiveLaw(Law, Pytree, leaves=("numbers", "strength", "mean", "whole", "reach"), outside=("rule", "terms")):
    """Represent the law of an adaptive release: the stages of the walk, answered with noise.

    Attributes:
        rule: None for one release.
        numbers: of the rule, for programs.
        n, strength: of the release.
        mean: of vectors in the public ball; with other centres, clips and scales it is that of all stages.
        whole: of one release of all records there, with the whole budget.
        reach: how long vectors of records about the public centre may be.
        terms: see `Law`.
    """

    rule: Rule | None
    numbers: Numbers | None
    n: int
    strength: float
    pure: bool
    mean: VectorLaw
    whole: VectorLaw
    reach: Any
    terms: Terms
    support = None

    @override
    def released(self, value):
        return self.mean.released(value)

    @property
    def ball(self) -> GeodesicBall:
        """Return the public ball."""
        return self.mean.ball

    @property
    @override
    def rows(self):
        return self.n

    @property
    def length(self) -> int:
        """Return the length of the vectors."""
        return vector_length(self.mean)

    @property
    def scale(self):
        """Return the noise scale of a mean with the whole budget; no stage has less noise for its clip."""
        return self.mean.scale

    @property
    @override
    def size(self):
        return self.mean.size

    @property
    def order_matters(self):
        """Return True if records are paired, so that the draw depends on their order."""
        return self.rule is not None and self.rule.pure and not self.rule.fixed

    @property
    @override
    def grid(self):
        """Return the release in integers at mu; None at epsilon, as pairs in a secret order are not sums."""
        return None if self.pure else functools.partial(ready_on_grid, self)

    @property
    def in_integers(self) -> "AdaptiveLaw":
        """Return the law of the grid release at mu; one release of all records is then the mean of their logarithms."""
        sums = isinstance(self.whole.summary, MeanOfVectors)
        return self if sums else dataclasses.replace(self, whole=self.mean)

    @override
    def ready(self, shape):
        ball, programs = self.ball, self.programs(shape)

        def draw(records):
            records = programs["clip"](ball, records)
            spending = Spending(self.n, self.length, self.strength, self.pure)
            steps = refine(self.rule, ball.center, self.reach, spending)
            question, stages = next(steps), []
            while True:
                answer, told = self.answered(question, records, programs)
                stages.append(told)
                try:
                    question = steps.send(answer)
                except StopIteration:
                    return Told(answer if isinstance(question, Whole) else answer.center, {"steps": stages})

        return draw

    def programs(self, shape) -> dict[str, Callable]:
        """Compile the computations of the stages for records of a shape."""
        name, ball, key, first = self.terms.mechanism, self.ball, public_key(), jnp.zeros(self.length)
        programs = {
            "clip": compiled_ahead(name, clipped, ball, shape),
            "whole": compiled_ahead(name, whole_stage, self.whole, key, shape, first, 1.0),
        }
        if self.rule is None:
            return programs
        center = jnp.asarray(ball.center)
        return programs | {
            "mean": compiled_ahead(name, mean_stage, self.mean, key, shape, center, 1.0, 1.0, 1.0),
            "lengths": compiled_ahead(name, lengths, self.mean, center, shape),
            "pairs": compiled_ahead(name, pair_lengths, self.mean, shape),
            "normal": compiled_ahead(name, normal, key),
        }

    def answered(self, question, records, programs) -> Told:
        """Answer a question about clipped records with noise; add what the record says of the stage."""
        cost = {"share": float(question.cost)}
        own = strength_of(self.strength, self.pure, question.cost)
        if isinstance(question, Mean):
            scale, place = 2.0 * question.clip / (self.n * own), jnp.asarray(question.center)
            found = programs["mean"](self.mean, system_key(), records, place, question.clip, scale, question.gain)
            moved = Moved(*map(np.asarray, found))
            told = {"asked": "mean", "clip": question.clip, "gain": question.gain, "center": to_lists(moved.center)}
            return Told(moved, told | {"scale": scale} | cost)
        if isinstance(question, Whole):
            old, new = question.shares
            first = old * question.first if question.first is not None else np.zeros(self.length)
            law = dataclasses.replace(self.whole, scale=self.whole.scale * self.strength / own, terms=None)
            value = np.asarray(programs["whole"](law, system_key(), records, first, new))
            return Told(value, {"asked": "mean of all", "scale": law.scale} | cost)
        if isinstance(question, Pairs):
            found, asked = programs["pairs"](self.mean, records), {"asked": "pairs"}
        else:
            found = programs["lengths"](self.mean, jnp.asarray(question.center), records)
            asked = {"asked": "records"}
        count = int(np.sum(np.asarray(found) <= question.radius))
        if self.pure:
            steps = math.ceil(_STEPS / Fraction(written(own)))
            sums = np.array([_STEPS * count], object)
            scale, noisy = steps / _STEPS, float(grid.with_noise(discrete_laplace, sums, steps)[0]) / _STEPS
        else:
            scale = 1.0 / own
            noisy = count + scale * float(programs["normal"](system_key()))
        return Told(noisy, asked | {"radius": question.radius, "count": noisy, "scale": scale} | cost)

    @override
    def log_density(self, x, records):
        raise InputError(
            f"{self.terms.mechanism}: the density of a value is not known, as each stage depends on the one before."
        )

    @override
    def simulate(self, key, records, num):
        self.check_rows(records)
        return without_derivatives("AdaptiveMechanism", simulated(self, key, records, num))
