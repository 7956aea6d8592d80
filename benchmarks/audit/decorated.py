"""dp-recorder (Cebere et al. 2026) on mechanisms of ours: their recorder decorates functions that add noise.

Where a release is made on a grid, the function that adds the noise is decorated in the library itself, and two real
releases run under it. Elsewhere noise is added inside of a compiled program, where no decorator can reach: there the
same steps are taken one after the other, with the library's functions for the vector and the noise.
"""

import contextlib
import io
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.audit.planted import Planted, Tools
from jaxgeodp.privacy import grid
from jaxgeodp.releases.density import DensityLaw
from jaxgeodp.releases.noise import Norm

# Of one primitive, for its sampled audit.
SAMPLES = 6_000
# Rounding in what the library computes before the noise.
_ROUNDING = 1.0 + 1e-9


class Recorded(NamedTuple):
    """What dp-recorder says of one pair of neighbours."""

    used: float  #: largest distance of inputs in units of the declared sensitivity
    finding: str  #: what it raises, in short; empty where it raises nothing
    epsilon: float | None = None  #: lower bound for all noise together, from samples; None where none was drawn


def of_release(mechanism, data, neighbour) -> Recorded:
    """Two real releases on a grid."""
    law = mechanism.law(len(data))
    steps, strength = law.grid.steps, law.terms.strength
    noise, _ = law.noise.on_grid(mechanism.ball.manifold.dim, steps.sensitivity, steps.step, strength)
    # In the norm of the noise's theorem.
    total = noise.scale * strength
    plain = grid.with_noise

    from dp_recorder.auditing.audit_primitives import audit_spec

    @audit_spec(
        "with_noise", "steps", "sensitivity", _metric("coordinates" if law.noise.name == "norm" else "gaussian")
    )
    def decorated(draw, steps, scale, sensitivity):
        return plain(draw, steps, scale)

    def program(records):
        return mechanism.release(np.asarray(records), numerics="grid").value

    grid.with_noise = lambda draw, steps, scale, below=None: decorated(draw, np.asarray(steps, float), scale, total)
    try:
        return _compared(program, data, neighbour)
    finally:
        grid.with_noise = plain


def of_law(mechanism, data, neighbour) -> Recorded:
    """A release in floating point, step by step."""
    law = mechanism.law(len(data))
    if isinstance(law, DensityLaw):
        return _of_density(law, data, neighbour)
    bank = np.asarray(law.noise.draw(jax.random.key(7), 4 * SAMPLES, _size(law, data), jnp.float64))
    add = _primitive(law.noise.name, bank)

    def program(records):
        home, points, back = law.at_home(jnp.asarray(records))
        vector = np.asarray(home.location(points, home.center(points)))
        noisy = add(vector, law.terms.sensitivity, law.scale)
        return np.asarray(back(law.summary.to_value(home.ball, jnp.asarray(noisy))))

    return _compared(program, data, neighbour, sampled=True)


def of_planted(planted: Planted, data, neighbour) -> Recorded:
    """A planted mistake, run by Python step by step."""
    from dp_recorder import auditing

    bank = np.asarray(Norm().draw(jax.random.key(7), 4 * SAMPLES, 2, jnp.float64))
    add = _primitive(planted.family, bank)

    def public(**values):
        auditing.ensure_equality(**{name: np.asarray(value).item() for name, value in values.items()})

    def add_array(vector, sensitivity, scale):
        return jnp.asarray(add(np.asarray(vector), float(sensitivity), float(scale)))

    def program(records):
        return np.asarray(planted.algorithm(Tools(add_array, public), jnp.asarray(records)))

    return _compared(program, data, neighbour, sampled=True)


