"""Tests of the control alone: register port, jobs, scales, shift tables, errors, interrupts, watchdog, counters.

What registers read and when a job is refused is computed here from the configuration and from :class:`cdu_spec.MatrixView`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import cocotb
from cdu.words import JobEvents, PortEvents
from cdu_spec.bitstream import MatrixView, Mode
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_VALUES, LANES, TILE_BLOCKS
from cdu_spec.registers import (
    BLOCK_BYTES,
    ERROR_FLAGS,
    GLOBAL,
    JOB_QUEUE,
    REGISTER_BITS,
    REGISTER_BYTES,
    SCALE_QUEUE,
    SHIFT_REGISTERS,
    Access,
    Channel,
    ScaleSource,
    address,
    channel_registers,
    register,
)

from cdu_verif.benches.control_bench import ControlBench, DataPath
from cdu_verif.simulation.bench import simulated_config
from cdu_verif.simulation.patterns import PATTERNS, always, coin
from cdu_verif.stimulus.payloads import quantizer
from cdu_verif.stimulus.tensors import affine_settings

_BUS_PATTERNS = ["full_rate", "coins", "stalls"]
_OKAY, _SLVERR = 0, 2
_ALL_ONES = (1 << REGISTER_BITS) - 1
_HAS_TABLES = Mode.JPEG_ACT in simulated_config().built_modes
#: Errors that a data path reports as events.
_EVENTS = tuple(JobEvents().members)
#: Errors that are seen at the ports.
_PORT_EVENTS = tuple(PortEvents().members)


def _configured(config: CduConfig) -> dict[str, int]:
    """What the registers of the configuration read, bit by bit."""
    return {
        "ARRAY": config.cdus | config.port_beats << 8 | config.packed_bytes << 16 | (config.duplex == "half") << 24,
        "NUMBERS": int(config.dtype)
        | config.scale_bits << 8
        | config.const_bits << 16
        | config.pass1_bits << 20
        | (config.rounding == "half_away") << 24,
        "MODES": sum(1 << int(mode) for mode in config.built_modes),
    }


def _places(config: CduConfig) -> dict[int, tuple[str, Access, int, int]]:
    """By address: name, access, value after reset, and the bits that keep what is written."""
    found = {}
    of_channels = ((channel, channel_registers(channel, config)) for channel in Channel)
    tables: list[tuple[Channel | None, Any]] = [(None, GLOBAL), *of_channels]
    for channel, table in tables:
        for entry in table:
            reset = _configured(config).get(entry.name, entry.reset)
            kept = sum(part.mask for part in entry.fields)
            if entry.name.startswith("SHIFTS") and not _HAS_TABLES:
                kept = 0
            for index in range(entry.count):
                found[address(entry.name, channel, index)] = (entry.name, entry.access, reset, kept)
    return found


def _commands(name: str) -> bool:
    """Whether a write to this register sets something off."""
    return name in ("CONTROL", "SCALE", "SCALE_LAST")


@cocotb.test
@cocotb.parametrize(pattern=_BUS_PATTERNS)
async def registers_read_what_they_should(dut: Any, pattern: str) -> None:
    """Every address: value after reset, what a write keeps, what is refused; nothing else changes."""
    bench = await ControlBench(dut, f"registers_read_what_they_should/pattern={pattern}").start()
    bench.stall(pattern)
    places = _places(bench.config)
    for place, (name, access, reset, _) in places.items():
        expected = 0 if access is Access.WO else reset
        value, response = await bench.raw_read(place)
        assert (value, response) == (expected, _OKAY), f"{name} at {place:#x} reads {value:#x}, response {response}"
    holes = [place for place in range(0, 4 * BLOCK_BYTES, REGISTER_BYTES) if place not in places]
    for place in holes if bench.full else bench.rng.sample(holes, 100):
        _, response = await bench.raw_read(place)
        assert response == _SLVERR, f"a read of {place:#x}, where no register is, was answered with {response}"
        assert await bench.value("BAD_ADDRESS") == place
    assert await bench.value("BUS_ERRORS") == 1
    await bench.write("BUS_ERRORS", bad_access=1)
    assert await bench.value("BUS_ERRORS") == 0

    kept_values = {}
    for place, (name, access, reset, kept) in places.items():
        if _commands(name):
            continue
        written = bench.rng.getrandbits(REGISTER_BITS)
        response = await bench.raw_write(place, written)
        assert response == (_SLVERR if access is Access.RO else _OKAY), f"a write to {name} was answered with {response}"
        kept_values[place] = written & kept if access is Access.RW else reset if access is Access.RO else 0
    assert await bench.value("BUS_ERRORS") == 1
    refused = await bench.read("BAD_ADDRESS")
    assert refused["write"] == 1
    assert places[refused["address"]][1] is Access.RO
    await bench.write("BUS_ERRORS", bad_access=1)
    skip = {address(name) for name in ("BAD_ADDRESS", "INTERRUPTS")}
    for place, expected in kept_values.items():
        if place not in skip:
            assert await bench.raw_read(place) == (expected, _OKAY), f"{places[place][0]} does not keep what was written"
    bench.cases += len(places)
    bench.report()


@cocotb.test
async def accesses_that_are_refused(dut: Any) -> None:
    """Partial writes and writes to nowhere do nothing, are answered with SLVERR, and interrupt when enabled."""
    bench = await ControlBench(dut, "accesses_that_are_refused").start()
    bench.stall("coins")
    beats = address("BEATS", Channel.COMPRESS)
    assert await bench.raw_write(beats, 0x12345678) == _OKAY
    for size in range(1, REGISTER_BYTES):
        assert await bench.raw_write(beats, _ALL_ONES, size) == _SLVERR
        assert await bench.raw_read(beats) == (0x12345678, _OKAY)
        assert await bench.read("BAD_ADDRESS") == {"address": beats, "write": 1}
    for size in range(1, REGISTER_BYTES):
        assert await bench.raw_write(address("CONTROL", Channel.COMPRESS), 1, size) == _SLVERR
    assert not await bench.take_errors(Channel.COMPRESS), "a part of a START started something"
    assert await bench.raw_write(address("PAYLOAD_BYTES_LOW", Channel.DECOMPRESS), 5) == _OKAY
    only = address("PAYLOAD_BYTES_LOW", Channel.DECOMPRESS) - BLOCK_BYTES
    assert await bench.raw_write(only, 5) == _SLVERR, "compression has no PAYLOAD_BYTES"
    assert not bench.get("irq")
    await bench.write("BUS_ERROR_ENABLE", bad_access=1)
    await bench.idle(2)
    assert bench.get("irq")
    assert await bench.read("INTERRUPTS") == {"compress": 0, "decompress": 0, "bus": 1}
    await bench.write("BUS_ERRORS", bad_access=1)
    await bench.idle(2)
    assert not bench.get("irq")
    bench.cases += 1
    bench.report()


@cocotb.test
async def reads_and_writes_together(dut: Any) -> None:
    """Reads and writes under way at the same time, many of each, give every answer once and starve nobody."""
    bench = await ControlBench(dut, "reads_and_writes_together").start()
    for pattern in _BUS_PATTERNS:
        bench.stall(pattern)
        count = 40
        values = [bench.rng.getrandbits(REGISTER_BITS) for _ in range(count)]
        first = cocotb.start_soon(_write_all(bench, address("BEATS", Channel.COMPRESS), values))
        seen: list[int] = []
        while not first.done() or len(seen) < count:
            seen.append((await bench.raw_read(address("BEATS", Channel.COMPRESS)))[0])
        order = [values.index(value) for value in seen if value in values]
        assert order == sorted(order), "reads saw writes out of order"
        assert len(set(order)) > count // 4, "reads waited for the writes to end"
        assert (await bench.value("BEATS", Channel.COMPRESS)) == values[-1]
        bench.cases += count
    bench.report()


async def _write_all(bench: ControlBench, place: int, values: list[int]) -> None:
    for value in values:
        assert await bench.raw_write(place, value) == _OKAY


def _job(bench: ControlBench, mode: Mode | None = None) -> dict[str, Any]:
    """The registers of a random good job."""
    rng = bench.rng
    mode = mode or rng.choice(bench.config.built_modes)
    shape = (rng.randint(1, 3), rng.randint(1, 7), rng.randint(1, 40), rng.choice([1, 7, 8, 9, 33, 250, 100_003]))
    view = MatrixView.of(shape, mode)
    settings = affine_settings(rng, mode) if mode.is_affine else None
    least, most = view.payload_bounds(bench.config.dtype, settings)
    return {
        "mode": int(mode),
        "bank": rng.randint(0, 1) if mode.has_dct else 0,
        "quantizer": quantizer(settings),
        "seed": settings.seed if settings else 0,
        "beats": view.beats,
        "row_beats": view.row_beats,
        "channel_rows": view.channel_rows,
        "payload": rng.choice([0, least, most, rng.randint(least, most)]),
        "scales": int(rng.choice(list(ScaleSource))),
        "least": least,
        "most": most,
    }


def _taken(path: DataPath, count: int = 1) -> Callable[[], bool]:
    return lambda: len(path.jobs.received) >= count


def _scales_taken(path: DataPath, count: int) -> Callable[[], bool]:
    return lambda: len(path.scales.received) >= count


def _aborted(path: DataPath) -> Callable[[], bool]:
    return lambda: bool(path.abort_cycles)


async def _start(bench: ControlBench, channel: Channel, job: dict[str, Any]) -> set[str]:
    """Program and start a job; the errors that this set."""
    await _program(bench, channel, job)
    await bench.command(channel, "start")
    return await bench.take_errors(channel)


async def _program(bench: ControlBench, channel: Channel, job: dict[str, Any]) -> None:
    """Write the registers of a job."""
    await bench.write("MODE", channel, mode=job["mode"], bank=job["bank"], scales=job.get("scales", 0))
    for name in ("beats", "row_beats", "channel_rows"):
        await bench.write(name.upper(), channel, value=job[name])
    if bench.config.has_affine:
        fields = dict(job["quantizer"])
        await bench.write("QUANTIZER", channel, range=fields.pop("block_range"), **fields)
        if channel is Channel.COMPRESS:
            await bench.write("SEED", channel, value=job["seed"])
        else:
            job["seed"] = 0
    if channel is Channel.DECOMPRESS:
        await bench.write("PAYLOAD_BYTES_LOW", channel, value=job["payload"] & _ALL_ONES)
        await bench.write("PAYLOAD_BYTES_HIGH", channel, value=job["payload"] >> REGISTER_BITS)


def _descriptor(job: dict[str, Any]) -> dict[str, Any]:
    return {name: job[name] for name in ("mode", "bank", "beats", "row_beats", "channel_rows", "quantizer", "seed")}


def _told(channel: Channel, job: dict[str, Any]) -> dict[str, Any]:
    """What of a job goes to what looks at its scales, and at its payload."""
    mode, payload = Mode(job["mode"]), job["payload"]
    order = {"source": job["scales"], "affine": int(mode.is_affine)}
    told: dict[str, Any] = {"scaled": int(mode.has_scales), "scale_order": order}
    if channel is Channel.DECOMPRESS:
        told["expected_length"] = {"length": payload & _ALL_ONES, "known": int(payload > 0)}
    return told


def _spoil(bench: ControlBench, channel: Channel, job: dict[str, Any]) -> set[str]:
    """Make a job impossible in one way; the errors that say so."""
    rng, mode = bench.rng, Mode(job["mode"])
    ways = ["mode", "zero", "source"]
    if mode.has_zvc:
        ways.append("part")
    if mode.in_tiles:
        ways.append("strip")
    if mode.is_affine:
        ways += ["step", "statistics"]
    if channel is Channel.DECOMPRESS:
        ways += ["short", "long", "wide"]
    way = rng.choice(ways)
    if way == "mode":
        job["mode"] = rng.choice([number for number in range(16) if number not in [int(m) for m in bench.config.built_modes]])
    elif way == "zero":
        job[rng.choice(["beats", "row_beats", "channel_rows"])] = 0
    elif way == "source":
        job["scales"] = len(ScaleSource)
    elif way == "step":
        job["quantizer"] |= {"bits_log2": 3, "step_log2": rng.randint(9, 15)}
    elif way == "statistics":  # of a mode that has none, or to be decompressed
        job["quantizer"] |= {"statistics": 1, "block_range": 1}
    elif way == "part":
        job["beats"] += rng.randint(1, 7)
    elif way == "strip":
        job["row_beats"] = rng.randint(2, 1 << 20)
        job["beats"] = 8 * (job["row_beats"] * rng.randint(1, 200) + rng.choice([1, job["row_beats"] - 1]))
    else:
        job["payload"] = {"short": job["least"] - 1, "long": job["most"] + 1, "wide": job["most"] + (1 << 40)}[way]
        # A payload of one byte less than one is one of unknown length
        return {"bad_length"} if job["payload"] else set()
    return {"bad_job"}


@cocotb.test
@cocotb.parametrize(pattern=_BUS_PATTERNS)
async def jobs(dut: Any, pattern: str) -> None:
    """Good jobs reach the data path as they were written, in order; bad ones set their bit and do not."""
    bench = await ControlBench(dut, f"jobs/pattern={pattern}").start()
    bench.stall(pattern)
    for channel in Channel:
        path = bench.paths[channel]
        path.jobs.pattern = coin(bench.rng, 0.5)
        accepted = 0
        for _ in range(60 if bench.full else 25):
            job = _job(bench)
            expected = _spoil(bench, channel, job) if bench.rng.random() < 0.5 else set()
            found = await _start(bench, channel, job)
            assert found == expected, f"{job}: {found} instead of {expected}"
            told = path.shown_starts()
            if expected:
                assert not told, f"{job} was refused, and yet {told}"
            else:
                assert told == [_told(channel, job)]
                await bench.until(_taken(path), "a job reaches the data path")
                assert path.shown_jobs() == [_descriptor(job)]
                accepted += 1
                if bench.rng.random() < 0.7 or accepted % 4 == 0:
                    while (await bench.read("STATUS", channel))["busy"]:
                        path.pulse(job_done=1)
                        await bench.idle(2)
            bench.cases += 1
        await bench.idle(20)
        assert not path.jobs.received, "a job came from nowhere"
    bench.report()


@cocotb.test
async def largest_numbers(dut: Any) -> None:
    """Counts and lengths at the ends of their ranges."""
    bench = await ControlBench(dut, "largest_numbers").start()
    channel = Channel.DECOMPRESS
    path = bench.paths[channel]
    path.jobs.pattern = always()
    most = _ALL_ONES
    cases = []
    for mode in bench.config.built_modes:
        settings = affine_settings(bench.rng, mode) if mode.is_affine else None
        row = TILE_BLOCKS if mode is Mode.ACTNN else 1
        beats = most // (8 * row) * (8 * row) if mode.has_zvc or mode.in_tiles else most
        shape: dict[str, Any] = {"beats": beats, "row_beats": row if mode is Mode.ACTNN else beats // 8, "channel_rows": most}
        shape |= {"quantizer": quantizer(settings), "seed": 0}
        view = MatrixView(beats // row, LANES * row, 1, most, mode)
        least, longest = view.payload_bounds(bench.config.dtype, settings)
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
        found = await _start(bench, channel, {**numbers, "mode": int(mode), "bank": 0})
        assert found == expected, f"{mode.label} {numbers}: {found} instead of {expected}"
        if not expected:
            await bench.until(_taken(path), "a job reaches the data path")
            path.shown_jobs()
            path.pulse(job_done=1)
            await bench.idle(2)
        bench.cases += 1
    bench.report()


@cocotb.test
async def queue(dut: Any) -> None:
    """The queue holds two jobs; STATUS counts; a third is refused and leaves no trace; jobs may be changed after START."""
    bench = await ControlBench(dut, "queue").start()
    for channel in Channel:
        path = bench.paths[channel]
        for _ in range(4):
            path.jobs.pattern = iter(lambda: False, True)
            sent = [_job(bench) for _ in range(JOB_QUEUE + 3)]
            queued = []
            for number, job in enumerate(sent):
                expected = set() if number < JOB_QUEUE else {"queue_full"}
                assert await _start(bench, channel, job) == expected
                queued += [] if expected else [_descriptor(job)]
                status = await bench.read("STATUS", channel)
                assert status["queue_space"] == JOB_QUEUE - len(queued)
                assert status["jobs"] == len(queued)
                assert status["busy"] == 1
            path.jobs.pattern = coin(bench.rng, 0.3)
            await bench.until(_taken(path, JOB_QUEUE), "both jobs are taken")
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
    bench.report()


@cocotb.test(skip=not _HAS_TABLES)
async def shift_tables(dut: Any) -> None:
    """Tables reach the data path entry by entry; a table that a job under way uses cannot be written, the other one can."""
    bench = await ControlBench(dut, "shift_tables").start()
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
                job = _job(bench, mode)
                assert not await _start(bench, channel, job)
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
    bench.report()


async def _jobs_that_end_while_one_starts(bench: ControlBench, channel: Channel) -> None:
    """A table is busy until its job has ended, whatever the cycle in which the job before it ends."""
    bench.stall("full_rate")
    await bench.command(channel, "abort")
    await bench.take_errors(channel)
    first, second = _job(bench, Mode.JPEG_ACT) | {"bank": 0}, _job(bench, Mode.JPEG_ACT) | {"bank": 1}
    for delay in range(60):
        assert not await _start(bench, channel, first)
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


@cocotb.test
async def scales(dut: Any) -> None:
    """Scales come out as written, in order, with the last one marked; what does not fit is refused."""
    bench = await ControlBench(dut, "scales").start()
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
    bench.report()


def _event(path: DataPath, flags: set[str]) -> None:
    """Let these errors happen in the next cycle."""
    groups = {"events": _EVENTS, "port_events": _PORT_EVENTS}
    path.pulse(**{group: {name: int(name in flags) for name in names} for group, names in groups.items()})


@cocotb.test
async def errors_and_interrupts(dut: Any) -> None:
    """Every error sets its own sticky bit, and interrupts when enabled at both places; writing 1 clears just that bit."""
    bench = await ControlBench(dut, "errors_and_interrupts").start()
    names = [name for name, _ in ERROR_FLAGS]
    reported = [name for name in names if name in (*_EVENTS, *_PORT_EVENTS)]
    for channel in Channel:
        path = bench.paths[channel]

        async def interrupts(channel: Channel = channel) -> bool:
            await bench.idle(6)
            high = bool(bench.get("irq"))
            pending = await bench.read("INTERRUPTS")
            assert pending == {"compress": 0, "decompress": 0, "bus": 0, channel.value: int(high)}
            return high

        for name in reported:
            _event(path, {name})
            assert not await interrupts()
            assert {flag for flag, bit in (await bench.read("ERRORS", channel)).items() if bit} == {name}
            assert await bench.read("INTERRUPT_STATUS", channel) == {"job_done": 0, "error": 1}
            await bench.write("ERRORS", channel, **{other: 1 for other in names if other != name})
            assert {flag for flag, bit in (await bench.read("ERRORS", channel)).items() if bit} == {name}
            assert await bench.take_errors(channel) == {name}
            assert await bench.value("ERRORS", channel) == 0
        await bench.write("INTERRUPT_ENABLE", channel, error=1)
        for _ in range(20):
            enabled = {name for name in names if bench.rng.random() < 0.5}
            await bench.write("ERROR_ENABLE", channel, **dict.fromkeys(enabled, 1))
            flags = {name for name in reported if bench.rng.random() < 0.4}
            _event(path, flags)
            assert await interrupts() == bool(flags & enabled)
            assert await bench.take_errors(channel) == flags
            assert not await interrupts()
            bench.cases += 1
        await bench.write("ERROR_ENABLE", channel, **dict.fromkeys(names, 1))
        await _events_while_clearing(bench, channel)

        # The end of a job
        path.jobs.pattern = always()
        for enable in (0, 1):
            await bench.write("INTERRUPT_ENABLE", channel, job_done=enable)
            assert not await _start(bench, channel, _job(bench, bench.config.built_modes[0]))
            assert not await interrupts()
            path.pulse(job_done=1)
            assert await interrupts() == bool(enable)
            assert await bench.read("INTERRUPT_STATUS", channel) == {"job_done": 1, "error": 0}
            await bench.write("INTERRUPT_STATUS", channel, job_done=1)
            assert not await interrupts()
        await bench.write("INTERRUPT_ENABLE", channel)
    bench.report()


async def _events_while_clearing(bench: ControlBench, channel: Channel) -> None:
    """An error in the very cycle in which its interrupt is cleared keeps the interrupt high all the time."""
    unbroken = 0
    for delay in range(20):
        _event(bench.paths[channel], {"keep"})
        await bench.idle(6)
        quiet = bench.quiet_cycles
        clearing = cocotb.start_soon(bench.write("INTERRUPT_STATUS", channel, error=1))
        await bench.idle(delay)
        _event(bench.paths[channel], {"keep"})
        await clearing
        await bench.idle(6)
        unbroken += bench.quiet_cycles == quiet
        await bench.take_errors(channel)
    assert unbroken == 1, f"{unbroken} of 20 cycles are that of the clearing"


@cocotb.test
async def watchdog(dut: Any) -> None:
    """Jobs that do not move are aborted after as many cycles as WATCHDOG says; any transfer, and progress, begins anew."""
    bench = await ControlBench(dut, "watchdog").start()
    moves: list[dict[str, int]] = [
        {"input_valid": 1, "input_ready": 1},
        {"output_valid": 1, "output_ready": 1},
        {"progress": 1},
    ]
    for channel in Channel:
        path = bench.paths[channel]
        path.jobs.pattern = always()
        for limit in (20, 75):
            await bench.write("WATCHDOG", channel, value=limit)
            for still in ({}, {"input_valid": 1}, {"output_ready": 1}, {"input_ready": 1, "output_valid": 1}):
                path.traffic = partial(dict, still)
                await bench.idle(3 * limit)
                assert not path.abort_cycles, "a timeout without a job"
                path.traffic = lambda: {"progress": 1}
                assert not await _start(bench, channel, _job(bench, bench.config.built_modes[0]))
                path.traffic = partial(dict, still)
                # Transfers, each just in time
                for move in moves:
                    path.pulse(**move)
                    last = bench.cycle
                    await bench.idle(limit - 2)
                    assert not path.abort_cycles, f"a timeout {limit - 2} cycles after {move}"
                path.pulse(**moves[0])
                last = bench.cycle
                await bench.until(_aborted(path), "the watchdog bites")
                assert limit <= path.abort_cycles[0] - last <= limit + 8, f"{path.abort_cycles[0] - last} cycles, not {limit}"
                await bench.idle(3 * limit)
                assert len(path.abort_cycles) == 1
                assert not path.flush_cycles
                assert await bench.take_errors(channel) == {"timeout"}
                status = await bench.read("STATUS", channel)
                assert (status["jobs"], status["queue_space"]) == (0, JOB_QUEUE)
                path.abort_cycles.clear()
                path.shown_jobs()
                bench.cases += 1
        await bench.write("WATCHDOG", channel, value=0)
        assert not await _start(bench, channel, _job(bench, bench.config.built_modes[0]))
        await bench.idle(400)
        assert not path.abort_cycles, "a timeout with the watchdog off"
        path.traffic = None
        path.pulse(job_done=1)
    bench.report()


@cocotb.test
async def abort(dut: Any) -> None:
    """After an abort there are no jobs and no scales, in either the queue or the data path, and the next job works."""
    bench = await ControlBench(dut, "abort").start()
    for channel in Channel:
        path = bench.paths[channel]
        for started in (0, 1, 2, 4):
            for flush in (False, True):
                path.jobs.pattern = always()
                for number in range(started):
                    if started - number == JOB_QUEUE:
                        path.jobs.pattern = iter(lambda: False, True)
                    assert not await _start(bench, channel, _job(bench))
                for _ in range(5):
                    await bench.write("SCALE", channel, value=1)
                path.shown_jobs()
                await bench.command(channel, "abort", *(["flush"] if flush else []))
                await bench.idle(3)
                assert len(path.abort_cycles) == 1
                assert path.flush_cycles == (path.abort_cycles if flush else [])
                path.abort_cycles.clear()
                path.flush_cycles.clear()
                assert await bench.take_errors(channel) == ({"aborted"} if started else set())
                status = await bench.read("STATUS", channel)
                expected = {"busy": 0, "jobs": 0, "queue_space": JOB_QUEUE, "scale_space": SCALE_QUEUE, "bank_busy": 0}
                assert status == expected | {"flushing": 0, "draining": 0}
                path.jobs.pattern = path.scales.pattern = always()
                await bench.idle(5)
                assert not path.shown_jobs(), "an aborted job came"
                assert not path.shown_scales(), "a scale survived"
                job = _job(bench)
                assert not await _start(bench, channel, job)
                await bench.idle(3)
                assert path.shown_jobs() == [_descriptor(job)]
                path.pulse(job_done=1)
                await bench.idle(2)
                assert (await bench.read("STATUS", channel))["busy"] == 0
                path.scales.pattern = iter(lambda: False, True)
                await bench.take_errors(channel)
                bench.cases += 1
        # A flush alone does nothing; its state is shown
        await bench.command(channel, "flush")
        await bench.idle(5)
        assert not path.abort_cycles
        assert not path.flush_cycles
        for state in ("flushing", "draining"):
            path.traffic = partial(dict, {state: 1})
            await bench.idle(2)
            assert (await bench.read("STATUS", channel))[state] == 1
            path.traffic = None
    bench.report()


@cocotb.test
async def commands_together(dut: Any) -> None:
    """Every combination of the bits of CONTROL, with a job under way and without: abort wins over start, flush needs abort."""
    bench = await ControlBench(dut, "commands_together").start()
    names = [part.name for part in register("CONTROL").fields]
    for channel in Channel:
        path = bench.paths[channel]
        for bits, busy in product(range(1 << len(names)), (False, True)):
            given = {name for place, name in enumerate(names) if bits >> place & 1}
            path.jobs.pattern = always()
            if busy:
                assert not await _start(bench, channel, _job(bench))
            job = _job(bench)
            await _program(bench, channel, job)
            await bench.idle(40)
            path.shown_jobs()
            path.abort_cycles.clear()
            path.flush_cycles.clear()
            counted = await bench.value("CYCLES_LOW", channel)
            await bench.command(channel, *given)
            await bench.idle(40)
            aborts, starts = "abort" in given, "start" in given and "abort" not in given
            what = f"CONTROL = {sorted(given)}, {'a job' if busy else 'no job'} under way"
            assert path.shown_jobs() == ([_descriptor(job)] if starts else []), what
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
    bench.report()


@cocotb.test
async def room(dut: Any) -> None:
    """A START is refused, and queue_space is 0, while what looks at scales and payloads has no room for one more job."""
    bench = await ControlBench(dut, "room").start()
    for channel in Channel:
        path = bench.paths[channel]
        path.jobs.pattern = always()
        path.room = False
        await bench.idle(2)
        assert (await bench.read("STATUS", channel))["queue_space"] == 0
        assert await _start(bench, channel, _job(bench)) == {"queue_full"}
        assert not path.shown_jobs()
        assert not path.shown_starts()
        assert (await bench.read("STATUS", channel))["jobs"] == 0
        path.room = True
        await bench.idle(2)
        job = _job(bench)
        assert not await _start(bench, channel, job)
        assert path.shown_starts() == [_told(channel, job)]
        await bench.idle(3)
        assert path.shown_jobs() == [_descriptor(job)]
        path.pulse(job_done=1)
        await bench.idle(3)
        bench.cases += 1
    bench.report()


class _Traffic:
    """Random behaviour of a channel's ports, and what the counters must say about it."""

    def __init__(self, bench: ControlBench, path: DataPath) -> None:
        self._bench, self._path = bench, path
        self.expected = dict.fromkeys(("CYCLES", "VALUES", "BYTES", "INPUT_STALL", "INPUT_IDLE", "OUTPUT_STALL"), 0)
        self._busy = False
        self._ends = False

    def end(self) -> None:
        """The next cycle is the last one of the job."""
        self._ends = True

    def __call__(self) -> dict[str, Any]:
        rng, config = self._bench.rng, self._bench.config
        names = ("input_valid", "input_ready", "output_valid", "output_ready")
        inputs: dict[str, Any] = {name: int(rng.random() < 0.6) for name in names}
        inputs["values"] = rng.randint(0, LANES * config.port_beats) if rng.random() < 0.7 else 0
        inputs["packed"] = rng.randint(0, config.packed_bytes) if rng.random() < 0.7 else 0
        inputs["job_done"] = int(self._ends)
        return inputs

    def sample(self) -> None:
        """Count one settled cycle. The job stands at the port in the first busy cycle and ends in the last one."""
        inputs, counts = self._path.inputs, self.expected
        if "values" not in inputs:
            return  # the first cycle
        self._busy |= self._path.job_waits
        counts["VALUES"] += inputs["values"]
        counts["BYTES"] += inputs["packed"]
        if self._busy:
            counts["CYCLES"] += 1
            counts["INPUT_STALL"] += inputs["input_valid"] & ~inputs["input_ready"] & 1
            counts["INPUT_IDLE"] += inputs["input_ready"] & ~inputs["input_valid"] & 1
            counts["OUTPUT_STALL"] += inputs["output_valid"] & ~inputs["output_ready"] & 1
        if inputs["job_done"]:
            self._busy = self._ends = False


