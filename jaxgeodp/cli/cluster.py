"""Files that the workers of a Dask cluster read, one state each."""

import dataclasses
import functools
import pathlib

from jaxgeodp.checks import InputError
from jaxgeodp.io.records import Source
from jaxgeodp.releases.mechanism import Mechanism
from jaxgeodp.releases.states import State


def prepared_on(address: str, mechanism: Mechanism, source: Source) -> State:
    """Return the state of the records of all files of a pattern, each read and prepared by a worker.

    Args:
        address: of a scheduler, or "local" for processes on this machine.
        mechanism: whose sums they are.
        source: several files.

    Raises:
        ValueError: Dask is not there, or no scheduler answers.
    """
    try:
        from distributed import Client, LocalCluster, Security
    except ImportError:
        raise InputError("--dask needs the package dask: pip install 'jaxgeodp[dask]'.") from None
    from jaxgeodp.engines import prepared_by_dask

    paths = [str(path.resolve()) for path in source.files]
    read = functools.partial(_records_of, source=source)
    try:
        if address == "local":  # nothing that others on this machine could talk to, or look at
            safe = {"security": Security.temporary(), "dashboard_address": None, "threads_per_worker": 1}
            client = Client(LocalCluster(**safe))
        else:
            client = Client(address, timeout=10)
    except (OSError, ValueError):
        raise InputError(f"--dask {address}: no scheduler answers at this address; check that it is running.") from None
    with client:
        return prepared_by_dask(mechanism, paths, read, client)


def _records_of(path, source):
    """Return, on a worker, the records of a file, which may hold any number of them."""
    return dataclasses.replace(source, path=pathlib.Path(path)).blocks(least=0)[1]
