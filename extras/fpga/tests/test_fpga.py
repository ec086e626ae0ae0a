"""Placement and routing on a real device: counts against the source, frequency against the path, what does not fit."""

import json
import re

import pytest
import typer
from cdu_cli import fpga as command
from cdu_fpga import fpga, fpga_report, nextpnr
from cdu_fpga.fpga_devices import FAMILIES, DeviceError, target
from cdu_fpga.fpga_path import critical_path
from cdu_spec import CduConfig
from cdu_synth.area.provenance import provenance
from cdu_tools.errors import MissingToolError
from typer.testing import CliRunner

#: Two copies of a module that is large enough to be mapped once, 8 flip-flops each.
TWO_LANES = (
    "module lane(clk, a, q);\n  input clk;\n  input [7:0] a;\n  output reg [7:0] q;\n"
    + "\n".join(f"  wire w{number} = a ^ {number} > 0;" for number in range(500))
    + "\n  always @(posedge clk) q <= q + a;\nendmodule\n"
    "module top(clk, a, b, q, r);\n  input clk;\n  input [7:0] a, b;\n  output [7:0] q, r;\n"
    "  lane one (\n    .clk(clk), .a(a), .q(q));\n  lane two (\n    .clk(clk), .a(q), .q(r));\nendmodule\n"
)
MULTIPLIERS = 29  # one more than the smallest device has


@pytest.fixture(scope="module", autouse=True)
def _installed():
    try:
        nextpnr.version(FAMILIES["ecp5"].tool)
    except MissingToolError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def placed(block, tmp_path_factory):
    """Folder with the netlist and the logs of a small block, and what it takes."""
    folder = tmp_path_factory.mktemp("fpga")
    return folder, fpga.place_and_route(block.verilog, block.top, target("ecp5"), 1, directory=folder)


@pytest.fixture(scope="module")
def multipliers():
    """Products of inputs, each of which takes one multiplier of the device, and a counter for a frequency."""
    count = range(MULTIPLIERS)
    ports = ", ".join(f"a{number}, b{number}, q{number}" for number in count)
    products = "\n".join(
        f"  input [17:0] a{number}, b{number};\n  output [35:0] q{number};\n  assign q{number} = a{number} * b{number};"
        for number in count
    )
    counter = "  input clk;\n  output reg [3:0] c;\n  always @(posedge clk) c <= c + 1;"
    return f"module products(clk, c, {ports});\n{counter}\n{products}\nendmodule\n"


def test_flip_flops_are_those_of_the_source(placed, block):
    """Every register bit of the Verilog is a flip-flop of the device: none is lost, doubled or turned into a memory."""
    assert len(re.findall(r"^module ", block.verilog, re.MULTILINE)) == 1, "the count below is for one module"
    sizes = re.findall(r"^  (?:output )?reg +(?:signed )?(?:\[(\d+):0\] )?\w+[;,]?$", block.verilog, re.MULTILINE)
    _, placement = placed
    assert placement.problem == ""
    assert placement.used["flip_flops"] == sum(int(high or 0) + 1 for high in sizes)
    assert placement.used["dsp"] == placement.used["block_ram"] == placement.used["lut4_as_ram"] == 0


def test_resources_are_what_the_log_says(placed):
    """The log is written by other code of nextpnr than its report."""
    folder, placement = placed
    log = (folder / "nextpnr.log").read_text()
    for name, cell in {"lut4": "TRELLIS_COMB", "flip_flops": "TRELLIS_FF", "dsp": "MULT18X18D", "block_ram": "DP16KD"}.items():
        used, available = re.search(rf"{cell}: +(\d+)/ *(\d+)", log).groups()
        assert (placement.used[name], placement.available[name]) == (int(used), int(available))
    assert placement.available["lut4"] == 24288  # Lattice' data sheet says 24 thousand


def test_frequency_is_that_of_the_slowest_path(placed, block):
    _, placement = placed
    path = placement.path
    assert placement.mhz == pytest.approx(1e3 / (path.logic_ns + path.routing_ns), rel=1e-3)
    assert 20 < placement.mhz < 400
    assert path.modules == (block.top,)
    for net in (path.start, path.end):
        assert re.search(rf"^  (reg|output)\b.*\b{re.escape(net)}[;,]?$", block.verilog, re.MULTILINE), net


