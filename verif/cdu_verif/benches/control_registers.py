"""Tests of the control alone: the values that every register reads, keeps and refuses.

The expected values are computed here from the configuration.
"""

from __future__ import annotations

from typing import Any

import cocotb
from cdu_spec.config import CduConfig
from cdu_spec.modes import Mode
from cdu_spec.register_types import BLOCK_BYTES, REGISTER_BITS, REGISTER_BYTES, Access, Channel, Register
from cdu_spec.registers import GLOBAL, address, channel_registers

from cdu_verif.benches.control_bench import ControlBench
from cdu_verif.benches.control_jobs import ALL_ONES, BUS_PATTERNS, EVENTS, HAS_TABLES, happen, random_job, start
from cdu_verif.simulation.bench_test import bench_test
from cdu_verif.simulation.patterns import coin
from cdu_verif.stimulus.register_values import refused, taken

_OKAY, _SLVERR = 0, 2


def _configured(config: CduConfig) -> dict[str, int]:
    """Return the values of the registers of the configuration, bit by bit."""
    return {
        "ARRAY": config.cdus | config.port_beats << 8 | config.packed_bytes << 16 | (config.duplex == "half") << 24,
        "NUMBERS": int(config.dtype)
        | config.scale_bits << 8
        | config.const_bits << 16
        | config.pass1_bits << 20
        | (config.rounding == "half_away") << 24
        | (config.reciprocal_bits or (24 if any(mode.is_affine for mode in config.built_modes) else 12)) << 26,
        "MODES": sum(1 << int(mode) for mode in config.built_modes)
        | sum(1 << 24 + number for number, coder in enumerate(("zvc", "gmc")) if HAS_TABLES and coder in config.coders),
    }


def _places(config: CduConfig) -> dict[int, tuple[Register, int, int]]:
    """Return by address: the register, its value after reset, and the bits that keep what is written."""
    found = {}
    of_channels = ((channel, channel_registers(channel, config)) for channel in Channel)
    tables: list[tuple[Channel | None, Any]] = [(None, GLOBAL), *of_channels]
    for channel, table in tables:
        for entry in table:
            reset = _configured(config).get(entry.name, entry.reset)
            kept = sum(part.mask for part in entry.fields)
            if entry.name.startswith("SHIFTS") and not HAS_TABLES:
                kept = 0
            for index in range(entry.count):
                found[address(entry.name, channel, index)] = (entry, reset, kept)
    return found


def _commands(name: str) -> bool:
    """Return whether a write to this register starts an action."""
    return name in ("CONTROL", "SCALE", "SCALE_LAST")


@bench_test(ControlBench, pattern=BUS_PATTERNS)
async def registers_read_what_they_should(bench: ControlBench, pattern: str) -> None:
    """Every address: value after reset, bits that a write keeps, refused writes; nothing else changes."""
    bench.stall(pattern)
    places = _places(bench.config)
    for place, (entry, reset, _) in places.items():
        expected = 0 if entry.access is Access.WO else reset
        value, response = await bench.raw_read(place)
        assert (value, response) == (expected, _OKAY), f"{entry.name} at {place:#x} reads {value:#x}, response {response}"
    holes = [place for place in range(0, 4 * BLOCK_BYTES, REGISTER_BYTES) if place not in places]
    for place in holes if bench.full else bench.rng.sample(holes, 100):
        _, response = await bench.raw_read(place)
        assert response == _SLVERR, f"a read of {place:#x}, where no register is, was answered with {response}"
        assert await bench.value("BAD_ADDRESS") == place
    assert await bench.value("BUS_ERRORS") == 1
    await bench.write("BUS_ERRORS", bad_access=1)
    assert await bench.value("BUS_ERRORS") == 0

    kept_values = {}
    for place, (entry, reset, kept) in places.items():
        if _commands(entry.name):
            continue
        written = taken(entry, bench.rng)
        response = await bench.raw_write(place, written)
        wanted = _SLVERR if entry.access is Access.RO else _OKAY
        assert response == wanted, f"a write to {entry.name} was answered with {response}"
        kept_values[place] = written & kept if entry.access is Access.RW else reset if entry.access is Access.RO else 0
    assert await bench.value("BUS_ERRORS") == 1
    refused = await bench.read("BAD_ADDRESS")
    assert refused["write"] == 1
    assert places[refused["address"]][0].access is Access.RO
    await bench.write("BUS_ERRORS", bad_access=1)
    skip = {address(name) for name in ("BAD_ADDRESS", "INTERRUPTS")}
    for place, expected in kept_values.items():
        if place not in skip:
            assert await bench.raw_read(place) == (expected, _OKAY), f"{places[place][0].name} does not keep what was written"
    bench.cases += len(places)


@bench_test(ControlBench)
async def accesses_that_are_refused(bench: ControlBench) -> None:
    """Partial writes and writes to unused addresses have no effect, are answered with SLVERR, and interrupt if enabled."""
    bench.stall("coins")
    beats = address("BEATS", Channel.COMPRESS)
    assert await bench.raw_write(beats, 0x12345678) == _OKAY
    for size in range(1, REGISTER_BYTES):
        assert await bench.raw_write(beats, ALL_ONES, size) == _SLVERR
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


