"""One of two processes of a training step on the CPU."""

import actcodec
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

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
    torch.save(found, f"{results}.{rank}")
    dist.destroy_process_group()
