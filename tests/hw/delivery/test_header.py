"""The C header and the register list beside the generated Verilog of a unit."""

import hashlib

from cdu.delivery import generator
from cdu_spec import CduConfig
from cdu_spec.register_documents import c_header
from cdu_spec.registers import entries


def test_a_unit_has_registers_and_a_header(generated, tmp_path):
    made = generated[None]
    paths = made.write(tmp_path)
    endings = [".core", ".h", ".json", ".rdl", ".sdc", ".svd", ".upf", ".v", ".vlt", ".xml"]
    endings += ["_equiv.ys", "_librelane.yaml", "_synth.tcl", "_tb.sv"]
    assert sorted(path.name for path in paths) == [f"tiny{ending}" for ending in endings]
    text = (tmp_path / "tiny.h").read_bytes()
    assert text.decode() == c_header()
    assert made.manifest["sha256"]["tiny.h"] == hashlib.sha256(text).hexdigest()
    for ending in (".rdl", ".svd"):
        content = (tmp_path / f"tiny{ending}").read_bytes()
        assert made.manifest["sha256"][f"tiny{ending}"] == hashlib.sha256(content).hexdigest()
    assert made.manifest["registers"] == list(entries(CduConfig()))


def test_a_block_has_no_registers():
    made = generator.generate(CduConfig(), "shift_quantizer")
    assert made.header is None
    assert not made.descriptions
