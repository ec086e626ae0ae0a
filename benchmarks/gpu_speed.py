"""Speed of the codecs on a CUDA device: beside a copy of the tensor, and in training steps of a ResNet-50 and a GPT.

    python benchmarks/gpu_speed.py
    python benchmarks/gpu_speed.py --part codecs --format bfloat16 --codecs sfpr,jpeg-act
    python benchmarks/gpu_speed.py --part steps --networks gpt --batch 4 --layers 24

Prints markdown tables. All times are of the device, between two events of its stream, medians of some runs after some more that
do not count: in these the kernels are compiled.

codecs
    Features of photographs (those of golden_speed.py), 64 channels of 32x32, after ReLU, by backends torch and triton. GB/s are
    bytes of the tensor, uncompressed, per second, 1 GB being 10**9 bytes; so they are for the copy, ``y.copy_(x)``. ``copies``
    is a time as a multiple of the copy's. Sizes that a codec must know to make its payload are waited for, within the time.
steps
    Forward, loss, backward and update by SGD with momentum, float32. ResNet-50 is torchvision's, images are random, 3x224x224;
    the GPT is transformers' GPT-2 with a vocabulary of 50257 and random tokens. ``peak MiB`` is the most that torch's
    allocator gave out in a step, beyond bytes in use before it; ``time`` and ``peak`` are multiples of those without hooks.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import actcodec
import torch
from actcodec.policies import catalog
from actcodec.study.models.library import torchvision
from cdu_tools.report import table_row
from golden_speed import conv_features
from torch import Tensor, nn

CODECS = (
    *("sfpr", "sfpr+zvc", "jpeg-act", "jpeg-gmc", "brc", "division", "actnn", "blpa", "autoquant", "actnn-sample", "int8-rows"),
)
BACKENDS = ("torch", "triton")
FORMATS = ("float32", "bfloat16", "float16")
#: The step without hooks.
WITHOUT = "without"
POLICIES = ("none", "sfpr", "sfpr+zvc", "jpeg-act", "jpeg-gmc", "division", "actnn-L2")
_VOCABULARY, _TOKENS, _CLASSES = 50257, 512, 1000
_GIGA, _MILLI, _MIB = 1e9, 1e-3, 1 << 20


def seconds(action: Callable[[], object], warm: int, runs: int) -> float:
    """Median of the seconds that the device takes for an action."""
    for _ in range(warm):
        action()
    times: list[float] = []
    for _ in range(runs):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        begin.record()
        action()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * _MILLI)
    return statistics.median(times)


def codec_table(arguments: argparse.Namespace) -> None:
    """Print the rows of the codecs, the copy first."""
    dtype = getattr(torch, arguments.format)
    features = conv_features(0).repeat(arguments.repeats, 1, 1, 1).relu()
    x = features.to("cuda", dtype)
    size = x.numel() * x.element_size()
    clock = partial(seconds, warm=arguments.warm, runs=arguments.runs)
    copy = clock(partial(torch.empty_like(x).copy_, x))
    print(f"\n{tuple(x.shape)} {arguments.format}, {size / _MIB:.0f} MiB. Copy: {size / copy / _GIGA:.0f} GB/s.\n")
    print("| codec | backend | bits/value | compress GB/s | copies | decompress GB/s | copies |")
    print("|---|---|---|---|---|---|---|")
    for name in arguments.codecs.split(","):
        for backend in arguments.backends.split(","):
            codec = actcodec.codec(name, backend=backend)
            packed = codec.compress(x)
            down, up = clock(partial(codec.compress, x)), clock(partial(codec.decompress, packed))
            cells = [name, backend, f"{8 * packed.nbytes / x.numel():.2f}"]
            for taken in (down, up):
                cells += [f"{size / taken / _GIGA:.1f}", f"{taken / copy:.1f}"]
            print(table_row(cells), flush=True)


def resnet50(arguments: argparse.Namespace) -> tuple[nn.Module, Callable[[nn.Module], Tensor]]:
    """The network, and the loss of a batch."""
    images = torch.randn(arguments.batch or 64, 3, 224, 224, device="cuda")
    labels = torch.randint(_CLASSES, (len(images),), device="cuda")
    return torchvision().models.resnet50(), lambda model: nn.functional.cross_entropy(model(images), labels)


def gpt(arguments: argparse.Namespace) -> tuple[nn.Module, Callable[[nn.Module], Tensor]]:
    """The network, and the loss of a batch."""
    torchvision()  # transformers imports it
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=_VOCABULARY, n_positions=_TOKENS, n_layer=arguments.layers)
    tokens = torch.randint(_VOCABULARY, (arguments.batch or 8, _TOKENS), device="cuda")
    return GPT2LMHeadModel(config), lambda model: model(tokens, labels=tokens, use_cache=False).loss


NETWORKS = {"resnet50": resnet50, "gpt": gpt}


def step_cost(network: str, policy: str, arguments: argparse.Namespace) -> tuple[float, float, float | None]:
    """Seconds of a step, MiB of its peak, and the ratio of the activations' bytes, None without hooks."""
    torch.manual_seed(0)
    model, loss_of = NETWORKS[network](arguments)
    model.to("cuda").train()
    optimizer = torch.optim.SGD(model.parameters(), 1e-3, momentum=0.9)
    options: dict[str, Any] = {}
    if policy != WITHOUT and "backend" in catalog.policy_options(policy):
        options["backend"] = arguments.backend
    chosen = None if policy == WITHOUT else catalog.policy(policy, **options)
    ratios: list[float | None] = [None]

    def step() -> None:
        if chosen is None:
            loss = loss_of(model)
        else:
            with actcodec.compress_activations(model, chosen) as stats:
                loss = loss_of(model)
            ratios.append(stats.bytes_original / stats.bytes_compressed)
        torch.autograd.backward(loss)
        optimizer.step()
        optimizer.zero_grad()

    taken = seconds(step, arguments.warm, arguments.runs)
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    step()
    torch.cuda.synchronize()
    return taken, (torch.cuda.max_memory_allocated() - before) / _MIB, ratios[-1]


