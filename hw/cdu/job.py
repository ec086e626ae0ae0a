"""The job descriptor: what a unit must know before the data of a tensor come."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data, stream
from cdu_spec.bitstream import Mode

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
                "row_beats": BEATS_BITS,
                "channel_rows": BEATS_BITS,
                "shifts": ShiftTable,
            }
        )


def take_jobs(m: Module, port: stream.Interface, finished: Value) -> tuple[Any, Signal]:
    """Take one descriptor after the other from ``port``, each when the job before is over.

    ``finished`` is high when the current job is over; it is ignored in the first cycle of a job.

    Returns
    -------
    job
        The current descriptor (:class:`Job`), held until the next one is taken.
    begin
        High in the first cycle in which a new descriptor is there.
    """
    job: Any = Signal(Job(), name="job_taken")
    busy, start, begin = Signal(name="busy"), Signal(name="start"), Signal(name="begin")
    m.d.comb += [port.ready.eq(~busy), start.eq(port.valid & port.ready)]
    m.d.sync += begin.eq(start)
    with m.If(start):
        m.d.sync += [job.eq(port.payload), busy.eq(1)]
    with m.Elif(finished & ~begin):
        m.d.sync += busy.eq(0)
    return job, begin
