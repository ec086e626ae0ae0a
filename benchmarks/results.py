"""Runs the measurements behind docs/evidence/results.md and writes that page.

    python benchmarks/results.py [--hardware] [--only NAME ...]

Each section is the standard output of the command that stands in it. Finished sections are kept in build/results, so that
an interrupted run goes on where it stopped. With ``--hardware`` only what the hardware costs is measured; ``--only`` repeats
single sections and measures no others. What is not measured stays as it is on the page.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from cdu_tools.files import write_whole
from cdu_verif.regression.results import MEASURED, TESTS

ROOT = Path(__file__).parent.parent
KEPT = Path("build", "results")
PAGE = Path("docs", "evidence", "results.md")
#: What stands for a section that has never been measured.
MISSING = "Not measured yet."


@dataclass(frozen=True)
class Section:
    """A measurement: its command prints markdown, or leaves it in ``report``, with ``pictures`` beside it."""

    name: str
    title: str
    text: str
    command: str
    report: Path | None = None
    pictures: tuple[str, ...] = ()
    until: str | None = None  #: heading of the report at which to stop
    hardware: bool = False  #: whether it says what the hardware costs


SECTIONS = (
    Section(
        "idct",
        "Accuracy of the transforms",
        "Precision is fraction bits of the constants / bits kept between the passes; the default is 12/2. Worst of six runs of "
        "10 000 blocks. The hardware gives the same integers (`cdu verify --block idct`).",
        "python benchmarks/idct_accuracy.py",
    ),
    Section(
        "idct_rtl",
        "IEEE 1180 in the RTL",
        "All 60 000 blocks through the generated inverse DCT, built for 9-bit samples.",
        "cdu verify --block idct --test ieee_1180 --set sample_bits=9 --set const_bits=12 --set pass1_bits=2 --level full "
        "-o build/results/idct",
        KEPT / "idct" / "report.md",
        until=TESTS,
    ),
    Section(
        "verification",
        "Verification of the RTL",
        "Every test compares with the golden model; [verification.md](verification.md) says what the tests do. Skipped are "
        "tests of what a block or build does not have.",
        "cdu verify --level quick -o build/verify/verilator",
        Path("build", "verify", "verilator", "report.md"),
        until=MEASURED,
    ),
    Section(
        "training_rtl",
        "Training through the simulated unit",
        "A ResNet on scikit-learn's digits; every activation that the policy compresses passes through a simulated array of 4 "
        "CDUs, driven by the reference driver, which writes tables and scales to registers.",
        "cdu verify --config universal --training --steps 2 -o build/verify/training",
        Path("build", "verify", "training", "report.md"),
        until=TESTS,
    ),
    Section(
        "rates",
        "Rate of the whole unit",
        'Simulated through the AXI ports, source and sink ready in every cycle. "possible" follows from N and from what the '
        "packed port moves per cycle.",
        "python benchmarks/array_rate.py --report build/verify/verilator/report.json",
    ),
    Section(
        "area",
        "Area and clock",
        "All blocks and the whole unit `tiny`, by the native Yosys of the package pyosys and one recipe; without these options "
        "`cdu synth` tries three recipes with a Yosys that gives the same netlist on every machine, and takes an hour. "
        "[synthesis.md](../user/synthesis.md) says how it is measured.",
        "cdu synth --yosys pyosys --recipe balanced -o build/results/synth",
        KEPT / "synth" / "report.md",
        ("area.png",),
        hardware=True,
    ),
    Section(
        "libraries",
        "The same blocks in other libraries",
        "One GE is the smallest two-input NAND of the library, so that nodes compare.",
        "python benchmarks/libraries.py",
        hardware=True,
    ),
    Section(
        "clock",
        "Area against clock period",
        "",
        "cdu synth --block dct --yosys pyosys --clock-ns 1.7:2.9:0.3 -o build/results/clock",
        KEPT / "clock" / "report.md",
        ("sweep.png",),
        hardware=True,
    ),
    Section(
        "pipelining",
        "Clock against registers",
        "What the parameters `dct_stages`, `multiplier_stages` and `register_slices` bring and cost "
        "([pipelining.md](../user/pipelining.md)).",
        "python benchmarks/pipelining.py",
        hardware=True,
    ),
    Section(
        "power",
        "Power and energy per value",
        "The netlists of both directions, simulated gate by gate on activations of a network in training, every word compared "
        "with the golden model ([power.md](../user/power.md) has the assumptions).",
        "cdu power --dataset cifar10 --limit 512 --steps 8 --codec jpeg-act --codec sfpr+zvc --clock-ns 2.3 --yosys pyosys "
        "--random --block compressor --block decompressor -o build/results/power",
        KEPT / "power" / "power.md",
        hardware=True,
    ),
    Section(
        "mode_cost",
        "What the affine modes add",
        "A unit of one CDU.",
        "python benchmarks/mode_cost.py",
        hardware=True,
    ),
    Section(
        "scale_width",
        "Width of SFPR's multiplier",
        "A multiplier of 8 significant bits takes a third of the area of a full one; the error that it costs is the last table "
        "of the next section. Default: 8.",
        "python benchmarks/area_by_parameter.py --block sfpr --parameter scale_bits 24 11 8",
        hardware=True,
    ),
    Section(
        "rounding",
        "Rounding of the shift quantiser, error by scale width",
        "At equal error truncation needs fewer bytes, so it is the default.",
        "python benchmarks/rounding_choice.py",
    ),
    Section(
        "precision",
        "DCT area by precision",
        "",
        "python benchmarks/area_by_parameter.py --block dct --parameter const_bits 13 12 11 10",
        hardware=True,
    ),
    Section(
        "exploration",
        "Exploration",
        "A sweep over the precision of the transform ([sweep.md](../user/sweep.md)).",
        "cdu sweep --block dct --vary const_bits=8,10,12 --vary pass1_bits=0,2 --set modes=jpeg-act --yosys pyosys "
        "--recipe balanced -o build/results/sweep",
        KEPT / "sweep" / "sweep.md",
        ("pareto.png",),
        hardware=True,
    ),
    Section(
        "offload",
        "A training step with offload",
        "A model, not a measurement: [offload.md](../user/offload.md) says what goes in and what it leaves out.",
        "cdu offload -o build/results/offload",
        KEPT / "offload" / "offload.md",
        ("speedup.png",),
        until="## Where the time goes",
        hardware=True,
    ),
    Section(
        "speed",
        "Speed of the golden model",
        "One thread; machines differ, the last column is a ratio within one run.",
        "python benchmarks/golden_speed.py",
    ),
    Section(
        "rtl_speed",
        "Speed of the compiled RTL",
        "Values per second through the generated Verilog of the whole unit, by the same driver: compiled (backend `rtl`) and "
        "simulated by cocotb.",
        "python benchmarks/rtl_speed.py",
    ),
    Section(
        "affine_forms",
        "DIVISION and ActNN in integers and in floating point",
        "The integer form of division with the channel's range covers the largest residual of a channel in the whole batch, "
        "the floating-point form that of a map; with S above 1 the largest residuals saturate, and the errors of all others "
        "are smaller. The mean error shows the bias that this brings.",
        "python benchmarks/affine_forms.py",
    ),
    Section(
        "training",
        "Training on CIFAR-10 images",
        "`$CDU_DATA_DIR` names the folder with the data. The subset carries mild JPEG artefacts: compare the codecs with each "
        "other, not with published accuracies.",
        "cdu train --dataset cifar10 --codec jpeg-act --epochs 6 --seeds 3 -o build/train-cifar10",
        Path("build", "train-cifar10", "report.md"),
        ("curves.png",),
    ),
    Section(
        "comparison",
        "Every method on five networks",
        "Each method's ratio is of the same counted tensors. Networks are of CPU size and far from converged; differences are "
        "taken seed by seed. The time of a step, measured apart, is in those of the uncompressed network, with native kernels "
        "where a codec has them; of auto without the steps that measure. [comparison.md](comparison.md) says what to read in "
        "it.",
        "python benchmarks/comparison.py",
        Path("build", "comparison", "report.md"),
        ("pareto.png",),
    ),
)


def measure(section: Section) -> str:
    """Run a section's command and return its markdown."""
    program, *arguments = shlex.split(section.command)
    folder = Path(sys.executable).parent
    result = subprocess.run(
        [str(folder / program), *arguments],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    if result.returncode:
        raise SystemExit(f"`{section.command}` failed; the sections before it are kept, `make results` goes on from here")
    return published(section, section.report.read_text(encoding="utf-8") if section.report else result.stdout)


def published(section: Section, markdown: str) -> str:
    """The markdown of a section with the picture, if any, copied to docs."""
    if section.until:
        markdown = markdown.partition(section.until)[0]
    # The title of a report is the section's, its other headings go a level down.
    lines = (line.replace("## ", "### ", 1) if line.startswith("## ") else line for line in markdown.splitlines())
    text = "\n".join(line for line in lines if not line.startswith("# ")).strip()
    if section.report is None:
        return text
    for picture in section.pictures:
        several = f"_{Path(picture).stem}" if len(section.pictures) > 1 else ""
        copy = Path("docs", "evidence", f"results_{section.name}{several}.png")
        write_whole(copy, (section.report.parent / picture).read_bytes())
        text = text.replace(f"]({picture})", f"]({copy.name})")
        if f"]({copy.name})" not in text:
            text += f"\n\n![{section.title}]({copy.name})"
    return text


def standing(page: str) -> dict[str, str]:
    """What stands below the command and the text of each section of the page, by title."""
    found = {}
    for part in page.split("\n## ")[1:]:
        title, _, rest = part.partition("\n")
        section = next((section for section in SECTIONS if section.title == title), None)
        if section:
            rest = rest.strip().removeprefix(f"`{section.command}`").strip()
            found[title] = rest.removeprefix(section.text).strip()
    return found


def main() -> None:
    """Measure what is missing and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [section.name for section in SECTIONS]
    parser.add_argument("--only", nargs="+", choices=names, default=[], help="repeat these sections, and no others")
    parser.add_argument("--hardware", action="store_true", help="measure only what the hardware costs")
    arguments = parser.parse_args()
    os.chdir(ROOT)
    KEPT.mkdir(parents=True, exist_ok=True)
    before = standing(PAGE.read_text(encoding="utf-8")) if PAGE.exists() else {}
    page = [
        "# Results",
        "",
        "Written by `make results` (what the hardware costs: `make results-hw`); every section is the output of its command.",
    ]
    for section in SECTIONS:
        kept = KEPT / f"{section.name}.md"
        asked = section.hardware or not arguments.hardware
        if section.name in arguments.only or (asked and not arguments.only and not kept.exists()):
            print(section.command, file=sys.stderr, flush=True)
            write_whole(kept, measure(section) + "\n")
        page += ["", f"## {section.title}", "", f"`{section.command}`", ""]
        page += [section.text, ""] if section.text else []
        page.append(kept.read_text(encoding="utf-8").strip() if kept.exists() else before.get(section.title, MISSING))
    write_whole(PAGE, "\n".join(page) + "\n")


if __name__ == "__main__":
    main()
