"""What a network saves while it is trained, for measurements: a policy that compresses nothing and shows every tensor."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from actcodec.codecs import Codec, RawCopy
from actcodec.codecs.codec import NoCodec
from actcodec.policies.policy import Policy, SavedTensor, first_rules
from actcodec.saved.operations import Operation

#: ``sink(tensor, values)`` gets every recorded tensor; the values are the network's own and not to be changed.
Sink = Callable[[SavedTensor, Tensor], None]


class RecordingPolicy(Policy):
    """Keeps every activation exactly, and hands over those that a policy would compress: all but signs and a loss's.

    For :func:`actcodec.study.experiment.train`, or whatever tells a policy the samples of each step.

    Parameters
    ----------
    steps
        Numbers of the steps to be recorded, from 0 on.
    sink
        Called in forward, tensor by tensor.
    """

    def __init__(self, steps: Collection[int], sink: Sink) -> None:
        super().__init__(first_rules({}), default="none")
        self._steps = frozenset(steps)
        self._sink = sink
        self._step = -1

    def restart(self, seed: int) -> None:
        """See :class:`Policy`; steps are counted anew."""
        super().restart(seed)
        self._step = -1

    def set_samples(self, samples: Tensor | None) -> None:
        """See :class:`Policy`: a step begins."""
        self._step += 1

    def observer(self) -> _Recorder | None:
        """See :class:`Policy`."""
        return _Recorder(self._sink) if self._step in self._steps else None


@dataclass(frozen=True)
class _Recorder:
    """The observer of one step."""

    sink: Sink

    def codec_of(self, tensor: SavedTensor, codec: Codec) -> Codec:
        """See :class:`~actcodec.policies.policy.Observer`."""
        return codec if codec.signs_only else _ShowingCodec(tensor, self.sink)

    def finished(self, operation: Operation, result: Any) -> None:
        """See :class:`~actcodec.policies.policy.Observer`."""


@dataclass
class _ShowingCodec(NoCodec):
    """Shows one tensor to the sink."""

    tensor: SavedTensor
    sink: Sink

    def compress(self, x: Tensor) -> RawCopy:
        """See :class:`Codec`."""
        self.sink(self.tensor, x.detach())
        return super().compress(x)
