"""A convolutional ResNet trains on real images while every compressed activation passes through the simulated unit.

The unit is driven as in a system: its AXI ports, and the reference driver, which writes tables and scales to registers.
"""

from __future__ import annotations

import os
import sys

import torch
from cdu_spec.register_types import Channel
from cocotb.task import bridge

from cdu_verif.backends.driven_backend import driven_backend
from cdu_verif.benches.array_bench import ArrayBench, queue_of
from cdu_verif.regression.plan import training_policies
from cdu_verif.simulation.bench import STEPS, simulated_config
from cdu_verif.simulation.bench_test import bench_test
from cdu_verif.stimulus.same_trainings import policy_options, same_trainings


@bench_test(ArrayBench, policy=[name.replace("-", "_") for name in training_policies(simulated_config())])
async def training(bench: ArrayBench, policy: str) -> None:
    """Bytes and reconstructions equal the golden model's in every step, losses and weights to the last bit."""
    torch.set_num_threads(1)
    steps = int(os.environ[STEPS])
    driver = await bench.open(scales_by_registers=True)
    backend, used = driven_backend(bench, driver)
    name, options = policy.replace("_", "-"), policy_options(bench.config, policy)

    def tell(step: int, loss: float) -> None:
        print(f"step {step}: loss {loss:.6f}, {bench.watches.cycle} cycles", file=sys.stderr, flush=True)

    # A bridged function has a thread of its own, and autograd runs CPU hooks on the thread that calls backward.
    losses, ratio = await bridge(same_trainings)(bench.seed, name, options, backend, steps, tell)
    assert backend.compressed >= 8 * steps, f"only {backend.compressed} tensors went through the unit"
    assert backend.decompressed >= backend.compressed // 2, "the backward pass did not use the unit"
    bench.cases = steps
    cycles = sum(used.values())
    counters = {channel: await queue_of(driver, channel).counters() for channel in Channel}
    assert counters[Channel.COMPRESS].values == backend.values, "the counter of values is wrong"
    assert counters[Channel.COMPRESS].bytes == backend.payload_bytes, "the counter of bytes is wrong"
    bench.figures |= {
        "ratio": ratio,
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
