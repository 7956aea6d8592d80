"""Other people's auditors on draws of ours: each is imported where it is called, and says so where it is not installed.

The auditors of draws get the same two samples and scores. What each of them finds is a `Found`: a number, what the
number may be at most, and whether that is exceeded. DP-Auditorium's tester of the maximum mean discrepancy is left out:
it compares a number that is at most 2 with (e^epsilon - 1)^2, so that it can reject no epsilon above .88.
"""

import contextlib
import importlib.metadata
import io
import os
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from jaxgeodp.privacy import ApproximateDP, GaussianDP, PureDP, ZeroConcentratedDP

LEVEL = 1e-6
# For guarantees that hold with a delta for every epsilon, and for every delta.
DELTA = 0.05


class Found(NamedTuple):
    """What an auditor found of one pair of neighbours."""

    value: float  #: a lower bound
    allowed: float  #: by the guarantee
    broken: bool

    @property
    def text(self) -> str:
        """For a table."""
        return f"{'**' if self.broken else ''}{self.value:.2f}{'**' if self.broken else ''} ({self.allowed:.2f})"


class Sample(NamedTuple):
    """Draws for two data sets, (num, d), and their scores, (num,): large where the first data are the likelier ones."""

    first: np.ndarray
    second: np.ndarray
    scores: np.ndarray
    others: np.ndarray


def epsilon_delta(guarantee) -> tuple[float, float]:
    """A pair that the guarantee implies."""
    if isinstance(guarantee, PureDP):
        return guarantee.epsilon, 0.0
    if isinstance(guarantee, ApproximateDP):
        return guarantee.epsilon, guarantee.delta
    return guarantee.to_approximate(DELTA).epsilon, DELTA


def _renyi(guarantee, order):
    """The largest Renyi divergence of this order."""
    if isinstance(guarantee, PureDP):
        return min(guarantee.epsilon, 0.5 * order * guarantee.epsilon**2)
    if isinstance(guarantee, GaussianDP):
        return 0.5 * order * guarantee.mu**2
    return order * guarantee.rho if isinstance(guarantee, ZeroConcentratedDP) else None


# Auditors of draws --------------------------------------------------------------------------------------------


def jax_privacy(sample: Sample, guarantee) -> Found:
    """Google DeepMind's ``jax_privacy.auditing``: Clopper-Pearson bounds of a threshold that half of the scores choose.

    Nasr et al. (2021); both directions.
    """
    from jax_privacy import auditing

    epsilon, delta = epsilon_delta(guarantee)
    best = 0.0
    for first, second in ((sample.scores, sample.others), (-sample.others, -sample.scores)):
        found = auditing.CanaryScoreAuditor(first, second).epsilon_clopper_pearson(
            LEVEL / 2.0, delta, one_sided=False, threshold_strategy=auditing.Split(seed=0)
        )
        best = max(best, float(found))
    return Found(best, epsilon, best > epsilon)


def privacy_estimates(sample: Sample, guarantee) -> Found:
    """Microsoft's ``privacy-estimates`` (Zanella-Beguelin et al. 2023): Clopper-Pearson, of a threshold from us."""
    import privacy_estimates as package

    epsilon, delta = epsilon_delta(guarantee)
    best = 0.0
    half = len(sample.scores) // 2
    for first, second in ((sample.scores, sample.others), (-sample.others, -sample.scores)):
        threshold = threshold_of(first[:half], second[:half], delta)
        hits, errors = (int(np.sum(s[half:] >= threshold)) for s in (first, second))
        counts = package.AttackResults(FN=len(first) - half - hits, FP=errors, TN=len(second) - half - errors, TP=hits)
        best = max(best, float(package.compute_eps_lo(counts, delta, LEVEL / 2.0, "beta")))
    return Found(best, epsilon, best > epsilon)


def threshold_of(first, second, delta):
    """Where the ratio of what is above, less delta, is largest, at least 1 % being there."""
    tried = np.quantile(np.concatenate([first, second]), np.linspace(0.02, 0.98, 49))
    above, others = (np.mean(s[:, None] >= tried, axis=0) for s in (first, second))
    return tried[np.argmax(np.where(above > 0.01, (above - delta) / np.maximum(others, 1e-3), 0.0))]


