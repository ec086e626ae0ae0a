"""A training step of a model that torch.compile compiled, beside that of the model as it is, with and without compression.

    python benchmarks/compiled_steps.py
    python benchmarks/compiled_steps.py --backend aot_eager --policies none,sfpr --repeats 40

A ResNet of two stages (width 16) and 32 random images of 3x32x32 on the CPU, one thread: forward, loss and backward. The four
kinds of steps take turns; measured is processor time, and the median of the repeats counts. Codecs are native where they can
be. Of the functions that the compiler has compiled in the end there is one, for the steps without compression. Prints a
markdown table.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from statistics import median
from typing import Any

import actcodec
import torch
from actcodec.backends.named import NATIVE
from actcodec.study.models import ResNet
from actcodec.training import policy_options
from cdu_tools.report import table_row
from torch import nn
from torch._dynamo.utils import counters

_WIDTH, _IMAGES, _SIDE, _CLASSES = 16, 32, 32, 10


def steps(backend: str, policy: str) -> dict[str, Callable[[], None]]:
    """A step of each kind, of one model."""
    torch.manual_seed(0)
    model = ResNet(3, _CLASSES, width=_WIDTH)
    images, labels = torch.randn(_IMAGES, 3, _SIDE, _SIDE), torch.arange(_IMAGES) % _CLASSES
    compiled = torch.compile(model, backend=backend)
    options: dict[str, Any] = {"backend": NATIVE} if "backend" in policy_options(policy) else {}
    compression = actcodec.compress_activations(model, policy, **options)

    def step(function: Callable[..., Any], compressed: bool) -> None:
        with compression if compressed else nullcontext():
            loss = nn.functional.cross_entropy(function(images), labels)
        torch.autograd.backward(loss)

    return {
        "as it is": lambda: step(model, False),
        "compiled": lambda: step(compiled, False),
        "as it is, compressed": lambda: step(model, True),
        "compiled, compressed": lambda: step(compiled, True),
    }


def row(backend: str, policy: str, repeats: int) -> list[str]:
    """Processor time of the kinds, in that of the model as it is."""
    torch._dynamo.reset()
    counters.clear()
    kinds = steps(backend, policy)
    times: dict[str, list[float]] = {kind: [] for kind in kinds}
    for repeat in range(repeats + 1):
        for kind, step in kinds.items():
            start = time.process_time()
            step()
            if repeat:  # in the first one the model is compiled
                times[kind].append(time.process_time() - start)
    plain, compiled, compressed, both = (median(times[kind]) for kind in kinds)
    frames = counters["frames"]["total"]
    return [f"`{policy}`", f"{compiled / plain:.2f}", f"{compressed / plain:.2f}", f"{both / compressed:.2f}", str(frames)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="inductor", help="of torch.compile")
    parser.add_argument("--policies", default="none,sfpr,jpeg-act,actnn-L2", help="with commas between")
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", message="what torch.compile compiled")
    print(table_row(["policy", "compiled", "compressed", "both, of compressed", "functions compiled"]))
    print("|---|--:|--:|--:|--:|")
    for policy in options.policies.split(","):
        print(table_row(row(options.backend, policy, options.repeats)), flush=True)


if __name__ == "__main__":
    main()
