"""Area and clock of one block against one parameter of its configuration.

    python benchmarks/area_by_parameter.py --block sfpr --parameter scale_bits 24 11 8

Prints a markdown table.
"""

from __future__ import annotations

import argparse

from cdu.delivery import generator
from cdu_spec import named_config
from cdu_synth.area import flow
from cdu_synth.library import pdk


def main() -> None:
    """Synthesise and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--block", required=True)
    parser.add_argument("--config", default="tiny")
    parser.add_argument("--parameter", required=True)
    parser.add_argument("values", nargs="+")
    parser.add_argument("--pdk", default=pdk.DEFAULT)
    parser.add_argument("--clock-ns", type=float, default=1.6)
    arguments = parser.parse_args()
    library = pdk.find(arguments.pdk).read()
    print(f"| {arguments.parameter} | {arguments.block}, kGE | flip-flops | critical path, ns |\n|---|---|---|---|")
    for value in arguments.values:
        config = named_config(arguments.config).override_texts({arguments.parameter: value})
        made = generator.generate(config, arguments.block)
        cost = flow.choose(flow.synthesise(made.verilog, made.top, library, arguments.clock_ns), arguments.clock_ns)
        print(f"| {value} | {cost.ge / 1e3:.2f} | {cost.flip_flops} | {cost.critical_path_ns:.2f} |", flush=True)


if __name__ == "__main__":
    main()
