"""A network trains while every compressed activation passes through memory, the DMA engine and the unit behind it.

The host writes descriptors, as a driver does; tensors, scales and payloads it leaves to the engine.
"""

from __future__ import annotations

import os
import sys

import torch
from cdu_spec.register_types import Channel
from cocotb.task import bridge

from cdu_verif.backends.described_backend import DescribedBackend
from cdu_verif.benches.dma_bench import DmaBench
from cdu_verif.regression.plan import training_policies
from cdu_verif.simulation.bench import STEPS, simulated_config
from cdu_verif.simulation.bench_test import bench_test
from cdu_verif.stimulus.same_trainings import policy_options, same_trainings

#: Cycles of the memory.
_LATENCY = 40


@bench_test(DmaBench, policy=[name.replace("-", "_") for name in training_policies(simulated_config())])
async def training(bench: DmaBench, policy: str) -> None:
    """Bytes and reconstructions in memory equal the golden model's in every step, losses and weights to the last bit."""
    torch.set_num_threads(1)
    steps = int(os.environ[STEPS])
    bench.memory.latency = _LATENCY
    backend = DescribedBackend(bench)
    name, options = policy.replace("_", "-"), policy_options(bench.config, policy)

    def tell(step: int, loss: float) -> None:
        print(f"step {step}: loss {loss:.6f}, {backend.cycles} cycles", file=sys.stderr, flush=True)

    # A bridged function has a thread of its own, and autograd runs CPU hooks on the thread that calls backward.
    losses, ratio = await bridge(same_trainings)(bench.seed, name, options, backend, steps, tell)
    jobs, cycles = backend.jobs, backend.cycles
    assert jobs[Channel.COMPRESS] >= 8 * steps, f"only {jobs[Channel.COMPRESS]} tensors went through the unit"
    assert jobs[Channel.DECOMPRESS] >= jobs[Channel.COMPRESS] // 2, "the backward pass did not use the unit"
    bench.cases = steps
    bench.figures |= {
        "ratio": ratio,
        "steps": steps,
        "losses": " ".join(repr(loss) for loss in losses),
        "tensors_compressed": jobs[Channel.COMPRESS],
        "tensors_decompressed": jobs[Channel.DECOMPRESS],
        "payload_bytes": backend.payload_bytes,
        "values_compressed": backend.values,
        "cycles_of_jobs": sum(cycles.values()),
        "values_per_busy_cycle": round(backend.values / cycles[Channel.COMPRESS], 3),
    }
