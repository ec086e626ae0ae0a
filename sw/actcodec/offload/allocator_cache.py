"""The cache of CUDA's allocator (ActNN, level L5)."""

from __future__ import annotations

import torch


def release_fragmented_cache(least_used: float) -> bool:
    """Give the allocator's free memory back to CUDA if less than a part of its memory is in use.

    Tensors of varying sizes, as compression makes them, leave gaps that fit none of the later ones. Returns whether memory was
    released; False without a CUDA device.

    Parameters
    ----------
    least_used
        The part, 0 to 1, of the memory that the allocator holds.
    """
    if not torch.cuda.is_available():
        return False
    held = torch.cuda.memory_reserved()
    if held == 0 or torch.cuda.memory_allocated() >= least_used * held:
        return False
    torch.cuda.empty_cache()
    return True