def step_table(arguments: argparse.Namespace) -> None:
    """Print the rows of the networks, the step without hooks first."""
    print(f"\nBackend {arguments.backend}.\n")
    print("| network | policy | step ms | time | peak MiB | peak | ratio |")
    print("|---|---|---|---|---|---|---|")
    for network in arguments.networks.split(","):
        plain_time = plain_peak = 1.0
        for policy in (WITHOUT, *arguments.policies.split(",")):
            taken, peak, ratio = step_cost(network, policy, arguments)
            torch.cuda.empty_cache()
            if policy == WITHOUT:
                plain_time, plain_peak = taken, peak
            cells = [network, policy, f"{taken / _MILLI:.1f}", f"{taken / plain_time:.2f}"]
            cells += [f"{peak:.0f}", f"{peak / plain_peak:.2f}", "" if ratio is None else f"{ratio:.2f}"]
            print(table_row(cells), flush=True)


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=("codecs", "steps"), help="one of the two alone")
    parser.add_argument("--codecs", default=",".join(CODECS), help="names with commas between")
    parser.add_argument("--backends", default=",".join(BACKENDS), help="of the codecs by themselves, with commas between")
    parser.add_argument("--format", choices=FORMATS, default="float32", help="of the tensor that codecs compress")
    parser.add_argument("--repeats", type=int, default=4, help="of the 64 images whose features codecs compress")
    parser.add_argument("--networks", default=",".join(NETWORKS), help="names with commas between")
    parser.add_argument("--policies", default=",".join(POLICIES), help="names with commas between")
    parser.add_argument("--backend", default="triton", help="of the codecs in steps: triton or torch")
    parser.add_argument("--batch", type=int, help="64 images or 8 sequences of 512 tokens unless given")
    parser.add_argument("--layers", type=int, default=12, help="of the GPT")
    parser.add_argument("--warm", type=int, default=3, help="runs that do not count")
    parser.add_argument("--runs", type=int, default=10, help="runs that do, of which the median is taken")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("benchmarks/gpu_speed.py measures a CUDA device, and torch sees none: run it where there is one")
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}. Medians of {arguments.runs} runs.")
    if arguments.part != "steps":
        codec_table(arguments)
    if arguments.part != "codecs":
        step_table(arguments)


if __name__ == "__main__":
    main()
