"""Private covariances of vectors by other people, written anew from their papers; many data sets side by side.

Data are (replicates, n, d). Two data sets are neighbours if one record differs, and all scales here are for that. A
vector of length at most 1 changes the matrix of sums by xx' - yy': at most sqrt(2) in the Frobenius norm, and its
eigenvalues by at most sqrt(2) in the Euclidean norm (Hoffman & Wielandt 1953) and 2 in the sum of absolute values. What
a quadratic form u'Cu in a unit vector gains or loses is at most 1.
"""

import numpy as np

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


def eigenvalue_and_vector_draws(rng, data, radius, *, epsilon=None, rho=None):
    """Amin, Dick, Kulesza, Munoz & Vassilvitskii (2019): noisy eigenvalues, and eigenvectors one after another.

    An eigenvector is a draw of the exponential mechanism with the quadratic form as utility, that is of a Bingham law,
    among the directions that are left. All shares are equal; the last direction is what is left and costs nothing. A
    draw with rate r is 2r-DP; its privacy loss has a range of 2r, so that it is r^2/2-zCDP (Cesar & Rogers 2021), which
    their paper, for pure guarantees, does not use. With rho the eigenvalues have normal noise.
    """
    count, n, dim = data.shape
    sums = n * second_moment(clipped(data, radius) / radius)
    values = np.linalg.eigvalsh(sums)[:, ::-1]
    if epsilon is not None:
        noise, rate = rng.laplace(scale=2.0 * dim / epsilon, size=values.shape), 0.5 * epsilon / dim
    else:
        noise, rate = np.sqrt(dim / rho) * rng.normal(size=values.shape), np.sqrt(2.0 * rho / dim)
    noisy = np.sort(values + noise, axis=1)[:, ::-1] * radius**2 / n
    left, total = np.broadcast_to(np.eye(dim), sums.shape), 0.0
    for place in range(dim):
        within = np.swapaxes(left, 1, 2) @ sums @ left
        room = dim - place
        unit = bingham(rng, rate * within) if room > 1 else np.ones((count, 1))
        direction = np.einsum("mij,mj->mi", left, unit)
        total = total + noisy[:, place, None, None] * direction[:, :, None] * direction[:, None, :]
        start = np.concatenate(
            [unit[:, :, None], np.broadcast_to(np.eye(room)[:, : room - 1], (count, room, room - 1))], 2
        )
        left = left @ np.linalg.qr(start)[0][:, :, 1:]
    return total


def separate(rng, data, radius, rho):
    """Dong, Liang & Yi (2022), SeparateCov: half of rho for eigenvalues, half for a matrix with the eigenvectors."""
    count, n, dim = data.shape
    moment = second_moment(clipped(data, radius))
    sigma = np.sqrt(2.0) * radius**2 / n / np.sqrt(rho)
    values = np.sort(np.linalg.eigvalsh(moment) + sigma * rng.normal(size=(count, dim)), axis=1)
    vectors = np.linalg.eigh(moment + symmetric_noise(rng, count, dim, sigma))[1]
    return (vectors * values[:, None, :]) @ np.swapaxes(vectors, 1, 2)


def adaptive(rng, data, radius, rho, halvings=20):
    """After Dong, Liang & Yi (2022), AdaptiveCov: a radius of clipping that is found with a quarter of rho.

    Theirs searches with a sparse vector; here a histogram of lengths between radius/2^j has normal noise, and the
    radius with the least sum of what is cut off and of noise is taken. Then the noisy trace, with an eighth, says
    whether the matrix or eigenvalues and eigenvectors apart are released with the rest.
    """
    count, n, dim = data.shape
    lengths = np.linalg.norm(clipped(data, radius), axis=-1)
    edges = radius * 0.5 ** np.arange(halvings + 1)
    bins = np.stack([np.sum((lengths <= e) & (lengths > e / 2), axis=1) for e in edges], axis=1)
    noisy = np.maximum(bins + rng.normal(size=bins.shape) / np.sqrt(0.25 * rho), 0.0)  # sqrt(2)/sqrt(2 rho/4)
    lost = np.maximum(edges[None, :] ** 2 - edges[:, None] ** 2, 0.0) * 0.5
    noise = np.sqrt(2.0) * dim * edges**2 / np.sqrt(2.0 * 0.625 * rho) / np.sqrt(2.0)
    best = edges[np.argmin(noisy @ lost.T + noise, axis=1)][:, None, None]
    scaled = clipped(data, best) / best
    trace = np.mean(np.sum(scaled**2, axis=-1), axis=1) + rng.normal(size=count) / n / np.sqrt(0.25 * rho)
    whole = second_moment(scaled) + symmetric_noise(rng, count, dim, np.sqrt(2.0) / n / np.sqrt(1.25 * rho))
    apart = separate(rng, scaled, 1.0, 0.625 * rho)
    sigma = np.sqrt(2.0) / n / np.sqrt(0.625 * rho)
    error_apart = np.sqrt(2.0 * np.maximum(trace, 0.0) * sigma * np.sqrt(dim)) + sigma * np.sqrt(dim)
    error_whole = np.sqrt(2.0) / n / np.sqrt(1.25 * rho) * dim / np.sqrt(2.0)
    return np.where((error_apart < error_whole)[:, None, None], apart, whole) * best**2


def normal_length(dim):
    """Beyond which a standard normal vector is hardly ever."""
    tail = np.log(10.0)
    return np.sqrt(dim + 2.0 * np.sqrt(dim * tail) + 2.0 * tail)


def coinpress(rng, data, condition, rho, rounds):
    """Biswas, Dong, Kamath & Ullman (2020), their multivariate covariance: clip, add noise, whiten, again.

    The covariance is known to lie between 1 and ``condition`` times the identity, and data to be normal about 0. Of rho
    the last round has three quarters. What one round finds, and what its noise and sampling may add to it, is a matrix
    above the covariance, by which the next round whitens. As in their experiments, lengths are clipped where nine of
    ten normal vectors lie, and bounds of noise are those that hold on the average.
    """
    count, n, dim = data.shape
    limit = normal_length(dim)
    shares = [rho] if rounds == 1 else [*[0.25 * rho / (rounds - 1)] * (rounds - 1), 0.75 * rho]
    to_units = np.broadcast_to(np.eye(dim) / np.sqrt(condition), (count, dim, dim))
    for own, share in enumerate(shares):
        sigma = np.sqrt(2.0) * limit**2 / n / np.sqrt(2.0 * share)
        moment = second_moment(clipped(data @ np.swapaxes(to_units, 1, 2), limit))
        noisy = moment + symmetric_noise(rng, count, dim, sigma)
        if own == rounds - 1:
            back = np.linalg.inv(to_units)
            return back @ noisy @ np.swapaxes(back, 1, 2)
        ratio = np.sqrt(dim / n)
        above = noisy + (2.0 * ratio + ratio**2 + sigma * np.sqrt(2.0 * dim)) * np.eye(dim)
        values, vectors = np.linalg.eigh(above)
        roots = vectors / np.sqrt(np.maximum(values, 1e-6))[:, None, :] @ np.swapaxes(vectors, 1, 2)
        to_units = roots @ to_units
    raise AssertionError("there is a last round")
