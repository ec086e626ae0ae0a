"""Rows of JPEG-ACT's table: which instance belongs where, and that a real netlist is in them whole."""

import json

import pytest
from amaranth.back import rtlil
from cdu.delivery import generator
from cdu_spec import CduConfig
from cdu_spec.config_files import named_config
from cdu_synth.area import breakdown, flow, hierarchy, report
from cdu_synth.area.provenance import provenance
from cdu_tools import yosys
from cdu_tools.errors import MissingToolError


@pytest.mark.parametrize(
    ("place", "row", "instance"),
    [
        ("core.compressor.dct0.rows", "DCT + IDCT", "core.compressor.dct0"),
        ("core.decompressor.idct3", "DCT + IDCT", "core.decompressor.idct3"),
        ("path.back.inverse_sfpr0", "SFPR", "path.back.inverse_sfpr0"),
        ("path.packer.lane1.quantizer", "quantise SH", "path.packer.lane1.quantizer"),
        ("path.unpacker.lane0.decoder", "coding (ZVC, BRC, affine codes)", "path.unpacker.lane0.decoder"),
        ("path.packer.distributor.lane1", "collector, splitter", "path.packer.distributor"),
        ("path.packer.lane0.affine.random", "DIVISION and other affine modes", "path.packer.lane0.affine"),
        ("control.compress.scales.queue", "registers, control", "control"),
        ("compress_scale_receiver", "ports", "compress_scale_receiver"),
        ("path.bypass.intake", "bypass", "path.bypass"),
        ("path.mx.encoder0", "MX", "path.mx"),
        ("path.packer.lane0.tags", breakdown.REST, ""),
        ("path.packer", breakdown.REST, ""),
        ("", breakdown.REST, ""),
    ],
)
def test_rows_by_the_outermost_instance(place, row, instance):
    assert breakdown.station(place) == breakdown.Station(row, instance)


def test_every_row_has_instances_in_a_unit_with_all_modes():
    """The rows' patterns are those of the blocks as they are called now."""
    from cdu.delivery import blocks

    universal = named_config("universal")
    config = universal.override(cdus=1, modes=(*universal.modes, "mx"))
    text = rtlil.convert(blocks.top(config), name="top", emit_src=False)
    modules = [line.split()[1] for line in text.splitlines() if line.startswith("module ")]
    places = [name.removeprefix("\\top").removeprefix(".") for name in modules]
    assert {breakdown.station(place).row for place in places} == {*breakdown.ROWS, breakdown.REST}


def test_places_out_of_names():
    assert hierarchy.place("$flatten\\core.compressor.dct0.$abc$1$blif$1$7") == "core.compressor.dct0"
    assert hierarchy.place("$flatten\\lane0.$flatten\\encoder.$auto$ff.cc:337:slice$3") == "lane0.encoder"
    assert hierarchy.place("$abc$1.2$blif$1$7") == ""
    assert hierarchy.place("$auto$ff.cc:337:slice$3") == ""


def test_instances_of_a_text():
    text = (
        "module leaf(a);\n  input a;\nendmodule\n"
        "module middle(a);\n  input a;\n  leaf \\join  (\n    .a(a)\n  );\nendmodule\n"
        "module top(a);\n  input a;\n  middle one (\n    .a(a)\n  );\n  middle two (\n    .a(a)\n  );\nendmodule\n"
    )
    found = [("one", "middle"), ("one.join", "leaf"), ("two", "middle"), ("two.join", "leaf")]
    assert list(hierarchy.instances(text, "top")) == found
    assert breakdown.row_modules(text, "top") == ["leaf"]


@pytest.fixture(scope="module")
def unit(nangate45, tmp_path_factory):
    """A part of a unit that has instances of two rows: folder of its netlist, what was generated, cost by rows, and Yosys."""
    try:
        build = yosys.engine("pyosys")
    except MissingToolError:
        build = yosys.engine()
    made = generator.kept(CduConfig(modes=("sfpr",), value_format="fp16"), "value_back")
    folder = tmp_path_factory.mktemp("rows")
    cost = flow.synthesise(made.verilog, made.top, nangate45, 2.0, build, folder, ["area"], by_row=True)["area"]
    return folder, made, cost, build


def test_rows_add_up_to_the_netlist(unit, nangate45):
    folder, made, cost, _ = unit
    cells = json.loads((folder / "area.json").read_text())["modules"][made.top]["cells"]
    kinds = [cell["type"] for cell in cells.values()]
    assert [share.row for share in cost.shares] == ["SFPR", "value intake, scale feeders", breakdown.REST]
    assert sum(share.cells for share in cost.shares) == len(kinds)
    assert sum(share.area_um2 for share in cost.shares) == pytest.approx(sum(nangate45.cells[kind].area for kind in kinds))
    assert sum(share.flip_flops for share in cost.shares) == sum(kind.startswith("DFF") for kind in kinds) == cost.flip_flops
    assert sum(share.leakage_uw for share in cost.shares) == pytest.approx(cost.leakage_uw, abs=1e-3)


def test_the_slowest_paths_end_at_lines_of_the_verilog(unit):
    _, made, cost, _ = unit
    delays = [path.delay_ns for path in cost.slow_paths]
    assert len(delays) == flow.SLOW_PATHS
    assert delays == sorted(delays, reverse=True)
    assert delays[0] == cost.critical_path_ns
    ends = [path.end for path in cost.slow_paths]
    assert len({end.net.partition("[")[0] for end in ends}) == len(ends)
    lines = made.verilog.splitlines()
    named = [end for end in ends if end.line]
    assert named
    assert all(end.net.partition("[")[0].rpartition(".")[2] in lines[end.line - 1] for end in named)
    assert {one.row for path in cost.slow_paths for one in path.stations} <= {share.row for share in cost.shares}


@pytest.mark.campaign
def test_borders_of_rows_cost_little(unit, nangate45):
    _, made, cost, build = unit
    flat = flow.synthesise(made.verilog, made.top, nangate45, 2.0, build, recipes=["area"])["area"]
    assert flat.shares == ()
    assert cost.ge == pytest.approx(flat.ge, rel=0.03)
    assert cost.flip_flops == pytest.approx(flat.flip_flops, rel=0.02)


def test_report_has_the_rows(unit, nangate45, tmp_path):
    _, made, cost, _ = unit
    made_with = provenance(CduConfig(), "cdu synth", {"synthesis": "pyosys 1"}, nangate45, 2.0, ["area"])
    content = report.report({made.top: cost}, made_with, nangate45)
    rows = content["blocks"][made.top]["breakdown"]
    assert sum(row["area_um2"] for row in rows.values()) == pytest.approx(cost.area_um2, abs=0.01)
    assert sum(row["share"] for row in rows.values()) == pytest.approx(1, abs=1e-3)
    assert {"area_um2", "ge", "share", "flip_flops", "cells", "leakage_uw"} == set(rows["SFPR"])
    page = report.markdown(content)
    assert f"## {made.top} by rows" in page
    assert "| SFPR |" in page
    assert breakdown.NOTE in page
    assert report.chart(content).startswith(b"\x89PNG")
