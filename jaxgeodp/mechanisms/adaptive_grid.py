"""Releases in steps in integers, at mu: each stage has exact discrete normal noise (docs/mathematics.md, Theorem N)."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.compiling import compiled_ahead, compiled_in_blocks
from jaxgeodp.manifolds.described import to_lists
from jaxgeodp.mechanisms.adaptive_stages import clipped_lengths, clipped_vectors, stepped, value_of
from jaxgeodp.mechanisms.adaptive_walk import Count, Mean, Moved, Spending, Whole, refine, strength_of
from jaxgeodp.mechanisms.tangent_vectors import MeanOfVectors
from jaxgeodp.privacy import grid
from jaxgeodp.privacy.guarantee import GaussianDP
from jaxgeodp.releases.law import Ready, Told
from jaxgeodp.samplers.discrete import discrete_gaussian

# A count is made in so many steps each: noise is then about as fine as a real number's.
_STEPS = 64


class _Programs(NamedTuple):
    """What stages compute, compiled; of records block by block."""

    vectors: Any
    whole_vectors: Any
    lengths: Any
    moved: Any
    value: Any


def ready_on_grid(law: Any, shape: jax.ShapeDtypeStruct) -> Ready:
    """The release of an `AdaptiveLaw` at mu in integers.

    Args:
        law: see there.
        shape: of the records.
    """
    name, center = law.terms.mechanism, jnp.asarray(law.ball.center)
    # Where the law's one release has noise about the Frechet mean, that of the logarithms is released in its place.
    whole = law.whole if isinstance(law.whole.summary, MeanOfVectors) else law.mean
    vector = jnp.zeros(law.length)
    programs = _Programs(
        compiled_in_blocks(name, clipped_vectors, law.mean, center, 1.0, shape),
        compiled_in_blocks(name, clipped_vectors, whole, center, 1.0, shape),
        compiled_in_blocks(name, clipped_lengths, law.mean, center, shape),
        compiled_ahead(name, stepped, law.mean, center, 1.0, vector, 1.0),
        compiled_ahead(name, value_of, whole, vector),
    )
    terms = dataclasses.replace(
        law.terms,
        guarantee=GaussianDP(law.strength).to_zcdp(),
        theorem="docs/mathematics.md, Theorems V2 and N",
        sampler=grid.sampler(discrete_gaussian, [law.length, 1], [grid.STEPS, _STEPS]),
    )

    def draw(records):
        steps = refine(law.rule, law.ball.center, law.reach, Spending(law.n, law.length, law.strength, pure=False))
        question, stages = next(steps), []
        while True:
            answer, told = _answered(law, whole, programs, question, records)
            stages.append(told | {"share": float(question.cost)})
            try:
                question = steps.send(answer)
            except StopIteration:
                return Told(answer if isinstance(question, Whole) else answer.center, {"steps": stages})

    return Ready(terms, law.scale, grid.NOTE, draw, False)


def _answered(law, whole, programs, question: Any, records) -> Told:
    """What is released for a question, and what the record says of it."""
    own = strength_of(law.strength, False, question.cost)
    if isinstance(question, Count):
        found = programs.lengths(law.mean, jnp.asarray(question.center), records)
        count = sum(int(np.sum(part <= question.radius)) for part in found)
        noise = grid.gaussian_noise(_STEPS, 1.0 / _STEPS, own)
        noisy = noise.step * float(
            grid.with_noise(discrete_gaussian, np.array([_STEPS * count], object), noise.scale)[0]
        )
        told = {"asked": "records", "radius": question.radius, "count": noisy, "scale": noise.scale * noise.step}
        return Told(noisy, told)
    mean = isinstance(question, Mean)
    bound = question.clip if mean else float(whole.summary.size(whole.ball))
    center = jnp.asarray(question.center if mean else law.ball.center)
    given = (law.mean, programs.vectors) if mean else (whole, programs.whole_vectors)
    total = grid.sum_on_grid(given[1](given[0], center, bound, records), bound)
    noise = grid.gaussian_noise(2 * grid.STEPS, bound / grid.STEPS / law.n, own)
    vector = noise.step * grid.with_noise(discrete_gaussian, total, noise.scale)
    scale = noise.scale * noise.step
    if mean:
        moved = np.asarray(programs.moved(law.mean, center, bound, vector, question.gain))
        told = {"asked": "mean", "clip": bound, "gain": question.gain, "center": to_lists(moved), "scale": scale}
        return Told(Moved(vector, moved), told)
    old, new = question.shares
    both = new * vector if question.first is None else old * question.first + new * vector
    return Told(np.asarray(programs.value(whole, both)), {"asked": "mean of all", "scale": scale})
