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

import front_page
from cdu_tools.files import write_whole
from cdu_verif.regression.results import MEASURED, TESTS
from digest import Summary, Table, both, digest, first, numbers, wrapped

ROOT = Path(__file__).parent.parent
KEPT = Path("build", "results")
PAGE = Path("docs", "evidence", "results.md")
NOTES = PAGE.with_name("results_notes.csv")
#: Text of a section that has never been measured.
MISSING = "Not measured yet."


def _whole(found: dict[str, Table]) -> str:
    return next(iter(found.values())).markdown()


def _verified(found: dict[str, Table]) -> str:
    blocks, points = found["blocks"], found["cover"]
    cases, cycles = (sum(map(int, blocks.column(name))) for name in ("cases", "cycles"))
    bins, hit = (sum(map(int, points.column(name))) for name in ("bins", "hit"))
    return wrapped(
        f"{len(blocks.rows)} builds of blocks and of the whole unit, {cases:,} cases, {cycles:,} cycles; "
        f"{hit} of {bins} bins of {len(points.rows)} cover points hit."
    )


def _policies(found: dict[str, Table]) -> str:
    """Return the figures of the training loop, a row per policy."""
    shown = ("ratio", "tensors_compressed", "tensors_decompressed", "payload_bytes", "cycles_of_jobs", "values_per_busy_cycle")
    rows: dict[str, dict[str, str]] = {}
    for _, test, what, figure in found["measured"].rows:
        rows.setdefault(test.partition("policy=")[2], {})[what] = figure
    header = ("policy", *(name.replace("_", " ") for name in shown))
    return Table(header, tuple((name, *(figures[what] for what in shown)) for name, figures in rows.items())).markdown()


def _slowest(found: dict[str, Table]) -> str:
    """The slowest job of each size of unit and direction, as a share of what its ports let through."""
    (table,) = found.values()
    rows = []
    for cdus in dict.fromkeys(table.column("N")):
        for direction in ("compress", "decompress"):
            jobs = table.where(N=cdus, direction=direction)
            rates = zip(numbers(jobs.column("values/cycle")), numbers(jobs.column("possible")), strict=True)
            greatest = max(numbers(jobs.column("values/cycle")))
            share = min(rate / possible for rate, possible in rates)
            port = jobs.column("packed port, bytes")[0]
            rows.append((cdus, port, direction, str(len(jobs.rows)), f"{greatest:.2f}", f"{share:.1%}"))
    header = ("N", "packed port, bytes", "direction", "jobs", "greatest values/cycle", "slowest job, of what is possible")
    return Table(header, tuple(rows)).markdown()


def _rounding(found: dict[str, Table]) -> str:
    factors = numbers(found["equal_error"].column("half_away / trunc"))
    return "\n\n".join(
        [
            wrapped(
                f"At equal error half_away needs {min(factors):.3f} to {max(factors):.3f} times the bytes of trunc "
                f"({len(factors)} points). What a narrower scale costs:"
            ),
            found["scale"].markdown(),
        ]
    )


#: Methods on the page; the others are in the file.
SHOWN = (
    "none",
    "bf16",
    "int8-rows",
    "sfpr",
    "jpeg-act optL",
    "jpeg-act optH",
    "division",
    "actnn-L2",
    "blpa-coded 4",
    "autoquantz",
    "autocusz",
    "auto 12x",
)


def _compared(found: dict[str, Table]) -> str:
    """Difference of the score and ratio of some methods, a column per network."""
    table = found["networks"]
    networks = list(dict.fromkeys(table.column("of")))
    rows = []
    for method in SHOWN:
        cells = table.where(method=method).only("of", "difference", "ratio").rows
        by_network = {network: f"{difference}, {ratio}x" if difference else "" for network, difference, ratio in cells}
        rows.append((method, *(by_network.get(network, "") for network in networks)))
    return Table(("method: difference, ratio", *networks), tuple(rows[1:])).markdown()


def _batches(found: dict[str, Table]) -> str:
    """Peak, what is kept, and the largest batch, a column per network."""
    (table,) = found.values()
    networks = list(dict.fromkeys(table.column("network")))
    rows = []
    for way in dict.fromkeys(table.column("step")):
        cells = [table.where(network=network, step=way).only("peak", "kept MiB", "largest batch").rows for network in networks]
        rows.append((way, *(", ".join(row[0]) if row else "" for row in cells)))
    return Table(("step: peak, kept MiB, largest batch", *networks), tuple(rows)).markdown()


def _recommended(found: dict[str, Table]) -> str:
    """Return recommendations as on the front page, beside the effect of plain storage and of two bits."""
    return f"{front_page.BEGIN}\n\n{front_page.by_family(found['harm'])}\n\n{front_page.END}"


_BLOCKS = ("sfpr", "alignment_buffer", "dct", "idct", "shift_quantizer", "zvc_encoder", "control", "compressor", "decompressor")
_LATENCY = ("block", "registers added", "kGE", "critical path, ns", "latency, cycles")


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
    summary: Summary = _whole  #: selects the tables for the page


