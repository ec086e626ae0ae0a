"""Bytes of tensors at marks within a function."""

import subprocess
import sys

import torch
from actcodec.saved.allocations import allocations, bytes_at_marks, mark

KIB = 1 << 10


def steps():
    kept = torch.empty(4 * KIB, dtype=torch.uint8)
    mark()
    more = torch.empty(8 * KIB, dtype=torch.uint8)
    del more
    mark()
    del kept


def test_marks_tell_bytes_now_and_the_most_since_the_one_before():
    found = bytes_at_marks(steps, torch.device("cpu"))
    assert [(one.now, one.peak) for one in found] == [(4 * KIB, 4 * KIB), (4 * KIB, 12 * KIB), (0, 4 * KIB)]


def test_marks_are_no_memory():
    found = allocations(steps)
    assert (found.peak, found.kept) == (12 * KIB, 0)


def test_nothing_is_printed():
    program = "import torch\nfrom actcodec.saved.allocations import allocations\nallocations(lambda: torch.ones(9) + 1)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
