"""Curvature bounds: comparison functions, global sensitivities, growth of the gradient."""

from jaxgeodp.bounds.sensitivity import (
    CALIBRATIONS,
    Sensitivity,
    gradient_sensitivity,
    largest_support,
    mean_sensitivity,
    power_gradient_sensitivity,
)

__all__ = [
    "CALIBRATIONS",
    "Sensitivity",
    "gradient_sensitivity",
    "largest_support",
    "mean_sensitivity",
    "power_gradient_sensitivity",
]
