"""A job between its descriptor and its record: who reads when, whose errors are whose, what a refused job leaves behind."""

from collections import deque
from random import Random

import pytest
from amaranth.sim import Simulator
from cdu.dma.job_feeder import JobFeeder
from cdu.dma.job_finisher import JobFinisher
from cdu.dma.job_runner import JobRunner
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


def gates_end(ctx, runner, rng):
    """Return by gate whether a packet ends: some time after its job may have it."""
    ends = [False, False]
    for place in range(2):
        opens, drops = ctx.get(runner.opens[place]), ctx.get(runner.drops[place])
        assert not (opens and drops)
        ends[place] = bool(opens or drops) and rng.random() < 0.1
        ctx.set(runner.ends[place], ends[place])
    return ends


@pytest.mark.parametrize("seed", range(4))
def test_a_runner_gives_each_job_its_own_errors(seed):
    """Errors of START and of words fall on whom they belong to, though the next START comes before a job is over."""
    rng = Random(seed)
    runner = JobRunner(CONFIG, Channel.COMPRESS)
    jobs = [(rng.choice((Mode.SFPR, Mode.BRC)), rng.random() < 0.9) for _ in range(JOBS)]
    refused = {n: rng.choice(REFUSALS) for n in range(JOBS) if jobs[n][1] and rng.random() < 0.25}
    wrong = {n: rng.choice(OF_WORDS) for n in range(JOBS) if jobs[n][1] and n not in refused and rng.random() < 0.4}
    failed = {n: rng.random() < 0.2 for n in range(JOBS)}
    control, errors_word = (address(name, Channel.COMPRESS) // REGISTER_BYTES for name in ("CONTROL", "ERRORS"))
    ended, placed, early = [], [], 0

    async def bench(ctx):
        nonlocal early
        given, busy, error_bits = 0, 0, 0
        starting = deque(number for number, (_, can_run) in enumerate(jobs) if can_run)
        reads, queued = deque(), deque()
        job, packets = None, set()  # the one whose words pass, and what of it has still to pass
        target = None  # the job whose result is being placed
        for _ in range(20000):
            ctx.set(runner.i.valid, given < JOBS)
            described(ctx, runner.i.payload, given, *(jobs[given] if given < JOBS else jobs[0]))
            ctx.set(runner.target.ready, rng.random() < 0.01)
            ctx.set(runner.o.ready, rng.random() < 0.5)
            ctx.set(runner.read.valid, bool(reads))
            ctx.set(runner.read.payload, bool(reads) and failed[reads[0]])
            ctx.set(runner.access.read_data, error_bits)
            await ctx.delay(1e-9)
            # Registers
            active = ctx.get(runner.access.active)
            done = active and busy == 3
            busy = 0 if done or not active else busy + 1
            ctx.set(runner.access.done, done)
            ends = gates_end(ctx, runner, rng)
            gives = job is not None and not packets and rng.random() < 0.1
            ctx.set(runner.given, gives)
            await ctx.delay(1e-9)
            if done and ctx.get(runner.access.write) and ctx.get(runner.access.word) == control:
                number = starting.popleft()
                early += job is not None
                error_bits |= refused.get(number, 0)
                if number not in refused:
                    queued.append(number)
                reads.append(number)
            elif done and ctx.get(runner.access.write):
                assert ctx.get(runner.access.word) == errors_word
                error_bits &= ~ctx.get(runner.access.data)
            if ctx.get(runner.opens[0] | runner.opens[1]) and job is None:
                job = queued.popleft()
                packets = {0, 1} if jobs[job][0] is Mode.SFPR else {0}
            packets -= {place for place in range(2) if ends[place]}
            if gives:
                error_bits |= wrong.get(job, 0)
                job = None
            if ctx.get(runner.read.valid & runner.read.ready):
                reads.popleft()
            if ctx.get(runner.target.valid):
                assert target in (None, ctx.get(runner.target.payload.address)), "another job while a result is being placed"
                target = ctx.get(runner.target.payload.address)
                if ctx.get(runner.target.ready):
                    placed.append(target)
                    target = None
            if ctx.get(runner.i.valid & runner.i.ready):
                given += 1
            if ctx.get(runner.o.valid & runner.o.ready):
                found = runner.o.payload
                parts = (found.job, found.unit_errors, found.written, found.errors.read, found.errors.unit)
                ended.append(tuple(map(ctx.get, parts)))
            await ctx.tick()
            if len(ended) == JOBS:
                return
        raise AssertionError(f"job {len(ended)} has no end")

    run(runner, bench)
    for number, (_, can_run) in enumerate(jobs):
        bits = refused.get(number, 0) | wrong.get(number, 0)
        written = can_run and number not in refused
        assert ended[number] == (number, bits, written, can_run and failed[number], bits != 0), number
    assert placed == [number for number, (_, can_run) in enumerate(jobs) if can_run and number not in refused]
    assert early > JOBS // 4, "a START waits for the end of the job before"


def test_a_gate_lets_one_packet_through_and_throws_another_away():
    gate, taken = PacketGate(4), []

    async def bench(ctx):
        words = deque((packet, place == 2) for packet in range(3) for place in range(3))
        while words:
            packet, last = words[0]
            ctx.set(gate.i.valid, 1)
            ctx.set(gate.i.payload.data, packet)
            ctx.set(gate.i.payload.last, last)
            ctx.set(gate.o.ready, 1)
            ctx.set(gate.opens, packet != 1)
            ctx.set(gate.drops, packet == 1)
            await ctx.delay(1e-9)
            assert ctx.get(gate.ends) == last
            assert ctx.get(gate.o.valid) == (packet != 1)
            if ctx.get(gate.o.valid):
                taken.append(packet)
            words.popleft()
            await ctx.delay(1e-8)
        ctx.set(gate.opens, 0)
        ctx.set(gate.drops, 0)
        await ctx.delay(1e-9)
        assert (ctx.get(gate.i.ready), ctx.get(gate.o.valid)) == (0, 0)

    simulator = Simulator(gate)
    simulator.add_testbench(bench)
    simulator.run()
    assert taken == [0, 0, 0, 2, 2, 2]


def test_a_finisher_counts_until_memory_has_the_result():
    finisher = JobFinisher()

    async def bench(ctx):
        ctx.set(finisher.i.valid, 1)
        ctx.set(finisher.i.payload.cycles, 100)
        ctx.set(finisher.i.payload.job, 7)
        ctx.set(finisher.i.payload.written, 1)
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
        assert [ctx.get(record[name]) for name in ("job", "cycles", "bytes", "done")] == [7, 105, 33, 1]
        assert (ctx.get(record.errors), ctx.get(finisher.working)) == (1 << 4, 1)
        ctx.set(finisher.o.ready, 1)
        await ctx.tick()
        await ctx.delay(1e-9)
        assert not ctx.get(finisher.working)
        # A job that wrote nothing needs no answer
        ctx.set(finisher.i.valid, 1)
        ctx.set(finisher.i.payload.written, 0)
        await ctx.tick()
        await ctx.delay(1e-9)
        assert ctx.get(finisher.o.valid)
        assert ctx.get(record.bytes) == 0

    run(finisher, bench)
