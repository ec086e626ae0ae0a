"""Payload layouts of the streams that connect the parts of an array: words of values, of blocks and of packed bytes.

P is ``config.port_beats``, rows of 8 values per word; M is ``config.packed_bytes``, bytes per word of a packed port; S is
``config.slice_bytes``.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Const, Module, Value, signed
from amaranth.lib import data, stream
from amaranth.utils import exact_log2
from cdu_spec.affine import BASE_BITS, MANTISSA_BITS, MAX_EXPONENT, SEED_BITS
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES, SHIFT_BITS, TILE_BLOCKS, VALUE_BITS
from cdu_spec.modes import Coder, Dtype, Mode
from cdu_spec.reconstruction import POINT_BITS
from cdu_spec.register_types import BANKS

from cdu.parts.mx_words import FORMAT_BITS
from cdu.parts.streams import BEATS_BITS, float_beat, lanes
from cdu.parts.width_converter import Bytes

#: Bits of a scale, a float32 pattern.
SCALE_BITS = Dtype.FP32.bits

#: The 64 shifts in the order of the coefficients: entry ``8 * column + row``.
ShiftTable = data.ArrayLayout(SHIFT_BITS, BLOCK_VALUES)
#: The tables from which every block selects one.
ShiftBanks = data.ArrayLayout(ShiftTable, BANKS)


class Job(data.StructLayout):
    """One tensor, in the terms of :class:`cdu_spec.MatrixView`.

    ``mode``; ``bank``, the shift table that a jpeg-act job uses; ``beats``, rows of 8 values of the whole job, padding
    included; ``row_beats``, the same per row of the matrix; ``channel_rows``, rows of the matrix per scale;
    ``how``, settings of the mode; ``seed`` of the affine modes. Counts are at least 1; ``beats`` is a whole number of blocks in
    mode mx and in modes with ZVC, and of strips in modes with tiles.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "mode": Mode,
                "bank": 1,
                "beats": BEATS_BITS,
                "row_beats": BEATS_BITS,
                "channel_rows": BEATS_BITS,
                "how": How(),
                "seed": SEED_BITS,
            }
        )


class Scale(data.StructLayout):
    """A scale (float32 pattern), the ``offset`` of its channel (used in mode blpa), and whether it is the last of its job."""

    def __init__(self) -> None:
        super().__init__({"value": SCALE_BITS, "offset": signed(BASE_BITS), "last": 1})


class ValueWord(data.StructLayout):
    """Up to P beats of floating-point values as bit patterns, in the order of docs/reference/bitstream.md.

    The word begins with ``count`` beats (0..P), followed by zeros. All words of a job but the last are full; that has
    ``last``.
    """

    def __init__(self, config: CduConfig) -> None:
        beats = config.port_beats
        values = data.ArrayLayout(float_beat(config.dtype), beats)
        super().__init__({"values": values, "count": range(beats + 1), "last": 1})


class MxWord(data.StructLayout):
    """A :class:`ValueWord` of mode mx, and the :class:`Scaling` of its job."""

    def __init__(self, config: CduConfig) -> None:
        super().__init__({name: field.shape for name, field in ValueWord(config)} | {"scaling": Scaling()})


def value_bytes(config: CduConfig) -> int:
    """Return the bytes of a word at a value port."""
    return config.port_beats * config.beat_bits // 8


def bytes_of_beats(config: CduConfig, beats: Value) -> Value:
    """Return the bytes of ``beats`` rows of 8 values at a value port."""
    return beats.shift_left(_beat_log2(config))


def beats_of_bytes(config: CduConfig, count: Value) -> Value:
    """Return the number of rows of 8 values that ``count`` bytes belong to, an incomplete row included."""
    shift = _beat_log2(config)
    return (count + ((1 << shift) - 1))[shift:]


def part_of_beat(config: CduConfig, count: Value) -> Value:
    """Return whether ``count`` bytes end within a row of 8 values."""
    return count[: _beat_log2(config)].any()


