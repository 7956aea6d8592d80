"""Guarantees, release records and the entropy of releases."""

from jaxgeodp.privacy.guarantee import PureDP
from jaxgeodp.privacy.release import Release

__all__ = ["PureDP", "Release"]
