"""Numbers that kernels leave for the host, on their way to it while the device computes further."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class Answer:
    """Numbers that are copied to the host's memory in the order of the current stream.

    Parameters
    ----------
    numbers
        Tensor of integers or floats (n,).
    """

    def __init__(self, numbers: Tensor) -> None:
        self._there = numbers
        self._comes = None
        if numbers.device.type == "cuda":
            self._there = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=True)
            with torch.cuda.device(numbers.device):
                self._there.copy_(numbers, non_blocking=True)
                self._comes = torch.cuda.Event()  # type: ignore[no-untyped-call]
                self._comes.record()

    def read(self) -> list[Any]:
        """Return the numbers, after waiting for what was launched before them and for nothing else."""
        if self._comes is not None:
            self._comes.synchronize()
        found: list[Any] = self._there.tolist()
        return found
