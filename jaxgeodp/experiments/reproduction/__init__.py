"""The papers' claims, tested: `jaxgeodp reproduce`."""

from jaxgeodp.experiments.reproduction import kng_2022, laplace_2021, shapes_2022

#: Name -> function ``(run)`` that fills a `Run` with claims and figures.
PAPERS = {
    "laplace-2021": laplace_2021.reproduce,
    "kng-2022": kng_2022.reproduce,
    "shapes-2022": shapes_2022.reproduce,
}

__all__ = ["PAPERS"]
