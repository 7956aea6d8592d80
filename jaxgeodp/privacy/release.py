"""A release: the private value and the record of how it was made. Nothing else may leave the building."""

import dataclasses
import hashlib
import json
import pathlib
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxgeodp._version import __version__
from jaxgeodp.checks import InputError
from jaxgeodp.files import write_atomically
from jaxgeodp.kept_programs import forget_programs_if_many
from jaxgeodp.nested_lists import from_lists, to_lists
from jaxgeodp.privacy.clock import now
from jaxgeodp.privacy.entropy import NOTE
from jaxgeodp.privacy.guarantee import (
    ADJACENCY,
    KINDS,
    GaussianDP,
    Guarantee,
    NotProven,
    PureDP,
    ZeroConcentratedDP,
)
from jaxgeodp.privacy.ledger import Ledger
from jaxgeodp.privacy.silence import silent

# Largest distance that a record may state.
_LARGEST = 1e150


class ExpectedError(NamedTuple):
    """Expected distance of a release from the statistic of the clipped records, from public numbers alone."""

    mean: float  #: distance
    radius: float  #: of the ball around the value that holds the statistic with probability ``level``
    level: float


@dataclasses.dataclass(frozen=True, eq=False)
class Release:
    """A private value with its record.

    ``value`` is the released point (NumPy array). ``record`` is a JSON-ready dictionary; nothing in it
    depends on the data except ``record["value"]``, and what earlier stages have released with noise: ``count`` and the
    places n that follow from it, ``stages`` and the ball that follows from them, and ``steps``.

    A record of a mechanism with a ball has the entries ``value``, ``guarantee`` (kind, parameters, adjacency, theorem),
    ``mechanism``, ``statistic``, ``manifold``, ``ball`` (centre and radius), ``n``, ``sensitivity`` (value, formula,
    calibration), ``scale``, ``support``, ``sampler`` (name, exactness), ``numerics`` (dtype, note), ``library`` and
    ``created``; some have more.
    """

    value: np.ndarray
    record: dict
    _expected: Callable[[], ExpectedError] | None = dataclasses.field(default=None, repr=False)

    @classmethod
    def load(cls, path) -> "Release":
        """Return the release that `save` or ``jaxgeodp release`` wrote.

        Args:
            path: of the JSON file.

        Raises:
            OSError: the file cannot be read.
            ValueError: it holds no release record.
        """
        text = pathlib.Path(path).read_bytes()
        try:
            record = json.loads(text)
            dtype = np.dtype(record["numerics"]["dtype"])
            value = from_lists(record["value"], dtype.name).astype(dtype)
            record_digest(record)  # numbers that no JSON has would make every use of it fail
            words = record["mechanism"], record["manifold"]["name"]
            if not (dtype.kind in "biufc" and isinstance(record["guarantee"], dict) and _are_words(words)):
                raise ValueError("another document")
        # SyntaxError is NumPy's, of "," as a type.
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError, SyntaxError):
            raise InputError(f"{path}: is not a release record.") from None
        return cls(value, record)

    @property
    def guarantee(self) -> Guarantee | NotProven:
        """Return the guarantee of the record, for the adjacency and by the theorem that it names.

        Raises:
            ValueError: the record's guarantee is none, or has numbers that no guarantee has.
        """
        stated = self.record["guarantee"]
        kind = stated.get("kind") if isinstance(stated, dict) else stated
        if not isinstance(kind, str) or kind not in KINDS:
            if kind in ("not proven", "not private") and isinstance(stated, dict):
                return NotProven(str(stated.get("claim", kind)))
            raise InputError("Release: the record states no guarantee that this version knows.")
        promise = KINDS[kind]
        names = [field.name for field in dataclasses.fields(promise)]
        if not all(_is_number(stated.get(name)) for name in names):
            raise InputError(f"Release: the record's guarantee must have a number for {', '.join(names)}.")
        return promise(**{name: stated[name] for name in names})

    def __repr__(self):
        record = self.record
        promised = record.get("guarantee", {})
        names = [name for name in ("epsilon", "delta", "mu", "rho") if _is_number(promised.get(name))]
        amounts = [f"{name} = {promised[name]:.6g}" for name in names]
        value = np.array2string(np.asarray(self.value), precision=4, threshold=8, edgeitems=2)
        facts = ", ".join([str(record.get("mechanism")), f"n = {record.get('n')}", *amounts])
        return f"Release({facts}, value of shape {np.shape(self.value)}:\n{value})"

    def _repr_html_(self):
        from jaxgeodp.pictures.page import fragment_of

        with silent():
            try:
                return fragment_of(self.record)
            except Exception:  # of a record that is none, or a value that cannot be drawn: its text is shown
                return None

    def as_array(self) -> np.ndarray:
        """Return a copy of the value: complex for planar shapes, else real."""
        return np.array(self.value)

    @property
    def expected_error(self) -> ExpectedError:
        """Return how far the value is expected to be from the statistic of the clipped records.

        Simulated for public reference records with n, ball, mechanism, privacy parameter and noise of the release,
        which takes a second; it is the noise, and for a mean of logarithms the bias that reference records have: real
        ones may have far more. What clipping moved is not in it, and neither is how far n people are from their
        population.
        Records that ``jaxgeodp release`` writes state it, unless the number of records is private.

        Returns:
            ``mean``, the expected distance; ``radius``, of the ball around the value that holds the statistic with
            probability ``level``; and ``level``, which is .95.

        Raises:
            ValueError: it is not known for such values or a private number of records, or a release that was loaded
                does not state it.
        """
        if "expected_error" in self.record:
            stated = self.record["expected_error"]
            if not (isinstance(stated, dict) and all(_is_distance(stated.get(name)) for name in ExpectedError._fields)):
                raise InputError("Release: the record's expected error must have a number for mean, radius and level.")
            return ExpectedError(stated["mean"], stated["radius"], stated["level"])
        if self._expected is None:
            raise InputError(
                f"{self.record['mechanism']}: the expected error is not in the record; 'jaxgeodp plan' prints it for "
                "releases whose error is known."
            )
        return self._expected()

    def shrunk(self, toward: Any, spread: float) -> "Release":
        """Return the value shrunk towards a public point, by an amount that follows from its noise; post-processing.

        If the mean of the records is expected at a root mean square distance of ``spread`` from ``toward``, and the
        noise has the root mean square N, the point at the share spread^2/(spread^2 + N^2) of the way from ``toward``
        to the value has the least expected squared error (in flat space, of all such points), which is that share of
        N^2. The guarantee and what was charged stay the same. The record keeps the value as it was released, what else
        it said ("before"), and "of", the digest of that record, which a ledger knows.

        Confidence balls refuse it: their laws are of values as they were released.

        Args:
            toward: a point of the manifold: public, as the ball's centre is, or made of released values alone.
            spread: public, in the manifold's distance, above 0.

        Returns:
            A release whose record has the entry "post_processing", with "expected_error" (root mean square).

        Raises:
            ValueError: ``toward`` is no point, ``spread`` is not positive, the expected error of the release is not
                known, or it has been processed before.

        Example:
            >>> import numpy as np
            >>> from jaxgeodp import Euclidean, GeodesicBall, LaplaceMechanism
            >>> ball = GeodesicBall(Euclidean(2), [0.0, 0.0], 1.0)
            >>> release = LaplaceMechanism(ball, epsilon=0.1).release(np.zeros((100, 2)))
            >>> drawn = release.shrunk(ball.center, spread=0.1)
            >>> bool(np.linalg.norm(drawn.value) < np.linalg.norm(release.value)), drawn.guarantee
            (True, PureDP(epsilon=0.1))
        """
        from jaxgeodp.privacy.drawn_towards import drawn_towards

        record = self.record
        if "post_processing" in record:
            raise InputError("Release.shrunk: the value was post-processed before; use the original release.")
        try:
            error, promise = self.expected_error.mean, self.guarantee
        except InputError:
            error, promise = 0.0, None
        if not isinstance(promise, PureDP | GaussianDP | ZeroConcentratedDP):
            raise InputError(
                f"Release.shrunk: the record of this release of {record['mechanism']} does not state the width of its "
                "noise (a private number of records, a shape, steps, a delta, or no point); to shrink with a shape, "
                "use the gains of Shape."
            )
        value, told = drawn_towards(toward, spread, self.value, record, error, not isinstance(promise, PureDP))
        kept = {name: entry for name, entry in record.items() if name != "expected_error"}
        told |= {"before": {name: record[name] for name in record.keys() - kept.keys()}, "of": record_digest(record)}
        return Release(value, kept | {"value": to_lists(value), "post_processing": told})

    def plot(self, path=None, ax=None):
        """Draw the value: an outline, a globe, an ellipsoid, axes, curves or numbers.

        Args:
            path: the picture to write (.png, .pdf, .svg); an existing one is replaced. None to write none.
            ax: Matplotlib axes in whose place it is drawn, as `matplotlib.pyplot.subplots` makes them; by default a
                figure of its own.

        Returns:
            The Matplotlib figure.
        """
        from matplotlib.figure import Figure

        from jaxgeodp.pictures import draw_record

        if ax is None:
            figure = Figure(figsize=(5.0, 4.2), layout="constrained")
            draw_record(self.record, figure)
        else:
            if ax.get_subplotspec() is None:
                raise InputError("Release: ax must belong to a grid of axes, such as matplotlib.pyplot.subplots makes.")
            figure = ax.figure
            part = figure.add_subfigure(ax.get_subplotspec())
            ax.remove()
            draw_record(self.record, part)
            while figure.figure is not figure:  # of parts of a figure
                figure = figure.figure
        if path is not None:
            figure.savefig(path, dpi=150)
        return figure

    def to_json(self) -> str:
        """Return the record as JSON text."""
        text = json.dumps(self.record, indent=2, allow_nan=False)
        # Rows of numbers on one line each.
        return re.sub(r"\[\s+([^\[\]{}]*?)\s+\]", lambda row: f"[{' '.join(row[1].split())}]", text) + "\n"

    def save(self, path, overwrite: bool = True) -> None:
        """Write the record to ``path`` in one step: the file is complete or not there at all.

        Args:
            path: of the JSON file.
            overwrite: whether an existing file is replaced.

        Raises:
            OSError: the system cannot write it, or it exists and ``overwrite`` is false.
        """
        write_atomically(path, self.to_json(), replace=overwrite, changed=self.record["created"])


