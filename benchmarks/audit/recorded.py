"""A recorder of noise: where a program adds noise to what it knows of the records, and what else it does with them.

The idea is that of Cebere, Erb, Desfontaines, Bellet & Fitzsimons (2026, "Privacy in Theory, Bugs in Practice"): record
all noise in a run on one data set, run on a neighbour with the same noise, and compare. They decorate the functions
that draw noise; here nothing is decorated. A program of JAX is data: the list of its operations, traced for a key and
records. Each number in it gets a label that says what it depends on, and the program is run again with one more output
for each place where noise is added. Noise is a function of the key, so that the same key replays it.

What is found without a number: values of records that are read outside of the program (a length, a branch of Python's),
loops and branches that depend on records, noise whose scale depends on them, a key that is used twice, and a result
that depends on records by another way than through added noise. What is found in numbers: how far the vectors before
the noise lie apart for two neighbours, in units of the scale that the recorded noise has.
"""

import contextlib
import dataclasses
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from jaxgeodp.privacy import grid
from jaxgeodp.privacy.entropy import random_order
from jaxgeodp.releases.add_remove import in_places

# What a number depends on: the records, the key, a vector with noise added.
RECORDS, KEY, RELEASED = 1, 2, 4
#: Between the numbers of turns that a loop takes for two neighbours.
DIFFERENT = "≠"
_CALLS = ("pjit", "jit", "closed_call", "core_call", "remat", "checkpoint", "custom_jvp_call", "custom_vjp_call")
# What only moves numbers about, so that a key that has been through it is the same key.
_MOVES = ("squeeze", "reshape", "broadcast_in_dim", "random_wrap", "random_unwrap", "copy", "convert_element_type")
_TAKES_KEY = ("random_bits", "random_split", "random_fold_in", "threefry2x32")


@dataclasses.dataclass
class Addition:
    """A place where noise is added to what depends on records."""

    vector: Any  #: before the noise, as the program holds it
    noise: Any


@dataclasses.dataclass
class Loop:
    """A loop or branch that depends on records, and how often it goes round, or which way it takes."""

    name: str
    count: Any


class Recorder:
    """A program of a key and records, traced for records of one shape.

    Args:
        program: ``program(key, records)``.
        key: JAX random key.
        records: of the shape that the program is traced for.

    Attributes:
        findings: what is wrong for every data set, in words.
        loops: of the loops and branches that depend on records, in words; no error where running time is said to.
        additions: how many places there are where noise is added.
    """

    def __init__(self, program: Callable, key, records):
        self.findings: list[str] = []
        self.loops: list[str] = []
        self.additions = 0
        self.label = 0
        self._run = None
        try:
            closed = jax.make_jaxpr(program)(key, records)
        except jax.errors.JAXTypeError as error:
            self.findings.append(f"a record's value is read while the program is made ({type(error).__name__})")
            return
        self._run = jax.jit(lambda *arguments: self._walked(closed, arguments))
        jax.eval_shape(self._run, key, records)

    def _walked(self, closed, arguments):
        walk = _Walk()
        leaves = jax.tree.leaves(arguments)
        labels = [KEY, *[RECORDS] * (len(leaves) - 1)]
        out = walk.inside(closed.jaxpr, closed.consts, leaves, labels)
        self.label = _union(label for _, label in out)
        self.additions = len(walk.additions)
        self.loops = sorted({loop.name for loop in walk.loops})
        self.findings = walk.findings + self._about_the_result(walk)
        return (
            [value for value, _ in out],
            [(addition.vector, addition.noise) for addition in walk.additions],
            [loop.count for loop in walk.loops],
        )

    def _about_the_result(self, walk):
        if self.label & RECORDS and walk.additions:
            return ["the result depends on records beside the noisy vector"]
        if self.label & RECORDS and not self.label & KEY:
            return ["the result depends on records and not on the key"]
        return []

    def run(self, key, records):
        """What the program returns, the pairs (vector, noise), and how often loops go round."""
        assert self._run is not None
        return jax.tree.map(np.asarray, self._run(key, records))


