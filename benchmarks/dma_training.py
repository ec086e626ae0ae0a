"""Trains a network whose activations go through memory, DMA engine and unit, and holds the cycles beside the performance model.

    python benchmarks/dma_training.py [--bits 128] [--words 64] [--latency 0 40 200] [--steps 2]

The unit ``tiny`` with its engine is compiled; memory answers after so many cycles with a word per cycle in each direction.
Every payload and tensor is compared with the golden model's, and losses and weights with those of a training on it. The model
is :func:`cdu_driver.cycles.job_cycles`, job by job.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import torch
from cdu_driver import job_cycles
from cdu_spec import CduConfig
from cdu_spec.register_types import Channel
from cdu_tools.report import table_row
from cdu_verif.backends.checked_backend import CheckedBackend
from cdu_verif.backends.compiled.dma_backend import DmaBackend
from cdu_verif.backends.compiled.dma_worker import Took
from cdu_verif.stimulus.same_trainings import policy_options, same_trainings

_HEADER = (
    "| latency | | tensors | values | cycles | values/cycle | performance model | from doorbell to interrupt |",
    "|--:|---|--:|--:|--:|--:|--:|--:|",
)


def main() -> None:
    """Train with each latency and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bits", type=int, default=128, help="width of the port to memory")
    parser.add_argument("--words", type=int, default=0, help="dma_words of the configuration (64)")
    parser.add_argument("--latency", type=int, nargs="+", default=[0, 40, 200], help="cycles of memory beyond the least")
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    config = CduConfig(dma_bits=arguments.bits, dma_words=arguments.words)
    print("\n".join(_HEADER))
    for latency in arguments.latency:
        backend = DmaBackend(config, latency)
        options = policy_options(config, "jpeg_act")
        same_trainings(arguments.seed, "jpeg-act", options, CheckedBackend(backend), arguments.steps, _silent)
        for channel in Channel:
            print(_line(config, latency, channel, [job for job in backend.took if job.channel is channel]), flush=True)


def _silent(step: int, loss: float) -> None:
    pass


def _line(config: CduConfig, latency: int, channel: Channel, jobs: Sequence[Took]) -> str:
    values, cycles = sum(job.values for job in jobs), sum(job.cycles for job in jobs)
    model = sum(
        job_cycles(config, channel, job.mode, job.shape, job.payload_bytes, latency, addresses=job.addresses) for job in jobs
    )
    of_model = f"{model}, {model / cycles:.3f} of them"
    waited = sum(job.waited for job in jobs)
    return table_row((latency, channel.value, len(jobs), values, cycles, f"{values / cycles:.2f}", of_model, waited))


if __name__ == "__main__":
    main()
