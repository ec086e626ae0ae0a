"""Cases of the range finder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import torch
from actcodec.golden import blocks as arrangement
from actcodec.golden.affine import Ranges
from actcodec.golden.block_statistics import block_mean, least_and_greatest
from cdu.delivery.blocks import ranged
from cdu_spec.affine import BASE_BITS, CODE_BITS, AffineSettings
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES, LANES, TILE_BLOCKS
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Mode
from cdu_spec.port_fields import pack
from torch import Tensor

from cdu_verif.cases.block_streams import Tag, random_settings
from cdu_verif.cases.case import Case
from cdu_verif.cases.jobs import JobCases
from cdu_verif.content.values import integers
from cdu_verif.simulation.ports import Ports

_LEAST, _MOST = -(1 << (BASE_BITS - 1)), (1 << (BASE_BITS - 1)) - 1
#: Cycles from the first word in to the first range out, and between the last ones.
_LATENCY = 12


@dataclass(frozen=True)
class _Job:
    """The padded matrix of a job (int16), in modes without tiles with one beat per row."""

    view: MatrixView
    settings: AffineSettings | None
    matrix: Tensor
    has_ends: bool  #: whether ranges come with least and greatest value

    @property
    def ranges(self) -> list[dict[str, Any]]:
        """Return golden fields of :class:`cdu.alignment.range_finder.BlockRange` of all blocks that have a range."""
        settings = self.settings
        if settings is None or self.view.mode not in (Mode.DIVISION, Mode.ACTNN):
            return []
        blocks = arrangement.tiles(self.matrix).reshape(-1, BLOCK_VALUES)
        group = TILE_BLOCKS if self.view.mode is Mode.ACTNN else 1
        least, most = least_and_greatest(blocks.reshape(-1, group * BLOCK_VALUES))
        found = Ranges.found(least, most, settings.bits)
        by_channel = self.view.mode is Mode.DIVISION and not settings.block_range
        low = block_mean(blocks) if by_channel else least
        parts = (part.repeat_interleave(group).tolist() for part in (low, found.mantissa, found.exponent, least, most))
        return [
            {
                "range": {"low": low, "mantissa": mantissa, "exponent": exponent},
                "heads": int(number % group == 0),
                **({"least": least, "most": most} if self.has_ends else {}),
            }
            for number, (low, mantissa, exponent, least, most) in enumerate(zip(*parts, strict=True))
        ]

    def words(self, port: dict[str, Any]) -> list[int]:
        """Return words in the order of the rows of every tile."""
        view = self.view
        sizes = {entry["name"]: entry["count"] for entry in port["fields"]}
        per_word = sizes["values"] // LANES
        if view.mode.in_tiles:
            beats = arrangement.to_beats(self.matrix, view)
            widths = [min(TILE_BLOCKS, view.row_beats - left) for left in range(0, view.row_beats, TILE_BLOCKS)]
            tiles = [(width, BLOCK_SIDE * width) for _ in range(view.padded_rows // BLOCK_SIDE) for width in widths]
        else:
            beats = self.matrix
            tiles = [(1, min(BLOCK_SIDE, len(beats) - start)) for start in range(0, len(beats), BLOCK_SIDE)]
        result, begin = [], 0
        for number, (blocks, size) in enumerate(tiles):
            tag = Tag(view.mode, 0, int(number == len(tiles) - 1), self.settings).fields
            for start in range(begin, begin + size, per_word):
                part = beats[start : min(start + per_word, begin + size)].flatten().tolist()
                fields = {"count": len(part) // LANES, "ends": int(start + per_word >= begin + size), "blocks": blocks}
                result.append(pack(port, {"values": part + [0] * (sizes["values"] - len(part)), "tag": tag, **fields}))
            begin += size
        return result


def _content(rng: Random, rows: int, columns: int) -> Tensor:
    """Return rows of int16: whole rows of blocks with values anywhere, near each other, equal, or at the ends."""
    spread = rng.choice((0, 1, 2, 3, 14, 15, 16, 254, 255, 256, rng.randint(257, 4000), 65534, 65535))
    middle = rng.randint(_LEAST, _MOST)
    near = (middle + integers(rng, 0, spread, rows, columns)).clamp(_LEAST, _MOST)
    ends = torch.where(integers(rng, 0, 1, rows, columns) == 0, _LEAST, _MOST)
    return rng.choice((near, near, near, ends)).to(torch.int16)


class _RangeFinder(JobCases[tuple[MatrixView, AffineSettings | None]]):
    def built(self, config: CduConfig) -> CduConfig:
        """Return the configuration with modes whose blocks have ranges."""
        return ranged(config)

    def matrix(self, rng: Random, view: MatrixView) -> Tensor:
        """Return the padded matrix of a job, each strip with a content of its own kind."""
        if not view.mode.in_tiles:
            return integers(rng, -128, 127, view.beats, LANES).to(torch.int16)
        columns = LANES * view.row_beats
        strips = [_content(rng, BLOCK_SIDE, columns) for _ in range(view.padded_rows // BLOCK_SIDE)]
        return torch.cat(strips)

    def case(
        self, config: CduConfig, ports: Ports, rng: Random, name: str, jobs: Sequence[tuple[MatrixView, AffineSettings | None]]
    ) -> Case:
        """Return a case with words in, the same words and ranges out."""
        has_ends = Mode.DIVISION in config.built_modes
        made = [_Job(view, settings, self.matrix(rng, view), has_ends) for view, settings in jobs]
        words = [word for job in made for word in job.words(dict(ports["i__payload"]))]
        ranges = [pack(dict(ports["ranges__payload"]), found) for job in made for found in job.ranges]
        return Case(name, {"i": words}, {"o": words, "ranges": ranges}, cycles=len(words) + _LATENCY)

    def corner_jobs(self, config: CduConfig, rng: Random) -> Mapping[str, Sequence[tuple[MatrixView, AffineSettings | None]]]:
        """Return every width of 1 to 9 blocks with every number of bits; groups; other modes in between."""
        found: dict[str, Sequence[tuple[MatrixView, AffineSettings | None]]] = {}
        for bits in CODE_BITS:
            by_block, by_channel = AffineSettings(bits, 0, block_range=True), AffineSettings(bits, 1)
            if Mode.DIVISION in config.built_modes:
                found[f"division_{bits}_bits"] = [
                    (_strips(Mode.DIVISION, width, 2), settings)
                    for width in range(1, 10)
                    for settings in (by_block, by_channel)
                ]
            if Mode.ACTNN in config.built_modes:
                found[f"actnn_{bits}_bits"] = [(_groups(count), AffineSettings(bits)) for count in (1, 2, 24)]
        found["mixed"] = [job for blocks in range(1, 9) for job in self.random_jobs(config, rng, blocks)]
        return found

    def random_jobs(self, config: CduConfig, rng: Random, blocks: int) -> Sequence[tuple[MatrixView, AffineSettings | None]]:
        """Return jobs of all modes with random sizes."""
        jobs = []
        while blocks > 0:
            size = rng.randint(1, blocks)
            mode = rng.choice([mode for mode in config.built_modes if mode is not Mode.BYPASS])
            if mode is Mode.ACTNN:
                view = _groups(-(-size // TILE_BLOCKS))
            elif mode.in_tiles:
                width = rng.randint(1, 13)
                view = _strips(mode, width, max(size // width, 1))
            else:
                short = 0 if mode.has_zvc else rng.randrange(BLOCK_SIDE)
                view = MatrixView(1, LANES * (BLOCK_SIDE * size - short), 1, 1, mode)
            jobs.append((view, random_settings(rng, mode)))
            blocks -= size
        return jobs

    def steady_jobs(
        self, config: CduConfig, rng: Random, blocks: int
    ) -> Mapping[str, Sequence[tuple[MatrixView, AffineSettings | None]]]:
        """Return every width, and groups; three equal jobs each."""
        third = blocks // 3
        found: dict[str, Sequence[tuple[MatrixView, AffineSettings | None]]] = {}
        if Mode.DIVISION in config.built_modes:
            for width in range(1, 10):
                found[f"{width}_blocks"] = [(_strips(Mode.DIVISION, width, third // width), AffineSettings(2, 1))] * 3
        if Mode.ACTNN in config.built_modes:
            found["groups"] = [(_groups(third // TILE_BLOCKS), AffineSettings(2))] * 3
        return found


def _strips(mode: Mode, row_beats: int, strips: int) -> MatrixView:
    return MatrixView(BLOCK_SIDE * strips, LANES * row_beats, 1, 1, mode)


def _groups(count: int) -> MatrixView:
    return _strips(Mode.ACTNN, TILE_BLOCKS, count)


RANGE_FINDER = _RangeFinder()
