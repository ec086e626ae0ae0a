"""Give every saved tensor the error that the gradients of the layers reading it allow: AC-GC.

Every ``interval`` steps the layers state their demands (:mod:`actcodec.policies.bounds.bound_listener`); the mean of the last
``window`` demands sets the error until the next time. Layers of one kind that read one tensor share the sum of their variances,
as in the paper for convolutions; among layers of several kinds the strictest bound counts.

Until every layer that reads a tensor has stated a demand, and if one of them has no known bound, the codec's own default holds,
about 8 bits (:meth:`ErrorBoundedCodec.compress`), or a smaller error if a known bound demands it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from cdu_tools.errors import UserError
from cdu_tools.numbers import is_whole
from torch import Tensor

from actcodec.codecs import Codec, Packed
from actcodec.codecs.acgc.error_bounded import ErrorBoundedCodec, default_error
from actcodec.codecs.codec import check_finite
from actcodec.policies.bounds.bound_listener import BoundOptions, bound_of
from actcodec.policies.bounds.scalar_bounds import Demand, largest_error, mean_demand, together
from actcodec.policies.policy import CodecFactory, Rule, SavedTensor
from actcodec.policies.recurring import RecurringPolicy, Slot, SlotCodec, Slots, Step, differentiable_result
from actcodec.saved.operations import Operation


@dataclass(frozen=True)
class BoundedLayer:
    """Size, bits and allowed error of one saved tensor in the last step."""

    module: str
    operation: str  #: operation that produced the tensor
    values: int
    bits: float  #: per value, including everything kept beside the codes
    error: float | None  #: RMS error that the gradients allow, over all channels; None before the first demand
    bounded: bool  #: True when every layer that reads the tensor has stated a demand, so that this error applies


@dataclass
class _Reader:
    """A layer that reads a tensor."""

    kind: str | None  #: kind of its bound; None if it has none
    demands: deque[Demand]

    def learn(self, demand: Demand) -> None:
        """Store one demand on the CPU, where demands from a checkpoint are too. Demands that are not finite are ignored."""
        if demand.finite:
            self.demands.append(demand.cpu())

    def state_dict(self) -> dict[str, Any]:
        """Implement :class:`~actcodec.policies.recurring.Reader`."""
        return {"kind": self.kind, "demands": [dict(vars(demand)) for demand in self.demands]}


@dataclass
class BoundSlot(Slot[_Reader]):
    """Knowledge about one tensor: the demands of its layers, and the bytes it took."""

    kept: int = 0  #: bytes

    @property
    def complete(self) -> bool:
        """Return whether every layer that reads the tensor has stated a demand."""
        return bool(self.readers) and all(reader.demands for reader in self.readers)

    def error(self, variance_growth: float) -> Tensor | None:
        """Return the largest allowed error, float32 (1,) or (C,); None before the first demand."""
        kinds: dict[str | None, list[Demand]] = {}
        for reader in self.readers:
            if reader.demands:
                kinds.setdefault(reader.kind, []).append(mean_demand(reader.demands))
        errors = [largest_error(together(demands), variance_growth) for demands in kinds.values()]
        if not errors:
            return None
        least = errors[0]
        for error in errors[1:]:
            least = torch.minimum(least, error)
        return least


class _SlotCodec(SlotCodec[BoundSlot, ErrorBoundedCodec]):
    """Compress with the error that the layers allow."""

    def __init__(self, slot: BoundSlot, codec: ErrorBoundedCodec, step: int, variance_growth: float) -> None:
        super().__init__(slot, codec)
        self._step, self._variance_growth = step, variance_growth

    def compress(self, x: Tensor) -> Packed:
        """Implement :class:`Codec`."""
        packed = self._compressed(x)
        self.slot.step, self.slot.values, self.slot.kept = self._step, prod(x.shape), packed.nbytes
        return packed

    def _compressed(self, x: Tensor) -> Packed:
        error = self.slot.error(self._variance_growth)
        if error is None:
            return self._codec.compress(x)
        # Values repeated by expansion along the channels are kept once.
        error = (error if len(error) in (1, x.shape[1]) else error.amin().view(1)).to(x.device)
        if not self.slot.complete:
            check_finite(x)
            error = torch.minimum(error, default_error(x))
        return self._codec.compress_within(x, error)


class _Step(Step[BoundSlot]):
    """The observer of one context; in one step of each interval it listens to the layers that read the tensors."""

    def __init__(self, slots: Slots[BoundSlot], number: int, policy: ErrorBoundPolicy, *, learns: bool) -> None:
        super().__init__(slots, number)
        self._policy, self._learns = policy, learns

    def codec_of(self, tensor: SavedTensor, codec: Codec) -> Codec:
        """Implement :class:`Observer`. Codecs without an error option are left as they are."""
        if not isinstance(codec, self._policy.bounded):
            return codec
        return self._policy.slot_codec(self.slot(tensor), codec, self.number)

    def finished(self, operation: Operation, result: Any) -> None:
        """Implement :class:`Observer`."""
        if not self._learns:
            return
        output = differentiable_result(result)
        for codec, source in zip(operation.saved, operation.sources, strict=True):
            if not isinstance(codec, SlotCodec):
                continue
            slot, options = codec.slot, self._policy.options
            values = prod(slot.tensor.shape)
            bound = None if output is None else bound_of(operation, output, source, values, options)
            kind = None if bound is None else bound.kind
            reader = self.reader(slot, lambda: _Reader(None, deque(maxlen=self._policy.window)))
            if reader.kind != kind:
                reader.demands.clear()
                reader.kind = kind
            if bound is not None:
                bound.listen(reader.learn)


class ErrorBoundPolicy(RecurringPolicy[BoundSlot]):
    """Rules whose tensors get as large an error as the gradients allow; see the module.

    Parameters
    ----------
    rules, codec_factory
        As in :class:`Policy`. Every codec that is an :class:`ErrorBoundedCodec` takes part. ReLU keeps its signs beside the
        values, because its gradient must be exact.
    options
        Strictness of the bounds. ``independent`` requires codecs with independent errors.
    interval
        Steps from one measurement to the next, 1 or more (paper: 100); the first step measures.
    window
        Number of measurements that are averaged, 1 or more (paper: 10).
    make
        Makes the slot of a tensor that occurs for the first time.
    """

    #: Codecs that take part; others are left as they are.
    bounded: type[Any] = ErrorBoundedCodec

    def __init__(
        self,
        rules: Sequence[Rule],
        options: BoundOptions | None = None,
        interval: int = 100,
        window: int = 10,
        codec_factory: CodecFactory | None = None,
        make: Callable[[SavedTensor], BoundSlot] = BoundSlot,
    ) -> None:
        for name, value, what in (("interval", interval, "steps"), ("window", window, "times")):
            if not is_whole(value, 1):
                raise UserError(f"{name} = {value!r} is not allowed: use 1 or more {what}")
        super().__init__(rules, make, codec_factory, keep_signs=True)
        self.options, self.interval, self.window = options or BoundOptions(), interval, window
        bounded = [codec for codec in self._codecs.values() if isinstance(codec, ErrorBoundedCodec)]
        for codec in bounded:
            if self.options.independent and not codec.independent_errors:
                raise UserError(f"the errors of codec {codec.name!r} are not independent: use independent=False")

    def slot_codec(self, slot: BoundSlot, codec: Codec, step: int) -> SlotCodec[Any, Any]:
        """Return the codec of a tensor in one step, numbered from 1; ``codec`` is one of :attr:`bounded`."""
        assert isinstance(codec, ErrorBoundedCodec), "others stay as they are"
        return _SlotCodec(slot, codec, step, self.options.variance_growth)

    def observer(self) -> _Step:
        """Implement :class:`Policy`."""
        learns = self._step % self.interval == 0
        if learns:
            self._slots.forget(self._step, self.interval)
        self._step += 1
        return _Step(self._slots, self._step, self, learns=learns)

    def _reader(self, state: Mapping[str, Any]) -> _Reader:
        demands = (Demand(**one).cpu() for one in state["demands"])
        return _Reader(state["kind"], deque(demands, maxlen=self.window))

    @property
    def layers(self) -> Sequence[BoundedLayer]:
        """Return the tensors of the last step in the order in which they first occurred."""
        return [self._layer(slot) for slot in self._slots.of_step(self._step)]

    def _layer(self, slot: BoundSlot) -> BoundedLayer:
        error = slot.error(self.options.variance_growth)
        rms = None if error is None else float(error.double().square().mean().sqrt())
        return BoundedLayer(
            slot.tensor.module, slot.tensor.producer, slot.values, 8 * slot.kept / slot.values, rms, slot.complete
        )
