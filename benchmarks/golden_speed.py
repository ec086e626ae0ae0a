"""Speed of the golden model: jpeg-act (or jpeg-base) on a (64, 64, 32, 32) float32 tensor, one thread.

    python benchmarks/golden_speed.py
    python benchmarks/golden_speed.py --codec jpeg-base --runs 3

Two inputs: ``conv`` is the convolution of photographs (scikit-learn's samples, 64 crops) with 64 random 3x3 filters,
batch-normalised, which is what a codec meets after a first layer; ``noise`` is white noise, the worst case. Prints a
markdown table of the best of several runs: million values per second for compress and decompress together, and their time
as a multiple of a plain copy of the same tensor.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import actcodec
import torch
from cdu_tools.report import table_row
from sklearn.datasets import load_sample_images
from torch import Tensor
from torch.nn import functional

SHAPE = (64, 64, 32, 32)


def conv_features(seed: int) -> Tensor:
    """Batch-normalised features of random 3x3 filters on crops of the sample photographs."""
    random = torch.Generator().manual_seed(seed)
    photographs = [torch.from_numpy(image.copy()).float().permute(2, 0, 1) / 255 for image in load_sample_images().images]
    crops = []
    for index in range(SHAPE[0]):
        image = photographs[index % len(photographs)]
        top = int(torch.randint(image.shape[1] - 2 * SHAPE[2], (1,), generator=random))
        left = int(torch.randint(image.shape[2] - 2 * SHAPE[3], (1,), generator=random))
        crops.append(image[:, top : top + 2 * SHAPE[2] : 2, left : left + 2 * SHAPE[3] : 2])
    filters = torch.randn(SHAPE[1], 3, 3, 3, generator=random)
    features = functional.conv2d(torch.stack(crops), filters, padding=1)
    return functional.batch_norm(features, None, None, training=True).contiguous()


def best(action: Callable[[], object], runs: int) -> float:
    """Seconds of the fastest of some runs."""
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        action()
        times.append(time.perf_counter() - begin)
    return min(times)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=15, help="runs per measurement; the best counts")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--codec", choices=("jpeg-act", "jpeg-base"), default="jpeg-act")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    noise = torch.randn(SHAPE, generator=torch.Generator().manual_seed(arguments.seed))
    print("| input | table | bytes/value | compress ms | decompress ms | copy ms | Mvalues/s, both | both / copy |")
    print("|---|---|---|---|---|---|---|---|")
    for name, x in (
        ("conv", conv_features(arguments.seed)),
        ("conv + ReLU", conv_features(arguments.seed).relu()),
        ("noise", noise),
    ):
        for table in ("optL", "optH"):
            codec = actcodec.codec(arguments.codec, dqt=table)
            packed = codec.compress(x)
            copy = best(x.clone, arguments.runs)
            down = best(partial(codec.compress, x), arguments.runs)
            up = best(partial(codec.decompress, packed), arguments.runs)
            rate = x.numel() / (down + up) / 1e6
            cells = [
                name,
                table,
                f"{packed.nbytes / x.numel():.3f}",
                f"{down * 1e3:.1f}",
                f"{up * 1e3:.1f}",
                f"{copy * 1e3:.2f}",
            ]
            print(table_row([*cells, f"{rate:.1f}", f"{(down + up) / copy:.1f}"]), flush=True)


if __name__ == "__main__":
    main()