def test_only_paths_between_registers_count(placed, block):
    folder, _ = placed
    read = json.loads((folder / "utilisation.json").read_text())
    for path in read["critical_paths"]:
        path["from"] = "<async>"
    assert critical_path(read, {}, block.verilog) is None


def test_a_seed_repeats_itself_and_copies_are_counted(tmp_path):
    first = fpga.place_and_route(TWO_LANES, "top", target("LFE5U-25F"), 1)
    again = fpga.place_and_route(TWO_LANES, "top", target("LFE5U-25F"), 1, directory=tmp_path)
    assert first == again
    assert first.used["flip_flops"] == 16
    assert "keep_hierarchy 1 lane" in (tmp_path / "script.ys").read_text()
    assert set(first.path.modules) == {"lane"}


def test_a_design_goes_to_the_first_device_with_room(multipliers):
    small = fpga.place_and_route(multipliers, "products", target("LFE5U-25F"), 1)
    assert small.problem == f"does not fit LFE5U-25F: needs {MULTIPLIERS} dsp, has 28"
    assert small.mhz == 0
    assert small.path is None
    larger = fpga.place_and_route(multipliers, "products", target("ecp5", speed=8), 1)
    assert (larger.device, larger.speed, larger.problem) == ("LFE5U-45F", 8, "")
    assert larger.used["dsp"] == MULTIPLIERS
    assert larger.mhz > 0
    made_with = provenance(CduConfig(), "cdu fpga", {"synthesis": "yosys 1"})
    content = fpga_report.report({"a": small, "b": larger}, made_with, target("ecp5"), 1)
    page = fpga_report.markdown(content)
    assert small.problem in page
    assert f"{larger.mhz:.1f}" in page
    assert "not run on a board" in page


def test_names_of_devices():
    assert target("ecp5").devices == ("LFE5U-25F", "LFE5U-45F", "LFE5U-85F")
    assert (target("LFE5UM5G-45F").devices, target("LFE5UM5G-45F").speed) == (("LFE5UM5G-45F",), 8)
    assert target("ecp5", 7).speed == 7
    with pytest.raises(DeviceError, match=r"unknown FPGA 'virtex': use ecp5, ecp5-5g, LFE5U-25F"):
        target("virtex")
    with pytest.raises(DeviceError, match=r"speed grade 6 is not one of ecp5-5g: use 8"):
        target("ecp5-5g", 6)


def test_missing_and_failing_programs(tmp_path):
    with pytest.raises(MissingToolError, match=r"add it with `pip install yowasp-nextpnr-none`"):
        nextpnr.version("yowasp-nextpnr-none")
    with pytest.raises(nextpnr.NextpnrError, match=r"no-such-file\.json"):
        nextpnr.run(FAMILIES["ecp5"].tool, ["--25k", "--json", "no-such-file.json"], tmp_path)


def test_command_line(tmp_path):
    app = typer.Typer(pretty_exceptions_enable=False)
    command.register(app)

    def run(*arguments):
        return CliRunner().invoke(app, ["--block", "alignment_buffer", *arguments, "-o", str(tmp_path / "out")])

    result = run("--part", "LFE5U-25F", "--seed", "2", "--json", str(tmp_path / "x.json"))
    assert result.exit_code == 0, result.output
    content = json.loads((tmp_path / "out" / "report.json").read_text())
    assert json.loads((tmp_path / "x.json").read_text()) == content
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["report.json", "report.md"]
    assert (content["fpga"], content["seed"], content["speed_grade"]) == ("ecp5", 2, 6)
    assert FAMILIES["ecp5"].tool in content["versions"]
    entry = content["blocks"]["alignment_buffer"]
    # 64 words of 64 bits in block RAMs of 36 bits; 8 records of tiles in 16 x 4 memories; nothing of it in flip-flops.
    assert entry["block_ram"] == 2
    assert entry["lut4_as_ram"] > 0
    assert entry["flip_flops"] < 64 * 8
    assert entry["mhz"] > 0
