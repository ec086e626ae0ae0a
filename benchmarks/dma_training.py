"""Trains a network whose activations go through memory, DMA engine and unit, and holds the cycles beside `cdu offload`'s model.

    python benchmarks/dma_training.py [--bits 128] [--words 64] [--latency 0 40 200] [--steps 2] [-o build/dma_training]

The unit ``tiny`` with its engine is compiled; memory answers after so many cycles with a word per cycle in each direction.
Every payload and tensor is compared with the golden model's, and losses and weights with those of a training on it. For each
latency `report_LATENCY.json` has the rates of the unit behind its engine, which `cdu offload --config tiny --verify` takes: the
model of the table is made of them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import torch
from actcodec.codecs import codec
from cdu_offload import unit
from cdu_offload.unit import OffloadUnit
from cdu_spec import CduConfig
from cdu_spec.geometry import LANES
from cdu_spec.register_types import Channel
from cdu_tools.report import table_row
from cdu_verif.backends.checked_backend import CheckedBackend
from cdu_verif.backends.compiled.dma_backend import DmaBackend
from cdu_verif.backends.compiled.dma_worker import Took
from cdu_verif.stimulus.same_trainings import policy_options, same_trainings

#: A rate is the difference of two tensors, of which one has so many times the samples of the other.
_SHAPE, _FACTOR = (1, 4, 32, 64), 4
_HEADER = (
    "| latency | | tensors | values | cycles | values/cycle | cdu offload's model | from doorbell to interrupt |",
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
    parser.add_argument("-o", "--output", type=Path, default=Path("build", "dma_training"))
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    config = CduConfig(dma_bits=arguments.bits, dma_words=arguments.words)
    print("\n".join(_HEADER))
    for latency in arguments.latency:
        report = arguments.output / f"report_{latency}.json"
        rows = _rates(DmaBackend(config, latency))
        report.write_text(json.dumps({"results": [{"group": "dma_array", "measurements": rows}]}), encoding="utf-8")
        array = unit.with_rates(unit.unmeasured(config.cdus), report)
        backend = DmaBackend(config, latency)
        options = policy_options(config, "jpeg_act")
        same_trainings(arguments.seed, "jpeg-act", options, CheckedBackend(backend), arguments.steps, _silent)
        for channel in Channel:
            print(_line(latency, channel, [job for job in backend.took if job.channel is channel], array), flush=True)


def _silent(step: int, loss: float) -> None:
    pass


def _rates(backend: DmaBackend) -> list[dict[str, object]]:
    """Values per cycle of every mode and direction, and cycles of the smaller of two tensors, as `cdu verify` reports them."""
    torch.manual_seed(0)
    n, *others = _SHAPE
    modes = backend.config.built_modes
    for mode in modes:
        for samples in (n, n * _FACTOR):
            chosen = codec(mode.label, backend=backend)
            chosen.decompress(chosen.compress(torch.randn(samples, *others).relu()))
    found: list[dict[str, object]] = []
    for mode in modes:
        for channel in Channel:
            small, large = (job for job in backend.took if (job.mode, job.channel) == (mode, channel))
            found.append(
                {
                    "direction": channel.value,
                    "mode": mode.label,
                    "values": small.values,
                    "cycles": small.cycles,
                    "values_per_cycle": (large.values - small.values) / (large.cycles - small.cycles),
                    "possible": backend.config.cdus * LANES,
                }
            )
    return found


def _line(latency: int, channel: Channel, jobs: Sequence[Took], array: OffloadUnit) -> str:
    values, cycles = sum(job.values for job in jobs), sum(job.cycles for job in jobs)
    model = sum(_model(job, array) for job in jobs)
    of_model = f"{model:.0f}, {model / cycles:.2f} of them"
    waited = sum(job.waited for job in jobs)
    return table_row((latency, channel.value, len(jobs), values, cycles, f"{values / cycles:.2f}", of_model, waited))


def _model(job: Took, array: OffloadUnit) -> float:
    """Cycles of a transfer that neither link nor memory holds up, as :mod:`cdu_offload.offload` counts them."""
    direction = job.channel.value
    return array.start_cycles[direction] + job.values / array.mode_rates.get(
        (direction, job.mode.label), array.values_per_cycle[direction]
    )


if __name__ == "__main__":
    main()
