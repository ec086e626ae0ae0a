"""Performance model of a unit: cycles of a job by shape, mode, bytes of the payload and latency of memory.

The model is ``cdu_cycles.hpp``, which ``cdu generate`` writes beside NAME.v with two files that it includes and the numbers of
the unit, NAME_timing.hpp. This module makes these numbers, from the configuration and :mod:`cdu_spec.latencies`, and compiles
the same files for Python once per machine.
"""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from cdu_spec import latencies
from cdu_spec.bitstream import CRC_BYTES
from cdu_spec.config import CduConfig
from cdu_spec.dma import MEMORY_ADDRESS_BITS, read_bursts, read_words, scale_words, tensor_extents, unanswered_bursts
from cdu_spec.geometry import LANES, TILE_BLOCKS
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import MASK_BYTES, Coder, Mode
from cdu_spec.ports import scale_port_bytes
from cdu_spec.register_types import COUNT_BITS, SHIFT_REGISTERS, Channel
from cdu_tools import cache as built
from cdu_tools.compilers import cpp_compiler
from cdu_tools.errors import UserError
from cdu_tools.texts import extents

#: Sources of the model, by their names beside a generated unit.
SOURCES = {f"cdu_{path.name}": path for path in sorted((Path(__file__).parent / "c").glob("cycles*.hpp"))}

_MODES = 16
#: Most rows of 8 values that a unit counts, and cycles of latency with which no number overflows.
_MOST_ROWS, _MOST_LATENCY = (1 << COUNT_BITS) - 1, (1 << 32) - 1
_OPTIONS = ("-O2", "-std=c++17", "-fPIC", "-shared", "-Wall", "-Wextra")
_DOOR = """\
#include "cdu_cycles.hpp"
static_assert(sizeof(cdu::UnitTiming) == UNIT_BYTES && sizeof(cdu::JobTiming) == JOB_BYTES, "Python has other members");
extern "C" uint64_t behind_engine(const cdu::UnitTiming *unit, const cdu::JobTiming *job, uint64_t latency) {
    return cdu::cycles(*unit, *job, latency);
}
extern "C" uint64_t alone(const cdu::UnitTiming *unit, const cdu::JobTiming *job) { return cdu::cycles(*unit, *job); }
"""

#: Words and bursts that a direction of an engine may have in progress.
_IN_PROGRESS = (read_words, read_bursts, scale_words, unanswered_bursts)

_Number = ctypes.c_uint32
_Pair = _Number * len(Channel)


def _numbers(*names: str) -> tuple[tuple[str, Any], ...]:
    return tuple((name, _Number) for name in names)


class _Mode(ctypes.Structure):
    """``ModeTiming`` of cdu_cycles_unit.hpp."""

    _fields_ = (
        *_numbers(
            "built", "tiles", "flat", "gathers", "repeats", "scale_bytes", "whole_rows", "pass_rows", "slice_bytes", "looks"
        ),
        ("start", _Pair),
        ("opens", _Number),
        ("passes", _Pair),
        ("gmc", _Number),
        ("to_values", _Number),
    )


class _Unit(ctypes.Structure):
    """``UnitTiming`` of cdu_cycles_unit.hpp."""

    _fields_ = (
        *_numbers("cdus", "buffered", "value_bytes", "port_rows", "packed_bytes"),
        *_numbers("memory_bytes", "memory_words", "tensor_bursts", "scale_words", "unanswered"),
        *_numbers("sender", "receiver", "scales", "planned"),
        ("modes", _Mode * _MODES),
    )


class _Job(ctypes.Structure):
    """``JobTiming`` of cdu_cycles_unit.hpp."""

    _fields_ = (
        *_numbers("direction", "mode"),
        *((name, ctypes.c_uint64) for name in ("n", "c", "h", "w", "payload_bytes", "tensor", "payload", "scales")),
        ("gmc", _Number),
    )


