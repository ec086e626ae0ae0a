"""Give every sample of every saved tensor its own number of bits: ActNN's mixed precision (section 4).

Two allocations share one budget, a mean number of bits over all values of a step:

- every ``interval`` steps, :func:`~actcodec.codecs.actnn.allocation.greedy_allocation` over all samples of all tensors of the
  step before decides how many bits each tensor may spend;
- in every step, :func:`~actcodec.codecs.actnn.allocation.equal_allocation` divides a tensor's bits among its samples, by the
  ranges of this step and the gradients of earlier steps.

Tensors are recognised from step to step (:mod:`actcodec.policies.recurring`). Before the first allocation, and where no
gradient is ever seen (a custom function saves the tensor), a tensor spends the mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor
from typing import Any

import torch
from cdu_tools.errors import UserError
from cdu_tools.numbers import is_real, is_whole
from torch import Tensor

from actcodec.codecs import Codec, Packed
from actcodec.codecs.actnn.allocation import MAX_BITS, equal_allocation, greedy_allocation
from actcodec.codecs.actnn.sample_groups import ActnnSampleCodec
from actcodec.golden.floating.groups import sample_size
from actcodec.offload.allocator_cache import release_fragmented_cache
from actcodec.offload.host_swap import HostSwap
from actcodec.policies.budget.sensitivity import (
    PARAMETER_KINDS,
    GradientHistory,
    check_samples,
    parameter_kind,
    share,
    squared_norms,
)
from actcodec.policies.policy import CodecFactory, Rule, SavedTensor, check_state
from actcodec.policies.recurring import (
    RecurringPolicy,
    Slot,
    SlotCodec,
    Slots,
    Step,
    differentiable_result,
    on_gradient,
)
from actcodec.saved.operations import Operation


@dataclass(frozen=True)
class LayerBits:
    """Size and bits of one saved tensor in the last step."""

    module: str
    operation: str  #: operation that produced the tensor
    samples: int
    values: int  #: per sample
    bits: float  #: mean over the samples


@dataclass
class _Reader:
    """An operation that reads a tensor."""

    kind: str  #: kind of its parameters, see :func:`~actcodec.policies.budget.sensitivity.parameter_kind`
    history: GradientHistory
    share: float | Tensor = 1.0

    def weight(self, samples: Tensor | None, like: Tensor) -> Tensor:
        """Return the weight of a squared error in each sample, float64 (N,), on the device of ``like``, (N,)."""
        share = self.share.to(like.device) if isinstance(self.share, Tensor) else self.share
        return share * self.history.of(samples, like.numel()).to(like.device)

    def state_dict(self) -> dict[str, Any]:
        """Implement :class:`~actcodec.policies.recurring.Reader`."""
        return {"kind": self.kind, "share": self.share, "history": self.history.state_dict()}


@dataclass
class _Slot(Slot[_Reader]):
    """Knowledge about one tensor; ``values`` is per sample, with values repeated by expansion counted once."""

    spread: Tensor | None = None  #: unit variances of the samples of the last step, (N,)
    samples: Tensor | None = None  #: numbers of these samples in the data set, (N,)
    spent: int = 0  #: sum of the bits of these samples
    given: tuple[int, int] | None = None  #: allocated sum of bits, and the number of samples it was allocated for

    def sensitivity(self) -> Tensor:
        """Return the sensitivity of the last step's samples, float64 (N,); from ranges alone while no gradient is known."""
        assert self.spread is not None, "a tensor is compressed before it is weighed"
        known = [reader for reader in self.readers if reader.history.known]
        if not known:
            return self.spread
        # Readers whose first gradient has not arrived yet are left out.
        return self.spread * torch.stack([reader.weight(self.samples, self.spread) for reader in known]).sum(0)

    @property
    def kind(self) -> str | None:
        """Return the kind of the parameters whose gradient is computed from the tensor; None while no gradient is known."""
        kinds = {reader.kind for reader in self.readers if reader.history.known}
        return next((kind for kind in PARAMETER_KINDS if kind in kinds), None)


