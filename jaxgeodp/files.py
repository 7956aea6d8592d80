"""Files that are written whole or not at all."""

import contextlib
import os
import pathlib
import tempfile


def write_atomically(path, content: str | bytes) -> None:
    """Write to a temporary file beside ``path`` (its name starts with ``.part-``), then rename it."""
    path = pathlib.Path(path)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".part-")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content.encode() if isinstance(content, str) else content)
            stream.flush()
            os.fsync(stream.fileno())
        # mkstemp makes files private to the user; what is written is meant to be read.
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
