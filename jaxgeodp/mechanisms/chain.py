"""A release by a Markov chain, for comparison with work that samples this way."""

from jaxgeodp.privacy.release import Release
from jaxgeodp.releases.mechanism import Mechanism, release_in
from jaxgeodp.releases.ways import ByChain


def release_by_chain(mechanism: Mechanism, data, num_burnin: int = 20_000) -> Release:
    """Return one value from a geodesic random walk started at the public centre; labelled "MCMC: not pure DP".

    `Mechanism.release` is exact, and usually faster. This takes no ledger, as nothing is promised that could be
    charged.

    Args:
        mechanism: with a density (`KNGMechanism`, `LaplaceMechanism`, `RiemannianGaussian`).
        data: (n, \\*shape), n >= 2; see `Mechanism.release`.
        num_burnin: moves before the value is taken, at least 1.

    Returns:
        The release, whose guarantee is "not proven".

    Raises:
        ValueError: see `Mechanism.release`; another kind of mechanism, or ``num_burnin`` is out of range.
    """
    return release_in(mechanism, ByChain(num_burnin), data)
