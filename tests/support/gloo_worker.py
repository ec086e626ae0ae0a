"""One of two processes of a training step on the CPU."""

from typing import Any
from unittest.mock import patch

import actcodec
import torch
import torch.distributed as dist
from actcodec.policies.groups import recomputation
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module

WORLD = 2
#: 8 bits, and no value of a sample depends on which other samples are in the batch.
BY_SAMPLE = {"bits": 8, "rounding": "nearest"}


def network() -> nn.Sequential:
    """Without batch normalisation, whose statistics are those of a process."""
    torch.manual_seed(0)
    first = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.ReLU())
    return nn.Sequential(first, nn.Sequential(nn.Conv2d(8, 4, 3), nn.ReLU(), nn.Flatten()), nn.Linear(4 * 36, 5))


def batch() -> Tensor:
    """Eight samples."""
    return torch.randn(8, 3, 8, 8, generator=torch.Generator().manual_seed(1))


def step(model: nn.Module, x: Tensor) -> tuple[dict[str, Tensor], list[tuple[int, ...]]]:
    """Gradients, and the shapes of the activations that were counted."""
    with actcodec.compress_activations(model, "actnn-L2", **BY_SAMPLE) as stats:
        loss = model(x).square().mean()
    loss.backward()
    gradients = {name.removeprefix("module."): p.grad for name, p in model.named_parameters()}
    return gradients, [record.shape for record in stats.records]


def feed_forward() -> nn.Sequential:
    """The half of a transformer's block that has no attention."""
    torch.manual_seed(0)
    return nn.Sequential(nn.LayerNorm(128), nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 128))


def tokens() -> Tensor:
    """Return a tensor of shape (batch, sequence, features)."""
    return torch.randn(4, 16, 128, generator=torch.Generator().manual_seed(1))


#: Ways to train :func:`feed_forward` on two processes: parts of weights, and parts of the sequence between them.
PARALLEL = {
    "tensor": lambda: {"1": ColwiseParallel(), "3": RowwiseParallel()},
    "tensors stay distributed": lambda: {
        "1": ColwiseParallel(use_local_output=False),
        "3": RowwiseParallel(use_local_output=False),
    },
    "sequence": lambda: {
        "0": SequenceParallel(),
        "1": ColwiseParallel(input_layouts=Shard(1)),
        "3": RowwiseParallel(output_layouts=Shard(1)),
    },
}
#: One process that keeps what layers widen, as policies do behind a DTensor.
WIDE_KEPT = "wide kept"
#: Recommended policies, one for each kind of codec.
POLICIES = {"none": {}, "transformer": {}, "blpa-coded": {"bits": 6}, "transformer-nvfp4": {}}


def parallel_step(way: str | None, policy: str, options: dict[str, Any], mesh: DeviceMesh) -> dict[str, Any]:
    """Gradients of a step, both ratios, and how many distributed tensors were not compressed."""
    model = feed_forward()
    if way is not None:
        parallelize_module(model, mesh, PARALLEL[way]())
    x = tokens().chunk(WORLD, 1)[dist.get_rank()] if way == "sequence" else tokens()
    with actcodec.compress_activations(model, policy, compress_loss=True, **options) as stats:
        y = model(x)
        y = y.full_tensor() if isinstance(y, DTensor) else y
        loss = y.square().sum()
    loss.backward()
    gradients = {name: full(p.grad) for name, p in model.named_parameters()}
    return {
        "gradients": gradients,
        "ratio": stats.ratio,
        "ratio_of_everything": stats.ratio_of_everything,
        "not_counted": stats.not_counted,
        "codecs": [(record.op, record.codec, record.shape) for record in stats.records],
    }


def full(x: Tensor) -> Tensor:
    """The whole of a distributed tensor."""
    return x.full_tensor() if isinstance(x, DTensor) else x


def run(rank: int, rendezvous: str, results: str) -> None:
    """Train with DistributedDataParallel and with fully_shard on this process's half of the batch; save what came out."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=WORLD)
    half = batch().chunk(WORLD)[rank]
    found = {"ddp": step(nn.parallel.DistributedDataParallel(network()), half)}
    sharded, mesh = network(), init_device_mesh("cpu", (WORLD,))
    for part in (*sharded, sharded):
        fully_shard(part, mesh=mesh, reshard_after_forward=True)
    gradients, shapes = step(sharded, half)
    found["fully_shard"] = {name: gradient.full_tensor() for name, gradient in gradients.items()}, shapes
    for policy, options in POLICIES.items():
        for way in (None, *PARALLEL):
            found[way, policy] = parallel_step(way, policy, options, mesh)
        with patch.object(recomputation, "WIDENING", frozenset()):
            found[WIDE_KEPT, policy] = parallel_step(None, policy, options, mesh)
    torch.save(found, f"{results}.{rank}")
    dist.destroy_process_group()
