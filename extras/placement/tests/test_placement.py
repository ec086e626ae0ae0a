"""Placed netlists: legal rows, wires as graph theory and OpenSTA have them, and gates that compute what they did."""

import re
import shutil
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from cdu.delivery import generator
from cdu_placement import placer, rows
from cdu_placement.buffers import rebuffered
from cdu_placement.legalise import settled
from cdu_placement.placer import clock_nets, place, sites_of
from cdu_placement.sizing import resized
from cdu_placement.spef import spef
from cdu_placement.wires import elmore, spanning_tree, wires_of
from cdu_spec.config import CduConfig
from cdu_synth.area import opensta
from cdu_synth.area.kept_netlist import kept_netlist
from cdu_synth.area.timing import Netlist, Timing, Wires
from cdu_synth.library import pdk
from cdu_synth.power.cell_models import cell_models
from cdu_tools import yosys
from cdu_tools.errors import MissingToolError, UserError
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import cdist
from tools_here import needs_icarus

needs_opensta = pytest.mark.skipif(not shutil.which("sta"), reason="OpenSTA is not installed: apt-get install opensta")


@pytest.fixture(scope="module")
def nangate45():
    return _library("nangate45")


def _library(name):
    try:
        return pdk.find(name).read()
    except MissingToolError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def netlist(nangate45):
    """A block with nets of many ends, one of whose trees of buffers a placement makes anew."""
    made = generator.kept(CduConfig(), "collector")
    design, _ = kept_netlist(made.verilog, made.top, nangate45, 1.6, "balanced", yosys.engine(yosys.GENERATOR))
    return Netlist.of(design, made.top)


@pytest.fixture(scope="module")
def placed(netlist, nangate45):
    if sys.version_info[:2] > placer.LATEST_PYTHON:
        pytest.skip("Coloquinte has no file for this Python")
    return place(netlist, nangate45, rows.rows_of(nangate45), 0.7)


@pytest.mark.parametrize("name", rows.KNOWN)
def test_cells_are_whole_sites(name):
    """Widths that follow from the areas of a real library, and no LEF file, fit the rows."""
    known = rows.KNOWN[name]
    cells = [cell for cell in _library(name).cells.values() if cell.usable and cell.area > 0]
    assert len(cells) > 50
    sites = [cell.area / (known.height_um * known.site_um) for cell in cells]
    assert max(abs(one - round(one)) for one in sites) < 0.03


def _legal(placement, height):
    """Every cell in a row and on a site, and none over another."""
    by_row = {}
    for (x, y), width in zip(placement.centres_um, placement.widths_um, strict=True):
        left, line = (x - width / 2) / 0.19, y / height - 0.5
        assert abs(left - round(left)) < 1e-6
        assert abs(line - round(line)) < 1e-6
        assert left > -1e-6
        assert x + width / 2 < placement.width_um + 1e-6
        assert 0 <= round(line) < round(placement.height_um / height)
        by_row.setdefault(round(line), []).append((x - width / 2, x + width / 2))
    for cells in by_row.values():
        assert all(one[1] <= other[0] + 1e-6 for one, other in pairwise(sorted(cells)))


def test_cells_stand_in_rows_side_by_side(netlist, nangate45, placed):
    assert len(placed.centres_um) == len(netlist.cells)
    _legal(placed, 1.4)
    area = sum(nangate45.cells[kind].area for kind, _ in netlist.cells)
    assert sum(placed.widths_um) * 1.4 == pytest.approx(area)
    assert area / (placed.width_um * placed.height_um) == pytest.approx(0.7, abs=0.02)
    assert set(placed.ports_um) == {net for net in (*netlist.inputs, *netlist.outputs) if isinstance(net, int)}


def test_a_placement_is_better_than_chance(netlist, nangate45, placed):
    wires = wires_of(netlist, nangate45, rows.rows_of(nangate45), placed)
    shuffled = [placed.centres_um[at] for at in np.random.default_rng(1).permutation(len(placed.centres_um))]
    chance = wires_of(netlist, nangate45, rows.rows_of(nangate45), replace(placed, centres_um=tuple(shuffled)))
    assert wires.length_um < 0.5 * chance.length_um


