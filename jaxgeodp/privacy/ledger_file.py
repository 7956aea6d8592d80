"""The file of a ledger: an SQLite database that is created whole, checked whenever it is opened, and never guessed at.

Every operation opens a connection, runs one transaction and closes it. Nothing else may open the file: when a process
closes any other handle of it, the system drops SQLite's locks.
"""

import contextlib
import errno
import functools
import os
import pathlib
import random
import sqlite3
import time
from collections.abc import Callable
from typing import Any

from jaxgeodp.checks import InputError
from jaxgeodp.files import new_file

APPLICATION = 0x6A474450  # "jGDP"
VERSION = 1
# Seconds to wait for other writers.
PATIENCE = 60.0

#: Statements that make an empty ledger.
SCHEMA = (
    """CREATE TABLE budgets (
        dataset TEXT NOT NULL PRIMARY KEY,
        kind TEXT NOT NULL,
        parameters TEXT NOT NULL,
        time TEXT NOT NULL
    )""",
    """CREATE TABLE releases (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        dataset TEXT NOT NULL REFERENCES budgets (dataset),
        kind TEXT NOT NULL,
        parameters TEXT NOT NULL,
        mechanism TEXT NOT NULL,
        time TEXT NOT NULL,
        record TEXT CHECK (record IS NULL OR length(record) = 64)
    )""",
    "CREATE INDEX spending ON releases (dataset, kind, parameters)",
    """CREATE TRIGGER budgets_stay BEFORE UPDATE ON budgets
        BEGIN SELECT RAISE(ABORT, 'a budget is never changed'); END""",
    """CREATE TRIGGER budgets_remain BEFORE DELETE ON budgets
        BEGIN SELECT RAISE(ABORT, 'a budget is never deleted'); END""",
    """CREATE TRIGGER releases_remain BEFORE DELETE ON releases
        BEGIN SELECT RAISE(ABORT, 'a release is never deleted'); END""",
    """CREATE TRIGGER releases_stay BEFORE UPDATE ON releases
        WHEN OLD.record IS NOT NULL OR NEW.record IS NULL OR (OLD.id, OLD.dataset, OLD.kind, OLD.parameters,
            OLD.mechanism, OLD.time) IS NOT (NEW.id, NEW.dataset, NEW.kind, NEW.parameters, NEW.mechanism, NEW.time)
        BEGIN SELECT RAISE(ABORT, 'a release gets its record once and is never changed'); END""",
)
# Columns of words.
_WORDS = {
    "budgets": ("dataset", "kind", "parameters", "time"),
    "releases": ("dataset", "kind", "parameters", "mechanism", "time", "record"),
}
_COMPANIONS = ("-wal", "-shm", "-journal")
_TRANSIENT = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)
_READ_ONLY = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM)
# Of the system, not of the file: number and words.
_FAILURES = {
    sqlite3.SQLITE_FULL: (errno.ENOSPC, "the disk is full"),
    sqlite3.SQLITE_READONLY: (errno.EROFS, "the ledger, or its folder, cannot be written"),
    sqlite3.SQLITE_CANTOPEN: (errno.EROFS, "the ledger, or its folder, cannot be opened for writing"),
    sqlite3.SQLITE_PERM: (errno.EACCES, "the ledger cannot be opened"),
    sqlite3.SQLITE_BUSY: (errno.EAGAIN, "other processes keep the ledger locked"),
    sqlite3.SQLITE_LOCKED: (errno.EAGAIN, "other processes keep the ledger locked"),
    sqlite3.SQLITE_PROTOCOL: (errno.EAGAIN, "other processes keep the ledger locked"),
}

Work = Callable[[sqlite3.Connection], Any]


def create(path: pathlib.Path, work: Work) -> bool:
    """Create a ledger whose first transaction is ``work``, whole or not at all; False if there is one already.

    Raises:
        ValueError: no such folder, or the remains of a ledger whose main file is gone.
        OSError: the system cannot do it, for instance as the disk is full.
    """
    if os.path.lexists(path):
        return False
    if not path.parent.is_dir():
        raise InputError(f"{path}: the folder {path.parent} does not exist; create it first.")
    for suffix in _COMPANIONS:
        if os.path.lexists(f"{path}{suffix}") and not os.path.lexists(path):
            raise InputError(
                f"{path}{suffix} belongs to a ledger whose main file is missing; restore that file, or name another "
                "ledger."
            )
    try:
        with _temporary(path.parent) as temporary:
            _write_new(temporary, work)
            os.link(temporary, path)  # refuses to replace a file
        _sync_folder(path.parent)
        return True
    except FileExistsError:
        return False
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror}; no ledger was created", str(path)) from None
    except sqlite3.Error as error:
        raise _in_words(path, error, "no ledger was created") from None


def write(path: pathlib.Path, work: Work, consequence: str) -> Any:
    """Return what ``work(connection)`` gives, committed to the disk; try again while others write.

    Args:
        consequence: of a failure, for the error message.

    Raises:
        ValueError: the file is no ledger, or is damaged.
        OSError: the system cannot do it.
    """
    return _attempts(path, lambda: _transaction(path, work, "BEGIN IMMEDIATE", "mode=rw"), consequence)


