"""Mark functions that torch.compile leaves alone, without importing the compiler, which takes seconds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any, TypeVar

from torch._C._dynamo.eval_frame import _FrameAction, _FrameExecStrategy, set_code_exec_strategy, set_eval_frame

Run = TypeVar("Run", bound=Callable[..., Any])
#: Message of torch.compile with ``fullgraph=True``.
NOT_TRACED = "compress_activations sees every operation by itself: use torch.compile without fullgraph=True"
#: Called by a function that is itself untraced but whose callees are not: this thread's call of a compiled function continues
#: uncompiled, and the compiler is left as it was before.
stop_tracing = partial(set_eval_frame, None)


def untraced(function: Run, *, calls: bool = True) -> Run:
    """Mark ``function`` as not compiled, with its callees unless ``calls`` is false, and return it."""
    assert isinstance(function, FunctionType), "is written in Python"
    skip, default = _FrameAction.SKIP, _FrameAction.DEFAULT
    set_code_exec_strategy(function.__code__, _FrameExecStrategy(skip, skip if calls else default))
    # Attributes that the compiler reads before it takes a function into its graph.
    vars(function).update(_torchdynamo_disable=True, _torchdynamo_disable_msg=NOT_TRACED)
    return function