def distances(recorder: Recorder, key, data, neighbour, family: str) -> list[float]:
    """How far neighbours' vectors lie apart before noise is added, in units of the scale of the recorded noise.

    Args:
        recorder: of a program that makes many draws at once: from them the scale is estimated.
        key: for both data sets.
        data, neighbour: records.
        family: of the noise: "norm" (density exp(-|z|)), "gaussian" or "coordinates" (independent Laplace).

    Returns:
        For each place where noise is added.
    """
    places = zip(recorder.run(key, data)[1], recorder.run(key, neighbour)[1], strict=True)
    found = []
    for (vector, noise), (other, again) in places:
        if not np.array_equal(noise, again):
            raise AssertionError("the same key gives neighbours other noise")
        moved, noise = np.reshape(vector - other, -1), np.reshape(noise, (-1, np.shape(noise)[-1]))
        moved = moved[: noise.shape[1]]  # the same in all draws
        if family == "gaussian":
            found.append(np.linalg.norm(moved) / np.sqrt(np.mean(noise**2)))
        elif family == "norm":
            found.append(np.linalg.norm(moved) / (np.mean(np.linalg.norm(noise, axis=1)) / noise.shape[1]))
        else:
            found.append(np.sum(np.abs(moved)) / np.mean(np.abs(noise)))
    return [float(distance) for distance in found]


def together(distances: list[float], family: str) -> float:
    """What several additions of noise use together: sums of epsilon; of normal noise, the root of the sum of squares.

    Args:
        distances: see `distances`; of noises that are independent.
        family: see there.
    """
    return float(np.linalg.norm(distances, 2 if family == "gaussian" else 1))


def on_grid(release: Callable[[Any], Any], data, neighbour) -> float:
    """How far neighbours' integers lie apart in two real releases, in units of the scale of the noise of integers.

    What the first run released is what the second gets at each addition of noise, as later steps build on earlier
    ones. Where records are put into secret random places, those that both have in common get the same places in both
    runs, and the others are never left out: the pair of orders that the theorem compares. What each pays is added up:
    changes in the sum of absolute values for discrete Laplace noise, the root of the sum of squares of all if there is
    discrete Gaussian noise, as of an epsilon epsilon^2/2-zCDP follows.

    Args:
        release: of data, with ``numerics="grid"``.
        data, neighbour: what it takes.

    Raises:
        AssertionError: the neighbour asks for other noise, or is released another value with the same noisy numbers.
    """
    asked: list[tuple[Any, np.ndarray]] = []
    used: list[float] = []

    def recording(draw, steps, scale, below=None):
        noisy = plain(draw, steps, scale, below)
        asked.append(((draw.__name__, scale, np.shape(steps)), np.asarray(steps, float)))
        results.append(noisy)
        return noisy

    def replaying(draw, steps, scale, below=None):
        if not waiting:
            raise AssertionError("the neighbour asks for more noise")
        (kind, first), noisy = waiting.pop(0)
        if kind != (draw.__name__, scale, np.shape(steps)):
            raise AssertionError("the neighbour asks for other noise")
        moved = np.asarray(steps, float) - first
        used.append(float(np.linalg.norm(moved.ravel(), 2 if kind[0] == "discrete_gaussian" else 1) / scale))
        return noisy

    plain, results = grid.with_noise, []
    placed = [_placed_by(release, own) for own in (data, neighbour)]
    common = [Counter(one) & Counter(other) for one, other in zip(*placed, strict=True)]
    with _in_place_of(plain, recording), _in_order(common):
        first = _values(release(data))
    waiting = list(zip(asked, results, strict=True))
    with _in_place_of(plain, replaying), _in_order(common):
        second = _values(release(neighbour))
    if waiting:
        raise AssertionError("the neighbour asks for less noise")
    if not all(map(np.array_equal, first, second)):
        raise AssertionError("the result depends on records beside the noisy numbers")
    gaussian = any(kind[0] == "discrete_gaussian" for kind, _ in asked)
    return together(used, "gaussian" if gaussian else "coordinates")


