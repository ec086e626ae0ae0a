"""Check and conversion of tensors for the kernels."""

from __future__ import annotations

from cdu_tools.errors import UserError
from torch import Tensor


def host(x: Tensor) -> Tensor:
    """Return the tensor, contiguous and with its values in memory; raise UserError unless it is on the CPU."""
    if x.device.type != "cpu":
        raise UserError(f"backend 'native' computes on the CPU, and a tensor is on {x.device}: use backend 'torch'")
    return x.resolve_neg().contiguous()
