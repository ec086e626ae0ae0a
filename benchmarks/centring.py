"""Channels far from zero: the gradient's error with and without centres beside the codecs, and what looking for them costs.

    python benchmarks/centring.py

Prints two markdown tables. The first takes a convolution and a batch normalisation after it, of which every second channel lies
so many standard deviations from zero: the relative error of the gradient of input and parameters together. The second packs
and unpacks a float32 tensor (64, 64, 32, 32), one thread: milliseconds of processor time, the best of several runs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import actcodec
import torch
from actcodec.codecs import CODEC_NAMES, Codec
from actcodec.codecs.centring import compress_centred, decompress_centred
from torch import Tensor, nn

MEANS = (0, 10, 30, 100, 1000)
TIMED = ("sfpr", "jpeg-act", "division", "actnn")
SHAPE, DISTANCE = (64, 64, 32, 32), 30


def network(mean: float) -> tuple[nn.Sequential, Tensor, Tensor]:
    """Layers, an input, and weights of a loss."""
    torch.manual_seed(1)
    layer, norm, x = nn.Conv2d(3, 8, 3, padding=1, padding_mode="circular"), nn.BatchNorm2d(8), torch.randn(16, 3, 16, 16)
    with torch.no_grad():
        assert layer.bias is not None
        layer.bias[::2] += mean * layer(x).std()
        norm.weight.normal_()
    model = nn.Sequential(layer, norm)
    return model, x, torch.randn_like(model(x))


def gradient_error(codec: Codec, mean: float) -> float:
    """||g - g'|| / ||g|| of input and parameters."""
    model, x, weights = network(mean)
    found = []
    for one in (actcodec.codec("none"), codec):
        model.zero_grad()
        leaf = x.clone().requires_grad_()
        with actcodec.compress_activations(model, one):
            loss = (model(leaf) * weights).sum()
        loss.backward()
        found.append(torch.cat([t.grad.flatten() for t in (leaf, *model.parameters()) if t.grad is not None]))
    return float((found[1] - found[0]).norm() / found[0].norm())


def milliseconds(action: Callable[[], object], runs: int) -> float:
    """Processor time of the fastest of some runs."""
    times = []
    for _ in range(runs):
        begin = time.process_time()
        action()
        times.append(time.process_time() - begin)
    return 1e3 * min(times)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=15, help="runs per measurement; the best counts")
    runs = parser.parse_args().runs
    torch.set_num_threads(1)
    print(f"| codec | {' | '.join(f'mean {mean}' for mean in MEANS)} | {' | '.join(f'{mean}, no centres' for mean in MEANS)} |")
    print("|---|" + "--:|" * 2 * len(MEANS))
    for name in CODEC_NAMES:
        if actcodec.codec(name).centred:
            cells = []
            for centred in (True, False):
                for mean in MEANS:
                    codec = actcodec.codec(name)
                    codec.centred = centred
                    cells.append(f"{gradient_error(codec, mean):.3g}")
            print(f"| `{name}` | {' | '.join(cells)} |")
    near = torch.randn(SHAPE, generator=torch.Generator().manual_seed(0))
    far = near + DISTANCE
    print(
        "\n| codec, backend native | pack | and look for centres | pack, all channels far | unpack | unpack, all channels far |"
    )
    print("|---|--:|--:|--:|--:|--:|")
    for name in TIMED:
        codec = actcodec.codec(name, backend="native")
        packed, centred_form = compress_centred(near, codec), compress_centred(far, codec)
        actions: tuple[Callable[[], object], ...] = (
            partial(codec.compress, near),
            partial(compress_centred, near, codec),
            partial(compress_centred, far, codec),
            partial(decompress_centred, packed, codec),
            partial(decompress_centred, centred_form, codec),
        )
        print(f"| `{name}` | {' | '.join(f'{milliseconds(action, runs):.1f}' for action in actions)} |")


if __name__ == "__main__":
    main()
