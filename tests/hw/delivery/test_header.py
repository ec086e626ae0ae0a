"""The C header and the register list beside the generated Verilog of a unit."""

import hashlib

from cdu.delivery import generator
from cdu_spec import CduConfig
from cdu_spec.register_documents import c_header
from cdu_spec.registers import entries


def test_a_unit_has_registers_and_a_header(generated, tmp_path):
    made = generated[None]
    paths = made.write(tmp_path)
    assert sorted(path.name for path in paths) == ["tiny.core", "tiny.h", "tiny.json", "tiny.v", "tiny.vlt", "tiny_tb.sv"]
    text = (tmp_path / "tiny.h").read_bytes()
    assert text.decode() == c_header()
    assert made.manifest["sha256"]["tiny.h"] == hashlib.sha256(text).hexdigest()
    assert made.manifest["registers"] == list(entries(CduConfig()))


def test_a_block_has_no_header():
    assert generator.generate(CduConfig(), "shift_quantizer").header is None
