"""Cells for `run_sweep` with their public numbers, from a `Sweep` or user-defined."""

import dataclasses
import functools
import hashlib
import math
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.checks import InputError, positive_integer, short
from jaxgeodp.experiments.blocks import all_devices, block_size, in_blocks, on_each_device
from jaxgeodp.experiments.generators import Generator
from jaxgeodp.experiments.replicates import Errors, euclidean_distance, run_replicates
from jaxgeodp.experiments.sweep import Cell, Sweep
from jaxgeodp.manifolds.manifold import Manifold
from jaxgeodp.pictures.sweep import Line
from jaxgeodp.releases.law import Law, PointLaw
from jaxgeodp.releases.mechanism import Mechanism
from jaxgeodp.statistics import FrechetMean, frechet_mean

_LONGEST_LABEL = 60
_MARKERS_OF_LABELS = 8
_ENTRIES = (
    "(label, mechanism or draw(key, points), generator(key, n), n), and the manifold if it is not known otherwise"
)


@dataclasses.dataclass(frozen=True)
class PlannedCell:
    """A cell ready to run.

    Attributes:
        name: for messages and progress.
        line: of the picture.
        facts: its public numbers, for manifest and summary; ``refusal`` says why it cannot run.
        run: makes the errors; called with what is called with the number of replicates done since the last call.
    """

    name: str
    line: Line
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
    """Return the cells of all combinations of a `Sweep`.

    Raises:
        ValueError: the data do not fit the manifold.
    """
    generator = sweep.generator()
    size = "" if sweep.size is None else f"({sweep.size})"
    title = f"{sweep.manifold}{size}, public radius {sweep.radius:g}, data: {sweep.data}"
    own = sweep.cells()
    strengths = list(dict.fromkeys((cell.parameter, cell.strength) for cell in own))
    calibrations = list(dict.fromkeys(cell.calibration for cell in own))

    def line(cell):
        legend = f"{cell.mechanism}, {cell.calibration}, {cell.parameter}={cell.strength!r}"
        marker = strengths.index((cell.parameter, cell.strength))
        return Line(cell.mechanism, legend, calibrations.index(cell.calibration), marker)

    cells = [_cell_of(sweep, cell, generator, line(cell)) for cell in own]
    return Plan({**sweep.as_dict(), "fingerprint": sweep.fingerprint()}, title, sweep.replicates, cells)


def _cell_of(sweep, cell: Cell, generator, line):
    names = {"label": cell.label, "mechanism": cell.mechanism, "calibration": cell.calibration, "n": cell.n}
    names[cell.parameter] = cell.strength
    mechanism = functools.partial(sweep.mechanism, cell, generator.ball)

    def run(progress):
        return run_replicates(
            mechanism(), generator, cell.n, sweep.replicates, sweep.seed, cell.label, progress=progress
        )

    return PlannedCell(cell.label, line, names | _law_facts(mechanism, cell.n), run)


