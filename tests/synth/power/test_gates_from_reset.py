"""Netlists of gates after a reset: their behaviour does not depend on the content of registers before.

With an asynchronous reset every flip-flop begins as X, and a bench fails that reads an X from ``valid``, ``ready`` or a valid
payload. With a synchronous reset the logic before a flip-flop is X as long as the flip-flop is (the mapper may spread the
reset over gates that only together give 0), so registers begin with random bits instead, as in a chip.
"""

import re

import pytest
from cdu.delivery import generator
from cdu_spec.config import CduConfig
from cdu_synth.area.kept_netlist import kept_netlist
from cdu_synth.library import pdk
from cdu_synth.power.cell_models import cell_models
from cdu_synth.power.mapped import MappedModule
from cdu_tools import yosys
from cdu_tools.errors import MissingToolError
from cdu_verif.regression.plan import PlannedRun
from cdu_verif.regression.regression import RunSettings, simulate
from tools_here import needs_icarus, needs_verilator

BLOCKS = [
    "zvc_decoder",
    *(pytest.param(name, marks=pytest.mark.campaign) for name in ("inverse_shift_quantizer", "zvc_encoder", "collector")),
]


def outcome(folder, block, kind, simulator, change):
    """Return the set of results of a block's tests on its gates."""
    config = CduConfig().override(reset_kind=kind)
    try:
        library = pdk.find("nangate45").read()
    except MissingToolError as error:
        pytest.skip(str(error))
    made = generator.kept(config, block)
    design, _ = kept_netlist(made.verilog, made.top, library, 1.6, "balanced", yosys.engine(yosys.GENERATOR))
    gates = MappedModule.of(design, made.top)
    netlist = gates.verilog() + cell_models(library, gates.kinds)
    tests = simulate(PlannedRun(block, config, ()), RunSettings(folder, simulator), lambda _: change(netlist)).tests
    assert len(tests) > 3, tests
    return {test.status for test in tests}


def from_random_bits(netlist):
    """Return the netlist with flip-flops that begin with random content."""
    changed, count = re.subn(r"^(  reg (?:IQ|_0_));", r"\1 = $urandom;", netlist, flags=re.MULTILINE)
    assert count
    return changed


def without_reset(netlist):
    return re.sub(r"(assign n\d+ =) rst\[0\]", r"\1 1'b0", from_random_bits(netlist))


@pytest.mark.campaign
@needs_icarus
@pytest.mark.parametrize("block", BLOCKS)
def test_nothing_is_unknown_behind_an_asynchronous_reset(tmp_path, block):
    assert outcome(tmp_path, block, "async", "icarus", str) <= {"pass", "skip"}


@needs_verilator
@pytest.mark.parametrize("block", BLOCKS)
def test_a_reset_ends_any_state(tmp_path, block):
    assert outcome(tmp_path, block, "sync", "verilator", from_random_bits) <= {"pass", "skip"}


@needs_verilator
def test_a_netlist_that_is_not_reset_is_found(tmp_path):
    assert "FAIL" in outcome(tmp_path, "zvc_decoder", "sync", "verilator", without_reset)
