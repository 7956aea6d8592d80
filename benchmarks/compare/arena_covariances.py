"""The second part of the arena: the covariance of n normal vectors in R^d, with a mean that is known to be 0."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import digamma

import jaxgeodp as jgd
from benchmarks.compare import rivals, rivals_clipped
from benchmarks.compare.arena_scores import BUDGETS, Score, best_setting, scored
from jaxgeodp.inference import SpreadMechanism, TangentCovariance
from jaxgeodp.samplers import hull_noise

# Of the budget that ours spends on finding where to whiten; CoinPress spends as much on all its rounds but the last.
_FINDING = 0.25
_ROUNDS = (1, 2, 3, 4, 5)
# Where vectors are clipped: times a length that is exceeded by one normal vector in 200. Once, the eigenvalues of a
# cell leave room for less; in rounds, the last ones have whitened what they clip.
_CLIPS = (1.0, 0.75, 0.5, 0.35, 0.25, 0.18, 0.13, 0.1, 0.07)
_CLIPS_IN_ROUNDS = (1.25, 1.0, 0.87, 0.75, 0.6)
# Data sets by which settings are chosen, besides those that are judged.
_PILOTS = 200


class Vectors(NamedTuple):
    """A cell: the covariance is known to have eigenvalues from 1 to ``condition``, and all vectors mean 0."""

    dim: int
    n: int
    condition: float
    budget: str  # "rho" or "epsilon"
    strength: float

    def __str__(self):
        size = "" if self.n == 4000 else f", n = {self.n}"
        return f"d = {self.dim}{size}, κ = {self.condition:g}, {BUDGETS[self.budget]}"

    @property
    def covariance(self) -> np.ndarray:
        """The true one: eigenvalues over the middle half of what is known, in directions of its own."""
        turn = np.linalg.qr(np.random.default_rng(self.dim).normal(size=(self.dim, self.dim)))[0]
        return (turn * self.condition ** np.linspace(0.25, 0.75, self.dim)) @ turn.T


def scores(cell: Vectors, replicates: int, *, blocks: bool = True) -> list[Score]:
    """All who enter, on the same data sets; ``blocks`` False leaves out those of ours that compile a search.

    Of a method with several settings enters, for each kind of error, the one with the least of it over data sets of its
    own, which nobody who has to choose it could know, but which are not those that are judged.
    """
    rng = np.random.default_rng([cell.dim, cell.n])
    many = _PILOTS + replicates
    data = rng.normal(size=(many, cell.n, cell.dim)) @ np.linalg.cholesky(cell.covariance).T
    pilots, judged = data[:_PILOTS], data[_PILOTS:]
    radius = np.sqrt(cell.condition) * rivals.normal_length(cell.dim)
    budget = {cell.budget: cell.strength}
    found: dict = {("sample covariance", None): {"": rivals.second_moment}}
    if cell.budget == "epsilon":
        own = np.random.default_rng([cell.dim, cell.n, 1])
        found["second moment, clipped, hull noise (SpreadMechanism)", True] = {
            name: lambda data, at=at: moments(jax.random.key(len(data)), data, at * radius, budget)
            for name, at in clips().items()
        }
        found["rounds of CoinPress, hull noise", True] = of_rounds(own, cell, budget, release=with_hull_noise)
    found |= {(name, False): own for name, own in of_rivals(rng, cell, radius, budget).items()}
    entered = [_best_of(cell, *who, settings, pilots, judged) for who, settings in found.items()]
    if blocks:
        for name, matrices in of_blocks(cell, judged).items():
            entered.append(_judge(cell, name, True, matrices))
    return entered


def _best_of(cell, name, ours, settings, pilots, judged):
    if len(settings) == 1:
        ((own, method),) = settings.items()
        return _judge(cell, name + own, ours, method(judged))
    tried = {own: _judge(cell, "", ours, method(pilots)) for own, method in settings.items()}
    return best_setting(tried, lambda own: _judge(cell, name + own, ours, settings[own](judged)))


def _judge(cell, name, ours, matrices):
    return scored(cell, name, ours, within(matrices, 1.0, cell.condition), cell.covariance, paired=True)


def clips():
    """Of those who clip once, by what is said of them."""
    return {f" [clipped at {at:g}]": at for at in _CLIPS}


def of_rounds(rng, cell, budget, **release):
    """Rounds of CoinPress, by how many there are and where they clip."""
    return {
        f" [{rounds}, clipped at {at:g}]": lambda data, rounds=rounds, at=at: rivals.coinpress(
            rng, data, cell.condition, rounds, **budget, **release, clip=at
        )
        for rounds in _ROUNDS
        for at in _CLIPS_IN_ROUNDS
    }


def of_rivals(rng, cell, radius, budget):
    """All that others have proposed: of each method, by its settings, what releases of data sets."""
    normal = cell.budget == "rho"
    once = {
        "second moment, clipped, " + ("Analyze Gauss" if normal else "noise of d'Orsi & Novikov"): rivals.whole,
        "Dong et al., SeparateCov": rivals_clipped.separate,
        "Dong et al., AdaptiveCov": rivals_clipped.adaptive,
        "AdaptiveCov, radius by a histogram": rivals_clipped.by_histogram,
    } | ({} if normal else {"Laplace noise on entries": rivals_clipped.entries})
    found = {
        name: {
            setting: lambda data, method=method, at=at: method(rng, data, at * radius, **budget)
            for setting, at in clips().items()
        }
        for name, method in once.items()
    }
    found["Amin et al."] = {
        f" [{first:.2f} for eigenvalues, {'by eigenvalue' if adaptive else 'equal'}, {setting[2:]}": (
            lambda data, first=first, adaptive=adaptive, at=at: rivals.eigenvalue_and_vector_draws(
                rng, data, at * radius, **budget, first=first, adaptive=adaptive
            )
        )
        for first in sorted({0.5, 0.25, 1.0 / cell.dim})
        for adaptive in (True, False)
        for setting, at in clips().items()
    }
    found["CoinPress" if normal else "rounds of CoinPress, noise of d'Orsi & Novikov"] = of_rounds(rng, cell, budget)
    return found


def within(matrices, lowest, highest):
    """With eigenvalues between what is known of them: nobody releases a matrix that is not positive."""
    values, vectors = np.linalg.eigh(0.5 * (matrices + np.swapaxes(matrices, 1, 2)))
    return (vectors * np.clip(values, lowest, highest)[:, None, :]) @ np.swapaxes(vectors, 1, 2)


def moments(key, data, radius, budget):
    """Ours: vectors are clipped to a ball about 0, and their second moment is released (`TangentCovariance`)."""
    space = jgd.Euclidean(data.shape[2])
    given = as_mu(budget["rho"]) if "rho" in budget else budget
    ball = jgd.GeodesicBall(space, space.origin, radius)
    mechanism = SpreadMechanism(ball, space.origin, TangentCovariance(), **given)
    return _each(mechanism.law(data.shape[1]), key, data)


def with_hull_noise(rng, data, radius, *, epsilon):
    """The law of `moments` for a ball about 0, for rounds of others: one program for all radii."""
    count, n, dim = data.shape
    draws = hull_noise(jax.random.key(int(rng.integers(2**31))), count, dim)
    return rivals.second_moment(rivals.clipped(data, radius)) + radius**2 / n / epsilon * np.asarray(draws, float)


def of_blocks(cell, data):
    """Ours, by geometry: covariances of blocks are records on SPD(d), whose mean `LocatedMechanism` finds.

    A vector is in one block, so that neighbours differ in one record. The Frechet mean of Wishart matrices of a law
    that no rotation changes is a multiple of the identity, and congruences are isometries: that of block covariances is
    that multiple of the true one, log c = E log det W/d, and is divided by it. Alone it has all of the budget. Before a
    second moment it has a quarter, and whitens the vectors for the rest.
    """
    size = cell.dim + 3  # of blocks: so small that there are many
    count = cell.n // size
    blocks = data[:, : count * size].reshape(len(data), count, size, cell.dim)
    records = np.swapaxes(blocks, 2, 3) @ blocks / size / np.sqrt(cell.condition)
    log_factor = np.mean(digamma(0.5 * (size - np.arange(cell.dim)))) + np.log(2.0 / size)
    space = jgd.SPD(cell.dim)
    reach = 0.5 * np.sqrt(cell.dim) * np.log(cell.condition) + 4.0
    found = {}
    for name, share in (("mean of blocks (LocatedMechanism)", 1.0), ("mean of blocks, then second moment", _FINDING)):
        first, rest = shared(cell, share)
        mechanism = jgd.LocatedMechanism(space, domain=float(reach), **first)
        try:
            law = mechanism.law(count)
        except ValueError:
            continue  # too few blocks: refused from n alone
        value = _each(law, jax.random.key(2), records)
        value = value * np.sqrt(cell.condition) / np.exp(log_factor)
        if rest is not None:
            values, vectors = np.linalg.eigh(within(value, 1.0, cell.condition))
            root = (vectors * np.sqrt(values)[:, None, :]) @ np.swapaxes(vectors, 1, 2)
            white = data @ np.linalg.inv(root)
            value = root @ moments(jax.random.key(3), white, rivals.normal_length(cell.dim), rest) @ root
        found[name] = value
    return found


def shared(cell, share):
    """The budget of the search, and what of ``cell.strength`` follows it: mu^2/2-zCDP and epsilon both add up."""
    rest = None if share == 1.0 else rivals.share_of(1.0 - share, **{cell.budget: cell.strength})
    first = rivals.share_of(share, **{cell.budget: cell.strength})
    return as_mu(first["rho"]) if "rho" in first else first, rest


def as_mu(rho):
    """Of normal noise: mu^2/2 = rho."""
    return {"mu": float(np.sqrt(2.0 * rho))}


def _each(law, key, data):
    """One draw for each data set."""
    keys = jax.random.split(key, len(data))
    program = jax.jit(lambda keys, data: jax.lax.map(lambda pair: law.simulate(*pair, 1)[0], (keys, data)))
    return np.asarray(program(keys, jnp.asarray(data)))
