"""Draws docs/user/integration_timing.png: one small job from START to the interrupt, as the simulated unit does it.

    python benchmarks/timing_diagram.py [-o FILE]

A job of mode brc with three rows of 8 values goes through the unit ``tiny`` in Amaranth's simulator. Nothing in the picture is
drawn by hand but the order of the signals.
"""

from __future__ import annotations

import argparse
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from amaranth.sim import Simulator
from cdu.unit.array import CduArray
from cdu_spec import CduConfig, Mode
from cdu_spec.geometry import LANES
from cdu_spec.registers import Channel, address, register
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

BEATS = 3
#: Signals from top to bottom; a bus is labelled with what it carries.
SHOWN = (
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
#: Bits below which a signal is drawn as a level.
_LEVEL_BITS = 1

Samples = dict[str, list[int]]


def simulate() -> Samples:
    """The values of all shown signals in every cycle."""
    unit: Any = CduArray(CduConfig())
    samples: Samples = {name: [] for name in SHOWN}
    finished = False

    async def write(ctx: Any, offset: int, value: int) -> None:
        ctx.set(unit.s_axil_awaddr, offset)
        ctx.set(unit.s_axil_wdata, value)
        ctx.set(unit.s_axil_wstrb, 0xF)
        ctx.set(unit.s_axil_awvalid, 1)
        ctx.set(unit.s_axil_wvalid, 1)
        await ctx.tick()
        ctx.set(unit.s_axil_awvalid, 0)
        ctx.set(unit.s_axil_wvalid, 0)
        await ctx.tick().until(unit.s_axil_bvalid)

    async def driver(ctx: Any) -> None:
        ctx.set(unit.s_axil_bready, 1)
        channel = Channel.COMPRESS
        await write(ctx, address("INTERRUPT_ENABLE", channel), register("INTERRUPT_ENABLE").pack(job_done=1))
        await write(ctx, address("MODE", channel), register("MODE").pack(mode=Mode.BRC))
        for name in ("BEATS", "ROW_BEATS", "CHANNEL_ROWS"):
            await write(ctx, address(name, channel), BEATS if name != "CHANNEL_ROWS" else 1)
        await write(ctx, address("CONTROL", channel), register("CONTROL").pack(start=1))
        await ctx.tick().until(unit.irq)
        await write(ctx, address("INTERRUPT_STATUS", channel), register("INTERRUPT_STATUS").pack(job_done=1))
        await ctx.tick().repeat(4)
        nonlocal finished
        finished = True

    async def source(ctx: Any) -> None:
        for beat in range(BEATS):
            values = [(-1.0) ** (place // (beat + 1)) for place in range(LANES)]
            ctx.set(unit.s_axis_tdata, int.from_bytes(struct.pack(f"<{LANES}f", *values), "little"))
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

    async def sampler(ctx: Any) -> None:
        signals = [getattr(unit, name) for name in SHOWN]
        while not finished:
            _, _, *values = await ctx.tick().sample(*signals)
            for name, value in zip(SHOWN, values, strict=True):
                samples[name].append(int(value))

    simulator = Simulator(unit)
    simulator.add_clock(1e-9)
    processes: tuple[Callable[[Any], Any], ...] = (driver, source, sink)
    for process in processes:
        simulator.add_testbench(process, background=True)
    simulator.add_testbench(sampler)
    simulator.run()
    return samples


def draw(samples: Samples, file: Path) -> None:
    """The picture, from a little before START to the end."""
    writes = [cycle for cycle, valid in enumerate(samples["s_axil_awvalid"]) if valid]
    start = writes[-2] - 3
    end = len(samples["irq"])
    figure, axes = plt.subplots(figsize=(11, 0.42 * len(SHOWN) + 0.8))
    for place, name in enumerate(SHOWN):
        values = samples[name][start:end]
        base = -place
        axes.text(-0.4, base + 0.3, name, ha="right", va="center", family="monospace", fontsize=8)
        if max(samples[name]) >> _LEVEL_BITS:
            _bus(axes, base, values, _valid_of(name, samples)[start:end])
        else:
            axes.step(range(len(values) + 1), [base + 0.6 * value for value in (*values, values[-1])], where="post", color="C0")
    for cycle in range(end - start + 1):
        axes.axvline(cycle, color="0.9", linewidth=0.6, zorder=0)
    axes.set_xlim(0, end - start)
    axes.set_ylim(-len(SHOWN) + 0.6, 1)
    axes.set_yticks([])
    axes.set_xlabel("cycle")
    axes.set_frame_on(False)
    figure.tight_layout()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=130)


def _valid_of(name: str, samples: Samples) -> list[int]:
    """When a bus means something."""
    prefix = name.rsplit("_", 1)[0]
    return samples[f"{prefix}_awvalid" if prefix == "s_axil" else f"{prefix}_tvalid"]


def _bus(axes: Axes, base: float, values: list[int], valid: list[int]) -> None:
    """A bus: one labelled box for every run of cycles in which it carries the same valid value."""
    cycle = 0
    while cycle < len(values):
        length = 1
        while cycle + length < len(values) and (values[cycle + length], valid[cycle + length]) == (values[cycle], valid[cycle]):
            length += 1
        if valid[cycle]:
            axes.fill_between([cycle, cycle + length], base, base + 0.6, color="C0", alpha=0.25, linewidth=0)
            axes.text(cycle + length / 2, base + 0.28, f"{values[cycle]:x}", ha="center", va="center", fontsize=7)
        axes.plot([cycle, cycle + length], [base, base], color="C0", linewidth=0.8)
        cycle += length


def main() -> None:
    """See the module's documentation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path("docs", "user", "integration_timing.png"))
    draw(simulate(), parser.parse_args().output)


if __name__ == "__main__":
    main()
