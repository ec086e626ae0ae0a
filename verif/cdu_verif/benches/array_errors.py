"""Tests of errors of a source, a sink or a program: each has its own sticky bit, interrupts and spares the next job."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, repeat

import torch
from actcodec.backends.job import Job
from actcodec.backends.torch_backend import TorchBackend
from cdu_driver import JobLostError
from cdu_spec import register_types, registers
from cdu_spec.affine import AffineSettings
from cdu_spec.coding import code_bits
from cdu_spec.modes import Mode
from cdu_spec.mx import MxSettings
from cdu_spec.ports import PORTS, scale_port_bytes
from cdu_spec.register_types import Channel

from cdu_verif.benches.armed import ArmedBench, expect, golden, good, prepare, raised, small_item
from cdu_verif.benches.array_bench import ArrayBench, input_of, job_of, queue_of
from cdu_verif.benches.losing_device import LosingDevice
from cdu_verif.content.payloads import float_beats, float_bytes
from cdu_verif.content.tensors import TABLES, Exchange, exchange
from cdu_verif.simulation import cover_points
from cdu_verif.simulation.axi_ports import SLVERR, words_of
from cdu_verif.simulation.bench import simulated_config
from cdu_verif.simulation.bench_test import bench_test
from cdu_verif.simulation.driver_jobs import driver_job

_CONFIG = simulated_config()
_MODES = _CONFIG.built_modes
#: Cycles in which a flush ends; ports with clocks of their own are quiet for 64 cycles first.
_SETTLED = 140 if _CONFIG.own_clocks else 40
_SCALED = [mode for mode in _MODES if mode.has_scales]
_CHANNELS = [channel.value for channel in Channel]
_WATCHDOG_CYCLES = 300


@bench_test(ArmedBench, direction=_CHANNELS, mode=[mode.name.lower() for mode in _MODES])
async def wrong_lengths(bench: ArmedBench, direction: str, mode: str) -> None:
    """TLAST too early or too late; input that came in time gives the right result, or values of the right number."""
    channel = Channel(direction)
    for _ in range(6 if bench.full else 2):
        item = small_item(bench, Mode[mode.upper()], bench.rng.randint(8, 50))
        job = job_of(channel, item)
        await prepare(bench, channel, job)
        unit = bench.config.beat_bits // 8 if channel is Channel.COMPRESS else 1
        whole = input_of(channel, item)
        short = whole[: unit * bench.rng.randint(1, len(whole) // unit - 1)]
        bench.feed(channel, item, short)
        result = await bench.result(channel, job)
        if channel is Channel.COMPRESS:
            padded = float_beats(short + bytes(len(whole) - len(short)), job)
            assert result == golden(job, padded), f"{item.name}: not the payload of the values that came and zeros"
        else:
            assert len(result) == len(float_bytes(item.restored)), f"{item.name}: {len(result)} bytes of values"
        await expect(bench, channel, "early_last", also=("bad_head",))
        await good(bench, channel)

        surplus = bench.rng.randbytes(unit * bench.rng.choice((1, 2, 9, 100)))
        await prepare(bench, channel, job)
        bench.feed(channel, item, whole + surplus)
        bench.check(channel, item, await bench.result(channel, job))
        await bench.idle(120)
        await expect(bench, channel, "late_last", also=("nonfinite",))
        await good(bench, channel)


@bench_test(ArmedBench, direction=_CHANNELS)
async def bad_keep(bench: ArmedBench, direction: str) -> None:
    """TKEEP with holes, in every mode; the job ends nevertheless."""
    channel = Channel(direction)
    for mode in _MODES:
        item = small_item(bench, mode)
        job = job_of(channel, item)
        await prepare(bench, channel, job)
        if mode.has_scales:
            bench.scales[channel].send(bench.scale_packet(job))
        words = words_of(input_of(channel, item), bench.i[channel].size)
        place = bench.rng.randrange(len(words))
        data, keep = words[place]
        words[place] = (data, keep & ~(1 << bench.rng.randrange(keep.bit_length() - 1)))
        bench.i[channel].send_words(words)
        result = await bench.result(channel, job)
        if channel is Channel.DECOMPRESS:
            assert len(result) == len(float_bytes(item.restored)), f"{item.name}: {len(result)} bytes of values"
        await bench.idle(60)
        await expect(bench, channel, "keep", also=("early_last", "late_last", "bad_head"))
        await good(bench, channel)


@bench_test(ArmedBench, skip=not _SCALED, direction=_CHANNELS)
async def wrong_scales(bench: ArmedBench, direction: str) -> None:
    """Missing scales are replaced by 1.0, surplus ones are dropped."""
    channel = Channel(direction)
    for mode in _SCALED:
        item = exchange(bench.config, bench.rng, (2, 3, 8, 24), mode, "normal", TABLES[:1])
        job = job_of(channel, item)
        count, packet, size = len(job.scales), bench.scale_packet(job), scale_port_bytes(bench.config.has_offsets)
        kept = bench.rng.randint(1, max(count - 1, 1))
        spoiled = {"scale_surplus": packet + 3 * packet[-size:]}
        if count > 1:
            spoiled["scale_missing"] = packet[: size * kept]
        for flag, scales in spoiled.items():
            await prepare(bench, channel, job)
            bench.scales[channel].send(scales)
            bench.i[channel].send(input_of(channel, item))
            result = await bench.result(channel, job)
            if flag == "scale_surplus":
                bench.check(channel, item, result)
            else:
                offsets = (
                    torch.cat((job.offsets[:kept], job.offsets.new_zeros(count - kept))) if mode.has_offsets else job.offsets
                )
                filled = replace(job, scales=torch.cat((job.scales[:kept], torch.ones(count - kept))), offsets=offsets)
                _check_rescaled(channel, item, filled, result)
            await bench.idle(60)
            await expect(bench, channel, flag)
            await good(bench, channel)


def _check_rescaled(channel: Channel, item: Exchange, job: Job, result: bytes) -> None:
    """Check that the result is that of the job with its new scales."""
    if channel is Channel.COMPRESS:
        assert result == golden(job, item.beats), f"{item.name}: not the payload for the scales that came and 1.0"
    else:
        payload = torch.frombuffer(bytearray(item.payload), dtype=torch.uint8)
        expected = float_bytes(TorchBackend().decompress(job, payload))
        assert result == expected, f"{item.name}: not the values for the scales that came and 1.0"


@bench_test(ArmedBench, value=["inf", "minus_inf", "nan"])
async def nonfinite(bench: ArmedBench, value: str) -> None:
    """Infinity saturates, NaN becomes zero, in one value of a job; bypass does not change them."""
    number = float(value.replace("minus_", "-"))
    for mode in _MODES:
        item = small_item(bench, mode)
        beats = item.beats.clone()
        beats[bench.rng.randrange(len(beats)), bench.rng.randrange(8)] = number
        await prepare(bench, Channel.COMPRESS, item.compression)
        bench.feed(Channel.COMPRESS, item, float_bytes(beats))
        result = await bench.result(Channel.COMPRESS, item.compression)
        expected = float_bytes(beats) if mode is Mode.BYPASS else golden(item.compression, beats)
        assert result == expected, f"{item.name} with {value}: not the golden payload"
        if mode is Mode.BYPASS:
            assert not await bench.errors(Channel.COMPRESS), "bypass looked at its values"
        else:
            await expect(bench, Channel.COMPRESS, "nonfinite")
        await good(bench, Channel.COMPRESS)


@bench_test(ArmedBench, direction=_CHANNELS)
async def impossible_jobs(bench: ArmedBench, direction: str) -> None:
    """START refuses impossible jobs, without any other effect."""
    channel = Channel(direction)
    possible = job_of(channel, small_item(bench, _MODES[0]))
    for mode, beats, row_beats, channel_rows in _impossible(possible.beats):
        await bench.write("MODE", channel, mode=mode)
        await bench.write("BEATS", channel, value=beats)
        await bench.write("ROW_BEATS", channel, value=row_beats)
        await bench.write("CHANNEL_ROWS", channel, value=channel_rows)
        await bench.write("CONTROL", channel, start=1)
        await bench.idle(10)
        status = await bench.read("STATUS", channel)
        assert (status["busy"], status["jobs"]) == (0, 0), f"job {(mode, beats, row_beats, channel_rows)} was started"
        await expect(bench, channel, "bad_job")
    if Mode.MX in _MODES:
        await bench.write("MODE", channel, mode=Mode.MX)
        await bench.write("BEATS", channel, value=8)
        for format_number in (6, 7):
            await bench.write("MX_CODING", channel, format=format_number)
            await bench.write("CONTROL", channel, start=1)
            await bench.idle(10)
            assert not (await bench.read("STATUS", channel))["jobs"], f"format {format_number} was started"
            await expect(bench, channel, "bad_job")
    if channel is Channel.DECOMPRESS:
        for mode in _MODES:
            item = small_item(bench, mode)
            least, most = _payload_bounds(item, bench)
            for payload_bytes in (least - 1, most + 1, 1 << 31):
                await bench.program(channel, item.decompression, payload_bytes=payload_bytes)
                await bench.idle(10)
                assert not (await bench.read("STATUS", channel))["jobs"], f"{mode.label} took {payload_bytes} bytes"
                await expect(bench, channel, "bad_length")
    await good(bench, channel)


def _impossible(beats: int) -> list[tuple[int, int, int, int]]:
    """Return mode, beats, row_beats, channel_rows of impossible jobs."""
    built = int(_MODES[0])
    unknown = [number for number in range(16) if number not in list(Mode)]
    jobs = [*((number, beats, beats, 1) for number in unknown), (built, 0, 1, 1), (built, beats, 0, 1)]
    jobs += [(built, beats, beats, 0)]
    jobs += [(int(mode), beats, beats, 1) for mode in Mode if mode not in _MODES]
    if Mode.SFPR_ZVC in _MODES:
        jobs += [(int(Mode.SFPR_ZVC), 8 * 3 + rest, 1, 1) for rest in (1, 4, 7)]
    if Mode.MX in _MODES:
        jobs += [(int(Mode.MX), 4 * 3 + rest, 1, 1) for rest in (1, 2, 3)]
    if Mode.JPEG_ACT in _MODES:
        jobs += [(int(Mode.JPEG_ACT), 8 * 3 * 2 + rest, 3, 1) for rest in (1, 8, 16, 23)]
    return jobs


def _payload_bounds(item: Exchange, bench: ArrayBench) -> tuple[int, int]:
    """Return the least and the greatest length of a payload, by docs/reference/bitstream.md."""
    job = item.decompression
    bits = code_bits(job.how)
    if job.mode.has_zvc:
        return job.beats, (1 + bits) * job.beats
    if isinstance(job.how, AffineSettings | MxSettings):
        least = len(item.payload)
    else:
        least = {Mode.SFPR: 8, Mode.BRC: 1, Mode.BYPASS: bench.config.beat_bits // 8}[job.mode] * job.beats
    return least, least


@bench_test(ArmedBench, direction=_CHANNELS)
async def full_queues(bench: ArmedBench, direction: str) -> None:
    """Jobs beyond the queue are refused, and those in the queue are right; likewise scales."""
    channel = Channel(direction)
    item = small_item(bench, _MODES[0])
    job = job_of(channel, item)
    if job.shifts:
        await bench.write_table(channel, 0, job.shifts)
    accepted = 0
    while (await bench.read("STATUS", channel))["queue_space"]:
        await bench.program(channel, job)
        accepted += 1
        await bench.idle(20)
        assert accepted <= register_types.MAX_JOBS, "the queue never gets full"
    assert not await bench.errors(channel), "an error before the queue was full"
    await bench.program(channel, job)
    await bench.idle(10)
    await expect(bench, channel, "queue_full")
    assert (await bench.read("STATUS", channel))["jobs"] == accepted
    for _ in range(accepted):
        bench.feed(channel, item)
        bench.check(channel, item, await bench.result(channel, job))

    await bench.write("CONTROL", channel, abort=1)
    while (await bench.read("STATUS", channel))["scale_space"]:
        await bench.write("SCALE", channel, value=0x3F800000)
    await bench.write("SCALE", channel, value=0x3F800000)
    await expect(bench, channel, "scale_overflow")
    await bench.write("CONTROL", channel, abort=1)
    await good(bench, channel)


@bench_test(ArmedBench, skip=Mode.JPEG_ACT not in _MODES, direction=_CHANNELS)
async def write_to_a_used_table(bench: ArmedBench, direction: str) -> None:
    """The shift table of a job in progress cannot be written, the other one can; the job registers may change."""
    channel = Channel(direction)
    item = small_item(bench, Mode.JPEG_ACT)
    job = job_of(channel, item)
    await prepare(bench, channel, job)
    await bench.write_table(channel, 1, (5,) * 64)
    assert not await bench.errors(channel), "writing the unused table was an error"
    for index in range(register_types.SHIFT_REGISTERS):
        await bench.write("SHIFTS0", channel, index, shift0=7, shift5=3)
    await bench.write("BEATS", channel, value=1)
    await bench.write("MODE", channel, mode=0)
    bench.feed(channel, item)
    bench.check(channel, item, await bench.result(channel, job))
    await expect(bench, channel, "busy_write")
    read = [(await bench.read("SHIFTS0", channel, index)).values() for index in range(register_types.SHIFT_REGISTERS)]
    assert [shift for row in read for shift in row] == list(job.shifts), "the table of a job under way was changed"
    await good(bench, channel)


@bench_test(ArrayBench)
async def bad_accesses(bench: ArrayBench) -> None:
    """Addresses without a register, writes to read-only ones and partial writes are answered with SLVERR."""
    await bench.write("BUS_ERROR_ENABLE", bad_access=1)
    for address, data in ((0x030, 4), (0x3FC, 4), (0xFFC, 4), (registers.address("ID"), 4), (0x404, 4), (0x428, 2), (0x429, 1)):
        assert await bench.bus.write_bytes(address, bytes(data)) == SLVERR, f"a write of {data} bytes to {address:#x} was taken"
        await bench.idle(4)
        assert bench.get("irq"), f"no interrupt for {address:#x}"
        where = await bench.read("BAD_ADDRESS")
        assert where == {"address": address & ~3, "write": 1}, f"BAD_ADDRESS is {where} after {address:#x}"
        await bench.write("BUS_ERRORS", bad_access=1)
        await bench.idle(4)
        assert not bench.get("irq"), f"the interrupt for {address:#x} stays"
        bench.cases += 1
    for channel in Channel:
        await good(bench, channel)


@bench_test(ArmedBench, direction=_CHANNELS)
async def watchdog(bench: ArmedBench, direction: str) -> None:
    """A job without input or scales, or with a sink that takes no output, is aborted after WATCHDOG cycles."""
    channel = Channel(direction)
    await bench.write("WATCHDOG", channel, value=_WATCHDOG_CYCLES)
    for missing in ("input", "rest", "scales", "sink"):
        item = small_item(bench, bench.rng.choice(_SCALED or _MODES))
        job = job_of(channel, item)
        if missing == "scales" and not job.mode.has_scales:
            continue
        await prepare(bench, channel, job)
        begin = bench.watches.cycle
        if missing == "sink":
            bench.o[channel].stall(repeat(False))
        if missing != "scales" and job.mode.has_scales:
            bench.scales[channel].send(bench.scale_packet(job))
        if missing in ("scales", "sink"):
            bench.i[channel].send(input_of(channel, item))
        elif missing == "rest":
            content = input_of(channel, item)
            last = (len(content) - 1) // bench.i[channel].size
            bench.i[channel].stall(chain(repeat(True, min(3, last)), repeat(False)))
            bench.i[channel].send(content)
        await bench.within(20 * _WATCHDOG_CYCLES, raised(bench), f"watchdog, no {missing}")
        assert bench.watches.cycle - begin >= _WATCHDOG_CYCLES, f"no {missing}: aborted too early"
        assert not (await bench.read("STATUS", channel))["jobs"], f"no {missing}: the job is still there"
        bench.o[channel].free()
        bench.i[channel].free()
        await _recover(bench, channel)
        await expect(bench, channel, "timeout", also=("aborted",))
        await good(bench, channel)


@bench_test(ArmedBench, direction=_CHANNELS, flush=[True] if _CONFIG.own_clocks else [False, True])
async def abort(bench: ArmedBench, direction: str, flush: bool) -> None:
    """An abort drops jobs at any moment; with flush also the packets that have begun to arrive."""
    channel = Channel(direction)
    for _ in range(24 if bench.full else 8):
        bench.stall(bench.rng.choice(("full_rate", "coins", "bursts")))
        item = small_item(bench)
        await prepare(bench, channel, job_of(channel, item))
        bench.feed(channel, item)
        if flush:
            await bench.idle(bench.rng.randint(0, 150))
        else:
            await bench.within(5000, _taken(bench, channel), "input of an aborted job")
            await bench.idle(bench.rng.randint(0, 20))
        await bench.write("CONTROL", channel, abort=1, flush=int(flush))
        if flush:
            await _recover(bench, channel)
        else:
            await bench.idle(200)
            bench.o[channel].forget()
        found = await bench.errors(channel)
        assert found <= {"aborted"}, f"abort raised {sorted(found)}"
        if "aborted" in found:
            bench.cover("cp_error", cover_points.error("aborted", channel))
            bench.cover("cp_abort", cover_points.abort(channel, flush))
        await good(bench, channel)


async def _taken(bench: ArrayBench, channel: Channel) -> None:
    while not (bench.i[channel].idle() and bench.scales[channel].idle()):
        await bench.idle(1)


async def _recover(bench: ArrayBench, channel: Channel) -> None:
    """Recover as a driver does: abort and flush until the sources have nothing left and the sink has the cut packets."""
    for _ in range(8):
        await bench.write("CONTROL", channel, abort=1, flush=1)
        for _ in range(400):
            if bench.i[channel].idle() and bench.scales[channel].idle():
                break
            await bench.idle(10)
        await bench.idle(_SETTLED)
        status = await bench.read("STATUS", channel)
        if not status["flushing"] and bench.i[channel].idle() and bench.scales[channel].idle():
            break
    assert not status["flushing"], f"{channel.value}: flush does not end"
    assert bench.i[channel].idle(), f"{channel.value}: input is not thrown away"
    await bench.write("CONTROL", channel, abort=1, flush=1)
    await bench.idle(_SETTLED)
    assert not (await bench.read("STATUS", channel))["busy"], f"{channel.value}: busy after an abort"
    bench.o[channel].forget()


@bench_test(ArrayBench)
async def garbage(bench: ArrayBench) -> None:
    """Random words, TKEEP and TLAST at all ports, random writes to all registers; then the driver stops and reuses the unit."""
    rng = bench.rng
    for _ in range(12 if bench.full else 3):
        bench.stall(rng.choice(("full_rate", "coins", "bursts")))
        end = bench.watches.cycle + (4000 if bench.full else 1500)
        while bench.watches.cycle < end:
            for channel in Channel:
                for port in (bench.i[channel], bench.scales[channel]):
                    if port.idle():
                        port.send_words([_random_word(bench, port.size) for _ in range(rng.randint(1, 40))])
                await _random_program(bench, channel)
        bench.stall("full_rate")
        driver = await bench.within(20_000, bench.open(), "recovery by the driver")
        await bench.play(driver, {channel: [small_item(bench) for _ in range(3)] for channel in Channel})


@bench_test(ArrayBench, direction=_CHANNELS)
async def driver_recovery(bench: ArrayBench, direction: str) -> None:
    """The driver names the jobs whose data are lost on their way, and the next jobs pass."""
    channel = Channel(direction)
    faults = [(PORTS[channel].input, bench.config.beat_bits // 8, "early_last"), (PORTS[channel].input, None, "timeout")]
    if _SCALED:
        scale = scale_port_bytes(bench.config.has_offsets)
        faults += [(PORTS[channel].scales, scale, "scale_missing"), (PORTS[channel].scales, None, "timeout")]
    for port, lost, flag in faults:
        device = LosingDevice(bench.device, port, lost)
        driver = await bench.open(device, watchdog=_WATCHDOG_CYCLES)
        item = small_item(bench, (_SCALED or _MODES)[0])
        job = driver_job(job_of(channel, item), input_of(channel, item))
        flags: tuple[str, ...] = ()
        try:
            await bench.within(20_000, queue_of(driver, channel).run([job, job]), f"{port} without its last {lost} bytes")
        except JobLostError as error:
            flags = error.flags
        assert flag in flags, f"{lost} bytes of {port} were lost: {flags} instead of {flag}"
        await bench.play(driver, {channel: [item, small_item(bench)]})


def _random_word(bench: ArrayBench, size: int) -> tuple[int, int]:
    rng = bench.rng
    keep = rng.choice(((1 << size) - 1, (1 << rng.randint(0, size)) - 1, rng.getrandbits(size)))
    return rng.getrandbits(8 * size), keep


async def _random_program(bench: ArrayBench, channel: Channel) -> None:
    """Do a few register writes: plausible small jobs, and random values to random registers."""
    rng = bench.rng
    if rng.random() < 0.5:
        await bench.write("MODE", channel, mode=rng.randint(0, 7), bank=rng.randint(0, 1))
        row_beats = rng.randint(1, 6)
        await bench.write("BEATS", channel, value=8 * row_beats * rng.randint(1, 4))
        await bench.write("ROW_BEATS", channel, value=row_beats)
        await bench.write("CHANNEL_ROWS", channel, value=rng.randint(1, 4))
        await bench.write("CONTROL", channel, start=1)
    else:
        for _ in range(4):
            address = rng.choice((rng.randrange(0, 1 << register_types.ADDRESS_BITS, 4), channel.base + 4 * rng.randint(0, 16)))
            await bench.bus.write(address, rng.choice((rng.getrandbits(32), rng.getrandbits(4))))
        await bench.bus.read(rng.randrange(0, 1 << register_types.ADDRESS_BITS, 4))


@bench_test(ArrayBench)
async def reset_in_the_middle(bench: ArrayBench) -> None:
    """After a reset at any moment the unit works as after the first one."""
    for _ in range(12 if bench.full else 4):
        bench.stall("coins")
        for channel in Channel:
            item = small_item(bench)
            await prepare(bench, channel, job_of(channel, item))
            bench.feed(channel, item)
        await bench.idle(bench.rng.randint(1, 200))
        await bench.reset(bench.rng.randint(1, 3))
        for channel in Channel:
            await good(bench, channel)
