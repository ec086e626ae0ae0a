"""Ports that both directions of a unit have."""

from __future__ import annotations

from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from cdu.words import Job, JobEvents, Scale, ShiftBanks


class DirectionPorts(wiring.Signature):
    """Ports of a direction that takes words of the layout ``i`` and gives words of the layout ``o``."""

    def __init__(self, i: data.Layout, o: data.Layout) -> None:
        super().__init__(
            {
                "job": In(stream.Signature(Job())),
                "scales": In(stream.Signature(Scale())),
                "i": In(stream.Signature(i)),
                "o": Out(stream.Signature(o)),
                "shifts": In(ShiftBanks),
                "events": Out(JobEvents()),
                "idle": Out(1),
            }
        )
