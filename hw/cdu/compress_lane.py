"""One CDU when compressing: rows of a block to its packed bytes, through the transform or past it."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cdu_spec.bitstream import Mode
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE

from cdu.block_encoder import BlockEncoder
from cdu.shift_quantizer import ShiftBanks, ShiftQuantizer
from cdu.stream_fifo import StreamFifo
from cdu.streams import Beat, lanes
from cdu.words import BlockRow, BlockTag, Slice

#: Blocks whose tags are kept while they are in a transform; more do not fit into one.
BLOCKS_IN_TRANSFORM = 4


class CompressLane(wiring.Component):
    """Shift quantiser and block encoder, beside a transform that is not part of it.

    Parameters
    ----------
    config
        ``modes``, ``rounding``, ``slice_bytes``.

    Ports
    -----
    i
        Stream of :class:`~cdu.words.BlockRow`.
    o
        Stream of :class:`~cdu.words.Slice`, blocks in the order in which they came.
    to_transform, from_transform
        Streams of rows of 8 samples and of columns of 8 coefficients: to and from a :class:`~cdu.dct.Dct` (only with jpeg-act).
    shifts
        The banks of shift tables, each constant while blocks that use it are in the lane (only with jpeg-act).

    A row per cycle. A block that is not transformed waits until the ones before it have left the transform.
    """

    i: stream.Interface
    o: stream.Interface
    to_transform: stream.Interface
    from_transform: stream.Interface
    shifts: Any

    def __init__(self, config: CduConfig) -> None:
        self.config = config
        members = {"i": In(stream.Signature(BlockRow())), "o": Out(stream.Signature(Slice(config)))}
        if Mode.JPEG_ACT in config.built_modes:
            members |= {
                "to_transform": Out(stream.Signature(Beat)),
                "from_transform": In(stream.Signature(lanes(config.coefficient_bits))),
                "shifts": In(ShiftBanks),
            }
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.encoder = encoder = BlockEncoder(self.config)
        connect(m, encoder.o, flipped(self.o))
        if Mode.JPEG_ACT not in self.config.built_modes:
            connect(m, flipped(self.i), encoder.i)
            return m
        m.submodules.quantizer = quantizer = ShiftQuantizer(self.config)
        m.submodules.tags = tags = StreamFifo(BlockTag(), BLOCKS_IN_TRANSFORM)

        # Into the transform; the tag goes beside it.
        row = self.i.payload
        transformed = row["tag"]["mode"] == Mode.JPEG_ACT
        enters = self.i.valid & transformed & tags.i.ready
        m.d.comb += [
            self.to_transform.valid.eq(enters),
            self.to_transform.payload.eq(row["values"]),
            tags.i.valid.eq(enters & row["ends"] & self.to_transform.ready),
            tags.i.payload.eq(row["tag"]),
        ]

        # Out of the transform, with the table of the block
        connect(m, flipped(self.from_transform), quantizer.i)
        column = Signal(range(BLOCK_SIDE))
        final = column == BLOCK_SIDE - 1
        leaves = quantizer.i.valid & quantizer.i.ready
        quantized_tag: Any = Signal(BlockTag())
        quantized_final = Signal()
        m.d.comb += [
            quantizer.shifts.eq(self.shifts),
            quantizer.bank.eq(tags.o.payload["bank"]),
            tags.o.ready.eq(leaves & final),
        ]
        with m.If(leaves):
            m.d.sync += [column.eq(column + 1), quantized_tag.eq(tags.o.payload), quantized_final.eq(final)]

        # To the encoder: columns if there are any, rows if nothing is before them
        passes = self.i.valid & ~transformed & ~tags.o.valid
        quantized = quantizer.o.valid
        m.d.comb += [
            encoder.i.valid.eq(quantized | passes),
            encoder.i.payload["values"].eq(Mux(quantized, quantizer.o.payload.as_value(), row["values"].as_value())),
            encoder.i.payload["ends"].eq(Mux(quantized, quantized_final, row["ends"])),
            encoder.i.payload["tag"].eq(Mux(quantized, quantized_tag.as_value(), row["tag"].as_value())),
            quantizer.o.ready.eq(encoder.i.ready),
            self.i.ready.eq(
                Mux(transformed, tags.i.ready & self.to_transform.ready, ~tags.o.valid & ~quantized & encoder.i.ready)
            ),
        ]
        return m
