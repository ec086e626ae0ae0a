"""Registers of a channel: jobs of one direction, their errors and counters. Both channels have the same layout."""

from __future__ import annotations

from cdu_spec.affine import BASE_BITS, CODE_BITS, RangeKind
from cdu_spec.config_rules import COMPLETIONS
from cdu_spec.geometry import SHIFT_BITS
from cdu_spec.modes import AFFINE_MODES, Coder, Mode
from cdu_spec.mx import MX_FORMATS, ScaleRule
from cdu_spec.reconstruction import MAX_POINT, POINT_BITS
from cdu_spec.register_types import (
    BANKS,
    COUNT_BITS,
    JOB_NUMBER_BITS,
    JOB_QUEUE,
    MAX_JOBS,
    NIBBLE_BITS,
    REGISTER_BITS,
    REGISTER_BYTES,
    SCALE_QUEUE,
    SHIFT_REGISTERS,
    SHIFTS_PER_REGISTER,
    Access,
    Channel,
    Field,
    Register,
    ScaleSource,
    count,
    flags,
    number,
)

MODE_NUMBERS = {mode.label: int(mode) for mode in Mode}
INTERRUPTS = (("job_done", "a job has ended"), ("error", "an error that ERROR_ENABLE lets through has happened"))

#: Errors of a channel. The driver's exceptions and the documents use these sentences.
ERROR_FLAGS = (
    ("early_last", "the input of a job was too short; zeros replaced the rest"),
    ("late_last", "the input of a job was too long; the rest up to TLAST was thrown away"),
    ("keep", "a TKEEP had holes, or ended inside a row of 8 values or a scale"),
    (
        "bad_job",
        f"START was refused: mode unknown or not built, a count of 0 or of more than {COUNT_BITS} bits, BEATS not whole blocks "
        "(strips), or QUANTIZER, CODING, MX_CODING or MODE.scales impossible",
    ),
    ("bad_length", "START was refused: no payload of this job can have PAYLOAD_BYTES bytes"),
    ("queue_full", "START was refused: STATUS.queue_space was 0"),
    ("busy_write", "a write to a shift table was ignored: a job that has not ended uses it"),
    (
        "nonfinite",
        "an input value was infinite (it became the largest number) or NaN (it became 0; in mode mx its block is NaN)",
    ),
    ("scale_missing", "a job had fewer scales than channels; 1.0 replaced the rest"),
    ("scale_surplus", "a job had more scales than channels; the rest was thrown away"),
    ("scale_overflow", "a write to SCALE or SCALE_LAST was ignored: STATUS.scale_space was 0"),
    ("timeout", "no transfer for WATCHDOG cycles while a job was under way; all jobs were aborted"),
    ("aborted", "CONTROL.abort was written while jobs were under way, or together with start; they were forgotten"),
    (
        "bad_scale",
        "a scale was not a positive number in the range that bitstream.md gives for the mode, or had more significand bits "
        "than NUMBERS says; 1.0 took its place",
    ),
    (
        "scale_source",
        "of jobs that wait for scales together only some name their source in MODE, or none does and scales came from both: "
        "they may be in the wrong order",
    ),
    ("bad_head", "a block began with a range that no encoder writes; its values are wrong"),
    ("payload_length", "the payload had another number of bytes than PAYLOAD_BYTES"),
    ("bad_crc", "the four bytes behind a payload were not its CRC-32, or not there"),
)

#: Errors that belong to a single job, named in its record.
JOB_ERRORS = (
    "early_last",
    "late_last",
    "keep",
    "nonfinite",
    "scale_missing",
    "scale_surplus",
    "bad_scale",
    "scale_source",
    "bad_head",
    "payload_length",
    "bad_crc",
)

