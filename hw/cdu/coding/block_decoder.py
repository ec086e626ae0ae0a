"""Decoder of packed blocks to rows of quantised values, the inverse of :class:`~cdu.coding.block_encoder.BlockEncoder`."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.affine import CODE_BITS
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, LANES, VALUE_BITS
from cdu_spec.modes import LOW_BYTES, MASK_BYTES, RANGE_BYTES, Mode

from cdu.coding.brc import decode_row
from cdu.coding.code_packing import code_bytes, unpack_codes
from cdu.coding.zvc import expand, popcount
from cdu.parts.barrel import rotate_right, wrapped
from cdu.parts.streams import registered
from cdu.words import BlockRow, BlockTag, Range, Slice, is_one_of


class BlockDecoder(wiring.Component):
    """Expand packed blocks one after the other to rows of quantised values, one row per cycle.

    Two registers of 72 bytes: one collects the slices of the next block while the present block is read from the other.

    Parameters
    ----------
    config
        ``modes``: decoders that no mode needs are left out. ``slice_bytes``: the width of a slice.

    Ports
    -----
    i
        Stream of :class:`~cdu.words.Slice`.
    o
        Stream of :class:`~cdu.words.BlockRow`. Where a mode with ranges is built in, it carries the range read from the begin
        of the block, unchecked, with exponents above 15 replaced by 15. Rows of affine modes are codes, at the full width of a
        value.

    Latency: 3 cycles from the last slice of a block to its first row. One slice and one row per cycle; a block of 8 rows every
    8 cycles without a bubble, provided that its slices arrive within 8 cycles (within 7, if it has at most 7 slices). Any mask
    is accepted; nothing beyond the block is read.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self, config: CduConfig) -> None:
        self.modes = config.packed_modes
        self.slice_bytes = config.slice_bytes
        self.block_bytes = config.block_bytes
        self.slices = -(-self.block_bytes // self.slice_bytes)
        self.ranged = config.has_ranges
        self.affine_modes = [mode for mode in self.modes if mode.is_affine]
        self.zvc_modes = [mode for mode in self.modes if mode.has_zvc]
        row = BlockRow(ranged=self.ranged)
        super().__init__({"i": In(stream.Signature(Slice(config))), "o": Out(stream.Signature(row))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        slice_bits, block_bits = 8 * self.slice_bytes, 8 * self.block_bytes

        # 1: the slices of a block
        collected = Signal(block_bits, reset_less=True)
        number = Signal(range(self.slices))
        full = Signal()
        turn = Signal()
        part = self.i.payload
        takes = self.i.valid & self.i.ready
        # If slices leave a spare cycle per block, ready of i does not depend on ready of o.
        m.d.comb += self.i.ready.eq(~full | (turn if self.slices >= BLOCK_SIDE else 0))
        for index in range(self.slices):
            with m.If(takes & (number == index)):
                m.d.sync += collected[index * slice_bits : (index + 1) * slice_bits].eq(part["data"])
        with m.If(self.i.ready | turn):
            m.d.sync += full.eq(takes & part["ends"])
        with m.If(takes):
            m.d.sync += number.eq(Mux(part["ends"], 0, number + 1))
        rows = registered(m, takes, part["rows"], "rows")
        collected_tag = registered(m, takes, part["tag"].as_value(), "collected_tag")

        # 2: the present block, row by row
        valid = Signal()
        left = Signal(range(BLOCK_SIDE + 1))
        tag: Any = Signal(BlockTag(), reset_less=True)
        row: Any = Signal(self.o.payload.shape(), reset_less=True)
        block = Signal(block_bits, reset_less=True)
        masks: Any = Signal(data.ArrayLayout(LANES, BLOCK_SIDE), reset_less=True)  # of the rows to come
        place = Signal(range(self.block_bytes + 1))
        advance = Signal()
        final = Signal()
        m.d.comb += [
            advance.eq(~self.o.valid | self.o.ready),
            final.eq(left == 1),
            turn.eq(full & (~valid | (advance & final))),
            self.o.payload.eq(row),
        ]
        values, count = self._row(m, tag, masks[0], _eight_bytes(m, block, place))
        with m.If(turn):
            m.d.sync += [
                block.eq(collected),
                masks.eq(collected[: 8 * MASK_BYTES]),
                tag.eq(collected_tag),
                left.eq(rows),
                place.eq(self._begin(data.View(BlockTag(), collected_tag))),
                valid.eq(1),
            ]
        with m.Elif(valid & advance):
            m.d.sync += [
                masks.eq(masks.as_value() >> LANES),
                left.eq(left - 1),
                place.eq(place + count),
                valid.eq(~final),
            ]
        with m.If(advance):
            m.d.sync += [
                self.o.valid.eq(valid),
                row["values"].as_value().eq(values),
                row["ends"].eq(final),
                row["tag"].eq(tag),
            ]
            if self.ranged:
                m.d.sync += row["range"].eq(_range(block))
        return m

    def _begin(self, tag: Any) -> Value:
        """Return the byte at which the first row begins, behind the mask or the range if the block has one."""
        begin: Value = Mux(is_one_of(tag["mode"], self.zvc_modes), MASK_BYTES, 0)
        if self.ranged:
            channel = (tag["mode"] == Mode.DIVISION) & ~tag["how"]["affine"]["block_range"]
            begin = Mux(tag["heads"], Mux(channel, LOW_BYTES, RANGE_BYTES), begin)
        return begin

    def _row(self, m: Module, tag: Any, mask: Value, following: Value) -> tuple[Value, Value]:
        """Return the values of a row and the number of bytes that they take of the ``following`` 8."""
        mode = tag["mode"]
        kept, taken = following, Value.cast(LANES)
        if self.affine_modes:
            kept = unpack_codes(m, kept, self._bits_log2(tag), "unpacked")
        if self.zvc_modes:
            present = Signal(LANES)
            m.d.comb += present.eq(mask | (~is_one_of(mode, self.zvc_modes)).replicate(LANES))
            kept, taken = Cat(*expand(m, kept, present)), popcount(present)
        if self.affine_modes:
            taken = code_bytes(m, taken, self._bits_log2(tag), "row_bytes")
        values = Signal(LANES * VALUE_BITS)
        count = Signal(range(LANES + 1))
        m.d.comb += [values.eq(kept), count.eq(taken)]
        if Mode.BRC in self.modes:
            with m.If(mode == Mode.BRC):
                codes = (Cat(bit, Const(0, VALUE_BITS - 1)) for bit in decode_row(following[:8]))
                m.d.comb += [values.eq(Cat(*codes)), count.eq(1)]
        if Mode.AUTOQUANTZ not in self.modes:
            return values, count
        # Signed values again: adding half the number of codes inverts the highest bit.
        highest = Signal(VALUE_BITS)
        with m.If(mode == Mode.AUTOQUANTZ), m.Switch(tag["how"]["affine"]["bits_log2"]):
            for number, width in enumerate(CODE_BITS):
                with m.Case(number):
                    m.d.comb += highest.eq(1 << (width - 1))
        return values ^ highest.replicate(LANES), count

    def _bits_log2(self, tag: Any) -> Value:
        """Return the binary logarithm of the number of bits per value."""
        return Mux(is_one_of(tag["mode"], self.affine_modes), tag["how"]["affine"]["bits_log2"], CODE_BITS.index(VALUE_BITS))


def _range(block: Value) -> Value:
    """Return the range at the begin of a block; its exponent is stored in a byte, of which only the low bits are used."""
    used = Range().size
    exponent = Range()["exponent"]
    beyond = block[used : 8 * RANGE_BYTES].any()
    return Cat(block[: exponent.offset], block[exponent.offset : used] | beyond.replicate(exponent.width))


def _eight_bytes(m: Module, block: Value, place: Value) -> Value:
    """Return the 8 bytes from ``place`` on: each is picked from one of two neighbouring groups, then they are rotated."""
    groups = len(block) // (LANES * VALUE_BITS)
    group, byte = place[3:], place[:3]
    next_group = wrapped(byte, LANES)
    picked = []
    for lane in range(LANES):
        source = Signal(range(groups + 1), name=f"source{lane}")
        content = Signal(VALUE_BITS, name=f"content{lane}")
        m.d.comb += source.eq(group + next_group[lane])
        with m.Switch(source):
            for index in range(groups):
                with m.Case(index):
                    m.d.comb += content.eq(block.word_select(LANES * index + lane, VALUE_BITS))
            with m.Default():
                m.d.comb += content.eq(0)  # behind the last byte of the longest block
        picked.append(content)
    return rotate_right(m, Cat(*picked), byte, "turned")
