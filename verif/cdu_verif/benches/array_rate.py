"""Tests of the rate of a whole unit in values per cycle, and of its own counters."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import torch
from actcodec.backends.job import DTYPES
from actcodec.codecs import codec_options
from actcodec.study.setup import TrainingSetup
from cdu_spec.coding import coder_of
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, LANES
from cdu_spec.modes import Coder, Mode
from cdu_spec.mx import MX_FORMATS, MxSettings, ScaleRule
from cdu_spec.ports import PORTS
from cdu_spec.register_types import Channel
from cdu_spec.sfpr import PUBLISHED_S

from cdu_verif.benches.array_bench import ArrayBench, input_of, job_of
from cdu_verif.cases.gmc import DENSEST_AT_RATE, MOST_CYCLES
from cdu_verif.content.tensors import TABLES, Exchange, exchange, incompressible, of_tensor
from cdu_verif.content.values import generator
from cdu_verif.simulation.bench import simulated_config
from cdu_verif.simulation.bench_test import bench_test
from cdu_verif.stimulus import recorded_jobs
from cdu_verif.stimulus.gate_stimulus import CODECS
from cdu_verif.stimulus.rates import block_bytes, least_cycles, rows_per_cycle

_MODES = simulated_config().built_modes
_CHANNELS = [channel.value for channel in Channel]
#: Blocks per CDU of a measured job; the content of the unit's buffers is small compared with them.
_BLOCKS_PER_CDU = 96
#: Cycles by which a measured job may exceed the ideal at its ends, and the share by which it may besides.
_SLACK_CYCLES, _SLACK_PART = 24, 0.01
#: Cycles of the jobs between which no cycle may be lost: longer than it takes to write the registers of the next one.
_HAND_OVER_CYCLES = 256
_HAND_OVER_JOBS = 6
#: Number of words after which a unit works at its steady rate.
_SETTLING_WORDS = 64
#: CDUs up to which a block of GMC takes at most MOST_CYCLES; with more CDUs the lanes wait longer for each other.
_FEW_CDUS, _MOST_CYCLES_OF_MANY = 4, 15
#: The default DQT of the codec with a coder.
_USUAL_TABLES = {coder: codec_options(name)["dqt"] for name, (mode, coder) in CODECS.items() if mode.has_dct}
#: Number of steps of the training from which activations are recorded.
_STEPS = 4


@cache
def _activations() -> torch.Tensor:
    """Return the input of a ResNet's first batch normalisation after some steps on the digits, (32, 8, 16, 16)."""
    setup = TrainingSetup(steps=_STEPS, batch=32)
    recorded = recorded_jobs.record(setup.recipe, setup.images, [Mode.JPEG_ACT], setup.recipe.batch)
    return next(one.values for one in recorded[Mode.JPEG_ACT] if one.name == "bn/conv")


