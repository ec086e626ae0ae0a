"""Quantised values to the bytes of a payload: ZVC, BRC or plain, packed into words."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cdu_spec.bitstream import Mode
from cdu_spec.config import CduConfig
from cdu_spec.geometry import LANES

from cdu.brc import encode_row
from cdu.bytes import BytePacker, Word
from cdu.streams import Marked
from cdu.zvc import ZvcEncoder


class PayloadEncoder(wiring.Component):
    """The coder that a mode needs, and the packer behind it.

    Parameters
    ----------
    config
        ``modes``: coders that no mode needs are left out.

    Ports
    -----
    i
        Stream of rows of 8 values with ``last``.
    o
        Stream of words of 16 bytes.
    mode
        :class:`cdu_spec.Mode`, constant during a job.

    One row per cycle for any content.
    """

    i: stream.Interface
    o: stream.Interface
    mode: Any

    def __init__(self, config: CduConfig) -> None:
        self.modes = config.built_modes
        super().__init__({"i": In(stream.Signature(Marked())), "o": Out(stream.Signature(Word())), "mode": In(Mode)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.packer = packer = BytePacker()
        connect(m, packer.o, flipped(self.o))
        chunks = packer.i
        zvc_modes = [mode for mode in self.modes if mode.has_zvc]
        with m.Switch(self.mode):
            if zvc_modes:
                m.submodules.zvc = zvc = ZvcEncoder()
                m.d.comb += zvc.i.payload.eq(self.i.payload)
                with m.Case(*zvc_modes):
                    _join(m, self.i, zvc.i)
                    _pass(m, zvc.o, chunks)
            if Mode.BRC in self.modes:
                with m.Case(Mode.BRC):
                    _join(m, self.i, chunks)
                    m.d.comb += [
                        chunks.payload["data"].eq(encode_row(self.i.payload["values"])),
                        chunks.payload["count"].eq(1),
                        chunks.payload["last"].eq(self.i.payload["last"]),
                    ]
            if Mode.SFPR in self.modes:
                with m.Case(Mode.SFPR):
                    _join(m, self.i, chunks)
                    m.d.comb += [
                        chunks.payload["data"].eq(self.i.payload["values"]),
                        chunks.payload["count"].eq(LANES),
                        chunks.payload["last"].eq(self.i.payload["last"]),
                    ]
        return m


def _join(m: Module, source: stream.Interface, sink: stream.Interface) -> None:
    """Connect the handshake of two streams."""
    m.d.comb += [sink.valid.eq(source.valid), source.ready.eq(sink.ready)]


def _pass(m: Module, source: stream.Interface, sink: stream.Interface) -> None:
    """Connect handshake and payload of two streams."""
    _join(m, source, sink)
    m.d.comb += sink.payload.eq(source.payload)