def histogram(sample: Sample, guarantee) -> Found:
    """DP-Auditorium's histogram tester (Gilbert & McMillan 2018), of scores in 20 cells."""
    from dp_auditorium.configs import privacy_property, property_tester_config
    from dp_auditorium.testers import histogram_tester

    both = np.concatenate([sample.scores, sample.others])
    low, high = (float(np.quantile(both, q)) for q in (0.002, 0.998))
    config = property_tester_config.HistogramPropertyTesterConfig(
        False, 20, low, high, privacy_property.ApproximateDp(*epsilon_delta(guarantee))
    )
    return _reject(histogram_tester.HistogramTester(config), sample.scores, sample.others, epsilon_delta(guarantee)[1])


def hockey_stick(sample: Sample, guarantee) -> Found:
    """DP-Auditorium's hockey-stick tester (Kong, Munoz Medina & Ribero 2024): a network of its own that tells draws."""
    from dp_auditorium.configs import privacy_property, property_tester_config
    from dp_auditorium.testers import hockey_stick_tester

    training = hockey_stick_tester.make_default_hs_training_config()
    config = property_tester_config.HockeyStickPropertyTesterConfig(
        training, privacy_property.ApproximateDp(*epsilon_delta(guarantee))
    )
    _seeded()
    tester = hockey_stick_tester.HockeyStickPropertyTester(config, hockey_stick_tester.make_default_hs_base_model())
    first, second = _standard(sample)
    with _silent():
        return _reject(tester, first, second, epsilon_delta(guarantee)[1])


def renyi(sample: Sample, guarantee) -> Found | None:
    """DP-Auditorium's Renyi tester (Kong, Munoz Medina & Ribero 2024), order 2, outputs of its network within 2."""
    from dp_auditorium.configs import privacy_property, property_tester_config
    from dp_auditorium.testers import renyi_tester

    allowed = _renyi(guarantee, 2.0)
    if allowed is None:
        return None  # an (epsilon, delta) guarantee bounds no Renyi divergence
    training = property_tester_config.TrainingConfig(2, 256, 1e-3, model_output_coordinate_bound=1.0)
    wanted = privacy_property.PrivacyProperty(renyi_dp=privacy_property.RenyiDp(2.0, allowed))
    config = property_tester_config.RenyiPropertyTesterConfig(2.0, training, wanted)
    _seeded()
    tester = renyi_tester.RenyiPropertyTester(config, renyi_tester.make_default_renyi_base_model())
    with _silent():
        return _reject(tester, *(x.astype(np.float32) for x in _standard(sample)), allowed)


def _reject(tester, first, second, allowed):
    bound = float(np.asarray(tester.estimate_lower_bound(first, second, LEVEL)))
    return Found(bound, allowed, bool(tester.reject_property(bound)) and bound > allowed)


def _standard(sample):
    """Draws in units of their spread: what a user of a network would do."""
    both = np.concatenate([sample.first, sample.second])
    middle, spread = np.median(both, axis=0), np.std(both, axis=0)
    return tuple((x - middle) / np.where(spread > 0, spread, 1.0) for x in (sample.first, sample.second))


def _seeded():
    import tensorflow

    tensorflow.keras.utils.set_random_seed(0)


@contextlib.contextmanager
def _silent():
    """Keras prints its progress."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class Auditor(NamedTuple):
    """An auditor of draws."""

    name: str
    module: str  #: that must be there
    package: str  #: whose version is told
    audit: Callable
    trains: bool = False  #: a network, which takes seconds


OF_DRAWS = (
    Auditor("jax_privacy", "jax_privacy.auditing", "jax-privacy", jax_privacy),
    Auditor("privacy-estimates", "privacy_estimates", "privacy-estimates", privacy_estimates),
    Auditor("DP-Auditorium, histogram", "dp_auditorium", "dp-auditorium", histogram),
    Auditor("DP-Auditorium, hockey stick", "dp_auditorium", "dp-auditorium", hockey_stick, True),
    Auditor("DP-Auditorium, Rényi", "dp_auditorium", "dp-auditorium", renyi, True),
)


def missing(module: str) -> str:
    """Why a package cannot be used; empty where it can."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        __import__(module)
    except Exception as error:  # whatever a package does when it is imported
        return f"not installed ({type(error).__name__}: {error})"
    return ""


def version(package: str) -> str:
    """Of a package, where it has one."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "from its repository"
