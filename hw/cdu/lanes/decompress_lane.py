"""One CDU when decompressing: packed bytes of a block to its rows, through the inverse transform or past it."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE
from cdu_spec.modes import Mode

from cdu.coding import coders
from cdu.lanes.compress_lane import BLOCKS_IN_TRANSFORM
from cdu.parts.stream_fifo import StreamFifo
from cdu.parts.streams import Beat, lanes
from cdu.quantizers.shift_quantizer import InverseShiftQuantizer
from cdu.words import BlockRow, BlockTag, ShiftBanks, Slice


class DecompressLane(wiring.Component):
    """Block decoder and inverse shift quantiser, beside an inverse transform that is not part of it.

    Parameters
    ----------
    config
        ``modes``, ``coders``, ``slice_bytes``.

    Ports
    -----
    i
        Stream of :class:`~cdu.words.Slice`.
    o
        Stream of :class:`~cdu.words.BlockRow`, blocks in the order in which they came, with ranges where a mode that has them
        is built in.
    to_transform, from_transform
        Streams of columns of 8 coefficients and of rows of 8 samples: to and from an :class:`~cdu.transform.idct.Idct` (only
        with jpeg-act).
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
        self.ranged = config.has_ranges
        row = BlockRow(ranged=self.ranged)
        members = {"i": In(stream.Signature(Slice(config))), "o": Out(stream.Signature(row))}
        if config.has_dct:
            members |= {
                "to_transform": Out(stream.Signature(lanes(config.coefficient_bits))),
                "from_transform": In(stream.Signature(Beat)),
                "shifts": In(ShiftBanks),
            }
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.decoder = decoder = coders.decoder(self.config)
        connect(m, flipped(self.i), decoder.i)
        if not self.config.has_dct:
            connect(m, decoder.o, flipped(self.o))
            return m
        m.submodules.quantizer = quantizer = InverseShiftQuantizer(self.config)
        m.submodules.tags = tags = StreamFifo(BlockTag(), BLOCKS_IN_TRANSFORM)

        # Into the transform; the tag goes beside it.
        row = decoder.o.payload
        transformed = row["tag"]["mode"] == Mode.JPEG_ACT
        enters = decoder.o.valid & transformed & tags.i.ready
        if self.config.has_gmc:
            m.d.comb += quantizer.point.eq(row["tag"]["how"]["shifts"]["point"])
        connect(m, quantizer.o, flipped(self.to_transform))
        m.d.comb += [
            quantizer.i.valid.eq(enters),
            quantizer.i.payload.eq(row["values"]),
            quantizer.shifts.eq(self.shifts),
            quantizer.bank.eq(row["tag"]["bank"]),
            tags.i.valid.eq(enters & row["ends"] & quantizer.i.ready),
            tags.i.payload.eq(row["tag"]),
        ]

        # Out of the transform, or past it if nothing is before
        passes = decoder.o.valid & ~transformed & ~tags.o.valid
        number = Signal(range(BLOCK_SIDE))
        final = number == BLOCK_SIDE - 1
        back = self.from_transform
        m.d.comb += [
            self.o.valid.eq(back.valid | passes),
            self.o.payload["values"].eq(Mux(back.valid, back.payload.as_value(), row["values"].as_value())),
            self.o.payload["ends"].eq(Mux(back.valid, final, row["ends"])),
            self.o.payload["tag"].eq(Mux(back.valid, tags.o.payload.as_value(), row["tag"].as_value())),
            back.ready.eq(self.o.ready),
            tags.o.ready.eq(back.valid & self.o.ready & final),
            decoder.o.ready.eq(Mux(transformed, tags.i.ready & quantizer.i.ready, ~tags.o.valid & self.o.ready)),
        ]
        if self.ranged:
            m.d.comb += self.o.payload["range"].eq(Mux(back.valid, 0, row["range"].as_value()))
        with m.If(back.valid & back.ready):
            m.d.sync += number.eq(number + 1)
        return m
