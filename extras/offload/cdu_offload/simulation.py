"""Simulate the training step, event by event: the GPU computes, DMA engines move activations, and they wait for each other.

vDNN's schedule. Forward: an activation leaves when its last reader starts (or, if no later operation reads it, when its
producer has ended), and a layer starts when all activations sent away ``ahead`` + 1 layers before it and earlier have left:
until then their memory is not free. Backward: when a layer starts, the activations of the ``ahead`` layers before it are
fetched; work waits for the activations it needs. The activations of the last layer stay, because backward begins with them. The
directions of the link are independent; an engine moves one activation at a time, in order.

Work and transfers share the GPU's memory: while an activation moves, work gets the rate that the DMA engine leaves.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from typing import Any

import simpy

from cdu_offload.method import CDU, COMPRESS, DECOMPRESS, DMA_SHARE, LINK, OffloadMethod, Transfer
from cdu_offload.network import LayerWork, OffloadNetwork
from cdu_offload.platform import Platform

Process = Generator[simpy.Event, Any, None]


@dataclass
class StepOutcome:
    """A training step: all times in seconds."""

    seconds: float = 0.0
    forward_seconds: float = 0.0
    compute_seconds: float = 0.0  #: the network's own work, including slowdown by transfers
    overhead_seconds: float = 0.0  #: compression and decompression by the GPU
    stalls: dict[str, float] = field(default_factory=lambda: {LINK: 0.0, CDU: 0.0})  #: waiting, by the slowest stage
    bytes_moved: dict[str, int] = field(default_factory=lambda: {COMPRESS: 0, DECOMPRESS: 0})  #: over the link
    transfer_seconds: dict[str, float] = field(default_factory=lambda: {COMPRESS: 0.0, DECOMPRESS: 0.0})


@dataclass
class _Job:
    """An activation in transfer."""

    transfer: Transfer
    may_start: simpy.Event
    done: simpy.Event


class _Memory:
    """The current users of the GPU's memory, with their rates."""

    def __init__(self, environment: simpy.Environment, bytes_per_s: float) -> None:
        self._environment, self._bytes_per_s = environment, bytes_per_s
        self._taken = 0.0
        self.changed = environment.event()

    @property
    def left(self) -> float:
        """Bytes per second that transfers leave."""
        return self._bytes_per_s - min(self._taken, DMA_SHARE * self._bytes_per_s)

    def take(self, bytes_per_s: float) -> None:
        """Begin a transfer, or with a negative rate end one."""
        self._taken += bytes_per_s
        happened, self.changed = self.changed, self._environment.event()
        happened.succeed()


class _Simulation:
    """One training step."""

    def __init__(self, network: OffloadNetwork, platform: Platform, method: OffloadMethod, ahead: int) -> None:
        self.environment = simpy.Environment()
        self.outcome = StepOutcome()
        self._network, self._platform, self._method, self._ahead = network, platform, method, ahead
        self._memory = _Memory(self.environment, platform.memory_bytes_per_s)
        self._queues = {direction: simpy.Store(self.environment) for direction in (COMPRESS, DECOMPRESS)}
        self._out: dict[int, _Job] = {}
        self._back: dict[int, _Job] = {}
        self._last_layer = network.last_layer
        for direction in self._queues:
            self.environment.process(self._engine(direction))
        self.process = self.environment.process(self._gpu())

    def _engine(self, direction: str) -> Process:
        """Run a DMA engine."""
        while True:
            job = yield self._queues[direction].get()
            yield job.may_start
            self._memory.take(job.transfer.memory_bytes_per_s)
            yield self.environment.timeout(job.transfer.seconds)
            self._memory.take(-job.transfer.memory_bytes_per_s)
            self.outcome.bytes_moved[direction] += job.transfer.link_bytes
            self.outcome.transfer_seconds[direction] += job.transfer.seconds
            job.done.succeed()

    def _gpu(self) -> Process:
        """Run the GPU's compute stream."""
        network = self._network
        now = -1
        for work, layer in zip(network.forward, network.forward_layers, strict=True):
            if layer != now:
                now = layer
                early = [job for number, job in self._out.items() if network.layer_of[number] < layer - self._ahead]
                yield from self._wait(early)
            self._send(work.releases)
            yield from self._compute(work)
            yield from self._overhead((*work.releases, *work.makes), COMPRESS)
            self._send(work.makes)
        self.outcome.forward_seconds = self.environment.now
        # The order is that in which they are needed; autograd reads some more than once.
        order = list(dict.fromkeys(number for work in network.backward for number in work.needs))
        layer = self._last_layer + 1
        unseen = set(range(len(network.activations)))
        for work in network.backward:
            wanted = min((network.layer_of[number] for number in work.needs), default=layer)
            if wanted < layer:
                layer = wanted
                self._fetch(number for number in order if network.layer_of[number] >= layer - self._ahead)
            yield from self._wait(self._back[number] for number in work.needs if number in self._back)
            yield from self._overhead([number for number in work.needs if number in unseen], DECOMPRESS)
            unseen.difference_update(work.needs)
            yield from self._compute(work)
        self.outcome.seconds = self.environment.now

    def _send(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            if self._network.layer_of[number] < self._last_layer:
                self._queue(number, COMPRESS, self._out, self.environment.event().succeed())

    def _fetch(self, numbers: Iterable[int]) -> None:
        """Request activations that were sent away and not yet requested; each can return once it has arrived there."""
        for number in numbers:
            if number in self._out and number not in self._back:
                self._queue(number, DECOMPRESS, self._back, self._out[number].done)

    def _queue(self, number: int, direction: str, jobs: dict[int, _Job], may_start: simpy.Event) -> None:
        transfer = self._method.transfer(self._network.activations[number], direction)
        if transfer is not None:
            jobs[number] = _Job(transfer, may_start, self.environment.event())
            self._queues[direction].put(jobs[number])

    def _wait(self, jobs: Iterable[_Job]) -> Process:
        """Wait until some transfers are over. The time counts for the slowest stage of each."""
        for job in jobs:
            since = self.environment.now
            if not job.done.processed:
                yield job.done
            self.outcome.stalls[job.transfer.limit] += self.environment.now - since

    def _compute(self, work: LayerWork) -> Process:
        """Work at the rate that memory allows, which changes as transfers begin and end."""
        since = self.environment.now
        left, finished = 1.0, False
        while not finished:
            seconds = self._platform.seconds(work, self._memory.left)
            begun, end = self.environment.now, self.environment.timeout(left * seconds)
            happened = yield end | self._memory.changed
            finished = end in happened
            if not finished:
                left = max(0.0, left - (self.environment.now - begun) / seconds)
        self.outcome.compute_seconds += self.environment.now - since

    def _overhead(self, numbers: Iterable[int], direction: str) -> Process:
        seconds = sum(self._method.overhead_seconds(self._network.activations[number], direction) for number in numbers)
        if seconds:
            yield self.environment.timeout(seconds)
        self.outcome.overhead_seconds += seconds


def simulate(network: OffloadNetwork, platform: Platform, method: OffloadMethod, ahead: int = 1) -> StepOutcome:
    """Simulate one training step.

    ``ahead`` is the number of layers, 1 or more, by which computation may run ahead of activations that leave, and by which
    fetching runs ahead of the computation; vDNN: 1.
    """
    simulation = _Simulation(network, platform, method, ahead)
    simulation.environment.run(simulation.process)
    return simulation.outcome
