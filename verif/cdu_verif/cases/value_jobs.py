"""Jobs of the value side: a matrix of integers with its scales, and the scale and the block of each of its beats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import torch
from actcodec.golden import blocks as arrangement
from actcodec.golden.affine import Ranges
from cdu_spec.coding import How, seed_of
from cdu_spec.geometry import BLOCK_SIDE, LANES, TILE_BLOCKS
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Mode
from torch import Tensor

from cdu_verif.cases.block_streams import Tag
from cdu_verif.content.payloads import how_fields


@dataclass(frozen=True)
class ValueJob:
    """A job and its data: ``values`` (beats, 8), int8 or codes for the back end, and ``scales`` (scale_groups,).

    ``how`` are the settings of the mode; ``offsets`` accompany the scales, int16 (scale_groups,); ``ranges`` of
    the blocks in the order of the payload, (blocks, 1), for the back end.
    """

    view: MatrixView
    bank: int
    values: Tensor
    scales: Tensor
    how: How
    offsets: Tensor
    ranges: Ranges | None = None

    @property
    def descriptor(self) -> dict[str, Any]:
        """Return the fields of :class:`cdu.words.Job`."""
        view = self.view
        counts = {"beats": view.beats, "row_beats": view.row_beats, "channel_rows": view.channel_rows}
        seed = seed_of(self.how)
        return {"mode": int(view.mode), "bank": self.bank, **counts, "how": how_fields(self.how), "seed": seed}

    def tag(self, last: bool) -> dict[str, Any]:
        """Return the fields of :class:`cdu.words.BlockTag`."""
        return Tag(self.view.mode, self.bank, int(last), self.how).fields

    @property
    def tiles(self) -> list[tuple[int, int]]:
        """Return blocks and beats of every tile."""
        view = self.view
        if not view.mode.in_tiles:
            return [(1, min(BLOCK_SIDE, view.beats - start)) for start in range(0, view.beats, BLOCK_SIDE)]
        widths = [min(TILE_BLOCKS, view.row_beats - left) for left in range(0, view.row_beats, TILE_BLOCKS)]
        return [(blocks, BLOCK_SIDE * blocks) for _ in range(view.padded_rows // BLOCK_SIDE) for blocks in widths]


def random_view(rng: Random, modes: Sequence[Mode], size: int) -> MatrixView:
    """Return the view of a random tensor of about ``size`` beats at most, with few or many channels."""
    mode = rng.choice(modes)
    if mode is Mode.ACTNN:
        return MatrixView.of((rng.randint(1, LANES * size),), mode)
    if mode.in_tiles:
        height, width = rng.randint(1, 20), rng.randint(1, 70)
        channels = rng.choice((1, 2, 3, 5, 13))
        rows = max(LANES * size // width // channels, 1)
        return MatrixView.of((rng.randint(1, 2), channels, min(height, rows), width), mode)
    if not mode.has_scales or rng.random() < 0.3:
        return MatrixView.of((rng.randint(1, LANES * size),), mode)
    channels, repeats = rng.randint(1, 11), rng.randint(1, 3)
    columns = max(rng.randint(1, LANES * size) // channels, 1)
    return MatrixView(channels * repeats, columns, channels, rng.choice([rows for rows in (1, repeats) if rows]), mode)


def beat_scales(job: ValueJob, scales: Tensor) -> Tensor:
    """Return the scale of every beat in the order in which beats pass, (beats, 1)."""
    view = job.view
    if view.mode.in_tiles:
        rows = scales[torch.arange(view.padded_rows) // view.channel_rows]
        matrix = rows[:, None].expand(-1, view.row_beats * LANES).contiguous()
        return arrangement.to_beats(matrix, view)[:, :1]
    return scales[torch.arange(view.beats) // (view.row_beats * view.channel_rows), None]


def beat_offsets(job: ValueJob, offsets: Tensor) -> Tensor:
    """Return the offset of every beat, (beats, 1); only in modes without tiles."""
    return offsets[torch.arange(job.view.beats) // (job.view.row_beats * job.view.channel_rows), None]


def blocks_of_beats(view: MatrixView) -> Tensor:
    """Return the number of each beat's block, for beats in the order of the rows of tiles."""
    numbers = torch.arange(-(-view.beats // BLOCK_SIDE))
    if not view.mode.in_tiles:
        return numbers.repeat_interleave(BLOCK_SIDE)[: view.beats]
    matrix = numbers.view(-1, 1, view.row_beats, 1).expand(-1, BLOCK_SIDE, -1, LANES)
    return arrangement.to_beats(matrix.reshape(view.padded_rows, -1).contiguous(), view)[:, 0]


def blockwise(job: ValueJob, beats: Tensor) -> Tensor:
    """Return beats given in the order of the rows of tiles in the order of their blocks."""
    if not job.view.mode.in_tiles:
        return beats
    return arrangement.tiles(arrangement.from_beats(beats, job.view)).reshape(-1, LANES)