def _law_facts(mechanism: Callable[[], Any], n) -> dict[str, Any]:
    """Return public numbers of a mechanism's law, or the reason for its refusal."""
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
    """Return user-defined cells; see `run_sweep`.

    Raises:
        ValueError: a cell is none, two have one label and n, or what it makes has another shape than points.
    """
    positive_integer("run_sweep", "replicates", replicates, 1)
    replicates = int(replicates)
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise InputError(f"run_sweep: seed must be an integer from 0 to {2**63 - 1}, got {short(seed)}.")
    owns = [_checked(cell, place) for place, cell in enumerate(cells, 1)]
    if not owns:
        raise InputError("run_sweep: there are no cells; give at least one.")
    owns = _traced_anew(owns)
    labels = [own.name for own in owns]
    for label in labels:
        if labels.count(label) > 1:
            raise InputError(f"run_sweep: two cells are {label!r}; give each pair of label and n once.")
    programs: dict[tuple, str] = {}
    with jax.enable_x64(True):
        known = list(dict.fromkeys(own.label for own in owns))
        lines = [_line_of(own, known.index(own.label)) for own in owns]
        each = (_planned(own, line, replicates, seed, programs) for own, line in zip(owns, lines, strict=True))
        planned, fingerprints = zip(*each, strict=True)
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
    strengths: dict[str, float]  # epsilon or mu, of a function what its attributes say

    @property
    def name(self) -> str:
        return f"{self.label}, n={self.n}"

    @property
    def mechanism(self) -> Mechanism | None:
        return self.draw if isinstance(self.draw, Mechanism) else None


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
    places = {"draw" if callable(draw) else "mechanism": draw, "generator": generator}
    known = {name: _manifold_of(place) for name, place in places.items()} | {"fifth entry": told[0] if told else None}
    manifolds = [manifold for manifold in known.values() if manifold is not None]
    if not manifolds:
        raise InputError(f"run_sweep: the manifold of {label!r} is not known; give it as a fifth entry.")
    if not isinstance(manifolds[-1], Manifold):
        raise InputError(f"run_sweep: the fifth entry of {label!r} must be a manifold, got {short(manifolds[-1])}.")
    if any(other != manifolds[0] for other in manifolds):
        words = ", ".join(f"{name} {manifold}" for name, manifold in known.items() if manifold is not None)
        raise InputError(f"run_sweep: the manifolds of {label!r} differ: {words}.")
    generate = generator.records if isinstance(generator, Generator) else generator
    told_of = {name: getattr(draw, name, None) for name in ("epsilon", "mu")}
    strengths = {name: float(own) for name, own in told_of.items() if own is not None and np.ndim(own) == 0}
    return _OwnCell(label, draw, generate, int(n), manifolds[0], strengths)


def _manifold_of(place) -> Manifold | None:
    """Return the manifold of a mechanism or generator, or of its ball; None if there is none."""
    found = getattr(place, "manifold", None) or getattr(getattr(place, "ball", None), "manifold", None)
    return found if isinstance(found, Manifold) else None


def _traced_anew(owns: list[_OwnCell]) -> list[_OwnCell]:
    """Return the cells with new function objects, so that JAX traces them again: what they use may have changed."""
    anew: dict[Any, Callable] = {}

    def fresh(function):
        return anew.setdefault(id(function), lambda *arguments: function(*arguments))

    # A bound method is another object each time.
    generators = {own.generator: own.generator for own in owns if _hashes(own.generator)}
    return [
        dataclasses.replace(
            own,
            draw=own.draw if own.mechanism else fresh(own.draw),
            generator=fresh(generators[own.generator] if _hashes(own.generator) else own.generator),
        )
        for own in owns
    ]


def _hashes(thing) -> bool:
    try:
        hash(thing)
    except TypeError:
        return False
    return True