@dataclasses.dataclass(frozen=True)
class Draft:
    """Checked release that only the ledger can still refuse: what is drawn, and what its record says.

    Attributes:
        draw: returns a value, with entropy from the operating system, and the draft for its record: this one, or one
            with what an earlier part of the draw has disclosed. Whatever the records are, it returns.
        fallback: released in place of a value that is not finite; an array of its shape, or a number.
        guarantee: what is promised.
        theorem: why it holds.
        entries: of the record, but for its value, guarantee and circumstances; all of them public.
        note: on floating point.
        promises: further entries of the record's guarantee.
        more: further entries of the record, all of them public.
        expected: see `Release.expected_error`.
    """

    draw: Callable[[], tuple[np.ndarray, "Draft"]]
    fallback: Any
    guarantee: Guarantee | NotProven
    theorem: str
    entries: dict
    note: str
    promises: dict | None = None
    more: dict = dataclasses.field(default_factory=dict)
    expected: Callable[[], ExpectedError] | None = None

    @property
    def mechanism(self) -> str:
        """Return the name of the mechanism."""
        return self.entries["mechanism"]

    def record(self, value: np.ndarray, created: str) -> dict:
        """Return the record of a value."""
        what = {
            "value": to_lists(value),
            "guarantee": self.guarantee.record(self.theorem) | (self.promises or {}),
        }
        circumstances = {
            "numerics": {"dtype": str(value.dtype), "note": self.note},
            "library": {"name": "jaxgeodp", "version": __version__},
            "created": created,
        }
        return what | self.entries | circumstances | self.more


