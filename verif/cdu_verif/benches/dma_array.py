"""Tests of a unit behind its DMA engine: descriptors in memory, golden bytes in memory."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import cocotb
import torch
from actcodec.backends.job import DTYPES
from actcodec.study.setup import TrainingSetup
from cdu_spec import registers
from cdu_spec.bitstream import CRC_BYTES
from cdu_spec.dma import (
    DESCRIPTOR_BYTES,
    DMA_CHANNEL,
    DMA_CHANNEL_BYTES,
    MEMORY_ADDRESS_BITS,
    dma_address,
    dma_base,
)
from cdu_spec.modes import Dtype, Mode
from cdu_spec.mx import MX_FORMATS
from cdu_spec.ports import scale_port_bytes
from cdu_spec.register_types import COUNT_BITS, REGISTER_BYTES, Channel
from cocotb.triggers import ClockCycles
from cocotb.utils import get_sim_time
from cocotbext.axi import AxiResp
from torch import Tensor

from cdu_verif.benches.dma_bench import DmaBench, DmaJob
from cdu_verif.content.payloads import float_bytes
from cdu_verif.content.tensors import KINDS, TABLES, Exchange, of_tensor, tensor
from cdu_verif.simulation.bench import CLOCK_NS, simulated_config
from cdu_verif.simulation.bench_test import bench_test
from cdu_verif.simulation.patterns import PATTERNS
from cdu_verif.stimulus import recorded_jobs

_CONFIG = simulated_config()
_MODES = _CONFIG.built_modes
#: Number of tensors of the activations of a batch, and images of each.
_TENSORS, _IMAGES = 2, 1
#: Responses by which memory refuses an access.
_RESPONSES = [AxiResp.SLVERR.name, AxiResp.DECERR.name]
#: Offsets of the registers of a direction.
_OFFSETS = {entry.offset for entry in DMA_CHANNEL}


def _item(bench: DmaBench, shape: tuple[int, ...], mode: Mode, kind: str = "relu") -> tuple[Tensor, Exchange]:
    """Return a tensor and its golden results."""
    x = tensor(bench.rng, shape, kind, DTYPES[_CONFIG.dtype])
    return x, of_tensor(bench.config, bench.rng, x, mode, kind, TABLES)


def _any(bench: DmaBench, mode: Mode) -> tuple[Tensor, Exchange]:
    """Return a small tensor of any shape and content, without infinite values, which would be errors of the unit."""
    rng = bench.rng
    shape = (rng.randint(1, 2), rng.randint(1, 4), rng.randint(1, 11), rng.randint(1, 70))
    return _item(bench, shape, mode, rng.choice(KINDS))


async def _both(bench: DmaBench, jobs: dict[Channel, list[DmaJob]], log2: int = 2) -> None:
    """Play jobs in both directions at once."""
    for task in [cocotb.start_soon(bench.play(channel, listed, log2)) for channel, listed in jobs.items()]:
        await task


@bench_test(DmaBench, pattern=list(PATTERNS))
async def mixed_jobs(bench: DmaBench, pattern: str) -> None:
    """Jobs of all modes in random order, both directions at once, every channel stalled at random; latency, rings that wrap."""
    bench.behave(pattern)
    bench.memory.latency = bench.rng.choice((0, 5, 60))
    items = [_any(bench, mode) for mode in _MODES for _ in range(4 if bench.full else 2)]
    jobs = {channel: [bench.job(channel, *item) for item in bench.rng.sample(items, len(items))] for channel in Channel}
    await _both(bench, jobs, bench.rng.choice((0, 1, 2)))


def _impossible(channel: Channel) -> list[tuple[str, dict[str, int]]]:
    """Return changes that make a descriptor impossible: every part out of range, every product of extents too large."""
    far, most, too_many = 1 << MEMORY_ADDRESS_BITS, (1 << 32) - 1, 1 << COUNT_BITS
    foreign = [mode for mode in range(1 << registers.register("MODE").field("mode").width) if mode not in _MODES]
    found: list[tuple[str, dict[str, int]]] = [("bad_mode", {"mode": mode}) for mode in (*foreign, Mode.SFPR + 0x80)]
    found += [("bad_mode", {"value_format": form}) for form in (*set(Dtype) - {_CONFIG.dtype}, 3, 0x80)]
    found += [("bad_mode", {"point": 7}), ("bad_mode", {"coder": 0xFF}), ("bad_mode", {"payload_crc": _CONFIG.payload_crc + 1})]
    for name, unknown in (("quantizer", 1 << 15), ("mx_coding", 1 << 7)):
        takes_it = _MODES[0] in registers.register(name.upper()).modes
        found += [("bad_mode", {name: value}) for value in ((unknown,) if takes_it else (unknown, 1))]
    found += [("bad_shape", {axis: extent}) for axis in "nchw" for extent in (0, most)]
    found += [("bad_shape", dict.fromkeys(axes, too_many >> 1)) for axes in ("nc", "hw", "nh", "nw", "chw")]
    found += [("bad_address", {name: far}) for name in ("tensor", "payload")]
    if channel is Channel.DECOMPRESS:
        found += [("bad_length", {"payload_bytes": 0})]
        found += [("bad_length", {"payload_bytes": CRC_BYTES, "payload_crc": 1})] if _CONFIG.payload_crc else []
    return found


@bench_test(DmaBench, direction=[channel.value for channel in Channel])
async def bad_descriptors(bench: DmaBench, direction: str) -> None:
    """A descriptor that cannot be run fails alone: its record says why, and its neighbours are right."""
    channel, jobs = Channel(direction), []
    for error, change in _impossible(channel):
        item = _any(bench, _MODES[0])
        jobs.append(bench.refused(bench.job(channel, *item), error, **change))
        if bench.rng.random() < 0.3:
            jobs.append(bench.job(channel, *_any(bench, bench.rng.choice(_MODES))))
    scaled = next(mode for mode in _MODES if mode.has_scales)
    jobs.append(bench.refused(bench.job(channel, *_any(bench, scaled)), "bad_address", scales=1 << MEMORY_ADDRESS_BITS))
    await bench.play(channel, [*jobs, bench.job(channel, *_any(bench, scaled))])


@bench_test(DmaBench)
async def refused_by_the_unit(bench: DmaBench) -> None:
    """Faults that only the unit detects: a payload that no tensor of the shape has, a format of mx that does not exist.

    Nothing hangs, and the jobs before and after are right, although the job before is in progress when the wrong one is
    refused.
    """
    item = _item(bench, (1, 2, 8, 24), Mode.JPEG_ACT if Mode.JPEG_ACT in _MODES else _MODES[0])
    good = bench.decompression(*item)
    short = bench.refused(bench.decompression(*item), "unit", payload_bytes=1)
    short = replace(short, unit_errors=frozenset({"bad_length"}))
    await bench.play(Channel.DECOMPRESS, [short, good, short, short, good, good])
    if Mode.MX in _MODES:
        jobs = [bench.compression(*_item(bench, (1, 2, 8, 24), Mode.MX)) for _ in range(2)]
        none = bench.refused(jobs[0], "unit", mx_coding=len(MX_FORMATS))
        none = replace(none, unit_errors=frozenset({"bad_job"}))
        await bench.play(Channel.COMPRESS, [none, jobs[1], none, none, jobs[1], jobs[1]])


@bench_test(DmaBench)
async def too_little_room(bench: DmaBench) -> None:
    """A payload longer than its buffer: the buffer is filled, bytes behind it are unchanged, the record has the full length."""
    jobs = []
    for mode in _MODES:
        item = _item(bench, (1, 3, 8, 40), mode)
        need = len(item[1].payload)
        jobs += [bench.compression(*item, room=room) for room in (0, 1, need - 1, need, need + 20)]
    await bench.play(Channel.COMPRESS, jobs)


@bench_test(DmaBench, skip=Mode.SFPR_ZVC not in _MODES)
async def damaged_payloads(bench: DmaBench) -> None:
    """A payload that is cut, or too long: the record names the unit's errors, the neighbours are right."""
    jobs = []
    for change, errors in ((-1, {"early_last"}), (7, {"late_last"}), (70, {"late_last"}), (300, {"late_last"})):
        item = _item(bench, (1, 2, 8, 40), Mode.SFPR_ZVC, "sparse")
        good, wrong = (bench.decompression(*item) for _ in range(2))
        longer = replace(wrong.descriptor, payload_bytes=len(item[1].payload) + change)
        if change < 0:  # the missing value is zero
            wrong = replace(wrong, result=bench.memory.get(wrong.place, 0))
        jobs += [replace(wrong, descriptor=longer, errors=frozenset({"unit"}), unit_errors=frozenset(errors)), good]
    await bench.play(Channel.DECOMPRESS, jobs)


