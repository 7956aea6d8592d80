"""A disk that is full, or is filled by somebody else at a given moment, as the files of a command meet it."""

import errno
import os
import stat


class Disk:
    """Room in bytes, of which files of `jaxgeodp.files` take some by being reserved, or written on without that.

    Attributes:
        left: room.
    """

    def __init__(self, monkeypatch, left: float):
        self.left, self._taken, self._sync = left, {}, os.fsync
        monkeypatch.setattr(os, "posix_fallocate", self._allocate)
        monkeypatch.setattr(os, "fsync", self._written)

    def _take(self, handle, size):
        file = os.fstat(handle)
        more = size - self._taken.get(file.st_ino, 0)
        if not stat.S_ISREG(file.st_mode) or more <= 0:
            return
        if more > self.left:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.left -= more
        self._taken[file.st_ino] = size

    def _allocate(self, handle, offset, size):
        self._take(handle, offset + size)

    def _written(self, handle):
        self._take(handle, os.fstat(handle).st_size)
        self._sync(handle)
