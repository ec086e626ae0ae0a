"""A system in Amaranth with a CDU in it: memories, stream DMA engines, and a sequencer that programs the unit over AXI4-Lite.

Compresses a tensor from one memory into another and decompresses it into a third, in Amaranth's own simulator (under a minute).
Both results are compared with the golden model.   python examples/amaranth_soc.py
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import actcodec
import torch
from actcodec.backends.job import beats_in, compression_job
from actcodec.golden import sfpr
from amaranth.hdl import Cat, Module, Signal, unsigned
from amaranth.lib import data, enum, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator
from cdu import CduArray, CduConfig
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Dtype, Mode
from cdu_spec.register_types import ADDRESS_BITS, REGISTER_BITS, Channel
from cdu_spec.registers import address, register

MODE = Mode.SFPR_ZVC
CONFIG = CduConfig(name="soc", modes=(MODE.label,))
#: Words of each memory.
DEPTH = 64
PATIENCE = 20_000  #: cycles


#: Signals of an AXI4-Lite port that the asking end drives, and those that it reads, with their widths.
ASKS = {
    **{"awaddr": ADDRESS_BITS, "awvalid": 1, "wdata": REGISTER_BITS, "wstrb": REGISTER_BITS // 8, "wvalid": 1, "bready": 1},
    **{"araddr": ADDRESS_BITS, "arvalid": 1, "rready": 1},
}
ANSWERS = {"awready": 1, "wready": 1, "bresp": 2, "bvalid": 1, "arready": 1, "rdata": REGISTER_BITS, "rresp": 2, "rvalid": 1}


class Op(enum.Enum, shape=3):
    """Operations of the sequencer."""

    HALT = 0  #: stop; everything went well
    WRITE = 1  #: write ``data`` to the register at ``address``
    CHECK = 2  #: read the register at ``address``; stop with ``failed`` when it is not ``data``
    MOVE = 3  #: start the DMA engines whose bits in ``data`` are 1
    WAIT = 4  #: wait until the interrupt line is high


INSTRUCTION = data.StructLayout({"op": Op, "address": ADDRESS_BITS, "data": REGISTER_BITS})
#: A program, as the initial content of its memory.
Program = list[dict[str, Any]]


class Sequencer(wiring.Component):
    """Runs a program once after reset: a master of an AXI4-Lite port, one access at a time.

    Ports
    -----
    bus signals (``awaddr`` to ``rready``)
        The port, at the end that asks.
    move
        One bit per DMA engine, high for a cycle.
    irq
        The unit's interrupt line.
    done, failed
        The program has ended; with ``failed`` because an access was refused or a CHECK found something else.
    """

    move: Signal
    irq: Signal
    done: Signal
    failed: Signal
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

    def __init__(self, program: Program, engines: int) -> None:
        self._program = program
        bus = {name: Out(width) for name, width in ASKS.items()} | {name: In(width) for name, width in ANSWERS.items()}
        super().__init__(bus | {"move": Out(engines), "irq": In(1), "done": Out(1), "failed": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        program: Any = Memory(shape=INSTRUCTION, depth=len(self._program), init=self._program)
        m.submodules.program = program
        port = program.read_port(domain="comb")
        step = Signal(range(len(self._program) + 1))
        now = port.data
        m.d.comb += [
            port.addr.eq(step),
            *(self.awaddr.eq(now.address), self.araddr.eq(now.address)),
            *(self.wdata.eq(now.data), self.wstrb.eq(0b1111)),
        ]
        with m.FSM():
            with m.State("next"), m.Switch(now.op):
                with m.Case(Op.WRITE):
                    m.d.sync += [self.awvalid.eq(1), self.wvalid.eq(1)]
                    m.next = "write"
                with m.Case(Op.CHECK):
                    m.d.sync += self.arvalid.eq(1)
                    m.next = "read"
                with m.Case(Op.MOVE):
                    m.d.comb += self.move.eq(now.data)
                    m.d.sync += step.eq(step + 1)
                with m.Case(Op.WAIT), m.If(self.irq):
                    m.d.sync += step.eq(step + 1)
                with m.Default():
                    m.next = "end"
            with m.State("write"):
                m.d.comb += self.bready.eq(1)
                with m.If(self.awready):
                    m.d.sync += self.awvalid.eq(0)
                with m.If(self.wready):
                    m.d.sync += self.wvalid.eq(0)
                with m.If(self.bvalid):
                    m.d.sync += [self.failed.eq(self.bresp != 0), step.eq(step + 1)]
                    m.next = "judge"
            with m.State("read"):
                m.d.comb += self.rready.eq(1)
                with m.If(self.arready):
                    m.d.sync += self.arvalid.eq(0)
                with m.If(self.rvalid):
                    m.d.sync += [self.failed.eq((self.rresp != 0) | (self.rdata != now.data)), step.eq(step + 1)]
                    m.next = "judge"
            with m.State("judge"):
                with m.If(self.failed):
                    m.next = "end"
                with m.Else():
                    m.next = "next"
            with m.State("end"):
                m.d.comb += self.done.eq(1)
        return m


class Reader(wiring.Component):
    """A DMA engine that sends the first ``words`` words of a memory as a packet.

    ``count`` is the number of bytes of the packet, ``start`` begins it. A word every two cycles.
    """

    tdata: Signal
    tkeep: Signal
    tlast: Signal
    tvalid: Signal
    tready: Signal
    start: Signal
    count: Signal

    def __init__(self, memory: Memory, word_bytes: int) -> None:
        self._port, self._depth, self.word_bytes = memory.read_port(), memory.depth, word_bytes
        most = range(word_bytes * memory.depth + 1)
        axis = {"tdata": Out(8 * word_bytes), "tkeep": Out(word_bytes), "tlast": Out(1), "tvalid": Out(1), "tready": In(1)}
        super().__init__(axis | {"start": In(1), "count": In(most)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        port = self._port
        place = Signal(range(self._depth))
        left = Signal.like(self.count)
        m.d.comb += [
            port.addr.eq(place),
            self.tdata.eq(port.data),
            self.tlast.eq(left <= self.word_bytes),
            self.tkeep.eq(Cat(left > byte for byte in range(self.word_bytes))),
        ]
        with m.FSM():
            with m.State("rest"), m.If(self.start):
                m.d.sync += [left.eq(self.count), place.eq(0)]
                m.next = "fetch"
            with m.State("fetch"):
                m.next = "send"
            with m.State("send"):
                m.d.comb += self.tvalid.eq(1)
                with m.If(self.tready):
                    m.d.sync += [place.eq(place + 1), left.eq(left - self.word_bytes)]
                    with m.If(self.tlast):
                        m.next = "rest"
                    with m.Else():
                        m.next = "fetch"
        return m


class Writer(wiring.Component):
    """A DMA engine that stores one packet from the start of a memory on; ``count`` is the number of bytes that came."""

    tdata: Signal
    tkeep: Signal
    tlast: Signal
    tvalid: Signal
    tready: Signal
    count: Signal
    ended: Signal

    def __init__(self, memory: Memory, word_bytes: int) -> None:
        self._port, self._depth = memory.write_port(), memory.depth
        axis = {"tdata": In(8 * word_bytes), "tkeep": In(word_bytes), "tlast": In(1), "tvalid": In(1), "tready": Out(1)}
        super().__init__(axis | {"count": Out(range(word_bytes * memory.depth + 1)), "ended": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        port = self._port
        place = Signal(range(self._depth))
        m.d.comb += [
            self.tready.eq(~self.ended),
            *(port.addr.eq(place), port.data.eq(self.tdata)),
            port.en.eq(self.tvalid & self.tready),
        ]
        with m.If(port.en):
            m.d.sync += [
                place.eq(place + 1),
                self.count.eq(self.count + sum(self.tkeep)),
                self.ended.eq(self.tlast),
            ]
        return m


class Soc(wiring.Component):
    """Sequencer, unit, and three memories with their DMA engines: values, payload, values again.

    Parameters
    ----------
    program
        What the sequencer does. Engine 0 sends the values, engine 1 the payload as far as it has been written.
    values
        Content of the first memory, a word of the unit's value port each.
    """

    done: Signal
    failed: Signal

    def __init__(self, program: Program, values: Sequence[int]) -> None:
        self._program, self._words = program, len(values)
        unit: Any = CduArray(CONFIG)  # its ports depend on the configuration
        self.unit = unit
        self.value_bytes, self.payload_bytes = len(unit.s_axis_tkeep), len(unit.m_axis_tkeep)
        self.values: Any = Memory(shape=unsigned(8 * self.value_bytes), depth=DEPTH, init=values)
        self.payload: Any = Memory(shape=unsigned(8 * self.payload_bytes), depth=DEPTH, init=[])
        self.restored: Any = Memory(shape=unsigned(8 * self.value_bytes), depth=DEPTH, init=[])
        self.packer = Writer(self.payload, self.payload_bytes)
        super().__init__({"done": Out(1), "failed": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.unit = unit = self.unit
        m.submodules.values, m.submodules.payload, m.submodules.restored = self.values, self.payload, self.restored
        m.submodules.sequencer = sequencer = Sequencer(self._program, engines=2)
        m.submodules.from_values = from_values = Reader(self.values, self.value_bytes)
        m.submodules.to_payload = to_payload = self.packer
        m.submodules.from_payload = from_payload = Reader(self.payload, self.payload_bytes)
        m.submodules.to_restored = to_restored = Writer(self.restored, self.value_bytes)
        # Registers and interrupt
        m.d.comb += [getattr(unit, f"s_axil_{name}").eq(getattr(sequencer, name)) for name in ASKS]
        m.d.comb += [getattr(sequencer, name).eq(getattr(unit, f"s_axil_{name}")) for name in ANSWERS]
        m.d.comb += [sequencer.irq.eq(unit.irq), self.done.eq(sequencer.done), self.failed.eq(sequencer.failed)]
        # Data; the ports of the scales stay tied off, for the sequencer writes scales to registers
        for source, port in ((from_values, "s_axis"), (from_payload, "s_axis_packed")):
            m.d.comb += [getattr(unit, f"{port}_{name}").eq(getattr(source, name)) for name in _FORWARD]
            m.d.comb += source.tready.eq(getattr(unit, f"{port}_tready"))
        for sink, port in ((to_payload, "m_axis"), (to_restored, "m_axis_values")):
            m.d.comb += [getattr(sink, name).eq(getattr(unit, f"{port}_{name}")) for name in _FORWARD]
            m.d.comb += getattr(unit, f"{port}_tready").eq(sink.tready)
        m.d.comb += [
            from_values.start.eq(sequencer.move[0]),
            from_values.count.eq(self._words * self.value_bytes),
            from_payload.start.eq(sequencer.move[1]),
            from_payload.count.eq(to_payload.count),
        ]
        return m


_FORWARD = ("tdata", "tkeep", "tlast", "tvalid")


def job(channel: Channel, view: MatrixView, scales: Sequence[int], engine: int) -> Program:
    """Instructions for one job: the steps of docs/reference/registers.md, "A job"; ``scales`` are float32 patterns."""

    def write(name: str, value: int) -> dict[str, Any]:
        return {"op": Op.WRITE, "address": address(name, channel), "data": value}

    last = len(scales) - 1
    return [
        write("INTERRUPT_ENABLE", register("INTERRUPT_ENABLE").pack(job_done=1, error=1)),
        write("WATCHDOG", PATIENCE // 4),
        write("MODE", register("MODE").pack(mode=MODE, scales=2)),  # from registers
        write("BEATS", view.beats),
        write("ROW_BEATS", view.row_beats),
        write("CHANNEL_ROWS", view.channel_rows),
        write("CONTROL", register("CONTROL").pack(start=1)),
        *(write("SCALE_LAST" if place == last else "SCALE", scale) for place, scale in enumerate(scales)),
        {"op": Op.MOVE, "data": 1 << engine},
        {"op": Op.WAIT},
        {"op": Op.CHECK, "address": address("ERRORS", channel), "data": 0},
        {"op": Op.CHECK, "address": address("JOBS_DONE", channel), "data": 1},
        write("INTERRUPT_STATUS", register("INTERRUPT_STATUS").pack(job_done=1)),
    ]


def patterns(numbers: torch.Tensor) -> list[int]:
    """Float32 numbers as unsigned integers of 32 bits."""
    return [number & 0xFFFFFFFF for number in numbers.flatten().view(torch.int32).tolist()]


def simulate(soc: Soc, payload_words: int, value_words: int) -> tuple[int, list[int], list[int], int]:
    """Cycles, words of payload and of restored values, and bytes of payload; RuntimeError when the program fails."""
    found: list[Any] = []

    async def bench(ctx: Any) -> None:
        cycles = 0
        while not ctx.get(soc.done):
            await ctx.tick()
            cycles += 1
            if cycles > PATIENCE:
                raise RuntimeError(f"the program has not ended after {PATIENCE} cycles")
        if ctx.get(soc.failed):
            raise RuntimeError("an access was refused, or a register does not read what it should")
        found.extend([cycles, [ctx.get(soc.payload.data[i]) for i in range(payload_words)]])
        found.extend([[ctx.get(soc.restored.data[i]) for i in range(value_words)], ctx.get(soc.packer.count)])

    simulator = Simulator(soc)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()
    return tuple(found)


def words(raw: bytes, size: int) -> list[int]:
    """Bytes as little-endian words, the last one filled with zeros."""
    return [int.from_bytes(raw[place : place + size], "little") for place in range(0, len(raw), size)]


def main() -> None:
    """Build the system for one tensor, run it, compare."""
    torch.manual_seed(1)
    x = torch.relu(torch.randn(1, 2, 8, 16))
    view = MatrixView.of(x.shape, MODE)
    # Result of the golden model
    packed: Any = actcodec.codec(MODE.label, S=1.125, scale_bits=CONFIG.scale_bits).compress(x)
    restored = actcodec.decompress(packed)
    # Scales that a host computes for the unit: a multiplier and a reciprocal per channel
    multipliers, reciprocals = sfpr.scales(x.reshape(1, 2, -1), 1.125, CONFIG.scale_bits)
    forward = compression_job(view, Dtype.FP32, multipliers)
    backward = compression_job(view, Dtype.FP32, reciprocals)
    program = [
        {"op": Op.CHECK, "address": address("ID"), "data": register("ID").reset},
        *job(Channel.COMPRESS, view, patterns(forward.scales), engine=0),
        *job(Channel.DECOMPRESS, view, patterns(backward.scales), engine=1),
        {"op": Op.HALT},
    ]
    value_bytes = CONFIG.port_beats * CONFIG.beat_bits // 8
    soc = Soc(program, words(beats_in(x, view).numpy().tobytes(), value_bytes))
    payload = words(packed.payload.numpy().tobytes(), soc.payload_bytes)
    values = words(beats_in(restored, view).numpy().tobytes(), value_bytes)
    began = time.monotonic()
    cycles, found_payload, found_values, count = simulate(soc, len(payload), len(values))
    assert count == packed.payload.numel(), f"{count} bytes of payload, and the golden model has {packed.payload.numel()}"
    assert found_payload == payload, "the payload is not the golden model's"
    assert found_values == values, "the restored values are not the golden model's"
    print(f"{len(program)} instructions, {cycles} cycles, simulated in {time.monotonic() - began:.0f} s")
    print(f"{x.nbytes} bytes of values, {count} bytes of payload: the golden model's, and so are the restored values")


if __name__ == "__main__":
    main()
