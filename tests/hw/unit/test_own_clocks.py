"""Ports with clocks of their own: which there are, that they work together, and what is not allowed."""

import re
import subprocess

import pytest
from cdu.bus.channels import channels
from cdu.delivery import generator
from cdu.unit.array import CduArray
from cdu_spec.config import CduConfig
from cdu_spec.config_rules import OWN_CLOCKS, ConfigError
from cdu_spec.ports import CLOCK_OF
from cdu_tools import verilator
from cdu_verif.regression import plan
from cdu_verif.regression.regression import RunSettings, simulate
from tools_here import needs_icarus, needs_verilator

#: The least unit with all ports.
SMALL = CduConfig(modes=("sfpr", "bypass"), reset_kind="async")
#: Jobs at full rate and between pauses, scales of both sources, registers.
TESTS = ("mixed_jobs/pattern=full_rate", "mixed_jobs/pattern=coins", "scales_in_registers/pattern=coins", "register_map")


@pytest.mark.filterwarnings("ignore:.*was never used")  # only its ports are looked at
def test_every_port_belongs_to_a_clock():
    unit = CduArray(SMALL)
    found = list(channels(unit.signature.members))
    assert {channel.port for channel in found} == set(CLOCK_OF)
    assert [channel.stem for channel in found if channel.port == "s_axil"] == [
        f"s_axil_{c}" for c in ("aw", "w", "b", "ar", "r")
    ]
    named = {name for channel in found for name in channel.names}
    assert set(unit.signature.members) - named == {"irq", "idle"}


@pytest.mark.parametrize("own", [("registers",), pytest.param(("values", "packed"), marks=pytest.mark.campaign)])
def test_what_has_no_clock_of_its_own_is_of_the_unit(own):
    made = generator.kept(SMALL.override(own_clocks=own, reset_active="low"))
    head = re.search(rf"^module {made.top} \(\n(.*?)\n\);$", made.verilog, re.DOTALL | re.MULTILINE)[1]
    clocks = re.findall(r"input +wire (\w*clk|\w*aresetn)\b", head)
    assert clocks == ["clk", "aresetn", *(f"{name}_{what}" for name in own for what in ("clk", "aresetn"))]
    assert [port["name"] for port in made.manifest["ports"]][: len(clocks)] == clocks
    assert not re.search(r"\bidle\b", head)
    fifos = re.findall(r"^  \w+ (\w+)_crossing \(", made.verilog, re.MULTILINE)
    assert {CLOCK_OF[stem.rpartition("_")[0]] for stem in fifos} == set(own)


@needs_verilator
def test_jobs_pass_between_unrelated_clocks(tmp_path):
    (run,) = plan.runs(SMALL, ["clocked_array"], full=False)
    outcome = simulate(run, RunSettings(tmp_path, tests=TESTS))
    assert {test.name: test.status for test in outcome.tests} == dict.fromkeys(TESTS, "pass")


@pytest.mark.campaign
@needs_verilator
def test_lint_has_nothing_to_say(tmp_path):
    made = generator.kept(SMALL.override(own_clocks=OWN_CLOCKS, reset_active="low"))
    made.write(tmp_path)
    assert verilator.find().lint(tmp_path / f"{made.name}.v", top=made.top) == ""


@needs_icarus
@pytest.mark.parametrize("own", [("registers",), pytest.param(OWN_CLOCKS, marks=pytest.mark.campaign)])
def test_a_unit_comes_out_of_its_resets(own, tmp_path):
    made = generator.kept(SMALL.override(own_clocks=own, reset_active="low"))
    sources = {"bench.sv": made.bench, "dut.v": made.verilog}
    for name, text in sources.items():
        (tmp_path / name).write_text(text)
    subprocess.run(["iverilog", "-g2012", "-o", "bench", *sources], cwd=tmp_path, check=True)
    done = subprocess.run(["vvp", "-n", "bench"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert "PASS" in done.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"own_clocks": ("registers",)}, "reset_kind = sync is not allowed with own_clocks.*: use async"),
        (
            {"own_clocks": ("all",), "reset_kind": "async"},
            "own_clocks = all is not allowed: use one or more of registers, values, packed",
        ),
        (
            {"own_clocks": ("values",), "reset_kind": "async", "dma_bits": 128},
            "own_clocks = values is not allowed with a DMA engine.*: use registers, or no engine",
        ),
    ],
)
def test_what_is_not_allowed(options, message):
    with pytest.raises(ConfigError, match=message):
        CduConfig(**options)


def test_units_without_say_nothing_of_them():
    assert "own_clocks" not in CduConfig().to_dict()
    clocked = CduConfig(own_clocks=("packed", "registers"), reset_kind="async")
    assert clocked.own_clocks == ("registers", "packed")
    assert CduConfig.from_dict(clocked.to_dict()) == clocked


def test_a_file_may_be_overruled():
    clocked = CduConfig(own_clocks=("registers",), reset_kind="async")
    assert clocked.override_texts({"own_clocks": "none"}).own_clocks == ()
