"""A tensor as the matrix whose rows pass through a unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod

from cdu_tools.texts import extents

from cdu_spec.affine import AffineSettings
from cdu_spec.coding import How, coder_of, head_bytes, known
from cdu_spec.geometry import BLOCK_SIDE, LANES, TILE_BLOCKS, TILE_COLUMNS, VALUE_BITS
from cdu_spec.modes import MASK_BYTES, Dtype, Mode
from cdu_spec.mx import MxSettings

#: Number of views that are held together with their properties.
_MOST_VIEWS = 1 << 12


@dataclass(frozen=True)
class MatrixView:
    """A tensor viewed as the matrix that passes through the unit, rows first.

    ``jpeg-act`` and ``division`` view (N, C, H, W) as (N*C*H, W) (JPEG-ACT, "alignment buffer"); ``actnn`` views any tensor as
    rows of 32 consecutive values, so that a tile holds a group of 256; the other modes, which need no neighbours, use
    (N*C, H*W), so that small maps are not padded. Rows are padded at the right to whole beats of 8 values, the matrix at the
    bottom to whole strips of 8 rows (modes in tiles) or the sequence at its end to whole blocks of 8 beats (modes with
    masks) or 4 (mx). A scale belongs to ``channel_rows`` consecutive rows.

    Parameters
    ----------
    rows, columns
        Size of the matrix without padding (actnn: including the values that fill the last row).
    channels
        Distinct scales; the scale of row r is number ``(r // channel_rows) % channels``.
    channel_rows
        Consecutive rows per scale.
    mode
        The mode whose padding rules apply.
    """

    rows: int
    columns: int
    channels: int
    channel_rows: int
    mode: Mode

    @classmethod
    def of(cls, shape: Sequence[int], mode: Mode) -> MatrixView:
        """Return the view of a tensor of ``shape`` (rank >= 1, no zero extent) in ``mode``.

        Axis 1 is the channel axis of tensors of rank 3 and more. The tensor is one row with one scale if it has no channel
        axis (rank 1 and 2), if its maps have fewer than 8 values, and in ``brc``, ``bypass`` and ``mx`` (no scales of
        channels).
        """
        return _view(tuple(shape), mode)

    @classmethod
    def _of(cls, shape: tuple[int, ...], mode: Mode) -> MatrixView:
        if mode is Mode.ACTNN:
            rows = -(-prod(shape) // TILE_COLUMNS)
            return cls(rows, TILE_COLUMNS, 1, -(-rows // BLOCK_SIDE) * BLOCK_SIDE, mode)
        if mode.in_tiles:
            if len(shape) != 4:
                other = Mode.ACTNN if mode.is_affine else Mode.SFPR
                raise ValueError(f"{mode.label} takes tensors of shape (N, C, H, W), not {extents(shape)}: use {other.label}")
            n, c, h, w = shape
            return cls(n * c * h, w, c, h, mode)
        inner = prod(shape[2:])
        if not mode.is_flat and len(shape) >= 3 and inner >= LANES:
            return cls(shape[0] * shape[1], inner, shape[1], 1, mode)
        return cls(1, prod(shape), 1, 1, mode)

    @cached_property
    def row_beats(self) -> int:
        """Beats of 8 values per padded row."""
        return -(-self.columns // LANES)

    @cached_property
    def padded_rows(self) -> int:
        """Rows including the padding at the bottom."""
        return -(-self.rows // BLOCK_SIDE) * BLOCK_SIDE if self.mode.in_tiles else self.rows

    @cached_property
    def beats(self) -> int:
        """Beats of 8 values of the whole job, all padding included."""
        beats, whole = self.padded_rows * self.row_beats, self.mode.whole_beats
        return -(-beats // whole) * whole

    @cached_property
    def blocks(self) -> int:
        """Blocks of 64 values of the whole job (modes with masks or in tiles)."""
        return self.beats // BLOCK_SIDE

    @cached_property
    def scale_groups(self) -> int:
        """Scales that the job consumes in order, including those of groups that begin in the padding."""
        return -(-self.beats // (self.row_beats * self.channel_rows))

    def payload_bounds(self, dtype: Dtype, how: How = None) -> tuple[int, int]:
        """Return the least and greatest number of payload bytes for this view with values of a number format.

        ``how`` are the settings of the mode; in mode jpeg-act None stands for the coder ZVC.
        """
        if self.mode is Mode.MX:
            size = self.beats // self.mode.whole_beats * known(how, MxSettings).kind.block_bytes
            return size, size
        if self.mode.is_affine:
            settings = known(how, AffineSettings)
            codes = 0 if settings.statistics else self.beats * settings.bits
            if self.mode is Mode.AUTOQUANTZ:
                return self.blocks * MASK_BYTES, self.blocks * MASK_BYTES + codes
            heads = self.blocks // (TILE_BLOCKS if self.mode is Mode.ACTNN else 1) if self.mode.in_tiles else 0
            size = codes + heads * head_bytes(self.mode, settings)
            return size, size
        if self.mode.has_zvc:
            least, most = coder_of(how).block_bounds
            return self.blocks * least, self.blocks * most
        bits = {Mode.BRC: 1, Mode.BYPASS: dtype.bits}.get(self.mode, VALUE_BITS)
        size = self.beats * LANES * bits // 8
        return size, size


@lru_cache(_MOST_VIEWS)
def _view(shape: tuple[int, ...], mode: Mode) -> MatrixView:
    return MatrixView._of(shape, mode)
