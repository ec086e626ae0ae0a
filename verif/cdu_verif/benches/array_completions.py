"""Tests of completion records: a fault in a queue of jobs is in the record of its own job, and all others are right."""

from __future__ import annotations

from collections import deque

import cocotb
from cdu_driver import JobFailedError, Result
from cdu_spec.bitstream import CRC_BYTES
from cdu_spec.modes import Mode
from cdu_spec.ports import PORTS
from cdu_spec.register_types import JOB_NUMBER_BITS, Channel

from cdu_verif.benches.armed import small_item
from cdu_verif.benches.array_bench import ArrayBench, input_of, job_of, queue_of
from cdu_verif.benches.faulty_jobs import PortJob, faults, port_job
from cdu_verif.benches.losing_device import LosingDevice
from cdu_verif.cases.crc import crc_of
from cdu_verif.content.payloads import float_bytes
from cdu_verif.content.tensors import exchange
from cdu_verif.simulation.bench import simulated_config
from cdu_verif.simulation.bench_test import bench_test
from cdu_verif.simulation.driver_jobs import driver_job

_CONFIG = simulated_config()
_CHANNELS = [channel.value for channel in Channel]
#: Number of jobs in a queue.
_JOBS = 6
#: A record: number of the job, bytes, errors.
_Record = tuple[int, int, set[str]]


async def _record(bench: ArrayBench, channel: Channel) -> _Record:
    """Take the oldest record."""
    number = (await bench.read("COMPLETION", channel))["job"]
    size = (await bench.read("COMPLETION_BYTES", channel))["value"]
    errors = {name for name, bit in (await bench.read("COMPLETION_ERRORS", channel)).items() if bit}
    await bench.write("COMPLETION_NEXT", channel, take=1)
    return number, size, errors


async def _play(bench: ArrayBench, channel: Channel, jobs: list[PortJob]) -> list[_Record]:
    """Start jobs when there is room and take their records at times; return the records once all results are checked."""
    shifts = next((job.shifts for job in (job_of(channel, each.item) for each in jobs) if job.shifts), None)
    if shifts:
        await bench.write_table(channel, 0, shifts)
    for job in jobs:
        job.feed(bench)
    results = cocotb.start_soon(_results(bench, channel, jobs))
    waiting, records = deque(jobs), list[_Record]()
    while len(records) < len(jobs):
        if waiting and (await bench.read("STATUS", channel))["queue_space"]:
            await waiting.popleft().start(bench)
        elif bench.rng.random() < 0.3 and (await bench.read("COMPLETION", channel))["waiting"]:
            records.append(await _record(bench, channel))
    await results
    return records


async def _results(bench: ArrayBench, channel: Channel, jobs: list[PortJob]) -> None:
    """Receive all results: the golden one of every good job, the right number of values of every other one."""
    for job in jobs:
        result = await bench.o[channel].receive()
        job.came = len(result) - (CRC_BYTES if job.crc and channel is Channel.COMPRESS else 0)
        if job.crc and channel is Channel.COMPRESS:
            result, sign = result[: job.came], result[job.came :]
            assert sign == crc_of(result), f"{job.item.name}: {sign.hex()} is not the CRC"
        if not job.flag:
            bench.check(channel, job.item, result)
        elif channel is Channel.DECOMPRESS:
            assert len(result) == len(float_bytes(job.item.restored)), f"{job.item.name}: {len(result)} bytes of values"


