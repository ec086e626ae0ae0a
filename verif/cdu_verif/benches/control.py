"""Tests of the control alone: jobs, their queue, scales and shift tables.

When a job is refused is computed from :class:`cdu_spec.MatrixView`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import cocotb
from cdu_spec.coding import ShiftCoding
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_VALUES, LANES, TILE_BLOCKS
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Coder, Mode
from cdu_spec.register_types import COUNT_BITS, JOB_QUEUE, SCALE_QUEUE, SHIFT_REGISTERS, Channel
from cdu_spec.registers import register

from cdu_verif.benches.control_bench import ControlBench, DataPath
from cdu_verif.benches.control_jobs import (
    BUS_PATTERNS,
    HAS_TABLES,
    descriptor_of,
    program,
    random_job,
    spoil,
    start,
    taken,
    told_of,
)
from cdu_verif.content.payloads import quantizer
from cdu_verif.content.tensors import affine_settings, mx_settings
from cdu_verif.simulation.bench_test import bench_test
from cdu_verif.simulation.patterns import PATTERNS, always, coin


@bench_test(ControlBench, pattern=BUS_PATTERNS)
async def jobs(bench: ControlBench, pattern: str) -> None:
    """Good jobs reach the data path as they were written, in order; bad ones set their bit and do not."""
    bench.stall(pattern)
    for channel in Channel:
        path = bench.paths[channel]
        path.jobs.pattern = coin(bench.rng, 0.5)
        accepted = 0
        for _ in range(60 if bench.full else 25):
            job = random_job(bench)
            expected = spoil(bench, channel, job) if bench.rng.random() < 0.5 else set()
            found = await start(bench, channel, job)
            assert found == expected, f"{job}: {found} instead of {expected}"
            told = path.shown_starts()
            if expected:
                assert not told, f"{job} was refused, and yet {told}"
            else:
                assert told == [told_of(channel, job)]
                await bench.until(taken(path), "a job reaches the data path")
                assert path.shown_jobs() == [descriptor_of(channel, job)]
                accepted += 1
                if bench.rng.random() < 0.7 or accepted % 4 == 0:
                    while (await bench.read("STATUS", channel))["busy"]:
                        path.pulse(job_done=1)
                        await bench.idle(2)
            bench.cases += 1
        await bench.idle(20)
        assert not path.jobs.received, "a job came from nowhere"


def _codings(config: CduConfig) -> list[tuple[Mode, Coder]]:
    """Every mode with every coder that it has."""
    others = [(mode, Coder.ZVC) for mode in config.built_modes if mode is not Mode.JPEG_ACT]
    return others + [(Mode.JPEG_ACT, coder) for coder in config.built_coders if config.has_dct]


@bench_test(ControlBench)
async def largest_numbers(bench: ControlBench) -> None:
    """Counts and lengths at the ends of their ranges."""
    channel = Channel.DECOMPRESS
    path = bench.paths[channel]
    path.jobs.pattern = always()
    most = (1 << COUNT_BITS) - 1
    cases = []
    for mode, coder in _codings(bench.config):
        settings = affine_settings(bench.rng, mode) if mode.is_affine else None
        row = TILE_BLOCKS if mode is Mode.ACTNN else 1
        beats = most // (mode.whole_beats * row) * (mode.whole_beats * row)
        shape: dict[str, Any] = {"beats": beats, "row_beats": row if mode is Mode.ACTNN else beats // 8, "channel_rows": most}
        shape |= {"quantizer": quantizer(settings), "coder": coder, "point": 0, "seed": 0}
        view = MatrixView(beats // row, LANES * row, 1, most, mode)
        mx = mx_settings(bench.rng) if mode is Mode.MX else None
        shape |= {"format": mx.kind.number if mx else 0, "rule": 0}
        least, longest = view.payload_bounds(bench.config.dtype, settings or mx or ShiftCoding(coder))
        lengths = [(least, True), (longest, True), (least - 1, False), (longest + 1, False), (longest + (1 << 63), False)]
        cases += [({**shape, "payload": length}, mode, set() if good else {"bad_length"}) for length, good in lengths]
        if mode.in_tiles and mode is not Mode.ACTNN:
            cases += [
                ({**shape, "row_beats": 1, "payload": 0}, mode, set()),
                ({**shape, "row_beats": most, "payload": 0}, mode, {"bad_job"}),
                ({**shape, "row_beats": beats // 8 - 1, "payload": 0}, mode, {"bad_job"}),
                ({**shape, "beats": 8, "row_beats": 1, "payload": 0}, mode, set()),
                ({**shape, "beats": 8, "row_beats": 2, "payload": 0}, mode, {"bad_job"}),
            ]
    for numbers, mode, expected in cases:
        found = await start(bench, channel, {**numbers, "mode": int(mode), "bank": 0})
        assert found == expected, f"{mode.label} {numbers}: {found} instead of {expected}"
        if not expected:
            await bench.until(taken(path), "a job reaches the data path")
            path.shown_jobs()
            path.pulse(job_done=1)
            await bench.idle(2)
        bench.cases += 1


@bench_test(ControlBench)
async def queue(bench: ControlBench) -> None:
    """The queue holds two jobs; STATUS counts; a third is refused and leaves no trace; jobs may be changed after START."""
    for channel in Channel:
        path = bench.paths[channel]
        for _ in range(4):
            path.jobs.pattern = iter(lambda: False, True)
            sent = [random_job(bench) for _ in range(JOB_QUEUE + 3)]
            queued = []
            for number, job in enumerate(sent):
                expected = set() if number < JOB_QUEUE else {"queue_full"}
                assert await start(bench, channel, job) == expected
                queued += [] if expected else [descriptor_of(channel, job)]
                status = await bench.read("STATUS", channel)
                assert status["queue_space"] == JOB_QUEUE - len(queued)
                assert status["jobs"] == len(queued)
                assert status["busy"] == 1
            path.jobs.pattern = coin(bench.rng, 0.3)
            await bench.until(taken(path, JOB_QUEUE), "both jobs are taken")
            assert path.shown_jobs() == queued
            status = await bench.read("STATUS", channel)
            assert (status["queue_space"], status["jobs"]) == (JOB_QUEUE, JOB_QUEUE)
            before = await bench.value("JOBS_DONE", channel)
            for left in (1, 0):
                path.pulse(job_done=1)
                await bench.idle(3)
                status = await bench.read("STATUS", channel)
                assert (status["jobs"], status["busy"]) == (left, int(left > 0))
            assert await bench.value("JOBS_DONE", channel) == before + 2
            path.pulse(job_done=1)  # of no job
            await bench.idle(3)
            assert await bench.value("JOBS_DONE", channel) == before + 2
            assert (await bench.read("STATUS", channel))["jobs"] == 0
            bench.cases += 1


@bench_test(ControlBench)
async def room(bench: ControlBench) -> None:
    """A START is refused, and queue_space is 0, while what looks at scales and payloads has no room for one more job."""
    for channel in Channel:
        path = bench.paths[channel]
        path.jobs.pattern = always()
        path.room = False
        await bench.idle(2)
        assert (await bench.read("STATUS", channel))["queue_space"] == 0
        assert await start(bench, channel, random_job(bench)) == {"queue_full"}
        assert not path.shown_jobs()
        assert not path.shown_starts()
        assert (await bench.read("STATUS", channel))["jobs"] == 0
        path.room = True
        await bench.idle(2)
        job = random_job(bench)
        assert not await start(bench, channel, job)
        assert path.shown_starts() == [told_of(channel, job)]
        await bench.idle(3)
        assert path.shown_jobs() == [descriptor_of(channel, job)]
        path.pulse(job_done=1)
        await bench.idle(3)
        bench.cases += 1


@bench_test(ControlBench)
async def commands_together(bench: ControlBench) -> None:
    """Every combination of the bits of CONTROL, with a job under way and without: abort wins over start, flush needs abort."""
    names = [part.name for part in register("CONTROL").fields]
    for channel in Channel:
        path = bench.paths[channel]
        for bits, busy in product(range(1 << len(names)), (False, True)):
            given = {name for place, name in enumerate(names) if bits >> place & 1}
            path.jobs.pattern = always()
            if busy:
                assert not await start(bench, channel, random_job(bench))
            job = random_job(bench)
            await program(bench, channel, job)
            await bench.idle(40)
            path.shown_jobs()
            path.abort_cycles.clear()
            path.flush_cycles.clear()
            counted = await bench.value("CYCLES_LOW", channel)
            await bench.command(channel, *given)
            await bench.idle(40)
            aborts, starts = "abort" in given, "start" in given and "abort" not in given
            what = f"CONTROL = {sorted(given)}, {'a job' if busy else 'no job'} under way"
            assert path.shown_jobs() == ([descriptor_of(channel, job)] if starts else []), what
            assert len(path.abort_cycles) == aborts, what
            assert path.flush_cycles == (path.abort_cycles if "flush" in given else []), what
            assert (await bench.read("STATUS", channel))["jobs"] == (busy and not aborts) + starts, what
            assert await bench.take_errors(channel) == ({"aborted"} if aborts and (busy or "start" in given) else set()), what
            if "clear_counters" in given and not starts and not (busy and not aborts):
                assert await bench.value("CYCLES_LOW", channel) <= 2, what  # cycles in which a job is still being aborted
            elif "clear_counters" not in given:
                assert await bench.value("CYCLES_LOW", channel) >= counted, what
            await bench.command(channel, "abort")
            await bench.take_errors(channel)
            bench.cases += 1


@bench_test(ControlBench)
async def scales(bench: ControlBench) -> None:
    """Scales come out as written, in order, with the last one marked; what does not fit is refused."""
    for channel in Channel:
        path = bench.paths[channel]
        for pattern in ("full_rate", "coins", "stalls"):
            path.scales.pattern = iter(lambda: False, True)
            sent = [(bench.rng.getrandbits(32), bench.rng.random() < 0.2) for _ in range(SCALE_QUEUE + 3)]
            for number, (value, last) in enumerate(sent):
                await bench.write("SCALE_LAST" if last else "SCALE", channel, value=value)
                assert (await bench.read("STATUS", channel))["scale_space"] == max(SCALE_QUEUE - 1 - number, 0)
                assert await bench.take_errors(channel) == (set() if number < SCALE_QUEUE else {"scale_overflow"})
            path.scales.pattern = PATTERNS[pattern](bench.rng)[1]
            sent = sent[:SCALE_QUEUE]
            for _ in range(40):
                while not (await bench.read("STATUS", channel))["scale_space"]:
                    pass
                sent.append((bench.rng.getrandbits(32), bench.rng.random() < 0.2))
                await bench.write("SCALE_LAST" if sent[-1][1] else "SCALE", channel, value=sent[-1][0])
            await bench.until(_scales_taken(path, len(sent)), "all scales are taken")
            assert [(scale["value"], bool(scale["last"])) for scale in path.shown_scales()] == sent
            assert not await bench.take_errors(channel)
            assert (await bench.read("STATUS", channel))["scale_space"] == SCALE_QUEUE
            bench.cases += len(sent)


def _scales_taken(path: DataPath, count: int) -> Callable[[], bool]:
    return lambda: len(path.scales.received) >= count


@bench_test(ControlBench, skip=not HAS_TABLES)
async def shift_tables(bench: ControlBench) -> None:
    """Tables reach the data path entry by entry; a table that a job under way uses cannot be written, the other one can."""
    bench.stall("coins")
    for channel in Channel:
        path = bench.paths[channel]
        path.jobs.pattern = always()
        tables = [[bench.rng.randint(0, 7) for _ in range(BLOCK_VALUES)] for _ in range(2)]
        for bank in (0, 1):
            await _write_table(bench, channel, bank, tables[bank])
        assert [path.shifts(0), path.shifts(1)] == tables
        # Banks of the jobs under way, oldest first
        under_way: list[int | None] = []
        for _ in range(80 if bench.full else 30):
            if len(under_way) < 5 and bench.rng.random() < 0.5:
                mode = Mode.JPEG_ACT if bench.rng.random() < 0.6 else bench.rng.choice(bench.config.built_modes)
                job = random_job(bench, mode)
                assert not await start(bench, channel, job)
                under_way.append(job["bank"] if mode.has_dct else None)
            elif under_way and bench.rng.random() < 0.7:
                path.pulse(job_done=1)
                under_way.pop(0)
                await bench.idle(2)
            bank, index = bench.rng.randint(0, 1), bench.rng.randrange(SHIFT_REGISTERS)
            busy = (await bench.read("STATUS", channel))["bank_busy"]
            assert busy == sum(1 << b for b in (0, 1) if b in under_way), f"{busy:#b} with {under_way}"
            entries = [bench.rng.randint(0, 7) for _ in range(8)]
            await bench.write(f"SHIFTS{bank}", channel, index, **{f"shift{i}": entry for i, entry in enumerate(entries)})
            if bank not in under_way:
                tables[bank][8 * index : 8 * index + 8] = entries
            assert await bench.take_errors(channel) == ({"busy_write"} if bank in under_way else set())
            assert [path.shifts(0), path.shifts(1)] == tables
            bench.cases += 1
        await _jobs_that_end_while_one_starts(bench, channel)
        await bench.command(channel, "abort")
        assert (await bench.read("STATUS", channel))["bank_busy"] == 0
        await bench.take_errors(channel)
        for bank in (0, 1):
            tables[bank] = [7 - entry for entry in tables[bank]]
            await _write_table(bench, channel, bank, tables[bank])
        assert [path.shifts(0), path.shifts(1)] == tables
        assert not await bench.take_errors(channel)


async def _jobs_that_end_while_one_starts(bench: ControlBench, channel: Channel) -> None:
    """A table is busy until its job has ended, whatever the cycle in which the job before it ends."""
    bench.stall("full_rate")
    await bench.command(channel, "abort")
    await bench.take_errors(channel)
    first, second = random_job(bench, Mode.JPEG_ACT) | {"bank": 0}, random_job(bench, Mode.JPEG_ACT) | {"bank": 1}
    for delay in range(60):
        assert not await start(bench, channel, first)
        await bench.write("MODE", channel, mode=second["mode"], bank=1)
        for name in ("beats", "row_beats", "channel_rows"):
            await bench.write(name.upper(), channel, value=second[name])
        if channel is Channel.DECOMPRESS:
            await bench.write("PAYLOAD_BYTES_LOW", channel, value=0)
            await bench.write("PAYLOAD_BYTES_HIGH", channel, value=0)
        starting = cocotb.start_soon(bench.command(channel, "start"))
        await bench.idle(delay)
        bench.paths[channel].pulse(job_done=1)
        await starting
        await bench.idle(2)
        for jobs, busy in ((1, 0b10), (0, 0)):
            status = await bench.read("STATUS", channel)
            assert (status["jobs"], status["bank_busy"]) == (jobs, busy), f"{status} after a job that ended {delay} cycles late"
            bench.paths[channel].pulse(job_done=jobs)
            await bench.idle(2)
        bench.cases += 1


async def _write_table(bench: ControlBench, channel: Channel, bank: int, table: list[int]) -> None:
    for index in range(SHIFT_REGISTERS):
        part = table[8 * index : 8 * index + 8]
        await bench.write(f"SHIFTS{bank}", channel, index, **{f"shift{i}": entry for i, entry in enumerate(part)})
