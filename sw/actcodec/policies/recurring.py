"""Recognise tensors that every step saves again, for policies that learn from one step for the next.

A tensor is recognised by its module, operations, sample shape and dtype, and by the number of earlier tensors of the step that
agree in all of these. Operations that read a tensor are recognised by their order. Gradients of the backward pass show what an
error of the tensor would do.

A policy of this kind defines what it knows of a tensor (a :class:`Slot`) and of an operation that reads it, how the codec of a
slot compresses (:class:`SlotCodec`), and what it learns from an operation that ends (:class:`Step`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Generic, Protocol, TypeVar

import torch
from torch import Tensor

from actcodec.codecs import Codec, Packed
from actcodec.policies.policy import CodecFactory, Policy, Rule, SavedTensor, check_state
from actcodec.saved.operations import Operation, tensors_in

#: A tensor that has not occurred for this number of intervals is forgotten.
_FORGET_AFTER = 2
_Key = tuple[object, ...]


class Reader(Protocol):
    """Knowledge about one operation that reads a tensor."""

    def state_dict(self) -> dict[str, Any]:
        """Return this knowledge as plain values and tensors."""


_Reader = TypeVar("_Reader", bound=Reader)
_Slot = TypeVar("_Slot", bound="Slot[Any]")
_Coder = TypeVar("_Coder", bound=Codec)


@dataclass
class Slot(Generic[_Reader]):
    """Knowledge about one tensor that every step saves again."""

    tensor: SavedTensor
    readers: list[_Reader] = field(default_factory=list)  #: operations that read the tensor, in order
    step: int = 0  #: the last step that saved the tensor
    values: int = 0

    def state_dict(self) -> dict[str, Any]:
        """Return all knowledge as plain values and tensors."""
        known = {one.name: getattr(self, one.name) for one in fields(self)}
        return known | {"tensor": dict(vars(self.tensor)), "readers": [reader.state_dict() for reader in self.readers]}

    def load_state_dict(self, state: Mapping[str, Any], reader_of: Callable[[Mapping[str, Any]], _Reader]) -> None:
        """Restore the knowledge that :meth:`state_dict` returned; ``reader_of`` makes a reader from its own state."""
        for name, value in state.items():
            setattr(self, name, value)
        self.tensor, self.readers = SavedTensor(**state["tensor"]), [reader_of(one) for one in state["readers"]]


class SlotCodec(Codec, Generic[_Slot, _Coder]):
    """The codec of one tensor in one step: compresses by what its slot knows, and records the outcome in the slot.

    Parameters
    ----------
    slot
        Slot of the tensor.
    codec
        Codec that compresses the values.
    """

    def __init__(self, slot: _Slot, codec: _Coder) -> None:
        self.name, self.centred = codec.name, codec.centred
        self.slot, self._codec = slot, codec

    @abstractmethod
    def compress(self, x: Tensor) -> Packed:
        """Implement :class:`Codec`."""

    def decompress(self, compressed: Packed) -> Tensor:
        """Implement :class:`Codec`."""
        return self._codec.decompress(compressed)


class Slots(Generic[_Slot]):
    """The slots of a model's tensors, in the order in which the tensors first occurred."""

    def __init__(self, make: Callable[[SavedTensor], _Slot]) -> None:
        self._make = make
        self._known: dict[_Key, _Slot] = {}

    def get(self, key: _Key, tensor: SavedTensor) -> _Slot:
        """Return the slot of a tensor, a new one when the tensor occurs for the first time."""
        slot = self._known.get(key)
        if slot is None:
            slot = self._known[key] = self._make(tensor)
        slot.tensor = tensor
        return slot

    def of_step(self, step: int) -> list[_Slot]:
        """Return the slots of the tensors that ``step`` saved."""
        return [slot for slot in self._known.values() if slot.step == step]

    def forget(self, step: int, interval: int) -> None:
        """Forget the tensors that have not occurred in the last two intervals before ``step``."""
        oldest = step - _FORGET_AFTER * interval
        self._known = {key: slot for key, slot in self._known.items() if slot.step > oldest}

    def state_dict(self) -> list[tuple[_Key, dict[str, Any]]]:
        """Return the pairs of key and state of all slots, in order."""
        return [(key, slot.state_dict()) for key, slot in self._known.items()]

    def load_state_dict(
        self, state: Sequence[tuple[_Key, Mapping[str, Any]]], reader_of: Callable[[Mapping[str, Any]], Any]
    ) -> None:
        """Replace all slots by those of a saved state."""
        self._known = {}
        for key, one in state:
            self.get(key, SavedTensor(**one["tensor"])).load_state_dict(one, reader_of)


