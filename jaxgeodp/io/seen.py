"""Input of the checks in `doubts`."""

from typing import NamedTuple

import numpy as np

from jaxgeodp.io.layout import Layout


class Seen(NamedTuple):
    """Records, and the file contents they come from."""

    records: np.ndarray  #: (n, \*shape)
    usable: np.ndarray  #: (n,), which are points
    table: np.ndarray  #: the columns that make a record, as they are in the file
    places: list[int] | None  #: where these columns stand, from 0; None for all
    names: tuple[str, ...]  #: theirs; none where the file has none
    layout: Layout  #: of the call


def quantiles(values) -> str:
    """Return five quantiles of the values in words."""
    shares = (0, 5, 50, 95, 100)
    return ", ".join(
        f"{share} % {value:.3g}" for share, value in zip(shares, np.percentile(values, shares), strict=True)
    )