def make_release(draft: Draft, ledger: Ledger | None, adjacency: str = ADJACENCY, state: str | None = None) -> Release:
    """Charge a release to the ledger, draw it, and assemble it; see `make_releases`."""
    return make_releases([draft], ledger, draft.guarantee, adjacency, state)[0]


def make_releases(
    drafts: Sequence[Draft],
    ledger: Ledger | None,
    guarantee: Guarantee | NotProven,
    adjacency: str = ADJACENCY,
    state: str | None = None,
) -> list[Release]:
    """Charge releases to the ledger, once for all of them, draw and assemble them: the one way of releasing anything.

    Whatever can be refused has been refused before, without a look at the records: an exception or a message after
    the charge would tell of them.

    Args:
        drafts: at least one, of one mechanism.
        ledger: None to keep no account.
        guarantee: what all promise together; it is charged.
        adjacency: for which neighbours it holds; see `Ledger.charge`.
        state: id of the sums that are released, for the ledger.

    Raises:
        ValueError: a record cannot be written, or the ledger refuses the charge; nothing has been drawn then.
        OSError: the ledger cannot be written; nothing has been drawn, or the releases are lost.
    """
    mechanism = drafts[0].mechanism
    if not isinstance(ledger, Ledger | None):
        raise InputError(f"{mechanism}: ledger must be a Ledger or None, got {type(ledger).__name__}.")
    created = now()  # before the draw, whose duration may depend on the data
    try:
        for draft in drafts:
            record_digest(draft.record(np.asarray(draft.fallback), created))
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{mechanism}: its record cannot be written as JSON ({error}); the fields of manifold, statistic and "
            "mechanism must be finite numbers, words or lists of them."
        ) from None
    entry = None if ledger is None else ledger.charge(guarantee, mechanism, created, adjacency, state)
    releases = []
    for draft in drafts:
        with silent():
            value, drawn = draft.draw()
        value = np.where(np.all(np.isfinite(value)), value, np.asarray(draft.fallback, value.dtype))
        releases.append(Release(value, drawn.record(value, created), drawn.expected))
        forget_programs_if_many()  # for the next one
    if ledger is not None and entry is not None:
        ledger.settle(entry, digest_of([release.record for release in releases]))
    return releases


def _are_words(values) -> bool:
    return all(isinstance(value, str) for value in values)


def _is_number(value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_distance(value) -> bool:
    return _is_number(value) and 0 <= value <= _LARGEST


def idealized(timing: str) -> str:
    """Return the note of a release whose theorem supposes exact arithmetic; ``timing`` is on the running time."""
    return f"the guarantee is for exact arithmetic; {NOTE}; {timing}"


def digest_of(records: Sequence[dict]) -> str:
    """Return what a ledger keeps of records charged together: the `record_digest` of one, the SHA-256 of several
    digests, one after the other."""
    return joint_digest([record_digest(record) for record in records])


def joint_digest(digests: Sequence[str]) -> str:
    """Return what a ledger keeps of records with these digests that were charged together."""
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()


def record_digest(record: dict) -> str:
    """Return the SHA-256 of a release record, whatever its spaces and order of keys, as a ledger keeps it.

    Args:
        record: `Release.record`, or the same read from a file.

    Returns:
        64 hexadecimal digits.
    """
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