SECTIONS = (
    Section(
        "idct",
        "Accuracy of the transforms",
        "Precision is fraction bits of the constants / bits kept between the passes; the default, `least`, is 8/0, and "
        "`ieee1180` 12/2. Worst of six runs of 10 000 blocks. The hardware gives the same integers (`cdu verify --block "
        "idct`).",
        "python benchmarks/idct_accuracy.py",
        tables=("inverse", "forward"),
        summary=both(
            first("inverse", precision=("limit", "12/2", "8/0")),
            first("forward", precision=("exact coefficient, rounded", "12/2", "8/0")),
        ),
    ),
    Section(
        "idct_rtl",
        "IEEE 1180 in the RTL",
        "All 60 000 blocks through the generated inverse DCT, built for 9-bit samples.",
        "cdu verify --block idct --test ieee_1180 --set sample_bits=9 --set const_bits=12 --set pass1_bits=2 --level full "
        "-o build/results/idct",
        KEPT / "idct" / "report.md",
        until=TESTS,
        tables=("blocks", "runs"),
        summary=first("runs", "what", "figure"),
    ),
    Section(
        "verification",
        "Verification of the RTL",
        "Every test compares with the golden model; [verification.md](verification.md) says what the tests do. Skipped are "
        "tests of what a block or build does not have.",
        "cdu verify --level quick -o build/verify/verilator",
        Path("build", "verify", "verilator", "report.md"),
        until=MEASURED,
        tables=("blocks", "cover"),
        summary=_verified,
    ),
    Section(
        "training_rtl",
        "Training through the simulated unit",
        "A ResNet on scikit-learn's digits; every activation that the policy compresses passes through a simulated array of 4 "
        "CDUs, driven by the reference driver, which writes tables and scales to registers.",
        "cdu verify --config universal --training --steps 2 -o build/verify/training",
        Path("build", "verify", "training", "report.md"),
        until=TESTS,
        tables=("blocks", "measured"),
        summary=_policies,
    ),
    Section(
        "rates",
        "Rate of the whole unit",
        'Simulated through the AXI ports, source and sink ready in every cycle. "possible" follows from N and from what the '
        "packed port moves per cycle.",
        "python benchmarks/array_rate.py --report build/verify/verilator/report.json",
        summary=_slowest,
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
        tables=("blocks", "rows"),
        summary=first(
            "blocks", "block", "um2", "kGE", "flip-flops", "critical path (ns)", "MHz", "leakage (uW)", block=(*_BLOCKS, "tiny")
        ),
    ),
    Section(
        "libraries",
        "The same blocks in other libraries",
        "One GE is the smallest two-input NAND of the library, so that nodes compare.",
        "python benchmarks/libraries.py",
        hardware=True,
        summary=first("", block=("dct",)),
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
        summary=first("periods", "block", "asked for (ns)", "achieved (ns)", "MHz", "kGE", "mapping"),
    ),
    Section(
        "pipelining",
        "Clock against registers",
        "What the parameters `dct_stages`, `multiplier_stages` and `register_slices` bring and cost "
        "([pipelining.md](../user/pipelining.md)).",
        "python benchmarks/pipelining.py",
        hardware=True,
        summary=first("", *_LATENCY, block=("compressor", "decompressor", "array")),
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
        tables=("blocks", "parts"),
        summary=first("blocks", "block", "codec", "data", "values/cycle", "mW", "pJ/value", "nJ/block"),
    ),
    Section(
        "mode_cost",
        "What the affine modes add",
        "A unit of one CDU.",
        "python benchmarks/mode_cost.py",
        hardware=True,
        tables=("units", "blocks"),
        summary=_whole,
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
        tables=("tables", "equal_error", "scale"),
        summary=_rounding,
    ),
    Section(
        "precision",
        "DCT area by precision",
        "",
        "python benchmarks/area_by_parameter.py --block dct --parameter const_bits 13 12 10 8",
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
        summary=first("", "const_bits", "pass1_bits", "area (GE)", "critical path (ns)", "ratio", "relative error", "Pareto"),
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
        tables=("speedup", "headlines"),
        summary=first("headlines"),
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
        tables=("tensors", "training"),
        summary=first("training"),
    ),
    Section(
        "families",
        "Policies by family",
        "Lowest cosine of the gradient with the exact one over models and seeds, before and after 32 steps, float32; ratio of "
        "all but weights. Last: 2 bits for what normalisations save or for the rest. [Rule](../user/policies.md#which-one). "
        "Measured on CPUs with torch 2.11, timm 1.0.29 and transformers 5.17.",
        "python benchmarks/families.py",
        tables=("harm", "models"),
        summary=_recommended,
    ),
    Section(
        "largest_batch",
        "Memory of a step and the largest batch",
        "One step on the CPU, in float32. Peak: worst moment of forward and backward, gradients included. Largest batch: of a "
        "step whose peak is no higher than that of the plain step with 64 images, or 4 texts. For `save_on_cpu` what it moves "
        "is not counted: no policy reaches it. In ResNet-18 gradients of weights and what backward computes are most of the "
        "peak: policies let in 1.5 times the batch, checkpoints 1.3 times, plain storage 1.4 to 1.5. In GPT-2 the dense ones "
        "let in 3 times, checkpoints 2.5, 8 bits by row 2.25; policies for maps, such as `jpeg-gmc`, gain nothing over 8 bits.",
        "python benchmarks/largest_batch.py --networks ResNet-18 GPT-2",
        summary=_batches,
    ),
    Section(
        "training",
        "Training on CIFAR-10 images",
        "`$CDU_DATA_DIR` names the folder with the data. The subset carries mild JPEG artefacts: compare the codecs with each "
        "other, not with published accuracies.",
        "cdu train --dataset cifar10 --codec jpeg-act --epochs 6 --seeds 3 -o build/train-cifar10",
        Path("build", "train-cifar10", "report.md"),
        ("curves.png",),
        tables=("codecs", "tensors"),
        summary=first("codecs"),
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
        tables=("networks", "published_acgc", "published"),
        summary=_compared,
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
