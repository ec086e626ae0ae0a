"""Tensors that every step saves again, as policies that learn from one step for the next see them.

A tensor is known again by module, operations, shape of a sample, number format, and how often these have occurred in the step.
Operations that read it are known again by their order. What an error of it means is learnt from the gradients that come back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

import torch
from torch import Tensor

from actcodec.policies.policy import SavedTensor
from actcodec.saved.operations import tensors_in

#: Intervals after which a tensor that no longer occurs is forgotten.
_FORGET_AFTER = 2
Key = tuple[object, ...]


class Recurring(Protocol):
    """What is known of a tensor."""

    step: int  #: the last one that saved it


_R = TypeVar("_R", bound=Recurring)


class RecurringTensors(Generic[_R]):
    """What is known of the tensors of a model, in the order in which they first occurred."""

    def __init__(self) -> None:
        self._known: dict[Key, _R] = {}

    def get(self, key: Key, make: Callable[[], _R]) -> _R:
        """What is known of a tensor, made when it occurs for the first time."""
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = make()
        return found

    def of_step(self, step: int) -> list[_R]:
        """Those that were last saved in ``step``."""
        return [tensor for tensor in self._known.values() if tensor.step == step]

    def forget(self, step: int, interval: int) -> None:
        """Forget those that have not occurred in the last two intervals before ``step``."""
        oldest = step - _FORGET_AFTER * interval
        self._known = {key: tensor for key, tensor in self._known.items() if tensor.step > oldest}


class StepNumbers:
    """Numbers the tensors of one step, and the operations that read each of them."""

    def __init__(self) -> None:
        self._occurrences: Counter[Key] = Counter()
        self._readers: Counter[int] = Counter()

    def key(self, tensor: SavedTensor) -> Key:
        """The key of the next tensor."""
        key: Key = (tensor.module, tensor.producer, tensor.consumer, tensor.shape[1:], tensor.dtype)
        occurrence = self._occurrences[key]
        self._occurrences[key] += 1
        return (*key, occurrence)

    def reader(self, recurring: Recurring) -> int:
        """The number of the next operation that reads a tensor, from 0."""
        number = self._readers[id(recurring)]
        self._readers[id(recurring)] += 1
        return number


def differentiable_result(result: Any) -> Tensor | None:
    """The first tensor of an operation's result through which a gradient comes back."""
    return next((tensor for tensor in tensors_in((result,)) if tensor.grad_fn is not None), None)


def on_gradient(output: Tensor, learn: Callable[[Tensor], None]) -> None:
    """Call ``learn`` with the gradient at a tensor that has a history. What waits for it holds no tensor of the graph."""
    node, number = output.grad_fn, output.output_nr
    assert node is not None, "only results with a history are listened to"

    def prehook(gradients: Sequence[Tensor | None]) -> None:
        gradient = gradients[number]
        if gradient is not None:
            with torch.no_grad():
                learn(gradient)

    node.register_prehook(prehook)
