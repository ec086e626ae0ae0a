"""Peak of the memory that torch's allocator gives out in one training step of torchvision's networks on the CPU, by policy.

    python benchmarks/step_peaks.py
    python benchmarks/step_peaks.py --networks vgg11_bn --policies none,sfpr --batch 16

Images are random, 3 x 64 x 64. The step is forward, loss, backward and update by SGD with momentum; a step before it makes the
optimiser's state and whatever libraries keep. Bytes in use before the step do not count; the figures are those of activations,
of their kept forms, of gradients, and of temporaries. Prints a markdown table:

peak
    MiB at the worst moment of the step, by the allocator's own events (:mod:`actcodec.saved.allocations`);
forward
    MiB at the worst moment of the forward pass, in which everything is packed;
kept
    MiB kept for the backward pass of all saved tensors except weights;
process
    MiB by which the process grew at most in three steps, from before the first, including the optimiser's state and memory that
    allocators and libraries keep.

``without`` is the step without hooks, ``floor`` a step that keeps nothing and gets zeros in its place: a lower limit
for compression. The last columns add ``floor`` and the kept bytes; the peak may be less if most bytes are not kept at its end.
"""

from __future__ import annotations

import argparse
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from typing import Any

import actcodec
import torch
from actcodec.policies import catalog
from actcodec.saved.allocations import allocations
from actcodec.saved.peak_memory import PeakMemory
from actcodec.study.models.library import torchvision
from actcodec.training import Statistics
from cdu_tools.report import table_row
from torch import Tensor, nn

#: The step without hooks, and one that keeps nothing.
WITHOUT, FLOOR = "without", "floor"
#: Images of a batch.
NETWORKS = {"resnet18": 64, "vgg11_bn": 32}
POLICIES = ("none", "brc", "bf16", "int8-rows", "sfpr", "jpeg-act", "jpeg-gmc", "blpa", "blpa-coded", "actnn-L2")
_CLASSES = 10
_STEPS = 3
_MIB = 1 << 20


def peaks(network: str, policy: str, batch: int) -> list[str]:
    """A row of the table."""
    torch.manual_seed(0)
    model = getattr(torchvision().models, network)(num_classes=_CLASSES)
    images, labels = torch.randn(batch, 3, 64, 64), torch.randint(_CLASSES, (batch,))
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    chosen = None
    if policy not in (WITHOUT, FLOOR):
        options: dict[str, Any] = {"backend": "native"} if "backend" in catalog.policy_options(policy) else {}
        chosen = catalog.policy(policy, **options)

    def forward() -> tuple[Tensor, Statistics | None]:
        if chosen is None:
            with keeping_nothing(model) if policy == FLOOR else nullcontext():
                return nn.functional.cross_entropy(model(images), labels), None
        with actcodec.compress_activations(model, chosen) as stats:
            loss = nn.functional.cross_entropy(model(images), labels)
        return loss, stats

    def step() -> Statistics | None:
        loss, stats = forward()
        torch.autograd.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        return stats

    resident = PeakMemory(images.device)
    for _ in range(_STEPS):
        step()
    grown = resident.bytes
    whole = allocations(step)
    alone = allocations(lambda: forward()[0])
    kept = "-" if whole.result is None else f"{whole.result.bytes_of_everything[1] / _MIB:.1f}"
    process = "-" if grown is None else f"{grown / _MIB:.0f}"
    return [network, str(batch), policy, f"{whole.peak / _MIB:.1f}", f"{alone.peak / _MIB:.1f}", kept, process]


def keeping_nothing(model: nn.Module) -> torch.autograd.graph.saved_tensors_hooks:
    """Hooks that keep weights and buffers, and of other tensors the shape."""
    own = {tensor.untyped_storage().data_ptr() for tensor in (*model.parameters(), *model.buffers())}

    def pack(x: Tensor) -> Tensor | tuple[torch.Size, torch.dtype]:
        return x if x.untyped_storage().data_ptr() in own else (x.shape, x.dtype)

    def unpack(kept: Tensor | tuple[torch.Size, torch.dtype]) -> Tensor:
        return kept if isinstance(kept, Tensor) else torch.zeros(kept[0], dtype=kept[1])

    return torch.autograd.graph.saved_tensors_hooks(pack, unpack)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", default=",".join(NETWORKS), help="of torchvision, with commas between")
    parser.add_argument("--policies", default=",".join((WITHOUT, FLOOR, *POLICIES)), help="names with commas between")
    parser.add_argument("--batch", type=int, help="64 for resnet18, 32 for others unless given")
    arguments = parser.parse_args()
    print("| network | batch | policy | peak MiB | forward MiB | kept MiB | process MiB |")
    print("|---|---|---|---|---|---|---|")
    # A process for each: what an allocator keeps of one is not there for the next.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as processes:
        for network in arguments.networks.split(","):
            for policy in arguments.policies.split(","):
                batch = arguments.batch or NETWORKS.get(network, 32)
                print(table_row(processes.submit(peaks, network, policy, batch).result()), flush=True)


if __name__ == "__main__":
    main()