def _beat_log2(config: CduConfig) -> int:
    return exact_log2(config.beat_bits // 8)


class PackedWord(Bytes):
    """Up to M bytes of payload, first byte in the lowest bits, zeros behind ``count`` bytes; ``last`` ends a job.

    A unit writes full words, apart from the last one of a job; it reads words of any count, 0 included.
    """

    def __init__(self, config: CduConfig) -> None:
        super().__init__(config.packed_bytes)


class Quantizer(data.StructLayout):
    """Settings of the quantiser of the affine modes (:class:`cdu_spec.affine.AffineSettings`).

    ``bits_log2`` (1, 2, 4, 8 bits are 0 to 3), ``step_log2``, ``stochastic``, ``block_range``, ``statistics``.
    """

    def __init__(self) -> None:
        flags = {"stochastic": 1, "block_range": 1, "statistics": 1}
        super().__init__({"bits_log2": 2, "step_log2": range(BASE_BITS), **flags})


class Coding(data.StructLayout):
    """Settings of mode jpeg-act's coefficients: their ``coder``, and reconstruction ``point`` in eighths of a step."""

    def __init__(self) -> None:
        super().__init__({"coder": Coder, "point": POINT_BITS})


class Scaling(data.StructLayout):
    """Settings of mode mx: number of the ``format``, and whether the scale rule is ``rceil``, which decoders ignore."""

    def __init__(self) -> None:
        super().__init__({"format": FORMAT_BITS, "rceil": 1})


class How(data.UnionLayout):
    """Settings with which a mode codes its blocks, in the same bits for all modes (:data:`cdu_spec.coding.How`).

    ``affine`` in affine modes, ``shifts`` in mode jpeg-act of units with GMC, ``mx`` in mode mx; ignored in other modes.
    """

    def __init__(self) -> None:
        super().__init__({"affine": Quantizer(), "shifts": Coding(), "mx": Scaling()})


def is_gmc(config: CduConfig, mode: Value, how: Any) -> Value:
    """Return whether the coefficients of a block of this mode and this :class:`How` are coded with GMC."""
    if not config.has_gmc:
        return Const(0, 1)
    gmc: Value = (mode == Mode.JPEG_ACT) & (how["shifts"]["coder"] == Coder.GMC)
    return gmc


class Range(data.StructLayout):
    """Range of a block of an affine mode, the fields of its header in the payload (docs/reference/bitstream.md).

    ``low``: the block's mean in division with the channel's range, else its least value. ``mantissa`` (1..255) and
    ``exponent`` (0..9) of the step, unused in division with the channel's range.
    """

    def __init__(self) -> None:
        super().__init__({"low": signed(BASE_BITS), "mantissa": MANTISSA_BITS, "exponent": range(MAX_EXPONENT + 1)})


class BlockTag(data.StructLayout):
    """Tag that accompanies a block from one end of the array to the other.

    ``mode``; shift ``bank``; ``last`` block of its job; ``how``, settings of its mode; ``heads``: in the payload
    the block begins with its range, in mode mx with a scale.
    """

    def __init__(self) -> None:
        super().__init__({"mode": Mode, "bank": 1, "last": 1, "how": How(), "heads": 1})


class BlockWord(data.StructLayout):
    """Up to P consecutive rows of one block of quantised values.

    The word begins with ``count`` rows (1..P); ``ends`` marks the last word of the block, the only one that may be partial. A
    block has 8 rows, apart from the last one of a job in modes without masks and tiles (1..8). ``tag`` is the same in all
    words of a block.

    Parameters
    ----------
    config
        P.
    bits
        Bits of a value: 8, or ``config.value_bits`` when compressing, before the affine quantiser.
    ranged
        Whether words have the block's ``range``, the same in all words of a block.
    """

    def __init__(self, config: CduConfig, bits: int = VALUE_BITS, *, ranged: bool = False) -> None:
        beats = config.port_beats
        super().__init__(
            {
                "values": data.ArrayLayout(lanes(bits), beats),
                "count": range(beats + 1),
                "ends": 1,
                "tag": BlockTag(),
                **({"range": Range()} if ranged else {}),
            },
        )


class TileWord(data.StructLayout):
    """A :class:`BlockWord` and the number of ``blocks`` (1..4) side by side in its tile.

    Before the alignment buffer of a compressor and behind that of a decompressor the words of a tile go through its rows (row
    0 of block 0, row 0 of block 1, ...), ``ends`` marks the last word of the tile, and ``tag.last`` is set in all words of the
    last tile of a job. In between, words go block by block. In modes without tiles a tile is one block.
    """

    def __init__(self, config: CduConfig, bits: int = VALUE_BITS) -> None:
        word = {name: field.shape for name, field in BlockWord(config, bits)}
        super().__init__({**word, "blocks": range(TILE_BLOCKS + 1)})


class BlockRow(data.StructLayout):
    """One row of a block on its way through a lane; ``ends`` marks the last row of the block.

    Parameters
    ----------
    bits, ranged
        As in :class:`BlockWord`.
    drawn
        Whether rows have the inputs of random numbers: the job's ``seed`` and the ``number`` of the block in its job.
    """

    def __init__(self, bits: int = VALUE_BITS, *, ranged: bool = False, drawn: bool = False) -> None:
        super().__init__(
            {
                "values": lanes(bits),
                "ends": 1,
                "tag": BlockTag(),
                **({"range": Range()} if ranged else {}),
                **({"seed": SEED_BITS, "number": BEATS_BITS - 3} if drawn else {}),
            }
        )


class Slice(data.StructLayout):
    """1 to S bytes of one packed block, first byte lowest, zeros behind them; all slices of a block but the last are full.

    ``ends`` marks the last slice of the block. ``tag`` is the same in all its slices. ``rows`` (1..8) is the number of rows of
    the block.
    """

    def __init__(self, config: CduConfig) -> None:
        size = config.slice_bytes
        super().__init__(
            {"data": 8 * size, "count": range(size + 1), "ends": 1, "rows": range(BLOCK_SIDE + 1), "tag": BlockTag()},
        )


class JobEvents(data.StructLayout):
    """Errors in the data of a job, each high for one cycle when it occurs.

    ``early_last``: the input ended too early, zeros replace the missing data. ``late_last``: the input was too long, the rest
    was dropped. ``nonfinite``: a value was infinite or NaN. ``scale_missing``: the scales ended too early, 1.0 replaces the
    missing ones. ``scale_surplus``: there were more scales than channels, the rest was dropped. ``bad_head``: a block began
    with a range that is not allowed.
    """

    def __init__(self) -> None:
        names = ("early_last", "late_last", "nonfinite", "scale_missing", "scale_surplus", "bad_head")
        super().__init__(dict.fromkeys(names, 1))


class PortEvents(data.StructLayout):
    """Errors at the ports of a direction, each high for one cycle when it occurs.

    ``keep``: a bad TKEEP. ``bad_scale``, ``scale_source``: see :class:`~cdu.values.scale_join.ScaleJoin`. ``payload_length``:
    see :class:`~cdu.control.payload_length.PayloadLength`. ``bad_crc``: see :class:`~cdu.integrity.crc_checker.CrcChecker`.
    """

    def __init__(self) -> None:
        super().__init__(dict.fromkeys(("keep", "bad_scale", "scale_source", "payload_length", "bad_crc"), 1))


def packer_word(config: CduConfig) -> BlockWord:
    """Return the layout of a word on its way to the lanes: values from SFPR, with their block's range if a mode has ranges."""
    return BlockWord(config, config.value_bits, ranged=config.has_ranges)


def lane_row(config: CduConfig) -> BlockRow:
    """Return the layout of a row of :func:`packer_word`, with the inputs of random numbers if a mode uses them."""
    return BlockRow(config.value_bits, ranged=config.has_ranges, drawn=config.draws)


def join_jobs(m: Module, config: CduConfig, source: stream.Interface, sink: stream.Interface) -> None:
    """Connect streams of :class:`Job`; fields that no built mode uses are constant, so that they cost no gates.

    ``sink`` has as many bits of the mode as the built modes need.
    """
    job, seen = source.payload, sink.payload
    m.d.comb += [sink.valid.eq(source.valid), source.ready.eq(sink.ready), seen.eq(job)]
    m.d.comb += seen.mode.eq(job.mode[: max(config.built_modes).bit_length()])
    if not config.has_affine:
        m.d.comb += [seen.how.eq(0), seen.seed.eq(0)]
        if config.has_gmc:
            m.d.comb += seen.how.shifts.eq(job.how.shifts)
        if config.has_mx:
            m.d.comb += seen.how.mx.eq(job.how.mx)


def is_one_of(value: Value, others: Iterable[Mode | Coder]) -> Value:
    """Return whether ``value``, a mode or coder, is one of ``others``."""
    return reduce(or_, (value == other for other in others), Const(0))


def gives_statistics(config: CduConfig, tag: Any) -> Value:
    """Return whether a block of this :class:`BlockTag` is packed as its statistics."""
    if Mode.DIVISION not in config.built_modes:
        return Const(0, 1)
    statistics: Value = (tag["mode"] == Mode.DIVISION) & tag["how"]["affine"]["statistics"]
    return statistics