def read(path: pathlib.Path, work: Work) -> Any:
    """Return what ``work(connection)`` gives, also on read-only media.

    Raises:
        ValueError: the file is no ledger, or is damaged.
        OSError: the system cannot do it.
    """

    def attempt():
        try:
            return _transaction(path, work, "BEGIN", "mode=rw")
        except sqlite3.OperationalError as error:
            if _code(error) not in _READ_ONLY or _size(f"{path.resolve()}-wal"):
                raise
            return _transaction(path, work, "BEGIN", "mode=ro&immutable=1")

    return _attempts(path, attempt, "nothing was read")


def _attempts(path, attempt, consequence):
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return attempt()
        except sqlite3.Error as error:
            # Nothing has been committed then.
            if _code(error) not in _TRANSIENT or time.monotonic() > deadline:
                raise _in_words(path, error, consequence) from None
            time.sleep(random.uniform(0.005, 0.05))
        except UnicodeDecodeError:  # of SQLite's own words about a damaged table
            raise _damaged(path) from None


def _transaction(path, work, begin, mode):
    if not path.exists():
        raise InputError(f"{path}: there is no such ledger; create it with its budget first.")
    if not path.is_file():
        raise InputError(f"{path} is not a file; name a ledger.")
    if _size(path) == 0:
        raise InputError(f"{path} is empty: it is not a ledger, or its content is lost; restore it, or name another.")
    with contextlib.closing(connected(f"{path.resolve().as_uri()}?{mode}")) as connection:
        connection.execute(begin)
        _check(path, connection)
        result = work(connection)
        connection.execute("COMMIT")
    return result


def connected(uri):
    """Return a connection with durable transactions and an untrusted schema."""
    connection = sqlite3.connect(uri, uri=True, timeout=min(5.0, PATIENCE), isolation_level=None)
    for setting in ("synchronous=FULL", "fullfsync=ON", "foreign_keys=ON", "trusted_schema=OFF", "cell_size_check=ON"):
        connection.execute(f"PRAGMA {setting}")
    return connection


@contextlib.contextmanager
def _temporary(folder):
    handle, name = new_file(folder)
    os.close(handle)
    try:
        yield name
    finally:
        for suffix in ("", *_COMPANIONS):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name + suffix)


def _write_new(temporary, work):
    with contextlib.closing(connected(pathlib.Path(temporary).as_uri())) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute(f"PRAGMA application_id={APPLICATION}")
        connection.execute(f"PRAGMA user_version={VERSION}")
        connection.execute("BEGIN IMMEDIATE")
        for statement in SCHEMA:
            connection.execute(statement)
        work(connection)
        connection.execute("COMMIT")


def _check(path, connection):
    """Refuse what is not a ledger of this version, to the letter of its tables and triggers, with all its rows."""

    def number(query):
        return connection.execute(query).fetchone()[0]

    if number("PRAGMA application_id") != APPLICATION:
        raise InputError(f"{path} is not a ledger of jaxgeodp; name another file.")
    version = number("PRAGMA user_version")
    if version != VERSION:
        raise InputError(
            f"{path} is a ledger of version {version}, but this jaxgeodp reads version {VERSION}; install a jaxgeodp "
            "for that version."
        )
    complete = _schema_of(connection) == _own_schema()
    if complete:
        count, last = connection.execute("SELECT count(*), coalesce(max(id), 0) FROM releases").fetchone()
        given = number("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'releases'")
        complete = count == last == given
    if not complete:
        raise _damaged(path)


def check_pages(connection: sqlite3.Connection) -> None:
    """Read and check the whole file.

    Raises:
        sqlite3.DatabaseError: it is damaged.
    """
    sound = connection.execute("PRAGMA integrity_check(1)").fetchall() == [("ok",)]
    if not sound or connection.execute("PRAGMA foreign_key_check").fetchall():
        raise sqlite3.DatabaseError("damaged")
    # SQLite keeps bytes there, too.
    for table, columns in _WORDS.items():
        others = " OR ".join(f"typeof({column}) NOT IN ('text', 'null')" for column in columns)
        if connection.execute(f"SELECT 1 FROM {table} WHERE {others} LIMIT 1").fetchone():
            raise sqlite3.DatabaseError("damaged")


def _schema_of(connection):
    return connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name").fetchall()


@functools.cache
def _own_schema():
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        for statement in SCHEMA:
            connection.execute(statement)
        return _schema_of(connection)


def _damaged(path):
    return InputError(f"{path}: the ledger is damaged or cut short; restore a copy that holds every release.")


def _in_words(path, error, consequence):
    """Return the exception, in one sentence, for an error of SQLite."""
    code = _code(error)
    if code == sqlite3.SQLITE_NOTADB:
        return InputError(f"{path} is not a ledger of jaxgeodp; name another file.")
    if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_IOERR_SHMSIZE:
        code = sqlite3.SQLITE_FULL
    if code in _FAILURES:
        number, words = _FAILURES[code]
        return OSError(number, f"{words}; {consequence}", str(path))
    if isinstance(error, sqlite3.OperationalError):
        return OSError(errno.EIO, f"the disk fails to read or write the ledger; {consequence}", str(path))
    return _damaged(path)


def _code(error) -> int:
    """Return the primary result code of SQLite."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _size(path) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _sync_folder(folder):
    with contextlib.suppress(OSError):  # not on every system
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
