"""The bench of the writing half of an AXI4 port, with Verilog that it must reject."""

import re

import pytest
from cdu_spec.config import CduConfig
from cdu_verif.regression import plan, regression
from tools_here import needs_icarus


def open_burst(text):
    """Verilog in which the end of a packet without bytes of its own leaves a burst open."""
    faulty, count = re.subn(r"(assign _\d+_ = _\d+_) \| former__begun;", r"\1;", text)
    assert count == 2, "one for each writer"
    return faulty


@needs_icarus
@pytest.mark.parametrize(("mutate", "status"), [(None, "pass"), (open_burst, "FAIL")])
def test_packets_with_an_empty_last_word_go_to_their_own_addresses(tmp_path, mutate, status):
    run = plan.PlannedRun("axi_write_master", CduConfig(dma_bits=64), ())
    settings = regression.RunSettings(tmp_path, "icarus", tests=("empty_last_words",))
    (test,) = regression.simulate(run, settings, mutate).tests
    assert test.status == status, test.message