CHANNEL = (
    Register(
        "CONTROL",
        0x00,
        Access.WO,
        "Commands, each given by writing 1.",
        flags(
            ("start", "append the job in MODE to PAYLOAD_BYTES to the queue"),
            (
                "abort",
                "forget all jobs and queued scales, and a START in the same write; TLAST ends a packet that has begun at the "
                "output",
            ),
            (
                "flush",
                "with abort: throw away, up to TLAST, a packet that has begun or waits at the input or scale port; alone: "
                "nothing",
            ),
            ("clear_counters", "set all counters to 0"),
        ),
    ),
    Register(
        "STATUS",
        0x04,
        Access.RO,
        "State of the channel.",
        (
            Field("busy", 0, 1, "a job was started and has not ended"),
            Field("flushing", 1, 1, "the rest of a packet is being thrown away after a flush"),
            Field(
                "draining",
                2,
                1,
                "the sink has not taken a word of a forgotten job, or the end of its packet",
            ),
            Field("bank_busy", 4, BANKS, "bit b: a job that uses shift table b has not ended; it cannot be written"),
            Field("jobs", 8, MAX_JOBS.bit_length(), "jobs that were started and have not ended"),
            Field("queue_space", 16, JOB_QUEUE.bit_length(), "free places in the queue; at 0 START is refused", JOB_QUEUE),
            Field("scale_space", 24, 5, "free places in the queue of scales", SCALE_QUEUE),
        ),
    ),
    Register("ERRORS", 0x08, Access.W1C, "Errors, each until it is cleared.", flags(*ERROR_FLAGS)),
    Register(
        "ERROR_ENABLE",
        0x0C,
        Access.RW,
        "Errors that set INTERRUPT_STATUS.error.",
        flags(*((name, f"ERRORS.{name}") for name, _ in ERROR_FLAGS), reset=1),
    ),
    Register("INTERRUPT_STATUS", 0x10, Access.W1C, "Reasons to interrupt.", flags(*INTERRUPTS)),
    Register(
        "INTERRUPT_ENABLE",
        0x14,
        Access.RW,
        "Reasons that reach the interrupt line.",
        flags(*((name, f"INTERRUPT_STATUS.{name}") for name, _ in INTERRUPTS)),
    ),
    Register(
        "WATCHDOG",
        0x18,
        Access.RW,
        "Cycles without a transfer after which jobs are aborted.",
        number(REGISTER_BITS, "0: never. Waiting for input, scales and the sink counts"),
    ),
    Register(
        "MODE",
        0x20,
        Access.RW,
        "Mode, shift table, source of the scales.",
        (
            Field("mode", 0, 4, "mode of the payload", values=MODE_NUMBERS, lowest=min(Mode), highest=max(Mode), at_start=True),
            Field(
                "bank",
                8,
                (BANKS - 1).bit_length(),
                "shift table of mode jpeg-act",
                values={f"SHIFTS{bank}": bank for bank in range(BANKS)},
            ),
            Field(
                "scales",
                12,
                max(ScaleSource).bit_length(),
                "source of the scales",
                values={source.name.lower(): int(source) for source in ScaleSource},
                highest=max(ScaleSource),
                at_start=True,
            ),
        ),
    ),
    Register(
        "BEATS",
        0x24,
        Access.RW,
        "Size.",
        count(
            f"rows of 8 values, padding included; 1 to 2\\*\\*{COUNT_BITS} - 1, a multiple of 8 in the modes sfpr+zvc and "
            "autoquantz, of 4 in mx, of 8 \\* ROW_BEATS in jpeg-act, division and actnn",
        ),
    ),
    *(
        Register(name, offset, Access.RW, f"{text}.", count(f"1 to 2\\*\\*{COUNT_BITS} - 1"))
        for name, offset, text in (
            ("ROW_BEATS", 0x28, "Rows of 8 values per row of the matrix"),
            ("CHANNEL_ROWS", 0x2C, "Rows of the matrix per scale"),
        )
    ),
    Register(
        "PAYLOAD_BYTES_LOW",
        0x30,
        Access.RW,
        "Length of the payload.",
        number(REGISTER_BITS, "0 in both halves: not known; else checked by START, and against what comes, modulo 2\\*\\*32"),
        channels=(Channel.DECOMPRESS,),
    ),
    Register(
        "PAYLOAD_BYTES_HIGH",
        0x34,
        Access.RW,
        "Length of the payload.",
        number(REGISTER_BITS, "high half"),
        channels=(Channel.DECOMPRESS,),
    ),
    Register(
        "SCALE",
        0x38,
        Access.WO,
        "Appends a scale to the queue.",
        number(REGISTER_BITS, "float32 pattern: the multiplier k when compressing, the reciprocal r when decompressing"),
    ),
    Register(
        "SCALE_LAST",
        0x3C,
        Access.WO,
        "Appends the last scale of a job.",
        number(REGISTER_BITS, "float32 pattern, as in SCALE"),
    ),
    Register(
        "QUANTIZER",
        0x40,
        Access.RW,
        "Settings of the affine quantiser.",
        (
            Field("bits_log2", 0, 2, "bits per code", values={f"bits{bits}": place for place, bits in enumerate(CODE_BITS)}),
            Field("step_log2", 4, (BASE_BITS - 1).bit_length(), "binary logarithm of a step that is the same for all blocks"),
            Field("stochastic", 8, 1, "round at random instead of to nearest"),
            Field(
                "range",
                9,
                1,
                "range of mode division",
                values={kind.value: place for place, kind in enumerate(RangeKind)},
            ),
            Field("statistics", 10, 1, "mode division, compressing: mean, least and greatest value of every block, no codes"),
        ),
        modes=AFFINE_MODES,
    ),
    Register(
        "SEED",
        0x44,
        Access.RW,
        "Seed of the random numbers.",
        number(REGISTER_BITS, "any number"),
        channels=(Channel.COMPRESS,),
        modes=AFFINE_MODES,
    ),
    Register(
        "SCALE_OFFSET",
        0x48,
        Access.RW,
        "Offset of the scales that are written next.",
        (Field("offset", 0, BASE_BITS, "signed, in units of SFPR's result; used in mode blpa", signed=True),),
        modes=tuple(mode for mode in AFFINE_MODES if mode.has_offsets),
    ),
    Register(
        "CODING",
        0x4C,
        Access.RW,
        "Coder and reconstruction point of mode jpeg-act.",
        (
            Field("coder", 0, max(Coder).bit_length(), "coder of the payload", values={c.label: int(c) for c in Coder}),
            Field(
                "point",
                4,
                POINT_BITS,
                "decompressing: reconstruction point, in eighths of a step",
                highest=MAX_POINT,
                at_start=True,
            ),
        ),
        coder=Coder.GMC,
    ),
    Register(
        "PAYLOAD_CRC",
        0x50,
        Access.RW,
        "Checksum behind the payload.",
        (Field("present", 0, 1, "the payload's CRC-32, least significant byte first, which PAYLOAD_BYTES does not count"),),
        options=("payload_crc",),
    ),
    Register(
        "MX_CODING",
        0x54,
        Access.RW,
        "Format and scales of mode mx.",
        (
            Field(
                "format",
                0,
                (len(MX_FORMATS) - 1).bit_length(),
                "format of the blocks",
                values={name: kind.number for name, kind in MX_FORMATS.items()},
                highest=len(MX_FORMATS) - 1,
                at_start=True,
            ),
            Field(
                "rule",
                4,
                1,
                "compressing: how scales follow from the greatest magnitude of their block",
                values={rule.value: place for place, rule in enumerate(ScaleRule)},
            ),
        ),
        modes=(Mode.MX,),
    ),
    Register(
        "COMPLETION_KEEP",
        0x58,
        Access.RW,
        "Storage of the records of jobs that have ended.",
        flags(
            (
                "keep",
                "records wait until they are taken, and START until there is room; 0: all are thrown away",
            )
        ),
        options=("completions", "dma_bits"),
    ),
    Register(
        "COMPLETION",
        0x5C,
        Access.RO,
        "Oldest record that waits.",
        (
            Field("job", 0, JOB_NUMBER_BITS, "jobs started before this one since the reset, modulo 2\\*\\*16"),
            Field(
                "waiting",
                16,
                max(COMPLETIONS).bit_length(),
                "records that wait; at 0 the registers of records read 0",
            ),
        ),
        options=("completions", "dma_bits"),
    ),
    Register(
        "COMPLETION_BYTES",
        0x60,
        Access.RO,
        "Oldest record: bytes of the payload that crossed the packed port.",
        number(REGISTER_BITS, "without a CRC, modulo 2\\*\\*32"),
        options=("completions", "dma_bits"),
    ),
    Register(
        "COMPLETION_ERRORS",
        0x64,
        Access.RO,
        "Oldest record: errors of the job.",
        tuple(
            Field(name, place, 1, f"ERRORS.{name}, of this job")
            for place, (name, _) in enumerate(ERROR_FLAGS)
            if name in JOB_ERRORS
        ),
        options=("completions", "dma_bits"),
    ),
    Register(
        "COMPLETION_NEXT",
        0x68,
        Access.WO,
        "Goes to the next record.",
        flags(("take", "the oldest record has been read, if there is one")),
        options=("completions", "dma_bits"),
    ),
    Register(
        "JOBS_DONE",
        0x80,
        Access.RO,
        "Counter: jobs that have ended.",
        number(REGISTER_BITS, "modulo 2\\*\\*32"),
    ),
    *(
        Register(f"{name}_{half}", offset + place * REGISTER_BYTES, Access.RO, text, number(REGISTER_BITS, which))
        for name, offset, text in (
            ("CYCLES", 0x84, "Counter: cycles in which the channel was busy."),
            ("VALUES", 0x8C, "Counter: values that crossed the uncompressed port, padding included."),
            ("BYTES", 0x94, "Counter: bytes that crossed the packed port."),
        )
        for place, (half, which) in enumerate(
            (
                ("LOW", "read the low half first"),
                ("HIGH", "high half, kept by the read of the low half"),
            )
        )
    ),
    *(
        Register(name, offset, Access.RO, text, number(REGISTER_BITS, "stops at 2\\*\\*32 - 1"))
        for name, offset, text in (
            (
                "INPUT_STALL",
                0x9C,
                "Counter: busy cycles in which the input was valid and not ready (the unit is slower).",
            ),
            (
                "INPUT_IDLE",
                0xA0,
                "Counter: busy cycles in which the input was ready and not valid (the source is slower).",
            ),
            (
                "OUTPUT_STALL",
                0xA4,
                "Counter: busy cycles in which the output was valid and not ready (the sink is slower).",
            ),
        )
    ),
    *(
        Register(
            f"SHIFTS{bank}",
            0x100 + bank * SHIFT_REGISTERS * REGISTER_BYTES,
            Access.RW,
            "Shift table, in the order of the payload.",
            tuple(
                Field(f"shift{place}", place * NIBBLE_BITS, SHIFT_BITS, f"entry 8 \\* index + {place}")
                for place in range(SHIFTS_PER_REGISTER)
            ),
            count=SHIFT_REGISTERS,
        )
        for bank in range(BANKS)
    ),
)
