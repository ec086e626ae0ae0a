"""Draws docs/user/integration_timing.png and dma_timing.png: one small job from start to interrupt, as simulated units do it.

    python benchmarks/timing_diagram.py [-o FOLDER]

A job of mode brc goes through the unit ``tiny`` in Amaranth's simulator: three rows of 8 values without a DMA engine, 8 rows
with one, beside a memory that answers after 8 cycles. Nothing in the pictures is drawn by hand but the order of the signals.
"""

from __future__ import annotations

import argparse
import itertools
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from amaranth.sim import Simulator
from cdu.dma.dma_array import CduDmaArray
from cdu.unit.array import CduArray
from cdu_spec import CduConfig, Mode
from cdu_spec.bitstream import SHIFT_TABLE_BYTES
from cdu_spec.dma import COMPLETION_BYTES, Completion, Descriptor, dma_address, dma_register, row_major_strides
from cdu_spec.geometry import LANES
from cdu_spec.modes import Dtype
from cdu_spec.register_types import Channel
from cdu_spec.registers import address, register
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

BEATS = 3
#: Signals of a unit from top to bottom; a bus is labelled with what it carries.
UNIT = (
    "s_axil_awvalid",
    "s_axil_awaddr",
    "s_axil_wdata",
    "s_axil_bvalid",
    "s_axis_tvalid",
    "s_axis_tready",
    "s_axis_tlast",
    "m_axis_tvalid",
    "m_axis_tready",
    "m_axis_tdata",
    "m_axis_tkeep",
    "m_axis_tlast",
    "irq",
)
#: Signals of a unit with its engine; addresses are labelled with the name of their place.
ENGINE = (
    "s_axil_awvalid",
    "m_axi_arvalid",
    "m_axi_araddr",
    "m_axi_rvalid",
    "m_axi_rlast",
    "m_axi_awvalid",
    "m_axi_awaddr",
    "m_axi_wvalid",
    "m_axi_bvalid",
    "irq",
)
#: Addresses in the memory of the engine.
PLACES = {"descriptor": 0x1000, "tensor": 0x2000, "payload": 0x3000, "record": 0x4000}
_MEMORY_BYTES, _LATENCY = 0x5000, 8
_DMA_BITS, _DMA_BEATS = 128, 8
#: Bits below which a signal is drawn as a level.
_LEVEL_BITS = 1
#: Fewer cycles than these have a line each.
_FINE = 100

Samples = dict[str, list[int]]
Process = Callable[[Any], Any]


async def write(ctx: Any, unit: Any, offset: int, value: int) -> None:
    """Write a register."""
    ctx.set(unit.s_axil_bready, 1)
    ctx.set(unit.s_axil_awaddr, offset)
    ctx.set(unit.s_axil_wdata, value)
    ctx.set(unit.s_axil_wstrb, 0xF)
    ctx.set(unit.s_axil_awvalid, 1)
    ctx.set(unit.s_axil_wvalid, 1)
    await ctx.tick()
    ctx.set(unit.s_axil_awvalid, 0)
    ctx.set(unit.s_axil_wvalid, 0)
    await ctx.tick().until(unit.s_axil_bvalid)


def sampled(unit: Any, names: Sequence[str], driver: Process, others: Sequence[Process]) -> Samples:
    """The values of some ports in every cycle, until the driver is done."""
    samples: Samples = {name: [] for name in names}
    finished = False

    async def drive(ctx: Any) -> None:
        nonlocal finished
        await driver(ctx)
        finished = True

    async def sampler(ctx: Any) -> None:
        signals = [getattr(unit, name) for name in names]
        while not finished:
            _, _, *values = await ctx.tick().sample(*signals)
            for name, value in zip(names, values, strict=True):
                samples[name].append(int(value))

    simulator = Simulator(unit)
    simulator.add_clock(1e-9)
    for process in (drive, *others):
        simulator.add_testbench(process, background=True)
    simulator.add_testbench(sampler)
    simulator.run()
    return samples


