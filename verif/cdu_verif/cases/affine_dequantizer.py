"""Cases of the affine dequantiser."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import torch
from actcodec.golden.affine import Ranges, dequantize
from cdu.delivery.blocks import affine
from cdu_spec.affine import BASE_BITS, CODE_BITS, AffineSettings
from cdu_spec.config import CduConfig
from cdu_spec.geometry import LANES
from cdu_spec.modes import Mode
from cdu_spec.port_fields import pack
from torch import Tensor

from cdu_verif.cases.block_streams import block_modes, random_settings
from cdu_verif.cases.case import Case, Cases
from cdu_verif.content.payloads import quantizer
from cdu_verif.content.values import integers, words
from cdu_verif.simulation.ports import Ports

_LEAST, _MOST = -(1 << (BASE_BITS - 1)), (1 << (BASE_BITS - 1)) - 1


def random_ranges(rng: Random, bits: int, count: int) -> Ranges:
    """Ranges that an encoder may find, narrow and wide ones, (count, 1)."""
    ends = integers(rng, _LEAST, _MOST, count, 2)
    ends = torch.where(integers(rng, 0, 3, count, 2) == 0, torch.tensor([_LEAST, _MOST]), ends)
    narrow = integers(rng, 0, 1, count, 1) * integers(rng, 0, BASE_BITS - 1, count, 1)
    low, high = ends.min(1, keepdim=True).values >> narrow, ends.max(1, keepdim=True).values >> narrow
    return Ranges.found(low.to(torch.int32), high.to(torch.int32), bits)


def decoded(mode: Mode, settings: AffineSettings, codes: Tensor, ranges: Ranges, offsets: Tensor) -> Tensor:
    """Integers, int32 (n, 8), of codes, uint8 (n, 8); ``ranges`` of their blocks and ``offsets`` of their channels, (n, 1)."""
    if mode is Mode.ACTNN or settings.block_range:
        return dequantize(codes, ranges)
    low = torch.full_like(ranges.low, settings.fixed_low)
    if mode is Mode.DIVISION:
        low = ranges.low - (settings.levels << settings.step_log2 >> 1)
    if mode is Mode.BLPA:
        low += offsets.to(torch.int32) + ((1 << settings.step_log2) >> 1)
    return dequantize(codes, Ranges.fixed(low, settings.step_log2))


def range_fields(ranges: Ranges) -> list[dict[str, int]]:
    """Fields of :class:`cdu.words.Range`, of (n, 1) ranges."""
    parts = (part.flatten().tolist() for part in (ranges.low, ranges.mantissa, ranges.exponent))
    return [{"low": low, "mantissa": mantissa, "exponent": exponent} for low, mantissa, exponent in zip(*parts, strict=True)]


class _Beat:
    """One beat in some mode, with the integers that the golden model makes of it."""

    def __init__(self, rng: Random, mode: Mode, settings: AffineSettings | None, codes: Tensor | None = None) -> None:
        self.mode, self.settings, self.scale = mode, settings, rng.getrandbits(31)
        self.offset = rng.choice((_LEAST, _MOST, rng.randint(_LEAST, _MOST)))
        self.range = random_ranges(rng, settings.bits if settings else rng.choice(CODE_BITS), 1)
        if settings is None:
            self.values = integers(rng, -128, 127, LANES).to(torch.int8)
            self.integers = self.values.to(torch.int32)
            return
        found = integers(rng, 0, settings.levels, LANES).to(torch.uint8) if codes is None else codes
        self.values = found.view(torch.int8)
        self.integers = decoded(mode, settings, found[None], self.range, torch.tensor([[self.offset]]))[0]

    def payload(self, ports: Ports) -> int:
        """The beat at the input."""
        port = dict(ports["i__payload"])
        named = {
            "values": self.values.tolist(),
            "mode": int(self.mode),
            "quantizer": quantizer(self.settings),
            "range": range_fields(self.range)[0],
            "offset": self.offset,
            "scale": self.scale,
        }
        return pack(port, {entry["name"]: named[entry["name"]] for entry in port["fields"]})


class _Dequantizer(Cases):
    def case(self, ports: Ports, name: str, beats: Iterable[_Beat]) -> Case:
        """Beats one after the other."""
        sent = list(beats)
        integers = torch.stack([beat.integers for beat in sent])
        scales = torch.tensor([beat.scale for beat in sent])
        inputs, expected = [beat.payload(ports) for beat in sent], words(ports, "o", values=integers, scale=scales)
        return Case(name, {"i": inputs}, {"o": expected}, steady=("i", "o"))

    def corners(self, config: CduConfig, ports: Ports, rng: Random) -> list[Case]:
        """Every mode with every number of bits and every step; every code of 8 bits."""
        cases = []
        for mode in block_modes(affine(config)):
            if not mode.is_affine:
                cases.append(self.case(ports, mode.label, [_Beat(rng, mode, None) for _ in range(32)]))
                continue
            beats = []
            for bits in CODE_BITS:
                steps = range(int(mode is Mode.DIVISION), BASE_BITS - bits + 1) if mode is not Mode.ACTNN else [0] * 8
                beats += [_Beat(rng, mode, AffineSettings(bits, step)) for step in steps for _ in range(3)]
                if mode is Mode.DIVISION:
                    beats += [_Beat(rng, mode, AffineSettings(bits, block_range=True)) for _ in range(24)]
            every = torch.arange(256, dtype=torch.uint8).reshape(-1, LANES)
            settings = AffineSettings(8, 1 if mode is Mode.DIVISION else 0)
            cases.append(self.case(ports, mode.label, [*beats, *(_Beat(rng, mode, settings, row) for row in every)]))
        return cases

    def random(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> Case:
        """Beats of all modes in any order."""
        modes = [rng.choice(block_modes(affine(config))) for _ in range(8 * blocks)]
        return self.case(ports, "random", (_Beat(rng, mode, random_settings(rng, mode)) for mode in modes))

    def steady(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> list[Case]:
        """The rate does not depend on the content."""
        return [self.random(config, ports, rng, blocks)]


AFFINE_DEQUANTIZER = _Dequantizer()
