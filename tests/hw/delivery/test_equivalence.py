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

#: Blocks whose netlists are proven in seconds.
BLOCKS = ("shift_quantizer", pytest.param("inverse_shift_quantizer", marks=pytest.mark.campaign))


@pytest.fixture(params=BLOCKS)
def folder(request, tmp_path):
    """Folder with the delivered files of a block, its netlist, and the cells."""
    try:
        library = pdk.find("nangate45").read()
    except MissingToolError as error:
        pytest.skip(str(error))
    made = generator.kept(CduConfig(), request.param)
    made.write(tmp_path)
    flow.synthesise(made.verilog, made.top, library, 2.0, None, tmp_path, ["balanced"], gated=False)
    (tmp_path / "cells.lib").write_text(contents(library.files[0]))
    yosys.run("read_json balanced.json\nwrite_verilog -noattr netlist.v\n", tmp_path)
    return tmp_path


def test_a_mapped_netlist_is_equal_and_a_wrong_gate_is_found(folder):
    (script,) = (path.read_text() for path in folder.glob("*_equiv.ys"))
    assert "Equivalence successfully proven!" in yosys.run(script, folder)
    netlist = (folder / "netlist.v").read_text()
    gates = list(re.finditer(r"^  (NAND2|NOR2)_X1 ", netlist, re.MULTILINE))
    wrong = gates[len(gates) // 2]
    other = {"NAND2": "NOR2", "NOR2": "NAND2"}[wrong[1]]
    (folder / "netlist.v").write_text(netlist[: wrong.start(1)] + other + netlist[wrong.end(1) :])
    with pytest.raises(yosys.YosysError, match=r"unproven \$equiv cells"):
        yosys.run(script, folder)
