"""Accuracy of the transforms: the inverse by IEEE 1180-1990, the forward against double precision.

    python benchmarks/idct_accuracy.py [--bits 12/2 13/2 ...]

Prints two markdown tables: the worst of the six runs of 10 000 blocks per figure and precision (fraction bits of the constants
/ kept between the passes), and the error of the forward transform on 100 000 random blocks of 8-bit samples.
"""

from __future__ import annotations

import argparse

from cdu_tools.report import table_row
from cdu_verif.stimulus.dct_accuracy import forward_errors, inverse_errors
from cdu_verif.stimulus.ieee1180 import LIMITS, AccuracyErrors


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--bits", nargs="+", default=["13/2", "12/2", "11/2", "13/1", "12/1", "8/0"], help="const_bits/pass1_bits"
    )
    precisions = [tuple(map(int, text.split("/"))) for text in parser.parse_args().bits]
    figures = list(vars(LIMITS))
    print(table_row(["precision", *(name.replace("_", " ") for name in figures), "IEEE 1180"]))
    print("|---" * (len(figures) + 2) + "|")
    print(table_row(["limit", *(f"{getattr(LIMITS, name):g}" for name in figures), ""]))
    for const_bits, pass1_bits in precisions:
        errors = inverse_errors(const_bits, pass1_bits)
        worst = (f"{getattr(AccuracyErrors.worst(errors), name):.4g}" for name in figures)
        verdict = "passes" if all(error.passed for error in errors) else "fails"
        print(table_row([f"{const_bits}/{pass1_bits}", *worst, verdict]))
    print("\n| precision | forward: greatest error | mean square error |\n|---|---|---|")
    print("| exact coefficient, rounded | 0.5 | 0.0833 |")
    for const_bits, pass1_bits in precisions:
        forward = forward_errors(const_bits, pass1_bits)
        print(f"| {const_bits}/{pass1_bits} | {forward.peak:.3f} | {forward.mean_square:.4f} |")


if __name__ == "__main__":
    main()