@bench_test(ArrayBench, skip=not _CONFIG.completions, direction=_CHANNELS, pattern=["full_rate", "coins", "bursts"])
async def a_fault_in_a_queue(bench: ArrayBench, direction: str, pattern: str) -> None:
    """Each kind of fault in the middle of a queue is reported for its own job and for no other."""
    channel = Channel(direction)
    bench.stall(pattern)
    await bench.write("COMPLETION_KEEP", channel, keep=1)
    kinds = faults(bench.config, channel)
    number = 0
    for kind in [*kinds] * (4 if bench.full else 1):
        jobs = [port_job(bench, channel, bench.rng.choice(bench.config.built_modes)) for _ in range(_JOBS - 1)]
        jobs.insert(bench.rng.randrange(_JOBS), kinds[kind].job(bench, channel))
        most = 20_000 + 400 * sum(job_of(channel, job.item).beats for job in jobs)
        records = await bench.within(most, _play(bench, channel, jobs), f"{kind} in a queue")
        said = ", ".join(f"{job.item.name}: {job.flag or 'good'}, {record}" for job, record in zip(jobs, records, strict=True))
        for job, (its_number, size, errors) in zip(jobs, records, strict=True):
            assert its_number == number % (1 << JOB_NUMBER_BITS), f"{kind}: a record of job {its_number}, not {number}; {said}"
            number += 1
            assert (job.flag in errors) if job.flag else not errors, f"{kind}: {said}"
            expected = job.came if channel is Channel.COMPRESS else job.told
            assert size == expected or job.flag, f"{kind}: {size} bytes, not {expected}; {said}"
        found = await bench.errors(channel)
        assert found == set().union(*(errors for _, _, errors in records)), f"{kind}: ERRORS has {sorted(found)}; {said}"
        bench.cases += 1


@bench_test(ArrayBench, skip=not _CONFIG.completions, direction=_CHANNELS)
async def several_faults(bench: ArrayBench, direction: str) -> None:
    """Faults of any kind in any of many jobs, one after the other."""
    channel = Channel(direction)
    await bench.write("COMPLETION_KEEP", channel, keep=1)
    kinds = faults(bench.config, channel)
    for _ in range(6 if bench.full else 2):
        bench.stall(bench.rng.choice(("full_rate", "coins", "stalls")))
        jobs = []
        for _ in range(2 * _JOBS):
            if bench.rng.random() < 0.6:
                jobs.append(kinds[bench.rng.choice([*kinds])].job(bench, channel))
            else:
                jobs.append(port_job(bench, channel, bench.rng.choice(bench.config.built_modes)))
        most = 40_000 + 400 * sum(job_of(channel, job.item).beats for job in jobs)
        records = await bench.within(most, _play(bench, channel, jobs), "faults in a queue")
        for job, (_, _, errors) in zip(jobs, records, strict=True):
            assert (job.flag in errors) if job.flag else not errors, f"{job.item.name}: {job.flag or 'good'}, but {errors}"
        assert await bench.errors(channel) == set().union(*(errors for _, _, errors in records))


@bench_test(ArrayBench, skip=not _CONFIG.completions, direction=_CHANNELS)
async def records_that_wait(bench: ArrayBench, direction: str) -> None:
    """START waits for room for the record; records not kept are dropped; an abort does not change records."""
    channel = Channel(direction)
    depth = bench.config.completions
    await bench.write("COMPLETION_KEEP", channel, keep=1)

    async def done(count: int) -> None:
        """Wait until ``count`` records wait."""
        while (await bench.read("COMPLETION", channel))["waiting"] != count:
            await bench.idle(5)

    for count in range(depth):
        assert (await bench.read("STATUS", channel))["queue_space"], f"no room for job {count} of {depth}"
        await bench.run_job(channel, small_item(bench))
        await bench.within(2000, done(count + 1), f"record {count + 1}")
    assert not (await bench.read("STATUS", channel))["queue_space"], "there is room for a job without room for its record"
    await bench.program(channel, job_of(channel, small_item(bench)))
    assert await bench.errors(channel) == {"queue_full"}

    # An aborted job has a number, but no record
    assert (await _record(bench, channel))[0] == 0
    await bench.program(channel, job_of(channel, small_item(bench)))
    await bench.write("CONTROL", channel, abort=1)
    await bench.idle(10)
    assert await bench.errors(channel) == {"aborted"}
    assert (await bench.read("COMPLETION", channel))["waiting"] == depth - 1
    await bench.run_job(channel, small_item(bench))
    await bench.within(2000, done(depth), "the record behind the abort")
    numbers = [(await _record(bench, channel))[0] for _ in range(depth)]
    assert numbers == [*range(1, depth), depth + 1], f"the records are of jobs {numbers}"
    await bench.write("COMPLETION_NEXT", channel, take=1)
    assert not (await bench.read("COMPLETION", channel))["waiting"], "a record came from nowhere"

    await bench.run_job(channel, small_item(bench))
    await bench.within(2000, done(1), "a record")
    await bench.write("COMPLETION_KEEP", channel)
    await bench.within(200, done(0), "records are thrown away")
    for _ in range(depth + 2):
        await bench.run_job(channel, small_item(bench))
    assert not (await bench.read("COMPLETION", channel))["waiting"], "a record waits that is not to be kept"
    assert not await bench.errors(channel)


