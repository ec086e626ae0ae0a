"""Cases of the coder of GMC, both directions."""

from __future__ import annotations

from random import Random

import torch
from actcodec.golden import gmc
from cdu_spec import gmc as spec
from cdu_spec.coding import ShiftCoding
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES
from cdu_spec.modes import Coder, Mode
from cdu_spec.reconstruction import MAX_POINT
from torch import Tensor

from cdu_verif.cases.block_streams import StreamBlock, Tag, block_rows, slices
from cdu_verif.cases.case import Case, Cases
from cdu_verif.content.values import corner_blocks, generator, integers, mixed_blocks
from cdu_verif.simulation.ports import Ports

_GROUPS = 2
#: Greatest length of a block in bytes without a lost cycle.
DENSEST_AT_RATE = 30
#: Greatest number of cycles of a block, instead of 8, in a sequence of such blocks.
MOST_CYCLES = 13


def tag(last: bool, bank: int = 0, point: int = 0) -> Tag:
    """Return the tag of a block of GMC."""
    return Tag(Mode.JPEG_ACT, bank, int(last), ShiftCoding(Coder.GMC, point))


def job(blocks: Tensor, bank: int = 0, point: int = 0) -> list[StreamBlock]:
    """Return the blocks of a job of coefficients (n, 8, 8)."""
    payload, lengths = gmc.encode(blocks.to(torch.int8))
    parts = torch.split(payload, lengths.tolist())
    return [
        StreamBlock(tag(number == len(blocks) - 1, bank, point), rows.to(torch.int8), bytes(part.tolist()))
        for number, (rows, part) in enumerate(zip(blocks, parts, strict=True))
    ]


def decaying_blocks(rng: Random, count: int) -> Tensor:
    """Return blocks (count, 8, 8) like those of activations: smaller at higher frequencies, each block of its own size."""
    uniform = torch.rand(count, 8, 8, generator=generator(rng)).clamp(1e-6, 1 - 1e-6) - 0.5
    noise = -uniform.sign() * (1 - 2 * uniform.abs()).log()  # Laplace's distribution
    frequency = torch.arange(8)[:, None] + torch.arange(8)
    size = torch.exp2(integers(rng, -2, 4, count).float())[:, None, None]
    blocks: Tensor = (noise * size * torch.exp(-frequency / 3)).round().clamp(-128, 127).to(torch.int64)
    return blocks


def class_paths(rng: Random) -> Tensor:
    """Return blocks in which every pair of classes of a column follows every other."""
    pairs = torch.cartesian_prod(torch.arange(spec.RAW_CLASS + 1), torch.arange(spec.RAW_CLASS + 1))
    first, second = (
        part.flatten() for part in torch.meshgrid(torch.arange(len(pairs)), torch.arange(len(pairs)), indexing="ij")
    )
    columns = torch.stack((pairs[first], pairs[second]), 1).reshape(-1, BLOCK_SIDE, _GROUPS)
    return _of_classes(rng, columns[torch.randperm(len(columns), generator=generator(rng))])


def _of_classes(rng: Random, classes: Tensor) -> Tensor:
    """Return blocks (n, 8, 8) whose groups have these classes (n, 8, 2)."""
    most = torch.tensor([0, *(1 << number - 1 for number in spec.CODED_CLASSES), 128])[classes][..., None]
    shape = (*classes.shape, spec.GROUP_VALUES)
    sign = 1 - 2 * integers(rng, 0, 1, *shape)
    values = (torch.rand(shape, generator=generator(rng)) * (most + 1)).floor().to(torch.int64) * sign
    # One coefficient of each group has the magnitude that its class needs.
    largest = torch.nn.functional.one_hot(integers(rng, 0, spec.GROUP_VALUES - 1, *classes.shape), spec.GROUP_VALUES).bool()
    return torch.where(largest, most * sign, values).clamp(-128, 127).reshape(-1, BLOCK_SIDE, BLOCK_SIDE)


