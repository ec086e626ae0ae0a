"""One CDU when compressing: rows of a block to its packed bytes, through the transform or past it."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, VALUE_BITS
from cdu_spec.modes import Mode

from cdu.coding import coders
from cdu.parts.stream_fifo import StreamFifo
from cdu.parts.streams import Beat, lanes
from cdu.quantizers.affine_quantizer import AffineQuantizer
from cdu.quantizers.shift_quantizer import ShiftQuantizer
from cdu.words import BlockTag, ShiftBanks, Slice, lane_row

#: Blocks whose tags are kept while they are in a transform; more do not fit into one.
BLOCKS_IN_TRANSFORM = 4


class CompressLane(wiring.Component):
    """Shift quantiser, affine quantiser and block encoder, beside a transform that is not part of it.

    Parameters
    ----------
    config
        ``modes``, ``coders``, ``rounding``, ``slice_bytes``.

    Ports
    -----
    i
        Stream of :class:`~cdu.words.BlockRow` (:func:`~cdu.words.lane_row`).
    o
        Stream of :class:`~cdu.words.Slice`, blocks in the order in which they came.
    to_transform, from_transform
        Streams of rows of 8 samples and of columns of 8 coefficients: to and from a :class:`~cdu.transform.dct.Dct` (only with
        jpeg-act).
    shifts
        The banks of shift tables, each constant while blocks that use it are in the lane (only with jpeg-act).

    A row per cycle. A block that is not transformed waits until the ones before it have left the transform; with an affine
    mode it goes through the affine quantiser, which a block that was transformed lets run empty before it leaves.
    """

    i: stream.Interface
    o: stream.Interface
    to_transform: stream.Interface
    from_transform: stream.Interface
    shifts: Any

    def __init__(self, config: CduConfig) -> None:
        self.config = config
        members = {"i": In(stream.Signature(lane_row(config))), "o": Out(stream.Signature(Slice(config)))}
        if config.has_dct:
            members |= {
                "to_transform": Out(stream.Signature(Beat)),
                "from_transform": In(stream.Signature(lanes(config.coefficient_bits))),
                "shifts": In(ShiftBanks),
            }
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.encoder = encoder = coders.encoder(self.config)
        connect(m, encoder.o, flipped(self.o))
        if self.config.has_affine:
            m.submodules.affine = affine = AffineQuantizer(self.config)
        if not self.config.has_dct:
            if self.config.has_affine:
                connect(m, flipped(self.i), affine.i)
                connect(m, affine.o, encoder.i)
            else:
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
            *(sample.eq(value[:VALUE_BITS]) for sample, value in zip(self.to_transform.payload, row["values"], strict=True)),
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
        quantized = quantizer.o.valid
        direct: Any
        if self.config.has_affine:
            # Rows in the affine quantiser are older than what is in the transform.
            direct, columns = affine.o.payload, quantized & ~affine.busy
            direct_valid, direct_ready = affine.o.valid, affine.i.ready
            m.d.comb += [
                affine.i.valid.eq(self.i.valid & ~transformed & ~tags.o.valid & ~quantized),
                affine.i.payload.eq(row),
                affine.o.ready.eq(encoder.i.ready),
            ]
        else:
            direct, columns = row, quantized
            direct_valid, direct_ready = self.i.valid & ~transformed & ~tags.o.valid, encoder.i.ready
        m.d.comb += [
            encoder.i.valid.eq(columns | direct_valid),
            encoder.i.payload["values"].eq(Mux(columns, quantizer.o.payload.as_value(), direct["values"].as_value())),
            encoder.i.payload["ends"].eq(Mux(columns, quantized_final, direct["ends"])),
            encoder.i.payload["tag"].eq(Mux(columns, quantized_tag.as_value(), direct["tag"].as_value())),
            quantizer.o.ready.eq(encoder.i.ready & (columns | ~quantized)),
            self.i.ready.eq(
                Mux(transformed, tags.i.ready & self.to_transform.ready, ~tags.o.valid & ~quantized & direct_ready)
            ),
        ]
        if self.config.has_ranges:
            m.d.comb += encoder.i.payload["range"].eq(direct["range"])
        return m
