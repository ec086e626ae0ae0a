"""The bytes of a payload to quantised values: unpacker, then ZVC, BRC or plain."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cdu_spec.bitstream import Mode
from cdu_spec.config import CduConfig
from cdu_spec.geometry import LANES, PACKED_BYTES

from cdu.brc import decode_row
from cdu.bytes import ByteUnpacker, Word
from cdu.streams import BEATS_BITS, Beat
from cdu.zvc import ZvcDecoder


class PayloadDecoder(wiring.Component):
    """The unpacker, and behind it the decoder that a mode needs. Decodes exactly ``beats`` rows per job.

    Parameters
    ----------
    config
        ``modes``: decoders that no mode needs are left out.

    Ports
    -----
    start
        High for a cycle before a job begins; ``mode`` and ``beats`` (rows of 8 values, at least 1) are constant from then on.
    i
        Stream of words of 16 bytes, ``last`` with the job's final one. A job that ends early is completed with zeros
        (``truncated``), bytes beyond the job's end are thrown away (``surplus``); input is taken up to ``last`` in any case.
    o
        Stream of rows of 8 values.
    idle
        No job, or all rows of the job delivered and all its words taken.
    truncated, surplus
        What went wrong in this job; cleared by ``start``.

    One row per cycle for any content, as long as 16 bytes per cycle are offered.
    """

    i: stream.Interface
    o: stream.Interface
    start: Signal
    beats: Signal
    idle: Signal
    truncated: Signal
    surplus: Signal
    mode: Any

    def __init__(self, config: CduConfig) -> None:
        self.modes = config.built_modes
        super().__init__(
            {
                "i": In(stream.Signature(Word())),
                "o": Out(stream.Signature(Beat)),
                "start": In(1),
                "mode": In(Mode),
                "beats": In(BEATS_BITS),
                "idle": Out(1),
                "truncated": Out(1),
                "surplus": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.unpacker = unpacker = ByteUnpacker()
        connect(m, flipped(self.i), unpacker.i)
        window = unpacker.window

        undecoded = Signal(BEATS_BITS)
        decoding = undecoded != 0
        advance = ~self.o.valid | self.o.ready
        need, yields, values = Signal(range(PACKED_BYTES + 1)), Signal(init=1), Signal(Beat)
        step = decoding & advance & (window.available >= need)
        m.d.comb += [
            self.idle.eq(~decoding & ~self.o.valid & ~unpacker.expecting),
            unpacker.start.eq(self.start),
            unpacker.discard.eq(~decoding),
            window.take.eq(Mux(step, need, 0)),
        ]
        zvc_modes = [mode for mode in self.modes if mode.has_zvc]
        with m.Switch(self.mode):
            if zvc_modes:
                m.submodules.zvc = zvc = ZvcDecoder()
                with m.Case(*zvc_modes):
                    m.d.comb += [need.eq(zvc.need), yields.eq(zvc.yields), values.eq(zvc.values), zvc.step.eq(step)]
                m.d.comb += [
                    zvc.window.eq(window.data),
                    zvc.final.eq(undecoded == 1),
                    zvc.start.eq(self.start),
                ]
            if Mode.BRC in self.modes:
                with m.Case(Mode.BRC):
                    m.d.comb += need.eq(1)
                    m.d.comb += [values[lane].eq(value) for lane, value in enumerate(decode_row(window.data[0]))]
            if Mode.SFPR in self.modes:
                with m.Case(Mode.SFPR):
                    m.d.comb += [need.eq(LANES), values.eq(window.data)]

        with m.If(advance):
            m.d.sync += self.o.valid.eq(step & yields)
        with m.If(step & yields):
            m.d.sync += [self.o.payload.eq(values), undecoded.eq(undecoded - 1)]
        m.d.sync += [
            self.truncated.eq(self.truncated | unpacker.short),
            self.surplus.eq(self.surplus | unpacker.surplus),
        ]
        with m.If(self.start):
            m.d.sync += [undecoded.eq(self.beats), self.truncated.eq(0), self.surplus.eq(0)]
        return m
