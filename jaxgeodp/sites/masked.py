"""States under masks that cancel in the sum of all sites (docs/scale.md#several-sites)."""

import dataclasses
import hashlib
import json
import math
import operator
import pathlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from jaxgeodp.checks import InputError
from jaxgeodp.files import write_atomically
from jaxgeodp.releases.states import UNITS, State
from jaxgeodp.sites.keys import PublicSite, SiteKey

# Masked numbers are integers modulo 2^256. Sums of real data are far below; larger ones than `_MOST` are refused.
_BYTES = 32
_MODULUS = 1 << (8 * _BYTES)
_MOST = 1 << 200
_TITLE = "masked sums of jaxgeodp"
_VERSION = 2
_MOST_FILE_BYTES = 2**28
# Public keys that have masked a state in this process, each with the state's id.
_SPENT: dict[str, str] = {}


@dataclasses.dataclass(frozen=True, eq=False)
class MaskedState:
    """State of one site under its masks, for the party that combines them and nobody else.

    To anybody who lacks the state of some other site, and one of the secrets, its numbers are uniformly random.
    Whoever has all masked states has the sum of all, without any key.

    Attributes:
        site: name of the site.
        session: digest of sites, mechanism and shapes; see `session_of`.
        sites: names of all sites, sorted.
        keys: their public keys.
        mechanism, record, unit, shape: of the state.
        numbers: the number of records, the sums and their checksum, masked.
        public: the purpose, such as how to build the mechanism; identical at all sites.
    """

    site: str
    session: str
    sites: tuple[str, ...]
    keys: tuple[str, ...]
    mechanism: str
    record: tuple[int, ...]
    unit: str
    shape: tuple[int, ...]
    numbers: tuple[int, ...] = dataclasses.field(repr=False)
    public: dict = dataclasses.field(default_factory=dict)

    def save(self, path, overwrite: bool = True) -> None:
        """Write the state to a file that only its owner may read (mode 0600), for the party that combines.

        Raises:
            OSError: the system cannot write it, or it exists and ``overwrite`` is false.
        """
        write_atomically(path, self.to_json(), private=True, replace=overwrite)

    def to_json(self) -> str:
        """Return the JSON text that `save` writes."""
        document = {"title": _TITLE, "version": _VERSION, **dataclasses.asdict(self)}
        document["numbers"] = [f"{number:x}" for number in self.numbers]
        return json.dumps(document) + "\n"

    @classmethod
    def load(cls, path) -> "MaskedState":
        """Return the state that `save` wrote.

        Raises:
            OSError: the file cannot be read.
            ValueError: it holds no masked state.
        """
        path = pathlib.Path(path)
        try:
            if path.stat().st_size > _MOST_FILE_BYTES:
                raise ValueError("too long")
            found = json.loads(path.read_bytes())
            if (found.pop("title"), found.pop("version")) != (_TITLE, _VERSION):
                raise ValueError("another document")
            numbers = tuple(int(word, 16) for word in found.pop("numbers"))
            shape, record = (tuple(operator.index(m) for m in found.pop(name)) for name in ("shape", "record"))
            sites, keys = (tuple(map(str, found.pop(name))) for name in ("sites", "keys"))
            public = found.pop("public")
            if len(numbers) != 2 + math.prod(shape) or not isinstance(public, dict) or min(numbers) < 0:
                raise ValueError("numbers that disagree")
            if found["unit"] not in UNITS or not all(isinstance(word, str) for word in found.values()):
                raise ValueError("words that are none")
            return cls(shape=shape, record=record, sites=sites, keys=keys, numbers=numbers, public=public, **found)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise InputError(f"{path}: is not a masked state of jaxgeodp.") from None


def session_of(state: State, sites: Iterable[PublicSite], public: dict | None = None) -> str:
    """Return a digest of sites, keys, mechanism and shapes, which sites compare before they send anything.

    It discloses nothing about the records. Where it differs, someone has another list of sites, another key, or another
    mechanism.

    Args:
        state: of the records of one site, `Mechanism.prepare`.
        sites: all of them, in any order.
        public: see `masked`.

    Returns:
        64 hexadecimal digits.
    """
    about = state.mechanism, state.record, state.unit, state.sums.shape
    return _session(((site.name, site.key) for site in sites), *about, public)


