"""Curves: private means under Gaussian differential privacy, by Gaussian processes."""

from jaxgeodp.functional.design import Design, ExpectedError, expected_error, optimize_budget
from jaxgeodp.functional.gaussian_process import FunctionalGaussianMechanism
from jaxgeodp.functional.kernels import IntervalKernel, Kernel, PeriodicKernel, PeriodicMatern, PeriodicRBF
from jaxgeodp.functional.rkhs_mean import RKHSMean

__all__ = [
    "Design",
    "ExpectedError",
    "FunctionalGaussianMechanism",
    "IntervalKernel",
    "Kernel",
    "PeriodicKernel",
    "PeriodicMatern",
    "PeriodicRBF",
    "RKHSMean",
    "expected_error",
    "optimize_budget",
]
