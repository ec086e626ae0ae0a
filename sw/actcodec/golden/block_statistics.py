"""What the range finder knows of a block: mean, least and greatest value."""

from __future__ import annotations

import torch
from cdu_spec.geometry import BLOCK_VALUES
from torch import Tensor

from actcodec.golden.checks import require

_MEAN_SHIFT = BLOCK_VALUES.bit_length() - 1


def block_mean(blocks: Tensor) -> Tensor:
    """Mean of each block rounded half up, ``(sum + 32) >> 6``: int16 (B, 64) to int32 (B,), -32768..32767."""
    require("blocks", blocks, (torch.int16,), (BLOCK_VALUES,))
    return (blocks.sum(1, dtype=torch.int32) + BLOCK_VALUES // 2) >> _MEAN_SHIFT


def least_and_greatest(groups: Tensor) -> tuple[Tensor, Tensor]:
    """Least and greatest value of each group: int16 (G, n) to int32 (G,) each."""
    require("groups", groups, (torch.int16,))
    least, greatest = groups.aminmax(dim=1)
    return least.to(torch.int32), greatest.to(torch.int32)
