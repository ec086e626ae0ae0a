"""Documents of a DMA engine: the tables of docs/user/dma.md, and its part of the C header."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cdu_spec.dma import (
    COMPLETION,
    COMPLETION_BYTES,
    DESCRIPTOR,
    DESCRIPTOR_BYTES,
    DMA_CHANNEL,
    DMA_ERRORS,
    MAX_RING_LOG2,
    MEMORY_ADDRESS_BITS,
    Part,
    dma_base,
)
from cdu_spec.register_documents import register_definitions, register_details
from cdu_spec.register_types import Channel

#: Bytes of the longest number in a record; longer parts are tables.
_NUMBER_BYTES = 8


def dma_markdown() -> str:
    """Return the tables: descriptor, completion record, errors, registers."""
    lines = ["### Descriptor", "", f"{DESCRIPTOR_BYTES} bytes, little endian; what no row names is ignored.", ""]
    lines += _parts(DESCRIPTOR)
    lines += ["", "### Completion record", "", f"{COMPLETION_BYTES} bytes.", "", *_parts(COMPLETION)]
    lines += ["", "| bit of `errors` | name | |", "|---|---|---|"]
    lines += [f"| {place} | {name} | {text} |" for place, (name, text) in enumerate(DMA_ERRORS)]
    bases = ", ".join(f"{channel.value} at {dma_base(channel):#x}" for channel in Channel)
    lines += ["", "### Registers", "", f"Each direction has these: {bases}.", ""]
    return "\n".join([*lines, *register_details(DMA_CHANNEL)]).rstrip() + "\n"


def dma_c_header() -> str:
    """Return a C header with the engine's registers and the records in memory, to follow that of the unit's registers."""
    lines = ["/* Registers of the DMA engine, relative to CDU_DMA_COMPRESS or CDU_DMA_DECOMPRESS; its records in memory. */"]
    lines += ["#ifndef CDU_DMA_H", "#define CDU_DMA_H", "", "#include <stdint.h>", ""]
    lines += [f"#define CDU_DMA_{channel.name} {dma_base(channel):#05x}u" for channel in Channel]
    lines += [f"#define CDU_DMA_ADDRESS_BITS {MEMORY_ADDRESS_BITS}u", f"#define CDU_DMA_RING_LOG2_MAX {MAX_RING_LOG2}u", ""]
    for register in DMA_CHANNEL:
        lines += register_definitions("CDU_DMA", register)
    for name, table, size in (("DESCRIPTOR", DESCRIPTOR, DESCRIPTOR_BYTES), ("COMPLETION", COMPLETION, COMPLETION_BYTES)):
        lines.append(f"#define CDU_DMA_{name}_SIZE {size}u")
        lines += [f"#define CDU_DMA_{name}_{part.name.upper()} {part.offset}u /* {part.size} bytes */" for part in table]
        tables = [part for part in table if part.size > _NUMBER_BYTES]
        lines += [f"#define CDU_DMA_{name}_{part.name.upper()}_SIZE {part.size}u" for part in tables]
        lines.append("")
    lines += [f"#define CDU_DMA_ERROR_{name.upper()} {1 << place:#x}u" for place, (name, _) in enumerate(DMA_ERRORS)]
    return "\n".join([*lines, "", "#endif", ""])


def _parts(table: Sequence[Part]) -> Iterator[str]:
    yield "| offset | bytes | name | |"
    yield "|---|---|---|---|"
    for part in table:
        yield f"| {part.offset} | {part.size} | {part.name} | {part.description} |"


if __name__ == "__main__":
    print(dma_markdown(), end="")
