"""Jobs: a job is one tensor in the form that a unit takes."""

from __future__ import annotations

from dataclasses import dataclass

from cdu_spec.affine import BASE_BITS
from cdu_spec.coding import How, ShiftCoding, checked, coder_of
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES, LANES, SHIFT_BITS
from cdu_spec.modes import Dtype, Mode
from cdu_spec.mx import MxSettings
from cdu_spec.register_types import COUNT_BITS
from cdu_tools.errors import UserError

SCALE_BYTES = Dtype.FP32.bits // 8
OFFSET_BYTES = BASE_BITS // 8


@dataclass(frozen=True)
class Job:
    """A job with its data, in the terms of docs/reference/bitstream.md, section 2.

    Parameters
    ----------
    mode
        Kind of the payload.
    beats, row_beats, channel_rows
        Rows of 8 values of the whole job, padding included; the same per row of the matrix; matrix rows per scale.
    data
        Compression: ``beats`` rows of 8 values, little endian, in the order of the jobs. Decompression: the payload, and
        with ``crc`` its CRC-32.
    scales
        Little-endian float32 numbers, one for every ``channel_rows`` rows; multipliers when compressing, reciprocals when
        decompressing. Empty in modes without scales.
    shifts
        64 shifts (0..7) in the order of the payload; empty in modes other than jpeg-act. Compression with shifts below 3 may
        saturate coefficients: tables (:func:`cdu_spec.dqt.shifts`) have none.
    how
        Settings of the mode: ShiftCoding in mode jpeg-act (None: coder ZVC, point 0), AffineSettings in affine modes,
        MxSettings in mode mx, None in the other modes. Compression does not use a reconstruction point.
    offsets
        Little-endian int16 numbers, one per scale; empty in modes other than blpa.
    crc
        True if four bytes with the CRC-32 follow the payload: compression adds them, decompression checks them.

    Raises UserError for parameters that no unit could run.
    """

    mode: Mode
    beats: int
    row_beats: int
    channel_rows: int
    data: bytes | memoryview
    scales: bytes | memoryview = b""
    shifts: tuple[int, ...] = ()
    how: How = None
    offsets: bytes | memoryview = b""
    crc: bool = False

    def __post_init__(self) -> None:
        for name in ("beats", "row_beats", "channel_rows"):
            value = getattr(self, name)
            if not 1 <= value < 1 << COUNT_BITS:
                raise UserError(f"{name} = {value} is not allowed: use 1 to {(1 << COUNT_BITS) - 1}")
        whole = self.mode.whole_beats * (self.row_beats if self.mode.in_tiles else 1)
        if self.beats % whole:
            raise UserError(f"beats = {self.beats} is not allowed in mode {self.mode.label}: use a multiple of {whole}")
        if self.mode.has_dct and not (len(self.shifts) == BLOCK_VALUES and all(0 <= s < 1 << SHIFT_BITS for s in self.shifts)):
            raise UserError(f"mode {self.mode.label} takes {BLOCK_VALUES} shifts from 0 to {(1 << SHIFT_BITS) - 1}")
        if self.shifts and not self.mode.has_dct:
            raise UserError(f"mode {self.mode.label} takes no shifts: leave them out")
        groups = -(-self.beats // (self.row_beats * self.channel_rows)) if self.mode.has_scales else 0
        if memoryview(self.scales).nbytes != groups * SCALE_BYTES:
            raise UserError(
                f"{memoryview(self.scales).nbytes} bytes of scales do not fit this job: it has {groups} of {SCALE_BYTES} bytes"
            )
        offsets = groups * OFFSET_BYTES if self.mode.has_offsets else 0
        if memoryview(self.offsets).nbytes != offsets:
            raise UserError(f"{memoryview(self.offsets).nbytes} bytes of offsets do not fit this job: it has {offsets}")
        object.__setattr__(self, "how", checked(self.mode, self.how))

    @property
    def needs_coding(self) -> bool:
        """Return whether the job needs a unit with register CODING (GMC)."""
        return isinstance(self.how, ShiftCoding) and not self.how.is_published

    @property
    def most_payload_bytes(self) -> int:
        """Length of the longest payload of the job; in mode bypass it depends on the number format and is not given here."""
        if self.mode.has_zvc or self.mode.is_affine:  # bytes before a block are no longer than a mask
            return -(-self.beats // BLOCK_SIDE) * coder_of(self.how).block_bounds[1]
        if isinstance(self.how, MxSettings):
            return self.beats // self.mode.whole_beats * self.how.kind.block_bytes
        return self.beats if self.mode is Mode.BRC else self.beats * LANES

    def __str__(self) -> str:
        return f"job {self.mode.label} of {self.beats} beats"