@pytest.mark.parametrize("count", [2, 3, 10, 60])
def test_trees_are_the_shortest(count):
    places = np.random.default_rng(count).uniform(0, 100, (count, 2))
    lengths, before = spanning_tree([tuple(place) for place in places])
    assert sum(lengths) == pytest.approx(minimum_spanning_tree(cdist(places, places, "cityblock")).sum())
    for end in range(1, count):
        here, steps = end, 0
        while here and steps <= count:
            here, steps = before[here], steps + 1
        assert here == 0


def test_delays_of_a_ladder():
    """Two wires of 10 and 20 um, 2 ohm and 0.1 fF each, with 3 fF at their ends and 5 at the joint."""
    first = 20 * (0.1 * 10 / 2 + 5 + 0.1 * 20 + 3)
    assert elmore([0, 10, 20], [0, 0, 1], [0, 5, 3], 2, 0.1) == pytest.approx([0, first, first + 40 * (0.1 * 20 / 2 + 3)])


def test_wires_without_resistance_and_capacitance_change_nothing(netlist, nangate45, placed):
    none = wires_of(netlist, nangate45, rows.rows_of(nangate45, 0, 0), placed)
    assert none.length_um > 1000
    assert Timing(netlist, nangate45, none.wires).slowest() == Timing(netlist, nangate45).slowest()
    assert Timing(netlist, nangate45, Wires({}, {})).slowest() == Timing(netlist, nangate45).slowest()


@needs_opensta
@pytest.mark.parametrize("ff_per_um", [0.05, 0.2])
def test_opensta_finds_the_same_path_with_these_wires(netlist, nangate45, placed, ff_per_um, tmp_path):
    known = rows.rows_of(nangate45, 3.57, ff_per_um)
    routed = wires_of(netlist, nangate45, known, placed)
    ours = Timing(netlist, nangate45, routed.wires).slowest().delay_ns
    theirs = opensta.find().slowest(netlist, nangate45, tmp_path, spef("netlist", netlist, nangate45, known, routed.trees))
    bare = Timing(netlist, nangate45).slowest().delay_ns
    assert ours > bare + 0.02
    assert theirs.delay_ns == pytest.approx(ours, rel=0.01)


def _verilog(netlist, name):
    """Ports are called by their numbers."""
    return "\n".join(opensta.verilog(netlist)).replace("module netlist", f"module {name}")


def _agree(one, other, library, folder):
    """Both netlists give the same outputs for the same random inputs."""
    clocks = {f"n{net}" for net in clock_nets(one, library)}
    inputs = [f"n{net}" for net in dict.fromkeys(one.inputs) if isinstance(net, int)]
    outputs = [f"n{net}" for net in dict.fromkeys(one.outputs) if isinstance(net, int) and f"n{net}" not in inputs]
    (clock,) = set(inputs) & clocks
    names = {net: one.name(net) for net in one.inputs if isinstance(net, int)}
    reset = next(f"n{net}" for net, name in names.items() if name == "rst")
    free = [name for name in inputs if name not in (clock, reset)]
    wires = "".join(f"  wire a{name}, b{name};\n" for name in outputs)
    ends = ", ".join(f".{name}({name})" for name in inputs)
    first, second = (", ".join(f".{name}({half}{name})" for name in outputs) for half in "ab")
    differ = " || ".join(f"a{name} !== b{name}" for name in outputs)
    bench = f"""module bench;
  reg {", ".join(inputs)}; integer cycle, wrong = 0, seen = 0;
{wires}  one x ({ends}, {first});
  other y ({ends}, {second});
  initial begin
    for (cycle = 0; cycle < 400; cycle = cycle + 1) begin
      {clock} = 0; {reset} = cycle < 3;
      {" ".join(f"{name} = $random;" for name in free)}
      #5 if (cycle > 3 && ({differ})) wrong = wrong + 1;
      if (cycle > 3) seen = seen + ^{{{", ".join("a" + name for name in outputs)}}};
      {clock} = 1; #5;
    end
    $display("wrong %0d seen %0d", wrong, seen); $finish;
  end
endmodule
"""
    kinds = {kind for netlist in (one, other) for kind, _ in netlist.cells}
    # A register begins with a known bit, lest X hide what differs.
    cells = re.sub(r"^(  reg \w+);", r"\1 = 0;", cell_models(library, kinds), flags=re.MULTILINE)
    files = {"bench.v": bench, "one.v": _verilog(one, "one"), "other.v": _verilog(other, "other"), "cells.v": cells}
    for file, text in files.items():
        (folder / file).write_text(text)
    subprocess.run(["iverilog", "-g2005", "-o", "bench", *files], cwd=folder, check=True)
    found = subprocess.run(["vvp", "-n", "bench"], cwd=folder, check=True, capture_output=True, text=True).stdout.split()
    assert int(found[3]) > 50
    return found[1] == "0"


