"""The law of an adaptive release: the walk, answered with noise."""

import dataclasses
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
from jaxgeodp.manifolds.described import to_lists
from jaxgeodp.mechanisms.adaptive_rules import Rule
from jaxgeodp.mechanisms.adaptive_simulation import simulated
from jaxgeodp.mechanisms.adaptive_stages import clipped, distances, mean_stage, normal, pair_distances, whole_stage
from jaxgeodp.mechanisms.adaptive_walk import Mean, Pairs, Spending, Whole, refine, strength_of
from jaxgeodp.privacy import grid
from jaxgeodp.privacy.decimals import written
from jaxgeodp.privacy.entropy import public_key, system_key
from jaxgeodp.pytrees import Pytree
from jaxgeodp.releases.law import Law, Terms, Told
from jaxgeodp.releases.vector import VectorLaw
from jaxgeodp.samplers.discrete import discrete_laplace

# Discrete noise is added to counts in so many steps each: it is then about as fine as a real number's.
_STEPS = 64


@dataclasses.dataclass(frozen=True, eq=False)
class AdaptiveLaw(Law, Pytree, leaves=("mean", "whole"), outside=("terms",)):
    """See the module docstring.

    Attributes:
        rule: None for one release.
        n, strength: of the release.
        mean: of logarithms in the public ball; with other centres, clips and scales it is that of all stages.
        whole: of one release of all records there, with the whole budget.
        terms: see `Law`.
    """

    rule: Rule | None
    n: int
    strength: float
    pure: bool
    mean: VectorLaw
    whole: VectorLaw
    terms: Terms
    support = None

    @property
    def ball(self) -> GeodesicBall:
        """The public one."""
        return self.mean.ball

    @property
    def scale(self):
        """Of a mean in the public ball with all of the budget: no stage has less beside its clip."""
        return self.mean.scale

    @property
    @override
    def size(self):
        return self.mean.size

    @property
    def order_matters(self):
        """Whether records are paired."""
        return self.rule is not None and self.rule.pure

    @override
    def ready(self, shape):
        ball, programs = self.ball, self.programs(shape)

        def draw(records):
            records = programs["clip"](ball, records)
            steps = refine(self.rule, ball, Spending(self.n, ball.manifold.dim, self.strength, self.pure))
            question, stages = next(steps), []
            while True:
                answer, told = self.answered(question, records, programs)
                stages.append(told)
                try:
                    question = steps.send(answer)
                except StopIteration:
                    return Told(answer if isinstance(question, Whole) else answer[1], {"steps": stages})

        return draw

    def programs(self, shape) -> dict[str, Callable]:
        """What the stages compute of records of a shape, compiled."""
        name, ball, key = self.terms.mechanism, self.ball, public_key()
        programs = {
            "clip": compiled_ahead(name, clipped, ball, shape),
            "whole": compiled_ahead(name, whole_stage, self.whole, key, shape, jnp.zeros(ball.manifold.dim), 1.0),
        }
        if self.rule is None:
            return programs
        center = jnp.asarray(ball.center)
        return programs | {
            "mean": compiled_ahead(name, mean_stage, self.mean, ball, key, shape, 1.0),
            "distances": compiled_ahead(name, distances, ball, center, shape),
            "pairs": compiled_ahead(name, pair_distances, ball, shape),
            "normal": compiled_ahead(name, normal, key),
        }

    def answered(self, question, records, programs) -> tuple[Any, dict]:
        """What is released for a question about clipped records, and what the record says of it."""
        cost = {"share": float(question.cost)}
        own = strength_of(self.strength, self.pure, question.cost)
        if isinstance(question, Mean):
            ball = GeodesicBall.tree_unflatten(self.ball.manifold, (jnp.asarray(question.center), question.clip))
            law = dataclasses.replace(self.mean, ball=ball, scale=2.0 * question.clip / (self.n * own), terms=None)
            vector, center = map(np.asarray, programs["mean"](law, self.ball, system_key(), records, question.gain))
            told = {"asked": "mean", "clip": question.clip, "gain": question.gain, "center": to_lists(center)}
            told["scale"] = law.scale
            return (vector, center), told | cost
        if isinstance(question, Whole):
            old, new = question.shares
            first = old * question.first if question.first is not None else np.zeros(self.ball.manifold.dim)
            law = dataclasses.replace(self.whole, scale=self.whole.scale * self.strength / own, terms=None)
            value = np.asarray(programs["whole"](law, system_key(), records, first, new))
            return value, {"asked": "mean of all", "scale": law.scale} | cost
        if isinstance(question, Pairs):
            lengths, asked = programs["pairs"](self.ball, records), {"asked": "pairs"}
        else:
            lengths = programs["distances"](self.ball, jnp.asarray(question.center), records)
            asked = {"asked": "records"}
        count = int(np.sum(np.asarray(lengths) <= question.radius))
        if self.pure:
            steps = math.ceil(_STEPS / Fraction(written(own)))
            sums = np.array([_STEPS * count], object)
            scale, noisy = steps / _STEPS, float(grid.with_noise(discrete_laplace, sums, steps)[0]) / _STEPS
        else:
            scale = 1.0 / own
            noisy = count + scale * float(programs["normal"](system_key()))
        return noisy, asked | {"radius": question.radius, "count": noisy, "scale": scale} | cost

    @override
    def log_density(self, x, records):
        raise InputError(f"{self.terms.mechanism}: the density of a value is not known, as stages follow each other.")

    @override
    def simulate(self, key, records, num):
        return simulated(self, key, records, num)
