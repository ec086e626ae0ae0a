"""The register map for readers: docs/reference/registers.md and the C header."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from cdu_spec.channel_block import CHANNEL
from cdu_spec.modes import AFFINE_MODES
from cdu_spec.register_types import BLOCK_BYTES, REGISTER_BYTES, Access, Channel, Field, Register
from cdu_spec.registers import GLOBAL

_ACCESS = {
    Access.RO: "read only; a write is refused",
    Access.RW: "reads give what was written",
    Access.WO: "writes act once; reads give 0",
    Access.W1C: "sticky; writing 1 clears a bit, unless what sets it happens in the same cycle",
}

_INTRODUCTION = """\
# Registers

<!-- python -m cdu_spec.register_documents > docs/reference/registers.md -->
A driver programs a unit through 32-bit registers at the AXI4-Lite port `s_axil_*`. This page is generated from the tables
in `cdu_spec.registers`, as are the RTL, the C header that `cdu generate` writes beside the Verilog, and the driver
(`cdu_driver`).<!-- p:reg-1 -->

Some registers exist in one direction only, or only in units with certain modes, coders or options. Registers are read and
written whole. An access to an address without a register, a write to a read-only register, and a write that leaves out
bytes (WSTRB) have one effect: SLVERR, and BUS_ERRORS.bad_access.<!-- p:reg-2 --> The two lowest bits of an address are
ignored.<!-- p:reg-3 -->

Bits outside the fields read 0. Registers of flags ignore writes to them, so that a driver of another map may clear or
enable all bits at once.<!-- p:reg-4 --> An RW register of numbers refuses a write with a 1 outside the fields, or a number
that a field does not take ("takes" below): SLVERR, BUS_ERRORS.bad_access, and the register keeps its value.<!-- p:reg-5 -->
A signed number may be written with its sign repeated up to bit 31.<!-- p:reg-6 --> Where it says "START takes", any number
can be written, and START refuses the job with ERRORS.bad_job.<!-- p:reg-7 -->

| access | meaning |
|---|---|
"""

_PROGRAMMING = """\

## A job

1. When it changes, load a shift table that no job uses (STATUS.bank_busy), in the order of the payload.<!-- p:reg-8 -->
2. Write MODE, BEATS, ROW_BEATS and CHANNEL_ROWS, and to decompress PAYLOAD_BYTES_LOW and _HIGH (0: not
   known).<!-- p:reg-9 --> Affine modes also need QUANTIZER and, to compress, SEED; mx needs MX_CODING; jpeg-act needs
   CODING in units with coder gmc. [The bitstream](bitstream.md), section 2, defines the counts. Registers keep their values
   for the next job.<!-- p:reg-10 -->
3. Write CONTROL.start. The unit checks the job before it answers the write, in jpeg-act for 24 cycles. A job that cannot be
   done is refused: a bit of ERRORS is set, and nothing is queued.<!-- p:reg-11 -->
4. Give a scale for each channel that begins in the job, in order: as a packet at the scale port, or by writing SCALE while
   STATUS.scale_space is not 0, and SCALE_LAST for the last one. Modes brc, bypass and mx have no scales.<!-- p:reg-12 -->
   MODE.scales names the source; with `either` the job takes the packet that comes first.<!-- p:reg-13 --> In units with
   mode blpa each scale has an offset: bits 47:32 of the port's 64, or SCALE_OFFSET, written before SCALE. The other modes
   ignore it.<!-- p:reg-14 -->
