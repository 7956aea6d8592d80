"""Private means as queries of a lomas server (https://github.com/dscc-admin-ch/lomas), which keeps analysts' budgets.

The server asks a querier for the cost of a query, compares it with what the analyst has left, has the query answered,
and takes the cost off. `lomas_querier` makes the class that does so for means on manifolds; docs/other-libraries.md has
what a server needs beside it.
"""

import dataclasses
import decimal
import math
import numbers
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from jaxgeodp.checks import InputError
from jaxgeodp.domains import GeodesicBall
from jaxgeodp.manifolds.names import check_name, points_on, records_in
from jaxgeodp.mechanisms import plan_mechanisms
from jaxgeodp.mechanisms.ball_mechanism import BallMechanism
from jaxgeodp.mechanisms.names import MECHANISMS, mechanism_named, unbiased_names
from jaxgeodp.privacy import GaussianDP, PureDP, Release

__all__ = ["MeanQuery", "lomas_querier"]

_AUTO = "auto"
# To plan for less takes minutes, for next to nothing off the budget.
_LEAST = 1e-6
# Of columns whose cells are read one by one as numbers, in the words of the server's metadata.
_NUMBERS = ("float", "int")


@dataclasses.dataclass(frozen=True)
class MeanQuery:
    """Query of an analyst: a private Frechet mean of some columns of a table. All of it is public.

    Args:
        manifold: its name on the command line, such as ``"spd"`` or ``"sphere(2)"``.
        columns: names of the columns that make a record, in their order, as ``jaxgeodp.io.read`` takes them.
        center: the public centre, as one row of these columns.
        radius: of the public ball, in (0, limit of the manifold].
        epsilon: of a pure mechanism; or
        mu: of a Gaussian one, which costs (epsilon, delta) with
        delta: in (0, 1), and the least epsilon at it.
        mechanism: a name of the command line, or "auto", the one with the smallest expected error.

    Raises:
        ValueError: a value out of range, both or none of epsilon and mu, mu without delta.

    Example:
        >>> from jaxgeodp.lomas import MeanQuery
        >>> MeanQuery("sphere", ["x", "y", "z"], [0.0, 0.0, 1.0], 0.4, epsilon=0.5).cost
        (0.5, 0.0)
    """

    manifold: str
    columns: Sequence[str]
    center: Sequence[float]
    radius: float
    epsilon: float | None = None
    mu: float | None = None
    delta: float | None = None
    mechanism: str = _AUTO

    def __post_init__(self):
        if (self.epsilon is None) == (self.mu is None):
            raise InputError("a query needs either epsilon or mu, not both.")
        if (self.mu is None) != (self.delta is None):
            raise InputError("a query needs delta exactly if it has mu, as the server accounts in epsilon and delta.")
        check_name(self.manifold)
        if isinstance(self.columns, str):
            raise InputError("columns must be a list of names.")
        if len(set(self.columns)) != len(self.columns) or len(self.center) != len(self.columns):
            raise InputError(
                f"columns must be distinct names, and center must have a number for each; got {len(self.columns)} "
                f"columns and {len(self.center)} numbers."
            )
        if self.mechanism != _AUTO:
            if self.mechanism not in MECHANISMS or not MECHANISMS[self.mechanism].on_manifold:
                raise InputError(f"mechanism must be auto or a name of the command line, got '{self.mechanism}'.")
            if MECHANISMS[self.mechanism].parameter != ("mu" if self.epsilon is None else "epsilon"):
                raise InputError(f"mechanism {self.mechanism} needs {MECHANISMS[self.mechanism].parameter}.")
        strength = self.mu if self.epsilon is None else self.epsilon
        assert strength is not None  # see above
        if not strength >= _LEAST:  # NaN, too
            raise InputError(f"epsilon or mu must be at least {_LEAST:g}, got {strength!r}.")
        _ = self.cost

    @property
    def cost(self) -> tuple[float, float]:
        """Return the (epsilon, delta) that the server takes off, rounded up; for replacing one record by another."""
        if self.epsilon is not None:
            return PureDP(self.epsilon).epsilon, 0.0
        assert self.mu is not None and self.delta is not None  # see above
        spent = GaussianDP(self.mu).to_approximate(self.delta)
        return spent.epsilon, spent.delta

    def chosen(self, n: int) -> BallMechanism:
        """Return the mechanism, for so many records.

        Args:
            n: number of records, public.

        Raises:
            ValueError: no such manifold for these columns, or none or this mechanism can do it.
        """
        with jax.enable_x64(True):
            row = np.asarray(self.center, float)[None]
            space, _ = records_in(self.manifold, row)
            ball = GeodesicBall(space, points_on(space, row)[0], self.radius)
            name = self.mechanism
            if name == _AUTO:
                names = [own for own in unbiased_names(space) if MECHANISMS[own].suits(space)]
                name = plan_mechanisms(ball, n, self.epsilon, self.mu, names=names)[0].name
            strength = self.mu if self.epsilon is None else self.epsilon
            assert strength is not None  # see above
            return mechanism_named(name, ball, strength, "tight")

    def answer(self, table: Any, mechanism: BallMechanism) -> Release:
        """Return the release for the records of a table.

        Args:
            table: a `pandas.DataFrame` with the columns. A cell that is no number makes its record count as the centre.
            mechanism: as `chosen` for this table's number of records.

        Raises:
            ValueError: a column is missing.
        """
        if missing := [name for name in self.columns if list(table.columns).count(name) != 1]:
            raise InputError(f"the data set must have exactly one column {', '.join(missing)}.")
        cells = [[_number(cell) for cell in table[name].tolist()] for name in self.columns]
        with jax.enable_x64(True):
            return mechanism.release(points_on(mechanism.ball.manifold, np.array(cells).T))


