"""The papers' claims, tested: `jaxgeodp reproduce`."""

from jaxgeodp.experiments.reproduction.faces_2024 import reproduce as _faces_2024
from jaxgeodp.experiments.reproduction.kng_2022 import reproduce as _kng_2022
from jaxgeodp.experiments.reproduction.laplace_2021 import reproduce as _laplace_2021
from jaxgeodp.experiments.reproduction.shapes_2022 import reproduce as _shapes_2022

#: Name -> function that fills a `Run` with claims and figures.
PAPERS = {
    "laplace-2021": _laplace_2021,
    "kng-2022": _kng_2022,
    "shapes-2022": _shapes_2022,
    "faces-2024": _faces_2024,
}

__all__ = ["PAPERS"]