@bench_test(ControlBench)
async def numbers_that_are_refused(bench: ControlBench) -> None:
    """A number that a register does not take is answered with SLVERR and reported, and the register keeps its value."""
    bench.stall("coins")
    for place, (entry, _, kept) in _places(bench.config).items():
        if entry.access is not Access.RW:
            continue
        before = taken(entry, bench.rng)
        assert await bench.raw_write(place, before) == _OKAY
        for value in refused(entry, bench.rng):
            assert await bench.raw_write(place, value) == _SLVERR, f"{entry.name} took {value:#x}"
            assert await bench.raw_read(place) == (before & kept, _OKAY), f"{entry.name} changed with {value:#x}"
            assert await bench.read("BAD_ADDRESS") == {"address": place, "write": 1}
            assert await bench.value("BUS_ERRORS") == 1
            await bench.write("BUS_ERRORS", bad_access=1)
            bench.cases += 1
    for channel in Channel:
        assert not await start(bench, channel, random_job(bench)), "a job behind refused writes was refused"


def _judging(bench: ControlBench, channel: Channel, name: str) -> list[Mode]:
    """Return the modes in which START refuses a job because of a number of this field."""
    built = bench.config.built_modes
    if name == "format":
        return [Mode.MX]
    if name == "point":  # checked when decompressing
        return [Mode.JPEG_ACT] if channel is Channel.DECOMPRESS and Mode.JPEG_ACT in built else []
    return list(built)


@bench_test(ControlBench)
async def numbers_that_start_refuses(bench: ControlBench) -> None:
    """Every field that START checks: a job with any other number is refused with bad_job; the same job without it is not."""
    for channel in Channel:
        for entry in channel_registers(channel, bench.config):
            for part in entry.fields:
                if not part.at_start:
                    continue
                most = (1 << part.width) - 1
                edges = {part.bounds.start - 1, part.bounds.stop, most} if part.width > 8 else set(range(most + 1))
                wrong = sorted(number for number in edges - set(part.bounds if part.width <= 8 else ()) if 0 <= number <= most)
                for mode in _judging(bench, channel, part.name):
                    for number in wrong:
                        job = random_job(bench, mode)
                        name = part.name if len(entry.fields) > 1 else entry.name.lower()
                        job |= {name: number, "payload": 0}
                        found = await start(bench, channel, job)
                        assert found == {"bad_job"}, f"{entry.name}.{part.name} = {number}: {found}"
                        bench.cases += 1
        assert not await start(bench, channel, random_job(bench)), "a good job behind bad ones was refused"


@bench_test(ControlBench)
async def reads_and_writes_together(bench: ControlBench) -> None:
    """Many reads and writes in progress at the same time are each answered once, and none starves."""
    for pattern in BUS_PATTERNS:
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


@bench_test(ControlBench)
async def accesses_in_a_row(bench: ControlBench) -> None:
    """Accesses requested before the first one is answered: each write counts, each read has its own answer."""
    places = [
        (place, entry)
        for place, (entry, _, kept) in _places(bench.config).items()
        if entry.access is Access.RW and kept and not _commands(entry.name)
    ]
    for pattern in BUS_PATTERNS:
        bench.stall(pattern)
        values = [taken(entry, bench.rng) & sum(part.mask for part in entry.fields) for _, entry in places]
        writes = [cocotb.start_soon(bench.raw_write(place, value)) for (place, _), value in zip(places, values, strict=True)]
        for (place, _), write in zip(places, writes, strict=True):
            assert await write == _OKAY, f"the write to {place:#x} was refused"
        order = bench.rng.sample(range(len(places)), len(places))
        reads = [(number, cocotb.start_soon(bench.raw_read(places[number][0]))) for number in order]
        for number, read in reads:
            found = await read
            assert found == (values[number], _OKAY), f"{places[number][0]:#x} reads {found}, written was {values[number]:#x}"
        bench.cases += len(places)


@bench_test(ControlBench)
async def reset_in_the_middle(bench: ControlBench) -> None:
    """After a reset at any moment everything is as at the start."""
    for _ in range(6):
        for channel in Channel:
            path = bench.paths[channel]
            path.jobs.pattern = coin(bench.rng, 0.3)
            await start(bench, channel, random_job(bench))
            await bench.write("SCALE", channel, value=5)
            happen(path, set(EVENTS))
        busy = cocotb.start_soon(_write_all(bench, address("WATCHDOG", Channel.COMPRESS), [9] * 4))
        await bench.idle(bench.rng.randint(1, 40))
        busy.cancel()
        await bench.reset(bench.rng.randint(1, 3))
        for channel in Channel:
            bench.paths[channel].jobs.received.clear()
        for place, (entry, reset, _) in _places(bench.config).items():
            expected = 0 if entry.access is Access.WO else reset
            value, response = await bench.raw_read(place)
            assert (value, response) == (expected, _OKAY), f"{entry.name} reads {value:#x} after a reset"
        bench.cases += 1


async def _write_all(bench: ControlBench, place: int, values: list[int]) -> None:
    for value in values:
        assert await bench.raw_write(place, value) == _OKAY
