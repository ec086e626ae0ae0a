"""Runs the measurements behind docs/evidence/results.md and writes that page.

    python benchmarks/results.py [--hardware] [--only NAME ...]

Each section is made of the standard output of its command: a summary on the page, all rows of its tables in
CSV files beside it, versions and configurations in results_notes.csv. Finished sections are kept in build/results, so that an
interrupted run continues where it stopped. With ``--hardware`` only the cost of hardware is measured; ``--only`` repeats
single sections and measures no others. Other sections stay unchanged.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import results_summaries as summaries
from cdu_tools.files import write_whole
from cdu_verif.regression.results import MEASURED, TESTS
from digest import Summary, digest, first, listed, wrapped

ROOT = Path(__file__).parent.parent
KEPT = Path("build", "results")
PAGE = Path("docs", "evidence", "results.md")
NOTES = PAGE.with_name("results_notes.csv")
#: Text of a section that has never been measured.
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
    hardware: bool = False  #: True if it measures the cost of hardware
    tables: tuple[str, ...] = ("",)  #: names of its kinds of tables, in their order
    summary: Summary = summaries.whole  #: selects the tables for the page


SECTIONS = (
    Section(
        "idct",
        "Accuracy of the transforms",
        "Precision: fraction bits of the constants / bits kept between the passes. The default is 8/0, `ieee1180` is 12/2. "
        "Worst of six runs of 10,000 blocks, inverse DCT.",
        "python benchmarks/idct_accuracy.py",
        tables=("inverse", "forward"),
        summary=first("inverse", "precision", "peak", "mean square", "mean", "IEEE 1180", precision=("limit", "12/2", "8/0")),
    ),
    Section(
        "idct_rtl",
        "IEEE 1180 in the RTL",
        "All 60,000 blocks through the generated inverse DCT, built for 9-bit samples.",
        "cdu verify --block idct --test ieee_1180 --set sample_bits=9 --set const_bits=12 --set pass1_bits=2 --level full "
        "-o build/results/idct",
        KEPT / "idct" / "report.md",
        until=TESTS,
        tables=("blocks", "runs"),
        summary=first("runs", "what", "figure", what="-256..255"),
    ),
    Section(
        "verification",
        "Verification of the RTL",
        "Skipped tests are about features that a build does not have. [Verification](verification.md) describes the tests.",
        "cdu verify --level quick -o build/verify/verilator",
        Path("build", "verify", "verilator", "report.md"),
        until=MEASURED,
        tables=("blocks", "cover"),
        summary=summaries.verified,
    ),
    Section(
        "training_rtl",
        "Training through the simulated unit",
        "A ResNet on scikit-learn's digits; all compressed activations pass through a simulated unit of 4 CDUs.",
        "cdu verify --config universal --training --steps 2 -o build/verify/training",
        Path("build", "verify", "training", "report.md"),
        until=TESTS,
        tables=("blocks", "measured"),
        summary=summaries.policies,
    ),
    Section(
        "rates",
        "Rate of the whole unit",
        "Slowest job of N CDUs, as a share of what N and the packed port allow; source and sink are always ready.",
        "python benchmarks/array_rate.py --report build/verify/verilator/report.json",
        summary=summaries.slowest,
    ),
    Section(
        "area",
        "Area and clock",
        "Blocks and the whole unit `tiny` ([how areas are measured](../user/synthesis.md)). Without the options `cdu synth` "
        "tries three recipes and takes an hour.",
        "cdu synth --yosys pyosys --recipe balanced -o build/results/synth",
        KEPT / "synth" / "report.md",
        ("area.png",),
        hardware=True,
        tables=("blocks", "rows", "paths"),
        summary=first("blocks", "block", "kGE", "flip-flops", "critical path (ns)", block=summaries.BLOCKS),
    ),
    Section(
        "libraries",
        "The same blocks in other libraries",
        "The forward DCT; one GE is the library's smallest two-input NAND.",
        "python benchmarks/libraries.py",
        hardware=True,
        summary=listed("kGE, by library", "", "kGE", "library", block="dct"),
    ),
    Section(
        "clock",
        "Area against clock period",
        "",
        "cdu synth --block dct --yosys pyosys --clock-ns 1.1:1.9:0.2 -o build/results/clock",
        KEPT / "clock" / "report.md",
        ("sweep.png",),
        hardware=True,
        tables=("block", "periods"),
        summary=first("periods", "asked for (ns)", "achieved (ns)", "kGE", **{"asked for (ns)": ("1.9", "1.5", "1.1")}),
    ),
    Section(
        "pipelining",
        "Clock against registers",
        "The whole unit without and with [pipeline registers](../user/pipelining.md).",
        "python benchmarks/pipelining.py",
        hardware=True,
        summary=first("", *summaries.LATENCY, block="array"),
    ),
    Section(
        "power",
        "Power and energy per value",
        "Netlists simulated gate by gate on activations of a network in training ([assumptions](../user/power.md)).",
        "cdu power --dataset cifar10 --limit 512 --steps 8 --codec jpeg-act --codec sfpr+zvc --clock-ns 2.3 --yosys pyosys "
        "--random --block compressor --block decompressor -o build/results/power",
        KEPT / "power" / "power.md",
        hardware=True,
        tables=("blocks", "parts"),
        summary=listed("pJ per value", "blocks", "pJ/value", "block", "codec", data="activations"),
    ),
    Section(
        "mode_cost",
        "What the affine modes add",
        "Area that the modes add to a unit of one CDU, both directions.",
        "python benchmarks/mode_cost.py",
        hardware=True,
        tables=("units", "blocks"),
        summary=listed("kGE more than with JPEG-ACT's modes", "units", "more than JPEG-ACT's, kGE", "modes"),
    ),
    Section(
        "scale_width",
        "Width of SFPR's multiplier",
        "The default is 8; the next section has its error.",
        "python benchmarks/area_by_parameter.py --block sfpr --parameter scale_bits 24 11 8",
        hardware=True,
        summary=listed("kGE, by `scale_bits`", "", "sfpr, kGE", "scale_bits"),
    ),
    Section(
        "rounding",
        "Rounding of the shift quantiser, error by scale width",
        "Truncation is the default, as it needs fewer bytes.",
        "python benchmarks/rounding_choice.py",
        tables=("tables", "equal_error", "scale"),
        summary=summaries.rounding,
    ),
    Section(
        "precision",
        "DCT area by precision",
        "",
        "python benchmarks/area_by_parameter.py --block dct --parameter const_bits 13 12 10 8",
        hardware=True,
        summary=listed("kGE, by `const_bits`", "", "dct, kGE", "const_bits"),
    ),
    Section(
        "exploration",
        "Exploration",
        "A [sweep](../user/sweep.md) over the precision of the transform; rows of front A.",
        "cdu sweep --block dct --vary const_bits=8,10,12 --vary pass1_bits=0,2 --set modes=jpeg-act --yosys pyosys "
        "--recipe balanced -o build/results/sweep",
        KEPT / "sweep" / "sweep.md",
        ("pareto.png",),
        hardware=True,
        summary=first("", "const_bits", "pass1_bits", "area (GE)", "relative error", Pareto=("A", "A B")),
    ),
    Section(
        "offload",
        "A training step with offload",
        "JPEG-ACT compared with other methods in a [model](../user/offload.md), not a measurement.",
        "cdu offload -o build/results/offload",
        KEPT / "offload" / "offload.md",
        ("speedup.png",),
        until="## Where the time goes",
        hardware=True,
        tables=("speedup", "headlines"),
        summary=listed("Mean speed-up", "headlines", "here, mean", "JPEG-ACT over"),
    ),
    Section(
        "speed",
        "Speed of the golden model",
        "One thread; optL and optH are quantisation tables.",
        "python benchmarks/golden_speed.py",
        summary=listed("Million values per second, both ways", "", "Mvalues/s, both", "input", "table"),
    ),
    Section(
        "rtl_speed",
        "Speed of the compiled RTL",
        "Values through the Verilog of the whole unit: backend `rtl`, cocotb, and the golden model for comparison.",
        "python benchmarks/rtl_speed.py",
        summary=first("", "codec", "cocotb", "rtl", "golden model", codec=("jpeg-act", "bypass")),
    ),
    Section(
        "affine_forms",
        "DIVISION and ActNN in integers and in floating point",
        "The hardware computes in integers, the papers in floating point (`-float`).",
        "python benchmarks/affine_forms.py",
        tables=("tensors", "training"),
        summary=first(
            "training",
            "codec",
            "difference to none",
            "ratio",
            codec=("division-float, 2 bits", "division, 2 bits", "actnn-float, 2 bits", "actnn, 2 bits"),
        ),
    ),
    Section(
        "families",
        "Policies by family",
        "Ratio, and lowest cosine with the exact gradient before and after 32 steps ([rule](../user/policies.md#which-one)). "
        "Last columns: cosine with 2 bits, but 8 for what normalisations save, and the reverse. CPU, float32, torch 2.11.",
        "python benchmarks/families.py",
        tables=("harm", "models"),
        summary=summaries.recommended,
    ),
    Section(
        "largest_batch",
        "Memory of a step and the largest batch",
        "One step on the CPU, float32. Peak: relative to `without`, gradients included. Largest batch: with the peak of the "
        "plain step with 64 images, or 4 texts. `save_on_cpu` does not count what it moves.",
        "python benchmarks/largest_batch.py --networks ResNet-18 GPT-2",
        summary=summaries.batches,
    ),
    Section(
        "training",
        "Training on CIFAR-10 images",
        "`$CDU_DATA_DIR` names the data's folder. The images have JPEG artefacts.",
        "cdu train --dataset cifar10 --codec jpeg-act --epochs 6 --seeds 3 -o build/train-cifar10",
        Path("build", "train-cifar10", "report.md"),
        ("curves.png",),
        tables=("codecs", "tensors"),
        summary=first("codecs", "codec", "accuracy (%)", "difference to none", "ratio"),
    ),
    Section(
        "comparison",
        "Every method on five networks",
        "Difference of the score, seed by seed, and ratio, on small networks ([how to read it](comparison.md)).",
        "python benchmarks/comparison.py",
        Path("build", "comparison", "report.md"),
        ("pareto.png",),
        tables=("networks", "published_acgc", "published"),
        summary=summaries.compared,
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
    # The title of a report is the section's.
    text = "\n".join(line for line in markdown.splitlines() if not line.startswith("# ")).strip()
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
    """Return the content below command and text of each section of the page, by title."""
    found = {}
    for part in page.split("\n## ")[1:]:
        title, _, rest = part.partition("\n")
        section = next((section for section in SECTIONS if section.title == title), None)
        if section:
            rest = rest.strip().removeprefix(f"`{section.command}`").strip()
            found[title] = rest.removeprefix(wrapped(section.text)).strip()
    return found


def introduction(page: str) -> str:
    """Return the part of the page before the first section."""
    return page.partition("\n## ")[0].strip()


def write_page(head: str, bodies: dict[str, str]) -> str:
    """Return the page of an introduction and the content of each section, by title."""
    page = [head]
    for section in SECTIONS:
        page += ["", f"## {section.title}", "", f"`{section.command}`", ""]
        page += [wrapped(section.text), ""] if section.text else []
        page.append(bodies.get(section.title, MISSING))
    return "\n".join(page) + "\n"


def write_notes(notes: dict[str, list[str]]) -> str:
    """Return commands and versions by the names of sections, as CSV; sections without new notes keep the previous ones."""
    before: dict[str, list[str]] = {}
    if NOTES.is_file():
        for name, note in list(csv.reader(io.StringIO(NOTES.read_text(encoding="utf-8"))))[1:]:
            before.setdefault(name, []).append(note)
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["section", "note"])
    for section in SECTIONS:
        writer.writerows([section.name, note] for note in notes.get(section.name, before.get(section.name, [])))
    return file.getvalue()


def main() -> None:
    """Measure what is missing and write the page and the files beside it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [section.name for section in SECTIONS]
    parser.add_argument("--only", nargs="+", choices=names, default=[], help="repeat these sections, and no others")
    parser.add_argument("--hardware", action="store_true", help="measure only what the hardware costs")
    arguments = parser.parse_args()
    os.chdir(ROOT)
    KEPT.mkdir(parents=True, exist_ok=True)
    page = PAGE.read_text(encoding="utf-8")
    bodies = standing(page)
    notes = {}
    for section in SECTIONS:
        kept = KEPT / f"{section.name}.md"
        asked = section.hardware or not arguments.hardware
        if section.name in arguments.only or (asked and not arguments.only and not kept.exists()):
            print(section.command, file=sys.stderr, flush=True)
            write_whole(kept, measure(section) + "\n")
        if kept.exists():
            markdown = kept.read_text(encoding="utf-8").strip()
            bodies[section.title], files, notes[section.name] = digest(section.name, markdown, section.tables, section.summary)
            for file, table in files.items():
                write_whole(PAGE.with_name(file), table.csv())
    write_whole(PAGE, write_page(introduction(page), bodies))
    write_whole(NOTES, write_notes(notes))


if __name__ == "__main__":
    main()
