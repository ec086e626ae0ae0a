"""Descriptors, records and registers of the DMA engine: one definition, the page and the C header made from it."""

import shutil
import subprocess
from pathlib import Path

import pytest
from cdu_spec.config import CduConfig
from cdu_spec.config_rules import DMA_BITS, ConfigError
from cdu_spec.dma import (
    COMPLETION,
    COMPLETION_BYTES,
    DESCRIPTOR,
    DESCRIPTOR_BYTES,
    DMA_CHANNEL,
    DMA_ERRORS,
    Completion,
    Descriptor,
    dma_address,
    dma_entries,
    read_bursts,
    read_words,
    tensor_extents,
    unanswered_bursts,
)
from cdu_spec.dma_documents import dma_c_header, dma_markdown
from cdu_spec.modes import Dtype, Mode
from cdu_spec.register_documents import c_header
from cdu_spec.register_types import Channel
from cdu_spec.registers import address

PAGE = Path(__file__).parents[3] / "docs" / "user" / "dma.md"


def test_the_page_is_up_to_date():
    begin, end = "<!-- python -m cdu_spec.dma_documents -->\n", "<!-- tables end -->"
    text = PAGE.read_text(encoding="utf-8")
    assert text.partition(begin)[2].partition(end)[0] == dma_markdown(), f"put the output of {begin.strip('<!->')} there"


@pytest.mark.parametrize("value_format", [dtype.label for dtype in Dtype])
@pytest.mark.parametrize("bits", [bits for bits in DMA_BITS if bits])
def test_rows_of_tiles_keep_as_many_words_under_way_as_long_rows(bits, value_format):
    """A row of a tile has 32 values: bursts of that length come to the words that may be requested."""
    config = CduConfig(dma_bits=bits, value_format=value_format)
    row = max(1, 32 * Dtype.from_label(value_format).bits // bits)
    assert read_bursts(config) * row >= read_words(config)
    assert (unanswered_bursts(config) + 1) * row >= read_words(config)


def test_every_number_of_a_descriptor_has_its_place():
    values = {part.name: 1 + place for place, part in enumerate(DESCRIPTOR) if part.name != "shifts"}
    raw = Descriptor(**values, shifts=bytes(range(24))).pack()
    assert len(raw) == DESCRIPTOR_BYTES
    rest = bytearray(raw)
    for part in DESCRIPTOR:
        place = slice(part.offset, part.offset + part.size)
        wanted = bytes(range(24)) if part.name == "shifts" else values[part.name].to_bytes(part.size, "little")
        assert raw[place] == wanted
        rest[place] = bytes(part.size)
    assert not any(rest), "parts share no byte"
    backwards = Descriptor(**(values | {"stride_n": -4})).pack()
    stride = next(part for part in DESCRIPTOR if part.name == "stride_n")
    assert backwards[stride.offset : stride.offset + stride.size] == (-4).to_bytes(8, "little", signed=True)


def test_a_record_is_read_part_by_part():
    raw = bytearray(COMPLETION_BYTES)
    for place, part in enumerate(COMPLETION):
        raw[part.offset : part.offset + part.size] = (1 << place).to_bytes(part.size, "little")
    record = Completion.unpack(raw)
    assert [getattr(record, part.name) for part in COMPLETION] == [1 << place for place in range(len(COMPLETION))]
    assert record.names == (DMA_ERRORS[2][0],)
    assert record.unit_names == ("bad_job",)


def test_registers_stand_behind_those_of_the_unit():
    first = min(entry["address"] for entry in dma_entries())
    assert first == dma_address("CONTROL", Channel.COMPRESS) > address("SHIFTS1", Channel.DECOMPRESS, 7)
    addresses = [entry["address"] for entry in dma_entries()]
    assert len(set(addresses)) == len(addresses) == len(Channel) * len(DMA_CHANNEL)
    assert max(addresses) < 0x1000


def test_maps_are_folded_where_the_mode_allows_it():
    assert tensor_extents((2, 3, 4, 5), Mode.SFPR) == (2, 3, 1, 20)
    assert tensor_extents((2, 3, 4, 5), Mode.JPEG_ACT) == (2, 3, 4, 5)
    assert tensor_extents((2, 3, 4, 5), Mode.BRC) == tensor_extents((120,), Mode.SFPR) == (1, 1, 1, 120)
    assert tensor_extents((2, 3, 4, 5), Mode.ACTNN) == (1, 1, 1, 120)
    with pytest.raises(ValueError, match="division takes tensors of shape"):
        tensor_extents((2, 3, 4), Mode.DIVISION)


def test_a_configuration_without_an_engine_is_written_as_before():
    assert "dma_bits" not in CduConfig().to_dict()
    config = CduConfig(dma_bits=128)
    assert CduConfig.from_dict(config.to_dict()) == config
    with pytest.raises(ConfigError, match="dma_bits = 32 is not allowed: use 0, 64, 128, 256, 512"):
        CduConfig(dma_bits=32)
    assert CduConfig(dma_bits=64, dma_words=256).to_dict()["dma_words"] == 256
    with pytest.raises(ConfigError, match="dma_words = 100 is not allowed: use 0, 64, 128, 256, 512"):
        CduConfig(dma_bits=64, dma_words=100)
    with pytest.raises(ConfigError, match="dma_words = 256 is not allowed without a DMA engine: use 0, or give dma_bits, too"):
        CduConfig(dma_words=256)


@pytest.mark.parametrize("compiler", ["cc", "c++"])
def test_the_header_holds_records_and_registers(tmp_path, compiler):
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    wanted = {f"CDU_DMA_DESCRIPTOR_{part.name.upper()}": part.offset for part in DESCRIPTOR}
    wanted |= {f"CDU_DMA_COMPLETION_{part.name.upper()}": part.offset for part in COMPLETION}
    wanted |= {f"CDU_DMA_ERROR_{name.upper()}": 1 << place for place, (name, _) in enumerate(DMA_ERRORS)}
    wanted |= {
        f"CDU_DMA_DECOMPRESS + CDU_DMA_{entry.name}": dma_address(entry.name, Channel.DECOMPRESS) for entry in DMA_CHANNEL
    }
    checks = "".join(f"if (({name}) != {value}u) return {place};\n" for place, (name, value) in enumerate(wanted.items(), 1))
    source = tmp_path / ("a.c" if compiler == "cc" else "a.cpp")
    source.write_text(f"{c_header()}{dma_c_header()}int main(void) {{ {checks} return 0; }}", encoding="utf-8")
    subprocess.run([compiler, "-Wall", "-Werror", str(source), "-o", str(tmp_path / "a")], check=True)
    assert subprocess.run([str(tmp_path / "a")], check=False).returncode == 0
