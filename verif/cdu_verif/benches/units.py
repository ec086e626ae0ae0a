"""Tests of a Compressor or a Decompressor alone: whole jobs of all modes against the golden model."""

from __future__ import annotations

import os

import torch
from actcodec.backends.torch_backend import TorchBackend
from cdu_spec.geometry import LANES
from cdu_spec.modes import Mode

from cdu_verif.benches.unit import CompressorDriver, DecompressorDriver
from cdu_verif.content.payloads import BANKS, same_bits
from cdu_verif.content.tensors import KINDS, TABLES, Exchange, exchange, incompressible, shapes
from cdu_verif.simulation.bench import BLOCK, Bench, simulated_config
from cdu_verif.simulation.bench_test import bench_test
from cdu_verif.simulation.patterns import PATTERNS, always
from cdu_verif.stimulus.rates import rows_per_cycle

_COMPRESSES = os.environ[BLOCK] == "compressor"
_MODES = simulated_config().built_modes
#: Blocks over which the rate is measured.
_RATE_BLOCKS = 96
#: Cycles by which a measured rate may differ from the ideal one, for the ends of a job.
_SLACK_CYCLES = 8


class _Unit:
    """Either half behind one face."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.driver: CompressorDriver | DecompressorDriver = (
            CompressorDriver(bench) if _COMPRESSES else DecompressorDriver(bench)
        )

    def send(self, item: Exchange) -> None:
        if isinstance(self.driver, CompressorDriver):
            self.driver.send(item.compression, item.beats)
        else:
            self.driver.send(item.decompression, item.payload)

    async def check(self, items: list[Exchange]) -> None:
        """Run all jobs back to back and compare every byte (value)."""
        for item in items:
            self.send(item)
        if isinstance(self.driver, CompressorDriver):
            for item, payload in zip(items, await self.driver.collect(), strict=True):
                _compare(item, payload)
        else:
            for item, beats in zip(items, await self.driver.collect(), strict=True):
                _compare_beats(item, beats)
        self.bench.cases += len(items)

    def behave(self, pattern: str) -> None:
        """Stream behaviour by name, for every stream independently of the others."""
        for source in self.bench.sources.values():
            source.pattern = PATTERNS[pattern](self.bench.rng)[0]
        self.driver.o.pattern = PATTERNS[pattern](self.bench.rng)[1]


def _compare(item: Exchange, payload: bytes) -> None:
    if payload == item.payload:
        return
    place = next((i for i, (a, b) in enumerate(zip(payload, item.payload, strict=False)) if a != b), "the end")
    raise AssertionError(f"{item.name}: {len(payload)} bytes against {len(item.payload)}, first difference at {place}")


def _compare_beats(item: Exchange, beats: torch.Tensor) -> None:
    if same_bits(beats, item.restored):
        return
    differs = (beats != item.restored).any(1).nonzero()
    place = int(differs[0]) if len(differs) else "a NaN or zero"
    raise AssertionError(f"{item.name}: {len(differs)} of {len(beats)} beats differ, first at {place}")


def _items(bench: Bench, mode: Mode, count: int) -> list[Exchange]:
    """Random jobs of one mode, with as many shift tables as a unit holds."""
    sizes = [(rng.randint(1, 2), rng.randint(1, 3), rng.randint(1, 9), rng.randint(1, 70)) for rng in [bench.rng] * count]
    tables = TABLES[:BANKS]
    return [exchange(bench.config, bench.rng, size, mode, bench.rng.choice(KINDS), tables) for size in sizes]


@bench_test(Bench, pattern=list(PATTERNS))
async def mixed_jobs(bench: Bench, pattern: str) -> None:
    """Jobs of all built-in modes in random order, back to back."""
    unit = _Unit(bench)
    unit.behave(pattern)
    items = [item for mode in bench.config.built_modes for item in _items(bench, mode, 8 if bench.full else 3)]
    bench.rng.shuffle(items)
    await unit.check(items)


@bench_test(Bench, mode=[mode.name.lower() for mode in _MODES])
async def odd_shapes(bench: Bench, mode: str) -> None:
    """Shapes that need padding at the right, at the bottom or at the end."""
    chosen = Mode[mode.upper()]
    items = [
        exchange(bench.config, bench.rng, shape, chosen, bench.rng.choice(KINDS), TABLES[-BANKS:])
        for shape in shapes(bench.rng, bench.full)
    ]
    await _Unit(bench).check(items)


@bench_test(Bench, kind=list(KINDS))
async def contents(bench: Bench, kind: str) -> None:
    """Every kind of content in every mode."""
    items = [exchange(bench.config, bench.rng, (1, 3, 8, 40), mode, kind, TABLES[:BANKS]) for mode in bench.config.built_modes]
    await _Unit(bench).check(items)


@bench_test(Bench)
async def reset_in_the_middle(bench: Bench) -> None:
    """After a reset at any moment of any job the unit works as from the start."""
    for _ in range(3 if bench.full else 2):
        for mode in bench.config.built_modes:
            unit = _Unit(bench)
            unit.behave("coins")
            unit.send(_items(bench, mode, 1)[0])
            await bench.idle(bench.rng.randint(1, 150))
            await bench.reset(bench.rng.randint(1, 3))
            await _Unit(bench).check(_items(bench, bench.rng.choice(bench.config.built_modes), 1))


@bench_test(Bench, content=["noise", "dense", "zeros"])
async def rate(bench: Bench, content: str) -> None:
    """Without stalls N rows pass per cycle in every mode, first to last; bypass is limited by the packed port only."""
    for mode in bench.config.built_modes:
        item = _rate_item(bench, (1, 1, 8, 8 * _RATE_BLOCKS), mode, content)
        if content == "dense" and mode.has_zvc and not mode.is_affine:
            assert len(item.payload) == 72 * _RATE_BLOCKS, f"{mode.label}: the content is not incompressible"
        await _measure(bench, item, mode.label)


def _rate_item(bench: Bench, shape: tuple[int, ...], mode: Mode, content: str) -> Exchange:
    """A job whose ZVC blocks all have 72 bytes, or 8, or anything."""
    if content == "zeros":
        return exchange(bench.config, bench.rng, shape, mode, "zeros")
    if content == "noise" or not mode.has_dct:
        return exchange(bench.config, bench.rng, shape, mode, "extremes" if content == "dense" else "normal")
    return incompressible(bench.config, bench.rng, shape)


async def _measure(bench: Bench, item: Exchange, name: str) -> None:
    """Run a job at full rate; AssertionError when its values take longer than the unit's rate allows."""
    values = bench.sources["i"].transfers if _COMPRESSES else bench.sinks["o"].transfers
    packed = bench.sinks["o"].transfers if _COMPRESSES else bench.sources["i"].transfers
    values.clear()
    packed.clear()
    await _Unit(bench).check([item])
    cycles = values[-1] - values[0] + 1
    latency = packed[0] - values[0] if _COMPRESSES else values[0] - packed[0]
    beats, per_cycle = item.compression.beats, rows_per_cycle(bench.config, item.compression.mode)
    bench.figures[name] = f"{beats} beats in {cycles} cycles, first result after {latency}"
    assert cycles <= beats / per_cycle + _SLACK_CYCLES, f"{name}: {beats} beats took {cycles} cycles"


