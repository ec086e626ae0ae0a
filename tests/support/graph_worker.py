"""One of two processes that train a compiled network with coded values, on the CPU."""

from __future__ import annotations

from collections.abc import Callable

import actcodec
import torch
import torch.distributed as dist
from actcodec.graph import partition
from actcodec.graph.choices import KEEP, Choices
from actcodec.graph.compiled import Compiled
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

WORLD = 2
WIDTH = 128


class Block(nn.Module):
    """Half a block of a transformer. The compiler skips layers of torch that are called by functions of torch, as hooks are."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """Return the results of the layers."""
        return self.down(nn.functional.gelu(self.up(self.norm(x)))).sin()


def network() -> nn.Sequential:
    """Return a model of one block."""
    torch.manual_seed(0)
    return nn.Sequential(Block())


def batch() -> Tensor:
    """Return a tensor of shape (batch, features)."""
    return torch.randn(192, WIDTH, generator=torch.Generator().manual_seed(1))


def compress(model: nn.Module, policy: str) -> None:
    if policy == KEEP:
        Compiled(model, Choices(KEEP), None)
    else:
        actcodec.compiled(model, policy=policy)


def data_parallel(policy: str, mesh: DeviceMesh) -> nn.Module:
    """Compile around DistributedDataParallel."""
    model = nn.parallel.DistributedDataParallel(network())
    compress(model, policy)
    return model


def sharded_blocks(policy: str, mesh: DeviceMesh) -> nn.Module:
    """Compile each block, then fully_shard, as torchtitan does."""
    model = network()
    for part in model:
        compress(part, policy)
    for part in (*model, model):
        fully_shard(part, mesh=mesh, reshard_after_forward=True)
    return model


def tensor_parallel(policy: str, mesh: DeviceMesh) -> nn.Module:
    """Compile a model of DTensors."""
    model = network()
    for part in model:
        parallelize_module(part, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    compress(model, policy)
    return model


WAYS: dict[str, Callable[[str, DeviceMesh], nn.Module]] = {
    way.__name__: way for way in (data_parallel, sharded_blocks, tensor_parallel)
}


def run(rank: int, rendezvous: str, results: str) -> None:
    """Train a step in each way with all values kept and with int8; save losses, gradients and what was coded."""
    torch.set_num_threads(1)
    torch._functorch.config.enable_autograd_cache = False  # a graph of the cache is not partitioned again, and so not noted
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=WORLD)
    mesh = init_device_mesh("cpu", (WORLD,))
    coded: list[tuple[str, tuple[int, ...]]] = []
    code = partition.code

    def noted(pair, node, form):  # type: ignore[no-untyped-def]
        coded.append((form.name, tuple(map(partition.hint, node.meta["val"].shape))))
        return code(pair, node, form)

    partition.code = noted
    found = {}
    for name, way in WAYS.items():
        for policy in (KEEP, "int8"):
            torch._dynamo.reset()
            coded.clear()
            model = way(policy, mesh)
            x = batch() if way is tensor_parallel else batch().chunk(WORLD)[rank]
            loss = model(x).square().mean()
            loss.backward()
            gradients = {
                key.removeprefix("module."): p.grad.full_tensor() if isinstance(p.grad, DTensor) else p.grad
                for key, p in model.named_parameters()
            }
            found[name, policy] = {"loss": loss.detach(), "gradients": gradients, "coded": list(coded)}
    torch.save(found, f"{results}.{rank}")
    dist.destroy_process_group()
