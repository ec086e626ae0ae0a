"""Read from the call stack the facts that nothing else tells; no other module reads the stack.

- The module in whose ``forward`` a tensor is saved: hooks on modules would change the model, and disturb other threads.
- Whether a checkpoint, or a custom autograd function, saves: neither is a torch function.
- The calling object.
- Whether backward computes a part of the model again.
- Whether torch.compile compiled the running code, also where the compiler is set aside.
- The torch function inside which another one is called: a :class:`~torch.overrides.TorchFunctionMode` sees functions that
  announce themselves, which some functions written in Python do for subclasses of Tensor only.
"""

from __future__ import annotations

import sys
from collections.abc import Container, Iterator
from functools import cache
from types import CodeType, FrameType, FunctionType
from typing import TypeVar

import torch
import torch.utils.checkpoint
from torch import nn
from torch.autograd.function import BackwardCFunction
from torch.overrides import get_overridable_functions

_Owner = TypeVar("_Owner")
_TORCH = f"{torch.__name__}."
#: Modules whose ``forward`` could be written by a user: a composition of functions, each of which counts for itself.
_MODULES = nn.modules.__name__
#: Modules with functions between the code that saves a tensor and the pack hook.
_BETWEEN = (__package__, "actcodec.training", torch.autograd.function.__name__, "torch._dynamo")
#: Modules of the functions that run when torch has called the pack hook.
_SAVING = frozenset((f"{__package__}.untraced", "actcodec.training.hooks", "actcodec.training.session"))
#: Methods of torch that call a custom function, and its ``backward``.
_APPLY, _BACKWARD = torch.autograd.Function.apply.__code__, BackwardCFunction.apply.__code__
#: Module of the compiler, and the method that makes the functions that stand in the place of compiled ones.
_COMPILER, _COMPILED = "torch._dynamo.eval_frame", "_TorchDynamoContext.__call__."


def running_modules(known: Container[int]) -> list[nn.Module]:
    """Return the modules whose forward runs, the innermost first, up to the first whose ``id`` is ``known``; else all."""
    call, modules = nn.Module._call_impl.__code__, []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:  # a plain loop, because every saved tensor waits for it
        if frame.f_code is call:
            modules.append(frame.f_locals["self"])
            if id(modules[-1]) in known:
                break
        frame = frame.f_back
    return modules


def runs_compiled() -> bool:
    """Return whether the code was called as something that ``torch.compile`` compiled."""
    compiler = sys.modules.get(_COMPILER)
    file = None if compiler is None else compiler.__file__
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:  # a plain loop, because every saved tensor waits for it
        code = frame.f_code
        if code.co_filename == file and code.co_qualname.startswith(_COMPILED):
            return True
        frame = frame.f_back
    return False


def checkpoint_saves() -> bool:
    """Return whether ``torch.utils.checkpoint`` saves: its own custom function is the innermost one on the call stack."""
    saving = next((frame for frame in _frames() if not _module_of(frame).startswith(_BETWEEN)), None)
    return saving is not None and _module_of(saving) == torch.utils.checkpoint.__name__


def custom_function_saves() -> bool:
    """Return whether a custom autograd function saves, also one that a subclass of Tensor calls in a torch function."""
    frame: FrameType | None = sys._getframe(1)
    # A plain loop without calls, because every saved tensor waits for it
    while frame is not None and "__name__" in frame.f_globals and frame.f_globals["__name__"] in _SAVING:
        frame = frame.f_back
    return frame is not None and frame.f_code is _APPLY


def computes_again() -> bool:
    """Return whether the ``backward`` of a custom function runs; that of a checkpoint computes a part of the model again."""
    return any(frame.f_code is _BACKWARD for frame in _frames())


def torch_function(caller: str) -> str | None:
    """Return the outermost of the torch functions on the stack below module ``caller``, followed without a break.

    For its inner products this is ``svd_lowrank``. The result is None if the user, or a module's ``forward``, made the call;
    functions written in C++ have no frame.
    """
    functions, found = _written_in_python(), None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:  # a plain loop, because every call of a torch function waits for it
        module: str = frame.f_globals.get("__name__") or ""
        if module != caller:
            if not module.startswith(_TORCH) or module.startswith(_MODULES):
                break
            found = functions.get(frame.f_code, found)
        frame = frame.f_back
    return found


def calling(kind: type[_Owner]) -> _Owner | None:
    """Return the innermost object of a kind with a method on the call stack, for callbacks that do not get their caller."""
    owners = (frame.f_locals.get("self") for frame in _frames())
    return next((owner for owner in owners if isinstance(owner, kind)), None)


def _frames() -> Iterator[FrameType]:
    """Yield the frames from the innermost one outwards."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _module_of(frame: FrameType) -> str:
    """Return the name of the Python module whose code a frame runs."""
    return str(frame.f_globals.get("__name__"))


@cache
def _written_in_python() -> dict[CodeType, str]:
    """Names of torch's functions by their code; functions that share the code of a wrapper announce themselves."""
    python = (f for functions in get_overridable_functions().values() for f in functions if isinstance(f, FunctionType))
    return {f.__code__: f.__name__ for f in python if f.__name__ == f.__code__.co_name}
