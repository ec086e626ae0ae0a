"""AXI4-Lite: from the five channels of a bus to one access after the other."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.register_types import ADDRESS_BITS, REGISTER_BITS, REGISTER_BYTES

#: Signals of the port with their direction and width at the end that answers.
_SIGNALS = {
    "awaddr": In(ADDRESS_BITS),
    "awprot": In(3),
    "awvalid": In(1),
    "awready": Out(1),
    "wdata": In(REGISTER_BITS),
    "wstrb": In(REGISTER_BYTES),
    "wvalid": In(1),
    "wready": Out(1),
    "bresp": Out(2),
    "bvalid": Out(1),
    "bready": In(1),
    "araddr": In(ADDRESS_BITS),
    "arprot": In(3),
    "arvalid": In(1),
    "arready": Out(1),
    "rdata": Out(REGISTER_BITS),
    "rresp": Out(2),
    "rvalid": Out(1),
    "rready": In(1),
}
_OKAY, _SLVERR = 0, 2
#: Bits of an address that select a byte of a register.
_BYTE_BITS = (REGISTER_BYTES - 1).bit_length()


def members(prefix: str) -> dict[str, wiring.Member]:
    """Members of a signature that make up the AXI4-Lite port ``prefix``, at the end that answers."""
    return {f"{prefix}_{name}": member for name, member in _SIGNALS.items()}


def join(m: Module, outer: Any, prefix: str, inner: Any, inner_prefix: str | None = None) -> None:
    """Connect the port of a component to that of a submodule, whose names have the same prefix if none is given."""
    for (name, member), within in zip(
        members(prefix).items(), members(prefix if inner_prefix is None else inner_prefix), strict=True
    ):
        ends = getattr(inner, within.lstrip("_")), getattr(outer, name)
        m.d.comb += ends[0].eq(ends[1]) if member.flow is In else ends[1].eq(ends[0])


#: One access at a time. ``active`` is held, with the number of the register (``word``), ``write``, ``data`` and ``whole``
#: (all bytes of the register are written), until ``done`` is high; then ``read_data`` and ``error`` hold.
AccessPort = wiring.Signature(
    {
        "active": Out(1),
        "word": Out(ADDRESS_BITS - _BYTE_BITS),
        "write": Out(1),
        "whole": Out(1),
        "data": Out(REGISTER_BITS),
        "done": In(1),
        "read_data": In(REGISTER_BITS),
        "error": In(1),
    }
)


class AxiLite(wiring.Component):
    """The answering end of an AXI4-Lite port.

    Address and data of a write may come in any order; a new write and a new read are accepted while the ones before are
    worked on. Reads and writes take turns when both are waiting. An access with ``error`` is answered with SLVERR.

    Ports
    -----
    awaddr ... rready
        The AXI4-Lite port, without prefix. The protection bits are ignored, as are the address bits below a register.
    access
        :data:`AccessPort`.

    An access takes one cycle more than its ``active`` time.
    """

    access: Any
    awaddr: Signal
    awvalid: Signal
    awready: Signal
    wdata: Signal
    wstrb: Signal
    wvalid: Signal
    wready: Signal
    bresp: Signal
    bvalid: Signal
    bready: Signal
    araddr: Signal
    arvalid: Signal
    arready: Signal
    rdata: Signal
    rresp: Signal
    rvalid: Signal
    rready: Signal

    def __init__(self) -> None:
        super().__init__({**_SIGNALS, "access": Out(AccessPort)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        write_word, read_word = (
            Signal(len(self.access.word), name=f"{kind}_word", reset_less=True) for kind in ("write", "read")
        )
        write_data = Signal(REGISTER_BITS, reset_less=True)
        write_whole = Signal(reset_less=True)
        asked = Signal(REGISTER_BITS, reset_less=True)
        answer = Signal(REGISTER_BITS, reset_less=True)
        has_write_word = Signal()
        has_write_data = Signal()
        has_read_word = Signal()
        m.d.comb += [
            self.awready.eq(~has_write_word),
            self.wready.eq(~has_write_data),
            self.arready.eq(~has_read_word),
            self.access.data.eq(asked),
            self.rdata.eq(answer),
        ]
        with m.If(self.awvalid & self.awready):
            m.d.sync += [has_write_word.eq(1), write_word.eq(self.awaddr[_BYTE_BITS:])]
        with m.If(self.wvalid & self.wready):
            m.d.sync += [has_write_data.eq(1), write_data.eq(self.wdata), write_whole.eq(self.wstrb.all())]
        with m.If(self.arvalid & self.arready):
            m.d.sync += [has_read_word.eq(1), read_word.eq(self.araddr[_BYTE_BITS:])]

        # An access begins when its response has somewhere to go. Writes go first, but the next one comes too late to
        # go before a read that waits.
        access = self.access
        can_write = has_write_word & has_write_data & (~self.bvalid | self.bready)
        can_read = has_read_word & (~self.rvalid | self.rready)
        with m.If(self.bready):
            m.d.sync += self.bvalid.eq(0)
        with m.If(self.rready):
            m.d.sync += self.rvalid.eq(0)
        with m.If(~access.active):
            m.d.sync += [
                access.active.eq(can_write | can_read),
                access.write.eq(can_write),
                access.word.eq(Mux(can_write, write_word, read_word)),
                asked.eq(write_data),
                access.whole.eq(write_whole),
            ]
        with m.Elif(access.done):
            m.d.sync += access.active.eq(0)
            response = Mux(access.error, _SLVERR, _OKAY)
            with m.If(access.write):
                m.d.sync += [has_write_word.eq(0), has_write_data.eq(0), self.bvalid.eq(1), self.bresp.eq(response)]
            with m.Else():
                m.d.sync += [
                    has_read_word.eq(0),
                    self.rvalid.eq(1),
                    self.rresp.eq(response),
                    answer.eq(access.read_data),
                ]
        return m
