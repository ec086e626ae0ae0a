"""Cases of SFPR and its inverse."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import torch
from actcodec.backends.job import DTYPES
from actcodec.golden import sfpr as golden
from cdu.values.inverse_sfpr import integer_bits
from cdu_spec.affine import DECODED_BITS, RECIPROCAL_EXPONENT_LIMIT
from cdu_spec.config import CduConfig
from cdu_spec.modes import Dtype
from cdu_spec.sfpr import SCALE_EXPONENT_LIMIT
from torch import Tensor

from cdu_verif.cases.case import Case, Cases
from cdu_verif.content.payloads import PATTERN, bit_patterns
from cdu_verif.content.values import generator, integers, words
from cdu_verif.simulation.ports import Ports


def _from_patterns(patterns: Tensor, dtype: Dtype) -> Tensor:
    bits = dtype.bits
    signed = torch.where(patterns >= 1 << (bits - 1), patterns - (1 << bits), patterns)
    return signed.to(PATTERN[bits]).view(DTYPES[dtype])


def random_scales(rng: Random, scale_bits: int, count: int, low: int, high: int) -> Tensor:
    """Positive float32 numbers with exponents ``low`` to ``high`` and ``scale_bits`` significand bits, (count,)."""
    significand = integers(rng, 1 << (scale_bits - 1), (1 << scale_bits) - 1, count).to(torch.float64)
    exponent = integers(rng, low, high, count)
    return torch.ldexp(significand, exponent - (scale_bits - 1)).to(torch.float32)


#: Results of SFPR: rounded to 8 bits, to 16 bits, or down and less the offset to 16 bits.
_NARROW, _WIDE, _LOWER = range(3)


class _Sfpr(Cases):
    def case(
        self,
        config: CduConfig,
        ports: Ports,
        name: str,
        values: Tensor,
        k: Tensor,
        binary: Tensor | None = None,
        kind: Tensor | None = None,
        offsets: Tensor | None = None,
        absent: Tensor | None = None,
    ) -> Case:
        """Beats (B, 8) of the configuration's format, multipliers (B,), and where BRC is wanted (B,); the kind of result (B,)
        and offsets, int16 (B,); where zeros take the place of the values (B,).
        """
        count = len(values)
        absent = torch.zeros(count, dtype=torch.bool) if absent is None else absent
        given, values = values, torch.where(absent[:, None], torch.zeros_like(values), values)
        binary = torch.zeros(count, dtype=torch.bool) if binary is None else binary
        kind = torch.full((count,), _NARROW) if kind is None else kind
        offsets = torch.zeros(count, dtype=torch.int16) if offsets is None else offsets
        scales = k[:, None]
        results = [golden.sfpr(values, scales), golden.sfpr16(values, scales)]
        results.append(golden.sfpr16(values, scales, offsets[:, None]))
        quantized = torch.stack([result.to(torch.int16) for result in results])[kind, torch.arange(count)]
        quantized = torch.where(binary[:, None], (values > 0).to(torch.int16), quantized)
        nonfinite = ~values.float().isfinite().all(1)
        fields: dict[str, Tensor] = {"values": bit_patterns(given), "scale": bit_patterns(k), "binary": binary.long()}
        fields["absent"] = absent.long()
        if config.has_affine:
            fields["narrow"] = (binary | (kind == _NARROW)).long()
        if config.has_offsets:
            fields |= {"lower": (kind == _LOWER).long(), "offset": torch.where(kind == _LOWER, offsets, 0)}
        expected = words(ports, "o", values=quantized, nonfinite=nonfinite.long())
        return Case(name, {"i": words(ports, "i", **fields)}, {"o": expected}, steady=("i", "o"))

    def wide(self, config: CduConfig, ports: Ports, rng: Random, name: str, values: Tensor, k: Tensor) -> Iterator[Case]:
        """The same values with every other kind of result that there is, with any offsets and extreme ones."""
        if config.has_affine:
            yield self.case(config, ports, f"wide_{name}", values, k, kind=torch.full((len(k),), _WIDE))
        if config.has_offsets:
            ends = torch.where(integers(rng, 0, 1, len(k)) == 0, -(1 << 15), (1 << 15) - 1)
            offsets = torch.where(integers(rng, 0, 1, len(k)) == 0, integers(rng, -(1 << 15), (1 << 15) - 1, len(k)), ends)
            yield self.case(
                config, ports, f"lower_{name}", values, k, kind=torch.full((len(k),), _LOWER), offsets=offsets.to(torch.int16)
            )

    def corners(self, config: CduConfig, ports: Ports, rng: Random) -> list[Case]:
        """Special numbers, exact ties, the edge of saturation, every exponent difference that matters."""
        directed = list(self._directed(config, rng))
        return [
            *(self.case(config, ports, name, values, k) for name, values, k in directed),
            *(case for name, values, k in directed for case in self.wide(config, ports, rng, name, values, k)),
            *self._marked(config, ports, rng),
        ]

    def _marked(self, config: CduConfig, ports: Ports, rng: Random) -> Iterator[Case]:
        """Special numbers where BRC is wanted, and where they are absent, or both."""
        every, none = (torch.full((self._special_beats,), marked) for marked in (True, False))
        for name, binary, absent in (("binary", every, none), ("absent", none, every), ("absent_binary", every, every)):
            yield self.case(config, ports, name, *self._special(config, rng), binary, absent=absent)

    _special_beats = 64

    def _special(self, config: CduConfig, rng: Random) -> tuple[Tensor, Tensor]:
        dtype = config.dtype
        fraction = dtype.fraction_bits
        infinity = ((1 << dtype.exponent_bits) - 1) << fraction
        quiet = infinity | 1 << (fraction - 1)
        named = [0, 1, 2, (1 << fraction) - 1, 1 << fraction, infinity - 1, infinity, infinity | 1, quiet]
        patterns = torch.tensor(named + [value | 1 << (dtype.bits - 1) for value in named])
        picks = patterns[integers(rng, 0, len(patterns) - 1, self._special_beats, 8)]
        low = -SCALE_EXPONENT_LIMIT
        k = random_scales(rng, config.scale_bits, self._special_beats, low, SCALE_EXPONENT_LIMIT - 1)
        k[:8], k[8:16] = 2.0**low, 2.0**SCALE_EXPONENT_LIMIT
        return _from_patterns(picks, dtype), k

    def _directed(self, config: CduConfig, rng: Random) -> Iterator[tuple[str, Tensor, Tensor]]:
        torch_dtype = DTYPES[config.dtype]
        yield ("special_numbers", *self._special(config, rng))
        halves = torch.arange(-264, 264).to(torch.float64) / 2
        for exponent in (0, 3, 7):
            k = torch.full((len(halves) // 8,), 2.0**exponent)
            yield f"ties_k_{exponent}", (halves * 2.0**-exponent).reshape(-1, 8).to(torch_dtype), k
        # One unit in the last place around every tie and around the edges of saturation.
        steps = integers(rng, -2, 2, len(halves))
        patterns = (bit_patterns(halves.to(torch_dtype)) + steps).clamp(min=0) & ((1 << config.dtype.bits) - 1)
        near = _from_patterns(patterns, config.dtype)
        near = torch.where(near.float().abs() < 200, near, torch.zeros_like(near))
        yield "near_ties", near.reshape(-1, 8), torch.ones(len(halves) // 8)
        count = 48 * 8
        exponents = (torch.arange(count) // 8 % 24 - 12).to(torch.float64)
        significand = 1 + torch.rand(count, 8, generator=generator(rng), dtype=torch.float64)
        signs = integers(rng, 0, 1, count, 8) * 2 - 1
        k = random_scales(rng, config.scale_bits, count, -2, 2)
        yield "exponents", (significand * signs * 2.0 ** exponents[:, None]).to(torch_dtype), k
        if config.has_affine:
            edge = float(1 << (config.value_bits - 1))
            halves = torch.arange(-264, 264).to(torch.float64) / 2
            for sign in (-1, 1):
                near = ((edge + halves) * sign).reshape(-1, 8).to(torch_dtype)
                yield f"around_{sign * edge:.0f}", near, torch.ones(len(near))
            greater = random_scales(rng, config.scale_bits, count, 4, 14)
            yield "greater", (significand * signs * 2.0 ** exponents[:, None]).to(torch_dtype), greater

    def random(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> Case:
        """Random bit patterns, random values near the working range, and both ways of use."""
        beats = 8 * blocks
        patterns = _from_patterns(integers(rng, 0, (1 << config.dtype.bits) - 1, beats, 8), config.dtype)
        normal = torch.randn(beats, 8, generator=generator(rng)).to(patterns.dtype)
        k = random_scales(rng, config.scale_bits, beats, 2, 8)
        wild = integers(rng, 0, 3, beats) == 0
        k = torch.where(wild, random_scales(rng, config.scale_bits, beats, -20, 20), k)
        values = torch.where(wild[:, None], patterns, normal)
        binary = integers(rng, 0, 3, beats) == 0
        absent = integers(rng, 0, 7, beats) == 0
        if not config.has_affine:
            return self.case(config, ports, "random", values, k, binary, absent=absent)
        kind = integers(rng, _NARROW, _LOWER if config.has_offsets else _WIDE, beats)
        kind = torch.where(binary, _NARROW, kind)
        k = torch.where(kind == _NARROW, k, k * 2.0 ** integers(rng, 0, 8, beats).float())
        offsets = integers(rng, -(1 << 15), (1 << 15) - 1, beats).to(torch.int16)
        return self.case(config, ports, "random", values, k, binary, kind, offsets, absent)

    def steady(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> list[Case]:
        """The rate does not depend on the content."""
        return [self.random(config, ports, rng, blocks)]


class _InverseSfpr(Cases):
    def case(self, config: CduConfig, ports: Ports, name: str, q: Tensor, r: Tensor) -> Case:
        """Beats of integers (B, 8) and reciprocals (B,)."""
        values = golden.inverse_sfpr(q.to(torch.int32), r[:, None]).to(DTYPES[config.dtype])
        inputs = words(ports, "i", values=q, scale=bit_patterns(r))
        # q = 0 gives the zero that float32 multiplication gives; its sign is positive because r is.
        expected = words(ports, "o", values=bit_patterns(values))
        return Case(name, {"i": inputs}, {"o": expected}, steady=("i", "o"))

    def corners(self, config: CduConfig, ports: Ports, rng: Random) -> list[Case]:
        """All 256 values with reciprocals of every kind, in the ranges where narrower formats overflow or get subnormal; wide
        integers around every power of two, and the extreme ones.
        """
        every = torch.arange(-128, 128).reshape(-1, 8)
        highest = self._highest_exponent(config)
        spans = {"usual": (-12, 0), "all": (-120, highest - 1), "fp16_overflow": (6, 17), "fp16_subnormal": (-34, -12)}
        cases = []
        for name, (low, high) in spans.items():
            rows = every.repeat(8, 1)[torch.randperm(256, generator=generator(rng))]
            cases.append(
                self.case(config, ports, name, rows, random_scales(rng, config.used_reciprocal_bits, len(rows), low, high))
            )
        edges = torch.tensor([2.0**-120, 2.0**highest]).repeat_interleave(32)
        powers = torch.ldexp(torch.ones(64), torch.arange(64) - 40)
        cases.append(self.case(config, ports, "edges", every.repeat(2, 1), edges))
        cases.append(self.case(config, ports, "powers", every.repeat(2, 1), powers))
        if config.has_affine:
            powers_of_two = 1 << torch.arange(DECODED_BITS)
            near = (powers_of_two[:, None] + torch.arange(-4, 4)).clamp_(max=_greatest(config))
            wide = torch.cat((near, -near)).repeat(4, 1)
            for name, (low, high) in spans.items():
                cases.append(
                    self.case(
                        config,
                        ports,
                        f"wide_{name}",
                        wide,
                        random_scales(rng, config.used_reciprocal_bits, len(wide), low, high),
                    )
                )
            ends = torch.tensor([2.0**-120, 2.0**highest, 1.0, 3.4e-4]).repeat_interleave(len(wide) // 4)
            cases.append(self.case(config, ports, "wide_edges", wide, ends))
        return cases

    def random(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> Case:
        """Random integers and reciprocals."""
        q = integers(rng, -_greatest(config) - int(not config.has_affine), _greatest(config), 8 * blocks, 8)
        small = integers(rng, 0, integer_bits(config) - 1, 8 * blocks, 8)
        return self.case(config, ports, "random", q >> small, random_scales(rng, config.used_reciprocal_bits, len(q), -30, 18))

    def steady(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> list[Case]:
        """The rate does not depend on the content."""
        return [self.random(config, ports, rng, blocks)]

    @staticmethod
    def _highest_exponent(config: CduConfig) -> int:
        return RECIPROCAL_EXPONENT_LIMIT if config.has_affine else SCALE_EXPONENT_LIMIT


def _greatest(config: CduConfig) -> int:
    """The greatest integer that becomes a value."""
    return (1 << (integer_bits(config) - 1)) - 1


SFPR, INVERSE_SFPR = _Sfpr(), _InverseSfpr()
