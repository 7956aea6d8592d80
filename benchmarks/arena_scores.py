"""Errors of all who enter a cell of the arena, and who wins it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


class Score(NamedTuple):
    """Means over replicates, and standard errors of the means."""

    cell: Any
    method: str
    ours: bool | None  #: None for what is no rival: no privacy, or no proof of it
    distance: tuple[float, float]  #: in the affine-invariant metric, on spheres the geodesic distance
    mahalanobis: tuple[float, float] | None  #: of matrices


def scored(cell, method: str, ours: bool | None, matrices, truth) -> Score:
    """Of matrices (m, d, d), against one."""
    values, vectors = np.linalg.eigh(truth)
    root = (vectors / np.sqrt(values)) @ vectors.T
    ratios = root @ matrices @ root
    eigenvalues = np.linalg.eigvalsh(ratios)
    # What double precision leaves of a condition of 1e16 and more: as far away as it can tell.
    distances = np.sqrt(np.sum(np.log(np.maximum(eigenvalues, 1e-16)) ** 2, axis=1))
    return Score(cell, method, ours, mean_of(distances), mean_of(np.sqrt(np.sum((eigenvalues - 1.0) ** 2, axis=1))))


def mean_of(errors) -> tuple[float, float]:
    """The mean and its standard error."""
    errors = np.asarray(errors)
    return float(errors.mean()), float(errors.std(ddof=1) / np.sqrt(len(errors)))


def best(scores: Sequence[Score], ours: bool) -> Score | None:
    """That with the least distance, among ours or among the others."""
    return min((own for own in scores if own.ours is ours), key=lambda own: own.distance[0], default=None)


def verdict(scores: Sequence[Score]) -> str:
    """Who wins a cell; a difference below two standard errors is none."""
    own, other = best(scores, True), best(scores, False)
    if own is None or other is None:
        return "no contest"
    gap, error = other.distance[0] - own.distance[0], np.hypot(own.distance[1], other.distance[1])
    word = "even" if abs(gap) <= 2.0 * error else "we win" if gap > 0 else "we lose"
    ratio = own.distance[0] / other.distance[0]
    return f"{word}: {own.method} {_digits(own.distance)}, {other.method} {_digits(other.distance)}, ratio {ratio:.2f}"


def rows(scores: Sequence[Score]) -> list[list[str]]:
    """Of a table: best first."""
    names = {True: "ours", False: "", None: "no rival"}
    return [
        [own.method, names[own.ours], _digits(own.distance), _digits(own.mahalanobis) if own.mahalanobis else ""]
        for own in sorted(scores, key=lambda own: own.distance[0])
    ]


def _digits(pair):
    return f"{pair[0]:.4f} ± {pair[1]:.4f}"
