"""AXI4-Stream ports of the unit: conversion between TDATA/TKEEP/TLAST and words with a count."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from cdu.parts.register_slice import register_slice
from cdu.parts.width_converter import Bytes, expand, ones

#: Signals of a receiving port with their directions; a sending port has the opposite ones.
_SIGNALS = {"tdata": In, "tkeep": In, "tlast": In, "tvalid": In, "tready": Out}


def members(prefix: str, size: int, receives: bool) -> dict[str, wiring.Member]:
    """Return the members of a signature for the AXI4-Stream port ``prefix`` (may be empty) of ``size`` bytes."""
    widths = {"tdata": 8 * size, "tkeep": size}
    flips = {In: Out, Out: In}
    flows = {name: flow if receives else flips[flow] for name, flow in _SIGNALS.items()}
    return {f"{prefix}_{name}".lstrip("_"): flow(widths.get(name, 1)) for name, flow in flows.items()}


def join(m: Module, top: wiring.Component, prefix: str, end: wiring.Component) -> None:
    """Connect the port ``prefix`` of ``top`` to an :class:`AxiReceiver` or :class:`AxiSender`."""
    for name in _SIGNALS:
        ours, theirs = getattr(top, f"{prefix}_{name}"), getattr(end, name)
        m.d.comb += theirs.eq(ours) if end.signature.members[name].flow is In else ours.eq(theirs)


def link(m: Module, sender: wiring.Component, receiver: wiring.Component, prefix: str) -> None:
    """Connect ports of the same name of a sending and a receiving component."""
    for name, flow in _SIGNALS.items():
        given, taken = getattr(sender, f"{prefix}_{name}"), getattr(receiver, f"{prefix}_{name}")
        m.d.comb += taken.eq(given) if flow is In else given.eq(taken)


class AxiReceiver(wiring.Component):
    """Receive a port: two register stages, TKEEP converted to a count, transfers without bytes removed.

    A word leaves once it is known whether it is the last one of its packet: with TLAST at once, else when the next byte comes,
    or TLAST in a transfer without bytes.

    Ports
    -----
    tdata, tkeep, tlast, tvalid, tready
        The AXI4-Stream port. TKEEP must be ones from byte 0 on, then zeros; it may be partial, or all zeros, in any transfer.
    o
        Stream of :class:`~cdu.parts.width_converter.Bytes`; bytes that are not kept are zero. Words have at least one byte,
        except for the only word of a packet without bytes.
    bad_keep
        High for a cycle when a transfer had a TKEEP with holes: the bytes behind the first hole are dropped.
    clear
        High for a cycle: drop the waiting words.
    flush
        High for a cycle: drop a packet that has begun, up to its TLAST; it has begun when its first word is offered.
    flushing
        A flush is in progress.

    With ``quiet``, packets may wait in a FIFO before the port that cannot be cleared: ``flush`` then drops all words until the
    port is at the end of a packet and nothing has come for ``quiet`` cycles.

    With ``words`` 2, two words may wait at ``o``, and no path leads from its ``ready`` to ``tready``.

    Latency: 2 cycles. One transfer per cycle.
    """

    o: stream.Interface
    tdata: Signal
    tkeep: Signal
    tlast: Signal
    tvalid: Signal
    tready: Signal
    bad_keep: Signal
    clear: Signal
    flush: Signal
    flushing: Signal

    def __init__(self, size: int, quiet: int = 0, words: int = 1) -> None:
        self.size, self._quiet, self._words = size, quiet, words
        extra = {"o": Out(stream.Signature(Bytes(size))), "bad_keep": Out(1)}
        extra |= {"clear": In(1), "flush": In(1), "flushing": Out(1)}
        super().__init__(members("", size, receives=True) | extra)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        open_packet = Signal()
        ahead: Any = Signal(Bytes(self.size), reset_less=True)  # the word that waits for its successor
        word: Any = Signal(Bytes(self.size), reset_less=True)  # the word in front of it, or the one that is offered
        waits = Signal()
        queue = register_slice(Bytes(self.size)) if self._words > 1 else None
        advance = ~self.o.valid | self.o.ready if queue is None else queue.i.ready
        transfer = self.tvalid & self.tready
        room = ~waits | advance
        # Taken, or of no effect as `clear` is high: its path is long, and the registers of words do not wait for it.
        taken = Signal()
        front, count = _kept(m, self.tkeep)  # bytes up to the first hole
        arrives = Signal()
        closes = Signal()
        moves = Signal()
        begins = ~waits | ahead["last"]  # what comes belongs to another packet than what waits
        m.d.comb += [
            self.tready.eq((~self.clear & room) | self.flushing),
            taken.eq(self.tvalid & room & ~self.flushing),
            self.bad_keep.eq(taken & ~self.clear & (self.tkeep[1:] & ~self.tkeep[:-1]).any()),
            arrives.eq(taken & front[0]),
            closes.eq(taken & ~front[0] & self.tlast),
            moves.eq(waits & advance & (ahead["last"] | arrives | closes)),
        ]
        if queue is None:
            m.d.comb += self.o.payload.eq(word)
            with m.If(advance):
                m.d.sync += [self.o.valid.eq(moves), word.eq(ahead), word["last"].eq(ahead["last"] | closes)]
            with m.If(self.clear):
                m.d.sync += self.o.valid.eq(0)
        else:
            m.submodules.queue = ResetInserter(self.clear)(queue)
            m.d.comb += [
                word.eq(ahead),
                word["last"].eq(ahead["last"] | closes),
                queue.i.payload.eq(word),
                queue.i.valid.eq(moves),
            ]
            connect(m, queue.o, flipped(self.o))
        with m.If(moves | ~waits):
            m.d.sync += [
                waits.eq(arrives | (closes & begins)),
                ahead["data"].eq(self.tdata & expand(front)),
                ahead["count"].eq(count),
                ahead["last"].eq(self.tlast),
            ]
        with m.If(self.clear):
            m.d.sync += waits.eq(0)
        with m.If(transfer):
            m.d.sync += open_packet.eq(~self.tlast)
            with m.If(self.tlast):
                m.d.sync += self.flushing.eq(0)
        with m.If(self.flush):
            m.d.sync += self.flushing.eq(Mux(transfer, ~self.tlast, open_packet | self.tvalid))
        if self._quiet:
            self._flush_all(m, open_packet)
        return m

    def _flush_all(self, m: Module, open_packet: Signal) -> None:
        """Drive ``flushing`` of a port with ``quiet``, which does not end with the packet."""
        silence = Signal(range(self._quiet))
        ends = Signal()
        m.d.comb += ends.eq((silence == self._quiet - 1) & ~self.tvalid & ~open_packet)
        m.d.sync += [
            silence.eq(Mux(self.flush | self.tvalid | open_packet, 0, silence + 1)),
            self.flushing.eq(self.flush | (self.flushing & ~ends)),
        ]


class AxiSender(wiring.Component):
    """Send to a port: one register stage, a count converted to TKEEP.

    A waiting word is held until it is taken, whatever happens inside the unit. ``cut`` ends a packet that has begun with a
    transfer of no bytes that has TLAST.

    Ports
    -----
    i
        Stream of :class:`~cdu.parts.width_converter.Bytes`.
    tdata, tkeep, tlast, tvalid, tready
        The AXI4-Stream port.
    cut
        High for a cycle: no more words of the present packet will come, and a word that has not left is not needed. A word
        that is taken in this cycle is dropped.
    draining
        Such a word, or the end of a cut packet, has yet to leave.
    ended
        High for a cycle when the last word of a packet leaves, except for packets with words from before the last ``cut``.

    Latency: 1 cycle. One transfer per cycle.
    """

    i: stream.Interface
    tdata: Signal
    tkeep: Signal
    tlast: Signal
    tvalid: Signal
    tready: Signal
    cut: Signal
    draining: Signal
    ended: Signal

    def __init__(self, size: int) -> None:
        self.size = size
        extra = {"i": In(stream.Signature(Bytes(size))), "cut": In(1), "draining": Out(1), "ended": Out(1)}
        super().__init__(members("", size, receives=False) | extra)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        open_packet = Signal()  # words of a packet were taken, its last one was not
        cutting = Signal()  # the end of a cut packet is to be sent
        stale = Signal()  # the word at the port is that end, or was there before the cut
        taken = Signal()
        advance = ~self.tvalid | self.tready
        word = self.i.payload
        bits = Signal(8 * self.size, reset_less=True)
        keep = Signal(self.size, reset_less=True)
        last = Signal(reset_less=True)
        m.d.comb += [
            self.tdata.eq(bits),
            self.tkeep.eq(keep),
            self.tlast.eq(last),
            self.i.ready.eq(advance & ~cutting),
            taken.eq(self.i.valid & self.i.ready & ~self.cut),
            self.ended.eq(self.tvalid & self.tready & self.tlast & ~stale & ~self.cut),
            self.draining.eq(cutting | (self.tvalid & stale)),
        ]
        with m.If(advance):
            m.d.sync += [
                stale.eq(cutting),
                self.tvalid.eq(taken | cutting),
                bits.eq(Mux(cutting, 0, word["data"])),
                keep.eq(Mux(cutting, 0, Cat(*ones(word["count"], self.size)))),
                last.eq(cutting | word["last"]),
            ]
            with m.If(cutting):
                m.d.sync += cutting.eq(0)
        with m.Elif(self.cut):
            m.d.sync += stale.eq(1)
        with m.If(taken):
            m.d.sync += open_packet.eq(~word["last"])
        with m.If(self.cut):
            m.d.sync += [cutting.eq(open_packet | (cutting & ~advance)), open_packet.eq(0)]
        return m


def _kept(m: Module, keep: Value) -> tuple[Signal, Signal]:
    """Return the ones of TKEEP below its first zero, and their number.

    The first zero is looked for in groups of about the root of the length at the same time, then among the groups: no chain
    grows with the length.
    """
    size = len(keep)
    side = 1 << ((size - 1).bit_length() + 1) // 2
    front, count = Signal(size, name="front"), Signal(range(size + 1), name="kept")
    full: list[Value] = []  # groups without a zero
    bits: list[list[Value]] = [[] for _ in count]  # of the number, by the group in which the first zero is
    for begin in range(0, size, side):
        group = keep[begin : begin + side]
        ones = [group[: place + 1].all() for place in range(len(group))]
        below = Cat(*full).all() if full else Const(1, 1)
        m.d.comb += front[begin : begin + len(group)].eq(Cat(*ones) & below.replicate(len(group)))
        zeros = [before & ~bit for before, bit in zip([Const(1, 1), *ones], group, strict=False)]
        here = below & ~ones[-1]
        for number, terms in enumerate(bits):
            if begin >> number & 1:
                terms.append(here)
            elif 1 << number < side:
                terms.append(here & Cat(*(zero for place, zero in enumerate(zeros) if place >> number & 1)).any())
        full.append(ones[-1])
    m.d.comb += count.eq(Mux(Cat(*full).all(), size, Cat(*(Cat(*terms).any() for terms in bits))))
    return front, count