def random_job(rng: Random, blocks: int) -> list[StreamBlock]:
    """Return a job with content of every kind, any bank and reconstruction point."""
    content = decaying_blocks(rng, blocks) if rng.randrange(2) else mixed_blocks(rng, -128, 127, blocks)
    return job(content, rng.randint(0, 1), rng.randint(0, MAX_POINT))


def any_bytes(rng: Random, count: int) -> list[StreamBlock]:
    """Return blocks of bytes that no encoder writes, with all heads among them, and their decoded values."""
    heads = [(rng.randrange(256) if number >= 256 else number) for number in range(count)]
    packed = []
    for head in heads:
        length = spec.block_bytes(head) - 1
        kind = rng.randrange(3)
        body = bytes(rng.randrange(256) if kind == 0 or rng.randrange(4) < kind else 255 * (kind - 1) for _ in range(length))
        packed.append(bytes([head]) + body)
    decoded = gmc.decode(torch.tensor(list(b"".join(packed)), dtype=torch.uint8), count)
    return [
        StreamBlock(tag(number == count - 1, point=MAX_POINT), rows.reshape(BLOCK_SIDE, BLOCK_SIDE), part)
        for number, (rows, part) in enumerate(zip(decoded, packed, strict=True))
    ]


class _Coder(Cases):
    """Cases of the encoder, or reversed those of the decoder."""

    def __init__(self, decoder: bool) -> None:
        self.decoder = decoder

    def case(self, ports: Ports, name: str, blocks: list[StreamBlock], cycles: int | None = None) -> Case:
        """Return a case of blocks of one job or several."""
        if self.decoder:
            inputs, expected, steady = {"i": slices(ports, "i", blocks)}, {"o": block_rows(ports, "o", blocks)}, ("o",)
        else:
            inputs, expected, steady = {"i": block_rows(ports, "i", blocks)}, {"o": slices(ports, "o", blocks)}, ("i",)
        return Case(name, inputs, expected, steady=() if cycles else steady, cycles=cycles)

    def corners(self, config: CduConfig, ports: Ports, rng: Random) -> list[Case]:
        """Return directed blocks; every DC; every class after every other; every head; bytes that no encoder writes."""
        every_dc = torch.zeros(256, BLOCK_VALUES, dtype=torch.int64)
        every_dc[:, 0] = torch.arange(-128, 128)
        contents = {
            **corner_blocks(-128, 127),
            "every_dc": every_dc.view(-1, BLOCK_SIDE, BLOCK_SIDE),
            "class_paths": class_paths(rng),
        }
        cases = [self.case(ports, name, job(blocks)) for name, blocks in contents.items()]
        cases.append(
            self.case(
                ports, "jobs_of_one_block", [one for blocks in mixed_blocks(rng, -8, 7, 16) for one in job(blocks[None], 1)]
            )
        )
        return [*cases, self.case(ports, "any_bytes", any_bytes(rng, 768))] if self.decoder else cases

    def random(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> Case:
        """Return content of every kind, in one job or several."""
        found: list[StreamBlock] = []
        while len(found) < blocks:
            found += random_job(rng, rng.randint(1, blocks - len(found)))
        return self.case(ports, "random", found)

    def steady(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> list[Case]:
        """Return content like that of activations, which loses no cycle, and the longest blocks, which take longer."""
        candidates = job(decaying_blocks(rng, 16 * blocks))
        usual = torch.stack([block.rows for block in candidates if len(block.packed) <= DENSEST_AT_RATE][:blocks])
        zeros = torch.zeros(blocks, BLOCK_SIDE, BLOCK_SIDE, dtype=torch.int64)
        dense = job(zeros - 128)
        return [
            self.case(ports, "decaying", job(usual)),
            self.case(ports, "zeros", job(zeros)),
            self.case(ports, "longest", dense, MOST_CYCLES * blocks),
        ]


GMC_ENCODER, GMC_DECODER = _Coder(decoder=False), _Coder(decoder=True)