@bench_test(DmaBench)
async def bad_scales(bench: DmaBench) -> None:
    """An invalid scale is reported in the record of its job and of no other."""
    modes = [mode for mode in _MODES if mode.has_scales]
    jobs: dict[Channel, list[DmaJob]] = {channel: [] for channel in Channel}
    for channel, listed in jobs.items():
        for mode in modes:
            item = _item(bench, (1, 3, 8, 16), mode)
            good, wrong = (bench.job(channel, *item) for _ in range(2))
            second = 0 if mode.is_flat else scale_port_bytes(mode.has_offsets)
            bench.memory.put(wrong.descriptor.scales + second, b"\x00\x00\xc0\x7f")  # NaN
            wrong = replace(wrong, result=b"", errors=frozenset({"unit"}), unit_errors=frozenset({"bad_scale"}))
            if channel is Channel.COMPRESS:  # other values, so that the payload may have another length
                room = replace(wrong.descriptor, payload_bytes=wrong.size + 4000)
                jobs[channel] += [replace(wrong, descriptor=room), good] if not mode.has_zvc else [good]
            else:
                listed += [wrong, good]
    await _both(bench, jobs)


@bench_test(DmaBench, response=_RESPONSES)
async def memory_errors(bench: DmaBench, response: str) -> None:
    """Memory that answers with an error is reported by the job, or by registers without a record; other jobs are right."""
    bench.memory.error = AxiResp[response]
    item = _item(bench, (1, 2, 8, 40), _MODES[0])
    for channel in Channel:
        for what in ("tensor", "payload", "scales"):
            good, wrong, next_one = (bench.job(channel, *item) for _ in range(3))
            size = {"scales": 1, "payload": len(item[1].payload), "tensor": item[0].numel() * item[0].element_size()}[what]
            begin = getattr(wrong.descriptor, what) + bench.rng.randrange(size)
            reads = what == "scales" or (what == "tensor") == (channel is Channel.COMPRESS)
            wrong = replace(wrong, result=b"", errors=frozenset({"read" if reads else "write"}))
            if what == "scales":  # zeros came instead
                wrong = replace(wrong, errors=frozenset({"read", "unit"}), unit_errors=frozenset({"bad_scale"}))
            bench.memory.faulty = range(begin, begin + 1)
            await bench.play(channel, [good, wrong, next_one])
            assert not any((await bench.read("ERRORS", channel)).values())


