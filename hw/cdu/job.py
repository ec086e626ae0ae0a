"""The job descriptor: what a unit must know before the data of a tensor come."""

from __future__ import annotations

from amaranth.lib import data
from cdu_spec.bitstream import Mode

from cdu.alignment_buffer import ROW_BEATS_BITS
from cdu.scale_feeder import CHANNEL_ROWS_BITS
from cdu.shift_quantizer import ShiftTable
from cdu.streams import BEATS_BITS


class Job(data.StructLayout):
    """One tensor, in the terms of :class:`cdu_spec.MatrixView`.

    ``mode`` (:class:`cdu_spec.Mode`), ``beats`` (rows of 8 values of the whole job, padding included), ``row_beats`` (per row
    of the matrix), ``channel_rows`` (rows per scale), and ``shifts`` (64 entries in the order of the payload). Counts are at
    least 1.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "mode": Mode,
                "beats": BEATS_BITS,
                "row_beats": ROW_BEATS_BITS,
                "channel_rows": CHANNEL_ROWS_BITS,
                "shifts": ShiftTable,
            }
        )
