"""Intake that fits the words of a port to the words of jobs."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.config import CduConfig

from cdu.parts.streams import float_beat
from cdu.values.scale_feeder import PlannedWord
from cdu.words import ValueWord


class IntakeWord(data.StructLayout):
    """A word of a job: the :class:`~cdu.values.scale_feeder.PlannedWord` and its ``values``, zeros where there are none.

    ``came`` are the values as they came, which are meaningless in beats that are ``absent``.
    """

    def __init__(self, config: CduConfig) -> None:
        values = data.ArrayLayout(float_beat(config.dtype), config.port_beats)
        super().__init__({"values": values, "came": values, "absent": config.port_beats, "plan": PlannedWord(config)})


class ValueIntake(wiring.Component):
    """Take one word of ``i`` for each word of ``plan``, and complete or cut input that does not fit the jobs.

    After a ``last`` before the end of the job, the rest of the job are zeros, and no input is taken for them. A word with
    fewer beats than the job has in it is padded with zeros. Beats behind the end of the job are dropped; if the last word of a
    job comes without ``last``, all words up to and including one with ``last`` are dropped.

    Parameters
    ----------
    config
        P and ``value_format`` are used.

    Ports
    -----
    plan
        Stream of :class:`~cdu.values.scale_feeder.PlannedWord`.
    i
        Stream of :class:`~cdu.words.ValueWord`.
    o
        Stream of :class:`IntakeWord`, one for each word of ``plan``.
    early_last
        High for a cycle if fewer beats have come than the job has.
    late_last
        High for a cycle if more beats have come than the job has, or if they are not followed by the end of the input.

    Latency: none. One word per cycle.
    """

    plan: stream.Interface
    i: stream.Interface
    o: stream.Interface
    early_last: Signal
    late_last: Signal

    def __init__(self, config: CduConfig) -> None:
        super().__init__(
            {
                "plan": In(stream.Signature(PlannedWord(config))),
                "i": In(stream.Signature(ValueWord(config))),
                "o": Out(stream.Signature(IntakeWord(config))),
                "early_last": Out(1),
                "late_last": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        plan, word = self.plan.payload, self.i.payload
        ended = Signal()  # the input of this job ended early
        discarding = Signal()  # the input of the job before goes on
        taken = Signal()
        m.d.comb += [
            self.o.valid.eq(self.plan.valid & ~discarding & (ended | self.i.valid)),
            taken.eq(self.o.valid & self.o.ready),
            self.plan.ready.eq(taken),
            self.i.ready.eq(discarding | (self.plan.valid & ~ended & self.o.ready)),
            self.o.payload.plan.eq(plan),
            self.early_last.eq(taken & ~ended & ((word["count"] < plan["count"]) | (word["last"] & ~plan["last"]))),
            self.late_last.eq(taken & ~ended & ((word["count"] > plan["count"]) | (plan["last"] & ~word["last"]))),
        ]
        m.d.comb += self.o.payload["came"].eq(word["values"])
        for lane, beat in enumerate(self.o.payload["values"]):
            # Behind the count of a word are zeros already, and a word of a job has a beat. A payload with bits that depend on
            # its other bits would look like a loop to tools that treat it as one net.
            present = Signal(name=f"present{lane}")
            m.d.comb += [
                present.eq(~ended & (plan["count"] > lane) if lane else ~ended),
                self.o.payload["absent"][lane].eq(~present),
                *(
                    ours.eq(theirs & present.replicate(len(theirs)))
                    for ours, theirs in zip(beat, word["values"][lane], strict=True)
                ),
            ]
        with m.If(taken):
            m.d.sync += ended.eq((ended | word["last"]) & ~plan["last"])
            m.d.sync += discarding.eq(~ended & plan["last"] & ~word["last"])
        with m.Elif(discarding & self.i.valid & word["last"]):
            m.d.sync += discarding.eq(0)
        return m
