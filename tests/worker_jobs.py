"""Jobs of test_workers.py and test_face_folder.py, in a module that worker processes can import.

Run as a script, it works for a minute.
"""

import multiprocessing
import os
import pathlib
import signal
import sys
import time

from jaxgeodp.workers import in_processes


def square(number):
    return number**2


def die_once(folder, number):
    """Ended by the system the first time, if the number is odd."""
    mark = pathlib.Path(folder, str(number))
    if number % 2 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def die(number):
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def die_unless_in_the_parent(*_):
    """What a mesh that takes all memory does to its process; the process that runs the tests is told only."""
    assert multiprocessing.parent_process() is not None, "the work is done by the caller"
    os.kill(os.getpid(), signal.SIGKILL)


def linger(folder, number):
    time.sleep(0.5)
    pathlib.Path(folder, f"{number}-{os.getpid()}").touch()


if __name__ == "__main__":
    # A shell that runs the tests in the background has them ignore interrupts, and all that they start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for _ in in_processes("script", linger, [(sys.argv[1], number) for number in range(120)], 2):
        pass