def _of_density(law, data, neighbour):
    """The centre of a radial density; else the potential at public points."""
    from dp_recorder.auditing.audit_primitives import audit_spec

    ball, manifold = law.ball.at_home, law.ball.manifold
    radial = law.target.radial
    probes = None if radial else _probes(law)

    def distance(one, other):
        if radial:
            return float(manifold.dist(jnp.asarray(one), jnp.asarray(other)))
        if type(law.target).__name__ == "GradientNorm":
            return float(np.max(np.abs(one - other)))
        # Of a potential the change is known up to a constant, and is Lipschitz with the sensitivity.
        lengths = np.asarray(jax.vmap(lambda x: manifold.dist(jnp.asarray(ball.center), x))(probes))[1:]
        change = one - other
        return float(np.max(np.abs(change[1:] - change[0]) / lengths))

    @audit_spec("density", "known", "sensitivity", distance)
    def draw(known, sensitivity):
        return np.asarray(law.simulate(jax.random.key(1), jnp.asarray(data), 1))[0]

    def program(records):
        home, points, _ = law.at_home(jnp.asarray(records))
        center = home.center(points)
        known = center if radial else jax.vmap(lambda x: home.potential(x, center, points))(probes)
        return draw(np.asarray(known), float(law.terms.sensitivity))

    return _compared(program, data, neighbour)


def _probes(law):
    """The centre, and 96 points around it."""
    ball, manifold = law.ball.at_home, law.ball.manifold
    reach = ball.radius if law.support is None else min(law.support.radius, 2.0 * ball.radius)
    center = jnp.asarray(ball.center)
    frame = manifold.frame(center)
    directions = jax.random.normal(jax.random.key(3), (96, manifold.dim))
    directions = directions / jnp.linalg.norm(directions, axis=1, keepdims=True)
    lengths = reach * jnp.linspace(0.05, 0.99, 96)[:, None]
    around = jax.vmap(lambda c: manifold.exp(center, manifold.combine(c, frame)))(directions * lengths)
    return jnp.concatenate([center[None], around])


def _primitive(family, bank):
    from dp_recorder.auditing.audit_primitives import audit_spec

    places = iter(range(10**9))

    @audit_spec("noise", "vector", "sensitivity", _metric(family))
    def add(vector, sensitivity, scale):
        return vector + scale * bank[next(places) % len(bank)]

    return add


def _metric(family):
    order = 1 if family == "coordinates" else 2
    return lambda one, other: float(np.linalg.norm(np.ravel(one - other), order))


def _size(law, data):
    home, points, _ = law.at_home(jnp.asarray(data))
    return home.location(points, home.center(points)).shape[0]


def _compared(program, data, neighbour, sampled=False):
    """Record, replay, compare what is released, validate; and the noise alone by samples."""
    from dp_recorder.auditing import Auditor

    auditor, finding, results = Auditor(), "", []
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            with auditor:
                results.append(program(data))
            auditor.set_replay()
            with auditor:
                results.append(program(neighbour))
            # With the noisy vectors of the first run, all that follows must be the same.
            if not np.array_equal(*results):
                finding = "the result differs"
        except (AssertionError, RuntimeError, ValueError) as error:
            finding = str(error).splitlines()[0].split(" @ ")[0]
        entries = [entry for entry in auditor.log if entry.kind != "EQ" and entry.inputs_dp is not None]
        used = max((_used(entry) for entry in entries), default=float("nan"))
        for entry in entries:
            entry.sensitivity_val *= _ROUNDING
        try:
            auditor.validate_records()
        except AssertionError as error:
            finding = finding or str(error).splitlines()[0].split(": ", 1)[1]
        epsilon = None
        if sampled and entries:
            auditor.run_distributional_audit(SAMPLES, alpha=1e-6)
            # Largest losses of independent noises add up, and so do lower bounds of them.
            epsilon = sum(getattr(entry, "empirical_epsilon_lb", 0.0) for entry in entries)
    return Recorded(used, finding, epsilon)


def _used(entry):
    one, other = (np.asarray(next(iter(inputs.values()))) for inputs in (entry.inputs_d, entry.inputs_dp))
    return entry.metric_fn(one, other) / entry.sensitivity_val
