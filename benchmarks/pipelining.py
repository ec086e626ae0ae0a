"""Measure the effect of more pipeline registers on area, clock and latency.

    python benchmarks/pipelining.py [--block dct ...] [--config tiny] [--recipe balanced] [--clock-ns 1.4]

Synthesises blocks, both directions and the unit without and with the parameters ``dct_stages``, ``multiplier_stages`` and
``register_slices`` by one recipe of the native Yosys (package pyosys), simulates their latency, and prints a markdown table.
Latency is the time from the first word in to the first word out when nothing waits: of the directions, and of the unit without
its AXI ports, for a tensor of zeros in mode jpeg-act, compressed + decompressed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from amaranth.lib.wiring import Component
from amaranth.sim import Simulator
from cdu.delivery import generator
from cdu.delivery.blocks import BLOCKS
from cdu.values.scale_windows import ONE
from cdu_spec import CduConfig, named_config
from cdu_spec.geometry import BLOCK_SIDE, TILE_BLOCKS
from cdu_spec.modes import Mode
from cdu_synth.area import flow
from cdu_synth.area.recipes import RECIPES
from cdu_synth.library import pdk
from cdu_tools import yosys

#: Parameters by what they concern.
TRANSFORMS = {"dct_stages": 1}
MULTIPLIERS = {"multiplier_stages": 1}
EVERYTHING = {**TRANSFORMS, **MULTIPLIERS, "register_slices": 1}
DIRECTIONS = ("compressor", "decompressor")
#: Settings for each block, besides the fewest registers.
SETTINGS: Mapping[str, Sequence[Mapping[str, int]]] = {
    **dict.fromkeys(("sfpr", "inverse_sfpr"), (MULTIPLIERS,)),
    **dict.fromkeys(("dct", "idct", "two_way_dct"), (TRANSFORMS,)),
    **dict.fromkeys((*DIRECTIONS, "array"), (EVERYTHING,)),
}
#: Strips of the tensor that is simulated, one tile wide: enough for a first word at every end.
STRIPS = 4
#: Cycles after which a block that gives nothing is given up.
PATIENCE = 2000


def main() -> None:
    """Synthesise, simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--block", action="append", choices=list(SETTINGS), help="default: all; array is the unit")
    parser.add_argument("--config", default="tiny")
    parser.add_argument("--pdk", default=pdk.DEFAULT)
    parser.add_argument("--recipe", default="balanced", choices=list(RECIPES))
    parser.add_argument("--clock-ns", type=float, default=1.4)
    arguments = parser.parse_args()
    library, build = pdk.find(arguments.pdk).read(), yosys.engine("pyosys")
    print("| block | registers added | kGE | flip-flops | critical path, ns | from - to | latency, cycles |", flush=True)
    print("|---|---|--:|--:|--:|---|--:|", flush=True)
    for block in arguments.block or SETTINGS:
        for setting in ({}, *SETTINGS[block]):
            config = named_config(arguments.config).override(**setting)
            print(f"{block} {dict(setting)} ...", file=sys.stderr, flush=True)
            made = generator.generate(config, block)
            costs = flow.synthesise(made.verilog, made.top, library, arguments.clock_ns, build, recipes=[arguments.recipe])
            cost = costs[arguments.recipe]
            cells = [
                block,
                ", ".join(setting) or "none",
                f"{cost.ge / 1e3:.2f} | {cost.flip_flops} | {cost.critical_path_ns:.2f}",
                f"`{cost.start}` - `{cost.end}`",
                " + ".join(str(latency(one, config)) for one in (DIRECTIONS if block == "array" else (block,))),
            ]
            print(f"| {' | '.join(cells)} |", flush=True)


def latency(block: str, config: CduConfig) -> int:
    """Cycles from the first word in to the first word out of a simulation in which nothing waits."""
    dut: Any = BLOCKS[block](config)
    seen: dict[str, int] = {}

    async def bench(ctx: Any) -> None:
        _offer(ctx, dut, config)
        for cycle in range(PATIENCE):
            for name, port in (("i", dut.i), ("o", dut.o)):
                if ctx.get(port.valid) and ctx.get(port.ready):
                    seen.setdefault(name, cycle)
            if "o" in seen:
                return
            if block in DIRECTIONS and ctx.get(dut.job.ready):
                await ctx.tick()
                ctx.set(dut.job.valid, 0)
            else:
                await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-9)
    simulator.add_testbench(bench)
    simulator.run()
    if "o" not in seen:
        sys.exit(f"{block} gave nothing in {PATIENCE} cycles")
    return seen["o"] - seen["i"]


def _offer(ctx: Any, dut: Component, config: CduConfig) -> None:
    """Offer zeros, and to a direction the job and the scale that they belong to; take everything."""
    ports: Any = dut
    ctx.set(ports.i.valid, 1)
    ctx.set(ports.o.ready, 1)
    if not hasattr(ports, "job"):
        return
    job, scale = ports.job, ports.scales
    for name, value in {
        "mode": Mode.JPEG_ACT,
        "row_beats": TILE_BLOCKS,
        "beats": STRIPS * BLOCK_SIDE * TILE_BLOCKS,
        "channel_rows": STRIPS * BLOCK_SIDE,
    }.items():
        ctx.set(job.payload[name], value)
    ctx.set(job.valid, 1)
    ctx.set(scale.payload.value, ONE)
    ctx.set(scale.payload["last"], 1)
    ctx.set(scale.valid, 1)
    whole = config.packed_bytes if "data" in dict(ports.i.payload.shape()) else config.port_beats
    ctx.set(ports.i.payload["count"], whole)


if __name__ == "__main__":
    main()
