"""A job between its descriptor and its record: who reads when, whose errors are whose, what a refused job leaves behind."""

from collections import deque
from random import Random

import pytest
from amaranth.hdl import Module
from amaranth.lib.wiring import connect
from amaranth.sim import Simulator
from cdu.dma.job_ender import JobEnder
from cdu.dma.job_feeder import JobFeeder
from cdu.dma.job_finisher import JobFinisher
from cdu.dma.job_starter import JobStarter
from cdu.dma.packet_gate import PacketGate
from cdu_spec.config import CduConfig
from cdu_spec.modes import Mode
from cdu_spec.register_types import REGISTER_BYTES, Channel
from cdu_spec.registers import address, register

CONFIG = CduConfig()
JOBS = 30
ERRORS = register("ERRORS")
REFUSALS = [ERRORS.field(name).mask for name in ("bad_job", "bad_length")]
OF_WORDS = [ERRORS.field(name).mask for name in ("early_last", "late_last", "bad_scale")]


def run(component, bench):
    simulator = Simulator(component)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()


def described(ctx, planned, number, mode, can_run):
    ctx.set(planned.fetched.number, number)
    ctx.set(planned.fetched.descriptor.mode, mode)
    ctx.set(planned.fetched.descriptor.tensor, number)
    ctx.set(planned.fetched.descriptor.scales, number)
    ctx.set(planned.fetched.descriptor.payload, number)
    ctx.set(planned.errors.bad_shape, not can_run)


@pytest.mark.parametrize("willing", [1.0, 0.3])
def test_a_feeder_reads_in_order_and_tells_of_each_job_by_itself(willing):
    rng = Random(willing)
    feeder = JobFeeder(CONFIG, Channel.COMPRESS)
    jobs = [(rng.choice((Mode.SFPR, Mode.BRC)), rng.random() < 0.7) for _ in range(JOBS)]
    runnable = [number for number, (_, can_run) in enumerate(jobs) if can_run]
    scaled = [number for number in runnable if jobs[number][0] is Mode.SFPR]
    failures = {number: (rng.random() < 0.3, number in scaled and rng.random() < 0.3) for number in runnable}
    passed, data, scales, results, most_ahead = [], [], [], [], 0

    async def bench(ctx):
        nonlocal most_ahead
        given, waiting = 0, {"read": deque(), "scales_read": deque()}
        for _ in range(4000):
            ctx.set(feeder.i.valid, given < JOBS)
            described(ctx, feeder.i.payload, given, *(jobs[given] if given < JOBS else jobs[0]))
            for port in (feeder.o, feeder.data, feeder.scales, feeder.result):
                ctx.set(port.ready, rng.random() < willing)
            for place, (name, queue) in enumerate(waiting.items()):
                port = getattr(feeder, name)
                ctx.set(port.valid, bool(queue) and rng.random() < 0.3)
                ctx.set(port.payload, bool(queue) and failures[queue[0]][place])
            await ctx.delay(1e-9)
            if ctx.get(feeder.i.valid & feeder.i.ready):
                given += 1
            if ctx.get(feeder.o.valid & feeder.o.ready):
                passed.append(ctx.get(feeder.o.payload.fetched.number))
            if ctx.get(feeder.result.valid & feeder.result.ready):
                results.append(bool(ctx.get(feeder.result.payload)))
            for name, queue in waiting.items():
                port = getattr(feeder, name)
                if ctx.get(port.valid & port.ready):
                    queue.popleft()
            for port, field, found, name in (
                (feeder.data, "tensor", data, "read"),
                (feeder.scales, "address", scales, "scales_read"),
            ):
                if ctx.get(port.valid & port.ready):
                    found.append(ctx.get(port.payload[field]))
                    waiting[name].append(found[-1])
            most_ahead = max(most_ahead, len(data) - len(results))
            await ctx.tick()
            if len(results) == len(runnable) and given == JOBS:
                return
        raise AssertionError("a job has no end")

    run(feeder, bench)
    assert passed == list(range(JOBS))
    assert (data, scales) == (runnable, scaled)
    assert results == [any(failures[number]) for number in runnable]
    assert most_ahead == 2, "the reads of a job begin while those of the one before it are still to end"


