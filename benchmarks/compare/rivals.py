"""Private covariances of vectors by other people, written anew from their papers; many data sets side by side.

Data are (replicates, n, d). Two data sets are neighbours if one record differs, and all scales here are for that. A
vector of length at most 1 changes the matrix of sums by xx' - yy': at most sqrt(2) in the Frobenius norm, and its
eigenvalues by at most sqrt(2) in the Euclidean norm (Hoffman & Wielandt 1953) and 2 in the sum of absolute values. What
a quadratic form u'Cu in a unit vector gains or loses is at most 1. Entries on and above the diagonal change by at most
1 + d/sqrt(2) in the sum of absolute values: with the diagonal, which has at most 2 of it, they are half of all entries,
which have at most d times the Frobenius norm.

Constants of tuning are those of the authors' public experiments where there are any. Where a paper's scale can be
lowered by an argument of one line, it has been: rivals get the smaller noise. `rivals_clipped` has Dong, Liang & Yi.
"""

import jax
import numpy as np

from jaxgeodp.samplers import nuclear_noise

_HALVINGS = 60  # of an interval: what double precision can tell


def bingham(rng, matrices, envelope=None):
    """One unit vector for each matrix A (m, d, d), with a density proportional to exp(x'Ax); exact.

    By rejection from the angular central Gaussian law (Kent, Ganeiban & Mardia 2013): with e the largest eigenvalue
    less the others, and b the root of sum 1/(b + 2 e_i) = 1, proposals are normal vectors with precision 1 + 2 e_i/b,
    scaled to length 1. Their density is proportional to (1 + 2 s/b)^(-d/2), s = sum e_i x_i^2, and
    exp(-s) (1 + 2 s/b)^(d/2) is largest at s = (d - b)/2, which is the constant of the envelope.

    Args:
        rng: of NumPy.
        matrices: symmetric.
        envelope: how normal vectors are scaled, of the precisions; another function than `np.sqrt` of their inverse is
            a mistake that tests plant.
    """
    count, dim = matrices.shape[:2]
    values, vectors = np.linalg.eigh(matrices)
    energies = values[:, -1:] - values
    low, high = np.ones(count), np.full(count, float(dim))
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        above = np.sum(1.0 / (middle[:, None] + 2.0 * energies), axis=1) > 1.0
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    root = high[:, None]
    precisions = 1.0 + 2.0 * energies / root
    widths = (envelope or (lambda precision: 1.0 / np.sqrt(precision)))(precisions)
    found, waiting = np.zeros((count, dim)), np.arange(count)
    while len(waiting):
        x = widths[waiting] * rng.normal(size=(len(waiting), dim))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        s, b = np.sum(energies[waiting] * x**2, axis=1), root[waiting, 0]
        log_ratio = -s + 0.5 * dim * np.log1p(2.0 * s / b) + 0.5 * (dim - b) - 0.5 * dim * np.log(dim / b)
        accepted = np.log(rng.uniform(size=len(waiting))) < log_ratio
        found[waiting[accepted]] = x[accepted]
        waiting = waiting[~accepted]
    return np.einsum("mij,mj->mi", vectors, found)


def clipped(data, radius):
    """Vectors, none longer than the radius."""
    lengths = np.linalg.norm(data, axis=-1, keepdims=True)
    return data * np.minimum(1.0, radius / np.maximum(lengths, 1e-300))


def second_moment(data):
    """The mean of xx', (replicates, d, d)."""
    return np.swapaxes(data, 1, 2) @ data / data.shape[1]


def symmetric_noise(rng, count, dim, sigma):
    """Normal in the space of symmetric matrices: sigma along every direction of Frobenius length 1."""
    square = rng.normal(size=(count, dim, dim))
    return sigma * 0.5 * (square + np.swapaxes(square, 1, 2))


def noisy(rng, values, changes, *, epsilon=None, rho=None):
    """Values with Laplace noise, or with rho normal noise.

    Args:
        rng: of NumPy.
        values: of any shape.
        changes: how far a record moves those of one data set: in the sum of absolute values, and in the Euclidean norm.
        epsilon: the budget, or
        rho: the budget.
    """
    if epsilon is not None:
        return values + rng.laplace(scale=changes[0] / epsilon, size=np.shape(values))
    return values + changes[1] / np.sqrt(2.0 * rho) * rng.normal(size=np.shape(values))


def share_of(share, *, epsilon=None, rho=None):
    """A share of a budget; both kinds add up."""
    return {"rho": share * rho} if epsilon is None else {"epsilon": share * epsilon}


