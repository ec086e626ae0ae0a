"""Places and routes the named configurations, and blocks of the smallest, on an ECP5. Writes docs/evidence/fpga.md.

    python benchmarks/fpga.py [--only ROW ...] [--limit-minutes M]

Every row is the result of `cdu fpga`, whose report is kept in build/fpga/ROW. Existing rows with the same
configuration and versions of the programs are not measured again unless ``--only`` names them, so that the benchmark can be
interrupted and continued. A row without such a report stays unchanged, if the page is of the same versions. A row that
takes longer than the limit is left out, and the page says so.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from cdu.delivery import verilog
from cdu_fpga import nextpnr
from cdu_fpga.fpga_devices import ECP5
from cdu_fpga.fpga_report import CAVEAT, HEADS, cells, table
from cdu_fpga.place_blocks import PlacementSettings, place_blocks
from cdu_fpga.place_blocks import place as placed
from cdu_soc import system
from cdu_spec.config import CONFIGS, CduConfig
from cdu_spec.config_rules import DUPLEX
from cdu_spec.modes import Coder
from cdu_synth.area.block_selection import UNIT
from cdu_tools.files import make_folder, write_whole
from cdu_tools.progress import Lines
from digest import Table, read, wrapped

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "build" / "fpga"
PAGE = ROOT / "docs" / "evidence" / "fpga.md"
#: Data that `cdu list` reads; the rates are measured by benchmarks/configurations.py.
RATES = ROOT / "sw" / "cdu_cli" / "configurations.json"
SMALLEST = CONFIGS["tiny"]
#: Blocks of the smallest configuration, a row each.
BLOCKS = (
    *("sfpr", "inverse_sfpr", "alignment_buffer", "dct", "idct", "shift_quantizer", "inverse_shift_quantizer"),
    *("zvc_encoder", "zvc_decoder", "brc_encoder", "brc_decoder"),
    *("gmc_encoder", "gmc_decoder", "lane_encoder", "lane_decoder"),
)
#: The units by row, the smaller ones first, and the smallest with GMC.
UNITS: dict[str, CduConfig] = {
    f"{name}-{duplex}": CONFIGS[name].override(duplex=duplex)
    for name in sorted(CONFIGS, key=lambda name: (CONFIGS[name].cdus, len(CONFIGS[name].modes)))
    for duplex in DUPLEX
} | {f"{SMALLEST.name}-gmc": SMALLEST.override(coders=(Coder.GMC.label,))}
#: The smallest unit with its engine, a processor and memory.
SYSTEM = system.TOP
ROWS = (*BLOCKS, *UNITS, SYSTEM)
UNIT_HEAD = ("configuration", "duplex", "device", *HEADS.values(), "MHz", "million values/s", "problem")
BLOCK_HEAD = tuple(table({}).header)
#: Files beside the page with all rows and columns, and what the page shows of them.
UNIT_FILE, BLOCK_FILE = PAGE.with_name("fpga_units.csv"), PAGE.with_name("fpga_blocks.csv")
SHOWN_OF_UNITS = ("configuration", "duplex", "device", "LUT4", "DSP", "MHz", "million values/s")
SHOWN_OF_BLOCKS = ("block", "LUT4", "FF", "DSP", "BRAM", "MHz")
SHOWN_BLOCKS = ("sfpr", "alignment_buffer", "dct", "idct", "zvc_decoder", "gmc_decoder")
READING = """\
## Columns

