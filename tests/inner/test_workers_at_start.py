"""Worker processes that the system ends before they begin."""

import pytest
import worker_jobs

from jaxgeodp import workers
from jaxgeodp.workers import Ended, in_processes


@pytest.mark.parametrize("killed", [{0}, {1}, {0, 2}])
def test_a_worker_that_is_ended_at_start_decides_nothing(tmp_path, monkeypatch, killed):
    """The system may end it for the memory that another takes; a job that died is done again in a third process."""
    started = []

    def start():
        process, connection = real()
        if len(started) in killed:
            process.kill()
        started.append(process)
        return process, connection

    real = workers._start
    monkeypatch.setattr(workers, "_start", start)
    found = sorted(in_processes("test", worker_jobs.die_once, [(tmp_path, k) for k in range(2)], 2))
    assert [(number, result) for number, result, _ in found] == [(0, 0), (1, 1)] and len(started) > 2


def test_workers_that_all_end_at_start_end_the_call(tmp_path, monkeypatch):
    """After the first have begun: jobs that no process takes have no result, and nothing lasts for ever."""
    started = []

    def start():
        process, connection = real()
        if len(started) > 0:
            process.kill()
        started.append(process)
        return process, connection

    real = workers._start
    monkeypatch.setattr(workers, "_start", start)
    found = sorted(in_processes("test", worker_jobs.die, [(k,) for k in range(4)], 1))
    assert [(number, how) for number, how, _ in found] == [(0, 0), *((k, Ended(None, begun=False)) for k in (1, 2, 3))]
    assert found[1][2] == Ended(-9) and len(started) == 1 + 3 + 2