def _values(released) -> list[np.ndarray]:
    """Of a release, or of one for each group."""
    return [np.asarray(own.value) for own in (released.values() if isinstance(released, dict) else [released])]


def _placed_by(release, data) -> list[list[bytes]]:
    """The records that a release puts into places, each time it does."""
    found = []

    def noting(records, order, places):
        found.append([row.tobytes() for row in records])
        return in_places(records, order, places)

    with _in_place_of(in_places, noting):
        release(data)
    return found


@contextlib.contextmanager
def _in_order(common: list[Counter]):
    """Put records that neighbours have in common into the first places, in one order, and all others into the last."""
    calls = iter(common)

    def in_one_order(records, order, places):
        left = Counter(next(calls))
        shared, own = [], []
        for place in sorted(range(len(records)), key=lambda k: records[k].tobytes()):
            row = records[place].tobytes()
            (shared if left[row] else own).append(place)
            left[row] -= left[row] > 0
        rows = np.array([*own, *shared], int)
        return in_places(records, rows, np.roll(np.arange(len(places)), len(own)))

    with _in_place_of(in_places, in_one_order), _in_place_of(random_order, np.arange):
        yield


@contextlib.contextmanager
def _in_place_of(plain, other):
    """Replace a function in all modules of the package."""
    modules = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] == "jaxgeodp"]
    places = [(module, name) for module in modules for name, own in list(vars(module).items()) if own is plain]
    try:
        for module, name in places:
            setattr(module, name, other)
        yield
    finally:
        for module, name in places:
            setattr(module, name, plain)


