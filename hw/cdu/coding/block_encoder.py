"""Encoder of rows of quantised values to packed blocks: ZVC, BRC, plain bytes or codes (JPEG-ACT, "ZVC" and "BRC")."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.affine import CODE_BITS
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, LANES, VALUE_BITS
from cdu_spec.modes import LOW_BYTES, MASK_BYTES, STATISTICS_BYTES, STEP_BYTES, Mode

from cdu.coding.brc import encode_row
from cdu.coding.code_packing import code_bytes, pack_codes
from cdu.coding.zvc import compact, popcount
from cdu.parts.barrel import rotate_left, wrapped
from cdu.parts.streams import registered
from cdu.words import BlockRow, BlockTag, Range, Slice, gives_statistics, is_one_of


class BlockEncoder(wiring.Component):
    """Pack the bytes of one block after the other, a row per cycle.

    Two registers of 72 bytes: rows are appended to one, while the finished block before leaves from the other in slices. The
    mask precedes the values and is complete with them; so does the range of a block that ``heads``. Codes of the affine modes
    are packed into the bytes of a row. Statistics have only the 6 bytes in row 0.

    Parameters
    ----------
    config
        ``modes``: coders that no mode needs are left out. ``slice_bytes``: the width of a slice.

    Ports
    -----
    i
        Stream of :class:`~cdu.words.BlockRow`, with ranges if a mode has them; the range of the first row is used. Blocks have
        8 rows, in modes without masks and tiles 1 to 8.
    o
        Stream of :class:`~cdu.words.Slice`.

    Latency: 3 cycles from the last row of a block to its first slice. One row and one slice per cycle, a block of 8 rows every
    8 cycles without a bubble as long as its slices leave in 8 cycles.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self, config: CduConfig) -> None:
        self.config = config
        self.modes = config.packed_modes
        self.slice_bytes = config.slice_bytes
        self.block_bytes = config.block_bytes
        self.ranged = config.has_ranges
        row = BlockRow(ranged=self.ranged)
        super().__init__({"i": In(stream.Signature(row)), "o": Out(stream.Signature(Slice(config)))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        advance = Signal()
        m.d.comb += self.i.ready.eq(advance)

        # 1: the bytes that are kept of a row
        row = self.i.payload
        mask, kept, count = self._kept(m, row)
        valid = Signal()
        ends = Signal()
        with m.If(advance):
            m.d.sync += [valid.eq(self.i.valid), ends.eq(row["ends"])]
        bits = registered(m, advance, kept, "kept_bytes")
        length = registered(m, advance, count, "kept_count")
        mask = registered(m, advance, mask, "row_mask")
        tag: Any = Signal(BlockTag())
        with m.If(advance):
            m.d.sync += tag.eq(row["tag"])
        head, head_bytes = self._head(m, advance, row, tag, bits)
        zvc = Signal()
        m.d.comb += zvc.eq(is_one_of(tag["mode"], [mode for mode in self.modes if mode.has_zvc]))

        # 2: appended to the block. A row touches at most two neighbouring groups, each of its bytes one of them.
        number = Signal(range(BLOCK_SIDE))
        end = Signal(range(self.block_bytes + 1))
        place = Signal.like(end)
        after = Signal.like(end)
        m.d.comb += [
            place.eq(Mux(number == 0, Mux(zvc, MASK_BYTES, head_bytes), end)),
            after.eq(place + length),
        ]
        # Groups of 8 bytes, the first one the mask in modes with ZVC
        groups = range(self.block_bytes // LANES)
        block = [[Signal(VALUE_BITS, name=f"byte{g}_{b}", reset_less=True) for b in range(LANES)] for g in groups]
        group, byte = place[3:], place[:3]
        rotated = rotate_left(m, bits, byte, "rotated")
        next_group = wrapped(byte, LANES)
        moves = advance & valid
        for lane in range(LANES):
            target = Signal(range(len(groups) + 1), name=f"target{lane}")
            m.d.comb += target.eq(group + next_group[lane])
            for index in groups:
                with m.If(moves & (target == index)):
                    m.d.sync += block[index][lane].eq(rotated.word_select(lane, VALUE_BITS))
            with m.If(moves & zvc & (number == lane)):
                m.d.sync += block[0][lane].eq(mask)
        for index, byte_of_head in enumerate(head):
            with m.If(moves & (number == 0) & (head_bytes > index)):
                m.d.sync += block[0][index].eq(byte_of_head)
        full = Signal()
        with m.If(advance):
            m.d.sync += full.eq(valid & ends)
        with m.If(moves):
            m.d.sync += [end.eq(after), number.eq(Mux(ends, 0, number + 1))]
        rows = registered(m, moves, (number + 1)[: len(self.o.payload["rows"])], "rows")
        block_tag = registered(m, moves, tag.as_value(), "block_tag")

        # 3: out slice by slice
        leaving = Signal(8 * self.block_bytes, reset_less=True)
        left = Signal(range(self.block_bytes + 1))
        out = self.o.payload
        final = Signal()
        free = ~self.o.valid | (self.o.ready & final)
        m.d.comb += [
            advance.eq(~full | free),
            final.eq(left <= self.slice_bytes),
            out["ends"].eq(final),
            out["count"].eq(Mux(final, left, self.slice_bytes)),
            out["data"].eq(_front(leaving, left, self.slice_bytes)),
        ]
        with m.If(free):
            m.d.sync += [self.o.valid.eq(full), leaving.eq(Cat(*block)), left.eq(end)]
        with m.Elif(self.o.ready):
            m.d.sync += [leaving.eq(leaving >> (8 * self.slice_bytes)), left.eq(left - self.slice_bytes)]
        m.d.comb += [
            out["rows"].eq(registered(m, free, rows, "leaving_rows")),
            out["tag"].eq(registered(m, free, block_tag, "leaving_tag")),
        ]
        return m

    def _head(self, m: Module, advance: Value, row: Any, tag: Any, taken: Value) -> tuple[list[Value], Value]:
        """Return the bytes before the first value of the block of the row ``taken``, and the number of them that are used."""
        if not self.ranged:
            return [], Const(0, 1)
        found: Any = data.View(Range(), registered(m, advance, Value.cast(row["range"]), "range"))
        by_mean = Const(0, 1)
        if Mode.DIVISION in self.modes:
            by_mean = (tag["mode"] == Mode.DIVISION) & ~tag["how"]["affine"]["block_range"]
        size = Mux(tag["heads"], Mux(by_mean, LOW_BYTES, LOW_BYTES + STEP_BYTES), 0)
        low = [found.low.as_unsigned().word_select(place, VALUE_BITS) for place in range(LOW_BYTES)]
        head: list[Value] = [*low, found.mantissa, found.exponent]
        if Mode.DIVISION not in self.modes:
            return head, size
        statistics = gives_statistics(self.config, tag)
        bytes_taken = [taken.word_select(place, VALUE_BITS) for place in range(STATISTICS_BYTES)]
        mixed = [Mux(statistics, byte, known) for byte, known in zip(bytes_taken, head, strict=False)]
        return mixed + bytes_taken[len(head) :], Mux(statistics, STATISTICS_BYTES, size)

    def _kept(self, m: Module, row: Any) -> tuple[Value, Value, Value]:
        """Return mask, bytes (zeros behind them) and number of bytes of a row, by its mode."""
        values, mode = row["values"], row["tag"]["mode"]
        zvc_modes = [mode for mode in self.modes if mode.has_zvc]
        mask = Signal(LANES)
        chosen = Signal(LANES)
        m.d.comb += mask.eq(Cat(*(values[lane] != 0 for lane in range(LANES))))
        taken, number = values.as_value(), Value.cast(LANES)
        if zvc_modes:
            m.d.comb += chosen.eq(mask | (~is_one_of(mode, zvc_modes)).replicate(LANES))
            taken, number = compact(m, taken, chosen), popcount(chosen)
        kept = Signal(LANES * VALUE_BITS)
        count = Signal(range(LANES + 1))
        m.d.comb += [kept.eq(taken), count.eq(number)]
        if Mode.BRC in self.modes:
            with m.If(mode == Mode.BRC):
                m.d.comb += [kept.eq(encode_row(values)), count.eq(1)]
        affine_modes = [mode for mode in self.modes if mode.is_affine]
        if affine_modes:
            # Whole bytes in the other modes are codes of 8 bits.
            statistics = gives_statistics(self.config, row["tag"])
            coded = is_one_of(mode, affine_modes) & ~statistics
            bits_log2 = Mux(coded, row["tag"]["how"]["affine"]["bits_log2"], len(CODE_BITS) - 1)
            behind_head = Mux(statistics, 0, count)
            return mask, pack_codes(m, kept, bits_log2, "packed"), code_bytes(m, behind_head, bits_log2, "packed_bytes")
        return mask, kept, count


def _front(bits: Value, count: Value, size: int) -> Value:
    """Return the first ``size`` bytes, zeros behind ``count`` of them."""
    return Cat(*(Mux(count > place, bits.word_select(place, 8), 0) for place in range(size)))
