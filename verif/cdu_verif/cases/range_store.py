"""Cases of the store of ranges beside the alignment buffer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import torch
from cdu_spec.affine import BASE_BITS, MANTISSA_BITS, MAX_EXPONENT
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, LANES, TILE_BLOCKS
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Mode
from cdu_spec.port_fields import pack, unpack
from torch import Tensor

from cdu_verif.cases.block_streams import Tag
from cdu_verif.cases.case import Case
from cdu_verif.cases.jobs import JobCases
from cdu_verif.cases.value_jobs import blocks_of_beats
from cdu_verif.content.values import integers
from cdu_verif.simulation.ports import Ports

#: Cycles from the first word in to the first word out, and between the last ones.
_LATENCY = 8


@dataclass(frozen=True)
class _Job:
    """A job: the block of each beat, in the order of both sides; the blocks of its tiles; ranges of its blocks.

    ``shared`` (blocks,) is the block whose range a block has.
    """

    view: MatrixView
    by_blocks: Tensor
    by_rows: Tensor
    shared: Tensor
    tiles: list[int]
    ranges: list[dict[str, int]]
    values: Tensor

    @classmethod
    def of(cls, rng: Random, view: MatrixView) -> _Job:
        """Return a job with random values and ranges."""
        count = -(-view.beats // BLOCK_SIDE)
        numbers = torch.arange(count)
        tiles = [1] * count
        by_blocks = by_rows = numbers.repeat_interleave(BLOCK_SIDE)[: view.beats]
        if view.mode.in_tiles:
            by_rows = blocks_of_beats(view)
            strips = view.padded_rows // BLOCK_SIDE
            widths = [min(TILE_BLOCKS, view.row_beats - left) for left in range(0, view.row_beats, TILE_BLOCKS)]
            tiles = widths * strips
        shared = numbers // TILE_BLOCKS * TILE_BLOCKS if view.mode is Mode.ACTNN else numbers
        low = integers(rng, -(1 << (BASE_BITS - 1)), (1 << (BASE_BITS - 1)) - 1, count).tolist()
        mantissa = integers(rng, 0, (1 << MANTISSA_BITS) - 1, count).tolist()
        exponent = integers(rng, 0, MAX_EXPONENT, count).tolist()
        ranges = [{"low": a, "mantissa": b, "exponent": c} for a, b, c in zip(low, mantissa, exponent, strict=True)]
        return cls(view, by_blocks, by_rows, shared, tiles, ranges, integers(rng, -128, 127, view.beats, LANES))

    def words(self, ports: Ports, stream: str, rowwise: bool) -> list[int]:
        """Return words of a side, with the range of their block or the ranges of their beats if the stream has them."""
        port = dict(ports[f"{stream}__payload"])
        fields = {entry["name"]: entry["count"] for entry in port["fields"]}
        per_word = fields["values"] // LANES
        blocks = self.by_rows if rowwise else self.by_blocks
        result, begin = [], 0
        for number, width in enumerate(self.tiles):
            rows = min(BLOCK_SIDE, self.view.beats - begin)
            units = [width] if rowwise else [1] * width
            for unit in units:
                end = begin + rows * unit
                for start in range(begin, end, per_word):
                    own = slice(start, min(start + per_word, end))
                    content = self.values[own].flatten().tolist()
                    word: dict[str, Any] = {
                        "values": content + [0] * (fields["values"] - len(content)),
                        "count": len(content) // LANES,
                        "ends": int(own.stop == end),
                        "tag": self._tag(number == len(self.tiles) - 1),
                        "blocks": width,
                    }
                    if "range" in fields:
                        word["range"] = self.ranges[int(blocks[start])]
                    if "ranges" in fields:
                        word["ranges"] = self._ranges(blocks[own], fields["ranges"])
                    result.append(pack(port, word))
                begin = end
        return result

    def _tag(self, last: bool) -> dict[str, Any]:
        return Tag(self.view.mode, 0, int(last)).fields

    def _ranges(self, blocks: Tensor, per_word: int) -> Any:
        """Return ranges of the beats of a word, zeros where they are undefined."""
        nothing = {"low": 0, "mantissa": 0, "exponent": 0}
        found = [self.ranges[block] for block in self.shared[blocks].tolist()]
        if not self.view.mode.has_ranges:
            found = []
        found += [nothing] * (per_word - len(found))
        return found if per_word > 1 else found[0]


class _RangeStore(JobCases[MatrixView]):
    def case(self, config: CduConfig, ports: Ports, rng: Random, name: str, jobs: Sequence[MatrixView]) -> Case:
        """Return a case with blocks and ranges to the buffer, and raster words from the buffer that leave with their ranges."""
        made = [_Job.of(rng, view) for view in jobs]
        inputs: dict[str, list[int]] = {"i": [], "from_alignment": []}
        expected: dict[str, list[int]] = {"to_alignment": [], "o": []}
        for job in made:
            inputs["i"] += job.words(ports, "i", rowwise=False)
            inputs["from_alignment"] += job.words(ports, "from_alignment", rowwise=True)
            expected["to_alignment"] += job.words(ports, "to_alignment", rowwise=False)
            expected["o"] += job.words(ports, "o", rowwise=True)
        widest = TILE_BLOCKS * BLOCK_SIDE // config.port_beats
        return Case(name, inputs, expected, cycles=len(expected["o"]) + widest + _LATENCY)

    def corner_jobs(self, config: CduConfig, rng: Random) -> Mapping[str, Sequence[MatrixView]]:
        """Return every width of 1 to 9 blocks; modes without ranges in between; blocks of every number of rows."""
        widths = [_strips(Mode.DIVISION, blocks, strips) for blocks in range(1, 10) for strips in (1, 2)]
        heights = [_sequence(Mode.SFPR, beats) for beats in range(1, 2 * BLOCK_SIDE + 1)]
        mixed = [view for pair in zip(widths, heights, strict=False) for view in (*pair, _groups(2))]
        return {"widths": widths, "groups": [_groups(1), _groups(5)], "heights": heights, "mixed": mixed}

    def random_jobs(self, config: CduConfig, rng: Random, blocks: int) -> Sequence[MatrixView]:
        """Return jobs of both kinds with random sizes."""
        views = []
        while blocks > 0:
            size = rng.randint(1, blocks)
            width = rng.randint(1, 13)
            views.append(
                rng.choice(
                    (
                        _strips(rng.choice((Mode.DIVISION, Mode.JPEG_ACT)), width, max(size // width, 1)),
                        _groups(max(size // TILE_BLOCKS, 1)),
                        _sequence(rng.choice((Mode.SFPR, Mode.AUTOQUANT)), BLOCK_SIDE * size - rng.randrange(BLOCK_SIDE)),
                    )
                )
            )
            blocks -= size
        return views

    def steady_jobs(self, config: CduConfig, rng: Random, blocks: int) -> Mapping[str, Sequence[MatrixView]]:
        """Return every width; groups; single blocks."""
        third = blocks // 3
        return {
            **{f"{width}_blocks": [_strips(Mode.DIVISION, width, third // width)] * 3 for width in range(1, 10)},
            "groups": [_groups(third // TILE_BLOCKS)] * 3,
            "single_blocks": [_sequence(Mode.SFPR, BLOCK_SIDE * third)] * 3,
        }

    def defined(self, stream: str, port: Mapping[str, Any], received: list[int]) -> list[int]:
        """Return zeros for ranges behind ``count`` and in modes without ranges, which are undefined."""
        if stream != "o":
            return received
        result = []
        for word in received:
            value = unpack(dict(port), word)
            ranges = value["ranges"] if isinstance(value["ranges"], list) else [value["ranges"]]
            known = value["count"] if Mode(value["tag"]["mode"]).has_ranges else 0
            nothing = {"low": 0, "mantissa": 0, "exponent": 0}
            cut = [own if place < known else nothing for place, own in enumerate(ranges)]
            result.append(pack(dict(port), value | {"ranges": cut if len(cut) > 1 else cut[0]}))
        return result


def _strips(mode: Mode, row_beats: int, strips: int) -> MatrixView:
    return MatrixView(BLOCK_SIDE * strips, LANES * row_beats, 1, 1, mode)


def _groups(count: int) -> MatrixView:
    return _strips(Mode.ACTNN, TILE_BLOCKS, count)


def _sequence(mode: Mode, beats: int) -> MatrixView:
    return MatrixView(1, LANES * beats, 1, 1, mode)


RANGE_STORE = _RangeStore()