class _SlotCodec(SlotCodec[_Slot, ActnnSampleCodec]):
    """Gives every sample its own bits."""

    def __init__(self, slot: _Slot, codec: ActnnSampleCodec, step: _Step) -> None:
        super().__init__(slot, codec)
        self._step = step

    @property
    def bits(self) -> float:
        """Return the mean over the samples that the allocation intends."""
        return self._step.mean_bits(self.slot)

    def compress(self, x: Tensor) -> Packed:
        """Implement :class:`Codec`."""
        self.slot.values = sample_size(x.shape)
        form = self._codec.compress_with(x, lambda form: self._step.bits(self.slot, form.unit_variance))
        return form if self._step.swap is None else self._step.swap.out(form)


class _Step(Step[_Slot]):
    """The observer of one context: gives the tensors their bits and listens to their gradients."""

    def __init__(
        self, slots: Slots[_Slot], number: int, policy: MixedPrecisionPolicy, samples: Tensor | None, swap: HostSwap | None
    ) -> None:
        super().__init__(slots, number)
        self.swap = swap
        self._policy, self._samples = policy, samples

    def codec_of(self, tensor: SavedTensor, codec: Codec) -> Codec:
        """Implement :class:`Observer`. Codecs other than the policy's own are left as they are."""
        return _SlotCodec(self.slot(tensor), self._policy.codec, self) if codec is self._policy.codec else codec

    def mean_bits(self, slot: _Slot) -> float:
        """Return the mean bits over a tensor's samples, whose number may differ from the allocated one."""
        return self._policy.mean_bits if slot.given is None else slot.given[0] / slot.given[1]

    def bits(self, slot: _Slot, spread: Tensor) -> Tensor:
        """Return the bits of a tensor's samples, uint8 (N,)."""
        count = spread.numel()
        slot.step, slot.spread = self.number, spread
        slot.samples = self._samples if self._samples is not None and self._samples.numel() == count else None
        total = floor(self._policy.mean_bits * count) if slot.given is None else slot.given[0] * count // slot.given[1]
        slot.spent = min(max(total, count), MAX_BITS * count)
        return equal_allocation(slot.sensitivity(), slot.spent)

    def finished(self, operation: Operation, result: Any) -> None:
        """Implement :class:`Observer`. The gradient at the result will give the weight of errors of the saved tensors."""
        output = differentiable_result(result)
        for codec in operation.saved:
            if output is None or not isinstance(codec, _SlotCodec) or codec.slot.spread is None:
                continue
            slot, count = codec.slot, codec.slot.spread.numel()
            reader = self.reader(slot, lambda: _Reader(parameter_kind(operation), GradientHistory(self._policy.average)))
            reader.share = share(operation, slot.values, max(output.numel() // count, 1))
            _listen(output, reader.history, count, slot.samples)


def _listen(output: Tensor, history: GradientHistory, count: int, samples: Tensor | None) -> None:
    """Update ``history`` with the gradient at ``output`` once the backward pass computes it."""
    on_gradient(output, lambda gradient: history.update(squared_norms(gradient, count), samples))


class MixedPrecisionPolicy(RecurringPolicy[_Slot]):
    """Rules whose tensors share a budget of bits; see the module.

    Parameters
    ----------
    rules, codec_factory, keep_signs
        As in :class:`Policy`. Tensors to which a rule gives the object ``codec`` share the budget.
    codec
        Codec that quantises; its own ``bits`` are not used.
    mean_bits
        Mean over all values of these tensors, 1 to 8. Only codes are counted; Z, R and the bit widths come on top. The
        policy uses less where fractions of a bit are left over.
    interval
        Steps from one allocation to the next, 1 or more. The first allocation follows the first gradients.
    average
        Weight of older gradients in a moving average, from 0 (only the last gradient counts) to below 1.
    swap
        Moves compressed tensors to host memory.
    least_used
        When less than this part of a CUDA allocator's memory is in use, the rest is released before a step.
    """

    def __init__(
        self,
        rules: Sequence[Rule],
        codec: ActnnSampleCodec,
        mean_bits: float,
        interval: int = 20,
        average: float = 0.0,
        codec_factory: CodecFactory | None = None,
        *,
        keep_signs: bool = True,
        swap: HostSwap | None = None,
        least_used: float | None = None,
    ) -> None:
        if not is_real(mean_bits, 1, MAX_BITS):
            raise UserError(f"bits = {mean_bits!r} is not allowed: use a mean from 1 to {MAX_BITS}")
        if not is_whole(interval, 1):
            raise UserError(f"interval = {interval!r} is not allowed: use 1 or more steps")
        if not (is_real(average, 0) and average < 1):
            raise UserError(f"average = {average!r} is not allowed: use 0 to below 1")
        super().__init__(rules, _Slot, codec_factory, keep_signs=keep_signs)
        self.codec, self.mean_bits, self.interval, self.average = codec, mean_bits, interval, average
        self._swap, self._least_used = swap, least_used
        self._samples: Tensor | None = None

    def _begin(self) -> None:
        super()._begin()
        self._allocated: int | None = None

    def set_samples(self, samples: Tensor | None) -> None:
        """Implement :class:`Policy`. Gradients are then kept by sample; UserError unless these are integers (N,) from 0 up."""
        self._samples = check_samples(samples)

    def observer(self) -> _Step:
        """Implement :class:`Policy`. Allocates first when an interval has passed."""
        if self._allocated is None or self._step - self._allocated >= self.interval:
            self._allocate()
        if self._least_used is not None:
            release_fragmented_cache(self._least_used)
        self._step += 1
        return _Step(self._slots, self._step, self, self._samples, self._swap)

    def _reader(self, state: Mapping[str, Any]) -> _Reader:
        reader = _Reader(state["kind"], GradientHistory(self.average), state["share"])
        reader.history.load_state_dict(state["history"])
        return reader

    def state_dict(self) -> dict[str, Any]:
        """Implement :class:`Policy`."""
        return super().state_dict() | {"allocated": self._allocated}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Implement :class:`Policy`."""
        super().load_state_dict(state)
        check_state(state, "allocated")
        self._allocated = state["allocated"]

    @property
    def layers(self) -> list[LayerBits]:
        """Return the tensors of the last step in the order in which they first occurred."""
        return [
            LayerBits(slot.tensor.module, slot.tensor.producer, count, slot.values, slot.spent / count)
            for slot in self._last_step()
            if (count := _count(slot))
        ]

    def _last_step(self) -> list[_Slot]:
        return [slot for slot in self._slots.of_step(self._step) if slot.spread is not None]

    def _allocate(self) -> None:
        """Divide the budgets among tensors of the last step, and forget tensors that have not occurred for two intervals."""
        slots = self._last_step()
        for kind in PARAMETER_KINDS:
            if any(slot.kind == kind for slot in slots):
                self._allocated = self._step
                self._divide([slot for slot in slots if slot.kind == kind])
        self._slots.forget(self._step, self.interval)

    def _divide(self, slots: Sequence[_Slot]) -> None:
        """Divide one budget, ``mean_bits`` for each value, among some tensors."""
        sensitivity = torch.cat([slot.sensitivity().cpu() for slot in slots]).tolist()
        sizes = [slot.values for slot in slots for _ in range(_count(slot))]
        found = greedy_allocation(sensitivity, sizes, floor(self.mean_bits * sum(sizes)))
        first = 0
        for slot in slots:
            after = first + _count(slot)
            slot.given = sum(found.bits[first:after]), after - first
            first = after


def _count(slot: _Slot) -> int:
    """Return the number of samples of a tensor in the last step that saved it."""
    return 0 if slot.spread is None else slot.spread.numel()