@bench_test(Bench, skip=Mode.JPEG_ACT not in _MODES)
async def rate_of_widths(bench: Bench) -> None:
    """The rate of jpeg-act holds for every width of 1 to 9 blocks, whole tiles or not."""
    for row_beats in range(1, 10):
        shape = (1, 1, 8 * (_RATE_BLOCKS // row_beats), 8 * row_beats)
        item = exchange(bench.config, bench.rng, shape, Mode.JPEG_ACT, "normal")
        await _measure(bench, item, f"{row_beats} blocks wide")


@bench_test(Bench, mode=[mode.name.lower() for mode in _MODES])
async def hand_over(bench: Bench, mode: str) -> None:
    """Jobs that are ready follow one another without an idle cycle: many short ones pass at the rate of a long one."""
    chosen = Mode[mode.upper()]
    shape = (1, 1, 8, 32 * bench.config.port_beats)
    items = [exchange(bench.config, bench.rng, shape, chosen, "normal", TABLES[:BANKS]) for _ in range(12)]
    await _Unit(bench).check(items)
    values = bench.sources["i"].transfers if _COMPRESSES else bench.sinks["o"].transfers
    cycles, beats = values[-1] - values[0] + 1, sum(item.compression.beats for item in items)
    bench.figures["jobs"] = f"{len(items)} jobs, {beats} beats in {cycles} cycles"
    limit = beats / rows_per_cycle(bench.config, chosen) + _SLACK_CYCLES
    assert cycles <= limit, f"{len(items)} jobs of {beats} beats took {cycles} cycles"


@bench_test(Bench, skip=not _COMPRESSES)
async def nonfinite_values(bench: Bench) -> None:
    """Infinities saturate, NaN becomes zero, the event comes in such a job only."""
    driver = CompressorDriver(bench)
    for mode in bench.config.built_modes:
        if mode is Mode.BYPASS:
            continue
        for bad in (float("inf"), float("-inf"), float("nan"), None):
            item = exchange(bench.config, bench.rng, (1, 2, 8, 24), mode, "normal")
            beats = item.beats.clone()
            if bad is not None:
                beats[bench.rng.randrange(len(beats)), bench.rng.randrange(LANES)] = bad
            before = driver.seen["nonfinite"]
            driver.send(item.compression, beats)
            payload = (await driver.collect())[0]
            assert payload == bytes(TorchBackend().compress(item.compression, beats).tolist()), f"{mode.label} with {bad}"
            assert (driver.seen["nonfinite"] > before) == (bad is not None), f"{mode.label}: the event is wrong for {bad}"
            bench.cases += 1


@bench_test(Bench)
async def wrong_lengths(bench: Bench) -> None:
    """Input that ends too early or too late raises its event, and leaves the next job unharmed."""
    unit = _Unit(bench)
    driver = unit.driver
    for mode in bench.config.built_modes:
        for _ in range(6 if bench.full else 2):
            item = exchange(bench.config, bench.rng, (1, 2, 8, bench.rng.randint(8, 40)), mode, "normal")
            for length, event in ((-1, "early_last"), (0, None), (1, "late_last"), (0, None)):
                before = dict(driver.seen)
                _send_wrong(driver, item, length)
                (result,) = await driver.collect()
                bench.sinks["o"].pattern = always()
                await bench.idle(20)
                raised = {name for name, count in driver.seen.items() if count > before[name]}
                if event == "early_last":
                    raised.discard("bad_head")  # zeros where a head is missing
                assert raised == ({event} if event else set()), f"{item.name}: {raised} instead of {event}"
                assert not bench.sinks["o"].received, "more words than the job has"
                if length >= 0:
                    _compare(item, result) if isinstance(result, bytes) else _compare_beats(item, result)
                bench.cases += 1


def _send_wrong(driver: CompressorDriver | DecompressorDriver, item: Exchange, length: int) -> None:
    """A job whose input is cut at a random place (-1), right (0), or continued (1)."""
    rng = driver.bench.rng
    if isinstance(driver, CompressorDriver):
        beats = item.beats
        if length < 0:
            beats = beats[: rng.randint(1, len(beats) - 1)]
        elif length > 0:
            beats = torch.cat((beats, beats[: rng.randint(1, len(beats))]))
        driver.send(item.compression, beats)
    else:
        payload = item.payload
        if length < 0:
            payload = payload[: rng.randint(1, len(payload) - 1)]
        elif length > 0:
            payload += rng.randbytes(rng.choice((1, 16, 50, 200)))
        driver.send(item.decompression, payload)