@bench_test(ArrayBench, skip=not _CONFIG.completions or Mode.BRC not in _CONFIG.built_modes)
async def packets_out_of_step(bench: ArrayBench) -> None:
    """After a lost TLAST, or with a packet too many, jobs take packets in order, whichever job they were for, until a flush."""
    channel = Channel.COMPRESS
    await bench.write("COMPLETION_KEEP", channel, keep=1)
    for merged in (True, False):
        first, second, third = (exchange(bench.config, bench.rng, (2, 2, 4, 24), Mode.BRC, "normal") for _ in range(3))
        data = [input_of(channel, item) for item in (first, second, third)]
        packets = [data[0] + data[1], data[2]] if merged else [data[0], data[2], data[1]]
        for packet in packets:
            bench.i[channel].send(packet)
        for item, taken in ((first, first), (second, third)):
            await bench.program(channel, item.compression)
            bench.check(channel, taken, await bench.result(channel, item.compression))
            while not (await bench.read("COMPLETION", channel))["waiting"]:
                await bench.idle(5)
            _, _, errors = await _record(bench, channel)
            assert errors == ({"late_last"} if merged and item is first else set()), f"{item.name}: {errors}"
        await bench.write("CONTROL", channel, abort=1, flush=1)
        await bench.idle(400)
        await bench.errors(channel)
        await bench.run_job(channel, first)
        while not (await bench.read("COMPLETION", channel))["waiting"]:
            await bench.idle(5)
        assert (await _record(bench, channel))[2] == set()


@bench_test(ArrayBench, skip=not _CONFIG.completions, direction=_CHANNELS)
async def the_driver_loses_one_job(bench: ArrayBench, direction: str) -> None:
    """The driver returns the results of all jobs but the one whose data were lost on their way."""
    channel = Channel(direction)
    cut = bench.config.beat_bits // 8 if channel is Channel.COMPRESS else 1
    for wrong in range(5):
        driver = await bench.open(LosingDevice(bench.device, PORTS[channel].input, cut, wrong))
        assert driver.completions == bench.config.completions
        items = [small_item(bench) for _ in range(5)]
        jobs = [driver_job(job_of(channel, item), input_of(channel, item)) for item in items]
        outcomes = await bench.within(100_000, queue_of(driver, channel).outcomes(jobs), f"5 jobs, {wrong} is wrong")
        for place, (item, outcome) in enumerate(zip(items, outcomes, strict=True)):
            if place == wrong:
                assert isinstance(outcome, JobFailedError), f"{item.name} has a result"
                assert {"early_last", "payload_length"} & set(outcome.flags), f"{item.name}: {outcome.flags}"
            else:
                assert isinstance(outcome, Result), f"{item.name}: {outcome}"
                bench.check(channel, item, bytes(outcome.data))
                assert outcome.payload_bytes == len(item.payload), f"{item.name}: {outcome.payload_bytes} bytes"
        await bench.play(driver, {each: [small_item(bench)] for each in Channel})
