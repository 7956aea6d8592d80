"""Files that are written whole or not at all, and folders that have one writer.

Copies and archives carry along when a file was changed last. Of a file that is published after private work, that would
tell how long the work took: such a file states the time that its writer gives.
"""

import contextlib
import datetime
import errno
import os
import pathlib
import secrets
from collections.abc import Callable, Iterator, Mapping

from jaxgeodp.checks import InputError

_TAKEN = "was written meanwhile by another process and is left as it is"


def write_atomically(
    path, content: str | bytes, *, private: bool = False, replace: bool = True, changed: str | None = None
) -> None:
    """Write to a temporary file beside ``path`` (its name starts with ``.part-``), then rename it.

    Args:
        path: of the file.
        content: all of it.
        private: for the eyes of the user only (mode 0600).
        replace: whether a file that exists is replaced; of several writers that must not, one wins.
        changed: the time of the last change that the file states (ISO 8601); by default when it is written.

    Raises:
        OSError: the system cannot write, or the file exists and is not to be replaced; nothing has changed then.
    """
    path = pathlib.Path(path)
    with _naming(path):
        handle, temporary = new_file(path.parent, private)
        try:
            with os.fdopen(handle, "wb") as stream:
                _fill(stream, content)
            if changed is not None:
                state_change(temporary, changed)
            _put(temporary, path, replace)
        except BaseException:
            _remove(temporary)
            raise


@contextlib.contextmanager
def reserved(
    path, size: int, *, private: bool = False, replace: bool = True, changed: str | None = None
) -> Iterator[Callable[[str | bytes], None]]:
    """Take room on the disk for a file of at most ``size`` bytes before what it will hold exists.

    It yields what writes the file, once, in the way of `write_atomically`. Nothing remains if that is not called.
    Content that is on the disk but cannot get its name, as another process has taken it, is kept under a name beside
    it: the error says which. For ``private``, ``replace`` and ``changed`` see there, too.

    Raises:
        OSError: there is no room, no right to write or to state the time of the last change, or the file exists and is
            not to be replaced.
    """
    path = pathlib.Path(path)
    with _naming(path):
        if not replace and os.path.lexists(path):
            raise _taken(path)
        handle, temporary = new_file(path.parent, private)
    with contextlib.ExitStack() as leftovers:
        leftovers.callback(_remove, temporary)
        stream = leftovers.enter_context(os.fdopen(handle, "wb"))
        with _naming(path):
            allocate(stream.fileno(), size)
            if changed is not None:
                state_change(temporary, changed)

        def write(content):
            with _naming(path), stream:
                _fill(stream, content)
            # It was possible before, and is no reason to lose the content now.
            with contextlib.suppress(OSError):
                if changed is not None:
                    state_change(temporary, changed)
            try:
                _put(temporary, path, replace)
            except OSError as error:
                kept = _kept(temporary, path)
                leftovers.pop_all()
                reason = _TAKEN if isinstance(error, FileExistsError) else error.strerror
                raise OSError(error.errno, f"{reason}; what should be there is in {kept}", str(path)) from None

        yield write


@contextlib.contextmanager
def all_reserved(
    sizes: Mapping[pathlib.Path, int], *, replace: bool = True, changed: str | None = None
) -> Iterator[dict[pathlib.Path, Callable[[str | bytes], None]]]:
    """Reserve several files of one work, as `reserved`: there is room for all of them, or an error and none.

    It yields what writes each file, by its path.

    Args:
        sizes: bytes that each file does not exceed.
        replace, changed: see `write_atomically`.

    Raises:
        OSError: see `reserved`.
    """
    with contextlib.ExitStack() as room:
        yield {
            path: room.enter_context(reserved(path, size, replace=replace, changed=changed))
            for path, size in sizes.items()
        }


@contextlib.contextmanager
def folder_for(path: pathlib.Path, changed: str) -> Iterator[None]:
    """Make a folder if there is none, whose last change is stated as ``changed`` at the end.

    What was made is removed if nothing is in it then.

    Raises:
        OSError: the system refuses.
    """
    made = [own for own in (path, *path.parents) if not own.exists()]
    path.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # not empty
            for own in made:
                own.rmdir()
        with contextlib.suppress(OSError):  # that of somebody else, or removed
            state_change(path, changed)


def state_change(path, time: str) -> None:
    """Have a file or folder state a time (ISO 8601) as that of its last change and access.

    Raises:
        OSError: the system refuses, as for folders of somebody else.
    """
    seconds = datetime.datetime.fromisoformat(time).timestamp()
    os.utime(path, (seconds, seconds))


def new_file(folder, private: bool = False) -> tuple[int, str]:
    """Return descriptor and path of a new ``.part-...`` file, for the user only or with a file's usual permissions.

    The system applies the process's mask itself; asking for the mask would change it for all threads.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    while True:
        path = os.path.join(folder, f".part-{secrets.token_hex(8)}")
        with contextlib.suppress(FileExistsError):
            return os.open(path, flags, 0o600 if private else 0o666), path


@contextlib.contextmanager
def _naming(path):
    """Name the path in errors that do not, such as that of a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise


def allocate(handle, size):
    """Allocate blocks for so many bytes on the disk, or zeros where the file system promises none."""
    if not _promised(handle, size):
        with open(handle, "wb", closefd=False) as stream:
            stream.write(bytes(size))
    os.fsync(handle)


def _promised(handle, size) -> bool:
    try:
        os.posix_fallocate(handle, 0, size)
        return True
    except AttributeError:  # not on every system
        return False
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
            raise
        return False


def _fill(stream, content):
    stream.seek(0)
    stream.write(content.encode() if isinstance(content, str) else content)
    stream.truncate()
    stream.flush()
    os.fsync(stream.fileno())


def _put(temporary, path, replace):
    if replace or not _claimed(path, temporary):
        os.replace(temporary, path)


def _kept(temporary, path):
    """Rename a complete file to a free name and return that, or its temporary one if that fails."""
    name = path.with_name(f"{path.stem}-{secrets.token_hex(4)}{path.suffix}")
    try:
        os.rename(temporary, name)
    except OSError:
        return temporary
    return name


def _remove(path):
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def _claimed(path, temporary) -> bool:
    """Put the file in its place, unless something is there; False where the place is only taken."""
    try:
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
            return False
        os.unlink(temporary)
        return True
    except FileExistsError:
        raise _taken(path) from None


def _taken(path):
    return FileExistsError(errno.EEXIST, f"{_TAKEN}; name another file", str(path))


@contextlib.contextmanager
def only_writer(folder):
    """Refuse while another process is inside this context; a killed process lets go. Does nothing without `fcntl`.

    Raises:
        ValueError: another process writes into the folder.
    """
    try:
        import fcntl
    except ImportError:  # not a POSIX system
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"another process is writing into {folder}; wait until it ends, or name another folder."
            ) from None
        except OSError:  # a file system without locks
            pass
        yield
    finally:
        os.close(handle)
