"""The same blocks in every cell library that is here.

    python benchmarks/libraries.py [--block NAME ...] [--clock-ns T]

Prints a markdown table: native Yosys, recipe balanced, OpenSTA where it is installed.
"""

from __future__ import annotations

import argparse

from cdu.delivery import generator
from cdu_spec import named_config
from cdu_synth.area import flow, opensta
from cdu_synth.library import pdk
from cdu_tools import yosys

BLOCKS = ("sfpr", "dct", "shift_quantizer", "zvc_encoder")
RECIPE = "balanced"


def main() -> None:
    """Synthesise and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--block", nargs="+", default=BLOCKS)
    parser.add_argument("--clock-ns", type=float, default=1.6)
    arguments = parser.parse_args()
    build, timer = yosys.engine("pyosys"), opensta.choose("auto")
    config = named_config("tiny")
    made = [generator.generate(config, block) for block in arguments.block]
    print("| library | block | um2 | kGE | flip-flops | critical path (ns) | leakage (uW) |")
    print("|---|---|--:|--:|--:|--:|--:|")
    checksums = []
    for source in pdk.available():
        library = source.read()
        checksums.append(f"{library.name} {library.sha256}")
        for block in made:
            found = flow.synthesise(block.verilog, block.top, library, arguments.clock_ns, build, recipes=[RECIPE], sta=timer)[
                RECIPE
            ]
            leakage = "" if found.leakage_uw is None else f"{found.leakage_uw:.3g}"
            sizes = f"{found.area_um2:,.0f} | {found.ge / 1e3:.2f} | {found.flip_flops:,}"
            print(f"| {library.name} | {block.name} | {sizes} | {found.critical_path_ns:.2f} | {leakage} |", flush=True)
    timing = f"OpenSTA {timer.version}" if timer else "the built-in timing"
    print(f"\nGates sized for {arguments.clock_ns:g} ns; {build.name} {build.version}, recipe {RECIPE}, {timing}.")
    print(f"SHA-256 of the libraries' texts: {', '.join(checksums)}.")


if __name__ == "__main__":
    main()
