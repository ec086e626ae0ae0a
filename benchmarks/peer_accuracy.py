"""Accuracy and sustained rate of the open cores that `cdu compare` knows, simulated with Verilator.

    python benchmarks/peer_accuracy.py --peers FOLDER [--blocks 10000] [--only NAME ...] [-o build/peers]

FOLDER is the one of `cdu compare --peers`. Prints markdown tables: the inverse DCT by IEEE 1180-1990 (six runs of so many
blocks), and how large the coefficient of a flat block may be; the forward DCTs on random 8-bit samples against double
precision, each coefficient with the scale that fits it best, because these cores leave scales to the quantiser; the lossless
coder on words that compress well and badly. What is simulated is the text that is synthesised. Coefficients and samples are
those of `cdu_verif`, the test benches in benchmarks/peer_benches are this project's.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
from cdu_peers import peers
from cdu_spec.geometry import BLOCK_VALUES
from cdu_spec.modes import MASK_BYTES
from cdu_tools import verilator, yosys
from cdu_tools.report import table_row
from cdu_verif.stimulus.dct_accuracy import forward_samples
from cdu_verif.stimulus.ieee1180 import BLOCKS_PER_RUN, COEFFICIENT_LIMITS, LIMITS, AccuracyErrors, Blocks, runs
from numpy.typing import NDArray
from scipy.fft import dctn

BENCHES = Path(__file__).resolve().with_name("peer_benches")
INVERSE, CODER = "hls-idct-1r1c", "stream-ebpc"
FORWARD = ("preprocessing-accelerator-dct", "frame-dct-2d")
#: Words that the coder is measured with.
WORDS = 65_536
#: Delays of a test bench are coroutines of C++20.
_OPTIONS = (
    *("--binary", "--timing", "-CFLAGS", "-std=gnu++20", "-O3", "-Wno-fatal", "-Wno-lint"),
    *("--top-module", "bench", "-Mdir", "model", "-o", "bench"),
)


class Bench:
    """A compiled core and its test bench, for a fixed number of words of input."""

    def __init__(self, name: str, recipes: list[peers.PeerRecipe], folder: Path, work: Path, rows: int) -> None:
        self._work = work / name
        self._work.mkdir(parents=True, exist_ok=True)
        texts = []
        for recipe in recipes:
            recipe.checked(folder)
            texts.append(recipe.verilog(folder, yosys.engine()))
        (self._work / "design.v").write_text("\n".join(texts), encoding="utf-8")
        found = verilator.find()
        command = [str(found.program), *_OPTIONS, f"-DROWS={rows}", "design.v", str(BENCHES / f"{name}.sv")]
        done = subprocess.run(command, cwd=self._work, env=found.environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{name}: Verilator failed:\n{done.stderr[-2000:]}")

    def run(self, stimulus: list[str]) -> tuple[str, list[str]]:
        """Return the output of the bench, and the lines of its result, for lines of input in hexadecimal."""
        (self._work / "stimulus.hex").write_text("\n".join(stimulus) + "\n", encoding="ascii")
        (self._work / "result.hex").unlink(missing_ok=True)
        done = subprocess.run(["model/bench"], cwd=self._work, capture_output=True, text=True, check=True)
        result = self._work / "result.hex"
        return done.stdout, result.read_text(encoding="ascii").split() if result.is_file() else []


def packed(values: Blocks, bits: int) -> list[str]:
    """Rows of 8 values as hexadecimal numbers, the first value highest."""
    fields = values.reshape(-1, 8) & ((1 << bits) - 1)
    return [f"{int(''.join(f'{int(value):0{bits}b}' for value in row), 2):x}" for row in fields]


def unpacked(lines: list[str], bits: int, count: int) -> Blocks:
    """Signed values (rows, count) of hexadecimal numbers, the first value highest."""
    numbers = np.array(
        [[int(line, 16) >> (bits * (count - 1 - i)) & ((1 << bits) - 1) for i in range(count)] for line in lines]
    )
    return np.where(numbers >= 1 << (bits - 1), numbers - (1 << bits), numbers)


def rate(printed: str, values: int) -> float:
    """Values per cycle of a run."""
    found = re.search(r"cycles (\d+)", printed)
    assert found, printed
    return values / int(found[1])


def inverse(bench: Bench, blocks: int) -> None:
    """Measure and print the inverse DCT."""
    names = list(vars(LIMITS))
    print(table_row([f"{INVERSE}: run", *(name.replace("_", " ") for name in names), "IEEE 1180", "values/cycle"]))
    print("|---" * (len(names) + 3) + "|")
    print(table_row(["limit", *(f"{getattr(LIMITS, name):g}" for name in names), "", ""]))
    for run in runs():
        coefficients, reference = run.stimulus(blocks)
        printed, lines = bench.run(packed(coefficients, 12))
        samples = unpacked(lines, 9, 8).reshape(-1, 8, 8)
        errors = AccuracyErrors.of(samples, reference)
        figures = [f"{getattr(errors, name):.4g}" for name in names]
        sign = "" if run.sign > 0 else ", sign reversed"
        verdict = ["passes" if errors.passed else "fails", f"{rate(printed, 64 * blocks):.2f}"]
        print(table_row([f"{-run.low}..{run.high}{sign}", *figures, *verdict]), flush=True)
    # Flat blocks show how large a coefficient may be.
    flat = np.zeros((blocks, 8, 8), dtype=np.int64)
    half = min(blocks // 2, -COEFFICIENT_LIMITS[0])
    flat[: 2 * half, 0, 0] = np.arange(-half, half)
    _, lines = bench.run(packed(flat, 12))
    samples = unpacked(lines, 9, 8).reshape(-1, 8, 8)
    right = np.asarray((np.abs(samples - flat[:, :1, :1] / 8) <= 1).all(axis=(1, 2)))[: 2 * half]
    below, above = right[:half][::-1], right[half:]
    low, high = (int(side.argmin()) if not side.all() else half for side in (below, above))
    print(f"\nFlat blocks are right to one for the coefficients {-low}..{high - 1}, of {-half}..{half - 1} tried.", flush=True)


def forward(name: str, bench: Bench, blocks: int) -> None:
    """Measure and print a forward DCT, each coefficient with the scale that fits it best."""
    samples = forward_samples(blocks)
    printed, lines = bench.run(packed(samples, 8))
    if name == "frame-dct-2d":
        order = sorted(range(64), key=lambda i: (i // 8 + i % 8, (i // 8 if (i // 8 + i % 8) % 2 else i % 8)))
        in_order = np.empty((blocks, 64))
        in_order[:, order] = unpacked(lines, 16, 2).reshape(-1, 64)
        found = in_order.reshape(-1, 8, 8)
    else:
        found = unpacked(lines, 12, 8).reshape(-1, 8, 8).astype(np.float64)
    exact = dctn(samples.astype(np.float64), axes=(1, 2), norm="ortho")
    # A core may take columns for rows.
    fits = []
    for wanted in (exact, exact.transpose(0, 2, 1)):
        scale = (found * wanted).sum(axis=0) / np.maximum((found**2).sum(axis=0), 1)
        fits.append((((found * scale - wanted) ** 2).mean(), found * scale - wanted))
    mean_square, error = min(fits, key=lambda fit: fit[0])
    worst = (error**2).mean(axis=0).max()
    values = rate(printed, 64 * blocks)
    print(f"| {name} | {np.abs(error).max():.3f} | {mean_square:.4f} | {worst:.4f} | {values:.2f} |", flush=True)


def words(kind: str) -> NDArray[np.int64]:
    """Bytes for the coder."""
    generator = np.random.default_rng(0)
    if kind == "random bytes":
        return generator.integers(0, 256, WORDS)
    values = np.abs(generator.normal(0, 16, WORDS)).round().astype(np.int64)
    return np.where(generator.random(WORDS) < (0.5 if kind == "half zeros" else 0.9), 0, np.minimum(values, 127))


def zvc_ratio(values: NDArray[np.int64]) -> float:
    """Compression ratio of this project's ZVC: a mask and the values that are not zero, for each block."""
    return len(values) / (len(values) // BLOCK_VALUES * MASK_BYTES + np.count_nonzero(values))


def coder(bench: Bench) -> None:
    """Measure and print the lossless coder."""
    print("| stream-ebpc: words | ratio | ratio of our ZVC | encoder, words/cycle | decoder, words/cycle | wrong words |")
    print("|---|---|---|---|---|---|")
    for kind in ("random bytes", "half zeros", "nine tenths zeros"):
        stimulus = words(kind)
        printed, _ = bench.run([f"{value:02x}" for value in stimulus])
        encode, decode, received, wrong, size = map(int, re.findall(r"\d+", printed.splitlines()[0]))
        missing = f" ({WORDS - received} missing)" if received < WORDS else ""
        rates = f"{WORDS / size:.2f} | {zvc_ratio(stimulus):.2f} | {WORDS / encode:.2f} | {received / decode:.2f}"
        print(f"| {kind} | {rates} | {wrong}{missing} |", flush=True)


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", type=Path, required=True)
    parser.add_argument("--blocks", type=int, default=BLOCKS_PER_RUN)
    parser.add_argument("--only", nargs="+", choices=(INVERSE, *FORWARD, CODER), default=(INVERSE, *FORWARD, CODER))
    parser.add_argument("-o", "--output", type=Path, default=Path("build", "peers"))
    arguments = parser.parse_args()

    def bench(name: str, rows: int) -> Bench:
        print(f"compiling {name} ...", file=sys.stderr)
        recipes = [recipe for recipe in peers.recipes() if recipe.name.startswith(name)]
        return Bench(name, recipes, arguments.peers, arguments.output, rows)

    if INVERSE in arguments.only:
        inverse(bench(INVERSE, 8 * arguments.blocks), arguments.blocks)
    if chosen := [name for name in FORWARD if name in arguments.only]:
        print("\n| forward DCT | greatest error | mean square error | of the worst coefficient | values/cycle |")
        print("|---|---|---|---|---|")
        for name in chosen:
            forward(name, bench(name, 8 * arguments.blocks), arguments.blocks)
    if CODER in arguments.only:
        print()
        coder(bench(CODER, WORDS))


if __name__ == "__main__":
    main()