@bench_test(DmaBench, response=_RESPONSES)
async def lost_records(bench: DmaBench, response: str) -> None:
    """Without a descriptor or an address for the record HEAD advances, a register reports it, the other jobs are right."""
    bench.memory.error = AxiResp[response]
    item = _item(bench, (1, 2, 8, 40), _MODES[0])
    for channel in Channel:
        jobs = [bench.job(channel, *item) for _ in range(4)]
        ring = await bench.open(channel, 2)
        await bench.write("INTERRUPT_ENABLE", channel, error=1)
        bench.memory.faulty = range(jobs[1].descriptor.completion, jobs[1].descriptor.completion + 1)
        jobs[2] = replace(jobs[2], descriptor=replace(jobs[2].descriptor, completion=1 << 50))
        for number, job in enumerate(jobs):
            bench.memory.put(ring + number * DESCRIPTOR_BYTES, job.descriptor.pack())
        await bench.write("TAIL", channel, value=2)
        while (await bench.read("HEAD", channel))["value"] < 2:
            pass
        assert await bench.errors(channel) == {"completion"}
        assert int(bench.dut.irq.value)
        await bench.write("ERRORS", channel, completion=1)
        await bench.write("INTERRUPT_STATUS", channel, job_done=1, error=1)
        bench.memory.faulty = range(ring + 3 * DESCRIPTOR_BYTES, ring + 3 * DESCRIPTOR_BYTES + 1)
        await bench.write("TAIL", channel, value=5)  # the ring begins again with the first job
        while (await bench.read("HEAD", channel))["value"] < 5:
            pass
        assert await bench.errors(channel) == {"descriptor", "completion"}
        bench.record(jobs[0], 4)
        await bench.write("ERRORS", channel, descriptor=1, completion=1)
        await bench.write("INTERRUPT_STATUS", channel, job_done=1, error=1)
        await bench.write("INTERRUPT_ENABLE", channel, error=0)
        bench.memory.faulty = range(0)
        await bench.close(channel)


