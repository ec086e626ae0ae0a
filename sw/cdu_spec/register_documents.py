"""The register map for readers: docs/reference/registers.md and the C header."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from cdu_spec.registers import (
    BLOCK_BYTES,
    CHANNEL,
    GLOBAL,
    REGISTER_BYTES,
    Access,
    Channel,
    Field,
    Register,
)

_ACCESS = {
    Access.RO: "read only; a write is refused",
    Access.RW: "reads give what was written",
    Access.WO: "writes act once; reads give 0",
    Access.W1C: "sticky; writing 1 clears a bit, unless what sets it happens in the same cycle",
}

_INTRODUCTION = f"""\
# Registers

<!-- python -m cdu_spec.register_documents > docs/reference/registers.md -->
This page is made from the tables in `cdu_spec.registers`, as are the RTL, the C header that `cdu generate` writes beside the
Verilog, and the driver (`cdu_driver`).

Registers have 32 bits and are read and written whole, through the AXI4-Lite port `s_axil_*`. The address space has
{4 * BLOCK_BYTES:#x} bytes: the global block, then a block per direction, both with the same layout; some registers exist in
one direction only, or in units with certain modes or coders. An access to an address without a register, a write to a read-only
register, and a write that leaves out bytes (WSTRB) are answered with SLVERR, do nothing else, and set BUS_ERRORS.bad_access.
The two lowest bits of an address are ignored: an access is one of the whole register in which its address lies.

Bits outside the fields read 0. In registers of flags a write to them is ignored: a driver of another map may clear or enable
all bits at once. An RW register that holds a number refuses a write with a 1 outside its fields, which would cut the number
off, and a write with a number that a field does not take ("takes" in the tables below): SLVERR, BUS_ERRORS.bad_access, and the
register keeps what it had. A signed number may be written with its sign repeated up to bit 31. What START judges ("START
takes") is written as it is, and the job refused with ERRORS.bad_job.

| access | meaning |
|---|---|
"""

_PROGRAMMING = """\

## A job

1. Once, or when it changes: write a shift table that no job uses (STATUS.bank_busy), in the order of the payload.
2. Write MODE, BEATS, ROW_BEATS and CHANNEL_ROWS, and when decompressing PAYLOAD_BYTES_LOW and _HIGH (or 0); in the affine
   modes QUANTIZER, and when compressing SEED; in jpeg-act, in units with coder gmc, CODING. The numbers are those of
   [the bitstream](bitstream.md), section 2. Registers that keep their value need not be written again.
3. Write CONTROL.start. The job is checked before the write is answered (in jpeg-act 24 cycles); one that cannot be done is
   refused: it sets a bit of ERRORS, and nothing is queued.
4. Give the scales, in the order of the channels, as many as channels begin in the job: as a packet at the scale port, or by
   writing SCALE (as long as STATUS.scale_space is not 0) and, for the last one, SCALE_LAST. Modes brc, bypass and mx have none.
   MODE.scales says which of the two it is; a job that says either takes the packet that comes first. In units with mode blpa
   every scale has an offset beside it, bits 47:32 of the port's 64, or SCALE_OFFSET, written before SCALE; the other modes
   ignore it.
5. Send the data as one packet (TLAST ends it), receive one packet. INTERRUPT_STATUS.job_done is set, and JOBS_DONE counts,
   when the last word has left; in units with [records](#records) not before all that came for the job has.

Steps 2 to 4 of the next jobs may be done while jobs are under way: STATUS.queue_space says how many more fit. A job that is
queued when the one before ends follows it without an idle cycle. Each source gives its scales in the order of the jobs that
name it; how the two sources stand to each other in time does not matter. Jobs that wait for scales together all name their
source, or none does and all take theirs from the same one; anything else sets ERRORS.scale_source.

Bits of CONTROL that are written together: abort comes first, and start is then not carried out (ERRORS.aborted); clear_counters
goes with anything; flush without abort does nothing.

## Errors

Every bit of ERRORS is sticky by itself and, when its bit in ERROR_ENABLE is set, sets INTERRUPT_STATUS.error. Clear
INTERRUPT_STATUS first and ERRORS after it: what happens in between interrupts again. After an error in the data (early_last,
late_last, keep, nonfinite, scale_missing, scale_surplus, bad_scale, bad_head, payload_length) the job ends as usual, with as
many values as it should have, and the next one works. When a job waits for ever, because its input or its scales do not come
or nobody takes its output, write CONTROL.abort, or let WATCHDOG do it: all jobs and the scales in the queue are forgotten, no
reset is needed. Sources must first begin no more packets of these jobs; what they have begun, or offer, is thrown away up to
TLAST with CONTROL.flush, written together with CONTROL.abort (STATUS.flushing shows that it goes on). A word that waited at the
output stays there until the sink takes it, as AXI demands (STATUS.draining); it ends no job. The next job may be started before
that, and its packet comes behind it.

Counters count from reset or CONTROL.clear_counters. A counter of two registers is read low half first: that read keeps the
high half that goes with it.

## Records

In units with `completions` every job that ends leaves a record: its number, the bytes of its payload, and of ERRORS the bits
that are its own. ARRAY.completions says for how many there is room. While COMPLETION_KEEP.keep is 1 they wait:
INTERRUPT_STATUS.job_done says that one has come; COMPLETION, COMPLETION_BYTES and COMPLETION_ERRORS show the oldest one until
COMPLETION_NEXT.take is written. Jobs that have not ended take places of the same kind, and START is refused (STATUS.queue_space
is 0) while there is none: no record is lost. A program that knows nothing of records leaves keep at 0.

In such a unit a job has ended when its last word has left and its data and its scales have come to their TLAST, for until then
something may be found. Jobs that are forgotten have a number, but no record; an abort leaves the records that wait as they are.

What is of no single job stands in ERRORS alone: refused STARTs, writes that were ignored, timeout, aborted. scale_source stands
in the records of all jobs whose scales had not come when it was found; where every job names its source it never comes.
"""


def registers_markdown() -> str:
    """Return the text of docs/reference/registers.md."""
    lines = [_INTRODUCTION + "\n".join(f"| {access.value} | {text} |" for access, text in _ACCESS.items()), ""]
    lines += ["| block | addresses |", "|---|---|", f"| global | {_hex(0)} to {_hex(BLOCK_BYTES - 1)} |"]
    lines += [f"| {channel.value} | {_hex(channel.base)} to {_hex(channel.base + BLOCK_BYTES - 1)} |" for channel in Channel]
    lines += ["", "## Global block", ""]
    lines += register_summary(GLOBAL)
    lines += [
        "",
        f"## Channels: compression at {_hex(Channel.COMPRESS.base)}, decompression at {_hex(Channel.DECOMPRESS.base)}",
        "",
    ]
    lines += register_summary(CHANNEL)
    lines += ["", "## Fields of the global block", "", *register_details(GLOBAL)]
    lines += ["## Fields of a channel", "", *register_details(CHANNEL)]
    return "\n".join(lines).rstrip() + "\n" + _PROGRAMMING


def c_header() -> str:
    """Return a C header (C99, C++) with the address, fields, and named values of every register.

    The registers of a channel are given as offsets to ``CDU_COMPRESS`` or ``CDU_DECOMPRESS``.
    """
    lines = [
        "/* Registers of a compression/decompression unit. Offsets are in bytes. The registers of a channel are relative to",
        " * CDU_COMPRESS or CDU_DECOMPRESS. A flag is its mask; of another field FIELD_MASK is the mask,",
        " * FIELD(value) moves a value there, FIELD_GET(register) gets it from there. */",
        "#ifndef CDU_REGISTERS_H",
        "#define CDU_REGISTERS_H",
        "",
        "#include <stdint.h>",
        "",
        *(_define(f"CDU_{channel.name}", f"{channel.base:#05x}u") for channel in Channel),
        "",
    ]
    for prefix, table in (("CDU", GLOBAL), ("CDU_CHANNEL", CHANNEL)):
        for register in table:
            lines += register_definitions(prefix, register)
    return "\n".join([*lines, "#endif", ""])


def _hex(number: int) -> str:
    return f"0x{number:03X}"


def register_summary(table: Sequence[Register]) -> Iterator[str]:
    """Yield all registers of a block in one table."""
    yield "| offset | register | access | reset | |"
    yield "|---|---|---|---|---|"
    for register in table:
        offset, name = _hex(register.offset), register.name
        if register.count > 1:
            offset += f" to {_hex(register.offset + (register.count - 1) * REGISTER_BYTES)}"
            name += f"[0..{register.count - 1}]"
        reset = "configuration" if register.configured else f"{register.reset:#x}"
        text = register.description + (f" {_sentence(register.fields[0].description)}" if register.is_number else "")
        only = "".join(f" Only in channel {channel.value}." for channel in register.channels if len(register.channels) == 1)
        modes = ", ".join(mode.label for mode in register.modes)
        built = f" Only in units with {'one of the modes' if len(register.modes) > 1 else 'mode'} {modes}." if modes else ""
        if register.coder is not None:
            built += f" Only in units with coder {register.coder.label}."
        built += f" Only in units with `{register.option}`." if register.option else ""
        yield f"| {offset} | {name} | {register.access.value} | {reset} | {text}{only}{built} |"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def register_details(table: Sequence[Register]) -> Iterator[str]:
    """Yield the fields of all registers that have some; those of equal neighbours once."""
    several = [register for register in table if not register.is_number]
    for fields, group in groupby(several, key=lambda register: register.fields):
        names = [register.name for register in group]
        yield f"**{', '.join(names)}**"
        yield ""
        yield "| bits | field | |"
        yield "|---|---|---|"
        for part in fields:
            bits = f"{part.low}" if part.width == 1 else f"{part.low + part.width - 1}:{part.low}"
            yield f"| {bits} | {part.name} | {part.description}{_named_values(part)}{_bounds(part)} |"
        yield ""


def _named_values(part: Field) -> str:
    return f": {', '.join(f'{number} {name}' for name, number in part.values.items())}" if part.values else ""


def _bounds(part: Field) -> str:
    if not part.is_bounded:
        return ""
    return f"; {'START takes' if part.at_start else 'takes'} {part.bounds.start} to {part.bounds.stop - 1}"


def register_definitions(prefix: str, register: Register) -> Iterator[str]:
    name = f"{prefix}_{register.name}"
    yield f"/* {register.description} */"
    if register.count > 1:
        yield f"#define {name}(index) ({register.offset:#05x}u + {REGISTER_BYTES}u * (index))"
    else:
        yield _define(name, f"{register.offset:#05x}u")
    if register.reset:
        yield _define(f"{name}_RESET", f"{register.reset:#010x}u")
    # Loops make the elements of arrays.
    for part in register.fields if register.count == 1 and not register.is_number else ():
        field = f"{name}_{identifier(part.name)}"
        if part.is_flag:
            yield _define(field, f"{part.mask:#010x}u")
        else:
            yield _define(f"{field}_MASK", f"{part.mask:#010x}u")
            yield f"#define {field}(value) (((uint32_t)(value) << {part.low}) & {part.mask:#010x}u)"
            yield f"#define {field}_GET(register) (((uint32_t)(register) & {part.mask:#010x}u) >> {part.low})"
        for value, number in part.values.items():
            yield _define(f"{field}_{identifier(value)}", f"{number}u")
    if len(register.fields) > 1 and all(part.is_flag for part in register.fields):
        yield _define(f"{name}_ALL", f"{sum(part.mask for part in register.fields):#010x}u")
    yield ""


def _define(name: str, value: str) -> str:
    return f"#define {name} {value}"


def identifier(name: str) -> str:
    """Return the name of a field or value in capitals, digits and underscores, as languages require."""
    return "".join(letter if letter.isalnum() else "_" for letter in name).upper()


if __name__ == "__main__":
    print(registers_markdown(), end="")