def values_of(beat: int) -> bytes:
    """A row of 8 float32 of two signs."""
    return struct.pack(f"<{LANES}f", *((-1.0) ** (place // (beat + 1)) for place in range(LANES)))


def simulate_unit() -> Samples:
    """A job of a unit whose ports a bench feeds."""
    unit: Any = CduArray(CduConfig())
    channel = Channel.COMPRESS

    async def driver(ctx: Any) -> None:
        await write(ctx, unit, address("INTERRUPT_ENABLE", channel), register("INTERRUPT_ENABLE").pack(job_done=1))
        await write(ctx, unit, address("MODE", channel), register("MODE").pack(mode=Mode.BRC))
        for name in ("BEATS", "ROW_BEATS", "CHANNEL_ROWS"):
            await write(ctx, unit, address(name, channel), BEATS if name != "CHANNEL_ROWS" else 1)
        await write(ctx, unit, address("CONTROL", channel), register("CONTROL").pack(start=1))
        await ctx.tick().until(unit.irq)
        await write(ctx, unit, address("INTERRUPT_STATUS", channel), register("INTERRUPT_STATUS").pack(job_done=1))
        await ctx.tick().repeat(4)

    async def source(ctx: Any) -> None:
        for beat in range(BEATS):
            ctx.set(unit.s_axis_tdata, int.from_bytes(values_of(beat), "little"))
            ctx.set(unit.s_axis_tkeep, (1 << len(unit.s_axis_tkeep)) - 1)
            ctx.set(unit.s_axis_tlast, beat == BEATS - 1)
            ctx.set(unit.s_axis_tvalid, 1)
            await ctx.tick().until(unit.s_axis_tready)
        ctx.set(unit.s_axis_tvalid, 0)
        ctx.set(unit.s_axis_tlast, 0)

    async def sink(ctx: Any) -> None:
        await ctx.tick().until(unit.m_axis_tvalid)
        await ctx.tick()
        ctx.set(unit.m_axis_tready, 1)

    return sampled(unit, UNIT, driver, (source, sink))


def simulate_engine() -> Samples:
    """A job of a unit with its engine, described in memory."""
    unit: Any = CduDmaArray(CduConfig(dma_bits=_DMA_BITS))
    channel, size = Channel.COMPRESS, _DMA_BITS // 8
    extents = (1, 1, 1, LANES * _DMA_BEATS)
    descriptor = Descriptor(
        *(Mode.BRC, Dtype.FP32, *extents, PLACES["tensor"]),
        **row_major_strides(extents, Dtype.FP32.bits // 8),
        payload=PLACES["payload"],
        payload_bytes=_DMA_BEATS,
        completion=PLACES["record"],
        shifts=bytes(SHIFT_TABLE_BYTES),
    )
    memory = bytearray(_MEMORY_BYTES)
    for name, content in (("descriptor", descriptor.pack()), ("tensor", b"".join(map(values_of, range(_DMA_BEATS))))):
        memory[PLACES[name] : PLACES[name] + len(content)] = content

    async def driver(ctx: Any) -> None:
        fields = {"RING_LOW": {"address": dma_register("RING_LOW").field("address").get(PLACES["descriptor"])}}
        fields |= {"INTERRUPT_ENABLE": {"job_done": 1}, "CONTROL": {"enable": 1}, "TAIL": {"value": 1}}
        for name, values in fields.items():
            await write(ctx, unit, dma_address(name, channel), dma_register(name).pack(**values))
        await ctx.tick().until(unit.irq)
        await write(ctx, unit, dma_address("INTERRUPT_STATUS", channel), dma_register("INTERRUPT_STATUS").pack(job_done=1))
        await ctx.tick().repeat(4)
        record = Completion.unpack(memory[PLACES["record"] : PLACES["record"] + COMPLETION_BYTES])
        assert record.done, "there is no record"
        assert (record.errors, record.bytes) == (0, _DMA_BEATS), f"the job has failed: {record}"

    async def reads(ctx: Any) -> None:
        """Bursts one after the other, each of them after the latency."""
        ctx.set(unit.m_axi_arready, 1)
        asked: list[tuple[int, int, int, int]] = []
        words: list[tuple[int, int, int]] = []
        for cycle in itertools.count():
            _, _, valid, place, length, number = await ctx.tick().sample(
                *(getattr(unit, f"m_axi_ar{name}") for name in ("valid", "addr", "len", "id"))
            )
            if valid:
                asked.append((cycle + _LATENCY, place, length + 1, number))
            if not words and asked and asked[0][0] <= cycle:
                _, place, length, number = asked.pop(0)
                for word in range(length):
                    begin = place + word * size
                    words.append((int.from_bytes(memory[begin : begin + size], "little"), number, word == length - 1))
            data, number, last = words.pop(0) if (there := bool(words)) else (0, 0, False)
            for name, value in (("valid", there), ("data", data), ("id", number), ("last", last)):
                ctx.set(getattr(unit, f"m_axi_r{name}"), value)

    async def writes(ctx: Any) -> None:
        """A burst at a time, whose answer comes after the latency."""
        ctx.set(unit.m_axi_awready, 1)
        while True:
            _, _, valid, place, number = await ctx.tick().sample(unit.m_axi_awvalid, unit.m_axi_awaddr, unit.m_axi_awid)
            if not valid:
                continue
            ctx.set(unit.m_axi_awready, 0)
            ctx.set(unit.m_axi_wready, 1)
            last = False
            while not last:
                data, enables, last = (
                    await ctx.tick().sample(unit.m_axi_wdata, unit.m_axi_wstrb, unit.m_axi_wlast).until(unit.m_axi_wvalid)
                )
                for byte in range(size):
                    if enables >> byte & 1:
                        memory[place + byte] = data >> 8 * byte & 0xFF
                place += size
            ctx.set(unit.m_axi_wready, 0)
            await ctx.tick().repeat(_LATENCY)
            ctx.set(unit.m_axi_bid, number)
            ctx.set(unit.m_axi_bvalid, 1)
            await ctx.tick().until(unit.m_axi_bready)
            ctx.set(unit.m_axi_bvalid, 0)
            ctx.set(unit.m_axi_awready, 1)

    return sampled(unit, ENGINE, driver, (reads, writes))


def place_name(number: int) -> str:
    """Return the name of the place at an address."""
    return max((begin, name) for name, begin in PLACES.items() if begin <= number)[1]


def draw(samples: Samples, label: Callable[[int], str], file: Path) -> None:
    """The picture, from a little before the write that starts the job to the end."""
    writes = [cycle for cycle, valid in enumerate(samples["s_axil_awvalid"]) if valid]
    start = writes[-2] - 3
    end = len(samples["irq"])
    figure, axes = plt.subplots(figsize=(11, 0.42 * len(samples) + 0.8))
    for place, name in enumerate(samples):
        values = samples[name][start:end]
        base = -place
        axes.text(-0.4, base + 0.3, name, ha="right", va="center", family="monospace", fontsize=8)
        if max(samples[name]) >> _LEVEL_BITS:
            _bus(axes, base, values, _valid_of(name, samples)[start:end], label)
        else:
            axes.step(range(len(values) + 1), [base + 0.6 * value for value in (*values, values[-1])], where="post", color="C0")
    for cycle in range(0, end - start + 1, 1 if end - start < _FINE else 10):
        axes.axvline(cycle, color="0.9", linewidth=0.6, zorder=0)
    axes.set_xlim(0, end - start)
    axes.set_ylim(-len(samples) + 0.6, 1)
    axes.set_yticks([])
    axes.set_xlabel("cycle")
    axes.set_frame_on(False)
    figure.tight_layout()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=130)


def _valid_of(name: str, samples: Samples) -> list[int]:
    """Return the signal that marks valid values of a bus, by cycle."""
    prefix, signal = name.rsplit("_", 1)
    channel = "t" if prefix.endswith("axis") else "ar" if signal.startswith("ar") else "aw"
    return samples[f"{prefix}_{channel}valid"]


def _bus(axes: Axes, base: float, values: list[int], valid: list[int], label: Callable[[int], str]) -> None:
    """A bus: one labelled box for every run of cycles in which it carries the same valid value."""
    cycle = 0
    while cycle < len(values):
        length = 1
        while cycle + length < len(values) and (values[cycle + length], valid[cycle + length]) == (values[cycle], valid[cycle]):
            length += 1
        if valid[cycle]:
            axes.fill_between([cycle, cycle + length], base, base + 0.6, color="C0", alpha=0.25, linewidth=0)
            axes.text(cycle + length / 2, base + 0.28, label(values[cycle]), ha="center", va="center", fontsize=7)
        axes.plot([cycle, cycle + length], [base, base], color="C0", linewidth=0.8)
        cycle += length


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path("docs", "user"))
    folder = parser.parse_args().output
    draw(simulate_unit(), "{:x}".format, folder / "integration_timing.png")
    draw(simulate_engine(), place_name, folder / "dma_timing.png")


if __name__ == "__main__":
    main()