- **LUT4** counts logic, carry chains and distributed RAM.
- **DSP**: SFPR needs two 18 x 18 multipliers for each of 8 values, inverse SFPR one; each coder of GMC needs two.
- **BRAM**: the banks of the alignment buffers; with four CDUs these become distributed RAM, as do all queues.
- **MHz**: nextpnr's timing analysis after routing. Most of the delay is wires.
- **Million values/s** is MHz times the [measured values per cycle](configurations.md).
"""


def measure(row: str, limit_minutes: float) -> None:
    """Make the report of a row; one that takes too long leaves none."""
    print(row, file=sys.stderr, flush=True)
    process = multiprocessing.get_context("spawn").Process(target=place, args=(row,))
    process.start()
    try:
        process.join(60 * limit_minutes)
        if process.exitcode is None:
            print(f"{row} was not finished within {limit_minutes:g} minutes", file=sys.stderr)
        elif process.exitcode:
            raise SystemExit(f"{row} failed")
    finally:
        if process.exitcode is None and process.pid is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.join()


def place(row: str) -> None:
    """Place and route a row and keep its report, in a process group of its own, so that Yosys and nextpnr end with it."""
    os.setsid()
    command = "python benchmarks/fpga.py"
    config = configuration(row)
    if row == SYSTEM:
        report = placed(PlacementSettings(config), system.design(config), command, Lines())
    else:
        report = place_blocks(PlacementSettings(config, [UNIT if row in UNITS else row]), command, Lines())
    report.write(make_folder(KEPT / row))


def configuration(row: str) -> CduConfig:
    """Return the configuration with which a row is measured."""
    return system.configuration(SMALLEST) if row == SYSTEM else UNITS.get(row, SMALLEST)


def kept(row: str) -> dict[str, Any] | None:
    """The report of a row, if it is there and was made from the same configuration by the same programs."""
    path = KEPT / row / "report.json"
    if not path.is_file():
        return None
    report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    versions = verilog.versions() | {ECP5.tool: nextpnr.version(ECP5.tool)}
    same = report["config"] == configuration(row).to_dict() and versions.items() <= report["versions"].items()
    return report if same else None


def name(row: str) -> tuple[str, ...]:
    """Return the cells before the figures of a row."""
    if row not in UNITS:
        return (row,)
    config = UNITS[row]
    return f"{config.name}, coders=gmc" if config.has_gmc else config.name, config.duplex


def line(row: str, report: dict[str, Any]) -> Sequence[str]:
    """The cells of a row. Rates are those of the benches, which measure them with ZVC."""
    if row not in UNITS:
        (block,) = table(report["blocks"]).rows
        return block
    config, entry = UNITS[row], report["blocks"][UNIT]
    ways = {} if config.has_gmc else json.loads(RATES.read_text(encoding="utf-8"))[config.name]["values_per_cycle"]
    speed = ", ".join(f"{way} {rate * entry['mhz']:,.0f}" for way, rate in ways.items()) if entry["mhz"] else ""
    return [*name(row), *cells(entry), speed, entry["problem"]]


def standing(made_with: str) -> dict[str, Sequence[str]]:
    """The cells of the rows beside the page; none if the page says something else of what it was made with."""
    if made_with not in PAGE.read_text(encoding="utf-8"):
        return {}
    lines = [one for file in (UNIT_FILE, BLOCK_FILE) for one in read(file.read_text(encoding="utf-8")).rows]
    return {row: one for row in ROWS for one in lines if one[: len(name(row))] == name(row)}


def write() -> None:
    """Write docs/evidence/fpga.md and the files beside it."""
    reports = {row: report for row in ROWS if (report := kept(row))}
    if not reports:
        raise SystemExit("nothing has been measured: give the benchmark more time")
    versions, grade, seed = (next(iter(reports.values()))[fact] for fact in ("versions", "speed_grade", "seed"))
    made_with = wrapped(
        f"Speed grade {grade}, seed {seed}; {', '.join(f'{program} {version}' for program, version in versions.items())}. "
        "Percentages are of what the device has."
    )
    rows = standing(made_with) | {row: line(row, report) for row, report in reports.items()}
    missing = ", ".join(row for row in ROWS if row not in rows)
    notes = f"Not measured: {missing}.\n" if missing else ""
    if older := ", ".join(row for row in rows if row not in reports):
        notes += f"Measured with an earlier unit: {older}.\n"
    units = Table(UNIT_HEAD, tuple(tuple(rows[row]) for row in UNITS if row in rows))
    blocks = Table(BLOCK_HEAD, tuple(tuple(rows[row]) for row in (*BLOCKS, SYSTEM) if row in rows))
    write_whole(UNIT_FILE, units.csv())
    write_whole(BLOCK_FILE, blocks.csv())
    write_whole(PAGE, page(units, blocks, made_with, notes))


def page(units: Table, blocks: Table, made_with: str, notes: str) -> str:
    """The markdown of docs/evidence/fpga.md."""
    return f"""\
# On an FPGA

Place and route a configuration or a block on a Lattice ECP5 with `cdu fpga`. It runs Yosys (`{ECP5.synthesis}`) and nextpnr on
the smallest device that fits, or on a named one (`--part LFE5U-85F`). Install nextpnr with `pip install {ECP5.tool}`.

    cdu fpga --part {ECP5.name} --config tiny --set duplex=half --block array -o build/fpga
    python benchmarks/fpga.py

The second command writes this page and the CSV files, a row for each run of `cdu fpga`.

{made_with}

## Named configurations

{units.only(*SHOWN_OF_UNITS).markdown()}

A row without MHz does not fit the largest device. All columns: [{UNIT_FILE.name}]({UNIT_FILE.name}).

{notes}
{wrapped(CAVEAT)}

## Blocks

Configuration `tiny`, GMC's blocks with both coders. All blocks and slowest paths: [{BLOCK_FILE.name}]({BLOCK_FILE.name}).

{blocks.where(block=SHOWN_BLOCKS).only(*SHOWN_OF_BLOCKS).markdown()}

## A whole system

`cdu soc --part {ECP5.name}`: [a RISC-V processor, 256 KiB of memory](../user/soc.md), and `tiny` with a DMA engine.

{blocks.where(block=SYSTEM).only("block", "device", *SHOWN_OF_BLOCKS[1:]).markdown()}

{READING}"""


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=ROWS, help="measure these, again if need be; none: only write the page")
    parser.add_argument("--limit-minutes", type=float, default=240, help="for one row (240)")
    arguments = parser.parse_args()
    wanted = [row for row in ROWS if kept(row) is None] if arguments.only is None else arguments.only
    for row in wanted:
        measure(row, arguments.limit_minutes)
    write()


if __name__ == "__main__":
    main()
