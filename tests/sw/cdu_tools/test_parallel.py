"""Items that several threads work on."""

import signal
import subprocess
import sys
import threading
import time

import pytest
from cdu_tools.parallel import largest_first


def test_the_largest_begin_first_and_results_are_in_order():
    begun = []

    def work(item):
        begun.append(item)
        return 10 * item

    assert largest_first(work, [3, 9, 1, 5], size=lambda item: item, threads=1) == [30, 90, 10, 50]
    assert begun == [9, 5, 3, 1]
    assert largest_first(work, [], size=lambda item: item) == []


def test_items_are_worked_on_together():
    together = threading.Barrier(3, timeout=30)
    assert sorted(largest_first(lambda item: together.wait(), range(3), size=lambda item: 1, threads=3)) == [0, 1, 2]


def test_the_first_error_ends_it_and_what_waits_never_begins():
    begun, released = [], threading.Event()

    def work(item):
        begun.append(item)
        if item == "bad":
            raise ValueError("no such block")
        # The time suffices for the error to be seen; items under way are waited for.
        time.sleep(0.2)
        released.set()

    sizes = {"slow": 3, "bad": 2, **{f"later {number}": 1 for number in range(20)}}
    with pytest.raises(ValueError, match="no such block"):
        largest_first(work, list(sizes), size=sizes.__getitem__, threads=2)
    assert released.is_set()
    assert {*begun[:2]} == {"slow", "bad"}
    assert len(begun) < 10


#: Two processes, each with a program that sleeps; both say when their program runs, and it keeps their output open.
_SLEEPERS = """
import subprocess
from cdu_tools.parallel import processes

def sleep(seconds):
    program = subprocess.Popen(["sleep", str(seconds)])
    try:
        print("runs", flush=True)
        program.wait()
    finally:
        program.kill()

if __name__ == "__main__":
    with processes(2) as pool:
        list(pool.map(sleep, [600, 601]))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_processes_and_their_programs_end_with_the_one_that_started_them(tmp_path, number):
    script = tmp_path / "sleepers.py"
    script.write_text(_SLEEPERS, encoding="utf-8")
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as started:
        assert [started.stdout.readline() for _ in range(2)] == [b"runs\n"] * 2
        started.send_signal(number)
        # The output ends with the last that could write to it.
        started.communicate(timeout=60)
    assert started.returncode == -number
