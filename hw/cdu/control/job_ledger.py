"""Ledger of a direction: the errors found in each job, and the records of jobs that have ended."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from cdu_spec.config import CduConfig
from cdu_spec.modes import Mode
from cdu_spec.register_types import JOB_NUMBER_BITS, REGISTER_BITS, Channel

from cdu.control.error_places import PACKED, ErrorPlace, Findings, places
from cdu.parts.wide_sum import wide_sum
from cdu.words import is_one_of


class JobLedger(wiring.Component):
    """Keep an entry for every job in a ring, from its start until its record has been taken.

    Jobs pass each of the :func:`~cdu.control.error_places.places` in the order of their starts, so each place has a current
    job, and an error found there belongs to it. A job has ended when its result has left and its input and its scales have been
    consumed: no more errors can be found then, and its entry becomes its record.

    Parameters
    ----------
    config
        ``ledger_jobs``, the entries of the ring, and the parameters that :func:`~cdu.control.error_places.places` depends on.
    channel
        The direction.

    Ports
    -----
    start
        High for a cycle: a job of this ``mode`` is started. Only while ``room`` is high.
    room
        An entry is free.
    findings
        :class:`~cdu.control.error_places.Findings`.
    moved
        Bytes of payload that pass the place :data:`~cdu.control.error_places.PACKED` in this cycle.
    left
        High for a cycle when the last word of the result of a job has left.
    ended
        High for a cycle: a job has ended.
    abort
        High for a cycle: jobs that have not ended are forgotten.
    keeps
        Records wait until they are taken; otherwise they are dropped.
    take
        High for a cycle: drop the oldest record.
    waiting
        Number of waiting records. The outputs below show the oldest one, or zeros if there is none:
    job
        Number of jobs started before it since the reset, aborted ones included.
    payload_bytes
        Bytes of its payload, modulo ``2**32``.
    errors
        Errors found in the job.
    """

    start: Signal
    mode: Signal
    room: Signal
    findings: Any
    moved: Signal
    left: Signal
    ended: Signal
    abort: Signal
    keeps: Signal
    take: Signal
    waiting: Signal
    job: Signal
    payload_bytes: Signal
    errors: Any

    def __init__(self, config: CduConfig, channel: Channel) -> None:
        self.depth, self.channel = config.ledger_jobs, channel
        self._modes = config.built_modes
        self.places = places(config, channel)
        self.flags = sorted({flag for place in self.places.values() for flag in place.flags})
        super().__init__(
            {
                "start": In(1),
                "mode": In(Mode),
                "room": Out(1),
                "findings": In(Findings(config, channel)),
                "moved": In(range(config.packed_bytes + 1)),
                "left": In(1),
                "ended": Out(1),
                "abort": In(1),
                "keeps": In(1),
                "take": In(1),
                "waiting": Out(range(self.depth + 1)),
                "job": Out(JOB_NUMBER_BITS),
                "payload_bytes": Out(REGISTER_BITS),
                "errors": Out(data.StructLayout(dict.fromkeys(self.flags, 1))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # Entry numbers have one bit more than needed, so that a full ring differs from an empty one: the oldest record, the
        # job that ends next, the job that is started next
        oldest, ending, following = (self._entry(name) for name in ("oldest", "ending", "following"))
        fresh = self._at(following, self.start)
        ends = self._ends(m)
        turns = self._turns(m, ends, ending, following)
        result = self._counted(m, "result", self.left, ending)

        due = Signal(self.depth)  # jobs whose scales have not come to their end
        before = Signal(range(self.depth))  # the one whose scales have done so last
        waits = Signal()
        scaled: Value = Const(0, self.depth)
        if "windows" in self.places:
            scaled = self._at(following, self._comes(self.places["windows"]))
            m.d.sync += due.eq((due & ~self._at(turns["windows"], ends["windows"])) | scaled)
            with m.If(ends["windows"]):
                m.d.sync += before.eq(turns["windows"])
            with m.If(self.abort):
                m.d.sync += due.eq(0)
        m.d.comb += [
            waits.eq((result == ending) | (turns["input"] == ending) | due.bit_select(self._place(ending), 1)),
            self.ended.eq((ending != following) & ~waits & ~self.abort),
            self.room.eq((following - oldest)[: len(oldest)] != self.depth),
            self.waiting.eq((ending - oldest)[: len(oldest)]),
        ]
        m.d.sync += [
            following.eq(Mux(self.abort, ending, following + self.start)),
            ending.eq(ending + self.ended),
            oldest.eq(oldest + ((self.waiting != 0) & (self.take | ~self.keeps))),
        ]

        self._find(m, turns, before, fresh, due | scaled, oldest)
        started = Signal(JOB_NUMBER_BITS)
        m.d.sync += started.eq(started + self.start)
        self._remember(m, "numbers", oldest, self.job, following, self.start, started)
        self._count_bytes(m, turns[PACKED[self.channel]], ends[PACKED[self.channel]], oldest)
        return m

    def _count_bytes(self, m: Module, turn: Value, ends: Value, oldest: Signal) -> None:
        """Sum ``moved`` up to two cycles before a job ends."""
        size = Signal(REGISTER_BITS)
        moved = Signal.like(self.moved, name="moved1")
        m.d.sync += [moved.eq(self.moved), size.eq(wide_sum(Mux(ends, 0, size), moved, REGISTER_BITS))]
        with m.If(self.abort):
            m.d.sync += [moved.eq(0), size.eq(0)]
        self._remember(m, "sizes", oldest, self.payload_bytes, turn, ends, size)

    def _entry(self, name: str) -> Signal:
        return Signal(range(2 * self.depth), name=name)

    def _place(self, entry: Value) -> Value:
        """Return the position of an entry in the ring."""
        return entry[: (self.depth - 1).bit_length()]

    def _at(self, entry: Value, event: Value) -> Value:
        """Return the bit of an entry if ``event`` is high, else 0."""
        bit: Value = (Const(1) << self._place(entry))[: self.depth]
        return bit & event.replicate(self.depth)

    def _comes(self, place: ErrorPlace) -> Value:
        """Return whether a job that comes to this place is started in this cycle."""
        return self.start & is_one_of(self.mode, place.modes)

    def _counted(self, m: Module, name: str, ends: Value, ending: Signal) -> Signal:
        """Return the entry of the current job of a place that all jobs pass."""
        turn = self._entry(f"{name}_turn")
        m.d.sync += turn.eq(Mux(self.abort, ending, turn + ends))
        return turn

    def _ends(self, m: Module) -> dict[str, Value]:
        """Return for each place whether a job leaves it, delayed as much as the errors found there."""
        ends: dict[str, Value] = {}
        for name, place in self.places.items():
            ends[name] = self.findings[name]["ends"]
            for stage in range(place.latency):
                later = Signal(name=f"{name}_ends{stage + 1}")
                m.d.sync += later.eq(ends[name] & ~self.abort)
                ends[name] = later
        return ends

    def _turns(self, m: Module, ends: dict[str, Value], ending: Signal, following: Signal) -> dict[str, Value]:
        """Return for each place the entry of its current job."""
        turns: dict[str, Value] = {}
        queues: dict[tuple[Mode, ...], Memory] = {}
        for name, place in self.places.items():
            if place.modes == self._modes:
                turns[name] = self._counted(m, name, ends[name], ending)
                continue
            if place.modes not in queues:
                queues[place.modes] = self._queue(m, name, following)
            read = queues[place.modes].read_port(domain="comb")
            first = Signal(range(self.depth), name=f"{name}_first")
            m.d.comb += read.addr.eq(first)
            m.d.sync += first.eq(Mux(self.abort, 0, first + ends[name]))
            turns[name] = read.data
        return turns

    def _queue(self, m: Module, name: str, following: Signal) -> Memory:
        """Return a queue of the entries of the jobs that come to a place, in the order of their starts since the last abort."""
        jobs: Memory
        m.submodules[name] = jobs = Memory(shape=(self.depth - 1).bit_length(), depth=self.depth, init=[])
        write = jobs.write_port()
        last = Signal(range(self.depth), name=f"{name}_last")
        m.d.comb += [write.en.eq(self._comes(self.places[name])), write.addr.eq(last), write.data.eq(self._place(following))]
        m.d.sync += last.eq(Mux(self.abort, 0, last + write.en))
        return jobs

    def _find(self, m: Module, turns: dict[str, Value], before: Value, fresh: Value, due: Value, oldest: Signal) -> None:
        """Write errors into the entries of the jobs that they belong to.

        ``before``: the last job whose scales have come to their end; some of them may be missing. ``due``: the jobs whose
        scales have not, which may have been given each other's.
        """
        for flag in self.flags:
            column, found = Signal(self.depth, name=f"{flag}_column"), Signal(self.depth, name=f"{flag}_found")
            events = {name: self.findings[name][flag] for name, place in self.places.items() if flag in place.flags}
            if flag == "scale_source":
                (event,) = events.values()
                m.d.comb += found.eq(due & event.replicate(self.depth))
            elif flag == "scale_missing":
                (event,) = events.values()
                m.d.comb += found.eq(self._at(before, event))
            else:
                m.d.comb += found.eq(reduce(or_, (self._at(turns[name], event) for name, event in events.items())))
            m.d.sync += column.eq((column & ~fresh) | found)
            m.d.comb += self.errors[flag].eq(column.bit_select(self._place(oldest), 1) & (self.waiting != 0))

    def _remember(self, m: Module, name: str, oldest: Signal, shown: Signal, entry: Value, when: Value, what: Value) -> None:
        """Store a number for each entry and show the number of the oldest record."""
        words: Memory
        m.submodules[name] = words = Memory(shape=len(shown), depth=self.depth, init=[])
        write = words.write_port()
        read = words.read_port(domain="comb")
        m.d.comb += [
            write.en.eq(when),
            write.addr.eq(self._place(entry)),
            write.data.eq(what),
            read.addr.eq(self._place(oldest)),
            shown.eq(Mux(self.waiting != 0, read.data, 0)),
        ]
