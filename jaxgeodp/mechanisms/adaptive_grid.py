"""Releases in steps in integers, at mu: each stage has exact discrete normal noise (docs/mathematics.md, Theorem N).

A stage has two programs: from records to integers that add up, and from their sum to the release.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.compiling import compiled_ahead, compiled_in_blocks
from jaxgeodp.mechanisms.adaptive_stages import clipped_lengths, clipped_vectors, stepped, value_of
from jaxgeodp.mechanisms.adaptive_walk import Count, Mean, Moved, Spending, Whole, refine, strength_of
from jaxgeodp.mechanisms.tangent_vectors import MeanOfVectors
from jaxgeodp.nested_lists import to_lists
from jaxgeodp.privacy import grid
from jaxgeodp.privacy.guarantee import GaussianDP
from jaxgeodp.releases.law import Ready, Terms, Told
from jaxgeodp.samplers.discrete import discrete_gaussian

#: A count is made in so many steps each: noise is then about as fine as a real number's.
STEPS_OF_COUNTS = 64

Question = Count | Mean | Whole
#: Of a question and records the integers; of a question, its mu and their sum the answer, and what a record says of it.
IntegersOf = Callable[[Any, Any], np.ndarray]
AnswerOf = Callable[[Any, float, np.ndarray], Told]


def integers_of(law: Any, kind: type[Question], shape: jax.ShapeDtypeStruct) -> IntegersOf:
    """Compile the function that turns raw records into integers, for questions of a kind.

    Args:
        law: an `AdaptiveLaw` at mu.
        kind: of question.
        shape: of the records.
    """
    name, center = law.terms.mechanism, jnp.asarray(law.ball.center)
    if kind is Count:
        lengths_of = compiled_in_blocks(name, clipped_lengths, law.mean, center, shape)

        def count(question, records):
            found = lengths_of(law.mean, jnp.asarray(question.center), records)
            return np.array([STEPS_OF_COUNTS * sum(int(np.sum(part <= question.radius)) for part in found)], object)

        return count
    own = law.mean if kind is Mean else _whole(law)
    vectors_of = compiled_in_blocks(name, clipped_vectors, own, center, 1.0, shape)

    def total(question, records):
        about, bound = _place(law, question)
        return grid.sum_on_grid(vectors_of(own, about, bound, records), bound)

    return total


def answer_of(law: Any, kind: type[Question]) -> AnswerOf:
    """Compile the function that adds noise to the integers and gives the answer, for questions of a kind.

    Args:
        law: an `AdaptiveLaw` at mu.
        kind: of question.
    """
    return {Count: _counting, Mean: _moving, Whole: _releasing}[kind](law)


def _counting(law):
    def answer(question, mu, total):
        noise = noise_of(law, question, mu)
        noisy = noise.step * float(grid.with_noise(discrete_gaussian, total, noise.scale)[0])
        told = {"asked": "records", "radius": question.radius, "count": noisy}
        return Told(noisy, told | {"scale": noise.scale * noise.step})

    return answer


def _moving(law):
    given = law.mean, jnp.asarray(law.ball.center), 1.0, jnp.zeros(law.length), 1.0
    step_to = compiled_ahead(law.terms.mechanism, stepped, *given)

    def answer(question, mu, total):
        (about, bound), noise = _place(law, question), noise_of(law, question, mu)
        vector = noise.step * grid.with_noise(discrete_gaussian, total, noise.scale)
        center = np.asarray(step_to(law.mean, about, bound, vector, question.gain))
        told = {"asked": "mean", "clip": bound, "gain": question.gain, "center": to_lists(center)}
        return Told(Moved(vector, center), told | {"scale": noise.scale * noise.step})

    return answer


def _releasing(law):
    whole = _whole(law)
    value_at = compiled_ahead(law.terms.mechanism, value_of, whole, jnp.zeros(law.length))

    def answer(question, mu, total):
        noise, (old, new) = noise_of(law, question, mu), question.shares
        vector = new * noise.step * grid.with_noise(discrete_gaussian, total, noise.scale)
        vector = vector if question.first is None else old * question.first + vector
        return Told(np.asarray(value_at(whole, vector)), {"asked": "mean of all", "scale": noise.scale * noise.step})

    return answer


def noise_of(law: Any, question: Question, mu: float) -> grid.GridNoise:
    """Return the noise of the integer sum that answers a question."""
    if isinstance(question, Count):
        return grid.gaussian_noise(STEPS_OF_COUNTS, 1.0 / STEPS_OF_COUNTS, mu)
    return grid.gaussian_noise(2 * grid.STEPS, _place(law, question)[1] / grid.STEPS / law.n, mu)


def ready_on_grid(law: Any, shape: jax.ShapeDtypeStruct) -> Ready:
    """Prepare the release of an `AdaptiveLaw` at mu in integers.

    Args:
        law: see there.
        shape: of the records.
    """
    kinds = (Whole,) if law.rule is None else (Count, Mean, Whole)
    integers = {kind: integers_of(law, kind, shape) for kind in kinds}
    answers = {kind: answer_of(law, kind) for kind in kinds}

    def draw(records):
        steps = refine(law.rule, law.ball.center, law.reach, Spending(law.n, law.length, law.strength, pure=False))
        question: Any = next(steps)
        stages = []
        while True:
            kind, mu = type(question), strength_of(law.strength, False, question.cost)
            answer, told = answers[kind](question, mu, integers[kind](question, records))
            stages.append(told | {"share": float(question.cost)})
            try:
                question = steps.send(answer)
            except StopIteration:
                return Told(answer if isinstance(question, Whole) else answer.center, {"steps": stages})

    return Ready(terms_on_grid(law), law.scale, grid.NOTE, draw, False)


def terms_on_grid(law: Any) -> Terms:
    """Return the terms of the release in integers: zCDP, with discrete Gaussian noise."""
    terms = law.terms
    if law.rule is None and "grid" in terms.more["filled"]:
        own = terms.more["filled"]["grid"]
        terms = dataclasses.replace(terms, sensitivity=own["value"], formula=own["formula"])
    return dataclasses.replace(
        terms,
        guarantee=GaussianDP(law.strength).to_zcdp(),
        theorem="docs/mathematics.md, Theorems V2 and N",
        sampler=grid.sampler(discrete_gaussian, [law.length, 1], [grid.STEPS, STEPS_OF_COUNTS]),
    )


def _whole(law):
    """Return the law of one release of all records, with the mean of logarithms in place of the Frechet mean."""
    return law.whole if isinstance(law.whole.summary, MeanOfVectors) else law.mean


def _place(law, question):
    """Return the centre of a mean, and the bound of its vectors."""
    if isinstance(question, Mean):
        return jnp.asarray(question.center), question.clip
    whole = _whole(law)
    return jnp.asarray(law.ball.center), float(whole.summary.size(whole.ball))