def job_cycles(
    config: CduConfig,
    channel: Channel,
    mode: Mode,
    shape: Sequence[int],
    payload_bytes: int,
    latency: int | None = None,
    *,
    coder: Coder = Coder.ZVC,
    addresses: tuple[int, int, int] = (0, 0, 0),
) -> int:
    """Return the cycles of a job of a tensor in row-major order, with no other job under way.

    With a latency these are the ``cycles`` of the job's record behind the DMA engine, from START to the last byte in memory.
    Without one they are those of the unit alone, from the first word at its port to the last one, when the job has had its
    START and all ports move whenever the unit can. All blocks of a payload count as equally long.

    Parameters
    ----------
    config
        The unit. Half duplex takes what full duplex does but for its transform.
    channel, mode
        Direction and mode of the job.
    shape
        Shape of the tensor, as in :class:`~cdu_spec.matrix_view.MatrixView`: at most 2**26 - 1 rows of 8 values with padding.
    payload_bytes
        Bytes of the payload with its CRC if it has one: 1 to those of the padded values with a bit more for each, and 4.
    latency
        Cycles beyond the least that memory takes to answer, 0 to 2**32 - 1; None for the unit without its engine.
    coder
        Coder of the blocks in mode jpeg-act.
    addresses
        Addresses of tensor, payload and scales, below 2**40.

    Raises UserError for a mode or a coder that the unit does not have, decompression of blocks of GMC, other shapes, lengths,
    addresses and latencies, a latency for a unit without an engine, and streams with clocks of their own; MissingToolError
    without a C++ compiler.
    """
    if mode not in config.built_modes:
        raise UserError(f"unit {config.unit_name} has no mode {mode.label}: use one of {', '.join(config.modes)}")
    if mode.has_dct and coder not in config.built_coders:
        raise UserError(f"unit {config.unit_name} has no coder {coder.label}: use one of {', '.join(config.coders)}")
    if not _is_modelled(config):
        raise UserError(f"own_clocks = {', '.join(config.own_clocks)} is not modelled: use none, or registers")
    gmc = mode.has_dct and coder is Coder.GMC
    if gmc and channel is Channel.DECOMPRESS:
        raise UserError("decompression of coder gmc is not modelled, because its rate depends on the values: use coder zvc")
    _check(config, mode, shape, payload_bytes, latency, addresses)
    job = _Job(list(Channel).index(channel), mode, *tensor_extents(shape, mode), payload_bytes, *addresses, gmc)
    unit = ctypes.byref(_unit(config))
    if latency is None:
        return int(_library().alone(unit, ctypes.byref(job)))
    if not config.dma_bits:
        raise UserError(f"unit {config.unit_name} has no DMA engine: use a configuration with dma_bits, or no latency")
    return int(_library().behind_engine(unit, ctypes.byref(job), ctypes.c_uint64(latency)))


