"""Convergence diagnostics of chains: split R-hat and effective sample sizes, computed by NumPyro."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.diagnostics import effective_sample_size, split_gelman_rubin
from scipy.special import ndtri
from scipy.stats import rankdata

from jaxgeodp.checks import InputError
from jaxgeodp.manifolds.manifold import Manifold
from jaxgeodp.samplers.random_walk import Chains


class Diagnostics(NamedTuple):
    """Worst values over the tangent coordinates and the log density (Vehtari et al. 2021)."""

    acceptance: float  #: mean over the chains
    r_hat: float  #: split R-hat of normalised ranks, also folded; above 1.01 the chains disagree
    bulk_ess: float  #: effective sample size of normalised ranks
    tail_ess: float  #: the smaller one of the events "below the 5 %" and "above the 95 % quantile"


def diagnose(manifold: Manifold, chains: Chains, base=None) -> Diagnostics:
    """Return R-hat and effective sample sizes of `metropolis`.

    Args:
        manifold: of the points.
        chains: at least two, of at least 4 points each.
        base: the point in whose tangent space coordinates are taken; default: the first point of the first chain.

    Returns:
        `Diagnostics`. Where no number of the chains ever changes, R-hat is infinite and the sample sizes are 0.

    Raises:
        ValueError: fewer chains or points.
    """
    chain_count, length = chains.points.shape[:2]
    if chain_count < 2 or length < 4:
        raise InputError(
            f"diagnose: needs at least 2 chains of at least 4 points each, got {chain_count} of {length}; raise "
            "num_chains or num_samples."
        )
    base = chains.points[0, 0] if base is None else jnp.asarray(base, chains.points.dtype)
    frame = manifold.frame(base)

    def coordinates(x):
        return manifold.coordinates(base, manifold.log(base, x), frame)

    tangents = np.asarray(jax.jit(jax.vmap(jax.vmap(coordinates)))(chains.points))
    columns = [*np.moveaxis(tangents, -1, 0), np.asarray(chains.log_density)]
    columns = [column for column in columns if np.ptp(column) > 0]
    if not columns:
        return Diagnostics(float(np.mean(chains.acceptance)), np.inf, 0.0, 0.0)
    ranked = [_normal_scores(column) for column in columns]
    # Distances from the median: chains may agree in location and differ in spread.
    folded = [_normal_scores(np.abs(column - np.median(column))) for column in columns]
    tails = [indicator for column in columns for indicator in _tails(column)]
    return Diagnostics(
        float(np.mean(chains.acceptance)),
        max(float(split_gelman_rubin(column)) for column in ranked + folded),
        min(float(effective_sample_size(_split(column))) for column in ranked),
        min(float(effective_sample_size(_split(column))) for column in tails),
    )


def _normal_scores(column):
    ranks = rankdata(column).reshape(column.shape)
    return ndtri((ranks - 0.375) / (column.size + 0.25))


def _tails(column):
    low, high = np.quantile(column, [0.05, 0.95])
    return [indicator for indicator in ((column <= low) * 1.0, (column >= high) * 1.0) if np.ptp(indicator) > 0]


def _split(column):
    half = column.shape[1] // 2
    return np.concatenate([column[:, :half], column[:, -half:]])
