"""Why DIVISION's range of a channel has the errors that it has: residuals of 8x8 blocks in few bits, by what shares a range.

    python benchmarks/division_ranges.py

Takes what a ResNet saves after a few epochs of training without compression, as affine_forms.py does, and prints a markdown
table of relative errors ||x - x'|| / ||x||, mean over the tensors and the least and greatest of them. The first rows are
codec ``division``; the others round residuals from block means without bias, in float arithmetic, with a range that reaches
from the least to the greatest residual, or as far below the mean as above it.
"""

from __future__ import annotations

import argparse

import actcodec
import torch
from actcodec.study import experiment
from actcodec.study.data import load
from affine_forms import activations
from torch import Tensor

BITS = (1, 2, 4, 8)
SIDE = 8
#: Values that share a range, and its axes among (N, C, blocks, 64).
SHARES = {"block": (3,), "map": (2, 3), "channel": (0, 2, 3)}


def residuals(x: Tensor) -> Tensor:
    """Differences to the means of 8x8 blocks, (N, C, blocks, 64)."""
    n, c, h, w = x.shape
    blocks = x.view(n, c, h // SIDE, SIDE, w // SIDE, SIDE).transpose(3, 4).reshape(n, c, -1, SIDE * SIDE)
    return blocks - blocks.mean(3, keepdim=True)


def rounded_error(x: Tensor, bits: int, axes: tuple[int, ...], symmetric: bool) -> float:
    """The relative error of unbiased rounding of the residuals."""
    r = residuals(x)
    least, greatest = r.amin(axes, keepdim=True), r.amax(axes, keepdim=True)
    if symmetric:
        greatest = torch.maximum(greatest, -least)
        least = -greatest
    step = ((greatest - least) / (2**bits - 1)).clamp_min(torch.finfo(x.dtype).tiny)
    codes = ((r - least) / step + torch.rand_like(r)).floor().clamp_(max=2**bits - 1)
    return float((codes * step + least - r).norm() / x.norm())


def codec_error(x: Tensor, bits: int, kind: str) -> float:
    """The relative error of codec ``division``."""
    codec = actcodec.codec("division", bits=bits, range=kind)
    return float((codec.decompress(codec.compress(x)) - x).norm() / x.norm())


def cell(errors: list[float]) -> str:
    """Mean, least and greatest."""
    return f"{sum(errors) / len(errors):.3f} ({min(errors):.3f} to {max(errors):.3f})"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--width", type=int, default=8)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    tensors = activations(experiment.Recipe(width=arguments.width, epochs=arguments.epochs), load("digits", None, None), 0)
    torch.manual_seed(0)
    print(f"| form | {' | '.join(f'{bits} bits' for bits in BITS)} |")
    print("|---|" + "---|" * len(BITS))
    for kind in ("block", "channel"):
        print(
            f"| `division`, range of a {kind} | {' | '.join(cell([codec_error(x, b, kind) for x in tensors]) for b in BITS)} |"
        )
    for share, axes in SHARES.items():
        for symmetric, name in ((False, "least to greatest"), (True, "as far below as above")):
            cells = (cell([rounded_error(x, bits, axes, symmetric) for x in tensors]) for bits in BITS)
            print(f"| range of a {share}, {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
