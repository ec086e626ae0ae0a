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
from cdu_spec.bitstream import Mode
from cdu_spec.dma import DESCRIPTOR_BYTES, DMA_MODES
from cdu_spec.registers import Channel
from cocotb.utils import get_sim_time
from torch import Tensor

from cdu_verif.benches.dma_bench import DmaBench, DmaJob
from cdu_verif.simulation.bench import CLOCK_NS, simulated_config
from cdu_verif.simulation.bench_test import bench_test
from cdu_verif.simulation.patterns import PATTERNS
from cdu_verif.stimulus import recorded_jobs
from cdu_verif.stimulus.payloads import float_bytes
from cdu_verif.stimulus.tensors import KINDS, TABLES, Exchange, of_tensor, tensor

_CONFIG = simulated_config()
_MODES = [mode for mode in _CONFIG.built_modes if mode in DMA_MODES]
#: Of the activations of a batch: tensors, and images of each.
_TENSORS, _IMAGES = 2, 1


def _item(bench: DmaBench, shape: tuple[int, ...], mode: Mode, kind: str = "relu") -> tuple[Tensor, Exchange]:
    """A tensor with its golden results."""
    x = tensor(bench.rng, shape, kind, DTYPES[_CONFIG.dtype])
    return x, of_tensor(bench.config, bench.rng, x, mode, kind, TABLES)


def _any(bench: DmaBench, mode: Mode) -> tuple[Tensor, Exchange]:
    """A small tensor of any shape and content; infinite values would be told as errors of the unit."""
    rng = bench.rng
    shape = (rng.randint(1, 2), rng.randint(1, 4), rng.randint(1, 11), rng.randint(1, 70))
    return _item(bench, shape, mode, rng.choice(KINDS))


async def _both(bench: DmaBench, jobs: dict[Channel, list[DmaJob]], log2: int = 2) -> None:
    """Both directions at once."""
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


@bench_test(DmaBench)
async def bad_descriptors(bench: DmaBench) -> None:
    """A descriptor that cannot be run costs itself: it has a record that says why, and its neighbours are right."""
    far, n = 1 << 40, (1 << 32) - 1
    changes: list[tuple[str, dict[str, int]]] = [
        ("bad_mode", {"mode": 0}),
        ("bad_mode", {"mode": Mode.ACTNN}),
        ("bad_mode", {"value_format": 3}),
        ("bad_mode", {"point": 7}),
        ("bad_shape", {"n": 0}),
        ("bad_shape", {"h": n, "w": n}),
        ("bad_address", {"tensor": far}),
        ("bad_address", {"payload": far}),
    ]
    jobs: dict[Channel, list[DmaJob]] = {channel: [] for channel in Channel}
    for channel, listed in jobs.items():
        wrong = [*changes, *([("bad_length", {"payload_bytes": 0})] if channel is Channel.DECOMPRESS else [])]
        for error, change in wrong:
            item = _any(bench, bench.rng.choice(_MODES))
            listed += [bench.refused(bench.job(channel, *item), error, **change), bench.job(channel, *item)]
    await _both(bench, jobs)


@bench_test(DmaBench)
async def refused_by_the_unit(bench: DmaBench) -> None:
    """What only the unit can see is wrong: a payload that no tensor of this shape has. Nothing hangs, the next job is right."""
    item = _item(bench, (1, 2, 8, 24), Mode.JPEG_ACT if Mode.JPEG_ACT in _MODES else _MODES[0])
    good = bench.decompression(*item)
    short = bench.refused(bench.decompression(*item), "unit", payload_bytes=1)
    await bench.play(Channel.DECOMPRESS, [replace(short, unit_errors=frozenset({"bad_length"})), good])


@bench_test(DmaBench)
async def too_little_room(bench: DmaBench) -> None:
    """A payload longer than its room: what fits is there, nothing behind it, and the record says how much was needed."""
    jobs = []
    for mode in _MODES:
        item = _item(bench, (1, 3, 8, 40), mode)
        need = len(item[1].payload)
        jobs += [bench.compression(*item, room=room) for room in (0, 1, need - 1, need, need + 20)]
    await bench.play(Channel.COMPRESS, jobs)


@bench_test(DmaBench, skip=Mode.SFPR_ZVC not in _MODES)
async def damaged_payloads(bench: DmaBench) -> None:
    """A payload that is cut, or too long: the record names what the unit found, the neighbours are right."""
    jobs = []
    for change, errors in ((-1, {"early_last"}), (7, {"late_last"}), (70, {"late_last"}), (300, {"late_last"})):
        item = _item(bench, (1, 2, 8, 40), Mode.SFPR_ZVC, "sparse")
        good, wrong = (bench.decompression(*item) for _ in range(2))
        longer = replace(wrong.descriptor, payload_bytes=len(item[1].payload) + change)
        if change < 0:  # the value that is missing is zero
            wrong = replace(wrong, result=bench.memory.get(wrong.place, 0))
        jobs += [replace(wrong, descriptor=longer, errors=frozenset({"unit"}), unit_errors=frozenset(errors)), good]
    await bench.play(Channel.DECOMPRESS, jobs)


