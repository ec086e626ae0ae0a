"""Names of number formats for files and messages."""

from __future__ import annotations

import torch


def dtype_name(dtype: torch.dtype) -> str:
    """Return the name of a number format in numpy and torch, such as ``float32``."""
    return str(dtype).removeprefix("torch.")
