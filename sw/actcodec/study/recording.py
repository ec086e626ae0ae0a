"""Record tensors that a network saves during training: a policy that compresses nothing and passes every tensor to a sink."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from actcodec.codecs import Codec, RawCopy
from actcodec.codecs.codec import NoCodec
from actcodec.policies.policy import Policy, SavedTensor
from actcodec.policies.tables.rules import first_rules
from actcodec.saved.operations import Operation

#: ``sink(tensor, values)`` gets every recorded tensor; it must not change the values, which are the network's own.
Sink = Callable[[SavedTensor, Tensor], None]


class RecordingPolicy(Policy):
    """Keep every activation exactly, and pass on those that a policy would compress: all but signs and those of a loss.

    Used with :func:`actcodec.study.experiment.train`, or another loop that calls ``set_samples`` at each step.

    Parameters
    ----------
    steps
        Numbers of the recorded steps, from 0.
    sink
        Called in forward, tensor by tensor.
    """

    def __init__(self, steps: Collection[int], sink: Sink) -> None:
        super().__init__(first_rules({}), default="none")
        self._steps = frozenset(steps)
        self._sink = sink
        self._step = -1

    def restart(self, seed: int) -> None:
        """Implement :class:`Policy`. Steps are counted anew."""
        super().restart(seed)
        self._step = -1

    def set_samples(self, samples: Tensor | None) -> None:
        """Implement :class:`Policy`. Each call begins a step."""
        self._step += 1

    def observer(self) -> _Recorder | None:
        """Implement :class:`Policy`."""
        return _Recorder(self._sink) if self._step in self._steps else None


@dataclass(frozen=True)
class _Recorder:
    """The observer of one step."""

    sink: Sink

    def codec_of(self, tensor: SavedTensor, codec: Codec) -> Codec:
        """Implement :class:`~actcodec.policies.policy.Observer`."""
        return codec if codec.signs_only else _ShowingCodec(tensor, self.sink)

    def finished(self, operation: Operation, result: Any) -> None:
        """Implement :class:`~actcodec.policies.policy.Observer`."""


@dataclass
class _ShowingCodec(NoCodec):
    """Pass one tensor to the sink."""

    tensor: SavedTensor
    sink: Sink

    def compress(self, x: Tensor) -> RawCopy:
        """Implement :class:`Codec`."""
        self.sink(self.tensor, x.detach())
        return super().compress(x)
