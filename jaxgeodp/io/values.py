"""Released values as files write them."""

import numpy as np

from jaxgeodp.io.charts import to_chart
from jaxgeodp.manifolds.names import manifold_of
from jaxgeodp.nested_lists import from_lists


def row_of_value(record: dict) -> np.ndarray:
    """Return the numbers (m,) of a value in the coordinates of its records' file, the record's "as".

    Without that they are the value's own, row after row; of landmarks in the plane x1, y1, x2, ...

    Args:
        record: of a release, as read.

    Raises:
        ValueError: the record has no value, or "as" is no way to write it.
    """
    value = from_lists(record["value"], "float64")
    if "as" in record:
        value = to_chart(manifold_of(record["manifold"]), value[None], record["as"])
    return value.reshape(-1)
