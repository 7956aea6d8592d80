"""Worker processes that end when they should: with the caller, with an interrupt, and one by one when they fail.

`concurrent.futures` finishes its queue after an interrupt, lets workers outlive a killed parent, and gives up all work
when the system ends one process for want of memory.
"""

import collections
import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections.abc import Callable, Generator, Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple

from jaxgeodp.checks import InputError

_PATIENCE = 5.0
_TRIES = 3


class Ended(NamedTuple):
    """Result of a job whose process came to an end."""

    code: int | None  #: exit code, or the signal's number below 0; None if it never began
    begun: bool = True  #: whether it had begun to work


def leave_inside_import() -> None:
    """Leave quietly where a worker imports a script that starts workers as it is imported; its parent tells why."""
    # The attribute that multiprocessing checks before it starts a process.
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise SystemExit(1)


def in_processes(
    owner: str, function: Callable[..., Any], jobs: Sequence[tuple], workers: int
) -> Generator[tuple[int, Any, Ended | None]]:
    """Yield number and result of ``function(*job)`` as they come, and how an earlier attempt ended, if one did.

    A job whose process ends is done again when the others are done, by a process that has the machine for itself; if
    that ends too, its result is an `Ended`. Close the generator to end the workers at once (`contextlib.closing`).

    Args:
        owner: who asks, for errors.
        function: importable, as are its arguments.
        jobs: arguments.
        workers: processes, at least 1.

    Raises:
        ValueError: processes end before they begin, as they do under a script without a main guard.
    """
    waiting = collections.deque(range(len(jobs)))
    ended: dict[int, Ended] = {}
    yield from _by_team(owner, function, jobs, waiting, min(workers, len(jobs)), ended)
    waiting.extend(sorted(ended))
    tried = 0
    while waiting:
        again: dict[int, Ended] = {}
        left = len(waiting)
        for number, result, _ in _by_team(owner, function, jobs, waiting, 1, again, begun=True):
            yield number, result, ended.get(number)
        for number, how in again.items():
            yield number, how, ended.get(number)
        tried = tried + 1 if len(waiting) == left else 0
        if tried >= _TRIES:  # processes end at start: one more for each of the other jobs
            number = waiting.popleft()
            yield number, Ended(None, begun=False), ended.get(number)


def _by_team(
    owner: str,
    function: Callable[..., Any],
    jobs: Sequence[tuple],
    waiting: collections.deque[int],
    size: int,
    ended: dict[int, Ended],
    begun: bool = False,
) -> Generator[tuple[int, Any, None]]:
    """Take jobs from ``waiting`` until none is left, or all workers have ended; jobs they were at go to ``ended``.

    ``begun`` says that processes of this call have begun before.
    """
    team: dict[Connection, BaseProcess] = {}
    at: dict[Any, int | None] = {}
    finished = False
    try:
        for _ in range(size):
            process, connection = _start()
            team[connection] = process
        while team:
            for connection in _ready(team):
                try:
                    answer = connection.recv()
                except (EOFError, OSError):
                    process = team.pop(connection)
                    process.join(_PATIENCE)
                    # One of them may be ended for what another works on; that all are is the caller's mistake.
                    if not (team or at or begun):
                        raise InputError(
                            f'{owner}: its worker processes end at start; call it under "if __name__ == '
                            "'__main__':\", or with workers=1."
                        ) from None
                    lost = at.get(connection)
                    if lost is not None:
                        ended[lost] = Ended(process.exitcode)
                    continue
                if connection not in at:
                    _send(connection, function)
                number = at.get(connection)
                following = at[connection] = waiting.popleft() if waiting else None
                if following is None:
                    connection.close()
                    team.pop(connection).join(_PATIENCE)
                else:
                    _send(connection, jobs[following])
                if number is not None:
                    yield number, answer, None
        finished = True
    finally:
        if not finished:
            _end(team)


def _ready(team: dict[Connection, BaseProcess]) -> list[Connection]:
    """Return the connections of a team on which something, or their end, waits to be read."""
    ready = multiprocessing.connection.wait(list(team))
    return [connection for connection in team if connection in ready]


def _start() -> tuple[BaseProcess, Connection]:
    # Forking would copy JAX's threads in an unknown state. The function goes through the pipe: starting would wait for
    # ever for a process that ends before it has read its arguments, if they are large.
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,), daemon=True)
    with _no_interrupts():
        process.start()
    theirs.close()
    return process, ours


def _send(connection, what):
    with contextlib.suppress(OSError):  # if the process has ended, the next wait tells
        connection.send(what)


def _end(team):
    for process in team.values():
        process.terminate()
    for connection, process in team.items():
        process.join(_PATIENCE)
        if process.is_alive():
            process.kill()
        connection.close()


@contextlib.contextmanager
def _no_interrupts():
    """Make processes started here ignore the interrupt key: it is for their parent, who ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        if before is not None:  # set by no Python code
            signal.signal(signal.SIGINT, before)


def _serve(connection):
    """Run a worker: say that it is there, then answer jobs until no more come."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # Nobody reads an answer any more when the pipe is closed.
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        connection.send(None)
        function = connection.recv()
        while True:
            connection.send(function(*connection.recv()))


def _end_with_parent():
    parent = multiprocessing.parent_process()
    if parent is not None:  # a worker has one
        parent.join()
        os._exit(1)