@bench_test(DmaBench, what=["tensor", "scales", "payload", "completion", "descriptor"])
async def silent_memory(bench: DmaBench, what: str) -> None:
    """Memory that does not answer: registers do, HEAD stays, the ring stays busy; a reset restarts everything."""
    item = _item(bench, (1, 2, 8, 40), _MODES[0])
    for channel in Channel:
        good, stuck = bench.job(channel, *item), bench.job(channel, *item)
        ring = await bench.open(channel, 1)
        for number, job in enumerate((good, stuck)):
            bench.memory.put(ring + number * DESCRIPTOR_BYTES, job.descriptor.pack())
        place = ring + DESCRIPTOR_BYTES if what == "descriptor" else getattr(stuck.descriptor, what)
        bench.memory.silent = range(place, place + 1)
        await bench.write("TAIL", channel, value=1)
        while not (await bench.read("HEAD", channel))["value"]:
            pass
        await bench.write("TAIL", channel, value=2)
        await ClockCycles(bench.dut.clk, 3000)
        await bench.write("CONTROL", channel, enable=0)
        assert (await bench.read("HEAD", channel))["value"] == 1
        assert (await bench.read("STATUS", channel))["busy"]
        bench.record(good, 0)
        bench.memory.silent = range(0)
        await bench.reset()
        assert not (await bench.read("STATUS", channel))["busy"]
        assert not (await bench.read("HEAD", channel))["value"]
        await bench.play(channel, [bench.job(channel, *item) for _ in range(2)])


@bench_test(DmaBench, skip=not _CONFIG.payload_crc)
async def payloads_with_a_crc(bench: DmaBench) -> None:
    """Payloads leave and come back with their CRC, jobs in between have none; a wrong bit is reported in its record."""
    jobs: dict[Channel, list[DmaJob]] = {channel: [] for channel in Channel}
    for mode in _MODES:
        item = _item(bench, (1, 3, 8, 40), mode)
        for channel in Channel:
            jobs[channel] += [bench.job(channel, *item, crc=crc) for crc in (True, False, True)]
        jobs[Channel.COMPRESS].append(bench.compression(*item, room=len(item[1].payload) + CRC_BYTES - 1, crc=True))
        wrong = bench.decompression(*item, crc=True)
        place = wrong.descriptor.payload + len(item[1].payload)
        bench.memory.put(place, bytes([bench.memory.get(place, 1)[0] ^ 1 << bench.rng.randrange(8)]))
        jobs[Channel.DECOMPRESS].append(replace(wrong, errors=frozenset({"unit"}), unit_errors=frozenset({"bad_crc"})))
    await _both(bench, jobs)


@bench_test(DmaBench)
async def views_of_tensors(bench: DmaBench) -> None:
    """A part of a larger tensor is compressed in place, and restored into another one, of which nothing else changes."""
    size = _CONFIG.dtype.bits // 8
    for mode in _MODES:
        whole, _ = _item(bench, (3, 4, 11, 50), _MODES[0], "normal")
        part = whole[1:, 1:3, 2:10, 5:38]
        item = of_tensor(bench.config, bench.rng, part.contiguous(), mode)
        n, c, h, w = part.shape
        extents = {"n": n, "c": c, "h": h, "w": w}
        strides = {f"stride_{axis}": size * part.stride(place) for place, axis in enumerate("nch")}
        raw = whole.contiguous()
        for channel in Channel:
            job = bench.job(channel, part.contiguous(), item)
            content = float_bytes(raw)
            begin = bench.put(content, size)
            address = begin + size * int(part.storage_offset())
            placed: dict[str, Any] = {"tensor": address, **extents, **strides}
            descriptor = replace(job.descriptor, **placed)
            if channel is Channel.COMPRESS:
                await bench.play(channel, [replace(job, descriptor=descriptor)])
                continue
            golden = raw.clone()
            back = bench.decompression(part.contiguous(), item).result[: part.numel() * size]
            golden[1:, 1:3, 2:10, 5:38] = torch.frombuffer(bytearray(back), dtype=part.dtype).view(part.shape)
            expected = float_bytes(golden)
            await bench.play(channel, [replace(job, descriptor=descriptor, place=begin, result=expected)])


