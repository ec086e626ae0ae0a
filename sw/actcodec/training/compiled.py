"""Run code that ``torch.compile`` has compiled operation by operation while a context is open.

Policies choose by the operation that saves a tensor, and operations are not visible in a compiled graph. Without this module
the compiler would trace the context's ``TorchFunctionMode``: it breaks the graph at every operation, compiles the pieces, and
reaches its limits of recompilation. Its stance ``force_eager`` has the same effect at once, and keeps compiled code for later.
"""

from __future__ import annotations

import sys
from threading import Lock
from typing import Any

import torch

RUNS_EAGERLY = (
    "what torch.compile compiled runs operation by operation while activations are compressed, because a policy chooses by the "
    "operation: leave out torch.compile, or compile only what is outside of the context"
)


class EagerStance:
    """The stance ``force_eager``, for as long as any thread has entered it; no effect if no compiler is loaded.

    Torch has one stance per process: the first to enter sets it, and the last to leave restores the previous one.
    """

    def __init__(self) -> None:
        self._lock, self._entered = Lock(), 0
        self._forced: Any = None  # torch's context manager, which restores the stance

    def __enter__(self) -> None:
        with self._lock:
            self._entered += 1
            if self._forced is None and compiler_is_loaded():
                self._forced = torch.compiler.set_stance("force_eager")

    def __exit__(self, *raised: object) -> None:
        with self._lock:
            self._entered -= 1
            if self._forced is not None and not self._entered:
                forced, self._forced = self._forced, None
                forced.__exit__(None, None, None)


#: The only instance, because torch has one stance.
EAGER = EagerStance()


def compiler_is_loaded() -> bool:
    """Return whether compiled code can exist. Importing the compiler takes seconds, and ``torch.compile`` imports it."""
    return "torch._dynamo" in sys.modules