def _line_of(own, place) -> Line:
    """Return the style of the label at this place; the first 24 differ in marker or style."""
    name = own.label if own.mechanism is None else type(own.mechanism).__name__
    return Line(name, own.label, place // _MARKERS_OF_LABELS, place % _MARKERS_OF_LABELS)


def _planned(own: _OwnCell, line, replicates, seed, programs) -> tuple[PlannedCell, str | None]:
    """Return the cell, and a hash of what it computes."""
    facts: dict[str, Any] = {"label": own.label, "n": own.n, "mechanism": line.mechanism, **own.strengths}
    if own.mechanism is not None:
        facts |= _law_facts(lambda: own.mechanism, own.n)
    if "refusal" in facts:
        return PlannedCell(own.name, line, facts, lambda progress: _cannot_run(own)), None
    draw, law = own.draw, None
    if own.mechanism is not None:
        law = own.mechanism.law(own.n)
        facts["calibration"] = law.terms.calibration
        draw = _drawn_from
        if jax.tree_util.all_leaves([law]):  # a law of one's own that is no pytree
            draw, law = functools.partial(_drawn_from, law=law), None
    _check_shapes(own, draw, law)
    mesh = all_devices()
    block = block_size(own.manifold, own.n, math.ceil(replicates / mesh.size))
    key, noise_key = jax.random.split(jax.random.key(seed))
    common = (key, _stream(noise_key, own), law)
    statics = (own.manifold, draw, own.generator, own.n)

    def run(progress):
        *columns, finite = in_blocks(
            lambda numbers: _measured(*statics, mesh, numbers, common), mesh, replicates, block, progress
        )
        if not finite.all():
            raise InputError(
                f"run_sweep: {np.sum(~finite)} of {replicates} values of {own.name!r}, or means of their data, are not "
                "finite."
            )
        return Errors(*columns)

    return PlannedCell(own.name, line, facts, run), _fingerprint(statics, common, programs)


def _cannot_run(own):
    raise InputError(f"run_sweep: {own.name!r} cannot run; the manifest of the sweep states the reason.")


def _stream(key, own):
    """Return the key of a cell's noise: 64 bits of a hash of its name."""
    digest = hashlib.sha256(own.name.encode()).digest()
    for place in (0, 4):
        key = jax.random.fold_in(key, int.from_bytes(digest[place : place + 4], "big"))
    return key


def _drawn_from(key, points, law: Law):
    return law.simulate(key, points, 1)[0]


def _replicate(manifold, draw, generator, n, number, key, noise_key, law):
    """Return the measurements of one replicate, and whether value and mean are finite."""
    points = _points(manifold, generator(jax.random.fold_in(key, number), n))
    mean = frechet_mean(manifold, points)
    own_key = jax.random.fold_in(noise_key, number)
    value = draw(own_key, points) if law is None else draw(own_key, points, law)
    point, found = law.as_point(value) if isinstance(law, PointLaw) else (value, manifold.belongs(value))
    distance = jnp.where(found, manifold.dist(mean, point), jnp.nan)
    finite = jnp.all(jnp.isfinite(value)) & jnp.all(jnp.isfinite(mean))
    return distance, euclidean_distance(manifold, mean, value), found, jnp.zeros((), int), finite


def _points(manifold, given):
    """Convert landmarks and other usual forms to points of the manifold."""
    given = jnp.asarray(given)
    points = manifold.as_points(given)
    return points if points is given else jax.vmap(manifold.project)(points)


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3, 4))
def _measured(manifold, draw, generator, n, mesh, numbers, common):
    """Return columns of `Errors`, and whether values are finite."""
    return on_each_device(mesh, functools.partial(_replicate, manifold, draw, generator, n), (numbers,), common)


_one_replicate = functools.partial(jax.jit, static_argnums=(0, 1, 2, 3))(_replicate)


def _check_shapes(own, draw, law):
    key = jax.random.key(0)
    points = jax.eval_shape(lambda key: _points(own.manifold, own.generator(key, own.n)), key)
    kinds = "fiuc" if own.manifold.dtype_kind == "complex" else "fiu"
    expected = (own.n, *own.manifold.shape)
    if points.shape != expected or points.dtype.kind not in kinds:
        raise InputError(
            f"run_sweep: the generator of {own.name!r} must make points of shape {expected}, got {points.dtype} "
            f"numbers of shape {points.shape}."
        )
    if law is None:
        value = jax.eval_shape(draw, key, points)
        own_kind = getattr(getattr(value, "dtype", None), "kind", None)
        if getattr(value, "shape", None) != own.manifold.shape or own_kind is None or own_kind not in kinds:
            raise InputError(
                f"run_sweep: draw of {own.name!r} must return a point of shape {own.manifold.shape}, got "
                f"{short(value)}."
            )


def _fingerprint(statics, common, programs):
    """Return a device-independent hash of a computation: program, constants and numbers of the law."""
    leaves, structure = jax.tree.flatten(common)
    name = (statics, structure, tuple((np.shape(leaf), jnp.result_type(leaf)) for leaf in leaves[2:]))
    if name not in programs:
        traced = _one_replicate.trace(*statics, np.uint32(0), *common)
        text = hashlib.sha256(traced.lower().as_text().encode())
        for leaf in traced.jaxpr.consts:
            text.update(np.asarray(leaf).tobytes())
        programs[name] = text.hexdigest()
    found = hashlib.sha256(programs[name].encode())
    for leaf in leaves[2:]:
        found.update(np.asarray(leaf).tobytes())
    return found.hexdigest()[:16]
