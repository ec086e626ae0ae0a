"""Operations that move bytes; on a CPU, numpy does them in torch's memory, because torch's own loops are slow there.

Results are in memory of torch's allocator, so that measurements of that memory include them.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def select(values: Tensor, present: Tensor) -> Tensor:
    """Return ``values[present]``, one axis. Both are contiguous, of one shape; ``present`` is bool."""
    if values.device.type == "cpu":
        chosen = torch.empty(int(present.count_nonzero()), dtype=values.dtype)
        np.compress(present.view(-1).numpy(), values.view(-1).numpy(), out=chosen.numpy())
        return chosen
    return values[present]


def spread(values: Tensor, present: Tensor) -> Tensor:
    """Spread values to the shape of ``present``, zero elsewhere; inverse of :func:`select`. The counts must match."""
    full = torch.zeros(present.shape, dtype=values.dtype, device=values.device)
    if values.device.type == "cpu":
        places = torch.from_numpy(np.flatnonzero(present.numpy()))
        full.view(-1).scatter_(0, places, values)
        return full
    return full.masked_scatter_(present, values)


def copy_permuted(target: Tensor, source: Tensor) -> None:
    """Copy between differently strided views of one shape and dtype."""
    if target.device.type == "cpu":
        np.copyto(target.numpy(), source.numpy())
    else:
        target.copy_(source)


def tensor_of(content: bytes, device: torch.device) -> Tensor:
    """Return bytes as uint8 (n,) on a device."""
    found = torch.empty(len(content), dtype=torch.uint8)
    found.numpy()[:] = np.frombuffer(content, dtype=np.uint8)
    return found.to(device)
