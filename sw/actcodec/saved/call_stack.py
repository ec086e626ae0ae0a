"""What the call stack tells and nothing else does; the one place that reads it.

- In which module's ``forward`` a tensor is saved: hooks on modules would change the model, and disturb other threads.
- Whether it is a checkpoint that saves: its custom function is no torch function.
- Which object calls.
- Whether torch.compile compiled what runs: it does so too where the compiler stands aside.
- Inside which of torch's own functions another one is called: a :class:`~torch.overrides.TorchFunctionMode` sees functions that
  announce themselves, which some of those that are written in Python do for subclasses of Tensor only.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from types import CodeType, FrameType, FunctionType
from typing import TypeVar

import torch
import torch.utils.checkpoint
from torch import nn
from torch.overrides import get_overridable_functions

_Owner = TypeVar("_Owner")
_TORCH = f"{torch.__name__}."
#: Their ``forward`` is what a user may write: a composition of functions, each of which counts for itself.
_MODULES = nn.modules.__name__
#: Modules whose functions stand between what saves a tensor and the pack hook.
_BETWEEN = (__package__, "actcodec.training", torch.autograd.function.__name__, "torch._dynamo")
#: What torch.compile puts in the place of a function.
_COMPILED = ("torch._dynamo.eval_frame", "_TorchDynamoContext.__call__.")


def running_modules() -> Iterator[nn.Module]:
    """The modules whose forward is on the call stack, the innermost first."""
    call = nn.Module._call_impl.__code__
    for frame in _frames():
        if frame.f_code is call:
            yield frame.f_locals["self"]


def checkpoint_saves() -> bool:
    """Whether it is ``torch.utils.checkpoint`` that saves: its own custom function is the innermost one on the call stack."""
    saving = next((frame for frame in _frames() if not _module_of(frame).startswith(_BETWEEN)), None)
    return saving is not None and _module_of(saving) == torch.utils.checkpoint.__name__


def torch_function(caller: str) -> str | None:
    """Name of the outermost of torch's functions that the stack goes through below module ``caller``, without a break.

    ``svd_lowrank`` is one for the products that it takes. None where the user, or a module's ``forward``, called: what is
    written in C++ is no frame.
    """
    functions, found = _written_in_python(), None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:  # a loop of its own, as every call of a torch function waits for it
        module = _module_of(frame)
        if module != caller:
            if not module.startswith(_TORCH) or module.startswith(_MODULES):
                break
            found = functions.get(frame.f_code, found)
        frame = frame.f_back
    return found


def calling(kind: type[_Owner]) -> _Owner | None:
    """The innermost object of a kind one of whose methods is on the call stack: who calls a callback that is not told."""
    owners = (frame.f_locals.get("self") for frame in _frames())
    return next((owner for owner in owners if isinstance(owner, kind)), None)


def compiled_code_runs() -> bool:
    """Whether what runs was called as something that ``torch.compile`` compiled."""
    module, name = _COMPILED
    return any(frame.f_code.co_qualname.startswith(name) and _module_of(frame) == module for frame in _frames())


def _frames() -> Iterator[FrameType]:
    """From the innermost one outwards."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _module_of(frame: FrameType) -> str:
    """Name of the Python module whose code a frame runs."""
    return str(frame.f_globals.get("__name__"))


@cache
def _written_in_python() -> dict[CodeType, str]:
    """Names of torch's functions by their code; those that a wrapper shares its code with announce themselves."""
    python = (f for functions in get_overridable_functions().values() for f in functions if isinstance(f, FunctionType))
    return {f.__code__: f.__name__ for f in python if f.__name__ == f.__code__.co_name}