@needs_icarus
def test_new_buffers_and_sizes_are_faster_and_compute_the_same(netlist, nangate45, placed, tmp_path):
    known = rows.rows_of(nangate45)

    def period(cells, placement):
        return Timing(cells, nangate45, wires_of(cells, nangate45, known, placement).wires).slowest().delay_ns

    buffered, moved = rebuffered(netlist, nangate45, known, placed)
    again = settled(moved, sites_of(buffered, nangate45, known), known)
    _legal(again, 1.4)
    assert (again.width_um, again.height_um) == (placed.width_um, placed.height_um)
    sized = resized(buffered, nangate45, wires_of(buffered, nangate45, known, again).wires)
    final = settled(again, sites_of(sized, nangate45, known), known)
    _legal(final, 1.4)
    assert len(buffered.cells) != len(netlist.cells)
    assert sized.cells != buffered.cells
    assert period(sized, final) < 0.97 * period(netlist, placed)
    assert _agree(netlist, sized, nangate45, tmp_path)


@needs_icarus
def test_a_netlist_that_computes_something_else_is_found(netlist, nangate45, tmp_path):
    cells = list(netlist.cells)
    number = next(at for at, (kind, _) in enumerate(cells) if kind == "NAND2_X1")
    cells[number] = "NOR2_X1", cells[number][1]
    assert not _agree(netlist, replace(netlist, cells=tuple(cells)), nangate45, tmp_path)


def test_what_a_library_must_have(nangate45):
    with pytest.raises(UserError, match="the rows of library other are not known: use nangate45"):
        rows.rows_of(replace(nangate45, name="other"))
    with pytest.raises(UserError, match="the wires of library sky130hd are not known: say --wire-ohm and --wire-ff"):
        rows.rows_of(replace(nangate45, name="sky130hd"))
    assert rows.rows_of(replace(nangate45, name="sky130hd"), 1, 0.2).ff_per_um == 0.2
    assert rows.femtofarad(nangate45) == 1
    assert rows.femtofarad(replace(nangate45, units="1 ns and 1 pf")) == 1000


def test_cells_that_do_not_fit(netlist, nangate45, placed):
    small, known = replace(placed, width_um=placed.width_um / 2), rows.rows_of(nangate45)
    with pytest.raises(UserError, match=r"cells of \d+ sites do not fit \d+: use a lower --use"):
        settled(small, sites_of(netlist, nangate45, known), known)


def test_cells_in_rows_stay_where_they_are(netlist, nangate45, placed):
    known = rows.rows_of(nangate45)
    again = settled(placed, sites_of(netlist, nangate45, known), known)
    assert np.allclose(again.centres_um, placed.centres_um)


@pytest.mark.parametrize("seed", range(5))
def test_cells_that_meet_are_put_apart(seed):
    """Rows of 40 sites, filled to 90 % by cells that stand anywhere, some outside."""
    known, rng = rows.CellRows(1.4, 0.19), np.random.default_rng(seed)
    sites = [int(one) for one in rng.integers(1, 7, 200)]
    height = 1.4 * -(-sum(sites) // 36)
    centres = [(float(x), float(y)) for x, y in rng.uniform((-1, -1), (8.6, height + 1), (200, 2))]
    start = placer.Placement(7.6, height, tuple(0.19 * one for one in sites), tuple(centres), {})
    _legal(settled(start, sites, known), 1.4)


def test_without_the_placer_one_sentence_says_so(netlist, nangate45, monkeypatch):
    monkeypatch.setattr(placer, "PACKAGE", "no_such_placer")
    said = r"the placer Coloquinte is not installed: add it with "
    here = "{}.{}".format(*sys.version_info)
    monkeypatch.setattr(placer, "LATEST_PYTHON", sys.version_info[:2])
    with pytest.raises(MissingToolError, match=said + "`pip install no_such_placer==0.4.1`$"):
        place(netlist, nangate45, rows.rows_of(nangate45), 0.7)
    monkeypatch.setattr(placer, "LATEST_PYTHON", (3, 10))
    with pytest.raises(MissingToolError, match=said + rf"Python 3.10: release 0.4.1 has no file for Python {here}$"):
        place(netlist, nangate45, rows.rows_of(nangate45), 0.7)
