"""Keys of sites: X25519, one for each release."""

import dataclasses
import json
import os
import pathlib
import re
import secrets

from jaxgeodp.checks import InputError, short
from jaxgeodp.files import write_atomically

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,59}")
_KEY = re.compile(r"[0-9a-f]{64}")
_SECRET = "secret key of a site, for one release"
_PUBLIC = "public key of a site"
_USED = "used"


@dataclasses.dataclass(frozen=True)
class PublicSite:
    """Public part of a site's key, sent to all other sites: name and X25519 public key.

    Args:
        name: 1 to 60 letters, digits and _.-, a letter or digit first.
        key: 64 hexadecimal digits.

    Raises:
        ValueError: the name or the key is malformed.
    """

    name: str
    key: str

    def __post_init__(self):
        if not (isinstance(self.name, str) and _NAME.fullmatch(self.name)):
            raise InputError(f"sites: a name must be 1 to 60 letters, digits and _.-, got {short(self.name)}.")
        if not (isinstance(self.key, str) and _KEY.fullmatch(self.key)):
            raise InputError(f"sites: the public key of {self.name} must be 64 hexadecimal digits.")

    def save(self, path) -> None:
        """Write the public key to a file, for the other sites.

        Raises:
            OSError: the system cannot write it.
        """
        write_atomically(path, json.dumps({"title": _PUBLIC, "name": self.name, "key": self.key}, indent=2) + "\n")

    @classmethod
    def load(cls, path) -> "PublicSite":
        """Return the key that `save` wrote.

        Raises:
            OSError: the file cannot be read.
            ValueError: it holds no public key.
        """
        document = _document(path, _PUBLIC)
        return cls(document.get("name", ""), document.get("key", ""))


@dataclasses.dataclass(frozen=True)
class SiteKey:
    """Secret key of a site, for masking one state: two states under one key would disclose how they differ.

    Args:
        name: of the site.
        secret: 64 hexadecimal digits; `SiteKey.new` draws them.

    The package ``cryptography`` is needed: ``pip install 'jaxgeodp[sites]'``.
    """

    name: str
    secret: str = dataclasses.field(repr=False)

    @classmethod
    def new(cls, name: str) -> "SiteKey":
        """Return a new key from the operating system's generator.

        Raises:
            ValueError: the name is not valid for a `PublicSite`, or the package ``cryptography`` is not installed.
        """
        key = cls(name, _curve().X25519PrivateKey.generate().private_bytes_raw().hex())
        key.public  # noqa: B018 - checks the name
        return key

    @property
    def public(self) -> PublicSite:
        """Return the site's name and public key, for the other sites."""
        return PublicSite(self.name, self._own.public_key().public_bytes_raw().hex())

    def shared_with(self, other: PublicSite) -> bytes:
        """Return the X25519 shared secret (32 bytes) of this site and another.

        Raises:
            ValueError: the other's public key cannot be used.
        """
        try:
            return self._own.exchange(_curve().X25519PublicKey.from_public_bytes(bytes.fromhex(other.key)))
        except ValueError:
            raise InputError(
                f"sites: the public key of {other.name} is not usable; ask that site for another."
            ) from None

    @property
    def _own(self):
        if not (isinstance(self.secret, str) and _KEY.fullmatch(self.secret)):
            raise InputError(f"sites: the secret key of {short(self.name)} must be 64 hexadecimal digits.")
        return _curve().X25519PrivateKey.from_private_bytes(bytes.fromhex(self.secret))

    def save(self, path) -> None:
        """Write the key to a new file that only its owner may read (mode 0600).

        Raises:
            OSError: the file exists, or the system cannot write it.
        """
        text = json.dumps({"title": _SECRET, "name": self.name, "secret": self.secret}) + "\n"
        write_atomically(path, text, private=True, replace=False)

    @classmethod
    def load(cls, path) -> "SiteKey":
        """Return the key that `save` wrote.

        Raises:
            OSError: the file cannot be read.
            ValueError: it holds no key, or one that has been used.
        """
        document = _document(path, _SECRET)
        if document.get("secret") == _USED:
            raise InputError(
                f"{path}: this key has masked a state, and a second one would disclose their difference; create new "
                "keys, and let all sites prepare again."
            )
        key = cls(document.get("name", ""), document.get("secret", ""))
        key.public  # noqa: B018 - checks
        return key


def use_up(path) -> SiteKey:
    """Return the key in a file and make the file unusable; of several concurrent callers, one gets the key.

    The file is renamed, which one process alone can do, overwritten, and replaced by one that says that it was used.
    (Disks and file systems may keep what was overwritten; a copy of the file is a second key.)

    Raises:
        ValueError: see `SiteKey.load`; or the file is a link, or has a second name.
        OSError: see `SiteKey.load`; or another process has it.
    """
    path = pathlib.Path(path)
    if path.is_symlink() or path.stat().st_nlink > 1:
        raise InputError(f"{path}: a key must be a file with a single name, not a symbolic or hard link.")
    claimed = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    os.rename(path, claimed)
    try:
        key = SiteKey.load(claimed)
    except InputError:
        os.rename(claimed, path)
        raise InputError(f"{path}: holds no {_SECRET}, or one that was used; create new keys.") from None
    except OSError:
        os.rename(claimed, path)
        raise
    with open(claimed, "r+b") as stream:
        stream.write(bytes(claimed.stat().st_size))
        stream.flush()
        os.fsync(stream.fileno())
    claimed.unlink()
    text = json.dumps({"title": _SECRET, "name": key.name, "secret": _USED}) + "\n"
    write_atomically(path, text, private=True)
    return key


def _document(path, title) -> dict:
    path = pathlib.Path(path)
    try:
        found = json.loads(path.read_bytes()[:10_000])
        if found["title"] != title:
            raise ValueError("another document")
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError(f"{path}: holds no {title}.") from None
    return found


def _curve():
    """Return the X25519 module of cryptography; needs ``pip install jaxgeodp[sites]``."""
    try:
        from cryptography.hazmat.primitives.asymmetric import x25519
    except ImportError:
        raise InputError("sites: needs the package cryptography: pip install 'jaxgeodp[sites]'.") from None
    return x25519
