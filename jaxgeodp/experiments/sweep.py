"""A sweep: mechanisms x calibrations x numbers of records x privacy parameters, described by a small public file."""

import dataclasses
import hashlib
import itertools
import json
import pathlib
import sys
import tomllib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.checks import InputError, short
from jaxgeodp.datasets import digit_covariances, digit_outlines
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.experiments.generators import GENERATORS, Generator, OutlineData, ResampledData
from jaxgeodp.locating import LocatedMechanism
from jaxgeodp.manifolds import SPD
from jaxgeodp.manifolds.names import manifold_named
from jaxgeodp.mechanisms.ball_mechanism import BallMechanism
from jaxgeodp.mechanisms.names import MECHANISMS, mechanism_named

DATA = (*GENERATORS, "digits")
# Mechanisms that find their ball, with their privacy parameters; they are not told that of the sweep.
_LOCATED = {"located": "epsilon", "located-gaussian": "mu"}
_LONGEST = 2**20


@dataclasses.dataclass(frozen=True)
class Cell:
    """One mechanism with its privacy parameter and number of records, from a `Sweep`.

    Attributes:
        mechanism: its name.
        calibration: "tight", "theorem" or "paper".
        n: number of records.
        strength: epsilon or mu.
    """

    mechanism: str
    calibration: str
    n: int
    strength: float

    @property
    def parameter(self) -> str:
        """Name of the privacy parameter ``strength``, "epsilon" or "mu"."""
        return _parameter_of(self.mechanism)

    @property
    def label(self) -> str:
        """Name of the cell and of its noise stream."""
        return f"{self.mechanism}, {self.calibration}, n={self.n}, {self.parameter}={self.strength!r}"


@dataclasses.dataclass(frozen=True)
class Sweep:
    """A comparison of mechanisms; every field may stand in the file that `read_sweep` reads.

    Attributes:
        manifold, size: as for ``jaxgeodp plan``: sphere, spd, shapes, ...
        radius: of the public ball; its centre is the origin, or for outlines and digits their public template.
        distance: of that centre from the origin, for polar data.
        domain: of the mechanisms that find their ball, which search all of it; see `LocatedMechanism`.
        data: "polar", "wishart" (SPD), "outlines" (shapes) or "digits" (outlines for shapes, covariances for spd of
            size 5).
        mechanisms: names as for ``jaxgeodp release``; baselines: euclidean, euclidean-projected, landmarks,
            landmarks-unaligned; or located and located-gaussian, which are not told the ball.
        n, epsilon, mu, calibrations: lists; every combination is a cell. mu is for the Gaussian mechanisms,
            calibrations for kng and laplace.
        replicates: independent data sets per cell.
        seed: all numbers follow from it.
        digit: 0 to 9, of data "digits".

    Raises:
        ValueError: a field is out of range, or one that is needed is missing.
    """

    manifold: str
    radius: float
    mechanisms: tuple[str, ...]
    n: tuple[int, ...]
    size: int | None = None
    epsilon: tuple[float, ...] = ()
    mu: tuple[float, ...] = ()
    calibrations: tuple[str, ...] = ("tight",)
    data: str = "polar"
    replicates: int = 1000
    seed: int = 0
    digit: int = 3
    distance: float = 0.0
    domain: float | None = None

    def __post_init__(self):
        for name, allowed in (
            ("mechanisms", compared_names()),
            ("calibrations", ("tight", "theorem", "paper")),
        ):
            for value in getattr(self, name):
                if not isinstance(value, str) or value not in allowed:
                    raise InputError(f"sweep: {name} must be of {', '.join(allowed)}, got {short(value)}.")
        if self.data not in DATA:
            raise InputError(f"sweep: data must be one of {', '.join(DATA)}, got {self.data!r}.")
        for name, least in (("replicates", 1), ("seed", 0), ("digit", 0)):
            _check_number("sweep", name, getattr(self, name), int, least)
        for name, most in (("replicates", 2**31 - 1), ("seed", 2**63 - 1), ("digit", 9)):
            if getattr(self, name) > most:
                raise InputError(f"sweep: {name} must be at most {most}, got {short(getattr(self, name))}.")
        for value in self.n:
            _check_number("sweep", "n", value, int, 2)
            if value > 2**31 - 1:
                raise InputError(f"sweep: n must be at most {2**31 - 1}, got {short(value)}.")
        for name in ("epsilon", "mu"):
            for value in getattr(self, name):
                _check_number("sweep", name, value, float, 0.0)
        if self.distance != 0.0:
            _check_number("sweep", "distance", self.distance, float, 0.0)
            if self.data != "polar":
                raise InputError(f"sweep: distance is for polar data, got {self.data!r}; leave it out.")
        if self.domain is not None:
            _check_number("sweep", "domain", self.domain, float, 0.0)
            if not set(self.mechanisms) & set(_LOCATED):
                raise InputError(f"sweep: domain is for {' and '.join(_LOCATED)}; leave it out.")
        gaussian = [name for name in self.mechanisms if _parameter_of(name) == "mu"]
        if not (self.mechanisms and self.n and self.calibrations):
            raise InputError("sweep: mechanisms, n and calibrations must each have at least one entry.")
        if gaussian and not self.mu:
            raise InputError(f"sweep: {gaussian[0]} needs mu, a list of privacy parameters.")
        others = [name for name in self.mechanisms if name not in gaussian]
        for name, own, taken in (("epsilon", self.epsilon, others), ("mu", self.mu, gaussian)):
            if own and not taken:
                raise InputError(f"sweep: none of these mechanisms takes {name}; leave it out.")
        if others and not self.epsilon:
            raise InputError(f"sweep: {others[0]} needs epsilon, a list of privacy parameters.")
        chosen = [name for name in self.mechanisms if name in MECHANISMS and len(MECHANISMS[name].calibrations) > 1]
        if tuple(self.calibrations) not in ((), ("tight",)) and not chosen:
            raise InputError("sweep: none of these mechanisms has another calibration than tight; leave it out.")

    def cells(self) -> list[Cell]:
        """Return all combinations, in a fixed order."""
        cells = []
        for name, calibration, n in itertools.product(self.mechanisms, self.calibrations, self.n):
            several = name in MECHANISMS and len(MECHANISMS[name].calibrations) > 1
            if not several and calibration != self.calibrations[0]:
                continue
            for strength in getattr(self, _parameter_of(name)):
                cells.append(Cell(name, calibration if several else "tight", n, float(strength)))
        return list(dict.fromkeys(cells))

    def generator(self) -> Generator:
        """Return the generator of data in the public ball.

        Raises:
            ValueError: the data do not fit the manifold.
        """
        manifold = manifold_named(self.manifold, self.size)
        if self.data == "digits":
            return self._digits(manifold)
        outlines = self.data == "outlines" and manifold.landmark_dimension == 2
        center = OutlineData.template(manifold) if outlines else _away(manifold, self.distance)
        return GENERATORS[self.data](GeodesicBall(manifold, center, self.radius))

    def _digits(self, manifold):
        if manifold.landmark_dimension == 2:
            from jaxgeodp.datasets import template_outline

            points = manifold.from_landmarks(digit_outlines(self.digit, manifold.landmarks))
            center = manifold.project(manifold.from_landmarks(template_outline(self.digit, manifold.landmarks)))
        elif manifold == SPD(5):
            points, center = digit_covariances(self.digit), manifold.origin
        else:
            raise InputError(f"sweep: data 'digits' need the manifold shapes, or spd of size 5; got {manifold}.")
        return ResampledData(GeodesicBall(manifold, center, self.radius), points)

    def mechanism(self, cell: Cell, ball: GeodesicBall) -> BallMechanism | LocatedMechanism:
        """Return the mechanism of a cell, given the ball unless it finds one itself.

        Args:
            cell: of the sweep.
            ball: that of its `generator`.

        Raises:
            ValueError: the mechanism refuses the numbers.
        """
        if cell.mechanism in _LOCATED:
            strengths: dict[str, Any] = {cell.parameter: cell.strength}
            return LocatedMechanism(ball.manifold, domain=self.domain, **strengths)
        return mechanism_named(cell.mechanism, ball, cell.strength, cell.calibration)

    def as_dict(self) -> dict[str, Any]:
        """Return all fields as JSON values."""
        return json.loads(json.dumps(dataclasses.asdict(self)))

    def fingerprint(self) -> str:
        """Return a hash of all fields, 16 hexadecimal digits, that identifies the sweep's folder."""
        return hashlib.sha256(json.dumps(self.as_dict(), sort_keys=True).encode()).hexdigest()[:16]


