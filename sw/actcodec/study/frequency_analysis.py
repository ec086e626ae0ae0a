"""Measure the low and high frequencies of a network's activations while it trains (DIVISION, section 3).

After each epoch a copy of the network gets the same inputs. For every activation (N, C, H, W) that autograd would save, the
norms of both parts are computed, and the distance that each part has moved since the epoch before.
"""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from actcodec.codecs import Codec, Packed, RawCopy
from actcodec.codecs.codec import NoCodec
from actcodec.policies.policy import Policy, SavedTensor
from actcodec.saved.operations import Operation
from actcodec.study.frequency import DEFAULT_CORNER, Lambdas, lambdas, low_mask
from actcodec.training.activation_compression import compress_activations

_MAP_RANK = 4
_Key = tuple[object, ...]


@dataclass(frozen=True)
class LayerFrequencies:
    """One activation after one epoch."""

    epoch: int
    module: str  #: module in whose forward it is saved
    operation: str  #: operation that produced it
    shape: tuple[int, ...]
    norms: Lambdas  #: lambda_L and lambda_H
    change: Lambdas | None  #: norms of both parts of the difference to the epoch before; None for the first one

    @property
    def relative_change(self) -> tuple[float, float] | None:
        """Change of the low and of the high part, each relative to its norm; 0 for a part that is zero."""
        if self.change is None:
            return None
        pairs = ((self.change.low, self.norms.low), (self.change.high, self.norms.high))
        low, high = (change / norm if norm else 0.0 for change, norm in pairs)
        return low, high


class FrequencyAnalysis:
    """Measure a network repeatedly with the same inputs.

    Parameters
    ----------
    inputs
        Inputs of the network, on its device.
    corner
        Extent of low frequencies, see :func:`actcodec.study.frequency.low_mask`.

    Raises UserError for a corner out of range.
    """

    def __init__(self, inputs: Tensor, corner: float | int = DEFAULT_CORNER) -> None:
        low_mask(1, 1, corner)
        self._inputs, self._corner = inputs, corner
        self._before: dict[_Key, Tensor] = {}

    def measure(self, model: nn.Module, epoch: int) -> list[LayerFrequencies]:
        """Return the activations, in forward order, of a copy of the network in training mode; the network is not changed."""
        probe = copy.deepcopy(model).train()
        recorder = _Recorder()
        # The seed makes dropout and the like drop the same values each time.
        with torch.random.fork_rng(devices=[]), compress_activations(probe, recorder):
            torch.manual_seed(0)
            probe(self._inputs)
        rows = []
        for key, (tensor, values) in recorder.seen.items():
            before = self._before.get(key)
            change = None if before is None else lambdas(values - before, self._corner)
            norms = lambdas(values, self._corner)
            rows.append(LayerFrequencies(epoch, tensor.module, tensor.producer, tensor.shape, norms, change))
        self._before = {key: values for key, (_, values) in recorder.seen.items()}
        return rows


class _Recorder(Policy):
    """Keep a copy of every activation (N, C, H, W) with more than one value per map; the policy is its own observer."""

    def __init__(self) -> None:
        super().__init__((), default=NoCodec())
        self.seen: dict[_Key, tuple[SavedTensor, Tensor]] = {}
        self._occurrences: Counter[_Key] = Counter()

    def observer(self) -> _Recorder:
        """Implement :class:`Policy`."""
        return self

    def codec_of(self, tensor: SavedTensor, codec: Codec) -> Codec:
        """Implement :class:`Observer`."""
        return _Copy(self, tensor) if len(tensor.shape) == _MAP_RANK and tensor.shape[-2:] != (1, 1) else codec

    def finished(self, operation: Operation, result: Any) -> None:
        """Implement :class:`Observer`."""

    def add(self, tensor: SavedTensor, values: Tensor) -> None:
        """Add an activation; activations of equal description are told apart by their order."""
        key = (tensor.module, tensor.producer, tensor.consumer, tensor.shape)
        self.seen[(*key, self._occurrences[key])] = (tensor, values)
        self._occurrences[key] += 1


class _Copy(NoCodec):
    """A codec that copies one activation."""

    def __init__(self, recorder: _Recorder, tensor: SavedTensor) -> None:
        self._recorder, self._tensor = recorder, tensor

    def compress(self, x: Tensor) -> RawCopy:
        """Implement :class:`Codec`."""
        kept = super().compress(x)
        self._recorder.add(self._tensor, kept.tensor)
        return kept

    def decompress(self, compressed: Packed) -> Tensor:
        """Implement :class:`Codec`."""
        return compressed.decompress()
