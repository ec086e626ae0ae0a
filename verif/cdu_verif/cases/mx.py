"""Cases of the encoder and the decoder of MX."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import torch
from actcodec.golden import mx
from cdu_spec.config import CduConfig
from cdu_spec.geometry import LANES
from cdu_spec.modes import Mode
from cdu_spec.mx import MX_FORMATS, MX_VALUES, SCALE_BYTES, SCALE_NAN, BlockFormat, MxSettings, ScaleRule
from torch import Tensor

from cdu_verif.cases.block_streams import StreamBlock, Tag
from cdu_verif.cases.case import Case, Cases
from cdu_verif.content.values import generator, integers, words
from cdu_verif.simulation.ports import Ports

_ROWS = MX_VALUES // LANES
#: A format, the rule of the scale, and blocks (n, 32) of float32.
_Part = tuple[BlockFormat, ScaleRule, Tensor]
_CHOICES = [(kind, rule) for kind in MX_FORMATS.values() for rule in ScaleRule]


def _coded_rows(
    ports: Ports, stream: str, parts: Iterable[tuple[BlockFormat, Tensor]], behind: Tensor | None = None
) -> list[int]:
    """Return blocks as bytes, (n, kind.block_bytes), as words of :class:`cdu.parts.mx_words.CodedRow`.

    Rows that head a block have its scale; ``behind`` are bytes (rows, 9) for unused places, by default zeros.
    """
    found: list[int] = []
    for kind, blocks in parts:
        scales, bodies = blocks[:, 0], blocks[:, 1:].reshape(-1, kind.bits)
        codes = torch.zeros(len(bodies), LANES, dtype=torch.uint8)
        heads = (torch.arange(len(bodies)) % _ROWS == 0).to(torch.int64)
        scale = scales.repeat_interleave(_ROWS).to(torch.int64) * heads
        if behind is not None:
            codes, scale = (
                behind[: len(bodies), 1:].clone(),
                torch.where(heads == 1, scale, behind[: len(bodies), 0].to(torch.int64)),
            )
        codes[:, : kind.bits] = bodies
        found += words(ports, stream, scale=scale, codes=codes, heads=heads, format=torch.full_like(heads, kind.number))
    return found


def _values(ports: Ports, stream: str, blocks: Tensor, **fields: Tensor) -> list[int]:
    """Return float32 (n, 32) as rows of bit patterns."""
    patterns = blocks.view(torch.int32).view(-1, LANES).to(torch.int64) & 0xFFFFFFFF
    return words(ports, stream, values=patterns, **fields)


def _random_blocks(rng: Random, count: int) -> Tensor:
    """Return blocks of float32 of very different kinds: any patterns, one octave, many octaves, sparse, integers, subnormal."""
    patterns = integers(rng, -(1 << 31), (1 << 31) - 1, count, MX_VALUES).to(torch.int32).view(torch.float32)
    noise = torch.randn(count, MX_VALUES, generator=generator(rng))
    scale = torch.exp2(integers(rng, -100, 100, count, 1).float())
    spread = torch.exp2(-integers(rng, 0, 20, count, MX_VALUES).float())
    sparse = noise * (integers(rng, 0, 7, count, MX_VALUES) == 0)
    whole = integers(rng, -128, 128, count, MX_VALUES).float() / 8
    tiny = integers(rng, -(1 << 25), 1 << 25, count, MX_VALUES).to(torch.int32).abs().view(torch.float32)
    kinds = torch.stack((patterns, noise * scale, noise * scale * spread, sparse * scale, whole, tiny))
    return kinds[integers(rng, 0, len(kinds) - 1, count), torch.arange(count)]


def _special_blocks() -> Tensor:
    """Return zeros of both signs, infinity and NaN in every lane, the extremes of float32."""
    blocks = [torch.zeros(1, MX_VALUES), torch.full((1, MX_VALUES), -0.0)]
    base = torch.linspace(-2, 2, MX_VALUES)
    for special in (torch.inf, -torch.inf, torch.nan, -torch.nan):
        one = base.repeat(LANES, 1)
        one[torch.arange(LANES), torch.arange(LANES) * 5 % MX_VALUES] = special
        blocks.append(one)
    limits = torch.finfo(torch.float32)
    for most in (limits.max, -limits.max, limits.tiny, limits.smallest_normal / 2, 2.0**-149):
        blocks.append(torch.full((1, MX_VALUES), most))
        blocks.append(most * torch.exp2(-torch.arange(MX_VALUES).float())[None])
    return torch.cat(blocks)


def _tie_blocks(kind: BlockFormat) -> Tensor:
    """Return every number of a format, the middles between two and the floats beside, with signs; four greatest numbers."""
    numbers = mx.numbers(kind)
    numbers = torch.unique(numbers[numbers.isfinite()])
    middles = (numbers[1:] + numbers[:-1]) / 2
    up, down = (middles.nextafter(torch.tensor(end)) for end in (torch.inf, -torch.inf))
    points = torch.cat((numbers, middles, up, down))
    rows = torch.nn.functional.pad(points, (0, -len(points) % (MX_VALUES - 1))).view(-1, MX_VALUES - 1)
    greatest = numbers[-1]
    tops = (greatest, greatest.nextafter(torch.tensor(torch.inf)), torch.tensor(2.0**kind.emax), greatest * 2)
    return torch.cat([torch.cat((top.expand(len(rows), 1), rows.clamp(-top, top)), 1) for top in tops])


def coded_job(config: CduConfig, rng: Random, words: int) -> list[StreamBlock]:
    """Return a job of mode mx with any format, rule and content in the splitter's form: ``config.mx_rows`` rows at a time.

    If these are more rows than a block has, the last ones may be a single block.
    """
    settings = MxSettings(rng.choice(list(MX_FORMATS)), rng.choice(list(ScaleRule)))
    rows = words * config.mx_rows
    blocks = -(-rows // _ROWS) - (config.mx_rows > _ROWS and rng.randrange(2))
    coded = mx.encode(_random_blocks(rng, blocks), settings.kind, settings.rule)
    bank, packed = rng.randint(0, 1), []
    for begin in range(0, blocks * _ROWS, config.mx_rows):
        count = min(config.mx_rows, blocks * _ROWS - begin)
        first, place = divmod(begin, _ROWS)
        if count >= _ROWS:
            part = coded[first : first + count // _ROWS].reshape(-1)
        else:
            size = count * settings.kind.bits
            start = SCALE_BYTES + place * settings.kind.bits
            part = coded[first, start - SCALE_BYTES * (place == 0) : start + size]
        ends = begin + count == blocks * _ROWS
        tag = Tag(Mode.MX, bank, int(ends), settings, int(place == 0))
        packed.append(StreamBlock(tag, torch.zeros(count, LANES, dtype=torch.int8), bytes(part.tolist())))
    return packed


class _Encoder(Cases):
    def case(self, ports: Ports, name: str, parts: list[_Part]) -> Case:
        """Return a case of blocks of several formats one after the other."""
        inputs: list[int] = []
        for kind, rule, blocks in parts:
            rows = torch.ones(len(blocks) * _ROWS, dtype=torch.int64)
            inputs += _values(ports, "i", blocks, format=kind.number * rows, rceil=int(rule is ScaleRule.RCEIL) * rows)
        coded = [(kind, mx.encode(blocks, kind, rule)) for kind, rule, blocks in parts]
        return Case(name, {"i": inputs}, {"o": _coded_rows(ports, "o", coded)}, steady=("i", "o"))

    def corners(self, config: CduConfig, ports: Ports, rng: Random) -> list[Case]:
        """Return ties, the edges of scales, NaN, infinity and extremes, by every format and rule; scales at both ends."""
        made = []
        for name, kind in MX_FORMATS.items():
            for rule in ScaleRule:
                blocks = torch.cat((_tie_blocks(kind), _special_blocks(), _tie_blocks(kind)[::3] * 2.0**-120))
                made.append(self.case(ports, f"{name}_{rule.value}", [(kind, rule, blocks)]))
        return made

    def random(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> Case:
        """Return blocks of any content, each with a format and a rule of its own."""
        return self.case(ports, "random", [(*rng.choice(_CHOICES), _random_blocks(rng, 1)) for _ in range(2 * blocks)])

    def steady(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> list[Case]:
        """Return any content, as the rate does not depend on it."""
        return [self.random(config, ports, rng, blocks)]


class _Decoder(Cases):
    def case(self, ports: Ports, name: str, parts: list[tuple[BlockFormat, Tensor]], behind: Tensor | None = None) -> Case:
        """Return a case of blocks as bytes of several formats one after the other."""
        outputs: list[int] = []
        for kind, blocks in parts:
            outputs += _values(ports, "o", mx.decode(blocks, kind))
        return Case(name, {"i": _coded_rows(ports, "i", parts, behind)}, {"o": outputs}, steady=("i", "o"))

    def corners(self, config: CduConfig, ports: Ports, rng: Random) -> list[Case]:
        """Return every code with scales at both ends and in the middle."""
        made = []
        near = [*range(0, 34), *range(120, 134), *range(240, SCALE_NAN + 1)]
        for name, kind in MX_FORMATS.items():
            count = max(1 << kind.bits, MX_VALUES)
            codes = (torch.arange(count) % (1 << kind.bits)).to(torch.uint8).repeat(len(near), 1).view(-1, MX_VALUES)
            scales = torch.tensor(near, dtype=torch.uint8).repeat_interleave(count // MX_VALUES)
            made.append(self.case(ports, name, [(kind, mx.with_scales(scales, codes, kind))]))
        return made

    def random(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> Case:
        """Return any bytes, each block in a format of its own; random bytes in unused places."""
        parts = []
        for _ in range(2 * blocks):
            kind = rng.choice(list(MX_FORMATS.values()))
            parts.append((kind, integers(rng, 0, 255, 1, kind.block_bytes).to(torch.uint8)))
        return self.case(ports, "random", parts, integers(rng, 0, 255, _ROWS, 1 + LANES).to(torch.uint8))

    def steady(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> list[Case]:
        """Return any content, as the rate does not depend on it."""
        return [self.random(config, ports, rng, blocks)]


MX_ENCODER, MX_DECODER = _Encoder(), _Decoder()
