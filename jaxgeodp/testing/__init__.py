"""Laws that manifolds, statistics, mechanisms and encodings obey, to put your own through."""

from jaxgeodp.testing.encodings import check_encoding
from jaxgeodp.testing.manifold_laws import LAWS
from jaxgeodp.testing.manifolds import check_manifold
from jaxgeodp.testing.mechanisms import MECHANISM_LAWS, check_mechanism
from jaxgeodp.testing.statistics import STATISTIC_LAWS, check_statistic

__all__ = [
    "LAWS",
    "MECHANISM_LAWS",
    "STATISTIC_LAWS",
    "check_encoding",
    "check_manifold",
    "check_mechanism",
    "check_statistic",
]
