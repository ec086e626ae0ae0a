"""Paths from one direction to the other in half duplex, which its benches cannot see."""

from cdu.delivery.verilog import convert
from cdu.unit.duplex import HalfDuplex
from cdu_spec.config import CduConfig
from cdu_tools import yosys
from cdu_verif.formal.stream_rules import REGISTERS

#: Names of the registers and signals of a direction, and of the signals by which its coder stalls others.
COMPRESSION = "compression.*", "compression.packer.*__ready"
DECOMPRESSION = "decompression.*", "decompression.unpacker.*__ready"


def test_the_ready_of_a_coder_does_not_reach_the_other_direction(tmp_path):
    # Both share the transform, so that without a register there this would be the slowest path of the unit.
    config = CduConfig(duplex="half", modes=("jpeg-act",))
    (tmp_path / "core.v").write_text(convert(HalfDuplex(config), "core", config), encoding="utf-8")
    script = ["read_verilog core.v", "hierarchy -check -top core", "proc", "flatten", "memory"]
    for (names, ready), (_, foreign) in ((COMPRESSION, DECOMPRESSION), (DECOMPRESSION, COMPRESSION)):
        script += [
            f"select -set cone w:{names} %ci*:-{REGISTERS}",
            f"select -assert-any @cone w:{ready} %i",
            f"select -assert-any w:{foreign}",
            f"select -assert-none @cone w:{foreign} %i",
        ]
    yosys.run("\n".join(script), tmp_path, yosys.writer())
