"""Measure the area that affine modes add to a unit of one CDU, relative to the path of JPEG-ACT.

    python benchmarks/mode_cost.py

Synthesises compressor and decompressor with several sets of modes, and the blocks of the affine engine, by one recipe of the
native Yosys (package pyosys), and prints markdown tables.
"""

from __future__ import annotations

import sys

from cdu.delivery import generator
from cdu_spec.config import CduConfig
from cdu_spec.modes import AFFINE_MODES, JPEG_ACT_MODES, Mode
from cdu_synth.area import flow
from cdu_synth.library import pdk
from cdu_tools import yosys
from cdu_tools.parallel import largest_first
from cdu_tools.report import Table

CLOCK_NS = 2.0
RECIPE = "balanced"
HALVES = ("compressor", "decompressor")
#: Sets of modes beside those of JPEG-ACT.
ADDED: dict[str, tuple[Mode, ...]] = {
    "JPEG-ACT's": (),
    "+ division": (Mode.DIVISION,),
    "+ actnn": (Mode.ACTNN,),
    "+ blpa": (Mode.BLPA,),
    "+ autoquant, autoquantz": (Mode.AUTOQUANT, Mode.AUTOQUANTZ),
    "+ all five": AFFINE_MODES,
}
#: Blocks of the affine engine, both directions.
ENGINE = ("range_finder", "affine_quantizer", "range_store", "affine_dequantizer")
#: The same units without and with the affine modes.
SHARED = ("sfpr", "inverse_sfpr", "alignment_buffer", "inverse_alignment_buffer")


def main() -> None:
    """Synthesise and print."""
    library, build = pdk.find(pdk.DEFAULT).read(), yosys.engine("pyosys")

    def made(task: tuple[str, tuple[Mode, ...]]) -> generator.Generated:
        block, modes = task
        return generator.generate(CduConfig(modes=tuple(mode.label for mode in (*JPEG_ACT_MODES, *modes))), block)

    def cost(unit: generator.Generated) -> flow.Cost:
        found = flow.synthesise(unit.verilog, unit.top, library, CLOCK_NS, build, recipes=[RECIPE])[RECIPE]
        print(f"{unit.name}: {found.ge / 1e3:.1f} kGE", file=sys.stderr, flush=True)
        return found

    tasks = [(half, modes) for modes in ADDED.values() for half in HALVES]
    tasks += [(block, AFFINE_MODES) for block in (*ENGINE, *SHARED)] + [(block, ()) for block in SHARED]
    found = largest_first(cost, largest_first(made, tasks, lambda task: len(task[1])), lambda unit: len(unit.verilog))
    costs = dict(zip(tasks, found, strict=True))
    kge = {task: found.ge / 1e3 for task, found in costs.items()}

    least = sum(kge[half, ()] for half in HALVES)
    units, blocks = [], []
    for name, modes in ADDED.items():
        cells = [text for half in HALVES for text in (f"{kge[half, modes]:.1f}", f"{costs[half, modes].critical_path_ns:.2f}")]
        units.append([name, *cells, f"{sum(kge[half, modes] for half in HALVES) - least:.1f}"])
    for block in (*ENGINE, *SHARED):
        before = f"{kge[block, ()]:.1f}" if block in SHARED else "none"
        cost_of = costs[block, AFFINE_MODES]
        blocks.append([block, f"{cost_of.ge / 1e3:.1f}", f"{cost_of.critical_path_ns:.2f}", before])
    head = ["modes", "compressor, kGE", "ns", "decompressor, kGE", "ns", "more than JPEG-ACT's, kGE"]
    print(Table(head, units).markdown(), end="\n\n")
    print(Table(["block, with all modes", "kGE", "ns", "kGE with JPEG-ACT's modes"], blocks).markdown())

    engine = sum(kge[block, AFFINE_MODES] for block in ENGINE)
    path = least - kge["sfpr", ()] - kge["inverse_sfpr", ()]
    print(f"\nThe engine ({', '.join(ENGINE)}) has {engine:.1f} kGE,")
    print(
        f"{engine / path:.0%} of JPEG-ACT's path without SFPR ({path:.1f} kGE); the rest is in wider shared blocks and coders."
    )


if __name__ == "__main__":
    main()