def _number(cell) -> float:
    """Return a cell as a number, NaN if it is none: each by itself, as what others hold may decide nothing about it."""
    try:
        known = isinstance(cell, numbers.Real | decimal.Decimal | str) and not isinstance(cell, bool)
        return float(cell) if known else math.nan
    except Exception:
        return math.nan


def lomas_querier(wrap: Callable[[dict], Any]) -> type:
    """Return the class with which a lomas server answers queries of this library: a ``DPQuerier``.

    Its queries are models with the fields of `MeanQuery` beside the server's own. Neither cost nor refusal depends on
    a record that the server can read: the number of records is ``rows`` of the metadata, which the table must have, and
    columns must be of type float or int there, as dates are read in another way, all of them, for one cell. A data set
    in which a person may have several rows (``max_ids`` above 1) is refused. If the server cannot read the table, the
    analyst is not told why; that it can is for its custodian to see to.

    Args:
        wrap: what makes a result of the server's of a release record, which is all that leaves: a model that it can
            write as JSON.

    Raises:
        ImportError: lomas-server is not installed.
    """
    from lomas_core.error_handler import InvalidQueryException  # pyright: ignore[reportMissingImports]
    from lomas_server.dp_queries.dp_querier import DPQuerier  # pyright: ignore[reportMissingImports]

    class ManifoldQuerier(DPQuerier):
        """Frechet means on manifolds; see `MeanQuery`."""

        def cost(self, query_json):
            """Return the (epsilon, delta) of a query, refused here if it can be refused at all."""
            query, rows = _told(InvalidQueryException, self._checked, query_json)
            _told(InvalidQueryException, query.chosen, rows)
            return query.cost

        def query(self, query_json):
            """Return the release, as `wrap` writes it."""
            return _told(InvalidQueryException, self._answered, query_json)

        def _checked(self, query_json):
            query = MeanQuery(**{own.name: getattr(query_json, own.name) for own in dataclasses.fields(MeanQuery)})
            metadata = self.data_connector.get_metadata()
            if metadata.max_ids != 1:
                raise InputError(
                    "a person may have several rows in this data set (max_ids), but a query protects single rows "
                    "only; ask for a data set with one row per person."
                )
            if missing := [name for name in query.columns if name not in metadata.columns]:
                raise InputError(f"the data set has no column {', '.join(missing)}.")
            if other := [name for name in query.columns if not _holds_numbers(metadata.columns[name])]:
                raise InputError(
                    f"the metadata do not declare {', '.join(other)} as numbers (float or int); choose other columns."
                )
            return query, metadata.rows

        def _answered(self, query_json):
            query, rows = self._checked(query_json)
            mechanism = query.chosen(rows)
            try:
                table = self.data_connector.get_pandas_df()
            except Exception:  # which may cite a cell
                raise InputError("the server cannot read this data set; tell its custodian.") from None
            if len(table) != rows:
                raise InputError("the data set has another number of rows than its metadata say; tell its custodian.")
            return wrap(query.answer(table, mechanism).record)

    return ManifoldQuerier


def _holds_numbers(column) -> bool:
    return str(getattr(column, "type", "")).rpartition(".")[2].lower() in _NUMBERS


def _told(kind, function, argument):
    """Return what a function returns; refuse as the server does."""
    try:
        return function(argument)
    except InputError as refusal:
        raise kind(str(refusal)) from None
