"""Labels of classes in an array that holds each of them exactly."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from jaxgeodp.checks import InputError, short


def listed_classes(owner: str, classes: Any) -> np.ndarray:
    """Return the public labels in an array, sorted as scikit-learn supposes.

    Where NumPy has no type for all of them, as for 2^53 + 1 beside 0.5 or a word that ends in a NUL, it would change
    some; these are refused.

    Args:
        owner: named in refusals.
        classes: words, or numbers: of Python or NumPy, compared by their exact values.

    Raises:
        ValueError: not such a list, or no array holds it exactly.
    """
    single = isinstance(classes, str) or not isinstance(classes, Iterable) or getattr(classes, "shape", None) == ()
    labels: list[Any] = [] if single else list(map(_exact, classes))
    words = [isinstance(label, str) for label in labels]
    valid = all(isinstance(label, str | int | float) and label == label for label in labels)
    if not labels or not valid or any(words) != all(words) or len(set(labels)) < len(labels):
        raise InputError(f"{owner}: classes must be a list of distinct words or distinct numbers.")
    labels.sort()
    array = np.array(labels)
    changed = [label for label, kept in zip(labels, array.tolist(), strict=True) if label != kept]
    if changed:
        raise InputError(
            f"{owner}: no array holds all of these classes exactly ({short(changed[0])} would be changed); give them "
            "other names, such as words, there and in y."
        )
    return array


def occurring_labels(owner: str, y: ArrayLike, n: int) -> np.ndarray:
    """Return y as an array (n,), where which labels occur is public.

    Raises:
        ValueError: not one label a record, or a list with labels that no array holds exactly.
    """
    array = column_or_1d(y, warn=True)
    check_classification_targets(array)
    if len(array) != n:
        raise InputError(f"{owner}: y must hold one label for each record.")
    # An array has one type already; a list may have labels of several.
    pairs = zip(y, array.tolist(), strict=True) if isinstance(y, list | tuple) else ()
    if any(kept != _exact(label[0] if isinstance(label, list | tuple) else label) for label, kept in pairs):
        raise InputError(
            f"{owner}: no array holds all labels of y exactly; give them other names, such as words, or list classes=."
        )
    return array


def _exact(label):
    """Return a number or word of NumPy as that of Python which equals it; others unchanged."""
    plain = isinstance(label, np.generic) or getattr(label, "shape", None) == ()
    return label.item() if plain and label.dtype.kind in "biufU" else label
