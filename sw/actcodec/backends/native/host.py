"""Where the kernels compute."""

from __future__ import annotations

from cdu_tools.errors import UserError
from torch import Tensor


def host(x: Tensor) -> Tensor:
    """The tensor, contiguous and with its values in memory; UserError when it is not on the CPU."""
    if x.device.type != "cpu":
        raise UserError(f"backend 'native' computes on the CPU, and a tensor is on {x.device}: use backend 'torch'")
    return x.resolve_neg().contiguous()