@bench_test(DmaBench)
async def bad_scales(bench: DmaBench) -> None:
    """A scale that is none is told in the record of its job and of no other."""
    modes = [mode for mode in _MODES if mode.has_scales]
    jobs: dict[Channel, list[DmaJob]] = {channel: [] for channel in Channel}
    for channel, listed in jobs.items():
        for mode in modes:
            item = _item(bench, (1, 3, 8, 16), mode)
            good, wrong = (bench.job(channel, *item) for _ in range(2))
            bench.memory.put(wrong.descriptor.scales + 4, b"\x00\x00\xc0\x7f")  # NaN
            wrong = replace(wrong, result=b"", errors=frozenset({"unit"}), unit_errors=frozenset({"bad_scale"}))
            if channel is Channel.COMPRESS:  # other values, so that the payload may have another length
                room = replace(wrong.descriptor, payload_bytes=wrong.size + 4000)
                jobs[channel] += [replace(wrong, descriptor=room), good] if not mode.has_zvc else [good]
            else:
                listed += [wrong, good]
    await _both(bench, jobs)


@bench_test(DmaBench)
async def memory_errors(bench: DmaBench) -> None:
    """Memory that answers with an error: the job says so, or the registers if there is no record, and the others are right."""
    item = _item(bench, (1, 2, 8, 40), _MODES[0])
    for channel in Channel:
        for what in ("tensor", "payload", "scales"):
            good, wrong, next_one = (bench.job(channel, *item) for _ in range(3))
            begin = getattr(wrong.descriptor, what)
            reads = what == "scales" or (what == "tensor") == (channel is Channel.COMPRESS)
            wrong = replace(wrong, result=b"", errors=frozenset({"read" if reads else "write"}))
            if what == "scales":  # zeros came instead
                wrong = replace(wrong, errors=frozenset({"read", "unit"}), unit_errors=frozenset({"bad_scale"}))
            bench.memory.faulty = range(begin, begin + 4)
            await bench.play(channel, [good, wrong, next_one])
            assert not any((await bench.read("ERRORS", channel)).values())


@bench_test(DmaBench)
async def lost_records(bench: DmaBench) -> None:
    """Without a descriptor or a place for the record HEAD goes on, a register says what happened, the others are right."""
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
        assert (await bench.read("ERRORS", channel)) == {"descriptor": 0, "completion": 1}
        assert int(bench.dut.irq.value)
        await bench.write("ERRORS", channel, completion=1)
        await bench.write("INTERRUPT_STATUS", channel, job_done=1, error=1)
        bench.memory.faulty = range(ring + 3 * DESCRIPTOR_BYTES, ring + 3 * DESCRIPTOR_BYTES + 1)
        await bench.write("TAIL", channel, value=5)  # the ring begins again with the first job
        while (await bench.read("HEAD", channel))["value"] < 5:
            pass
        assert (await bench.read("ERRORS", channel)) == {"descriptor": 1, "completion": 1}
        bench.record(jobs[0], 4)
        await bench.write("ERRORS", channel, descriptor=1, completion=1)
        await bench.write("INTERRUPT_STATUS", channel, job_done=1, error=1)
        await bench.write("INTERRUPT_ENABLE", channel, error=0)
        bench.memory.faulty = range(0)
        await bench.close(channel)


@bench_test(DmaBench)
async def views_of_tensors(bench: DmaBench) -> None:
    """A part of a larger tensor is compressed where it lies, and put back into another one, of which nothing else changes."""
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
    """The unit's own registers are where they are without an engine, and answer while jobs run."""
    fixed = registers.read_only_values(bench.config)
    jobs = [bench.compression(*_any(bench, mode)) for mode in _MODES]
    task = cocotb.start_soon(bench.play(Channel.COMPRESS, jobs))
    for _ in range(6):
        for name, value in fixed.items():
            assert await bench.bus.read(registers.address(name)) == value
    await task
    done = await bench.bus.read(registers.address("JOBS_DONE", Channel.COMPRESS))
    assert done == len(jobs)
    assert await bench.bus.write(0xFFC, 0), "an address without a register took a write"


async def _activations(bench: DmaBench, dataset: str) -> None:
    """Activations of a network in training on a data set, in every mode and direction, with latency and stalls."""
    setup = TrainingSetup(dataset=dataset, steps=2, batch=8)
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
    """CIFAR-10, where it is."""
    await _activations(bench, "cifar10")


@bench_test(DmaBench)
async def rate(bench: DmaBench) -> None:
    """Cycles per job, and from one to the next, with latency, beside those that a port of the unit or of memory needs."""
    bench.memory.latency = 40
    count, first = 9, 1
    for mode in _MODES:
        item = _item(bench, (2, 4, 32, 64), mode)
        beats = item[1].compression.beats
        of_values, of_payload = beats / bench.config.port_beats, len(item[1].payload) / bench.config.packed_bytes
        least = max(of_values, of_payload, beats * bench.config.beat_bits / bench.config.dma_bits)
        for channel in Channel:
            jobs = [bench.job(channel, *item)] * count
            times = []
            for some in (jobs[:first], jobs):
                begin = get_sim_time("ns")
                records = await bench.play(channel, some, log2=4)
                times.append((get_sim_time("ns") - begin) / CLOCK_NS)
            cycles, apart = records[-1].cycles, (times[1] - times[0]) / (count - first)
            bench.figures[f"{channel.value} {mode.label}"] = f"{cycles} cycles, {apart:.0f} apart, at least {least:.0f}"
            assert cycles < 1.35 * least + 400, f"{channel.value} {mode.label}: {cycles} cycles, least {least:.0f}"