@cocotb.test
async def counters(dut: Any) -> None:
    """All counters under random traffic, to the cycle; they stand still between jobs where they should, and clear."""
    bench = await ControlBench(dut, "counters").start()
    for channel in Channel:
        path = bench.paths[channel]
        path.jobs.pattern = coin(bench.rng, 0.3)
        for _ in range(6):
            traffic = _Traffic(bench, path)
            await bench.command(channel, "clear_counters")
            path.traffic = traffic
            path.observe = traffic.sample
            await bench.idle(bench.rng.randint(5, 60))
            count = bench.rng.randint(1, 3)
            for _ in range(count):
                assert not await _start(bench, channel, _job(bench))
                await bench.idle(bench.rng.randint(0, 300))
                await bench.until(_taken(path), "the job is taken")
                path.shown_jobs()
                traffic.end()
                await bench.idle(bench.rng.randint(2, 20))
            path.traffic = path.observe = None
            await bench.idle(4)
            for name, expected in traffic.expected.items():
                wide = name in ("CYCLES", "VALUES", "BYTES")
                found = await bench.value(f"{name}_LOW" if wide else name, channel)
                assert found == expected, f"{name} is {found}, not {expected}"
                assert not wide or await bench.value(f"{name}_HIGH", channel) == 0
            assert await bench.value("JOBS_DONE", channel) == count
            bench.cases += 1
        await bench.command(channel, "clear_counters")
        for entry in channel_registers(channel, bench.config):
            if entry.description.startswith("Counter"):
                assert await bench.value(entry.name, channel) == 0
    bench.report()


@cocotb.test
async def reset_in_the_middle(dut: Any) -> None:
    """After a reset at any moment everything is as at the start."""
    bench = await ControlBench(dut, "reset_in_the_middle").start()
    for _ in range(6):
        for channel in Channel:
            path = bench.paths[channel]
            path.jobs.pattern = coin(bench.rng, 0.3)
            await _start(bench, channel, _job(bench))
            await bench.write("SCALE", channel, value=5)
            _event(path, set(_EVENTS))
        busy = cocotb.start_soon(_write_all(bench, address("WATCHDOG", Channel.COMPRESS), [9] * 4))
        await bench.idle(bench.rng.randint(1, 40))
        busy.cancel()
        await bench.reset(bench.rng.randint(1, 3))
        for channel in Channel:
            bench.paths[channel].jobs.received.clear()
        for place, (name, access, reset, _) in _places(bench.config).items():
            expected = 0 if access is Access.WO else reset
            value, response = await bench.raw_read(place)
            assert (value, response) == (expected, _OKAY), f"{name} reads {value:#x} after a reset"
        bench.cases += 1
    bench.report()
