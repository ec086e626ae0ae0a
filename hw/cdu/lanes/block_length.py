"""Length of the next block of a payload in bytes."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from cdu_spec import gmc
from cdu_spec.affine import CODE_BITS
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES, LANES, TILE_BLOCKS, VALUE_BITS
from cdu_spec.modes import LOW_BYTES, MASK_BYTES, MAX_BLOCK_BYTES, RANGE_BYTES, Mode

from cdu.coding.code_packing import code_bytes
from cdu.coding.zvc import popcount
from cdu.parts.mx_words import BLOCK_ROWS, constant
from cdu.words import How, is_gmc, is_one_of


class BlockLength(wiring.Component):
    """Compute the length of a block from its job's settings and, with masks, its first 8 bytes; with GMC its first byte.

    In mode mx a block is here the rows that are decoded in a cycle, with the scales that begin in them.

    Parameters
    ----------
    config
        ``modes``, ``coders``, ``mx_rows``.

    Ports
    -----
    mode, how
        Mode and quantiser of the job.
    mask
        The first 64 bits of the block: its mask in the modes that have one. With GMC the first 8 bits are its head.
    rows
        Rows of the block, 1 to 8.
    job_begins
        The next block, in the next cycle, is the first one of a job.
    block_begins
        The next block, in the next cycle, is the one behind this block.
    length
        Length of the block in bytes, in the same cycle.
    heads
        The block begins with its range, in mode mx with its scale.

    Combinational, apart from a counter of the block in its tile, or in mode mx of the rows in their block.
    """

    mode: Any
    how: Any
    mask: Signal
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
                "mask": In(BLOCK_VALUES),
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
        if Mode.BRC in modes:
            length = Mux(self.mode == Mode.BRC, self.rows, length)
        if config.has_affine:
            codes = self.rows << self.how["affine"]["bits_log2"]
            length = Mux(affine, codes + (self._head_bytes(m) if config.has_ranges else 0), length)
        zvc_modes = [mode for mode in modes if mode.has_zvc]
        if zvc_modes:
            length = Mux(is_one_of(self.mode, zvc_modes), MASK_BYTES + self._unmasked_bytes(m, affine), length)
        if config.has_gmc:
            length = Mux(is_gmc(config, self.mode, self.how), _headed_bytes(self.mask[:8]), length)
        if config.has_mx:
            length = Mux(self.mode == Mode.MX, self._mx_bytes(m), length)
        m.d.comb += self.length.eq(length)
        return m

    def _head_bytes(self, m: Module) -> Value:
        """Return the bytes of the block's range: in actnn the first block of a tile has one, in division every block."""
        number = Signal(range(TILE_BLOCKS), name="number_in_tile")
        with m.If(self.job_begins):
            m.d.sync += number.eq(0)
        with m.Elif(self.block_begins):
            m.d.sync += number.eq(number + 1)
        division = self.mode == Mode.DIVISION
        m.d.comb += self.heads.eq(division | ((self.mode == Mode.ACTNN) & (number == 0)))
        size = Mux(division & ~self.how["affine"]["block_range"], LOW_BYTES, RANGE_BYTES)
        return Mux(self.heads, size, 0)

    def _mx_bytes(self, m: Module) -> Value:
        """Return the bytes of some rows of mode mx: their codes, and a scale where a block of MX begins."""
        rows, number = self.config.mx_rows, self.how["mx"]["format"]
        begins: Value = Const(1, 1)
        if rows < BLOCK_ROWS:
            place = Signal(range(BLOCK_ROWS // rows), name="rows_in_block")
            with m.If(self.job_begins):
                m.d.sync += place.eq(0)
            with m.Elif(self.block_begins):
                m.d.sync += place.eq(place + 1)
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
        rows: list[Value] = [popcount(self.mask.word_select(row, LANES)) for row in range(MASK_BYTES)]
        if Mode.AUTOQUANTZ in self.config.built_modes:
            bits_log2 = Mux(affine, self.how["affine"]["bits_log2"], CODE_BITS.index(VALUE_BITS))
            rows = [code_bytes(m, count, bits_log2, f"row_bytes{row}") for row, count in enumerate(rows)]
        while len(rows) > 1:
            rows = [one + other for one, other in zip(rows[::2], rows[1::2], strict=True)]
        return rows[0]


def _headed_bytes(head: Value) -> Value:
    """Return the bytes of a block of GMC, including its head."""
    return Mux(head < gmc.LONG_HEAD, (head >> 3) + 1, head - (gmc.LONG_HEAD - gmc.SHORT_BYTES - 2))
