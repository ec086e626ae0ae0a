"""Length of the next block of a payload in bytes."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from cdu_spec import gmc
from cdu_spec.affine import CODE_BITS
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, LANES, TILE_BLOCKS, VALUE_BITS
from cdu_spec.modes import LOW_BYTES, MASK_BYTES, MAX_BLOCK_BYTES, RANGE_BYTES, Mode

from cdu.coding.code_packing import code_bytes
from cdu.coding.zvc import popcount
from cdu.parts.barrel import shift_right
from cdu.parts.mx_words import BLOCK_ROWS, constant
from cdu.words import How, is_gmc, is_one_of


class BlockLength(wiring.Component):
    """Compute the length of the next block from its job's settings and, with masks, its first 8 bytes; with GMC its first byte.

    In mode mx a block is here the rows that are decoded in a cycle, with the scales that begin in them.

    Parameters
    ----------
    config
        S, ``modes``, ``coders``, ``mx_rows``.

    Ports
    -----
    mode, how
        Mode and quantiser of the job.
    bytes, place
        S + 8 bytes of the payload, and the number of them before the block. Bits are counted before ``place`` chooses among the
        counts, so that both may come late in a cycle.
    first, fresh
        The block is the first one of a job and begins with these 8 bytes, whatever ``bytes`` are.
    looks
        The length follows from the block's first bytes, 8 at most.
    rows
        Rows of the block, 1 to 8.
    job_begins
        The next block, in the next cycle, is the first one of a job.
    block_begins
        The next block, in the next cycle, is the one behind this block; with ``job_begins`` this block is the first one of it.
    length
        Length of the block in bytes, in the same cycle.
    heads
        The block begins with its range, in mode mx with its scale.

    Combinational, apart from a counter of the block in its tile, or in mode mx of the rows in their block.
    """

    mode: Any
    how: Any
    bytes: Signal
    place: Signal
    first: Signal
    fresh: Signal
    looks: Signal
    rows: Signal
    job_begins: Signal
    block_begins: Signal
    length: Signal
    heads: Signal

    def __init__(self, config: CduConfig) -> None:
        self.config = config
        super().__init__(
            {
                "mode": In(Mode),
                "how": In(How()),
                "bytes": In(8 * (config.slice_bytes + MASK_BYTES)),
                "place": In(range(config.slice_bytes + 1)),
                "first": In(1),
                "fresh": In(8 * MASK_BYTES),
                "looks": Out(1),
                "rows": In(range(BLOCK_SIDE + 1)),
                "job_begins": In(1),
                "block_begins": In(1),
                "length": Out(range(max(MAX_BLOCK_BYTES, gmc.MAX_BLOCK_BYTES if config.has_gmc else 0) + 1)),
                "heads": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, modes = self.config, self.config.packed_modes
        affine = is_one_of(self.mode, [mode for mode in modes if mode.is_affine])
        length: Value = self.rows * LANES
        looks: Value = Const(0)
        if Mode.BRC in modes:
            length = Mux(self.mode == Mode.BRC, self.rows, length)
        if config.has_affine:
            codes = self.rows << self.how["affine"]["bits_log2"]
            length = Mux(affine, codes + (self._head_bytes(m) if config.has_ranges else 0), length)
        zvc_modes = [mode for mode in modes if mode.has_zvc]
        if zvc_modes:
            has_mask = is_one_of(self.mode, zvc_modes)
            length, looks = Mux(has_mask, MASK_BYTES + self._unmasked_bytes(m, affine), length), looks | has_mask
        if config.has_gmc:
            in_gmc = is_gmc(config, self.mode, self.how)
            head = shift_right(m, self.bytes[: 8 * (config.slice_bytes + 1)], self.place, "head")[:8]
            head = Mux(self.first, self.fresh[:8], head)
            length, looks = Mux(in_gmc, _headed_bytes(head), length), looks | in_gmc
        if config.has_mx:
            length = Mux(self.mode == Mode.MX, self._mx_bytes(m), length)
        m.d.comb += [self.length.eq(length), self.looks.eq(looks)]
        return m

    def _head_bytes(self, m: Module) -> Value:
        """Return the bytes of the block's range: in actnn the first block of a tile has one, in division every block."""
        number = self._counted(m, TILE_BLOCKS, "number_in_tile")
        division = self.mode == Mode.DIVISION
        m.d.comb += self.heads.eq(division | ((self.mode == Mode.ACTNN) & (number == 0)))
        size = Mux(division & ~self.how["affine"]["block_range"], LOW_BYTES, RANGE_BYTES)
        return Mux(self.heads, size, 0)

    def _counted(self, m: Module, period: int, name: str) -> Value:
        """Return the number of the block in its job, modulo ``period``."""
        ahead = Signal(range(period), name=name)
        number = Signal.like(ahead, name=f"{name}_now")
        m.d.comb += number.eq(Mux(self.first, 0, ahead))
        with m.If(self.block_begins):
            m.d.sync += ahead.eq(number + 1)
        with m.Elif(self.job_begins):
            m.d.sync += ahead.eq(0)
        return number

    def _mx_bytes(self, m: Module) -> Value:
        """Return the bytes of some rows of mode mx: their codes, and a scale where a block of MX begins."""
        rows, number = self.config.mx_rows, self.how["mx"]["format"]
        begins: Value = Const(1, 1)
        if rows < BLOCK_ROWS:
            place = self._counted(m, BLOCK_ROWS // rows, "rows_in_block")
            begins = place == 0
        with m.If(self.mode == Mode.MX):
            m.d.comb += self.heads.eq(begins)
        size = constant(m, number, lambda kind: kind.row_bytes(rows) - (rows < BLOCK_ROWS), "mx_bytes")
        if rows <= BLOCK_ROWS:
            return size + begins if rows < BLOCK_ROWS else size
        half = constant(m, number, lambda kind: kind.row_bytes(BLOCK_ROWS), "mx_block_bytes")
        return Mux(self.rows > BLOCK_ROWS, size, half)

    def _unmasked_bytes(self, m: Module, affine: Value) -> Value:
        """Return the bytes of the values that the mask announces, row by row: in autoquantz a row's codes fill whole bytes."""
        counts = [popcount(byte) for byte in (*_bytes_of(self.fresh), *_bytes_of(self.bytes))]
        if Mode.AUTOQUANTZ in self.config.built_modes:
            bits_log2 = Mux(affine, self.how["affine"]["bits_log2"], CODE_BITS.index(VALUE_BITS))
            counts = [code_bytes(m, count, bits_log2, f"row_bytes{row}") for row, count in enumerate(counts)]
        slots = Signal(8 * len(counts), name="counts")
        m.d.comb += slots.eq(Cat(Cat(count, Const(0, 8))[:8] for count in counts))
        fresh, behind = slots[: 8 * MASK_BYTES], slots[8 * MASK_BYTES :]
        chosen = Mux(self.first, fresh, shift_right(m, behind, self.place, "mask")[: 8 * MASK_BYTES])
        rows: list[Value] = [slot[: LANES.bit_length()] for slot in _bytes_of(chosen)]
        while len(rows) > 1:
            rows = [one + other for one, other in zip(rows[::2], rows[1::2], strict=True)]
        return rows[0]


def _bytes_of(bits: Value) -> list[Value]:
    return [bits[place : place + 8] for place in range(0, len(bits), 8)]


def _headed_bytes(head: Value) -> Value:
    """Return the bytes of a block of GMC, including its head."""
    return Mux(head < gmc.LONG_HEAD, (head >> 3) + 1, head - (gmc.LONG_HEAD - gmc.SHORT_BYTES - 2))