@pytest.mark.parametrize("seed", range(4))
def test_jobs_of_a_direction_overlap_and_keep_their_own_errors(seed):
    """Errors of START and of words belong to their job, though the unit has two at a time."""
    rng = Random(seed)
    m = Module()
    m.submodules.starter = starter = JobStarter(CONFIG, Channel.COMPRESS)
    m.submodules.ender = ender = JobEnder(Channel.COMPRESS)
    connect(m, starter.o, ender.i)
    jobs = [(rng.choice((Mode.SFPR, Mode.BRC)), rng.random() < 0.9) for _ in range(JOBS)]
    refused = {n: rng.choice(REFUSALS) for n in range(JOBS) if jobs[n][1] and rng.random() < 0.25}
    wrong = {n: rng.choice(OF_WORDS) for n in range(JOBS) if jobs[n][1] and n not in refused and rng.random() < 0.4}
    failed = {n: rng.random() < 0.2 for n in range(JOBS)}
    names = ("CONTROL", "ERRORS", "COMPLETION", "COMPLETION_ERRORS", "COMPLETION_NEXT")
    words = {address(name, Channel.COMPRESS) // REGISTER_BYTES: name for name in names}
    ended, placed, passed, at_once = [], [], ([], []), 0

    async def bench(ctx):
        nonlocal at_once
        given, error_bits = 0, 0
        starting = deque(number for number, (_, can_run) in enumerate(jobs) if can_run)
        reads, in_unit, left, records = deque(), deque(), deque(), deque()
        waits = {starter: 0, ender: 0}
        for _ in range(20000):
            ctx.set(starter.i.valid, given < JOBS)
            described(ctx, starter.i.payload, given, *(jobs[given] if given < JOBS else jobs[0]))
            for port, willing in ((starter.target, 0.05), (ender.o, 0.5), *((port, 0.1) for port in starter.passages)):
                ctx.set(port.ready, rng.random() < willing)
            ctx.set(ender.read.valid, bool(reads))
            ctx.set(ender.read.payload, bool(reads) and failed[reads[0]])
            # The unit gives results in order, and makes a record of each some time later
            gives = bool(in_unit) and rng.random() < 0.05
            ctx.set(ender.given, gives)
            if gives:
                left.append(in_unit.popleft())
            if left and rng.random() < 0.1:
                records.append(left.popleft())
                error_bits |= wrong.get(records[-1], 0)
            shown = {
                "ERRORS": error_bits,
                "COMPLETION": register("COMPLETION").pack(waiting=len(records)),
                "COMPLETION_ERRORS": wrong.get(records[0], 0) if records else 0,
            }
            await ctx.delay(1e-9)
            for stage in waits:
                access = stage.access
                active = ctx.get(access.active)
                done = active and waits[stage] == 3
                waits[stage] = 0 if done or not active else waits[stage] + 1
                ctx.set(access.done, done)
                name, writes, data = words[ctx.get(access.word)] if active else "", ctx.get(access.write), ctx.get(access.data)
                ctx.set(access.read_data, shown.get(name, 0))
                if not done:
                    continue
                if name == "CONTROL":
                    assert writes
                    number = starting.popleft()
                    error_bits |= refused.get(number, 0)
                    if number not in refused:
                        in_unit.append(number)
                    reads.append(number)
                    at_once = max(at_once, len(in_unit) + len(left) + len(records))
                elif name == "COMPLETION_NEXT":
                    assert writes
                    assert records.popleft() == len(ended), "the record of another job"
                elif writes:
                    assert name == "ERRORS"
                    error_bits &= ~data
            await ctx.delay(1e-9)
            if ctx.get(ender.read.valid & ender.read.ready):
                reads.popleft()
            for place, port in enumerate(starter.passages):
                if ctx.get(port.valid & port.ready):
                    passed[place].append(ctx.get(port.payload.drops))
            if ctx.get(starter.target.valid & starter.target.ready):
                placed.append(ctx.get(starter.target.payload.address))
            if ctx.get(starter.i.valid & starter.i.ready):
                given += 1
            if ctx.get(ender.o.valid & ender.o.ready):
                found = ender.o.payload
                parts = (found.job, found.unit_errors, found.started, found.errors.read, found.errors.unit)
                ended.append(tuple(map(ctx.get, parts)))
            await ctx.tick()
            if len(ended) == JOBS and not ctx.get(starter.target.valid):
                assert error_bits == 0, "errors of jobs that have ended are still in the unit's register"
                return
        raise AssertionError(f"job {len(ended)} has no end")

    run(m, bench)
    runnable = [number for number, (_, can_run) in enumerate(jobs) if can_run]
    for number in range(JOBS):
        bits = refused.get(number, 0) | wrong.get(number, 0)
        started = number in runnable and number not in refused
        assert ended[number] == (number, bits, started, number in runnable and failed[number], bits != 0), number
    assert placed == [number for number in runnable if number not in refused]
    scaled = [number for number in runnable if jobs[number][0] is Mode.SFPR]
    assert passed == ([number in refused for number in runnable], [number in refused for number in scaled])
    assert at_once == 2, "the unit has one job at a time"


def test_a_gate_lets_packets_through_and_drops_others():
    gate, taken = PacketGate(4), []
    drops = deque((0, 1, 0))

    async def bench(ctx):
        words = deque((packet, place == 2) for packet in range(3) for place in range(3))
        while words:
            packet, last = words[0]
            ctx.set(gate.i.valid, 1)
            ctx.set(gate.i.payload.data, packet)
            ctx.set(gate.i.payload.last, last)
            ctx.set(gate.o.ready, 1)
            ctx.set(gate.passages.valid, 1)
            ctx.set(gate.passages.payload.drops, drops[0])
            await ctx.delay(1e-9)
            assert ctx.get(gate.passages.ready) == last
            assert ctx.get(gate.o.valid) == (packet != 1)
            if ctx.get(gate.o.valid):
                taken.append(packet)
            if last:
                drops.popleft()
            words.popleft()
            await ctx.delay(1e-8)
        ctx.set(gate.passages.valid, 0)
        await ctx.delay(1e-9)
        assert (ctx.get(gate.i.ready), ctx.get(gate.o.valid)) == (0, 0)

    simulator = Simulator(gate)
    simulator.add_testbench(bench)
    simulator.run()
    assert taken == [0, 0, 0, 2, 2, 2]


@pytest.mark.parametrize("seed", range(4))
def test_a_finisher_tells_the_cycles_of_each_job(seed):
    """The cycles of a job are from its START, or the end of the job before it, until its result is in memory."""
    rng = Random(seed)
    finisher = JobFinisher()
    wanted, found, withdrawals = [], [], 0

    async def bench(ctx):
        nonlocal withdrawals
        to_start, started, stored, passed, ended = 30, 0, 0, 0, None
        begun = deque()
        for now in range(20000):
            starts = to_start and started - len(found) < 3 and rng.random() < 0.05
            withdrawn = bool(begun) and rng.random() < 0.02 and started > max(stored, passed) + bool(ctx.get(finisher.working))
            withdrawn = withdrawn and not starts
            stores = stored == len(wanted) and started > stored and rng.random() < 0.03
            if starts:
                begun.append(now)
                started, to_start = started + 1, to_start - 1
            if withdrawn:  # the youngest one
                begun.pop()
                withdrawals += 1
                started, to_start = started - 1, to_start + 1
            elif stores:
                wanted.append(now - max(begun.popleft(), ended if ended is not None else 0))
                ended = now
            ctx.set(finisher.started, starts)
            ctx.set(finisher.withdrawn, withdrawn)
            ctx.set(finisher.written.valid, len(wanted) > stored)
            ctx.set(finisher.written.payload.bytes, 32 + stored)
            ctx.set(finisher.i.valid, started > passed and rng.random() < 0.2)
            ctx.set(finisher.i.payload.job, passed)
            ctx.set(finisher.i.payload.started, 1)
            ctx.set(finisher.o.ready, rng.random() < 0.1)
            await ctx.delay(1e-9)
            stored += ctx.get(finisher.written.valid & finisher.written.ready)
            passed += ctx.get(finisher.i.valid & finisher.i.ready)
            if ctx.get(finisher.o.valid & finisher.o.ready):
                record = finisher.o.payload.record
                found.append(tuple(ctx.get(record[name]) for name in ("job", "bytes", "done", "cycles")))
            await ctx.tick()
            if len(found) == 20:
                return
        raise AssertionError(f"job {len(found)} has no end")

    run(finisher, bench)
    assert [each[:3] for each in found] == [(number, 32 + number, 1) for number in range(20)]
    assert [each[3] for each in found] == wanted[:20]
    assert withdrawals


def test_a_finisher_tells_what_the_writer_says():
    finisher = JobFinisher()

    async def bench(ctx):
        ctx.set(finisher.i.valid, 1)
        ctx.set(finisher.i.payload.job, 7)
        ctx.set(finisher.i.payload.started, 1)
        await ctx.tick()
        ctx.set(finisher.i.valid, 0)
        await ctx.tick().repeat(5)
        await ctx.delay(1e-9)
        assert not ctx.get(finisher.i.ready)
        assert not ctx.get(finisher.o.valid)
        ctx.set(finisher.written.valid, 1)
        ctx.set(finisher.written.payload.bytes, 33)
        ctx.set(finisher.written.payload.surplus, 1)
        await ctx.tick()
        ctx.set(finisher.written.valid, 0)
        await ctx.tick()
        await ctx.delay(1e-9)
        record = finisher.o.payload.record
        assert ctx.get(finisher.o.valid)
        assert [ctx.get(record[name]) for name in ("job", "bytes", "done")] == [7, 33, 1]
        assert (ctx.get(record.errors), ctx.get(finisher.working)) == (1 << 4, 1)
        ctx.set(finisher.o.ready, 1)
        await ctx.tick()
        await ctx.delay(1e-9)
        assert not ctx.get(finisher.working)
        # A job that wrote nothing needs no answer
        ctx.set(finisher.i.valid, 1)
        ctx.set(finisher.i.payload.started, 0)
        await ctx.tick()
        await ctx.delay(1e-9)
        assert ctx.get(finisher.o.valid)
        assert [ctx.get(record[name]) for name in ("bytes", "cycles")] == [0, 0]

    run(finisher, bench)
