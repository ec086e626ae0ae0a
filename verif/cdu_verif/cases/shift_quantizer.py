"""Cases of the shift quantiser and its inverse."""

from __future__ import annotations

from itertools import product
from random import Random

import torch
from actcodec.golden import shift_quantizer as golden
from cdu_spec.config import CduConfig
from cdu_spec.reconstruction import MAX_POINT
from torch import Tensor

from cdu_verif.cases.case import Case, Cases
from cdu_verif.content.values import integers, mixed_blocks, words
from cdu_verif.simulation.ports import Ports


class _Quantizer(Cases):
    def __init__(self, inverse: bool) -> None:
        self.inverse = inverse

    def has_point(self, config: CduConfig) -> bool:
        """Return whether the device has a reconstruction point."""
        return self.inverse and config.has_gmc

    def case(
        self, config: CduConfig, ports: Ports, name: str, blocks: Tensor, shifts: Tensor, bank: int = 0, point: int = 0
    ) -> Case:
        """Return a case of blocks (B, 64) and shifts (64,), both in payload order; the other bank holds other shifts."""
        if self.inverse:
            out = golden.inverse(blocks.to(torch.int8), shifts, point)
        else:
            out = golden.quantize(blocks.to(torch.int32), shifts, config.rounding_mode)
        other = (shifts + 1) % 8
        banks = torch.stack((other, shifts) if bank else (shifts, other))
        table = {"shifts": banks.reshape(-1).tolist(), "bank": bank, **({"point": point} if self.has_point(config) else {})}
        inputs, outputs = (words(ports, end, values=rows.reshape(-1, 8)) for end, rows in (("i", blocks), ("o", out)))
        return Case(name, {"i": inputs}, {"o": outputs}, table, steady=("i", "o"))

    def corners(self, config: CduConfig, ports: Ports, rng: Random) -> list[Case]:
        """Return every input value with every shift in every lane."""
        width = ports["i__payload"]["fields"][0]["width"]
        low, high = -(1 << (width - 1)), (1 << (width - 1)) - 1
        every = torch.arange(low, high + 1).repeat_interleave(8).reshape(-1, 64)
        cases = []
        for shift in range(8):
            cases.append(self.case(config, ports, f"every_value_shift_{shift}", every, torch.full((64,), shift)))
        table = torch.arange(64) * 5 % 8
        cases.append(self.case(config, ports, "every_shift_at_once", every, table))
        if self.has_point(config):
            for shift, point in product(range(8), range(1, MAX_POINT + 1)):
                name = f"every_value_shift_{shift}_point_{point}"
                cases.append(self.case(config, ports, name, every, torch.full((64,), shift), point=point))
        return cases

    def random(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> Case:
        """Return mixed blocks with a random table."""
        width = ports["i__payload"]["fields"][0]["width"]
        values = mixed_blocks(rng, -(1 << (width - 1)), (1 << (width - 1)) - 1, blocks).reshape(-1, 64)
        point = rng.randint(0, MAX_POINT) if self.has_point(config) else 0
        return self.case(config, ports, "random", values, integers(rng, 0, 7, 64), rng.randint(0, 1), point)

    def steady(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> list[Case]:
        """Return any content, as the rate does not depend on it."""
        return [self.random(config, ports, rng, blocks)]


SHIFT_QUANTIZER, INVERSE_SHIFT_QUANTIZER = _Quantizer(inverse=False), _Quantizer(inverse=True)
