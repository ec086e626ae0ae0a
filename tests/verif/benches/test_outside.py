"""Blocks of another author, in a folder outside the repository, are held to the cases of a block."""

import os
import subprocess
import sys

import pytest

BLOCK = """
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import connect, flipped
from cdu.quantizers.shift_quantizer import ShiftQuantizer
from cdu_spec import CduConfig
from cdu_verif.testing import check_block

CONFIG = CduConfig()


class Mine(wiring.Component):
    def __init__(self, flipped_bit, without=()):
        self.flipped_bit, self.inner = flipped_bit, ShiftQuantizer(CONFIG)
        members = {name: member for name, member in self.inner.signature.members.items() if name not in without}
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        m.submodules.inner = inner = self.inner
        connect(m, flipped(self.i), inner.i)
        m.d.comb += [inner.shifts.eq(self.shifts), inner.bank.eq(self.bank), inner.o.ready.eq(self.o.ready)]
        result = inner.o.payload.as_value() ^ self.flipped_bit
        m.d.comb += [self.o.valid.eq(inner.o.valid), self.o.payload.as_value().eq(result)]
        return m
"""


def run(folder, call):
    """Run the author's file with a call at its end; paths of this repository's tests are not known to it."""
    (folder / "mine.py").write_text(f"{BLOCK}\n\n{call}\nprint('held')\n")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "mine.py"]
    return subprocess.run(command, cwd=folder, env=environment, check=False, capture_output=True, text=True)


def test_a_component_with_the_right_results_is_held(tmp_path):
    done = run(tmp_path, "check_block(Mine(0), 'shift_quantizer', CONFIG, steady=False)")
    assert (done.returncode, done.stdout) == (0, "held\n"), done.stderr


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("check_block(Mine(1), 'shift_quantizer', CONFIG)", "AssertionError"),
        (
            "check_block(Mine(0), 'inverse_shift_quantizer', CONFIG)",
            "UserError: port i__payload of the component is not",
        ),
        ("check_block(Mine(0, ['bank']), 'shift_quantizer', CONFIG)", "UserError: the component has no port bank: give it all"),
    ],
)
def test_what_differs_is_told(tmp_path, call, error):
    done = run(tmp_path, call)
    assert done.returncode == 1
    assert error in done.stderr
    assert "held" not in done.stdout
