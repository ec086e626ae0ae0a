"""Places and routes the named configurations, and blocks of the smallest, on an ECP5. Writes docs/evidence/fpga.md.

    python benchmarks/fpga.py [--only ROW ...] [--limit-minutes M]

Every row is the result of `cdu fpga`, whose report is kept in build/fpga/ROW. Existing rows with the same
configuration and versions of the programs are not measured again unless ``--only`` names them, so that the benchmark can be
interrupted and continued. A row without such a report stays unchanged on the page, if that is of the same versions. A row that
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
from cdu_spec.bitstream import Coder
from cdu_spec.config import CONFIGS, DUPLEX, CduConfig
from cdu_synth.area.wanted import UNIT
from cdu_synth.fpga import nextpnr
from cdu_synth.fpga.fpga_devices import ECP5
from cdu_synth.fpga.fpga_report import CAVEAT, HEADS, cells, table
from cdu_synth.fpga.place_blocks import PlacementSettings, place_blocks
from cdu_synth.fpga.place_blocks import place as placed
from cdu_tools.files import make_folder, write_whole
from cdu_tools.progress import Lines
from cdu_tools.report import Table
from cdu_verif.soc import system
from digest import tables, wrapped

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
UNIT_HEAD = ("configuration", "duplex", "device", *HEADS.values(), "MHz", "million values/s", "")
READING = """\
## How to read it

- **LUT4** counts everything that takes the place of a four-input look-up table: logic, carry chains (half a CCU2C each) and
  distributed RAM (six for 16 words of 4 bits, two of them for writing). nextpnr calls them TRELLIS_COMB and TRELLIS_RAMW.
- **Memories.** The text that `cdu generate` writes is taken as it is. The banks of the alignment buffers become block RAMs: the
  register behind their read port is the one that a block RAM has. Four CDUs divide the 64 words among four banks, which are
  too shallow for that, as is every other memory (the queues, the records of tiles): these become distributed RAM. What shifts
  or is read in several places at once stays in flip-flops: the transposer, shift tables, registers.
- **DSPs.** A multiplication by a scale in SFPR has a significand of 24 bits on one side, so that it takes two 18 x 18
  multipliers: 16 for the 8 values of a row. Inverse SFPR multiplies by a reciprocal of 8 bits and takes 8. The constants of
  the DCT take none: the generator writes them as shifts and additions that several constants share, which is what is small
  in gates, and Yosys does not turn additions back into multiplications. In each coder of GMC two take lengths, the number of
  values times the bits of each.
- **MHz** is what nextpnr's timing analysis allows after routing, for the speed grade and the seed given. Most of the delay is
  wires. The pipeline is the one of the ASIC flow, with as much between two registers as suits gates.
- **Million values per second**: that frequency times the values per cycle and direction that the benches measure
  (docs/evidence/configurations.md).
- A row that says "does not fit" shows what the unit would need beside what the largest device has.
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


def standing(text: str, made_with: str) -> dict[str, Sequence[str]]:
    """The cells of the rows that a page has; none of one that says something else of what it was made with."""
    lines = [one for _, shown in tables(text)[0] for one in shown.rows] if made_with in text else []
    return {row: one for row in ROWS for one in lines if one[: len(name(row))] == name(row)}


def page() -> str:
    """The markdown of docs/evidence/fpga.md."""
    reports = {row: report for row in ROWS if (report := kept(row))}
    if not reports:
        raise SystemExit("nothing has been measured: give the benchmark more time")
    versions, grade, seed = (next(iter(reports.values()))[fact] for fact in ("versions", "speed_grade", "seed"))
    made_with = wrapped(
        f"Speed grade {grade}, seed {seed}; {', '.join(f'{program} {version}' for program, version in versions.items())}. "
        "Percentages are of what the device has."
    )
    rows = standing(PAGE.read_text(encoding="utf-8"), made_with) | {row: line(row, report) for row, report in reports.items()}
    units = Table(UNIT_HEAD, [rows[row] for row in UNITS if row in rows])
    blocks, whole = (Table(table({}).header, [rows[row] for row in some if row in rows]) for some in (BLOCKS, [SYSTEM]))
    missing = ", ".join(row for row in ROWS if row not in rows)
    absent = f"Not measured in the time given to the benchmark: {missing}.\n\n" if missing else ""
    if older := ", ".join(row for row in rows if row not in reports):
        absent += f"Of an earlier run, and of an earlier unit: {older}.\n\n"
    return f"""\
# On an FPGA

`cdu fpga` runs Yosys (`{ECP5.synthesis}`) on the Verilog that `cdu generate` writes, then nextpnr, which packs,
places and routes it on the smallest Lattice ECP5 that it fits, or on the device that is named (`--part LFE5U-85F`).
`pip install {ECP5.tool}` adds what is needed; nothing else has to be installed.

## Named configurations

`python benchmarks/fpga.py`: per row `cdu fpga --part {ECP5.name} --config NAME --set duplex=KIND --block array`, with
`--set coders=gmc` where that is said.
{made_with}

{units.markdown()}

{absent}{wrapped(CAVEAT)}

## Blocks

Per row `cdu fpga --part {ECP5.name} --block NAME`, configuration tiny. Those of GMC and of a lane are of
that configuration with both coders; a lane's have BRC as well.

{blocks.markdown()}

## A whole system

`cdu soc --part {ECP5.name}`: [a RISC-V processor, 256 KiB of memory, what joins them](../user/soc.md), and configuration tiny
behind its DMA engine, 64 bits wide.

{whole.markdown()}

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
    write_whole(PAGE, page())


if __name__ == "__main__":
    main()
