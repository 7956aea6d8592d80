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

# Numbers are whole ones modulo 2^256: sums of any real data are far below half of it, and what does not fit shows.
_BYTES = 32
_MODULUS = 1 << (8 * _BYTES)
_MOST = 1 << 200
_TITLE = "masked sums of jaxgeodp"
_VERSION = 2
_MOST_FILE_BYTES = 2**28
# Public keys that have masked a state in this process, and which.
_SPENT: dict[str, str] = {}


@dataclasses.dataclass(frozen=True, eq=False)
class MaskedState:
    """The state of one site under its masks: for who combines, and nobody else.

    To whoever lacks those of any other site, and one of the secrets, its numbers are uniformly random. Who has all of
    them has the sum of all, without any key.

    Attributes:
        site: whose it is.
        session: of all sites, mechanism and shapes; see `session_of`.
        sites: names of all sites, sorted.
        keys: their public keys.
        mechanism, record, unit, shape: of the state.
        numbers: how many records, the sums, and a check of them, masked.
        public: what it is made for, such as how to build the mechanism; of the same words at all sites.
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
        """Write it for the eyes of the user only (mode 0600), who hands it to whoever combines.

        Raises:
            OSError: the system cannot write it, or it exists and ``overwrite`` is false.
        """
        write_atomically(path, self.to_json(), private=True, replace=overwrite)

    def to_json(self) -> str:
        """What `save` writes."""
        document = {"title": _TITLE, "version": _VERSION, **dataclasses.asdict(self)}
        document["numbers"] = [f"{number:x}" for number in self.numbers]
        return json.dumps(document) + "\n"

    @classmethod
    def load(cls, path) -> "MaskedState":
        """What `save` wrote.

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
            raise InputError(f"{path}: holds no masked state of jaxgeodp.") from None


def session_of(state: State, sites: Iterable[PublicSite], public: dict | None = None) -> str:
    """A digest of who takes part and in what; sites compare it before they hand anything over.

    It tells nothing of the records. Where it differs, someone has another list of sites, another key, or another
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
    """Refuse a list of sites that no state could be masked for.

    Args:
        key: of one of them.
        sites: all of them.

    Raises:
        ValueError: it lacks the site of the key, names one twice, holds no other, or a key that is none.
    """
    names = [site.name for site in sites]
    if len(set(names)) < len(names) or len({site.key for site in sites}) < len(names):
        raise InputError("sites: every site must be in the list once, each with its own key.")
    if key.public not in sites:
        raise InputError(f"sites: the public key of {key.name} is not in the list, or is another one.")
    if len(sites) < 2:
        raise InputError("sites: there must be at least two; a single one finishes its own state.")
    for other in sites:
        if other.name != key.name:
            key.shared_with(other)


def masked(state: State, key: SiteKey, sites: Sequence[PublicSite], public: dict | None = None) -> MaskedState:
    """The state of a site, to be added to those of all others.

    Args:
        state: of its records, private: what `Mechanism.prepare` gives.
        key: of the site; it masks one state, and this process refuses a second one.
        sites: all of them, at least two, this one among them; in any order.
        public: what it is made for, such as how to build the mechanism, in words and numbers of JSON; the same at all
            sites.

    Returns:
        Masked numbers, for who combines.

    Raises:
        ValueError: see `check_sites`; the key has masked another state here, or sums are too large.
    """
    check_sites(key, sites)
    session = session_of(state, sites, public)
    numbers = [state.n, *map(int, state.sums.ravel())]
    if max(map(abs, numbers)) >= _MOST:
        raise InputError("sites: these sums are too large to be masked.")
    if _SPENT.setdefault(key.public.key, state.id) != state.id:
        raise InputError(
            f"sites: the key of {key.name} has masked another state, and a second one would show how they differ; make "
            "new keys, and let all sites prepare again."
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
    """The state of all records of all sites, as if they had been in one place.

    Args:
        states: one of each site, all of one session, in any order.

    Returns:
        Their exact sum, private: `Mechanism.finish` releases it.

    Raises:
        ValueError: a site is missing or there twice, or they are of several sessions, or do not fit together.
    """
    states = list(states)
    if not states or not all(isinstance(state, MaskedState) for state in states):
        raise InputError("sites: there is no masked state to combine.")
    first = states[0]
    there = [state.site for state in states]
    if len({state.session for state in states}) > 1:
        raise InputError(
            "sites: these states are of several sessions: someone had another list of sites or keys, another "
            "mechanism, or persons where others have none. All sites must prepare again, with new keys."
        )
    if missing := sorted(set(first.sites) - set(there)):
        raise InputError(
            f"sites: nothing has come from {', '.join(missing)}, without whom the others' masks do not cancel; wait "
            "for it, or let the others prepare again, with new keys and a list without it."
        )
    if len(set(there)) < len(there) or set(there) != set(first.sites):
        raise InputError("sites: every site of the session must be there once.")
    sound = all(_is_of_its_session(state) for state in states)
    totals = [sum(column) % _MODULUS for column in zip(*(state.numbers for state in states), strict=False)]
    check = totals.pop()
    n, *sums = (total - _MODULUS if total >= _MODULUS // 2 else total for total in totals)
    fits = sound and check == _check_of([n, *sums], first.session) and 0 <= n < 2**63
    if not fits or max(map(abs, sums), default=0) >= len(states) * _MOST:
        raise InputError("sites: these masked states do not fit together: one of them is damaged, or of other keys.")
    numbers = np.array(sums, object).reshape(first.shape)
    unit = "record" if first.unit == "record" else "person at one site"
    # One session is finished once: its name stands for all that is in it.
    return State(first.mechanism, first.record, n, numbers, frozenset([first.session]), unit)


def _is_of_its_session(state: MaskedState) -> bool:
    """Whether its words are those that its session is a digest of."""
    sites = zip(state.sites, state.keys, strict=False)
    words = state.mechanism, state.record, state.unit, state.shape, state.public
    whole = len(state.sites) == len(state.keys) and len(state.numbers) == 2 + math.prod(state.shape)
    return whole and state.session == _session(sites, *words)


def _check_of(numbers, session: str) -> int:
    """A sum with public factors, which adds up as the numbers do: what is damaged on the way no longer fits."""
    factors = (int.from_bytes(hashlib.sha256(f"{session} {place}".encode()).digest()) for place in range(len(numbers)))
    return sum(factor * number for factor, number in zip(factors, numbers, strict=True)) % _MODULUS


def mask_of(secret: bytes, session: str, pair, count: int) -> list[int]:
    """Uniform numbers below the modulus, of a secret that is used in this session only."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    about = json.dumps(["jaxgeodp sites 1", session, *pair]).encode()
    key = HKDF(algorithm=SHA256(), length=32, salt=None, info=about).derive(secret)
    stream = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()
    random = stream.update(bytes(_BYTES * count))
    return [int.from_bytes(random[j : j + _BYTES], "little") for j in range(0, len(random), _BYTES)]
