"""Memory that is zero, for kernels that add to it: cut from pieces that are cleared at once, so that tensors need no launch."""

from __future__ import annotations

from threading import Lock

import torch
import triton
import triton.language as tl
from torch import Tensor

#: Number of words that are cleared at once.
_PIECE = 1 << 16
#: Words between places at which memory begins: Triton compiles a kernel anew for tensors that begin at no multiple of 16 bytes.
_ALIGNED = 2
#: Rest of the last piece, by device and stream.
_left: dict[tuple[torch.device, int], Tensor] = {}
_lock = Lock()


@triton.jit
def is_last(done_ptr: tl.tensor) -> tl.tensor:
    """Return whether all other programs are done, so that what they added is there; ``done_ptr`` is a zero to count them."""
    tl.debug_barrier()  # what all threads of this program have added comes before its number
    return tl.atomic_add(done_ptr, 1) == tl.num_programs(0) - 1


def zeros(words: int, device: torch.device) -> Tensor:
    """Return zeros, int64 (words,), on a device, for the current stream.

    A CUDA graph that is being captured clears its own, because it runs again.
    """
    stream = torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else 0
    if words > _PIECE or (device.type == "cuda" and torch.cuda.is_current_stream_capturing()):
        return torch.zeros(words, dtype=torch.int64, device=device)
    with _lock:
        left = _left.get((device, stream))
        if left is None or left.numel() < words:
            with torch.inference_mode(False):
                left = torch.zeros(_PIECE, dtype=torch.int64, device=device)
        _left[device, stream] = left[words + words % _ALIGNED :]
    return left[:words]
