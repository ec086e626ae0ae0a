"""Run-length symbols of quantised blocks (ITU-T T.81, F.1.2): DC differences and AC runs with sizes, and extra bits.

Symbols are numbered in one alphabet: AC symbols are the byte ``run << 4 | size``, DC categories begin at :data:`DC_BASE`. The
low four bits of both are the number of extra bits.
"""

from __future__ import annotations

import torch
from cdu_spec.geometry import BLOCK_VALUES
from cdu_spec.jpeg import AC_LIMIT, DC_MAX, DC_MIN, EOB, ZRL, ZRL_RUN
from torch import Tensor

from actcodec.golden.checks import require

#: Number of the DC category 0, and size of the alphabet.
DC_BASE, ALPHABET = 256, 512


def symbols(coefficients: Tensor, previous_dc: int = 0) -> tuple[Tensor, Tensor]:
    """Return symbols and extra bits of blocks in the order of the scan.

    Parameters
    ----------
    coefficients
        int16 (B, 64) in zig-zag order; DC in -1024..1023, AC in -1023..1023 (ValueError otherwise).
    previous_dc
        DC coefficient of the block before the first.

    Returns
    -------
    int16 (n,) numbers of symbols, int16 (n,) their extra bits as an unsigned number. Runs do not cross blocks.
    """
    require("coefficients", coefficients, (torch.int16,), (BLOCK_VALUES,))
    _check_range(coefficients)
    differences = coefficients.clone()
    differences[1:, 0] -= coefficients[:-1, 0]
    differences[0, 0] -= previous_dc
    present = coefficients != 0
    # The DC coefficient always has a symbol, so the distance to the previous symbol never leaves a block.
    present[:, 0] = True
    places = present.flatten().nonzero().flatten()
    values = differences.flatten()[places].to(torch.int32)
    is_dc = places % BLOCK_VALUES == 0
    runs = torch.where(is_dc, 0, places.diff(prepend=places[:1]) - 1)
    is_last = torch.cat((is_dc[1:], is_dc.new_ones(1)))
    ended = (is_last & (places % BLOCK_VALUES < BLOCK_VALUES - 1)).to(torch.int64)
    after = (1 + runs // ZRL_RUN + ended).cumsum(0)
    sizes = torch.frexp(values.to(torch.float32).abs())[1].to(torch.int64)
    numbers = torch.full((int(after[-1]),), ZRL, dtype=torch.int16, device=coefficients.device)
    numbers[after - 1] = EOB
    mine = after - 1 - ended
    numbers[mine] = torch.where(is_dc, DC_BASE + sizes, runs % ZRL_RUN << 4 | sizes).to(torch.int16)
    extra = torch.zeros_like(numbers)
    extra[mine] = torch.where(values < 0, values + (1 << sizes) - 1, values).to(torch.int16)
    return numbers, extra


def _check_range(coefficients: Tensor) -> None:
    dc, ac = coefficients[:, 0], coefficients[:, 1:]
    if bool(((dc < DC_MIN) | (dc > DC_MAX)).any()) or bool(((ac < -AC_LIMIT) | (ac > AC_LIMIT)).any()):
        raise ValueError(f"coefficients are not those of 8-bit samples: DC {DC_MIN} to {DC_MAX}, AC within {AC_LIMIT}")
