"""Reading Liberty files, on a library small enough to compute by hand and on a real one."""

import gzip
import hashlib

import pytest
from cdu_synth.library import liberty


def test_cells(tiny_file):
    library = liberty.read("tiny", [tiny_file])
    assert list(library.cells) == ["INV", "BIG_NAND", "SMALL_NAND", "FREE_NAND", "NOR", "DFF"]
    assert library.time_ns == pytest.approx(1e-3)
    inverter = library.cells["INV"]
    assert (inverter.area, inverter.leakage_uw, inverter.capacitances) == (1, pytest.approx(2e-3), {"A": 1})
    flop = library.cells["DFF"]
    assert flop.flip_flop
    assert [arc.kind for arc in flop.setups] == ["setup_rising"]
    assert library.sha256 == hashlib.sha256(tiny_file.read_bytes()).hexdigest()


def test_gate_is_the_smallest_nand_by_function(tiny_file):
    assert liberty.read("tiny", [tiny_file]).gate.name == "SMALL_NAND"


def test_gate_of_a_real_library(nangate45):
    assert (nangate45.gate.name, nangate45.gate.area) == ("NAND2_X1", 0.798)


def test_tables_interpolate_and_continue(tiny_file):
    (arc,) = liberty.read("tiny", [tiny_file]).cells["INV"].arcs
    rise = arc.delays[0]
    assert rise.at(0, 1) == pytest.approx(10)  # rows are transitions although the file has loads there
    assert rise.at(10, 3) == pytest.approx(36)
    assert rise.at(5, 2) == pytest.approx((10 + 12 + 30 + 36) / 4)
    assert rise.at(0, 5) == pytest.approx(50)


def test_packed_file_reads_alike(tiny_file, tmp_path):
    packed = tmp_path / "tiny.lib.gz"
    packed.write_bytes(gzip.compress(tiny_file.read_bytes()))
    assert liberty.read("tiny", [packed]).sha256 == liberty.read("tiny", [tiny_file]).sha256


def test_several_files_are_one_library(tiny_file, tmp_path):
    other = tmp_path / "more.lib"
    other.write_text('library (more) { time_unit : "1ps"; cell (TIE) { area : 1; } }')
    assert {"INV", "TIE"} <= set(liberty.read("both", [tiny_file, other]).cells)


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "no library group"), ("module x; endmodule", "no library group"), ("library (a) { cell (b) {", "ends inside"),
     ("library (a) { }", "no cells"), ('library (a) { time_unit : "1 hour"; }', "unit")],
)  # fmt: skip
def test_what_is_no_library_is_refused(text, message, tmp_path):
    path = tmp_path / "bad.lib"
    path.write_text(text)
    with pytest.raises(liberty.LibertyError, match=message):
        liberty.read("bad", [path])


def test_damaged_packed_file_is_refused(tmp_path):
    path = tmp_path / "bad.lib.gz"
    path.write_bytes(b"no gzip")
    with pytest.raises(liberty.LibertyError, match="cannot read"):
        liberty.read("bad", [path])


def test_library_without_nand_is_refused(tmp_path):
    path = tmp_path / "poor.lib"
    path.write_text("library (poor) { cell (TIE) { area : 1; } }")
    with pytest.raises(liberty.LibertyError, match="no two-input NAND"):
        _ = liberty.read("poor", [path]).gate
