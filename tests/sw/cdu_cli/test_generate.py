"""``cdu generate``: progress on a terminal, and its end by an interrupt."""

import os
import pty
import shutil
import signal
import subprocess
import sysconfig
from pathlib import Path

import pytest
from cdu.delivery import generator
from cdu_driver.cycles import SOURCES
from cdu_spec.config import CONFIGS
from click.testing import CliRunner
from command_line import ENTRY

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
    # A program started in the background ignores interrupts, and its children do too unless they are told otherwise.
    done = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=environment,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
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


PLATFORM = """
#include "cdu_dma.h"
uint32_t cdu_read(uint32_t address) { return address; }
void cdu_write(uint32_t address, uint32_t value) { (void)address; (void)value; }
void cdu_wait_interrupt(void) { }
void cdu_memory_publish(const volatile void *memory, uint32_t bytes) { (void)memory; (void)bytes; }
void cdu_memory_fetch(const volatile void *memory, uint32_t bytes) { (void)memory; (void)bytes; }
int main(void) { struct cdu_dma_ring ring = {0}; return cdu_dma_open(&ring); }
"""


@pytest.mark.parametrize("dma", [False, True])
@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
def test_the_driver_in_c_compiles_beside_the_unit_as_it_is_delivered(tmp_path, monkeypatch, dma):
    unit = CONFIGS["tiny"].override(dma_bits=128 if dma else 0)
    made = generator.kept(unit)
    monkeypatch.setattr(generator, "generate", lambda config, *others, **more: made)
    words = ["generate", *(["--set", "dma_bits=128"] if dma else []), "-o", str(tmp_path)]
    result = CliRunner().invoke(ENTRY, words)
    assert result.exit_code == 0, result.output
    sources = ["cdu_dma.c"] if dma else ["cdu_example.c"]
    assert sorted(path.name for path in tmp_path.glob("cdu_*")) == sorted([*sources, *SOURCES, *(["cdu_dma.h"] if dma else [])])
    assert {Path(line) for line in result.output.splitlines()} == set(tmp_path.iterdir())
    included = f'#define CDU_HEADER "{made.name}.h"'
    options = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    for source in sources:
        assert included in (tmp_path / source.replace("dma.c", "dma.h")).read_text()
        subprocess.run(["gcc", *options, "-c", source], cwd=tmp_path, check=True)
    if dma:  # linked with a platform, nothing is missing
        (tmp_path / "platform.c").write_text(PLATFORM)
        subprocess.run(["gcc", *options, "cdu_dma.c", "platform.c", "-o", "program"], cwd=tmp_path, check=True)
