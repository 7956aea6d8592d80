"""Data sets of the arena's means: normal records in public balls, and data that others published."""

import dataclasses
import functools
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxgeodp as jgd
from benchmarks.compare.arena_scores import BUDGETS
from benchmarks.measure.shapes_of_data import SETS, Data, shapes_of

_UP = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def radius_of(space: jgd.Manifold) -> float:
    """That of the public ball, which the name of a cell does not say."""
    return 1.5 if isinstance(space, jgd.SPD) else np.pi / 8


def stated(budget: str, strength: float) -> str:
    """A budget, without its strength where that is 1."""
    return BUDGETS[budget] + ("" if strength == 1.0 else f" = {strength:g}")


@dataclasses.dataclass(frozen=True)
class Points:
    """n normal records on a manifold, in a public ball about the origin.

    By default they fill only a part of it, about a point half a radius off the centre; if ``wide`` all of it.
    """

    space: Any
    radius: float
    n: int
    budget: str  # "mu" or "epsilon"
    strength: float
    wide: bool = False
    data_set: int = 0  # which of many

    def __str__(self):
        name = (
            f"SPD({self.space.size})" if isinstance(self.space, jgd.SPD) else f"S{str(self.space.dim).translate(_UP)}"
        )
        parts = [name]
        parts += [f"r = {self.radius:g}"] if self.radius != radius_of(self.space) else []
        parts += [f"n = {self.n}"] if self.n != 500 else []
        parts += ["filled"] if self.wide else []
        return ", ".join([*parts, stated(self.budget, self.strength)])

    @property
    def ball(self) -> jgd.GeodesicBall:
        """The public ball."""
        return jgd.GeodesicBall(self.space, self.space.origin, self.radius)

    @functools.cached_property
    def records(self) -> jax.Array:
        """Normal in a tangent space half a radius from the centre, .35 radii wide, clipped into the ball.

        If wide, in that of the centre, 1 radius wide, so that many lie on the sphere around the ball.
        """
        space, origin, number = self.space, jnp.asarray(self.space.origin), self.data_set
        direction = space.random_tangent(jax.random.key(9 + 100 * number), origin)
        middle = space.exp(
            origin, (0.0 if self.wide else 0.5) * self.radius / space.norm(origin, direction) * direction
        )
        spread = (1.0 if self.wide else 0.35) * self.radius / np.sqrt(space.dim)

        def record(key):
            return space.project(space.exp(middle, spread * space.random_tangent(key, middle)))

        return jax.jit(lambda keys: self.ball.clip(jax.vmap(record)(keys)))(
            jax.random.split(jax.random.key(1 + 100 * number), self.n)
        )

    def shapes(self) -> dict[str, jgd.Shape]:
        """None."""
        return {}


@dataclasses.dataclass(frozen=True)
class Given:
    """Records of others, of which a part is public; see `benchmarks.measure.shapes_of_data`."""

    name: str
    data: Data
    budget: str
    strength: float
    data_set: int = 0  # which of many

    def __str__(self):
        return f"{self.name}, {stated(self.budget, self.strength)}"

    @property
    def ball(self) -> jgd.GeodesicBall:
        """The public ball."""
        return self.data.ball

    @property
    def space(self) -> jgd.Manifold:
        """Where the records are."""
        return self.data.ball.manifold

    @property
    def radius(self) -> float:
        """The public radius."""
        return self.data.ball.radius

    @property
    def n(self) -> int:
        """How many records are private."""
        return len(self.data.records)

    @functools.cached_property
    def records(self) -> jax.Array:
        """In the ball."""
        return self.data.ball.clip(self.data.records)

    def shapes(self) -> dict[str, jgd.Shape]:
        """From the centre alone, and from public records."""
        found = shapes_of(self.data, {self.budget: self.strength})
        return {name: own for name, own in found.items() if own is not None}


def about_the_identity(data: Data) -> Data:
    """Carry matrices by a congruence, an isometry, so that the public centre is the identity: rivals need it there."""
    space, center = data.ball.manifold, jnp.asarray(data.ball.center)
    if not isinstance(space, jgd.SPD):
        return data

    def home(points):
        return np.asarray(jax.vmap(lambda x: space.to_home(center, x))(jnp.asarray(points)))

    groups = {
        name: ([home(own) for own in sets], None if centers is None else list(home(np.stack(centers))))
        for name, (sets, centers) in data.groups.items()
    }
    return Data(jgd.GeodesicBall(space, space.origin, data.ball.radius), home(data.records), groups)


def given_cells(folder: pathlib.Path | None, splits: int) -> list[list[Given]]:
    """Of each data set that is there, for each budget: which records are public differs. Faces are left out."""
    found = []
    for name, (file, make) in SETS.items():
        if name == "faces":
            continue  # in 197 dimensions most laws of one release would take hours
        if file is not None and (folder is None or not (folder / file).is_file()):
            print(f"{name}: {file} is not at hand")
            continue
        loaded = None if file is None or folder is None else dict(np.load(folder / file))
        parts = [about_the_identity(make(loaded, seed)) for seed in range(splits if file else 1)]
        for budget in ("mu", "epsilon"):
            found.append([Given(name, part, budget, 1.0, place) for place, part in enumerate(parts)])
    return found
