"""Tests of a Compressor or a Decompressor alone: whole jobs of all modes against the golden model."""

from __future__ import annotations

import os
from typing import Any

import cocotb
import torch
from cdu_spec.bitstream import Mode
from cdu_spec.geometry import LANES, PACKED_BYTES

from cdu_verif.bench import CLOCK_NS, Bench, simulated_config
from cdu_verif.patterns import PATTERNS, always
from cdu_verif.tensors import KINDS, Exchange, exchange, shapes
from cdu_verif.unit import CompressorDriver, DecompressorDriver, same_bits

_COMPRESSES = os.environ["CDU_VERIFY_BLOCK"] == "compressor"
_MODES = simulated_config().built_modes
#: Blocks over which the rate is measured.
_RATE_BLOCKS = 96


class _Unit:
    """Either half behind one face."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.driver = CompressorDriver(bench) if _COMPRESSES else DecompressorDriver(bench)

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
    """Random jobs of one mode."""
    sizes = [(rng.randint(1, 2), rng.randint(1, 3), rng.randint(1, 9), rng.randint(1, 70)) for rng in [bench.rng] * count]
    return [exchange(bench.config, bench.rng, size, mode, bench.rng.choice(KINDS)) for size in sizes]


@cocotb.test
@cocotb.parametrize(pattern=list(PATTERNS))
async def mixed_jobs(dut: Any, pattern: str) -> None:
    """Jobs of all built-in modes in random order, back to back."""
    bench = await Bench(dut, f"mixed_jobs/pattern={pattern}").start()
    unit = _Unit(bench)
    unit.behave(pattern)
    items = [item for mode in bench.config.built_modes for item in _items(bench, mode, 8 if bench.full else 3)]
    bench.rng.shuffle(items)
    await unit.check(items)
    bench.report()


@cocotb.test
@cocotb.parametrize(mode=[mode.name.lower() for mode in _MODES])
async def odd_shapes(dut: Any, mode: str) -> None:
    """Shapes that need padding at the right, at the bottom or at the end."""
    bench = await Bench(dut, f"odd_shapes/mode={mode}").start()
    chosen = Mode[mode.upper()]
    items = [
        exchange(bench.config, bench.rng, shape, chosen, bench.rng.choice(KINDS)) for shape in shapes(bench.rng, bench.full)
    ]
    await _Unit(bench).check(items)
    bench.report()


@cocotb.test
@cocotb.parametrize(kind=list(KINDS))
async def contents(dut: Any, kind: str) -> None:
    """Every kind of content in every mode."""
    bench = await Bench(dut, f"contents/kind={kind}").start()
    items = [exchange(bench.config, bench.rng, (1, 3, 8, 40), mode, kind) for mode in bench.config.built_modes]
    await _Unit(bench).check(items)
    bench.report()


@cocotb.test
async def reset_in_the_middle(dut: Any) -> None:
    """After a reset at any moment of any job the unit works as from the start."""
    bench = await Bench(dut, "reset_in_the_middle").start()
    for _ in range(3 if bench.full else 2):
        for mode in bench.config.built_modes:
            unit = _Unit(bench)
            unit.behave("coins")
            unit.send(_items(bench, mode, 1)[0])
            await bench.idle(bench.rng.randint(1, 150))
            await bench.reset(bench.rng.randint(1, 3))
            await _Unit(bench).check(_items(bench, bench.rng.choice(bench.config.built_modes), 1))
    bench.report()


@cocotb.test
@cocotb.parametrize(content=["noise", "dense", "zeros"])
async def rate(dut: Any, content: str) -> None:
    """Without stalls 8 values pass in every cycle, first beat to last, in every mode: a block every 8 cycles, no bubble."""
    bench = await Bench(dut, f"rate/content={content}").start()
    for mode in bench.config.built_modes:
        shape = (1, 1, 8, 8 * _RATE_BLOCKS)
        item = _rate_item(bench, shape, mode, content)
        if content == "dense" and mode.has_zvc:
            assert len(item.payload) == 72 * _RATE_BLOCKS, f"{mode.label}: the content is not incompressible"
        unit = _Unit(bench)
        beats = bench.sources["i"].transfers if _COMPRESSES else bench.sinks["o"].transfers
        packed = bench.sinks["o"].transfers if _COMPRESSES else bench.sources["i"].transfers
        beats.clear()
        packed.clear()
        await unit.check([item])
        cycles = beats[-1] - beats[0] + 1
        latency = packed[0] - beats[0] if _COMPRESSES else beats[0] - packed[0]
        bench.figures[mode.label] = f"{len(beats)} beats in {cycles} cycles, first result after {latency}"
        assert len(beats) == item.compression.beats
        assert cycles == len(beats), f"{mode.label}: {len(beats)} beats took {cycles} cycles"
    bench.report()


def _rate_item(bench: Bench, shape: tuple[int, ...], mode: Mode, content: str) -> Exchange:
    """A job whose ZVC blocks all have 72 bytes, or 8, or anything."""
    if content == "zeros":
        return exchange(bench.config, bench.rng, shape, mode, "zeros")
    if content == "noise" or not mode.in_tiles:
        return exchange(bench.config, bench.rng, shape, mode, "extremes" if content == "dense" else "normal")
    return _incompressible(bench, shape)


def _incompressible(bench: Bench, shape: tuple[int, ...]) -> Exchange:
    """A jpeg-act job with 64 non-zero coefficients in every block: the golden inverse of such coefficients."""
    from actcodec.codecs.job import DTYPES, beats_in, compression_job, decompression_job
    from actcodec.codecs.torch_backend import TorchBackend
    from actcodec.golden import dct, zvc
    from actcodec.golden.blocks import to_payload_order, untiled
    from cdu_spec.bitstream import Header, MatrixView

    config, view = bench.config, MatrixView.of(shape, Mode.JPEG_ACT)
    bits = (config.const_bits, config.pass1_bits)
    signs = torch.tensor([bench.rng.choice((-1, 1)) for _ in range(view.blocks * 64)], dtype=torch.int16)
    samples = dct.idct(8 * signs.view(-1, 8, 8), *bits)
    coefficients = dct.dct(samples, *bits).clamp(-128, 127).to(torch.int8)
    assert bool((coefficients != 0).all())
    payload = zvc.encode(to_payload_order(coefficients))
    x = untiled(samples, view).reshape(shape).to(DTYPES[config.dtype])
    ones, shifts = torch.ones(1), (0,) * 64
    job = compression_job(view, config.dtype, ones, shifts, *bits, config.rounding_mode)
    back = decompression_job(Header(Mode.JPEG_ACT, config.dtype, shape, payload.numel(), *bits), shifts, ones)
    golden, beats = TorchBackend(), beats_in(x, view)
    assert bytes(golden.compress(job, beats).tolist()) == bytes(payload.tolist())
    return Exchange("incompressible", job, back, beats, bytes(payload.tolist()), golden.decompress(back, payload))


@cocotb.test(skip=Mode.JPEG_ACT not in _MODES)
async def rate_of_widths(dut: Any) -> None:
    """The rate of jpeg-act holds for every width of 1 to 9 blocks, whole tiles or not."""
    bench = await Bench(dut, "rate_of_widths").start()
    for row_beats in range(1, 10):
        strips = 72 // row_beats
        item = exchange(bench.config, bench.rng, (1, 1, 8 * strips, 8 * row_beats), Mode.JPEG_ACT, "normal")
        beats = bench.sources["i"].transfers if _COMPRESSES else bench.sinks["o"].transfers
        beats.clear()
        await _Unit(bench).check([item])
        cycles = beats[-1] - beats[0] + 1
        bench.figures[f"{row_beats} blocks wide"] = f"{len(beats)} beats in {cycles} cycles"
        assert cycles == len(beats), f"{row_beats} blocks wide: {len(beats)} beats took {cycles} cycles"
    bench.report()


@cocotb.test(skip=not _COMPRESSES)
async def nonfinite_values(dut: Any) -> None:
    """Infinities saturate, NaN becomes zero, the flag rises in that job only."""
    bench = await Bench(dut, "nonfinite_values").start()
    driver = CompressorDriver(bench)
    for mode in bench.config.built_modes:
        for bad in (float("inf"), float("-inf"), float("nan"), None):
            item = exchange(bench.config, bench.rng, (1, 2, 8, 24), mode, "normal")
            beats = item.beats.clone()
            if bad is not None:
                beats[bench.rng.randrange(len(beats)), bench.rng.randrange(LANES)] = bad
            driver.send(item.compression, beats)
            payload = (await driver.collect())[0]
            from actcodec.codecs.torch_backend import TorchBackend

            assert payload == bytes(TorchBackend().compress(item.compression, beats).tolist()), f"{mode.label} with {bad}"
            assert driver.flag("nonfinite") == (bad is not None), f"{mode.label}: the flag is wrong for {bad}"
            bench.cases += 1
    bench.report()


@cocotb.test(skip=_COMPRESSES)
async def broken_payloads(dut: Any) -> None:
    """Payloads that end too early or too late raise their flag, give all beats, and leave the next job unharmed."""
    bench = await Bench(dut, "broken_payloads").start()
    driver = DecompressorDriver(bench)
    for mode in bench.config.built_modes:
        for round_number in range(12 if bench.full else 4):
            item = exchange(bench.config, bench.rng, (1, 2, 8, bench.rng.randint(8, 40)), mode, "normal")
            cut = bench.rng.randint(1, len(item.payload) - 1)
            extra = bench.rng.randbytes(bench.rng.choice((1, PACKED_BYTES, 50)))
            for payload, flags in (
                (item.payload[:cut], (1, 0)),
                (item.payload, (0, 0)),
                (item.payload + extra, (0, 1)),
                (item.payload, (0, 0)),
            ):
                driver.send(item.decompression, payload)
                beats = (await driver.collect())[0]
                driver.o.pattern = always()
                await bench.idle(12)
                seen = (driver.flag("truncated"), driver.flag("surplus"))
                assert seen == flags, f"{item.name}, round {round_number}: truncated, surplus = {seen}, not {flags}"
                if not flags[0]:
                    _compare_beats(item, beats)
                assert not driver.o.received, "more beats than the job has"
                bench.cases += 1
    bench.report()


@cocotb.test
async def cocotbext_axi_streams(dut: Any) -> None:
    """The same jobs through the stream ends of cocotbext-axi, which know nothing of this bench."""
    from cdu.manifest import pack
    from cocotb.clock import Clock
    from cocotb.triggers import ClockCycles, RisingEdge, with_timeout
    from cocotb.utils import get_sim_time
    from cocotbext.axi.stream import define_stream

    from cdu_verif.cases.payload import payload_words
    from cdu_verif.cases.sfpr import bit_patterns
    from cdu_verif.unit import descriptor, float_words

    _, transaction, source_type, sink_type, _ = define_stream("Words", signals=["payload", "valid", "ready"])
    bench = Bench(dut, "cocotbext_axi_streams")
    begin = get_sim_time("ns")
    Clock(dut.clk, CLOCK_NS, unit="ns").start()
    dut.rst.value = 1
    await ClockCycles(dut.clk, 3)
    dut.rst.value = 0
    await RisingEdge(dut.clk)

    def bus(name: str) -> Any:
        from cocotbext.axi.stream import StreamBus

        class Bus(StreamBus):  # type: ignore[misc]  # the package has no types
            _signals: tuple[str, ...] = ("payload", "valid", "ready")
            _optional_signals: tuple[str, ...] = ()

        return Bus(dut, name, bus_separator="__", case_insensitive=False)

    job, scales, i = (source_type(bus(name), dut.clk, dut.rst) for name in ("job", "scales", "i"))
    o = sink_type(bus("o"), dut.clk, dut.rst)
    o.set_pause_generator(bench.rng.random() < 0.3 for _ in iter(int, 1))
    for mode in bench.config.built_modes:
        item = _items(bench, mode, 1)[0]
        work = item.compression if _COMPRESSES else item.decompression
        await job.send(transaction(payload=pack(bench.ports["job__payload"], descriptor(work))))
        for scale in bit_patterns(work.scales).tolist() if mode.has_scales else ():
            await scales.send(transaction(payload=scale))
        packed = payload_words(bench.ports, "o" if _COMPRESSES else "i", item.payload)
        inputs = float_words(item.beats) if _COMPRESSES else packed
        expected = packed if _COMPRESSES else float_words(item.restored)
        for word in inputs:
            await i.send(transaction(payload=word))
        for index, wanted in enumerate(expected):
            got = int((await with_timeout(o.recv(), 20, "us")).payload)
            assert got == wanted, f"{item.name}: transfer {index} is {got:#x}, not {wanted:#x}"
        bench.cases += 1
    bench.cycle = round(get_sim_time("ns") - begin) // CLOCK_NS
    bench.report()
