"""Ledger of jobs: every job that ends has its own record, whatever happens at the places that it shares with others."""

from collections import deque
from dataclasses import dataclass, field
from random import Random

import pytest
from amaranth.sim import Simulator
from cdu.control.error_places import PACKED
from cdu.control.job_ledger import JobLedger
from cdu_spec.config import CONFIGS
from cdu_spec.register_types import JOB_NUMBER_BITS, Channel

UNIVERSAL = CONFIGS["universal"]
CONFIGURATIONS = {
    "every mode": UNIVERSAL.override(payload_crc=1, completions=8),
    "no scales": UNIVERSAL.override(modes=("brc", "bypass"), completions=4),
    "scales only": UNIVERSAL.override(modes=("sfpr",), completions=4),
    "past the lanes": UNIVERSAL.override(modes=("sfpr", "brc", "bypass", "mx"), completions=8),
    "full ring": UNIVERSAL.override(modes=("sfpr", "brc", "bypass"), completions=16),
    "behind an engine": UNIVERSAL.override(payload_crc=1, dma_bits=64),
}
#: Cycles behind the last place inside a path in which nothing leaves yet.
PATH = 4


@dataclass(eq=False)
class Entry:
    """A job in the model."""

    number: int
    left: set = field(default_factory=set)  #: places
    when: int = 0  #: cycle in which it left the last of them
    size: int = 0
    flags: set = field(default_factory=set)


class Model:
    """Model of the jobs at each place, and of the records."""

    def __init__(self, ledger, config, rng):
        self.ledger, self.config, self.rng = ledger, config, rng
        self.started = 0
        self.records = deque()
        self.forget()

    def forget(self):
        """Abort all jobs."""
        self.jobs = deque()
        self.queues = {name: deque() for name in (*self.ledger.places, "result")}
        self.pending = []  #: cycle, place, flag
        self.before = None  #: the job whose scales have ended last

    def start(self, mode, mixed):
        """Start a job; ``mixed``: in the same cycle scales are found to be mixed up between jobs."""
        entry = Entry(self.started % (1 << JOB_NUMBER_BITS), flags={"scale_source"} if mixed and mode.has_scales else set())
        self.started += 1
        self.jobs.append(entry)
        for name, queue in self.queues.items():
            if name == "result" or mode in self.ledger.places[name].modes:
                queue.append(entry)

    def may_leave(self, name, entry, cycle):
        """Return whether the hardware could let the job leave a place by now."""
        others = {other for other, queue in self.queues.items() if entry in queue}
        if name == "result":
            return not others - {"result", "receiver", "crc", "input", "windows"} and cycle >= entry.when + PATH
        if name == "windows":
            return "scales" not in others
        return name != "input" or not others & {"receiver", "crc"}

    def raise_flags(self, cycle):
        """Raise errors: at a place for the job that is there, or for missing scales of the job before it."""
        raised = []
        for name, place in self.ledger.places.items():
            for flag in place.flags:
                if self.rng.random() > 0.1:
                    continue
                entry = self.before if flag == "scale_missing" else self.queues[name][0] if self.queues[name] else None
                if entry is None or entry not in self.jobs or (flag == "scale_missing" and "result" in entry.left):
                    continue
                raised.append((cycle + place.latency, name, flag))
                if flag == "scale_source":
                    for waiting in self.queues["windows"]:
                        waiting.flags.add(flag)
                else:
                    entry.flags.add(flag)
        self.pending += raised

    def leave(self, cycle):
        """Let jobs leave places in this cycle."""
        ends = set()
        for name, queue in self.queues.items():
            if queue and self.may_leave(name, queue[0], cycle) and self.rng.random() < 0.4:
                ends.add(name)
        for name in ends:
            entry = self.queues[name].popleft()
            entry.left.add(name)
            entry.when = cycle
            if name == "windows":
                self.before = entry
        return ends

    def end(self):
        """End the oldest job if it has left all places."""
        (entry, *_) = self.jobs
        assert not any(entry in queue for queue in self.queues.values()), "a job ended before all was known of it"
        self.records.append(self.jobs.popleft())


@pytest.mark.parametrize("channel", Channel, ids=lambda channel: channel.value)
@pytest.mark.parametrize("config", CONFIGURATIONS.values(), ids=CONFIGURATIONS)
@pytest.mark.parametrize("taken", [0.6, 0.05, None], ids=["taken", "taken late", "not kept"])
def test_every_job_has_a_record_of_its_own(config, channel, taken):
    rng = Random(f"{config} {channel} {taken}")
    ledger = JobLedger(config, channel)
    model = Model(ledger, config, rng)
    simulator = Simulator(ledger)
    simulator.add_clock(1e-8)
    seen = {"records": 0, "aborts": 0, "full": 0}

    async def bench(ctx):
        ctx.set(ledger.keeps, taken is not None)
        for cycle in range(700):
            abort = cycle > 300 and rng.random() < 0.02
            room = len(model.jobs) + len(model.records) < config.ledger_jobs
            mode = rng.choice(config.built_modes)
            starts = room and rng.random() < 0.3
            model.raise_flags(cycle)
            place = PACKED[channel]
            size = rng.choice([0, rng.randint(0, config.packed_bytes)]) if model.queues[place] else 0
            if size:
                model.queues[place][0].size += size
            ends = model.leave(cycle)
            events = {name: {"ends": int(name in ends)} for name in ledger.places}
            for when, name, flag in model.pending:
                if when == cycle:
                    events[name][flag] = 1
            model.pending = [event for event in model.pending if event[0] > cycle]
            takes = taken is not None and rng.random() < taken
            ctx.set(ledger.findings, events)
            ctx.set(ledger.moved, size)
            ctx.set(ledger.left, "result" in ends)
            ctx.set(ledger.start, starts)
            ctx.set(ledger.mode, mode)
            ctx.set(ledger.abort, abort)
            ctx.set(ledger.take, takes)
            await ctx.delay(1e-9)
            assert ctx.get(ledger.room) == room
            assert ctx.get(ledger.waiting) == len(model.records)
            if not model.records:
                assert not ctx.get(ledger.job) | ctx.get(ledger.payload_bytes) | ctx.get(ledger.errors.as_value())
            else:
                record = model.records[0]
                errors = {name for name in ledger.flags if ctx.get(ledger.errors[name])}
                found = ctx.get(ledger.job), ctx.get(ledger.payload_bytes), errors
                assert found == (record.number, record.size, record.flags)
                if takes or taken is None:
                    model.records.popleft()
                    seen["records"] += 1
            if ctx.get(ledger.ended):
                model.end()
            if starts:
                model.start(mode, events.get("scales", {}).get("scale_source"))
            if abort:
                model.forget()
            seen["aborts"] += abort
            seen["full"] += not room
            await ctx.tick()

    simulator.add_testbench(bench)
    simulator.run()
    assert min(seen["records"], seen["aborts"]) > 2
    assert seen["full"] or taken != 0.05
