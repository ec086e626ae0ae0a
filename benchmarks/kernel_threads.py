"""Measure the speedup of the native kernels by a second core: seconds with one thread as a multiple of those with two.

    python benchmarks/kernel_threads.py

A float32 tensor (32, 64, 32, 32), features of a random 3x3 convolution, is compressed and decompressed with one thread and with
two in turn; the best of several runs counts, since other programs only ever take time away. Prints a markdown table. Deflate
is zlib's, of several streams at once; scans of jpeg-base are one chain, which takes one thread, and its DCT is torch's.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import actcodec
import torch
from cdu_tools.report import Table
from torch.nn import functional

CODECS = (
    *("sfpr", "sfpr+zvc", "jpeg-act", "jpeg-gmc", "brc", "division", "actnn", "actnn-sample", "blpa", "autoquant"),
    *("autoquantz", "blpa-float", "blpa-coded", "cusz", "acgc-quant", "acgc-quantz", "division-float", "jpeg-base"),
)
THREADS = (1, 2)


def gain(action: Callable[[], object], runs: int) -> str:
    """Time with one thread divided by time with two."""
    best = dict.fromkeys(THREADS, float("inf"))
    for _ in range(runs):
        for threads in THREADS:
            torch.set_num_threads(threads)
            begin = time.perf_counter()
            action()
            best[threads] = min(best[threads], time.perf_counter() - begin)
    return f"{best[1] / best[2]:.2f}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=25, help="runs per measurement; the best counts")
    runs = parser.parse_args().runs
    random = torch.Generator().manual_seed(0)
    images, filters = torch.randn(32, 64, 32, 32, generator=random), torch.randn(64, 64, 3, 3, generator=random)
    x = functional.conv2d(images, filters / 24, padding=1)
    rows = []
    for name in CODECS:
        codec = actcodec.codec(name, backend="native")
        packed = codec.compress(x)
        rows.append([f"`{name}`", gain(partial(codec.compress, x), runs), gain(partial(codec.decompress, packed), runs)])
    print(Table(["codec", "compress", "decompress"], rows).markdown())


if __name__ == "__main__":
    main()
