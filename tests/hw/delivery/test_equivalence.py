"""The script proves netlists equal to the Verilog that they were made from, and finds a wrong gate."""

import re

import pytest
from cdu.delivery import generator
from cdu_spec import CduConfig
from cdu_synth.area import flow
from cdu_synth.library import pdk
from cdu_synth.library.liberty import contents
from cdu_tools import yosys
from cdu_tools.errors import MissingToolError

#: Blocks whose netlists are proven in seconds, and the kind of their reset.
BLOCKS = [
    ("shift_quantizer", "sync"),
    ("shift_quantizer", "async"),
    pytest.param(("inverse_shift_quantizer", "sync"), marks=pytest.mark.campaign),
]
CLOCK = ".CK(clk)"
#: Changes of a netlist: what is replaced, everywhere or once, and what the script then says; None where it is still equal.
CHANGES = {
    "a wrong gate": (r"(?m)^  NAND2_X1 ", "  NOR2_X1 ", 1, r"unproven \$equiv cells"),
    "no clock": (re.escape(CLOCK), ".CK(1'b0)", 0, r"unproven \$equiv cells"),
    "a register without a clock": (re.escape(CLOCK), ".CK(1'b0)", 1, r"unproven \$equiv cells"),
    "an open clock": (re.escape(CLOCK), ".CK()", 1, "check -assert"),
    "the other edge": (re.escape(CLOCK), ".CK(!clk)", 0, r"unproven \$equiv cells"),
    "data as a clock": (re.escape(CLOCK), ".CK(i__valid)", 0, r"unproven \$equiv cells"),
    "a reset that is no port": (r"rst, |  input rst;\n", "", 0, "No matching port|check -assert"),
    "an output that is no port": (r"o__valid, |  output o__valid;\n", "", 0, "No matching port"),
    "a tree of clocks": (
        r"endmodule",
        "  wire leaf, half; INV_X1 t0 (.A(clk), .ZN(half)); INV_X1 t1 (.A(half), .ZN(leaf));\nendmodule",
        1,
        None,
    ),
}


@pytest.fixture(scope="module", params=BLOCKS, ids="-".join)
def folder(request, tmp_path_factory):
    """Folder with the delivered files of a block, its netlist, and the cells."""
    block, reset = request.param
    try:
        library = pdk.find("nangate45").read()
    except MissingToolError as error:
        pytest.skip(str(error))
    made, path = generator.kept(CduConfig(reset_kind=reset), block), tmp_path_factory.mktemp(block)
    made.write(path)
    flow.synthesise(made.verilog, made.top, library, 2.0, None, path, ["balanced"], gated=False)
    (path / "cells.lib").write_text(contents(library.files[0]))
    yosys.run("read_json balanced.json\nwrite_verilog -noattr netlist.v\n", path)
    return path


def proven(folder, netlist):
    """Run the script on a netlist; YosysError if it does not prove it equal."""
    kept = (folder / "netlist.v").read_text()
    (script,) = (path.read_text() for path in folder.glob("*_equiv.ys"))
    try:
        (folder / "netlist.v").write_text(netlist)
        assert "Equivalence successfully proven!" in yosys.run(script, folder)
    finally:
        (folder / "netlist.v").write_text(kept)


def test_a_mapped_netlist_is_equal(folder):
    proven(folder, (folder / "netlist.v").read_text())


@pytest.mark.parametrize("folder", BLOCKS[:1], ids="-".join, indirect=True)
@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_netlist_is_equal_only_if_it_does_the_same(folder, change):
    pattern, replacement, count, message = CHANGES[change]
    netlist, changed = re.subn(pattern, replacement, (folder / "netlist.v").read_text(), count=count)
    assert changed
    if message is None:
        proven(folder, netlist.replace(CLOCK, ".CK(leaf)"))
    else:
        with pytest.raises(yosys.YosysError, match=message):
            proven(folder, netlist)
