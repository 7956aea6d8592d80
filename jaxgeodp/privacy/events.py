"""Guarantees for the package dp-accounting: events for its accountants, loss distributions to compose.

The package is imported where it is called for (``pip install 'jaxgeodp[accounting]'``).
"""

import decimal

from jaxgeodp.checks import InputError
from jaxgeodp.privacy.decimals import float_below, written
from jaxgeodp.privacy.guarantee import ApproximateDP, GaussianDP, Guarantee, NotProven, PureDP, ZeroConcentratedDP

# Step of the losses in numerical composition.
_STEP = 1e-4
#: Largest mu of a loss distribution, whose number of losses grows like its square.
LARGEST_MU = 50.0


def dp_event(guarantee: Guarantee | NotProven):
    """Return a guarantee as a ``dp_accounting.DpEvent``; no accountant counts it as less than it is.

    mu-GDP is the event of a Gaussian mechanism with noise multiplier 1/mu: what tells neighbours apart is no better
    than one draw of it. rho-zCDP is its own event, and pure epsilon-DP that of the rho = epsilon^2/2 that it implies
    (Bun & Steinke 2016), because the package has no event of pure DP; `loss_distribution` is tighter. A pair (epsilon,
    delta) has no event that accountants support, and they refuse it; what is not proven counts as not private.

    Give it to an accountant with its default neighbouring relation (``PLDAccountant`` doubles Gaussian events under
    ``REPLACE_ONE``, because it takes the noise for that of single records), and do not put it inside an event of
    sampling: the guarantee is for the whole release.

    What comes out is about the neighbours of the release, replaced records unless it said otherwise, so every other
    event of the accountant must be calibrated to those, too: to 2C for a sum of vectors of length C, one of which is
    replaced.

    Args:
        guarantee: of a release (`Release.guarantee`). That of a mechanism is the same for the default way of releasing
            only: on a grid, with a delta or add-remove a release may promise something else.

    Raises:
        ValueError: dp-accounting is not installed.
        TypeError: not a guarantee.

    Example:
        >>> from jaxgeodp.privacy import GaussianDP, dp_event
        >>> dp_event(GaussianDP(0.5))
        GaussianDpEvent(noise_multiplier=2.0)
    """
    dp_accounting = _package()
    if isinstance(guarantee, NotProven):
        return dp_accounting.NonPrivateDpEvent()
    if isinstance(guarantee, GaussianDP):
        with decimal.localcontext(prec=40, rounding=decimal.ROUND_DOWN):
            return dp_accounting.GaussianDpEvent(float_below(1 / written(guarantee.mu)))
    if isinstance(guarantee, PureDP):
        return dp_accounting.ZCDpEvent(guarantee.to_zcdp().rho)
    if isinstance(guarantee, ZeroConcentratedDP):
        return dp_accounting.ZCDpEvent(guarantee.rho)
    if isinstance(guarantee, ApproximateDP):
        return dp_accounting.UnsupportedDpEvent()
    raise TypeError(f"dp_event: {guarantee!r} is not a guarantee, so nothing follows from it.")


def loss_distribution(guarantee: Guarantee):
    """Return the worst pair of laws under a guarantee as a ``dp_accounting.pld.PrivacyLossDistribution``.

    For numerical composition with other mechanisms (``.compose``, ``.get_epsilon_for_delta``); losses are rounded up
    to multiples of 1e-4. Its Fourier transforms are not rounded to the safe side; `compose` allows for that.

    Args:
        guarantee: pure, approximate or Gaussian, for the neighbours of everything that it is composed with; see
            `dp_event`.

    Raises:
        ValueError: dp-accounting is not installed, a zCDP guarantee, which no pair of laws stands for, or a mu above
            50, for which the table of losses would fill the memory.

    Example:
        >>> from jaxgeodp.privacy import PureDP, loss_distribution
        >>> round(loss_distribution(PureDP(0.5)).get_epsilon_for_delta(1e-9), 4)
        0.5
    """
    _package()
    from dp_accounting.pld import common, privacy_loss_distribution

    if isinstance(guarantee, GaussianDP):
        if guarantee.mu > LARGEST_MU:
            raise InputError(f"loss_distribution: mu must be at most {LARGEST_MU:g}, got {guarantee.mu:g}.")
        # The pair N(0, 1), N(mu, 1) itself: sensitivity mu at standard deviation 1.
        return privacy_loss_distribution.from_gaussian_mechanism(
            1.0, sensitivity=guarantee.mu, value_discretization_interval=_STEP
        )
    if isinstance(guarantee, PureDP | ApproximateDP):
        parameters = common.DifferentialPrivacyParameters(guarantee.epsilon, getattr(guarantee, "delta", 0.0))
        return privacy_loss_distribution.from_privacy_parameters(parameters, value_discretization_interval=_STEP)
    raise InputError(
        f"loss_distribution: no dominating pair of distributions is known for {guarantee!r}; give a PureDP, "
        "ApproximateDP or GaussianDP."
    )


def _package():
    try:
        import dp_accounting
    except ImportError:
        raise InputError(
            "compose with delta, dp_event and loss_distribution need the package dp-accounting: pip install "
            "'jaxgeodp[accounting]'."
        ) from None
    return dp_accounting
