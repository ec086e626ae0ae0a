"""Count what compression adds to a training step: operations that a GPU would launch, and values that the host would wait for.

A step is run without and with a policy under a dispatch mode; the difference is due to the policy. It counts without a GPU:

- a *launch* is an operation of torch that is neither a view nor an allocation; kernels of Triton, in its interpreter, count as
  one each. Compiled kernels of backend ``native`` run on the CPU alone and do not count;
- a *question* asks for a value on the host: ``item()``, ``tolist()``, ``cpu()``, ``numpy()``, ``equal``, and operations whose
  result has a size that depends on values (``nonzero``, ``masked_select``, boolean indexing, ``unique``). On a GPU the host
  would wait for all that was launched before. An :class:`~actcodec.backends.triton.answers.Answer` that is read after further
  launches is none: the host waits for what was launched before it was left, and the device has work meanwhile.

Backward has to run on the thread that counts, as it does for tensors on the CPU.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

import actcodec
from actcodec.backends.triton.answers import Answer
from actcodec.policies.policy import Policy
from actcodec.training.activation_compression import ActivationCompression
from actcodec.training.compression import Limits
from actcodec.training.selection import ModuleSelection

#: Operations that launch nothing.
_FREE = {
    *("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"),
    *("set_", "resize_", "lift_fresh", "_local_scalar_dense", "_unsafe_view"),
}
#: Operations whose result, or its size, the host has to know.
_ASKING = {
    *("_local_scalar_dense", "equal", "nonzero", "nonzero_numpy", "argwhere", "masked_select"),
    *("_unique", "_unique2", "unique_dim", "unique_consecutive"),
}
_INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_"}
_MASKS = (torch.bool, torch.uint8)
#: Methods that copy values to the host without an operation that a mode sees on the CPU.
_METHODS = ("tolist", "cpu", "numpy")
_ROOT = Path(actcodec.__file__).parent
#: Package whose code is said to be the place of a question, and the module that counts.
_PACKAGE, _HERE = f"{_ROOT.name}.", __name__


class QuestionError(RuntimeError):
    """Raised when the host asks for a value where that is forbidden."""


@dataclass
class Counted:
    """Launches and questions of a step, or of the difference between two."""

    launches: int = 0
    questions: Counter[str] = field(default_factory=Counter)  #: number of questions by place, ``module:line``

    def less(self, other: Counted) -> Counted:
        """Return what is in this step and not in another one."""
        return Counted(self.launches - other.launches, self.questions - other.questions)


class LaunchCounter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Count operations of this thread while entered.

    Parameters
    ----------
    forbid
        True to raise QuestionError, which names the place, for the first question that code of this package asks.
    """

    def __init__(self, forbid: bool = False) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.counted = Counted()
        self._forbid = forbid
        self._opened = ExitStack()
        self._left: MutableMapping[Answer, int] = WeakKeyDictionary()  # launches before each answer was left

    def __enter__(self) -> LaunchCounter:
        """Start to count."""
        with ExitStack() as stack:
            for name in _METHODS:
                stack.enter_context(patch.object(Tensor, name, self._asking(name, getattr(Tensor, name))))
            stack.enter_context(patch.object(Answer, "read", self._reading(Answer.read)))
            stack.enter_context(patch.object(Answer, "__init__", self._leaving(Answer.__init__)))
            stack.enter_context(_interpreted(self))
            super().__enter__()  # type: ignore[no-untyped-call]
            self._opened = stack.pop_all()
        return self

    def __exit__(self, *raised: Any) -> None:
        """Stop to count."""
        super().__exit__(*raised)  # type: ignore[no-untyped-call]
        self._opened.close()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Count one operation, and run it."""
        name = func._schema.name.rpartition("::")[2]
        if name in _ASKING or (name in _INDEXING and any(isinstance(i, Tensor) and i.dtype in _MASKS for i in args[1])):
            self._asked(name)
        self.counted.launches += not (func.is_view or name in _FREE)
        return func(*args, **(kwargs or {}))

    def _asking(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def asking(x: Tensor, *args: Any, **kwargs: Any) -> Any:
            self._asked(name)
            return method(x, *args, **kwargs)

        return asking

    def _leaving(self, leave: Callable[[Answer, Tensor], None]) -> Callable[[Answer, Tensor], None]:
        def leaving(answer: Answer, numbers: Tensor) -> None:
            leave(answer, numbers)
            self._left[answer] = self.counted.launches

        return leaving

    def _reading(self, read: Callable[[Answer], list[Any]]) -> Callable[[Answer], list[Any]]:
        def reading(answer: Answer) -> list[Any]:
            before = self.counted.questions.copy()
            late = self.counted.launches > self._left.get(answer, 0)
            forbid, self._forbid = self._forbid, self._forbid and not late
            try:
                return read(answer)
            finally:
                self._forbid = forbid
                if late:
                    self.counted.questions = before

        return reading

    def _asked(self, what: str) -> None:
        place = _place()
        self.counted.questions[place] += 1
        if self._forbid and place:
            raise QuestionError(f"{place} asks for a value on the host ({what})")


@contextmanager
def _interpreted(counter: LaunchCounter) -> Iterator[None]:
    """Count a kernel that Triton's interpreter runs as one launch, and none of the operations in it."""
    interpreter = sys.modules.get("triton.runtime.interpreter")
    if interpreter is None:
        yield
        return
    run = interpreter.GridExecutor.__call__

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        counter.counted.launches += 1
        with _disable_current_modes():
            return run(self, *args, **kwargs)

    with patch.object(interpreter.GridExecutor, "__call__", counted):
        yield


def _place() -> str:
    """Return module and line of the innermost code of this package on the call stack; empty if there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith(_PACKAGE) and module != _HERE:
            return f"{module.removeprefix(_PACKAGE)}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return ""


@dataclass(frozen=True)
class StepCount:
    """Launches and questions that a policy adds to a step."""

    coded: int  #: tensors that a codec compresses
    forward: Counted
    backward: Counted

    @property
    def launches(self) -> float:
        """Return the launches for each coded tensor."""
        return (self.forward.launches + self.backward.launches) / max(1, self.coded)

    @property
    def questions(self) -> float:
        """Return the questions for each coded tensor."""
        return (self.forward.questions + self.backward.questions).total() / max(1, self.coded)


def step_count(model: nn.Module, policy: Policy, loss: Callable[[], Tensor], *, first_steps: int = 1) -> StepCount:
    """Count what ``policy`` adds to a step of ``model``.

    Parameters
    ----------
    model
        Network on the CPU.
    policy
        Chooses codecs.
    loss
        Computes the loss of a batch, always of the same one, by a forward pass of the model.
    first_steps
        Number of steps with the policy before the one that counts.
    """
    plain = _counted(loss, None)
    compression = ActivationCompression(model, policy, Limits(ModuleSelection(model)))
    for _ in range(first_steps):
        _counted(loss, compression)
    forward, backward = _counted(loss, compression)
    assert compression.statistics is not None
    coded = sum(record.choice is not None for record in compression.statistics.records)
    return StepCount(coded, forward.less(plain[0]), backward.less(plain[1]))


def _counted(loss: Callable[[], Tensor], compression: ActivationCompression | None) -> tuple[Counted, Counted]:
    with LaunchCounter() as forward:
        if compression is None:
            value = loss()
        else:
            with compression:
                value = loss()
    with LaunchCounter() as backward:
        torch.autograd.backward(value)
    return forward.counted, backward.counted