def eigenvalue_and_vector_draws(rng, data, radius, *, epsilon=None, rho=None, first=0.5, adaptive=True):
    """Amin, Dick, Kulesza, Munoz & Vassilvitskii (2019): noisy eigenvalues, and eigenvectors one after another.

    An eigenvector is a draw of the exponential mechanism with the quadratic form as utility, that is of a Bingham law,
    among the directions that are left. The last direction is what is left and costs nothing. A draw with rate r is
    2r-DP; its privacy loss has a range of 2r, so that it is r^2/2-zCDP (Cesar & Rogers 2021), which their paper, for
    pure guarantees, does not use. With rho the eigenvalues have normal noise.

    Args:
        rng: of NumPy.
        data: (replicates, n, d).
        radius: at which vectors are clipped.
        epsilon: the budget, or
        rho: the budget.
        first: the share of the eigenvalues.
        adaptive: rates go with the root of the noisy eigenvalue and of what its noise may be, as they advise. Shares
            then depend on what has been released, and their sum does not. False: with none.
    """
    count, n, dim = data.shape
    sums = n * second_moment(clipped(data, radius) / radius)
    values = np.linalg.eigvalsh(sums)[:, ::-1]
    tail = np.log(2.0 * dim / 0.1)
    extra = 2.0 / (first * epsilon) * tail if epsilon is not None else np.sqrt(2.0 * tail / (first * rho))
    found = noisy(rng, values, (2.0, np.sqrt(2.0)), **share_of(first, epsilon=epsilon, rho=rho))
    found = np.sort(np.clip(found, 0.0, n), axis=1)[:, ::-1]
    weights = np.sqrt(found + extra)[:, : dim - 1] if adaptive else np.ones((count, dim - 1))
    rest = 1.0 - first
    if epsilon is not None:
        rates = 0.5 * rest * epsilon * weights / np.sum(weights, axis=1, keepdims=True)
    else:
        rates = np.sqrt(2.0 * rest * rho) * weights / np.linalg.norm(weights, axis=1, keepdims=True)
    left, total = np.broadcast_to(np.eye(dim), sums.shape), 0.0
    for place in range(dim):
        within = np.swapaxes(left, 1, 2) @ sums @ left
        room = dim - place
        unit = bingham(rng, rates[:, place, None, None] * within) if room > 1 else np.ones((count, 1))
        direction = np.einsum("mij,mj->mi", left, unit)
        total = total + found[:, place, None, None] * direction[:, :, None] * direction[:, None, :]
        start = np.concatenate(
            [unit[:, :, None], np.broadcast_to(np.eye(room)[:, : room - 1], (count, room, room - 1))], 2
        )
        left = left @ np.linalg.qr(start)[0][:, :, 1:]
    return total * radius**2 / n


def whole(rng, data, radius, *, epsilon=None, rho=None):
    """The second moment with noise of all entries at once.

    With rho it is normal (Analyze Gauss, Dwork, Talwar, Thakurta & Zhang 2014), with epsilon it has the density
    exp(-|A|_*/scale) of d'Orsi & Novikov (2026), with the nuclear norm, of which a record changes 2 radius^2/n.
    """
    count, n, dim = data.shape
    moment = second_moment(clipped(data, radius))
    if rho is not None:
        return moment + symmetric_noise(rng, count, dim, radius**2 / n / np.sqrt(rho))
    draws = nuclear_noise(jax.random.key(int(rng.integers(2**31))), count, dim)
    return moment + 2.0 * radius**2 / n / epsilon * np.asarray(draws, float)


def normal_length(dim):
    """A bound of CoinPress, with their failure of one in ten: a standard normal vector is hardly ever longer.

    It is Laurent & Massart's. Really one in 230 vectors is longer for dim = 2, one in 170 for dim = 5.
    """
    tail = np.log(10.0)
    return np.sqrt(dim + 2.0 * np.sqrt(dim * tail) + 2.0 * tail)


def positive(matrices):
    """The nearest without negative eigenvalues."""
    values, vectors = np.linalg.eigh(matrices)
    return (vectors * np.maximum(values, 0.0)[:, None, :]) @ np.swapaxes(vectors, 1, 2)


def coinpress(rng, data, condition, rounds, *, rho=None, epsilon=None, release=whole, clip=1.0):
    """Biswas, Dong, Kamath & Ullman (2020), their multivariate covariance: clip, add noise, whiten, again.

    The covariance is known to be at most ``condition`` times the identity, and data to be normal about 0. The last
    round has three quarters of the budget. What one round finds, and what sampling may add to it, is taken for a matrix
    above the covariance, by which the next round whitens. As in their experiments, lengths are clipped at a bound for
    nine of ten normal vectors (`normal_length`), noise is not added to that bound, and half of what sampling may add
    is: their theorem asks for more, with which more rounds or records are needed. Noise is `whole`'s: for rho normal
    and equal along all directions of matrices, a little less than theirs, and for epsilon, which they do not have,
    d'Orsi & Novikov's; or that of another ``release`` of a clipped second moment. ``clip`` is a setting of ours, too:
    lengths are clipped at so many times that bound.
    """
    count, n, dim = data.shape
    limit = clip * normal_length(dim)
    shares = [1.0] if rounds == 1 else [*[0.25 / (rounds - 1)] * (rounds - 1), 0.75]
    to_units = np.broadcast_to(np.eye(dim) / np.sqrt(condition), (count, dim, dim))
    for own, share in enumerate(shares):
        part = share_of(share, epsilon=epsilon, rho=rho)
        found = positive(release(rng, data @ np.swapaxes(to_units, 1, 2), limit, **part))
        if own == rounds - 1:
            back = np.linalg.inv(to_units)
            return back @ found @ np.swapaxes(back, 1, 2)
        ratio = np.sqrt(dim / n)
        values, vectors = np.linalg.eigh(found + (ratio + 0.5 * ratio**2) * np.eye(dim))
        roots = vectors / np.sqrt(values)[:, None, :] @ np.swapaxes(vectors, 1, 2)
        to_units = roots @ to_units
    raise AssertionError("there is a last round")