@bench_test(DmaBench)
async def registers_of_the_unit(bench: DmaBench) -> None:
    """The unit's registers have the addresses that they have without an engine, and answer while jobs run, also in bursts."""
    fixed = {registers.address(name): value for name, value in registers.read_only_values(bench.config).items()}
    size = dma_address("RING_SIZE", Channel.DECOMPRESS)
    fixed[size] = await bench.bus.read(size)
    jobs = [bench.compression(*_any(bench, mode)) for mode in _MODES]
    task = cocotb.start_soon(bench.play(Channel.COMPRESS, jobs))
    for _ in range(6):
        order = bench.rng.sample(list(fixed), len(fixed))
        asked = {place: cocotb.start_soon(bench.bus.read(place)) for place in order}
        for place, read in asked.items():
            assert await read == fixed[place], f"{place:#x} has the answer of another one"
    await task
    done = await bench.bus.read(registers.address("JOBS_DONE", Channel.COMPRESS))
    assert done == len(jobs)
    assert await bench.bus.write(0xFFC, 0), "an address without a register took a write"


@bench_test(DmaBench)
async def refused_accesses(bench: DmaBench) -> None:
    """Accesses that the engine refuses are reported in BUS_ERRORS: read-only registers, holes, partial writes; jobs go on."""
    jobs = [bench.compression(*_any(bench, mode)) for mode in _MODES]
    task = cocotb.start_soon(bench.play(Channel.COMPRESS, jobs))
    while not (await bench.read("CONTROL", Channel.COMPRESS))["enable"]:
        pass
    cleared = registers.register("BUS_ERRORS").pack(bad_access=1)
    await bench.bus.write(registers.address("BUS_ERROR_ENABLE"), cleared)
    for channel in Channel:
        base, tail = dma_base(channel), dma_address("TAIL", channel)
        free = [place for place in range(DMA_CHANNEL_BYTES) if place % REGISTER_BYTES == 0 and place not in _OFFSETS]
        holes = [base + place for place in bench.rng.sample(free, 3)]
        before = await bench.read("RING_SIZE", channel)
        writes = [(place, REGISTER_BYTES) for place in (*holes, dma_address("STATUS", channel), dma_address("HEAD", channel))]
        partial = [(dma_address("RING_SIZE", channel), size) for size in (1, 2, 3)]
        for place, size in (*writes, *partial):
            assert await bench.bus.write_bytes(place, b"\xff" * size) == AxiResp.SLVERR, f"a write to {place:#x} was taken"
            await _told(bench, place, write=1)
            await bench.bus.write(registers.address("BUS_ERRORS"), cleared)
        for place in holes:
            assert (await bench.bus.raw_read(place))[1] == AxiResp.SLVERR, f"a read of {place:#x} was answered"
            await _told(bench, place, write=0)
            await bench.bus.write(registers.address("BUS_ERRORS"), cleared)
        assert await bench.read("RING_SIZE", channel) == before
        assert (await bench.bus.raw_read(tail))[1] == AxiResp.OKAY
        assert not await bench.bus.read(registers.address("BUS_ERRORS"))
        bench.cases += len(writes) + len(partial) + len(holes)
    await task


async def _told(bench: DmaBench, place: int, write: int) -> None:
    """Check that the unit's registers report the refused access at ``place``, and that the unit interrupts."""
    assert await bench.bus.read(registers.address("BUS_ERRORS")), f"{place:#x} is not told"
    where = registers.register("BAD_ADDRESS").unpack(await bench.bus.read(registers.address("BAD_ADDRESS")))
    assert where == {"address": place, "write": write}, f"BAD_ADDRESS is {where} after {place:#x}"
    assert int(bench.dut.irq.value), f"{place:#x} does not interrupt"


