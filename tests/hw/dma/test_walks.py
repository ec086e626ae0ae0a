"""Walks of the DMA engine: counts as in the bitstream, segments in the order of the golden model."""

import math
from random import Random

import pytest
import torch
from actcodec.backends.job import beats_in
from amaranth.sim import Simulator
from cdu.dma.job_planner import JobPlanner
from cdu.dma.records import KINDS
from cdu.dma.scale_walk import ScaleWalk
from cdu.dma.tensor_walk import TensorWalk
from cdu_spec.config import CduConfig
from cdu_spec.dma import Descriptor, row_major_strides, tensor_extents
from cdu_spec.geometry import LANES
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Mode
from cdu_spec.register_types import Channel

MODES = tuple(mode.label for mode in Mode)
CONFIG = CduConfig(modes=MODES)
SHAPES = [(1, 1, 1, 1), (2, 3, 7, 9), (1, 1, 8, 32), (1, 3, 1, 70), (3, 2, 7, 33), (1, 20, 2, 8), (2, 1, 16, 64), (1, 5, 9, 3)]


def run(component, bench):
    simulator = Simulator(component)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()


def described(shape, mode, **changed):
    extents = tensor_extents(shape, mode)
    named = dict(zip("nchw", extents, strict=True)) | row_major_strides(extents, CONFIG.dtype.bits // 8)
    fixed = {"value_format": CONFIG.dtype, "tensor": 0, "payload": 1 << 20, "payload_bytes": 1 << 20, "completion": 64}
    return Descriptor(mode=mode, **(named | fixed | changed))


def planned(descriptors, channel=Channel.COMPRESS, config=CONFIG):
    """Return counts and errors of descriptors, and the cycles that they took."""
    planner, found = JobPlanner(config, channel), []

    async def bench(ctx):
        ctx.set(planner.o.ready, 1)
        for descriptor in descriptors:
            ctx.set(planner.i.payload.descriptor.as_value(), int.from_bytes(descriptor.pack(), "little"))
            ctx.set(planner.i.valid, 1)
            cycles = 0
            while not ctx.get(planner.o.valid):
                await ctx.tick()
                cycles += 1
                assert cycles < 200
            counts, errors = ctx.get(planner.o.payload.counts), ctx.get(planner.o.payload.errors)
            names = {name for name in errors.shape().members if errors[name]}
            found.append(({name: counts[name] for name in counts.shape().members}, names))
            await ctx.tick()

    run(planner, bench)
    return found


@pytest.mark.parametrize("mode", Mode)
def test_counts_are_those_of_the_bitstream(mode):
    descriptors = [described(shape, mode) for shape in SHAPES]
    for shape, (counts, errors) in zip(SHAPES, planned(descriptors), strict=True):
        view = MatrixView.of(shape, mode)
        assert not errors
        assert (counts["beats"], counts["row_beats"], counts["channel_rows"]) == (view.beats, view.row_beats, view.channel_rows)
        if mode.has_scales:
            assert counts["groups"] == view.scale_groups
            assert counts["extra"] == max(0, view.scale_groups - max(view.rows // view.channel_rows, 1))


def test_what_is_wrong_is_found():
    good = described((2, 3, 8, 16), Mode.JPEG_ACT)
    change = lambda **values: described((2, 3, 8, 16), Mode.JPEG_ACT, **values)  # noqa: E731
    wrong = {
        "bad_mode": [change(coder=1), change(point=1), change(quantizer=1), change(mx_coding=1)],
        "bad_shape": [change(n=0), change(w=0), change(c=1 << 31), change(n=1 << 20, c=1 << 20), change(n=1 << 24)],
        "bad_address": [change(tensor=1 << 40), change(payload=1 << 63), change(scales=1 << 41)],
    }
    wrong["bad_mode"] += [Descriptor(**{**vars(good), "mode": mode}) for mode in (0, 12, 255)]
    without = CONFIG.override(modes=tuple(mode.label for mode in Mode if mode is not Mode.DIVISION))
    assert planned([described((2, 3, 8, 16), Mode.DIVISION)], config=without)[0][1] == {"bad_mode"}
    wrong["bad_mode"] += [described((2, 3, 8, 16), mode, quantizer=1 << 11) for mode in (Mode.AUTOQUANT, Mode.SFPR)]
    wrong["bad_mode"] += [described((2, 3, 8, 16), mode, mx_coding=0x80) for mode in (Mode.MX, Mode.BRC)]
    wrong["bad_mode"].append(Descriptor(**{**vars(good), "value_format": 1}))
    for name, descriptors in wrong.items():
        for counts_and_errors in planned([one for each in descriptors for one in (each, good)])[::2]:
            assert counts_and_errors[1] == {name}
    assert planned([change(payload_bytes=0)], Channel.DECOMPRESS)[0][1] == {"bad_length"}
    assert planned([change(payload_bytes=0)])[0][1] == set()
    unscaled = described((4, 4), Mode.BRC, scales=1 << 50)
    assert planned([unscaled])[0][1] == set()


def test_a_later_product_that_is_too_large_is_found():
    """The extents fit and the maps fit, but the matrix does not."""
    assert planned([described((1, 1, 1, 1), Mode.SFPR, n=1 << 10, c=1 << 10, h=1 << 5, w=1 << 5)])[0][1] == {"bad_shape"}
    assert planned([described((1, 1, 1, 1), Mode.BRC, w=(1 << 29) - 7)])[0][1] == {"bad_shape"}
    assert planned([described((1, 1, 1, 1), Mode.BRC, w=(1 << 29) - 8)])[0][1] == set()


def segments(config, descriptor, channel=Channel.COMPRESS):
    """Return the segments of a tensor."""
    ((counts, errors),) = planned([descriptor], config=config)
    assert not errors
    walk, found = TensorWalk(config, channel), []

    async def bench(ctx):
        rng = Random(1)
        job, mode = walk.job.payload, Mode(descriptor.mode)
        for name in ("tensor", "stride_n", "stride_c", "stride_h", "c", "h", "w"):
            ctx.set(job[name], getattr(descriptor, name))
        for name, value in counts.items():
            ctx.set(job.counts[name], value)
        for name in ("in_tiles", "flat", "repeats"):
            ctx.set(job[name], KINDS[name](mode))
        ctx.set(walk.job.valid, 1)
        while True:
            ctx.set(walk.o.ready, rng.random() < 0.7)
            if ctx.get(walk.o.valid) and ctx.get(walk.o.ready):
                word = ctx.get(walk.o.payload)
                found.append((word.address, word.bytes, word.pad, word.repeats, word.last))
                if word.last:
                    assert ctx.get(walk.job.ready)
                    break
            await ctx.tick()

    run(walk, bench)
    return found


def numbers_of(found, value_bytes):
    """Return the numbers of the values that segments name, from 1 on; padding as the reader makes it."""
    numbers, last = [], 0
    for address, size, pad, repeats, _ in found:
        numbers += [1 + address // value_bytes + place for place in range(size // value_bytes)]
        last = numbers[-1] if size else last
        numbers += [last if repeats else 0] * (pad // value_bytes)
    return numbers


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("value_format", ["fp32", "bf16"])
def test_segments_are_the_beats_of_the_golden_model(mode, shape, value_format):
    """Every value is its own number: the golden model's values with padding are those that the segments name."""
    config = CduConfig(value_format=value_format, modes=MODES)
    value_bytes = config.dtype.bits // 8
    extents = tensor_extents(shape, mode)
    descriptor = described(shape, mode, value_format=config.dtype, **row_major_strides(extents, value_bytes))
    found = segments(config, descriptor)
    assert [last for *_, last in found] == [0] * (len(found) - 1) + [1]
    x = torch.arange(1, math.prod(shape) + 1, dtype=torch.float32).view(shape)
    assert numbers_of(found, value_bytes) == beats_in(x, MatrixView.of(shape, mode)).flatten().long().tolist()


@pytest.mark.parametrize("mode", [mode for mode in Mode if mode.has_ranges])
@pytest.mark.parametrize("shape", SHAPES)
def test_values_come_back_without_what_was_repeated(mode, shape):
    """Padding of a payload that is decompressed is not written to memory."""
    found = segments(CONFIG, described(shape, mode), Channel.DECOMPRESS)
    assert sum(size for _, size, *_ in found) == 4 * math.prod(shape)
    assert sum(size + pad for _, size, pad, *_ in found) == 4 * LANES * MatrixView.of(shape, mode).beats


@pytest.mark.parametrize("mode", [Mode.JPEG_ACT, Mode.SFPR_ZVC, Mode.BYPASS, Mode.DIVISION, Mode.ACTNN])
def test_strides_lead_to_any_layout(mode):
    """A part of a larger tensor, with its samples in reverse order, has the order of a copy."""
    whole = torch.arange(1, 1 + 4 * 5 * 12 * 40, dtype=torch.float32).view(4, 5, 12, 40)
    part = whole[1:3, 1:4, 2:11, 3:33].flip(0)
    begin = int(part[0, 0, 0, 0]) - 1
    strides = {"stride_n": -5 * 12 * 40 * 4, "stride_c": 12 * 40 * 4, "stride_h": 40 * 4}
    n, c, h, w = part.shape
    changed = {"n": n, "c": c, "h": h, "w": w, "tensor": 4 * begin, **strides}
    found = segments(CONFIG, described((1, 1, 1, 1), mode, **changed))
    assert numbers_of(found, 4) == beats_in(part.contiguous(), MatrixView.of(part.shape, mode)).flatten().long().tolist()


def scales_of(**job):
    """Return the offsets of the bytes that a walk over scales names, from the first one on."""
    walk, found = ScaleWalk(CONFIG), []

    async def bench(ctx):
        for name, value in ({"address": 1000} | job).items():
            ctx.set(walk.job.payload[name], value)
        ctx.set(walk.job.valid, 1)
        ctx.set(walk.o.ready, 1)
        while not found or not found[-1][2]:
            if ctx.get(walk.o.valid):
                word = ctx.get(walk.o.payload)
                found.append((word.address, word.bytes, word.last))
            await ctx.tick()

    run(walk, bench)
    assert all(size for _, size, _ in found), "an empty segment, which would be an empty last word of the scales"
    return [place for address, size, _ in found for place in range(address - 1000, address - 1000 + size)]


def bytes_of(numbers, size):
    """Return the offsets of the bytes of scales with some numbers."""
    return [size * number + place for number in numbers for place in range(size)]


@pytest.mark.parametrize(("channels", "groups"), [(1, 1), (3, 6), (3, 7), (1, 8), (20, 21)])
@pytest.mark.parametrize("wide", [0, 1])
def test_scales_come_for_every_sample(channels, groups, wide):
    found = scales_of(channels=channels, groups=groups, wide=wide)
    assert found == bytes_of([group % channels for group in range(groups)], 8 if wide else 4)


@pytest.mark.parametrize(("channels", "groups", "extra"), [(1, 1, 0), (3, 6, 0), (3, 7, 1), (5, 12, 2), (1, 8, 7), (2, 9, 7)])
def test_the_last_scale_goes_with_values_that_are_repeated(channels, groups, extra):
    found = scales_of(channels=channels, groups=groups, extra=extra, repeats=1)
    assert found == bytes_of([group % channels for group in range(groups - extra)] + [channels - 1] * extra, 4)
