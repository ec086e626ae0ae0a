"""Cases of the forward and inverse 8x8 DCT, and of the one that does both."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import torch
from actcodec.golden import dct as golden
from cdu_spec.config import CduConfig
from torch import Tensor

from cdu_verif.cases.case import Case, Cases
from cdu_verif.content.values import corner_blocks, mixed_blocks, words
from cdu_verif.simulation.ports import Ports


class _Transform(Cases):
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
        inputs, expected = words(ports, "i", values=rows.reshape(-1, 8)), words(ports, "o", values=out.reshape(-1, 8))
        return Case(name, {"i": inputs}, {"o": expected}, steady=("i", "o"))

    def _range(self, config: CduConfig) -> tuple[int, int]:
        width = config.coefficient_bits if self.inverse else config.sample_bits
        return -(1 << (width - 1)), (1 << (width - 1)) - 1

    def corners(self, config: CduConfig, ports: Ports, rng: Random) -> list[Case]:
        """Directed blocks, and those that give every coefficient (sample) its greatest magnitude."""
        low, high = self._range(config)
        cases = [self.case(config, ports, name, blocks) for name, blocks in corner_blocks(low, high).items()]
        basis = golden.matrix(config.const_bits)
        signs = torch.einsum("vr,uc->vurc", basis, basis).reshape(-1, 8, 8)
        if self.inverse:
            signs = signs.reshape(64, 64).T.reshape(-1, 8, 8)
        worst = torch.cat((torch.where(signs > 0, high, low), torch.where(signs > 0, low, high)))
        return [*cases, self.case(config, ports, "greatest_results", worst)]

    def random(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> Case:
        """Blocks of mixed kinds."""
        return self.case(config, ports, "random", mixed_blocks(rng, *self._range(config), blocks))

    def steady(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> list[Case]:
        """The rate does not depend on the content."""
        return [self.random(config, ports, rng, blocks)]


DCT, IDCT = _Transform(inverse=False), _Transform(inverse=True)


class _TwoWay(Cases):
    """Cases of both, each with its direction, which changes from case to case; all that entered a case must leave in it."""

    settling = 8

    def corners(self, config: CduConfig, ports: Ports, rng: Random) -> list[Case]:
        """The directed blocks of both directions by turns."""
        forward, back = (transform.corners(config, ports, rng) for transform in (DCT, IDCT))
        pairs = zip(forward, back, strict=True)
        return [case for pair in pairs for case in (self._directed(pair[0], 0), self._directed(pair[1], 1))]

    def random(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> Case:
        """Blocks of mixed kinds in one direction."""
        inverse = rng.randint(0, 1)
        return self._directed((DCT, IDCT)[inverse].random(config, ports, rng, blocks), inverse)

    def steady(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> list[Case]:
        """The rate of both directions."""
        return [
            self._directed(transform.random(config, ports, rng, blocks), inverse)
            for inverse, transform in enumerate((DCT, IDCT))
        ]

    @staticmethod
    def _directed(case: Case, inverse: int) -> Case:
        name = f"{'inverse' if inverse else 'forward'} {case.name}"
        return replace(case, name=name, settings={"inverse": inverse}, flags={"empty": 1})


TWO_WAY_DCT = _TwoWay()
