"""A convolutional ResNet trains on real images while every compressed activation passes through the simulated unit.

The unit is driven as in a system: its AXI ports, and the reference driver, which writes tables and scales to registers.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import torch
from actcodec.backends.backend import Backend
from actcodec.backends.torch_backend import TorchBackend
from actcodec.study.models import ResNet
from actcodec.training import Statistics, compress_activations
from cdu_spec.registers import Channel
from cocotb.task import bridge
from torch import Tensor, nn
from torch.nn import functional as F

from cdu_verif.backends.driven_backend import driven_backend
from cdu_verif.benches.array_bench import ArrayBench, queue_of
from cdu_verif.regression.plan import training_policies
from cdu_verif.simulation.bench import simulated_config
from cdu_verif.simulation.bench_test import bench_test

_BATCH = 8
#: The digits have 8 x 8 pixels; enlarged, both stages of the network give maps that jpeg-act takes.
_PIXELS = 16
_LEARNING_RATE = 0.05


class Training:
    """One network, its optimiser and its data; equal seeds give equal trainings."""

    def __init__(self, seed: int, policy: str, backend: Backend, options: dict[str, Any]) -> None:
        torch.manual_seed(seed)
        self.model = ResNet(channels=1, classes=10, width=8, depth=1, stages=2)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=_LEARNING_RATE, momentum=0.9)
        self.policy, self.options = policy, {"backend": backend, **options}
        self._batches = batches(seed)

    def step(self) -> tuple[float, Statistics]:
        """One training step: loss, and what was saved for the backward pass."""
        images, labels = next(self._batches)
        self.optimizer.zero_grad()
        with compress_activations(self.model, self.policy, **self.options) as statistics:
            loss = F.cross_entropy(self.model(images), labels)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return loss.item(), statistics

    def state(self) -> list[Tensor]:
        """Every parameter and buffer."""
        model: nn.Module = self.model
        return [value.detach().clone() for value in model.state_dict().values()]


def batches(seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches of scikit-learn's handwritten digits: images (B, 1, 16, 16) in 0..1 and labels (B,), without end."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
    images = F.interpolate(images, size=_PIXELS, mode="bilinear", align_corners=False)
    labels = torch.tensor(digits.target)
    order = torch.Generator().manual_seed(seed)
    while True:
        for picks in torch.split(torch.randperm(len(images), generator=order), _BATCH):
            yield images[picks], labels[picks]


@bench_test(ArrayBench, policy=[name.replace("-", "_") for name in training_policies(simulated_config())])
async def training(bench: ArrayBench, policy: str) -> None:
    """Bytes and reconstructions equal the golden model's in every step, losses and weights to the last bit."""
    torch.set_num_threads(1)
    steps = int(os.environ["CDU_VERIFY_STEPS"])
    driver = await bench.open(scales_by_registers=True)
    backend, used = driven_backend(bench, driver)
    config = bench.config
    options: dict[str, Any] = {"scale_bits": config.scale_bits}
    if policy in ("jpeg_act", "jpeg_gmc"):
        options |= {"const_bits": config.const_bits, "pass1_bits": config.pass1_bits, "rounding": config.rounding}
    losses: list[float] = []
    figures: dict[str, Any] = {}

    @bridge
    def train() -> None:
        # A bridged function has a thread of its own, and autograd runs CPU hooks on the thread that calls backward.
        simulated, golden = (
            Training(bench.seed, policy.replace("_", "-"), through, options) for through in (backend, TorchBackend())
        )
        kept = original = 0
        for step in range(steps):
            loss, statistics = simulated.step()
            expected, golden_statistics = golden.step()
            assert loss == expected, f"step {step}: loss {loss!r}, on the golden model {expected!r}"
            for mine, theirs in zip(simulated.state(), golden.state(), strict=True):
                assert torch.equal(mine, theirs), f"step {step}: the networks differ after the step"
            assert statistics.bytes_compressed == golden_statistics.bytes_compressed
            kept += statistics.bytes_compressed
            original += statistics.bytes_original
            losses.append(loss)
            print(f"step {step}: loss {loss:.6f}, {bench.watches.cycle} cycles", file=sys.stderr, flush=True)
        assert kept, "nothing was compressed"
        figures["ratio"] = round(original / kept, 3)

    await train()
    assert backend.compressed >= 8 * steps, f"only {backend.compressed} tensors went through the unit"
    assert backend.decompressed >= backend.compressed // 2, "the backward pass did not use the unit"
    bench.cases = steps
    cycles = sum(used.values())
    counters = {channel: await queue_of(driver, channel).counters() for channel in Channel}
    assert counters[Channel.COMPRESS].values == backend.values, "the counter of values is wrong"
    assert counters[Channel.COMPRESS].bytes == backend.payload_bytes, "the counter of bytes is wrong"
    bench.figures |= {
        **figures,
        "steps": steps,
        "losses": " ".join(repr(loss) for loss in losses),
        "tensors_compressed": backend.compressed,
        "tensors_decompressed": backend.decompressed,
        "payload_bytes": backend.payload_bytes,
        "values_compressed": backend.values,
        "cycles_of_jobs": cycles,
        "values_per_busy_cycle": round(counters[Channel.COMPRESS].values_per_cycle, 3),
        "seconds_in_simulator": round(backend.seconds, 1),
    }
