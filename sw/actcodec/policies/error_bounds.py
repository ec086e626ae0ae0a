"""AC-GC: a policy that gives every saved tensor the error that the gradients of the layers that read it allow.

Every ``interval`` steps the layers say what they ask (:mod:`actcodec.policies.bound_listener`); the mean of the last ``window``
times says how large an error may be until they speak again. Layers of one kind that read one tensor share the sum of their
variances, as the paper has it for convolutions; of several kinds the strictest counts.

Before a layer has spoken, and for tensors that something reads of which no bound is known, the codec's own default holds,
about 8 bits (:meth:`ErrorBoundedCodec.compress`), or less where a bound that is known asks for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from cdu_tools.errors import UserError
from torch import Tensor

from actcodec.codecs import Codec, Packed
from actcodec.codecs.acgc.error_bounded import ErrorBoundedCodec, default_error
from actcodec.codecs.codec import check_finite
from actcodec.policies.bound_listener import BoundOptions, bound_of
from actcodec.policies.bounds import Demand, largest_error, mean_demand, together
from actcodec.policies.policy import CodecFactory, Rule, SavedTensor
from actcodec.policies.recurring import RecurringPolicy, Slot, SlotCodec, Slots, Step, differentiable_result
from actcodec.saved.operations import Operation


@dataclass(frozen=True)
class BoundedLayer:
    """What one saved tensor had in the last step."""

    module: str
    operation: str  #: that made it
    values: int
    bits: float  #: per value, everything that is kept included
    error: float | None  #: RMS that the gradients allow, over all channels; None while no layer has spoken
    bounded: bool  #: whether everything that reads it has spoken, so that this error is what it has


@dataclass
class _Reader:
    """A layer that reads a tensor."""

    kind: str | None  #: of its bound; None where there is none
    demands: deque[Demand]

    def learn(self, demand: Demand) -> None:
        """Remember what it asks this time: on the CPU, as what is loaded from a checkpoint is."""
        if demand.finite:
            self.demands.append(demand.cpu())

    def state_dict(self) -> dict[str, Any]:
        """See :class:`~actcodec.policies.recurring.Reader`."""
        return {"kind": self.kind, "demands": [dict(vars(demand)) for demand in self.demands]}


@dataclass
class BoundSlot(Slot[_Reader]):
    """What is known of a tensor: what its layers ask, and what it took."""

    kept: int = 0  #: bytes

    @property
    def complete(self) -> bool:
        """Whether every layer that reads it has spoken."""
        return bool(self.readers) and all(reader.demands for reader in self.readers)

    def error(self, variance_growth: float) -> Tensor | None:
        """The largest error that is allowed, float32 (1,) or (C,); None while no layer has spoken."""
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
    """Compresses with the error that the layers allow."""

    def __init__(self, slot: BoundSlot, codec: ErrorBoundedCodec, step: int, variance_growth: float) -> None:
        super().__init__(slot, codec)
        self._step, self._variance_growth = step, variance_growth

    def compress(self, x: Tensor) -> Packed:
        """See :class:`Codec`."""
        packed = self._compressed(x)
        self.slot.step, self.slot.values, self.slot.kept = self._step, prod(x.shape), packed.nbytes
        return packed

    def _compressed(self, x: Tensor) -> Packed:
        error = self.slot.error(self._variance_growth)
        if error is None:
            return self._codec.compress(x)
        # Values that are repeated by expansion along the channels are kept once.
        error = (error if len(error) in (1, x.shape[1]) else error.amin().view(1)).to(x.device)
        if not self.slot.complete:
            check_finite(x)
            error = torch.minimum(error, default_error(x))
        return self._codec.compress_within(x, error)


class _Step(Step[BoundSlot]):
    """One context; in one step of an interval it listens to what reads the tensors."""

    def __init__(self, slots: Slots[BoundSlot], number: int, policy: ErrorBoundPolicy, *, learns: bool) -> None:
        super().__init__(slots, number)
        self._policy, self._learns = policy, learns

    def codec_of(self, tensor: SavedTensor, codec: Codec) -> Codec:
        """See Observer: codecs that know no error stay as they are."""
        if not isinstance(codec, self._policy.bounded):
            return codec
        return self._policy.slot_codec(self.slot(tensor), codec, self.number)

    def finished(self, operation: Operation, result: Any) -> None:
        """See Observer."""
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
        As for :class:`Policy`. Every codec that is an :class:`ErrorBoundedCodec` takes part. ReLU keeps its signs beside
        values, since its gradient is to be exact.
    options
        How strict the bounds are. ``independent`` needs codecs whose errors are.
    interval
        Steps from one listening to the next, 1 or more (paper: 100); the first step listens.
    window
        How many of the last ones count, 1 or more (paper: 10).
    make
        What is known of a tensor that occurs for the first time.
    """

    #: The codecs that take part; others stay as they are.
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
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise UserError(f"{name} = {value!r} is not allowed: use 1 or more {what}")
        super().__init__(rules, make, codec_factory, keep_signs=True)
        self.options, self.interval, self.window = options or BoundOptions(), interval, window
        bounded = [codec for codec in self._codecs.values() if isinstance(codec, ErrorBoundedCodec)]
        for codec in bounded:
            if self.options.independent and not codec.independent_errors:
                raise UserError(f"the errors of codec {codec.name!r} are not independent: use independent=False")

    def slot_codec(self, slot: BoundSlot, codec: Codec, step: int) -> SlotCodec[Any, Any]:
        """What compresses a tensor in a step, numbered from 1, by what is known of it; ``codec`` is one of :attr:`bounded`."""
        assert isinstance(codec, ErrorBoundedCodec), "others stay as they are"
        return _SlotCodec(slot, codec, step, self.options.variance_growth)

    def observer(self) -> _Step:
        """See :class:`Policy`."""
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
        """The tensors of the last step in the order of the first one."""
        return [self._layer(slot) for slot in self._slots.of_step(self._step)]

    def _layer(self, slot: BoundSlot) -> BoundedLayer:
        error = slot.error(self.options.variance_growth)
        rms = None if error is None else float(error.double().square().mean().sqrt())
        return BoundedLayer(
            slot.tensor.module, slot.tensor.producer, slot.values, 8 * slot.kept / slot.values, rms, slot.complete
        )
