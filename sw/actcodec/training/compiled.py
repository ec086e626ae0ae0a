"""What ``torch.compile`` has compiled runs as it was written while a context is open, operation by operation.

Policies choose by the operation that saves a tensor, and within a compiled graph none of them is to be seen. Left to itself the
compiler would trace the context's ``TorchFunctionMode``: it breaks the graph at every operation, compiles what is left, and
reaches its limits of recompilation. Its stance ``force_eager`` comes to the same at once, and leaves compiled code for later.
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
    """The stance ``force_eager``, as long as any thread has entered it; nothing where no compiler is loaded.

    Torch has one stance for the process: who comes first sets it, and who leaves last sets back what was there.
    """

    def __init__(self) -> None:
        self._lock, self._entered = Lock(), 0
        self._forced: Any = None  # what torch gives to set it back

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


#: One, as torch has one.
EAGER = EagerStance()


def compiler_is_loaded() -> bool:
    """Whether anything can have been compiled. The compiler takes seconds to import, which ``torch.compile`` does."""
    return "torch._dynamo" in sys.modules
