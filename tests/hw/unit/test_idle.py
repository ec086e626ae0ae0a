"""The clock of a unit stops while it is idle, and nobody sees a difference."""

import re

import pytest
from cdu_spec.config import CduConfig
from cdu_verif.regression.plan import PlannedRun
from cdu_verif.regression.regression import RunSettings, simulate
from tools_here import needs_verilator

#: Jobs between pauses, both directions at once, scales out of registers, aborts, interrupts, a reset.
TESTS = (
    "mixed_jobs/pattern=idle",
    "mixed_jobs/pattern=stalls",
    "scales_in_registers/pattern=coins",
    "abort/direction=compress/flush=True",
    "abort/direction=decompress/flush=False",
    "abort_before_a_stalled_sink/direction=decompress/cause=WATCHDOG",
    "wrong_lengths/direction=decompress/mode=sfpr_zvc",
    "driver_recovery/direction=compress",
    "register_map",
    "reset_in_the_middle",
)
GATE = """\
module {top} (
{ports}
);
  reg enabled;
  always @* if (!clk) enabled = !idle;
  reg [31:0] stopped = 0;
  always @(posedge clk) if (!enabled) stopped <= stopped + 1;
  final $display("the clock stopped for %0d cycles", stopped);
  {top}__ungated unit ({connections});
endmodule
"""


def gated(text, top="cdu_array"):
    """The unit behind a clock gate, as an integrator has it: a latch that is open while the clock is low, and an AND."""
    head = re.search(rf"^module {top} \(\n(.*?)\n\);$", text, re.DOTALL | re.MULTILINE)
    ports = [re.fullmatch(r"  (input|output) +(?:wire|reg) +((?:\[\d+:0\] )?(\w+)).*", line) for line in head[1].splitlines()]
    names = [port[3] for port in ports]
    connections = [f".{name}({'clk & enabled' if name == 'clk' else name})" for name in names]
    wires = [f"  {port[1]} wire {port[2]}" for port in ports]
    wrapper = GATE.format(top=top, ports=",\n".join(wires), connections=",\n    ".join(connections))
    return text.replace(f"module {top} (", f"module {top}__ungated (") + wrapper


@needs_verilator
@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({}, marks=pytest.mark.campaign),
        {"duplex": "half", "cdus": 2, "reset_active": "low", "reset_kind": "async"},
    ],
)
def test_a_gated_clock_changes_nothing(tmp_path, settings):
    run = PlannedRun("array", CduConfig().override(**settings), ())
    outcome = simulate(run, RunSettings(tmp_path, tests=TESTS), gated)
    assert {test.name: test.status for test in outcome.tests} == dict.fromkeys(TESTS, "pass")
    logs = " ".join(path.read_text() for path in tmp_path.rglob("run.log"))
    stopped = [int(count) for count in re.findall(r"the clock stopped for (\d+) cycles", logs)]
    assert stopped, logs[-500:]
    assert sum(stopped) > 100


@pytest.mark.campaign
@needs_verilator
def test_a_clock_that_stops_too_early_is_found(tmp_path):
    """The monitor looks at nothing but what is offered: a job that waits for its sink is not ended by the watchdog."""

    def hasty(text):
        blind, count = re.subn(r"(idle_monitor \([^;]*\.works\()\w+", r"\1 1'b0", text)
        assert count == 1
        return gated(blind)

    run = PlannedRun("array", CduConfig(), ())
    name = "abort_before_a_stalled_sink/direction=decompress/cause=WATCHDOG"
    outcome = simulate(run, RunSettings(tmp_path, tests=(name,)), hasty)
    assert [(test.name, test.status) for test in outcome.tests] == [(name, "FAIL")]
