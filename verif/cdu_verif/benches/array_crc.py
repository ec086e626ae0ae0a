"""Tests of the whole unit with payloads that carry a CRC-32: zlib's, by the driver, in both directions."""

from __future__ import annotations

from dataclasses import replace

from cdu_driver import Job, JobLostError
from cdu_spec.bitstream import CRC_BYTES
from cdu_spec.register_types import Channel

from cdu_verif.benches.array_bench import ArrayBench, input_of, job_of, queue_of
from cdu_verif.cases.crc import crc_of
from cdu_verif.content.tensors import KINDS, Exchange, exchange
from cdu_verif.simulation import cover_points
from cdu_verif.simulation.bench import simulated_config
from cdu_verif.simulation.bench_test import bench_test
from cdu_verif.simulation.driver_jobs import driver_job

_CONFIG = simulated_config()
_MODES = _CONFIG.built_modes
#: Wrong bits for each mode, of a payload of some hundred to some thousand.
_DAMAGED = 12
#: Error that a damaged payload may raise before its end has come.
_EARLIER = "bad_head"


def _items(bench: ArrayBench, count: int) -> list[Exchange]:
    """So many small tensors for each mode, in random order."""
    rng = bench.rng
    modes = rng.sample([*_MODES] * count, len(_MODES) * count)
    shapes = [(rng.randint(1, 2), rng.randint(1, 3), rng.randint(1, 9), rng.randint(1, 40)) for _ in modes]
    return [exchange(bench.config, rng, shape, mode, rng.choice(KINDS)) for shape, mode in zip(shapes, modes, strict=True)]


def _job(channel: Channel, item: Exchange, crc: bool) -> Job:
    data = input_of(channel, item)
    if crc and channel is Channel.DECOMPRESS:
        data += crc_of(item.payload)
    return replace(driver_job(job_of(channel, item), data), crc=crc)


def _patience(jobs: list[Job]) -> int:
    return 20_000 * len(jobs) + 60 * sum(job.beats for job in jobs)


@bench_test(ArrayBench, skip=not _CONFIG.payload_crc, pattern=["full_rate", "coins"])
async def payloads_with_a_crc(bench: ArrayBench, pattern: str) -> None:
    """Payloads of all modes leave with their CRC and come back with it; jobs in between have none."""
    bench.stall(pattern)
    driver = await bench.open()
    items = _items(bench, 6 if bench.full else 3)
    signed = [bench.rng.random() < 0.7 for _ in items]
    for channel in Channel:
        jobs = [_job(channel, item, crc) for item, crc in zip(items, signed, strict=True)]
        results = await bench.within(_patience(jobs), queue_of(driver, channel).run(jobs), channel.value)
        for item, crc, result in zip(items, signed, results, strict=True):
            data = bytes(result.data)
            if crc and channel is Channel.COMPRESS:
                assert data[-CRC_BYTES:] == crc_of(item.payload), f"{item.name}: {data[-CRC_BYTES:].hex()} is not its CRC"
                data = data[:-CRC_BYTES]
            bench.check(channel, item, data)


@bench_test(ArrayBench, skip=not _CONFIG.payload_crc)
async def damaged_payloads(bench: ArrayBench) -> None:
    """One wrong bit, anywhere in a payload or its CRC, is found; the next job is as if nothing had been."""
    driver = await bench.open()
    for item in _items(bench, 1):
        job = _job(Channel.DECOMPRESS, item, crc=True)
        content = int.from_bytes(job.data, "little")
        for place in bench.rng.sample(range(8 * len(job.data)), _DAMAGED):
            damaged = replace(job, data=(content ^ 1 << place).to_bytes(len(job.data), "little"))
            flags: tuple[str, ...] = ()
            try:
                await bench.within(_patience([job]), driver.decompress.run([damaged]), item.name)
            except JobLostError as error:
                flags = error.flags
            assert {"bad_crc", _EARLIER} & set(flags), f"{item.name}: bit {place} is wrong, and what is said is {flags}"
            if "bad_crc" in flags:
                bench.cover("cp_error", cover_points.error("bad_crc", Channel.DECOMPRESS))
        (result,) = await bench.within(_patience([job]), driver.decompress.run([job]), item.name)
        bench.check(Channel.DECOMPRESS, item, bytes(result.data))


@bench_test(ArrayBench, skip=not _CONFIG.payload_crc)
async def lengths(bench: ArrayBench) -> None:
    """The length of a payload is told without its CRC, and its bytes are counted so; one more or less is another length."""
    (item, *_) = _items(bench, 1)
    for told, error in ((0, set()), (1, {"payload_length"}), (-1, {"payload_length"})):
        job = job_of(Channel.DECOMPRESS, item)
        if job.shifts:
            await bench.write_table(Channel.DECOMPRESS, 0, job.shifts)
        await bench.write("PAYLOAD_CRC", Channel.DECOMPRESS, present=1)
        await bench.program(Channel.DECOMPRESS, job, payload_bytes=len(item.payload) + told)
        found = await bench.errors(Channel.DECOMPRESS)
        if found == {"bad_length"} and error:
            continue
        before = await bench.number("BYTES", Channel.DECOMPRESS)
        assert not found, f"{item.name}: {found}"
        bench.feed(Channel.DECOMPRESS, item, input_of(Channel.DECOMPRESS, item) + crc_of(item.payload))
        bench.check(Channel.DECOMPRESS, item, await bench.result(Channel.DECOMPRESS, job))
        found = await bench.errors(Channel.DECOMPRESS)
        assert found == error, f"{item.name}, {told} bytes more: {found}, not {error}"
        if bench.config.counter_bits:
            counted = await bench.number("BYTES", Channel.DECOMPRESS) - before
            assert counted == len(item.payload), f"{item.name}: {counted} bytes counted of {len(item.payload)}"
