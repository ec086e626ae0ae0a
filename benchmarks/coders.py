"""Ratio and error of both coders of jpeg-act on recorded activations, by table, rounding and reconstruction point.

    python benchmarks/coders.py build/cifar.npz

The file is one that `cdu dqt --record` wrote. Prints the rows of docs/methods/jpeg_gmc_rounding.csv and
jpeg_gmc_equal_error.csv in Markdown. Error is
||x - x'|| / ||x||, mean over the tensors; the ratio is that of all of them together, headers and scales included. The second
table has ratios of GMC at equal errors, the first of them that of optL as published, interpolated between uniform tables (both
axes logarithmic).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from actcodec.codecs import codec
from actcodec.study.activations import load_activations
from cdu_dqt.comparison import interpolated
from cdu_spec.sfpr import PUBLISHED_S
from cdu_tools.report import table_row
from torch import Tensor

_TABLES = ("optL", "uniform-16", "optH", "uniform-32")
_CHOICES = (("trunc", 0.0), ("trunc", 3 / 8), ("half_away", 0.0))
_UNIFORM = tuple(f"uniform-{step}" for step in (8, 16, 32, 64))
_POINTS = (0.0, 1 / 4, 3 / 8, 1 / 2)
_ERRORS = (0.15, 0.2, 0.3)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("activations", type=Path)
    torch.set_num_threads(1)
    tensors = [one.values.float() for one in load_activations(parser.parse_args().activations)]
    print("| table | rounding | rec | error | ratio, ZVC | ratio, GMC |")
    print("|---|---|--:|--:|--:|--:|")
    for table in _TABLES:
        for rounding, rec in _CHOICES:
            zvc, _ = measured("jpeg-act", tensors, table, rounding, rec)
            gmc, error = measured("jpeg-gmc", tensors, table, rounding, rec)
            print(table_row([table, rounding, f"{rec:g}", f"{error:.4f}", f"{zvc:.2f}", f"{gmc:.2f}"]), flush=True)
    errors = (measured("jpeg-gmc", tensors, "optL", "trunc", 0.0)[1], *_ERRORS)
    print()
    print(table_row(["rounding", "rec", *(f"error {error:.3f}" for error in errors)]))
    print("|---|--:|" + "--:|" * len(errors))
    for row in _at_equal_error(tensors, errors):
        print(table_row(row), flush=True)


def measured(name: str, tensors: Sequence[Tensor], table: str, rounding: str, rec: float) -> tuple[float, float]:
    """Ratio and error of a codec."""
    chosen = codec(name, dqt=table, S=PUBLISHED_S, rounding=rounding, rec=rec, backend="native")
    kept = [chosen.compress(x) for x in tensors]
    errors = [float((one.decompress("native") - x).norm() / x.norm()) for one, x in zip(kept, tensors, strict=True)]
    return sum(4 * x.numel() for x in tensors) / sum(one.nbytes for one in kept), sum(errors) / len(errors)


def _at_equal_error(tensors: Sequence[Tensor], errors: Sequence[float]) -> Iterator[list[str]]:
    """Rounding rule, reconstruction point, and a ratio for each error; nothing beyond the tables."""
    for rounding in ("trunc", "half_away"):
        for rec in _POINTS:
            ratios, found = zip(*(measured("jpeg-gmc", tensors, table, rounding, rec) for table in _UNIFORM), strict=True)
            at_errors = (interpolated(error, found, ratios) for error in errors)
            yield [rounding, f"{rec:g}", *("" if ratio is None else f"{ratio:.2f}" for ratio in at_errors)]


if __name__ == "__main__":
    main()
