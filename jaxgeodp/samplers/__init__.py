"""Samplers: exact rejection from certified envelopes."""

from jaxgeodp.samplers.rejection import Draws, rejection_sample

__all__ = ["Draws", "rejection_sample"]