def compared_names() -> tuple[str, ...]:
    """Return the names of the mechanisms that a sweep can compare."""
    return (*MECHANISMS, *_LOCATED)


def read_sweep(path) -> Sweep:
    """Read a sweep from a TOML file.

    Args:
        path: of the file, whose fields are those of `Sweep`; a list of one may be given as its value.

    Raises:
        ValueError: not TOML, an unknown or missing field, or a value out of range.
        OSError: the file cannot be read.
    """
    path = pathlib.Path(path)
    with open(path, "rb") as stream:
        content = stream.read(_LONGEST + 1)
    if len(content) > _LONGEST:
        raise InputError(f"{path}: is larger than 1 MiB, so it is not a description of a sweep; name another file.")
    try:
        table = tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # numbers of thousands of digits, thousands of brackets
        raise InputError(f"{path}: not a TOML file ({error}).") from None
    fields = {field.name: field for field in dataclasses.fields(Sweep)}
    for name in table:
        if name not in fields:
            raise InputError(f"{path}: unknown field {short(name)}; known are {', '.join(fields)}.")
    for name, field in fields.items():
        required = field.default is dataclasses.MISSING
        if required and name not in table:
            raise InputError(f"{path}: {name} is missing.")
        several = "tuple" in str(field.type)
        if several and name in table:
            values = table[name]
            table[name] = tuple(values) if isinstance(values, list) else (values,)
        elif name in table and isinstance(table[name], list | dict):
            raise InputError(f"{path}: {name} must be a single value.")
    return Sweep(**table)


def _parameter_of(name):
    return _LOCATED[name] if name in _LOCATED else MECHANISMS[name].parameter


def _away(manifold, distance):
    """Return the point at this distance from the origin, in the first direction of its frame."""
    if distance == 0.0:
        return manifold.origin
    with jax.enable_x64(True):
        origin = jnp.asarray(manifold.origin, complex if manifold.dtype_kind == "complex" else float)
        return np.asarray(manifold.project(manifold.exp(origin, distance * manifold.frame(origin)[0])))


def _check_number(owner, name, value, kind, least):
    right = isinstance(value, int if kind is int else int | float) and not isinstance(value, bool)
    if not right or not (value >= least if kind is int else least < value <= sys.float_info.max):
        what = "an integer of at least" if kind is int else "a number above"
        raise InputError(f"{owner}: {name} must be {what} {least:g}, got {short(value)}.")
