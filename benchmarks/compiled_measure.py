"""Measures means on a network of benchmarks/compiled_networks.py, a process for each, with steps in turn."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from statistics import median

import torch
from actcodec.study.gradient_similarity import cosine
from compiled_means import EAGER, Means
from compiled_page import Figures, Row
from compiled_worker import Memory, Seconds, Worker
from torch import from_numpy
from torch_means import PLAIN

BF16, FLOAT32 = "bf16 autocast", "float32"


def measure(network: str, means: Mapping[str, Means], autocast: bool, rounds: int) -> list[Row]:
    """Measure means on one network in turn, by name; among them are the eager step and plain ``torch.compile``."""
    precision = BF16 if autocast else FLOAT32
    with ExitStack() as stack:
        workers = {name: stack.enter_context(closing(Worker(network, one, autocast))) for name, one in means.items()}
        first: dict[str, Seconds] = {}
        errors: dict[str, str] = {}
        for name, worker in workers.items():
            try:
                first[name] = worker.call("first")
            except RuntimeError as error:
                errors[name] = str(error)
            print(f"{network}: first step of {name}", file=sys.stderr, flush=True)
        times: dict[str, list[Seconds]] = {name: [] for name in first}
        for number in range(-1, rounds):
            for name, its in times.items():
                seconds: Seconds = workers[name].call("time")
                if number >= 0:  # in the round before, kernels and memory are found
                    its.append(seconds)
        memory: dict[str, Memory] = {name: workers[name].call("memory") for name in first}
    rows = []
    vectors = torch.backends.cpu.get_cpu_capability()
    for name, one in means.items():
        base = memory[PLAIN if one.compiles else EAGER].loss
        found = figures(first[name], times[name], memory[name], times[EAGER], memory[EAGER], base) if name in first else None
        rows.append(Row(network, precision, vectors, name, found, errors.get(name, "")))
    return rows


def figures(
    first: Seconds, times: Sequence[Seconds], found: Memory, eager_times: Sequence[Seconds], eager: Memory, loss: str
) -> Figures:
    """Compare a means with the eager step, and its loss with that of the uncompressed step."""
    cpu, wall = median(one.cpu for one in times), median(one.wall for one in times)
    return Figures(
        peak=found.peak,
        kept=found.kept,
        resident=found.resident,
        parameters=found.parameters,
        of_eager=found.peak / eager.peak,
        time=median(one.cpu / base.cpu for one, base in zip(times, eager_times, strict=True)),
        seconds=cpu,
        cosine=cosine([from_numpy(eager.gradient)], [from_numpy(found.gradient)]),
        same_loss=found.loss == loss,
        first_cpu=first.cpu - cpu,
        first_wall=first.wall - wall,
    )
