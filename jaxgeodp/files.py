"""Files that are written whole or not at all, and folders that have one writer."""

import contextlib
import errno
import os
import pathlib
import tempfile

from jaxgeodp.checks import InputError


def write_atomically(path, content: str | bytes, *, private: bool = False, replace: bool = True) -> None:
    """Write to a temporary file beside ``path`` (its name starts with ``.part-``), then rename it.

    Args:
        path: of the file.
        content: all of it.
        private: for the eyes of the user only (mode 0600).
        replace: whether a file that exists is replaced; of several writers that must not, one wins.

    Raises:
        OSError: the system cannot write, or the file exists and is not to be replaced; nothing has changed then.
    """
    path = pathlib.Path(path)
    try:
        _write(path, content, private, replace)
    except OSError as error:
        if error.filename is None and error.errno is not None:  # a full disk does not say where
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise


def _write(path, content, private, replace):
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".part-")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content.encode() if isinstance(content, str) else content)
            stream.flush()
            os.fsync(stream.fileno())
        if not private:
            allow_as_usual(temporary)
        if replace or not _claimed(path, temporary):
            os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


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
        raise FileExistsError(
            errno.EEXIST, "was written meanwhile by another process and is left as it is; name another file", str(path)
        ) from None


def allow_as_usual(path) -> None:
    """Give a file of mkstemp, which is private to the user, the permissions of any new file."""
    umask = os.umask(0)
    os.umask(umask)
    os.chmod(path, 0o666 & ~umask)


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