def _contents(bench: ArrayBench, mode: Mode) -> list[tuple[str, Exchange]]:
    """Return jobs of a mode from incompressible to empty, by their content."""
    shape = (1, 1, BLOCK_SIDE, BLOCK_SIDE * _BLOCKS_PER_CDU * bench.config.cdus)
    if mode is Mode.MX:
        real = _activations()[:8].to(DTYPES[bench.config.dtype])
        formats = [MxSettings(name, bench.rng.choice(list(ScaleRule))) for name in MX_FORMATS]
        return [(f"activations, {how.format}", of_tensor(bench.config, bench.rng, real, mode, how=how)) for how in formats]
    if not mode.has_zvc:
        return [("any", exchange(bench.config, bench.rng, shape, mode, "normal"))]
    if mode.has_dct:
        items = []
        images = -(-shape[-1] * BLOCK_SIDE // _activations()[0].numel())
        real = _activations()[:images].to(DTYPES[bench.config.dtype])
        for coder in bench.config.built_coders:
            full = incompressible(bench.config, bench.rng, shape, coder)
            others = {
                kind: exchange(bench.config, bench.rng, shape, mode, kind, TABLES[:1], coder)
                for kind in ("normal", "smooth", "zeros")
            }
            table = _USUAL_TABLES[coder]
            activations = of_tensor(bench.config, bench.rng, real, mode, "activations", [table], coder, [PUBLISHED_S])
            named = {"no coefficient is zero": full, **others, f"activations, {table}": activations}
            if coder is Coder.GMC:
                longest = exchange(bench.config, bench.rng, shape, mode, "extremes", TABLES[:1], coder)
                named = {f"{content}, gmc": item for content, item in {**named, "extremes": longest}.items()}
            items += list(named.items())
        return items
    found = []
    for percent in (100, 75, 50, 25, 10, 0):
        source = generator(bench.rng)
        signs = torch.where(torch.randn(shape, generator=source) > 0, 1.0, -1.0)
        kept = torch.rand(shape, generator=source) < percent / 100
        x = (signs * kept).to(DTYPES[bench.config.dtype])
        found.append((f"{percent} % are not zero", of_tensor(bench.config, bench.rng, x, mode)))
    return found


@bench_test(ArrayBench, direction=_CHANNELS, mode=[mode.name.lower() for mode in _MODES])
async def rate(bench: ArrayBench, direction: str, mode: str) -> None:
    """N rows pass per cycle until the packed side is the limit; the counters add up to the same."""
    channel, chosen = Channel(direction), Mode[mode.upper()]
    for content, item in _contents(bench, chosen):
        await _measure(bench, channel, item, content)


async def _measure(bench: ArrayBench, channel: Channel, item: Exchange, content: str) -> None:
    job, config = job_of(channel, item), bench.config
    for watch in bench.watches.of.values():
        watch.clear()
    await bench.write("CONTROL", channel, clear_counters=1)
    await bench.run_job(channel, item)
    i, o = (bench.watches.of[port].transfers for port in (PORTS[channel].input, PORTS[channel].output))
    cycles = max(i[-1] - i[0], o[-1] - o[0]) + 1
    ideal = least_cycles(config, job, item.payload)
    counters = {name: await bench.number(name, channel) for name in ("CYCLES", "VALUES", "BYTES")}
    stalls = {name: await bench.number(name, channel) for name in ("INPUT_STALL", "INPUT_IDLE", "OUTPUT_STALL")}
    assert counters["VALUES"] == job.beats * LANES, f"VALUES is {counters['VALUES']} after {job.beats * LANES} values"
    assert counters["BYTES"] == len(item.payload), f"BYTES is {counters['BYTES']} after {len(item.payload)} bytes"
    assert cycles <= counters["CYCLES"], f"CYCLES is {counters['CYCLES']} after a job of at least {cycles}"
    per_cycle, possible = job.beats * LANES / cycles, job.beats * LANES / ideal
    value_bits = config.dtype.bits
    ratio = job.beats * LANES * value_bits / 8 / len(item.payload)
    bench.figures[content] = f"{per_cycle:.2f} values/cycle of {possible:.2f}, ratio {ratio:.2f}"
    bench.measure(
        direction=channel.value,
        mode=job.mode.label,
        content=content,
        ratio=round(ratio, 2),
        values_per_cycle=round(per_cycle, 2),
        possible=round(possible, 2),
        **{name.lower(): count for name, count in (counters | stalls).items()},
    )
    limit = ideal * (1 + _SLACK_PART) + _SLACK_CYCLES
    if coder_of(job.how) is Coder.GMC and max(block_bytes(job, item.payload)) > DENSEST_AT_RATE:
        limit *= (MOST_CYCLES if config.cdus <= _FEW_CDUS else _MOST_CYCLES_OF_MANY) / BLOCK_SIDE
    assert cycles <= limit, f"{item.name}, {content}: {cycles} cycles, {ideal:.0f} are possible; stalls: {stalls}"


@bench_test(ArrayBench, direction=_CHANNELS, mode=[mode.name.lower() for mode in _MODES])
async def hand_over(bench: ArrayBench, direction: str, mode: str) -> None:
    """Jobs of one mode follow each other without an idle cycle, or with one if a last slice takes two cycles."""
    lost, _, doubled = await _in_a_row(bench, Channel(direction), [Mode[mode.upper()]] * _HAND_OVER_JOBS)
    allowed = doubled if Channel(direction) is Channel.COMPRESS else 0
    bench.figures["lost"] = f"{lost} cycles in {_HAND_OVER_JOBS - 1} changes of job"
    assert lost <= allowed, f"{lost} cycles were lost in {_HAND_OVER_JOBS - 1} changes of job, not {allowed}"


def _takes_two(config: CduConfig, payload: bytes) -> bool:
    """Return whether a job's last slice may have begun in the word before its last, so that the collector needs two cycles."""
    return (len(payload) - 1) % config.packed_bytes + 1 < config.slice_bytes


@bench_test(ArrayBench, skip=len(_MODES) < 2, direction=_CHANNELS)
async def change_of_mode(bench: ArrayBench, direction: str) -> None:
    """A change of mode costs few cycles, which are reported."""
    channel = Channel(direction)
    modes = [mode for pair in pairwise([*_MODES, _MODES[0]]) for mode in pair]
    lost, gaps, _ = await _in_a_row(bench, channel, modes)
    for (before, after), gap in zip(pairwise(modes), gaps, strict=True):
        if before is not after:
            bench.figures[f"{before.label} to {after.label}"] = f"{gap - 1} idle cycles"
    bench.figures["lost"] = f"{lost} cycles in {len(modes) - 1} changes of job"


async def _in_a_row(bench: ArrayBench, channel: Channel, modes: list[Mode]) -> tuple[int, list[int], int]:
    """Run jobs whose registers are always written in time.

    Returns the cycles beyond those that their values need; the distance in cycles from the last transfer of values of each job
    to the first one of the next; and how many jobs, apart from the last, may take a cycle more at their end.
    """
    config = bench.config
    items = []
    for mode in modes:
        blocks = int(_HAND_OVER_CYCLES * rows_per_cycle(config, mode)) // BLOCK_SIDE
        blocks -= blocks % config.port_beats
        shape = (1, 1, BLOCK_SIDE, BLOCK_SIDE * max(blocks, config.port_beats))
        # For jpeg-act the densest coder, and content that it codes at full rate.
        kind, coder = ("smooth", Coder.GMC) if mode is Mode.JPEG_ACT and config.has_gmc else ("normal", None)
        items.append(exchange(config, bench.rng, shape, mode, kind, TABLES[:1], coder))
    jobs = [job_of(channel, item) for item in items]
    tables = [job.shifts for job in jobs if job.shifts]
    if tables:
        await bench.write_table(channel, 0, tables[0])
    started = 0
    while started < len(jobs) and started < 2:
        await bench.program(channel, jobs[started])
        started += 1
    values = bench.watches.of[PORTS[channel].input if channel is Channel.COMPRESS else PORTS[channel].output]
    values.clear()
    for item, job in zip(items, jobs, strict=True):
        if job.mode.has_scales:
            bench.scales[channel].send(bench.scale_packet(job))
        bench.i[channel].send(input_of(channel, item))
    while started < len(jobs):
        while not (await bench.read("STATUS", channel))["queue_space"]:
            pass
        await bench.program(channel, jobs[started])
        started += 1
    for item, job in zip(items, jobs, strict=True):
        bench.check(channel, item, await bench.result(channel, job))
    ends, words = [], 0
    for job in jobs:
        words += -(-job.beats // config.port_beats)
        ends.append(words)
    times = values.transfers
    assert len(times) == words, f"{len(times)} transfers of values, not {words}"
    gaps = [times[end] - times[end - 1] for end in ends[:-1]]
    # The first words wait for the scales, or go into empty buffers.
    needed = sum(job.beats / rows_per_cycle(config, job.mode) for job in jobs)
    needed -= _SETTLING_WORDS * config.port_beats / rows_per_cycle(config, jobs[0].mode)
    doubled = sum(item.compression.mode.has_zvc and _takes_two(config, item.payload) for item in items[:-1])
    return round(times[-1] + 1 - times[_SETTLING_WORDS] - needed), gaps, doubled
