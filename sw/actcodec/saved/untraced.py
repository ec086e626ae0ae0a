"""Functions that torch.compile leaves as they are, without its being imported, which takes seconds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any, TypeVar

from torch._C._dynamo.eval_frame import _FrameAction, _FrameExecStrategy, set_code_exec_strategy, set_eval_frame

Run = TypeVar("Run", bound=Callable[..., Any])
#: What torch.compile says with ``fullgraph=True``.
NOT_TRACED = "compress_activations sees every operation by itself: use torch.compile without fullgraph=True"
#: Called by a function that is untraced itself, but for what it calls: this thread's call of a compiled function goes on
#: uncompiled, and leaves the compiler as it was before.
stop_tracing = partial(set_eval_frame, None)


def untraced(function: Run, *, calls: bool = True) -> Run:
    """``function``, marked: it is not compiled, and neither is what it calls, unless ``calls`` is false."""
    assert isinstance(function, FunctionType), "is written in Python"
    skip, default = _FrameAction.SKIP, _FrameAction.DEFAULT
    set_code_exec_strategy(function.__code__, _FrameExecStrategy(skip, skip if calls else default))
    # What the compiler looks for in functions that it would take into its graph.
    vars(function).update(_torchdynamo_disable=True, _torchdynamo_disable_msg=NOT_TRACED)
    return function