class _Walk:
    """One run through the operations of a program, with a label for each number."""

    def __init__(self):
        self.additions: list[Addition] = []
        self.loops: list[Loop] = []
        self.findings: list[str] = []
        self.used: set[int] = set()
        self.kept: list[Any] = []  # so that no identity is given away twice
        self.source: dict[int, int] = {}

    def inside(self, jaxpr, constants, values, labels):
        """The results of a program as (value, label)."""
        known = {}
        known.update(zip(jaxpr.constvars, ((value, 0) for value in constants), strict=True))
        known.update(zip(jaxpr.invars, zip(values, labels, strict=True), strict=True))

        def read(atom):
            return (atom.val, 0) if isinstance(atom, core.Literal) else known[atom]

        for equation in jaxpr.eqns:
            inputs = [read(atom) for atom in equation.invars]
            known.update(zip(equation.outvars, self._equation(equation, inputs), strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _equation(self, equation, inputs):
        name, parameters = equation.primitive.name, equation.params
        values, labels = [value for value, _ in inputs], [label for _, label in inputs]
        if name in _CALLS:
            inner = parameters.get("jaxpr", parameters.get("call_jaxpr", parameters.get("fun_jaxpr")))
            constants = getattr(inner, "consts", [])
            return self.inside(getattr(inner, "jaxpr", inner), constants, values, labels)
        if name in ("while", "scan", "cond"):
            return self._loop(equation, values, labels)
        out = equation.primitive.bind(*values, **parameters)
        out = list(out) if equation.primitive.multiple_results else [out]
        label = _union(labels)
        if name in _TAKES_KEY:
            self._takes_key(name, values[0], labels)
        elif name in _MOVES:
            self.source[id(out[0])] = self._root(values[0])
            self.kept.append(out[0])
        if name in ("add", "sub", "add_any"):
            label = self._sum(values, labels, label)
        return [(value, label) for value in out]

    def _sum(self, values, labels, label):
        """The label of a sum; noise added to what depends on records alone is recorded."""
        if sorted(labels) != [RECORDS, KEY]:
            return label
        vector, noise = values if labels[0] == RECORDS else values[::-1]
        self.additions.append(Addition(vector, noise))
        return RELEASED

    def _root(self, value):
        return self.source.get(id(value), id(value))

    def _takes_key(self, name, key, labels):
        if labels[0] & RECORDS:
            self.findings.append("a key depends on records")
        root = self._root(key)
        self.kept.append(key)
        # Many keys are folded in from one; all else takes a key once.
        if name != "random_fold_in" and root in self.used:
            self.findings.append("a key is used twice")
        if name != "random_fold_in":
            self.used.add(root)

    def _loop(self, equation, values, labels):
        out = equation.primitive.bind(*values, **equation.params)
        found = _Labels()
        results = found.equation(equation, labels)
        if found.decides:
            name = {"while": "a loop", "cond": "a branch"}[equation.primitive.name] if found.outer else "an inner loop"
            self.loops.append(Loop(f"{name} depends on records", _count(equation, values)))
        return list(zip(out, results, strict=True))


class _Labels:
    """Labels alone, for loops, which go round until no label changes.

    Noise that is added within a loop is not recorded, and releases nothing: proposals of a sampler are such sums.
    """

    def __init__(self):
        self.decides = self.outer = False

    def inside(self, jaxpr, labels):
        known = dict.fromkeys(jaxpr.constvars, 0) | dict(zip(jaxpr.invars, labels, strict=True))

        def read(atom):
            return 0 if isinstance(atom, core.Literal) else known[atom]

        for equation in jaxpr.eqns:
            results = self.equation(equation, [read(atom) for atom in equation.invars], outer=False)
            known.update(zip(equation.outvars, results, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def equation(self, equation, labels, outer=True):
        name, parameters = equation.primitive.name, equation.params
        if name in _CALLS:
            inner = parameters.get("jaxpr", parameters.get("call_jaxpr", parameters.get("fun_jaxpr")))
            return self.inside(getattr(inner, "jaxpr", inner), labels)
        if name == "while":
            return self._while(parameters, labels, outer)
        if name == "scan":
            return self._scan(parameters, labels)
        if name == "cond":
            decides = labels[0]
            if decides & RECORDS:
                self.decides, self.outer = True, self.outer or outer
            ways = [self.inside(branch.jaxpr, labels[1:]) for branch in parameters["branches"]]
            return [decides | _union(results) for results in zip(*ways, strict=True)]
        return [_union(labels)] * len(equation.outvars)

    def _while(self, parameters, labels, outer):
        first, second = parameters["cond_nconsts"], parameters["body_nconsts"]
        for_test, for_body, carried = labels[:first], labels[first : first + second], labels[first + second :]
        while True:
            (goes_on,) = self.inside(parameters["cond_jaxpr"].jaxpr, [*for_test, *carried])
            results = self.inside(parameters["body_jaxpr"].jaxpr, [*for_body, *carried])
            after = [own | new | goes_on for own, new in zip(carried, results, strict=True)]
            if after == carried:
                break
            carried = after
        if goes_on & RECORDS:
            self.decides, self.outer = True, self.outer or outer
        return carried

    def _scan(self, parameters, labels):
        first, second = parameters["num_consts"], parameters["num_consts"] + parameters["num_carry"]
        constants, carried, along = labels[:first], labels[first:second], labels[second:]
        while True:
            results = self.inside(parameters["jaxpr"].jaxpr, [*constants, *carried, *along])
            after = [own | new for own, new in zip(carried, results, strict=False)]
            if after == carried:
                return [*carried, *results[len(carried) :]]
            carried = after


def _count(equation, values):
    """How often a loop goes round, which way a branch goes; -1 where loops are within."""
    if equation.primitive.name == "cond":
        return values[0]
    if equation.primitive.name != "while":
        return jnp.int32(-1)
    parameters = equation.params
    first, second = parameters["cond_nconsts"], parameters["body_nconsts"]
    for_test, for_body, start = values[:first], values[first : first + second], values[first + second :]
    test, body = parameters["cond_jaxpr"], parameters["body_jaxpr"]

    def goes_on(state):
        return core.jaxpr_as_fun(test)(*for_test, *state[1])[0]

    def step(state):
        return state[0] + 1, core.jaxpr_as_fun(body)(*for_body, *state[1])

    return jax.lax.while_loop(goes_on, step, (jnp.int32(0), list(start)))[0]


def _union(labels):
    label = 0
    for own in labels:
        label |= own
    return label
