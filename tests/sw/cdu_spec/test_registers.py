"""The register map: no overlaps, current documents, and a C header that agrees with the table."""

import re
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from cdu_spec import CduConfig, register_types, registers
from cdu_spec.channel_block import CHANNEL, ERROR_FLAGS
from cdu_spec.dma import DMA_CHANNEL, dma_register
from cdu_spec.register_documents import c_header, registers_markdown
from cdu_spec.register_types import Access, Channel
from cdu_spec.registers import GLOBAL, address, entries, register

ROOT = Path(__file__).parents[3]
TABLES = {"global": GLOBAL, "channel": CHANNEL}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_registers_do_not_overlap_and_lie_in_their_block(table):
    spans = sorted((entry.offset, entry.offset + 4 * entry.count) for entry in table)
    assert all(begin % 4 == 0 for begin, _ in spans)
    assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))
    assert spans[-1][1] <= register_types.BLOCK_BYTES


@pytest.mark.parametrize("entry", [*GLOBAL, *CHANNEL], ids=lambda entry: entry.name)
def test_fields_do_not_overlap_and_fit(entry):
    masks = [part.mask for part in entry.fields]
    assert sum(masks) < 1 << 32
    assert all(not one & other for i, one in enumerate(masks) for other in masks[:i])
    assert len({part.name for part in entry.fields}) == len(entry.fields)
    for part in entry.fields:
        assert part.width > 0
        assert all(0 <= value < 1 << part.width for value in (part.reset, *part.values.values()))
    assert entry.unpack(entry.reset) == {part.name: part.reset for part in entry.fields}


def test_names_are_unique():
    names = [entry.name for entry in (*GLOBAL, *CHANNEL)]
    assert len(set(names)) == len(names)


def test_addresses_are_unique_and_have_12_bits():
    places = [entry["address"] + 4 * i for entry in entries(CduConfig()) for i in range(entry["count"])]
    assert len(set(places)) == len(places)
    assert max(places) < 1 << register_types.ADDRESS_BITS


def test_blocks_stand_where_drivers_expect_them():
    assert [channel.base for channel in Channel] == [0x400, 0x800]
    assert address("ID") == 0
    assert address("CONTROL", Channel.COMPRESS) == 0x400
    assert address("SHIFTS1", Channel.DECOMPRESS, 7) == 0x93C


def test_every_error_has_its_enable():
    assert [part.name for part in register("ERRORS").fields] == [name for name, _ in ERROR_FLAGS]
    assert [part.name for part in register("ERROR_ENABLE").fields] == [name for name, _ in ERROR_FLAGS]
    assert register("ERRORS").access is Access.W1C


def test_pack_refuses_what_does_not_fit():
    assert register("MODE").pack(mode=3, bank=1, scales=2) == 0x2103
    assert register("MODE").unpack(0x2103) == {"mode": 3, "bank": 1, "scales": 2}
    with pytest.raises(ValueError, match=r"MODE.mode = 16 is not allowed: use 0 to 15"):
        register("MODE").pack(mode=16)
    with pytest.raises(KeyError):
        register("MODE").pack(size=1)
    with pytest.raises(ValueError, match=r"RING_SIZE.log2 = 17 is not allowed: use 0 to 16"):
        dma_register("RING_SIZE").pack(log2=17)


@pytest.mark.parametrize(
    ("name", "taken", "refused"),
    [
        ("MODE", (0x2103, 0x3000, 0), (0x10, 0x200, 0x4000, 1 << 31)),
        ("BEATS", (0, 1 << 26, 0xFFFFFFFF), ()),
        ("SCALE_OFFSET", (0, 0x7FFF, 0x8000, 0xFFFF, 0xFFFF8000, 0xFFFFFFFF), (0x10000, 0x18000, 0xFFFF7FFF, 0x80008000)),
        ("QUANTIZER", (0x7F3,), (4, 0x800)),
        ("SHIFTS0", (0x77777777,), (8, 0x80000000)),
        ("ERROR_ENABLE", (0xFFFFFFFF,), ()),
        ("PAYLOAD_CRC", (0xFFFFFFFF,), ()),
        ("RING_LOW", (0xFFFFFF80,), (1, 0x40)),
        ("RING_HIGH", (0xFF,), (0x100, 1 << 31)),
        ("RING_SIZE", (0, 16), (17, 31, 32, 40)),
        ("TAIL", (0xFFFFFFFF,), ()),
    ],
)
def test_what_a_register_takes(name, taken, refused):
    entry = next(one for one in (*CHANNEL, *DMA_CHANNEL) if one.name == name)
    assert [value for value in taken if not entry.takes(value)] == []
    assert [value for value in refused if entry.takes(value)] == []


