"""What ``torch.compile`` has compiled runs as it was written while a context is open, operation by operation.

Policies choose by the operation that saves a tensor, and within a compiled graph none of them is to be seen. Left to itself the
compiler would trace the context's ``TorchFunctionMode``: it breaks the graph at every operation, compiles what is left, and
reaches its limits of recompilation. Its stance ``force_eager`` comes to the same at once, and leaves compiled code for later.
"""

from __future__ import annotations

import sys
from threading import Lock

import torch

RUNS_EAGERLY = (
    "what torch.compile compiled runs operation by operation while activations are compressed, because a policy chooses by the "
    "operation: leave out torch.compile, or compile only what is outside of the context"
)


class EagerStance:
    """The stance ``force_eager``, as long as any thread has entered it; for nothing where no compiler is loaded.

    Torch has one stance for the process: who comes first sets it, and who leaves last sets back what was there.
    """

    def __init__(self) -> None:
        self._lock, self._entered = Lock(), 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._entered:
                self._forced = torch.compiler.set_stance("force_eager") if compiler_is_loaded() else None
            self._entered += 1

    def __exit__(self, *raised: object) -> None:
        with self._lock:
            self._entered -= 1
            if not self._entered and self._forced is not None:
                self._forced.__exit__(None, None, None)


#: One, as torch has one.
EAGER = EagerStance()


def compiler_is_loaded() -> bool:
    """Whether anything can have been compiled. The compiler takes seconds to import, which ``torch.compile`` does."""
    return "torch._dynamo" in sys.modules
