"""Warnings of fits that may share records, so that together they spend more than each states."""

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

from jaxgeodp.privacy.guarantee import ADD_REMOVE

_UNCHARGED = (
    "jaxgeodp.sklearn: this is the second fit without a ledger in this process; fits that share records (clones, "
    "folds, a grid search) together spend more than each states, and nothing adds it up: give them one ledger."
)
_FOLDS = (
    "jaxgeodp.sklearn: this is the second fit in this process with private labels, or under adjacency='add-remove'; "
    "if these are folds of one data set, what they spend adds up only where no label and no further record moves "
    "others between folds: not for stratified folds (scikit-learn's default for classifiers), nor for KFold under "
    "add-remove; give cv=KFold(5) with adjacency='replace-one', or PredefinedSplit with public ids."
)

#: For each kind of fit that this process has made: whether a second one has been warned of.
WARNED: dict[str, bool] = {}


class RepeatedFitWarning(UserWarning):
    """Several fits in this process may have records in common, which nothing has checked.

    There are two such warnings, each issued once in a process, at the second fit of its kind:

    - *without a ledger*, for any estimator of `jaxgeodp.sklearn`: nothing adds up what clones, folds of a
      cross-validation and a grid search spend;
    - *with private labels, or under "add-remove"*, with or without a ledger: if the fits are of folds, what they spend
      does not add up where folds depend on labels (stratified folds) or on how many records there are.

    They depend on public facts alone: how many fits there were before, whether there was a ledger, and the adjacency.
    Whether two data sets share a record is itself private, so that no data are compared, neither their values nor
    digests of them. A second fit on other people's records is therefore warned of, too. Folds are copies of rows, whose
    identity tells nothing either.

    The warning is issued before anything is charged: a filter "error" refuses every such fit. Processes count for
    themselves, so that with ``n_jobs`` each worker's first fit is not warned of; a ledger counts for all of them.
    """


@contextlib.contextmanager
def counted_fit(ledger: Any, adjacency: str, labels_are_private: bool = False) -> Iterator[None]:
    """Warn of a fit that is the second of its kind in this process; count it once it is made.

    Args:
        ledger: that is charged, or None.
        adjacency: of the fit.
        labels_are_private: whether its folds must not depend on labels.
    """
    folds = labels_are_private or adjacency == ADD_REMOVE
    kinds = [_UNCHARGED] * (ledger is None) + [_FOLDS] * folds
    for kind in kinds:
        if WARNED.get(kind) is False:
            warnings.warn(kind, RepeatedFitWarning, stacklevel=4)
            WARNED[kind] = True
    yield
    for kind in kinds:
        WARNED.setdefault(kind, False)