class Step(ABC, Generic[_Slot]):
    """The observer of one context: numbers the tensors of one step, and the operations that read each of them.

    Parameters
    ----------
    slots
        Slots of the policy.
    number
        Number of the step, from 1.
    """

    def __init__(self, slots: Slots[_Slot], number: int) -> None:
        self.number = number
        self._slots = slots
        self._occurrences: Counter[_Key] = Counter()
        self._reading: Counter[int] = Counter()

    @abstractmethod
    def codec_of(self, tensor: SavedTensor, codec: Codec) -> Codec:
        """Implement :class:`Observer`."""

    @abstractmethod
    def finished(self, operation: Operation, result: Any) -> None:
        """Implement :class:`Observer`."""

    def slot(self, tensor: SavedTensor) -> _Slot:
        """Return the slot of the next tensor of this step."""
        key: _Key = (tensor.module, tensor.producer, tensor.consumer, tensor.shape[1:], tensor.dtype)
        occurrence = self._occurrences[key]
        self._occurrences[key] += 1
        return self._slots.get((*key, occurrence), tensor)

    def reader(self, slot: Slot[_Reader], make: Callable[[], _Reader]) -> _Reader:
        """Return the next operation that reads a tensor, a new one when there has been none at this position."""
        place = self._reading[id(slot)]
        self._reading[id(slot)] += 1
        if place == len(slot.readers):
            slot.readers.append(make())
        return slot.readers[place]


class RecurringPolicy(Policy, ABC, Generic[_Slot]):
    """A policy that learns from one step for the next. One object serves one model.

    Parameters
    ----------
    rules, codec_factory
        As in :class:`Policy`.
    make
        Makes the slot of a tensor that occurs for the first time.
    keep_signs
        As in :class:`Policy`.
    """

    def __init__(
        self,
        rules: Sequence[Rule],
        make: Callable[[SavedTensor], _Slot],
        codec_factory: CodecFactory | None,
        *,
        keep_signs: bool,
    ) -> None:
        super().__init__(rules, codec_factory=codec_factory, keep_signs=keep_signs)
        self._make = make
        self._begin()

    def _begin(self) -> None:
        """Forget everything."""
        self._slots = Slots(self._make)
        self._step = 0

    def restart(self, seed: int) -> None:
        """Implement :class:`Policy`. Everything learnt is forgotten."""
        super().restart(seed)
        self._begin()

    @abstractmethod
    def _reader(self, state: Mapping[str, Any]) -> Any:
        """Return a reader with a saved state."""

    def state_dict(self) -> dict[str, Any]:
        """Implement :class:`Policy`."""
        return super().state_dict() | {"step": self._step, "tensors": self._slots.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Implement :class:`Policy`."""
        super().load_state_dict(state)
        check_state(state, "step", "tensors")
        self._step = state["step"]
        self._slots.load_state_dict(state["tensors"], self._reader)


def differentiable_result(result: Any) -> Tensor | None:
    """Return the first tensor of an operation's result that has a gradient function; None if there is none."""
    return next((tensor for tensor in tensors_in((result,)) if tensor.grad_fn is not None), None)


def on_gradient(output: Tensor, learn: Callable[[Tensor], None]) -> None:
    """Call ``learn`` with the gradient at a tensor that has a gradient function. The hook holds no tensor of the graph."""
    node, number = output.grad_fn, output.output_nr
    assert node is not None, "only results with a history are listened to"

    def prehook(gradients: Sequence[Tensor | None]) -> None:
        gradient = gradients[number]
        if gradient is not None:
            with torch.no_grad():
                learn(gradient)

    node.register_prehook(prehook)
