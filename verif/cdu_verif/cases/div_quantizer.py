"""Cases of the quantiser with divisors, and of its inverse."""

from __future__ import annotations

from random import Random

import torch
from actcodec.golden import div_quantizer as golden
from cdu.quantizers.div_quantizer import DIVISOR_BITS
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_VALUES, LANES
from torch import Tensor

from cdu_verif.cases.case import Case, Cases
from cdu_verif.content.values import integers, mixed_blocks, words
from cdu_verif.simulation.ports import Ports

_MOST = (1 << DIVISOR_BITS) - 1


class _Divided(Cases):
    """Cases of columns of coefficients in and out; the rate does not depend on the content."""

    def expected(self, config: CduConfig, blocks: Tensor, divisors: Tensor) -> Tensor:
        """Return the golden result."""
        raise NotImplementedError

    def case(self, config: CduConfig, ports: Ports, name: str, blocks: Tensor, divisors: Tensor) -> Case:
        """Return a case of blocks (B, 64) and divisors (64,), both in the order in which they come."""
        out = self.expected(config, blocks, divisors)
        inputs, outputs = (words(ports, end, values=rows.reshape(-1, LANES)) for end, rows in (("i", blocks), ("o", out)))
        return Case(name, {"i": inputs}, {"o": outputs}, {"divisors": divisors.tolist()}, steady=("i", "o"))

    def random(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> Case:
        """Return mixed blocks with a random table."""
        values = mixed_blocks(rng, *_ends(config), blocks).reshape(-1, BLOCK_VALUES)
        return self.case(config, ports, "random", values, integers(rng, 1, _MOST, BLOCK_VALUES))

    def steady(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> list[Case]:
        """Return any content."""
        return [self.random(config, ports, rng, blocks)]


class _Quantizer(_Divided):
    def expected(self, config: CduConfig, blocks: Tensor, divisors: Tensor) -> Tensor:
        return golden.quantize(blocks.to(torch.int32), divisors, config.rounding_mode)

    def corners(self, config: CduConfig, ports: Ports, rng: Random) -> list[Case]:
        """Return every divisor with values around every multiple of its half and with the ends; every value by 1, 2, 3."""
        low, high = _ends(config)
        cases = []
        for first in range(1, _MOST + 1, BLOCK_VALUES):
            divisors = torch.arange(first, first + BLOCK_VALUES).clamp(max=_MOST)
            steps = integers(rng, -2 * high, 2 * high, 96, BLOCK_VALUES) % (2 * high // divisors + 1)
            near = (steps * divisors).div(2, rounding_mode="floor") + integers(rng, -1, 1, 96, BLOCK_VALUES)
            sign = 1 - 2 * integers(rng, 0, 1, 96, BLOCK_VALUES)
            ends = torch.tensor([low, low + 1, -1, 0, 1, high])[:, None].expand(-1, BLOCK_VALUES)
            blocks = torch.cat(((near * sign).clamp(low, high), ends))
            cases.append(self.case(config, ports, f"divisors_from_{first}", blocks, divisors))
        every = torch.arange(low, high + 1).view(-1, BLOCK_VALUES)
        return cases + [
            self.case(config, ports, f"every_value_by_{divisor}", every, torch.full((BLOCK_VALUES,), divisor))
            for divisor in (1, 2, 3)
        ]


class _Inverse(_Divided):
    def expected(self, config: CduConfig, blocks: Tensor, divisors: Tensor) -> Tensor:
        return golden.inverse(blocks.to(torch.int16), divisors)

    def corners(self, config: CduConfig, ports: Ports, rng: Random) -> list[Case]:
        """Return every divisor with values just below and above saturation and the ends; every value by some divisors."""
        low, high = _ends(config)
        cases = []
        for first in range(1, _MOST + 1, BLOCK_VALUES):
            divisors = torch.arange(first, first + BLOCK_VALUES).clamp(max=_MOST)
            ends = torch.tensor([low, low + 1, -1, 0, 1, high])[:, None].expand(-1, BLOCK_VALUES)
            near = torch.stack([end // divisors + step for end in (low, high) for step in range(-1, 3)]).clamp(low, high)
            cases.append(self.case(config, ports, f"divisors_from_{first}", torch.cat((near, ends)), divisors))
        every = torch.arange(low, high + 1).view(-1, BLOCK_VALUES)
        return cases + [
            self.case(config, ports, f"every_value_by_{divisor}", every, torch.full((BLOCK_VALUES,), divisor))
            for divisor in (1, 2, 16, 255)
        ]


def _ends(config: CduConfig) -> tuple[int, int]:
    """Return the least and the greatest coefficient."""
    return -(1 << (config.coefficient_bits - 1)), (1 << (config.coefficient_bits - 1)) - 1


DIV_QUANTIZER, INVERSE_DIV_QUANTIZER = _Quantizer(), _Inverse()