async def _activations(bench: DmaBench, dataset: str) -> None:
    """Play activations of a network in training on a data set, in every mode and direction, with latency and stalls."""
    setup = TrainingSetup(dataset=dataset, limit=64, steps=2, batch=8)
    recorded = recorded_jobs.record(setup.recipe, setup.images, [Mode.JPEG_ACT], _IMAGES)[Mode.JPEG_ACT]
    bench.behave("bursts")
    bench.memory.latency = 30
    jobs: dict[Channel, list[DmaJob]] = {channel: [] for channel in Channel}
    for one in bench.rng.sample(recorded, min(len(recorded), _TENSORS)):
        for mode in _MODES:
            x = one.values.to(DTYPES[_CONFIG.dtype])
            item = of_tensor(bench.config, bench.rng, x, mode, one.name, TABLES)
            for channel in Channel:
                jobs[channel].append(bench.job(channel, x, item))
    await _both(bench, jobs)


@bench_test(DmaBench, skip=Mode.JPEG_ACT not in _MODES)
async def activations_of_digits(bench: DmaBench) -> None:
    """Handwritten digits, which come with scikit-learn."""
    await _activations(bench, "digits")


@bench_test(DmaBench, skip=Mode.JPEG_ACT not in _MODES or not os.environ.get("CDU_DATA_DIR"))
async def activations_of_photographs(bench: DmaBench) -> None:
    """CIFAR-10, if its folder is given."""
    await _activations(bench, "cifar10")


@bench_test(DmaBench, direction=[channel.value for channel in Channel], mode=[mode.name.lower() for mode in _MODES])
async def rate(bench: DmaBench, direction: str, mode: str) -> None:
    """Jobs of a direction overlap: the next one ends sooner than alone, by more than memory's latency but in tiles."""
    bench.memory.latency = 40
    count, first = 4, 1
    item = _item(bench, (2, 4, 32, 64), Mode[mode.upper()])
    beats = item[1].compression.beats
    of_values, of_payload = beats / bench.config.port_beats, len(item[1].payload) / bench.config.packed_bytes
    least = max(of_values, of_payload, beats * bench.config.beat_bits / bench.config.dma_bits)
    channel = Channel(direction)
    alone, apart = await _apart(bench, channel, _aligned(bench, channel, bench.job(channel, *item)), first, count)
    bench.figures["job"] = f"{alone} cycles alone, {apart:.0f} apart, at least {least:.0f}"
    assert alone < 1.35 * least + 400, f"{direction} {mode}: {alone} cycles, least {least:.0f}"
    # Rows of tiles are read in short bursts, which can take longer than the unit.
    short = channel is Channel.COMPRESS and Mode[mode.upper()].in_tiles
    gained = alone - apart
    assert gained > (0 if short else 1.5 * bench.memory.latency), f"{direction} {mode}: the next job takes {apart:.0f} cycles"


def _aligned(bench: DmaBench, channel: Channel, job: DmaJob) -> DmaJob:
    """Return the job with a tensor that begins at a multiple of 64 bytes, so that no row has parts of words."""
    found = job.descriptor
    size = found.n * found.c * found.h * found.w * _CONFIG.dtype.bits // 8
    begin = bench.put(bench.memory.get(found.tensor, size + 64), 64)
    place = job.place if channel is Channel.COMPRESS else begin
    return replace(job, descriptor=replace(found, tensor=begin), place=place)


async def _apart(bench: DmaBench, channel: Channel, job: DmaJob, first: int, count: int) -> tuple[int, float]:
    """Return the cycles of a job after ``first - 1`` equal ones, and those from each to the next, as a host sees them."""
    jobs = [job] * count
    times, cycles = [], []
    for some in (jobs[:first], jobs):
        begin = get_sim_time("ns")
        records = await bench.play(channel, some, log2=4)
        times.append((get_sim_time("ns") - begin) / CLOCK_NS)
        cycles.append(records[-1].cycles)
    return cycles[0], (times[1] - times[0]) / (count - first)


@bench_test(DmaBench)
async def late_memory(bench: DmaBench) -> None:
    """A job reads before the one before has ended: small jobs take less than the sum of read, result and record."""
    bench.memory.latency = 300
    for mode in (_MODES[0], _MODES[-1]):
        item = _item(bench, (1, 1, 8, 32), mode)
        for channel in Channel:
            cycles, apart = await _apart(bench, channel, bench.job(channel, *item), 2, 8)
            bench.figures[f"{channel.value} {mode.label}"] = f"{cycles} cycles, {apart:.0f} apart"
            assert apart < 3 * bench.memory.latency, f"{channel.value} {mode.label}: jobs are {apart:.0f} cycles apart"
