"""``cdu generate``: progress on a terminal, and its end by an interrupt."""

import os
import pty
import signal
import subprocess
import sysconfig
from pathlib import Path

import pytest

CDU = Path(sysconfig.get_path("scripts")) / "cdu"


def until(descriptor, mark):
    """Return what a terminal shows up to a mark, or up to the end without one."""
    text = b""
    while mark is None or mark not in text:
        try:
            more = os.read(descriptor, 1 << 12)
        except OSError:  # the program has closed its end
            more = b""
        if not more:
            break
        text += more
    return text


@pytest.mark.parametrize("mark", [b"building the hardware", b"writing the netlist", b"with Yosys"])
def test_an_interrupt_leaves_one_line_and_no_file(tmp_path, mark):
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    words = [CDU, "generate", "--config", "tiny", "-o", tmp_path / "out"]
    done = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=theirs, env=environment, start_new_session=True)
    os.close(theirs)
    assert mark in until(ours, mark)
    os.killpg(done.pid, signal.SIGINT)
    rest = until(ours, None).decode()
    printed, _ = done.communicate(timeout=60)
    assert done.returncode == 130
    assert printed == b""
    assert rest[rest.index("cdu: error:") :].strip() == "cdu: error: ended by SIGINT; no output is there in part"
    assert "Unused" not in rest
    assert "Traceback" not in rest
    assert not (tmp_path / "out").exists()


def test_without_a_terminal_nothing_is_shown(tmp_path):
    words = [CDU, "generate", "--block", "shift_quantizer", "-o", "out"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert {Path(line).name for line in done.stdout.splitlines()} == {path.name for path in (tmp_path / "out").iterdir()}
