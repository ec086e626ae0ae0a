"""The C header and the register list beside the generated Verilog of a unit."""

import hashlib
import shutil
import subprocess

import pytest
from cdu.delivery import generator
from cdu_spec import CduConfig
from cdu_spec.register_documents import c_header
from cdu_spec.registers import entries, register


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


@pytest.mark.parametrize("reverse", [False, True])
def test_headers_of_several_units_go_together(tmp_path, reverse):
    """The registers are those of every unit; an engine's are there wherever one header has them."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    headers = [generator.kept(config) for config in (CduConfig(), CduConfig(dma_bits=128))]
    for made in headers:
        (tmp_path / f"{made.name}.h").write_text(made.header, encoding="utf-8")
    names = sorted((made.name for made in headers), reverse=reverse)
    lines = [
        *(f'#include "{name}.h"' for name in names),
        "unsigned sum = CDU_COMPRESS + CDU_DMA_COMPRESS + CDU_DMA_ERROR_UNIT;",
    ]
    assert _compiles(tmp_path, lines).returncode == 0
    old = c_header().replace(f"#define CDU_VERSION_RESET {register('VERSION').reset:#010x}u", "#define CDU_VERSION_RESET 1u")
    (tmp_path / "old.h").write_text(old, encoding="utf-8")
    done = _compiles(tmp_path, ['#include "old.h"', *lines])
    assert done.returncode
    assert "headers of two versions of the register map: generate both again" in done.stderr


def _compiles(folder, lines):
    (folder / "main.c").write_text("\n".join([*lines, ""]), encoding="utf-8")
    command = ["cc", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-c", "main.c", "-o", "main.o"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_block_has_no_registers():
    made = generator.generate(CduConfig(), "shift_quantizer")
    assert made.header is None
    assert not made.descriptions