def _check(
    config: CduConfig, mode: Mode, shape: Sequence[int], payload_bytes: int, latency: int | None, addresses: Sequence[int]
) -> None:
    """Raise UserError for numbers that no job has."""
    if not shape or min(shape) < 1:
        raise UserError(f"a tensor of shape {extents(shape)} is not allowed: use one or more extents, each 1 or more")
    try:
        rows = MatrixView.of(shape, mode).beats
    except ValueError as error:
        raise UserError(str(error)) from None
    if rows > _MOST_ROWS:
        raise UserError(
            f"a tensor of shape {extents(shape)} has {rows} rows of 8 values with its padding, and a job takes {_MOST_ROWS}: "
            "divide the tensor"
        )
    most = rows * (LANES * config.dtype.bits // 8 + 1) + CRC_BYTES
    if not 1 <= payload_bytes <= most:
        raise UserError(f"a payload of {payload_bytes} bytes is not allowed: use 1 to {most} for shape {extents(shape)}")
    if latency is not None and not 0 <= latency <= _MOST_LATENCY:
        raise UserError(f"a latency of {latency} cycles is not allowed: use 0 to {_MOST_LATENCY}")
    for name, address, size in zip(("tensor", "payload", "scales"), addresses, (1, payload_bytes, 1), strict=True):
        if not 0 <= address <= (1 << MEMORY_ADDRESS_BITS) - size:
            raise UserError(f"address {address:#x} of the {name} is not allowed: use 0 to 2**{MEMORY_ADDRESS_BITS} - {size}")


def cycles_files(config: CduConfig, unit: str) -> dict[str, str]:
    """Return the text of the model and of a unit's numbers, by the names of their files; none for a unit not modelled."""
    if not _is_modelled(config):
        return {}
    numbers = [f"    // {name}\n    {_written(value)}," for name, value in _members(_unit(config))]
    header = "\n".join(
        [
            f"// Numbers of unit {unit} for the performance model of cdu_cycles.hpp, made by cdu generate.",
            f"#ifndef {unit.upper()}_TIMING_HPP\n#define {unit.upper()}_TIMING_HPP\n",
            '#include "cdu_cycles.hpp"\n',
            "namespace cdu {",
            f"constexpr UnitTiming {unit}_timing = {{",
            *numbers,
            "};\n}  // namespace cdu\n\n#endif\n",
        ]
    )
    return _sources() | {f"{unit}_timing.hpp": header}


def _is_modelled(config: CduConfig) -> bool:
    """Return whether streams have the clock of the unit."""
    return not set(config.own_clocks) - {"registers"}


def _sources() -> dict[str, str]:
    return {name: path.read_text(encoding="utf-8") for name, path in SOURCES.items()}


def _members(structure: ctypes.Structure) -> Iterator[tuple[str, Any]]:
    for name, *_ in structure._fields_:
        yield name, getattr(structure, name)


def _written(value: Any) -> str:
    """Return a number, an array or a structure as C++ initialises it."""
    if isinstance(value, int):
        return str(value)
    parts = [part for _, part in _members(value)] if isinstance(value, ctypes.Structure) else value
    return f"{{{', '.join(_written(part) for part in parts)}}}"


@cache
def _unit(config: CduConfig) -> _Unit:
    """Return the numbers of a unit."""
    engine = config.dma_bits
    unit = _Unit(
        *(config.cdus, config.has_tiles, config.dtype.bits // 8, config.port_beats, config.packed_bytes),
        *((engine // 8, *(count(config) for count in _IN_PROGRESS)) if engine else (0,) * (1 + len(_IN_PROGRESS))),
        *(latencies.SENDER, latencies.RECEIVER, latencies.scales(config), 1 + 2 * config.register_slices),
    )
    for mode in config.built_modes:
        unit.modes[mode] = _Mode(
            *(True, mode.in_tiles and not mode.is_flat, mode.is_flat, mode.in_tiles, mode.has_ranges),
            scale_port_bytes(mode.has_offsets) if mode.has_scales else 0,
            TILE_BLOCKS * mode.whole_beats if mode is Mode.ACTNN else mode.whole_beats,
            _pass_rows(config, mode),
            config.packed_bytes if mode is Mode.BYPASS else config.slice_bytes,
            MASK_BYTES if mode.has_zvc else 0,
            _Pair(*(_start(config, channel, mode) for channel in Channel)),
            latencies.job_check(mode) + 2 * latencies.REGISTER_ACCESS + 2,
            _Pair(latencies.compression(config, mode), latencies.decompression(config, mode)),
            latencies.GMC_ENCODER - latencies.BLOCK_ENCODER,
            latencies.to_values(config, mode),
        )
    return unit


def _pass_rows(config: CduConfig, mode: Mode) -> int:
    """Return the rows of 8 values that pass at once beside the CDUs, or 0 for a mode of the CDUs."""
    if mode is Mode.MX:
        return config.mx_rows
    row_bytes = LANES * config.dtype.bits // 8
    return max(1, min(config.port_beats, config.packed_bytes // row_bytes)) if mode is Mode.BYPASS else 0


def _start(config: CduConfig, channel: Channel, mode: Mode) -> int:
    """Return the cycles from the first request for a job to its START: the engine writes the job's registers."""
    compresses = channel is Channel.COMPRESS
    count = 5 if compresses else 7  # MODE, the counts and COMPLETION_KEEP; the length of the payload
    count += config.has_gmc + config.has_affine * (1 + compresses) + config.has_mx + config.payload_crc
    count += SHIFT_REGISTERS if mode.has_dct else 0
    return latencies.FIRST_WRITE[channel] + latencies.REGISTER_ACCESS * count


@cache
def _library() -> Any:
    """Return the compiled model; MissingToolError without a compiler, UserError for one that fails."""
    program = cpp_compiler("the performance model")
    sizes = f"#define UNIT_BYTES {ctypes.sizeof(_Unit)}\n#define JOB_BYTES {ctypes.sizeof(_Job)}\n"
    texts = _sources() | {"door.cpp": sizes + _DOOR}

    def make(folder: Path) -> None:
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
        command = [program, *_OPTIONS, "door.cpp", "-o", "cycles.so"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            reason = next((line for line in done.stderr.splitlines() if "error" in line), f"exit code {done.returncode}")
            raise UserError(f"the performance model cannot be compiled by {program} ({reason}): use another $CXX")

    library = built.load_library(built.entry("cycles", [texts, _OPTIONS, program], make) / "cycles.so")
    library.behind_engine.restype = library.alone.restype = ctypes.c_uint64
    return library
