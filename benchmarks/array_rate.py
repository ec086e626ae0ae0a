"""Values per cycle of the whole unit against the number of CDUs, the width of the packed port, and the content.

    python benchmarks/array_rate.py [--cdus 1 2 3 4 8] [--packed-port-bits 0 128] [--coders zvc,gmc] [--modes jpeg-act]
    python benchmarks/array_rate.py --report build/verify/verilator/report.json

Simulates generated units through their AXI ports and prints a markdown table. The source offers and the sink takes a word in
every cycle, so that what is missing to the ideal is the unit's. The stall columns are the unit's own counters, as parts of
the cycles in which it was busy. Exit code 1 when a job is slower than the widths of the ports explain. With ``--report`` the
rates are those that a finished `cdu verify` has measured.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

from cdu_spec import CduConfig, named_config
from cdu_spec.register_types import Channel
from cdu_tools.report import table_row
from cdu_verif.regression import plan, regression, results

_HEADER = (
    "| N | packed port, bytes | direction | mode | content | ratio | values/cycle | possible | held up by the unit | "
    "input idle | held up by the sink |",
    "|--:|--:|---|---|---|--:|--:|--:|--:|--:|--:|",
)


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", default="tiny")
    parser.add_argument("--cdus", type=int, nargs="+", default=[1, 2, 3, 4, 8])
    parser.add_argument("--packed-port-bits", type=int, nargs="+", default=[0, 128], help="0: as wide as the CDUs need")
    parser.add_argument("--coders", help="how units code jpeg-act, with commas between; as in the configuration when left out")
    parser.add_argument("--modes", nargs="+", help="modes that are measured; all that are built when left out")
    parser.add_argument("-o", "--output", type=Path, default=Path("build", "array_rate"))
    parser.add_argument("--report", type=Path, help="report.json of a finished `cdu verify`: measure nothing")
    arguments = parser.parse_args()
    if arguments.report:
        report = json.loads(arguments.report.read_text(encoding="utf-8"))
        print("\n".join(_HEADER))
        for result in report["results"]:
            for row in result["measurements"]:
                print(_line(_config_of(named_config(arguments.config), result["group"]), row))
        return
    base = named_config(arguments.config)
    built = {"coders": arguments.coders} if arguments.coders else {}
    runs: dict[Any, plan.PlannedRun] = {}
    for bits in arguments.packed_port_bits:
        for cdus in arguments.cdus:
            parameters = {"cdus": str(cdus), "packed_port_bits": str(bits), **built}
            config = base.override_texts(parameters)
            # The same unit may be asked for by two names of its width
            runs.setdefault((cdus, config.packed_bytes), plan.PlannedRun(plan.ARRAY, config, tuple(parameters.items())))
    arguments.output.mkdir(parents=True, exist_ok=True)
    tests = tuple(
        f"rate/direction={channel.value}/mode={mode.name.lower()}"
        for channel in Channel
        for mode in base.built_modes
        if not arguments.modes or mode.label in arguments.modes
    )
    settings = regression.RunSettings(arguments.output, tests=tests)
    found, _ = regression.regress(
        list(runs.values()), settings, lambda test: print(test.status, test.group, test.name, file=sys.stderr)
    )
    print("\n".join(_HEADER))
    configs = {run.label: run.config for run in runs.values()}
    for test in found:
        for row in test.measurements:
            print(_line(configs[test.group], row))
    failed = [test for test in found if test.status == results.FAILED]
    for test in failed:
        print(f"{test.group} {test.name}: {test.message}", file=sys.stderr)
    sys.exit(bool(failed))


def _config_of(base: CduConfig, label: str) -> CduConfig:
    """The configuration of a run by its label: ``array[cdus=3,modes=sfpr,brc]``."""
    return base.override_texts(dict(re.findall(r"[\[,](\w+)=([^=]*?)(?=,\w+=|\])", label)))


def _line(config: Any, row: dict[str, Any]) -> str:
    parts = [f"{100 * row[name] / row['cycles']:.0f} %" for name in ("input_stall", "input_idle", "output_stall")]
    cells = [config.cdus, config.packed_bytes, row["direction"], row["mode"], row["content"]]
    rates = [f"{row[name]:.2f}" for name in ("ratio", "values_per_cycle", "possible")]
    return table_row((*cells, *rates, *parts))


if __name__ == "__main__":
    main()
