"""Paths from one direction to the other in half duplex, which its benches cannot see."""

from pathlib import Path

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
    script = []
    for (names, ready), (_, foreign) in ((COMPRESSION, DECOMPRESSION), (DECOMPRESSION, COMPRESSION)):
        script += [
            f"select -set cone w:{names} %ci*:-{REGISTERS}",
            f"select -assert-any @cone w:{ready} %i",
            f"select -assert-any w:{foreign}",
            f"select -assert-none @cone w:{foreign} %i",
        ]
    run(script, tmp_path)


def test_the_direction_does_not_reach_the_ready_of_tiles(tmp_path):
    # Many gates have the direction, the register of `held`, and ready goes on to the queue of jobs: with several CDUs that was
    # the slowest path.
    script = ["select -assert-count 1 w:compress__held"]
    for ready in ("compression.to_alignment__ready", "decompression.to_alignment__ready"):
        script += [
            f"select -set cone w:{ready} %ci*:-{REGISTERS}",
            "select -assert-any @cone w:alignment.used %i",
            "select -assert-none @cone w:compress__held %i",
        ]
    run(script, tmp_path)


def run(script: list[str], folder: Path) -> None:
    """Run commands of Yosys on the core of a unit in half duplex."""
    config = CduConfig(duplex="half", modes=("jpeg-act",))
    (folder / "core.v").write_text(convert(HalfDuplex(config), "core", config), encoding="utf-8")
    begin = ["read_verilog core.v", "hierarchy -check -top core", "proc", "flatten", "memory"]
    yosys.run("\n".join([*begin, *script]), folder, yosys.writer())
