"""Worker processes: results, deaths, interrupts, scripts without a main guard."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
import worker_jobs
from strategies import exhaustive

from jaxgeodp.workers import Ended, in_processes

HERE = pathlib.Path(__file__).parent


@pytest.mark.exhaustive  # so do those of the jobs below
def test_results_come_with_their_numbers():
    found = sorted(in_processes("test", worker_jobs.square, [(k,) for k in range(7)], 2))
    assert found == [(k, k**2, None) for k in range(7)]


def test_a_job_whose_process_is_ended_is_done_again_and_said_so(tmp_path):
    found = sorted(in_processes("test", worker_jobs.die_once, [(tmp_path, k) for k in range(4)], 2))
    assert [(number, result) for number, result, _ in found] == [(k, k) for k in range(4)]
    assert [before for _, _, before in found[1::2]] == [Ended(-9), Ended(-9)]
    # Only those that ended; without a worker left the others wait for the second round.
    assert all(before is None for _, _, before in found[::2])


def test_a_job_that_ends_its_process_twice_has_no_result():
    found = sorted(in_processes("test", worker_jobs.die, [(k,) for k in range(3)], 1))
    assert found == [(0, 0, None), (1, Ended(-9), Ended(-9)), (2, 2, None)]


def start_script(folder):
    script = subprocess.Popen(
        [sys.executable, str(HERE / "worker_jobs.py"), str(folder)], stderr=subprocess.PIPE, start_new_session=True
    )
    deadline = time.monotonic() + 60
    while len(list(folder.iterdir())) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    return script, {int(path.name.split("-")[1]) for path in folder.iterdir()}


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # Ended, but nobody has asked how.
    state = pathlib.Path(f"/proc/{pid}/stat")
    return not (state.exists() and state.read_text().rsplit(")", 1)[1].split()[0] == "Z")


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("how", ["interrupt of all", *exhaustive("kill of the parent")])
def test_workers_end_with_their_parent(tmp_path, how):
    script, workers = start_script(tmp_path)
    if how == "interrupt of all":
        os.killpg(script.pid, signal.SIGINT)
    else:
        script.kill()
    text = script.communicate(timeout=20)[1].decode()
    done = len(list(tmp_path.iterdir()))
    assert done < 30, "the queue is not worked off"
    deadline = time.monotonic() + 10
    while any(map(alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert workers and not any(map(alive, workers))
    assert len(list(tmp_path.iterdir())) <= done + 2
    if how == "interrupt of all":
        assert text.count("Traceback") == 1 and "KeyboardInterrupt" in text, "of the parent alone"


def test_a_script_without_main_guard_is_told_so(tmp_path):
    script = tmp_path / "script.py"
    # The argument is longer than what a pipe takes before somebody reads.
    script.write_text(
        "from jaxgeodp.workers import in_processes, leave_inside_import\n"
        "leave_inside_import()\n"
        "print(list(in_processes('call', len, [(b'0' * 1000000,)] * 2, 2)))\n"
    )
    found = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60)
    assert found.returncode == 1 and found.stderr.count("Traceback") == 1
    assert "call: its worker processes end at start; call it under \"if __name__ == '__main__':\"" in found.stderr