5. Send the data as one packet, which ends with TLAST, and receive one packet. When its last word has left,
   INTERRUPT_STATUS.job_done is set and JOBS_DONE counts; in units with [records](#records) not before the job's data and
   scales have ended.<!-- p:reg-15 -->

Steps 2 to 4 of the next jobs may be done while jobs run; STATUS.queue_space says how many more fit.<!-- p:reg-16 --> A job
that is queued when the one before ends follows it without an idle cycle.<!-- p:reg-17 --> Each source gives scales in the
order of the jobs that name it; the order in time between the two sources does not matter.<!-- p:reg-18 --> Of jobs that
wait for scales together, all name their source, or none does and all use the same one; else ERRORS.scale_source is
set.<!-- p:reg-19 -->

If one write sets several bits of CONTROL, abort comes first, and start is then not carried out (ERRORS.aborted);
clear_counters goes with anything; flush without abort does nothing.<!-- p:reg-20 -->

## Errors

Each bit of ERRORS stays until it is cleared and, if its bit in ERROR_ENABLE is set, sets
INTERRUPT_STATUS.error.<!-- p:reg-21 --> Clear INTERRUPT_STATUS first, then ERRORS:<!-- p:reg-22 --> an error in between
interrupts again.<!-- p:reg-23 -->

- After an error in the data (early_last, late_last, keep, nonfinite, scale_missing, scale_surplus, bad_scale, bad_head,
  payload_length) the job ends as usual, with the right number of values, and the next one works.<!-- p:reg-24 -->
- A job that waits for ever, for input, scales or a sink, is ended by CONTROL.abort or WATCHDOG. All jobs and queued scales
  are forgotten; no reset is needed.<!-- p:reg-25 -->
- Before an abort, stop the sources from beginning packets of these jobs. CONTROL.flush, written together with
  CONTROL.abort, throws away up to TLAST a packet that has begun or is offered; STATUS.flushing shows that it goes
  on.<!-- p:reg-26 -->
- A word that waits at the output stays until the sink takes it, as AXI demands (STATUS.draining). It ends no job. The next
  job may be started before that; its packet follows.<!-- p:reg-27 -->

Counters run from reset or CONTROL.clear_counters. Read the low half of a counter of two registers first: that read keeps
the high half that belongs to it, 0 where counters have fewer bits.<!-- p:reg-28 -->

## Records

In units with `completions` each job that ends leaves a record: its number, the bytes of its payload, and its own bits of
ERRORS.<!-- p:reg-29 --> ARRAY.completions says how many fit. While COMPLETION_KEEP.keep is 1 they wait:
INTERRUPT_STATUS.job_done announces one, and COMPLETION, COMPLETION_BYTES and COMPLETION_ERRORS show the oldest until
COMPLETION_NEXT.take is written. Jobs under way reserve places, and START is refused (STATUS.queue_space is 0) when none is
left, so that no record is lost. Programs that use no records leave keep at 0.<!-- p:reg-30 -->

In such a unit a job has ended when its last word has left and its data and scales have come to TLAST,<!-- p:reg-31 -->
because errors can be found until then. A forgotten job has a number but no record; an abort keeps the records that
wait.<!-- p:reg-32 -->

ERRORS alone has errors of no single job: refused STARTs, ignored writes, timeout, aborted. scale_source is in the records
of all jobs whose scales had not come when it was found;<!-- p:reg-33 --> where every job names its source, it never
happens.
"""

_FORM = "Each register has its offset, name and access, then its fields by bits. Other resets than 0 are named."

#: Parts of a channel's block by the offset of their first register.
_PARTS = {
    0x000: "Commands, state, errors",
    0x020: "Next job",
    0x058: "Records",
    0x080: "Counters and shift tables",
}


def registers_markdown() -> str:
    """Return the text of docs/reference/registers.md."""
    lines = [
        _INTRODUCTION
        + "\n".join(f"| {access.value} | {text}{_anchor('access', access.value)} |" for access, text in _ACCESS.items()),
        "",
    ]
    blocks = [("global", 0), *((channel.value, channel.base) for channel in Channel)]
    lines += ["| block | addresses |", "|---|---|", *(_block(name, base) for name, base in blocks)]
    lines += _PROGRAMMING.splitlines()
    lines += ["", "## Global block", "", _FORM, "", *register_details(GLOBAL)]
    title = f"## Channels: compression at {_hex(Channel.COMPRESS.base)}, decompression at {_hex(Channel.DECOMPRESS.base)}"
    lines += [title, ""]
    for first, after in pairwise((*_PARTS, BLOCK_BYTES)):
        part = [register for register in CHANNEL if first <= register.offset < after]
        lines += [f"### {_PARTS[first]}", "", *register_details(part)]
    return "\n".join(lines).rstrip() + "\n"


def c_header() -> str:
    """Return a C header (C99, C++) with the address, fields, and named values of every register.

    The registers of a channel are given as offsets to ``CDU_COMPRESS`` or ``CDU_DECOMPRESS``.
    """
    lines = [
        "/* Registers of a compression/decompression unit. Offsets are in bytes. The registers of a channel are relative to",
        " * CDU_COMPRESS or CDU_DECOMPRESS. A flag is its mask; of another field FIELD_MASK is the mask,",
        " * FIELD(value) moves a value there, FIELD_GET(register) gets it from there. All units of a version have the same",
        " * registers here; those of an engine follow. A file may include the headers of several units. */",
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
    version = next(entry.reset for entry in GLOBAL if entry.name == "VERSION")
    other = f"#elif CDU_VERSION_RESET != {version:#010x}u"
    return "\n".join([*lines, other, '#error "headers of two versions of the register map: generate both again"', "#endif", ""])


def _block(name: str, base: int) -> str:
    return f"| {name} | {_hex(base)} to {_hex(base + BLOCK_BYTES - 1)}{_anchor('block', name)} |"


def _anchor(kind: str, name: str) -> str:
    """Return the anchor of a row, by which docs/reference/promises_unit.csv names it."""
    return f"<!-- p:reg-{kind}-{name.lower()} -->"


def _hex(number: int) -> str:
    return f"0x{number:03X}"


def register_details(table: Sequence[Register]) -> Iterator[str]:
    """Yield each register with its fields; halves of a number, and neighbours with the same fields, once."""
    for _, group in groupby(table, key=_kind):
        registers = list(group)
        first = registers[0]
        names = ", ".join(f"{_places(register)} **{register.name}**" for register in registers)
        text = " ".join(dict.fromkeys(register.description for register in registers))
        text += f" {_sentence(first.fields[0].description)}" if first.is_number else ""
        yield f"{names} ({first.access.value}): {text}{_exists(first)}{_reset(first)}"
        yield ""
        if not first.is_number:
            yield from _fields(first.fields)
            yield ""


def _kind(register: Register) -> object:
    """Return what neighbours have in common that are described together."""
    return (re.sub("_(LOW|HIGH)$", "", register.name), register.description) if register.is_number else register.fields


def _places(register: Register) -> str:
    """Return the offsets of a register."""
    if register.count == 1:
        return _hex(register.offset)
    return f"{_hex(register.offset)} to {_hex(register.offset + (register.count - 1) * REGISTER_BYTES)}"


def _fields(fields: Sequence[Field]) -> Iterator[str]:
    """Yield fields, those of one kind in one line."""
    for text, kind in groupby(fields, key=_template):
        alike = list(kind)
        if len(alike) == 1:
            (part,) = alike
            yield f"- {_bits(part)} `{part.name}`: {part.description}{_named_values(part)}{_bounds(part)}"
            continue
        # The bits of another register, at the same places, have their names there
        names = "" if ".NAME" in text else f" {', '.join(f'`{part.name}`' for part in alike)}"
        places = f"{alike[0].low} to {alike[-1].low}" if _are_adjacent(alike) else ", ".join(map(_bits, alike))
        yield f"- {places}{names}: {text}"


def _exists(register: Register) -> str:
    """Return in which channel and units a register exists, if not in all."""
    only = [f"in channel {register.channels[0].value}"] if len(register.channels) == 1 else []
    if register.modes == AFFINE_MODES:
        only.append("with an affine mode")
    elif register.modes:
        only.append(f"with mode {', '.join(mode.label for mode in register.modes)}")
    only += [f"with coder {register.coder.label}"] if register.coder is not None else []
    only += ["with " + ", ".join(f"`{option}`" for option in register.options)] if register.options else []
    return f" Only {', '.join(only)}." if only else ""


def _reset(register: Register) -> str:
    """Return a register's value after reset, if not 0 and not the configuration."""
    return f" Reset: {register.reset:#x}." if register.reset and not register.configured else ""


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _template(part: Field) -> str:
    """Return the description of a field with NAME in place of the field's name, or n in place of the number that ends both."""
    label = part.name.replace("_", "[-+_]")
    text = re.sub(rf"\b{label}\b", "NAME", part.description)
    number = re.search(r"\d+$", part.name)
    return re.sub(rf"\b{number[0]}$", "n", text) if number else text


def _are_adjacent(fields: Sequence[Field]) -> bool:
    """Return whether fields are single bits side by side."""
    return all(part.width == 1 and part.low == fields[0].low + place for place, part in enumerate(fields))


def _bits(part: Field) -> str:
    return f"{part.low}" if part.width == 1 else f"{part.low + part.width - 1}:{part.low}"


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
