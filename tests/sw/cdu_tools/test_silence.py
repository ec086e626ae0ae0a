"""Check that output of C code is dropped, and no other."""

import os
import subprocess
import sys

PROGRAM = """
import ctypes
from cdu_tools.silence import silent_libraries
c = ctypes.CDLL(None)
c.printf(b"before\\n")
print("and Python's")
try:
    with silent_libraries():
        c.printf(b"within\\n")
        print("within too")
        raise ValueError
except ValueError:
    pass
c.printf(b"after\\n")
"""


def test_what_c_prints_within_is_dropped_though_it_waits_in_a_buffer():
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    found = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True, env=buffered)
    assert sorted(found.stdout.split("\n")) == ["", "after", "and Python's", "before"]
    assert found.stderr == ""