def _session(sites, mechanism, record, unit, shape, public) -> str:
    words: list[Any] = [*sorted(sites), mechanism, record, unit, shape, public or {}]
    return hashlib.sha256(json.dumps(words, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def check_sites(key: SiteKey, sites: Sequence[PublicSite]) -> None:
    """Refuse a list of sites for which no state can be masked.

    Args:
        key: of one of them.
        sites: all of them.

    Raises:
        ValueError: the list lacks the key's own site, names one twice, has no other, or has an invalid key.
    """
    names = [site.name for site in sites]
    if len(set(names)) < len(names) or len({site.key for site in sites}) < len(names):
        raise InputError("sites: each site must be in the list exactly once, with its own key.")
    if key.public not in sites:
        raise InputError(f"sites: the public key of {key.name} is not in the list, or differs from the one there.")
    if len(sites) < 2:
        raise InputError("sites: there must be at least two sites; a single one finishes its own state.")
    for other in sites:
        if other.name != key.name:
            key.shared_with(other)


def masked(state: State, key: SiteKey, sites: Sequence[PublicSite], public: dict | None = None) -> MaskedState:
    """Return a site's state under masks that cancel in the sum over all sites.

    Args:
        state: of its records, private: what `Mechanism.prepare` gives.
        key: of the site; it masks one state, and this process refuses a second one.
        sites: all of them, at least two, this one among them; in any order.
        public: the purpose, such as how to build the mechanism, in words and numbers of JSON; identical at all
            sites.

    Returns:
        The masked state, for the party that combines.

    Raises:
        ValueError: see `check_sites`; the key has masked another state here, or sums are too large.
    """
    check_sites(key, sites)
    session = session_of(state, sites, public)
    numbers = [state.n, *map(int, state.sums.ravel())]
    if max(map(abs, numbers)) >= _MOST:
        raise InputError("sites: the sums of this state are too large to be masked; use fewer records.")
    if _SPENT.setdefault(key.public.key, state.id) != state.id:
        raise InputError(
            f"sites: the key of {key.name} has masked another state, and a second one would disclose their "
            "difference; create new keys, and let all sites prepare again."
        )
    numbers.append(_check_of(numbers, session))
    for other in sites:
        if other.name != key.name:
            sign = 1 if key.name < other.name else -1
            mask = mask_of(key.shared_with(other), session, sorted((key.name, other.name)), len(numbers))
            numbers = [(number + sign * own) % _MODULUS for number, own in zip(numbers, mask, strict=True)]
    ordered = sorted(sites, key=lambda site: site.name)
    return MaskedState(
        site=key.name,
        session=session,
        sites=tuple(site.name for site in ordered),
        keys=tuple(site.key for site in ordered),
        mechanism=state.mechanism,
        record=state.record,
        unit=state.unit,
        shape=state.sums.shape,
        numbers=tuple(numbers),
        public=public or {},
    )


def combined(states: Sequence[MaskedState]) -> State:
    """Return the state of the records of all sites, as if they had been prepared in one place.

    Args:
        states: one of each site, all of one session, in any order.

    Returns:
        Their exact sum, private: `Mechanism.finish` releases it.

    Raises:
        ValueError: a site is missing or occurs twice, sessions differ, or the states do not fit together.
    """
    states = list(states)
    if not states or not all(isinstance(state, MaskedState) for state in states):
        raise InputError("sites: there are no masked states to combine; give one per site.")
    first = states[0]
    there = [state.site for state in states]
    if len({state.session for state in states}) > 1:
        raise InputError(
            "sites: these states belong to different sessions: the sites differ in the list of sites or keys, the "
            "mechanism, or the use of persons. All sites must prepare again, with new keys."
        )
    if missing := sorted(set(first.sites) - set(there)):
        raise InputError(
            f"sites: the masked state of {', '.join(missing)} is missing, without which the others' masks do not "
            "cancel; wait for it, or let the others prepare again, with new keys and a list without it."
        )
    if len(set(there)) < len(there) or set(there) != set(first.sites):
        raise InputError("sites: each site of the session must appear exactly once.")
    sound = all(_is_of_its_session(state) for state in states)
    totals = [sum(column) % _MODULUS for column in zip(*(state.numbers for state in states), strict=False)]
    check = totals.pop()
    n, *sums = (total - _MODULUS if total >= _MODULUS // 2 else total for total in totals)
    fits = sound and check == _check_of([n, *sums], first.session) and 0 <= n < 2**63
    if not fits or max(map(abs, sums), default=0) >= len(states) * _MOST:
        raise InputError(
            "sites: these masked states do not fit together: one of them is damaged or made with other keys."
        )
    numbers = np.array(sums, object).reshape(first.shape)
    unit = "record" if first.unit == "record" else "person at one site"
    # One session is finished once: its name stands for all that is in it.
    return State(first.mechanism, first.record, n, numbers, frozenset([first.session]), unit)


def _is_of_its_session(state: MaskedState) -> bool:
    """Return whether the state's public fields agree with the digest in its session."""
    sites = zip(state.sites, state.keys, strict=False)
    words = state.mechanism, state.record, state.unit, state.shape, state.public
    whole = len(state.sites) == len(state.keys) and len(state.numbers) == 2 + math.prod(state.shape)
    return whole and state.session == _session(sites, *words)


def _check_of(numbers, session: str) -> int:
    """Return a linear checksum with public factors, which adds up as the numbers do and reveals damage."""
    factors = (int.from_bytes(hashlib.sha256(f"{session} {place}".encode()).digest()) for place in range(len(numbers)))
    return sum(factor * number for factor, number in zip(factors, numbers, strict=True)) % _MODULUS


def mask_of(secret: bytes, session: str, pair, count: int) -> list[int]:
    """Return uniform numbers below the modulus, derived from a shared secret for this session only."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    about = json.dumps(["jaxgeodp sites 1", session, *pair]).encode()
    key = HKDF(algorithm=SHA256(), length=32, salt=None, info=about).derive(secret)
    stream = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()
    random = stream.update(bytes(_BYTES * count))
    return [int.from_bytes(random[j : j + _BYTES], "little") for j in range(0, len(random), _BYTES)]
