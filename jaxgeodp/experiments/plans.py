"""What `run_sweep` runs: cells with their public numbers, those of a `Sweep` or one's own."""

import dataclasses
import functools
import hashlib
import math
import re
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.checks import InputError, positive_integer, short
from jaxgeodp.experiments.blocks import all_devices, block_size, in_blocks, on_each_device
from jaxgeodp.experiments.generators import Generator
from jaxgeodp.experiments.replicates import Errors, euclidean_distance, run_replicates, stream_of
from jaxgeodp.experiments.sweep import Cell, Sweep
from jaxgeodp.manifolds.manifold import Manifold
from jaxgeodp.releases.law import Law, PointLaw
from jaxgeodp.releases.mechanism import Mechanism
from jaxgeodp.statistics import FrechetMean, frechet_mean

_LONGEST_LABEL = 200
_ENTRIES = "(label, mechanism or draw(key, points), generator(key, n), n), and the manifold if nothing tells it"


@dataclasses.dataclass(frozen=True)
class PlannedCell:
    """A cell that is ready to run.

    Attributes:
        facts: its public numbers, for manifest and summary; ``refusal`` says why it cannot run.
        run: makes the errors; called with what is called with the number of replicates done since the last call.
    """

    facts: dict[str, Any]
    run: Callable[[Callable[[int], None]], Errors]


@dataclasses.dataclass(frozen=True)
class Plan:
    """All cells of a sweep.

    Attributes:
        description: what a folder must be of, to be resumed.
        title: of the picture.
        replicates: of each cell.
        cells: in order.
    """

    description: dict[str, Any]
    title: str
    replicates: int
    cells: list[PlannedCell]


# Of a sweep that is described by a file ----------------------------------------------------------------


def planned_sweep(sweep: Sweep) -> Plan:
    """All combinations of a `Sweep`.

    Raises:
        ValueError: the data do not fit the manifold.
    """
    generator = sweep.generator()
    size = "" if sweep.size is None else f"({sweep.size})"
    title = f"{sweep.manifold}{size}, public radius {sweep.radius:g}, data: {sweep.data}"
    cells = [_cell_of(sweep, cell, generator) for cell in sweep.cells()]
    return Plan({**sweep.as_dict(), "fingerprint": sweep.fingerprint()}, title, sweep.replicates, cells)


def _cell_of(sweep, cell: Cell, generator):
    names = {"label": cell.label, "mechanism": cell.mechanism, "calibration": cell.calibration, "n": cell.n}
    names[cell.parameter] = cell.strength
    mechanism = functools.partial(sweep.mechanism, cell, generator.ball)

    def run(progress):
        return run_replicates(
            mechanism(), generator, cell.n, sweep.replicates, sweep.seed, cell.label, progress=progress
        )

    return PlannedCell(names | _law_facts(mechanism, cell.n), run)


def _law_facts(mechanism: Callable[[], Any], n) -> dict[str, Any]:
    """Public numbers of a mechanism's law, or why there is none."""
    try:
        with jax.enable_x64(True):
            own = mechanism()
            law = own.law(n)
            if isinstance(law, PointLaw):
                law.check()
    except InputError as refusal:
        return {"refusal": str(refusal)}
    found = {"guarantee": own.guarantee.record(law.terms.theorem)["kind"]}
    if not isinstance(law, PointLaw):  # these depend on the ball that is found
        return found | {"sensitivity": None, "scale": None, "support": None}
    return found | {
        "sensitivity": law.terms.sensitivity,
        "scale": float(law.scale),
        "support": None if law.support is None else law.support.radius,
    }


# One's own ---------------------------------------------------------------------------------------------


def planned_cells(cells: Iterable[tuple], replicates: int, seed: int) -> Plan:
    """Cells of one's own; see `run_sweep`.

    Raises:
        ValueError: a cell is none, two have one label and n, or what it makes has another shape than points.
    """
    positive_integer("run_sweep", "replicates", replicates, 1)
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise InputError(f"run_sweep: seed must be an integer from 0 to {2**63 - 1}, got {short(seed)}.")
    owns = [_checked(cell, place) for place, cell in enumerate(cells, 1)]
    if not owns:
        raise InputError("run_sweep: there is no cell.")
    labels = [own.full_label for own in owns]
    for label in labels:
        if labels.count(label) > 1:
            raise InputError(f"run_sweep: two cells are named {label!r}; give each label and n once.")
    with jax.enable_x64(True):
        planned, fingerprints = zip(*(_planned(own, replicates, seed) for own in owns), strict=True)
    description = {"replicates": replicates, "seed": seed, "fingerprints": list(fingerprints)}
    spaces = ", ".join(dict.fromkeys(str(own.manifold) for own in owns))
    return Plan(description, spaces, replicates, list(planned))


@dataclasses.dataclass(frozen=True)
class _OwnCell:
    label: str
    draw: Any
    generator: Callable
    n: int
    manifold: Manifold

    @property
    def full_label(self) -> str:
        return f"{self.label}, n={self.n}"


