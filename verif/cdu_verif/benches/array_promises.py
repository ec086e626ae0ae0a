"""Tests of the promises that documents make about a unit's ports and registers, without knowledge of its inside.

They cover a sink that takes nothing before an abort, scales from both sources in any order, transfers with any number of
bytes, and wrong payload lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat
from random import Random

import cocotb
import torch
from cdu_spec.coding import code_bits
from cdu_spec.modes import Mode
from cdu_spec.ports import PORTS
from cdu_spec.register_types import Channel, ScaleSource

from cdu_verif.benches.armed import ArmedBench, expect, golden, good, prepare, raised, small_item, write_scales
from cdu_verif.benches.array_bench import ArrayBench, input_of, job_of
from cdu_verif.content.payloads import bit_patterns, float_bytes
from cdu_verif.content.tensors import TABLES, Exchange, exchange
from cdu_verif.simulation import cover_points
from cdu_verif.simulation.axi_ports import Word
from cdu_verif.simulation.bench import simulated_config
from cdu_verif.simulation.bench_test import bench_test

_CONFIG = simulated_config()
_MODES = _CONFIG.built_modes
_SCALED = [mode for mode in _MODES if mode.has_scales]
#: Modes in which 8 values are a job of one word.
_SHORT = [mode for mode in _MODES if mode.whole_beats == 1]
_LENGTHS = [mode for mode in _MODES if mode.has_zvc]
_CHANNELS = [channel.value for channel in Channel]
_WATCHDOG_CYCLES = 300
_NEVER = False


@bench_test(ArmedBench, direction=_CHANNELS, cause=list(cover_points.CAUSES))
async def abort_before_a_stalled_sink(bench: ArmedBench, direction: str, cause: str) -> None:
    """A word that waits at the output when jobs are aborted ends no other job, whenever it is taken."""
    channel = Channel(direction)
    for output in cover_points.OUTPUTS:
        for drains_first in (False, True):
            await _abort_with(bench, channel, output, cause)
            status = await bench.read("STATUS", channel)
            waits = output != cover_points.OUTPUTS[0]
            assert (status["busy"], status["jobs"], status["draining"]) == (0, 0, int(waits)), f"{output}: STATUS is {status}"
            assert await bench.errors(channel) == {"timeout" if cause == "WATCHDOG" else "aborted"}
            await bench.write("WATCHDOG", channel, value=0)
            if drains_first:
                await _drain(bench, channel, waits)

            done = await bench.number("JOBS_DONE", channel)
            item = small_item(bench, Mode.JPEG_ACT if Mode.JPEG_ACT in _MODES else None)
            job = job_of(channel, item)
            await prepare(bench, channel, job)
            if not drains_first:
                await _drain(bench, channel, waits)
            await bench.idle(50)
            status = await bench.read("STATUS", channel)
            assert (status["jobs"], status["busy"]) == (1, 1), f"{output}: a job without input ended, STATUS is {status}"
            assert status["bank_busy"] == int(job.mode.has_dct), f"{output}: its table can be written"
            assert await bench.number("JOBS_DONE", channel) == done
            assert not (await bench.read("INTERRUPT_STATUS", channel))["job_done"]
            bench.feed(channel, item)
            bench.check(channel, item, await bench.result(channel, job))
            await bench.idle(4)
            assert await bench.number("JOBS_DONE", channel) == done + 1, f"{output}: the end of a job was not counted"
            assert not await bench.errors(channel)
            bench.cover("cp_abort_output", cover_points.waiting(channel, output, cause))


async def _abort_with(bench: ArrayBench, channel: Channel, output: str, cause: str) -> None:
    """Start a job, let its output come to rest in a state of OUTPUTS before a sink that has stopped, and abort it."""
    inside = output == cover_points.OUTPUTS[1]
    if inside:
        item = small_item(bench, width=50)
    else:
        item = exchange(bench.config, bench.rng, (1, 1, 1, 8), bench.rng.choice(_SHORT or _MODES), "normal", TABLES[:1])
    if cause == "WATCHDOG":
        await bench.write("WATCHDOG", channel, value=_WATCHDOG_CYCLES)
    await bench.write("INTERRUPT_STATUS", channel, job_done=1, error=1)
    bench.o[channel].stall(chain(repeat(True, bench.rng.randint(0, 1)) if inside else (), repeat(_NEVER)))
    await prepare(bench, channel, job_of(channel, item))
    if output == cover_points.OUTPUTS[0]:
        if item.compression.mode.has_scales:
            bench.scales[channel].send(bench.scale_packet(job_of(channel, item)))
    else:
        bench.feed(channel, item)
        await bench.within(5000, _offers(bench, channel), "a word at the output")
        if inside:
            assert not int(getattr(bench.dut, f"{PORTS[channel].output}_tlast").value), f"{item.name} has one word only"
    if cause == "WATCHDOG":
        await bench.within(20 * _WATCHDOG_CYCLES, raised(bench), "watchdog")
    await bench.idle(bench.rng.randint(0, 20))
    if inside or cause == "CONTROL":
        # The rest of a longer job's input is dropped
        await bench.write("CONTROL", channel, abort=1, flush=1)
        while (await bench.read("STATUS", channel))["flushing"] or not bench.i[channel].idle():
            if not (await bench.read("STATUS", channel))["flushing"] and not bench.i[channel].idle():
                await bench.write("CONTROL", channel, abort=1, flush=1)
            await bench.idle(10)


async def _offers(bench: ArrayBench, channel: Channel) -> None:
    """Wait for a word that the sink does not take."""
    valid, ready = (getattr(bench.dut, f"{PORTS[channel].output}_t{name}") for name in ("valid", "ready"))
    still = 0
    while still < 20:
        await bench.idle(1)
        still = still + 1 if int(valid.value) and not int(ready.value) else 0


async def _drain(bench: ArrayBench, channel: Channel, waits: bool) -> None:
    """Let the sink continue: it gets one packet, or nothing."""
    bench.o[channel].free()
    await bench.idle(20)
    assert bench.o[channel].waiting() == int(waits), f"{bench.o[channel].waiting()} packets of forgotten jobs"
    bench.o[channel].forget()
    assert not (await bench.read("STATUS", channel))["draining"]


@bench_test(ArmedBench, skip=not _SCALED, direction=_CHANNELS)
async def scales_from_both_sources(bench: ArmedBench, direction: str) -> None:
    """Jobs that name their sources get the right scales, in any order of arrival; jobs that do not raise an error."""
    channel = Channel(direction)
    for _ in range(20 if bench.full else 6):
        bench.stall(bench.rng.choice(("full_rate", "coins", "bursts")))
        items = [small_item(bench, bench.rng.choice(_SCALED), 8) for _ in range(3)]
        sources = [bench.rng.choice((ScaleSource.PORT, ScaleSource.REGISTERS)) for _ in items]
        await _table(bench, channel)
        for item, source in zip(items, sources, strict=True):
            await bench.program(channel, job_of(channel, item), source=source)
            bench.i[channel].send(input_of(channel, item))
        queues = {
            source: [item for item, chosen in zip(items, sources, strict=True) if chosen is source] for source in set(sources)
        }
        order = bench.rng.sample(sorted(queues), len(queues))
        givers = [
            cocotb.start_soon(_give(bench, channel, queues[source], source, wait=place)) for place, source in enumerate(order)
        ]
        for item in items:
            bench.check(channel, item, await bench.result(channel, job_of(channel, item)))
        for giver in givers:
            await giver
        await bench.idle(20)
        assert not await bench.errors(channel), f"errors with scales from {[source.name for source in sources]}"
        first = order[0] is sources[0]
        later = {ScaleSource.PORT: cover_points.SCALE_ORDERS[1], ScaleSource.REGISTERS: cover_points.SCALE_ORDERS[2]}
        name = cover_points.SCALE_ORDERS[0] if first else later[order[0]]
        bench.cover("cp_scale_order", cover_points.scale_order(channel, name))
    bench.stall("full_rate")
    for names in (
        (ScaleSource.EITHER,) * 2,
        (ScaleSource.EITHER, ScaleSource.REGISTERS),
        (ScaleSource.PORT, ScaleSource.EITHER),
    ):
        await _mixed(bench, channel, names)
    # One source for all jobs, then the other one when no job is in progress: sources need not be named
    for source in (ScaleSource.REGISTERS, ScaleSource.PORT, ScaleSource.REGISTERS):
        items = [small_item(bench, bench.rng.choice(_SCALED), 8) for _ in range(2)]
        await _table(bench, channel)
        for item in items:
            await bench.program(channel, job_of(channel, item))
            bench.i[channel].send(input_of(channel, item))
        await _give(bench, channel, items, source)
        for item in items:
            bench.check(channel, item, await bench.result(channel, job_of(channel, item)))
        assert not await bench.errors(channel)


async def _mixed(bench: ArrayBench, channel: Channel, sources: Sequence[ScaleSource]) -> None:
    """Run two jobs, not both naming a source; the second one's register scales come before the first one's port scales."""
    items = [small_item(bench, _SCALED[0], 8) for _ in range(2)]
    await _table(bench, channel)
    for item, source in zip(items, sources, strict=True):
        await bench.program(channel, job_of(channel, item), source=source)
    if len(set(sources)) > 1:
        await expect(bench, channel, "scale_source")
        await bench.write("CONTROL", channel, abort=1)
        assert await bench.errors(channel) == {"aborted"}
    else:
        for item in items:
            bench.i[channel].send(input_of(channel, item))
        await _give(bench, channel, items[1:], ScaleSource.REGISTERS)
        await bench.idle(60)
        bench.scales[channel].send(bench.scale_packet(job_of(channel, items[0])))
        for item in items:
            await bench.result(channel, job_of(channel, item))
        await expect(bench, channel, "scale_source", also=("scale_missing", "scale_surplus"))
    await good(bench, channel)


async def _table(bench: ArrayBench, channel: Channel) -> None:
    """Write the shift table that all small jobs use, in bank 0."""
    if Mode.JPEG_ACT in _MODES:
        await bench.write_table(channel, 0, job_of(channel, small_item(bench, Mode.JPEG_ACT)).shifts)


async def _give(bench: ArrayBench, channel: Channel, items: Sequence[Exchange], source: ScaleSource, wait: int = 0) -> None:
    """Give the scales of jobs through one source."""
    await bench.idle(wait * bench.rng.randint(100, 300))
    for item in items:
        job = job_of(channel, item)
        if source is ScaleSource.PORT:
            bench.scales[channel].send(bench.scale_packet(job))
        else:
            await write_scales(bench, channel, bit_patterns(job.scales).tolist(), job.offsets.tolist())


@bench_test(ArmedBench, direction=_CHANNELS, mode=[mode.name.lower() for mode in _MODES])
async def any_transfers(bench: ArmedBench, direction: str, mode: str) -> None:
    """Transfers without bytes anywhere, also with TLAST behind the last byte; payload in transfers of any number of bytes."""
    channel, chosen = Channel(direction), Mode[mode.upper()]
    for _ in range(16 if bench.full else 4):
        bench.stall(bench.rng.choice(("full_rate", "coins", "bursts")))
        items = [small_item(bench, chosen, bench.rng.choice((8, 9, 24, 40))) for _ in range(2)]
        await _table(bench, channel)
        for item in items:
            job = job_of(channel, item)
            await bench.program(channel, job, payload_bytes=len(item.payload) if channel is Channel.DECOMPRESS else 0)
            words, kinds = _scattered(bench.rng, input_of(channel, item), bench.i[channel].size, channel is Channel.DECOMPRESS)
            bench.i[channel].send_words(words)
            if job.mode.has_scales:
                port = bench.scales[channel]
                words, others = _scattered(bench.rng, bench.scale_packet(job), port.size, partial=False)
                port.send_words(words)
                kinds |= {f"{kind} scales" for kind in others}
            for kind in kinds:
                bench.cover("cp_transfer", cover_points.transfer(channel, kind))
        for item in items:
            bench.check(channel, item, await bench.result(channel, job_of(channel, item)))
        await bench.idle(60)
        assert not await bench.errors(channel), f"errors with {words}"


def _scattered(rng: Random, raw: bytes, size: int, partial: bool) -> tuple[list[Word], set[str]]:
    """Return a packet in transfers that are not all full, and the kinds of transfers that it has."""
    words, kinds, place = [], set(), 0

    def empty() -> Word:
        return rng.getrandbits(8 * size), 0  # bytes that are not kept may have any value

    before, inside, behind = (rng.random() < 0.5 for _ in cover_points.EMPTY)
    if before:
        words.append(empty())
    style = rng.choice(("full", "any", "ones")) if partial else "full"
    while place < len(raw):
        count = {"full": size, "any": rng.randint(1, size), "ones": 1 if rng.random() < 0.5 else size}[style]
        part = raw[place : place + count]
        place += len(part)
        if len(part) < size and place < len(raw):
            kinds.add(cover_points.PARTIAL)
        noise = rng.getrandbits(8 * size) >> (8 * len(part)) << (8 * len(part))
        words.append((int.from_bytes(part, "little") | noise, (1 << len(part)) - 1))
        if inside and place < len(raw) and rng.random() < 0.4:
            words.append(empty())
            kinds.add(cover_points.EMPTY[1])
    if behind:
        words += [empty() for _ in range(rng.randint(1, 2))]
    return words, kinds | {kind for kind, there in zip(cover_points.EMPTY, (before, False, behind), strict=True) if there}


@bench_test(ArmedBench, skip=not _LENGTHS)
async def lengths_that_are_told(bench: ArmedBench) -> None:
    """A payload whose length differs from the one in the registers raises an error, even if its blocks are whole."""
    channel = Channel.DECOMPRESS
    for _ in range(24 if bench.full else 8):
        items = [small_item(bench, bench.rng.choice(_LENGTHS), bench.rng.choice((8, 24))) for _ in range(3)]
        wrong = bench.rng.choice((None, 0, 1, 2))
        await _table(bench, channel)
        for place, item in enumerate(items):
            told = len(item.payload)
            if place == wrong:
                told = _another_length(bench.rng, item)
            await bench.program(channel, item.decompression, payload_bytes=told)
            bench.feed(channel, item)
        for item in items:
            bench.check(channel, item, await bench.result(channel, item.decompression))
        await bench.idle(20)
        if wrong is None:
            assert not await bench.errors(channel), "right lengths were errors"
        else:
            await expect(bench, channel, "payload_length")
        await good(bench, channel)


def _another_length(rng: Random, item: Exchange) -> int:
    """Return a length that a payload of this job could have, other than the right one."""
    job = item.decompression
    bits = code_bits(job.how)
    least, most = job.beats, (1 + bits) * job.beats  # docs/reference/bitstream.md, section 2
    near = [len(item.payload) + step for step in (-1, 1)]
    return rng.choice([length for length in (*near, least, most) if least <= length <= most and length != len(item.payload)])


@bench_test(ArrayBench)
async def any_address(bench: ArrayBench) -> None:
    """The two lowest bits of an address are ignored, in reads and writes."""
    for channel in Channel:
        place = channel.base + 0x24  # BEATS
        for low in range(4):
            value = bench.rng.getrandbits(32)
            assert await bench.bus.raw_write(place + low, value) == 0
            assert await bench.bus.raw_read(place + (low ^ 3)) == (value, 0)
            bench.cases += 1


@bench_test(ArmedBench, direction=_CHANNELS)
async def empty_packets(bench: ArmedBench, direction: str) -> None:
    """A packet without bytes is an input that is missing from its beginning, at the data port and at the scale port."""
    channel = Channel(direction)
    for mode in _MODES:
        item = small_item(bench, mode, 8)
        job = job_of(channel, item)
        for kind in ("input", "scales") if mode.has_scales else ("input",):
            await prepare(bench, channel, job)
            empty = [(bench.rng.getrandbits(32), 0) for _ in range(bench.rng.randint(1, 3))]
            if mode.has_scales:
                port = bench.scales[channel]
                port.send_words(empty) if kind == "scales" else port.send(bench.scale_packet(job))
            if kind == "input":
                bench.i[channel].send_words(empty)
            else:
                bench.i[channel].send(input_of(channel, item))
            result = await bench.result(channel, job)
            if channel is Channel.DECOMPRESS:
                assert len(result) == len(float_bytes(item.restored)), f"{item.name}: {len(result)} bytes of values"
            elif kind == "input":
                zeros = torch.zeros_like(item.beats)
                assert result == (float_bytes(zeros) if mode is Mode.BYPASS else golden(job, zeros)), f"{item.name}: not zeros"
            await bench.idle(60)
            if kind == "input":
                await expect(bench, channel, "early_last", also=("bad_head",))
            else:
                also = ("scale_missing",) if len(job.scales) > 1 else ()
                await expect(bench, channel, "keep", "bad_scale", *also)
            await good(bench, channel)