def test_numbers_of_fields_lie_within_their_bounds():
    for entry in (*GLOBAL, *CHANNEL, *DMA_CHANNEL):
        for part in entry.fields:
            assert 0 <= part.bounds.start < part.bounds.stop <= 1 << part.width, f"{entry.name}.{part.name}"
            assert all(value in part.bounds for value in part.values.values()), f"{entry.name}.{part.name}"
            assert part.reset in part.written, f"{entry.name}.{part.name}"


def test_shift_registers_hold_the_table_in_order():
    shifts = tuple((5 * i + i // 8) % 8 for i in range(64))
    words = registers.pack_shift_registers(shifts)
    assert tuple(words[i // 8] >> 4 * (i % 8) & 15 for i in range(64)) == shifts


@pytest.mark.parametrize(
    "config",
    [
        CduConfig(),
        CduConfig(coders=("gmc",)),
        CduConfig(coders=("zvc", "gmc")),
        CduConfig(cdus=8, duplex="half", value_format="fp16", modes=("brc", "sfpr"), payload_crc=1, completions=32),
    ],
)
def test_entries_tell_the_configuration(config):
    reset = {entry["name"]: entry["reset"] for entry in entries(config)}
    assert register("ARRAY").unpack(reset["ARRAY"]) == {
        "cdus": config.cdus,
        "port_beats": config.port_beats,
        "packed_bytes": config.packed_bytes,
        "duplex": int(config.duplex == "half"),
        "payload_crc": config.payload_crc,
        "completions": config.completions,
    }
    modes, coders = ({entry.name.lower() for entry in built} for built in (config.built_modes, config.built_coders))
    found = {name for name, bit in register("MODES").unpack(reset["MODES"]).items() if bit}
    assert found == modes | (coders if config.has_dct else set())


def test_the_page_is_up_to_date():
    text = (ROOT / "docs" / "reference" / "registers.md").read_text(encoding="utf-8")
    assert text == registers_markdown(), "run: python -m cdu_spec.register_documents > docs/reference/registers.md"


@pytest.fixture
def header(tmp_path):
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    (tmp_path / "unit.h").write_text(c_header(), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("language", ["c", "c++"])
def test_the_header_holds_the_table(header, language):
    """Every address, mask, and named value, printed by a compiled program."""
    wanted = {}
    for prefix, table in (("CDU", GLOBAL), ("CDU_CHANNEL", CHANNEL)):
        for entry in table:
            name = f"{prefix}_{entry.name}"
            if entry.count > 1:
                wanted |= {f"{name}({i})": entry.offset + 4 * i for i in range(entry.count)}
                continue
            wanted[name] = entry.offset
            for part in () if entry.fields[0].width == 32 else entry.fields:
                field = f"{name}_{part.name.upper()}"
                if part.width == 1 and not part.values:
                    wanted[field] = 1 << part.low
                else:
                    most = (1 << part.width) - 1
                    wanted |= {f"{field}_MASK": most << part.low, f"{field}({most})": most << part.low}
                    wanted |= {f"{field}_GET({field}({most}) | ~{field}_MASK)": most}
    errors = [part.low for part in register("COMPLETION_ERRORS").fields]
    wanted |= {"CDU_CHANNEL_COMPLETION_ERRORS_ALL": sum(1 << low for low in errors)}
    wanted |= {"CDU_COMPRESS": 0x400, "CDU_DECOMPRESS": 0x800, "CDU_CHANNEL_MODE_MODE_JPEG_ACT": 3, "CDU_ID_RESET": 0x1A554443}
    lines = "\n".join(f'    printf("%lx\\n", (unsigned long)({expression}));' for expression in wanted)
    program = f'#include <stdio.h>\n#include "unit.h"\nint main(void)\n{{\n{lines}\n    return 0;\n}}\n'
    (header / "all.c").write_text(program)
    standard = "c99" if language == "c" else "c++11"
    command = ["cc", "-Wall", "-Wextra", "-Werror", "-pedantic", f"-std={standard}", "-x", language, "all.c", "-o", "all"]
    subprocess.run(command, cwd=header, check=True)
    printed = subprocess.run(["./all"], cwd=header, check=True, capture_output=True, text=True).stdout.split()
    assert dict(zip(wanted, (int(word, 16) for word in printed), strict=True)) == wanted


def test_every_register_and_field_is_on_the_page():
    """Check names, offsets and bits; the bits that repeat those of another register are named there."""
    described = registers_markdown().partition("## Global block")[2]
    for table, after in ((GLOBAL, "## Channels"), (CHANNEL, "")):
        text = described.partition(after)[0] if after else described.partition("## Channels")[2]
        for entry in table:
            (line, fields) = re.findall(
                rf"^(.*0x{entry.offset:03X}\S*(?: to 0x\w+)? \*\*{entry.name}\*\*.*)\n\n((?:- .*\n)*)", text, re.MULTILINE
            )[0]
            assert f"({entry.access.value})" in line
            for part in entry.fields if not entry.is_number else ():
                assert f"`{part.name}`" in fields or re.search(r"^- [\d, to]+: [A-Z_]+\.NAME", fields, re.MULTILINE), part.name
