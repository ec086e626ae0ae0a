"""Cases of the forward and inverse 8x8 DCT."""

from __future__ import annotations

from random import Random

import torch
from actcodec.golden import dct as golden
from cdu_spec.config import CduConfig
from torch import Tensor

from cdu_verif.cases.case import Case, Ports, corner_blocks, mixed_blocks, words


class _Transform:
    def __init__(self, inverse: bool) -> None:
        self.inverse = inverse

    def case(self, config: CduConfig, ports: Ports, name: str, blocks: Tensor) -> Case:
        """A case of blocks (B, 8, 8): samples, or coefficients [vertical][horizontal]."""
        blocks = blocks.to(torch.int16)
        bits = (config.const_bits, config.pass1_bits)
        if self.inverse:
            rows = blocks.transpose(1, 2)
            out = golden.idct(blocks, *bits, sample_bits=config.sample_bits)
        else:
            rows = blocks
            out = golden.dct(blocks, *bits).transpose(1, 2)
        return Case(name, words(ports, "i", values=rows.reshape(-1, 8)), words(ports, "o", values=out.reshape(-1, 8)))

    def _range(self, ports: Ports) -> tuple[int, int]:
        width = ports["i__payload"]["fields"][0]["width"]
        return -(1 << (width - 1)), (1 << (width - 1)) - 1

    def corners(self, config: CduConfig, ports: Ports, rng: Random) -> list[Case]:
        """Directed blocks, and those that give every coefficient (sample) its greatest magnitude."""
        low, high = self._range(ports)
        cases = [self.case(config, ports, name, blocks) for name, blocks in corner_blocks(low, high).items()]
        basis = golden.matrix(config.const_bits)
        signs = torch.einsum("vr,uc->vurc", basis, basis).reshape(-1, 8, 8)
        if self.inverse:
            signs = signs.reshape(64, 64).T.reshape(-1, 8, 8)
        worst = torch.cat((torch.where(signs > 0, high, low), torch.where(signs > 0, low, high)))
        return [*cases, self.case(config, ports, "greatest_results", worst)]

    def random(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> Case:
        """Blocks of mixed kinds."""
        return self.case(config, ports, "random", mixed_blocks(rng, *self._range(ports), blocks))

    def steady(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> list[Case]:
        """The rate does not depend on the content."""
        return [self.random(config, ports, rng, blocks)]


DCT, IDCT = _Transform(inverse=False), _Transform(inverse=True)