def _checked(cell, place):
    if not isinstance(cell, tuple) or len(cell) not in (4, 5):
        raise InputError(f"run_sweep: cell {place} must be a tuple {_ENTRIES}, got {short(cell)}.")
    label, draw, generator, n, *told = cell
    if not isinstance(label, str) or not label.isprintable() or not 0 < len(label) <= _LONGEST_LABEL:
        raise InputError(
            f"run_sweep: the label of cell {place} must be a line of 1 to {_LONGEST_LABEL} characters, got "
            f"{short(label)}."
        )
    positive_integer("run_sweep", f"n of {label!r}", n, 2)
    if not (isinstance(draw, Mechanism) or callable(draw)):
        raise InputError(f"run_sweep: {label!r} needs a mechanism or draw(key, points), got {short(draw)}.")
    if isinstance(draw, Mechanism) and not isinstance(draw.summarised, FrechetMean | None):
        raise InputError(
            f"run_sweep: {label!r} is for {draw.summarised.description}, but errors are distances from the Frechet "
            "mean; write a draw(key, points)."
        )
    if not (isinstance(generator, Generator) or callable(generator)):
        raise InputError(f"run_sweep: {label!r} needs generator(key, n), got {short(generator)}.")
    places = (draw, getattr(draw, "ball", None), getattr(generator, "ball", None))
    manifold = told[0] if told else next(filter(None, (getattr(one, "manifold", None) for one in places)), None)
    if not isinstance(manifold, Manifold):
        raise InputError(f"run_sweep: nothing tells the manifold of {label!r}; give it as a fifth entry.")
    return _OwnCell(label, draw, generator.records if isinstance(generator, Generator) else generator, n, manifold)


def _planned(own: _OwnCell, replicates, seed) -> tuple[PlannedCell, str | None]:
    """The cell, and a hash of what it computes."""
    mechanism = own.draw if isinstance(own.draw, Mechanism) else None
    facts: dict[str, Any] = {"label": own.full_label, "n": own.n}
    facts["mechanism"] = own.label if mechanism is None else type(mechanism).__name__
    for parameter in ("epsilon", "mu"):
        strength = getattr(mechanism, parameter, None)
        if strength is not None and np.ndim(strength) == 0:
            facts[parameter] = float(strength)
    if mechanism is not None:
        facts |= _law_facts(lambda: mechanism, own.n)
    if "refusal" in facts:
        return PlannedCell(facts, lambda progress: _cannot_run(own)), None
    law = None if mechanism is None else mechanism.law(own.n)
    draw = own.draw if law is None else _drawn_from
    _check_shapes(own, draw, law)
    mesh = all_devices()
    block = block_size(own.manifold, own.n, math.ceil(replicates / mesh.size))
    key, noise_key = jax.random.split(jax.random.key(seed))
    common = (key, stream_of(noise_key, own.full_label), law)
    program = functools.partial(_measured, own.manifold, draw, own.generator, own.n, mesh)

    def run(progress):
        *columns, complete = in_blocks(lambda numbers: program(numbers, common), mesh, replicates, block, progress)
        if not complete.all():
            raise InputError(
                f"run_sweep: {np.sum(~complete)} of {replicates} values of {own.full_label!r} are not finite."
            )
        return Errors(*columns)

    return PlannedCell(facts, run), _fingerprint(program, mesh, block, common)


def _cannot_run(own):
    raise InputError(f"run_sweep: {own.full_label!r} cannot run.")


def _drawn_from(key, points, law: Law):
    return law.simulate(key, points, 1)[0]


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3, 4))
def _measured(manifold, draw, generator, n, mesh, numbers, common):
    """Columns of `Errors`, and whether values are finite."""

    def replicate(number, key, noise_key, law):
        points = generator(jax.random.fold_in(key, number), n)
        mean = frechet_mean(manifold, points)
        own_key = jax.random.fold_in(noise_key, number)
        value = draw(own_key, points) if law is None else draw(own_key, points, law)
        point, found = law.as_point(value) if isinstance(law, PointLaw) else (value, manifold.belongs(value))
        distance = jnp.where(found, manifold.dist(mean, point), jnp.nan)
        finite = jnp.all(jnp.isfinite(value))
        return distance, euclidean_distance(manifold, mean, value), found, jnp.zeros((), int), finite

    return on_each_device(mesh, replicate, (numbers,), common)


def _check_shapes(own, draw, law):
    key = jax.random.key(0)
    points = jax.eval_shape(lambda key: own.generator(key, own.n), key)
    expected = (own.n, *own.manifold.shape)
    if getattr(points, "shape", None) != expected:
        raise InputError(
            f"run_sweep: the generator of {own.full_label!r} must make points of shape {expected}, got {short(points)}."
        )
    if law is None:
        value = jax.eval_shape(draw, key, points)
        if getattr(value, "shape", None) != own.manifold.shape:
            raise InputError(
                f"run_sweep: draw of {own.full_label!r} must return a point of shape {own.manifold.shape}, got "
                f"{short(value)}."
            )


def _fingerprint(program, mesh, block, common):
    """A hash of what is computed: the program, and the numbers in it and of the law."""
    numbers = jax.ShapeDtypeStruct((mesh.size * block,), np.uint32)
    traced = _measured.trace(*program.args, numbers, common)
    found = hashlib.sha256(re.sub(r"0x[0-9a-f]+", "", traced.lower().as_text()).encode())
    for leaf in (*traced.jaxpr.consts, *jax.tree.leaves(common[2])):
        found.update(np.asarray(leaf).tobytes())
    return found.hexdigest()[:16]
