"""Tests of scales and block heads of any bit pattern at a unit's ports: those that documents allow, and all others."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from random import Random
from struct import pack, unpack

import torch
from actcodec.backends.job import Job
from actcodec.backends.torch_backend import TorchBackend
from cdu_spec.affine import AffineSettings
from cdu_spec.coding import known
from cdu_spec.modes import Mode
from cdu_spec.register_types import Channel, ScaleSource

from cdu_verif.benches.armed import ArmedBench, expect, golden, good, prepare, small_item, write_scales
from cdu_verif.benches.array_bench import input_of, job_of
from cdu_verif.content.payloads import bit_patterns, float_bytes
from cdu_verif.content.tensors import Exchange
from cdu_verif.simulation import cover_points
from cdu_verif.simulation.bench import simulated_config
from cdu_verif.simulation.bench_test import bench_test

_CONFIG = simulated_config()
_MODES = _CONFIG.built_modes
_SCALED = [mode for mode in _MODES if mode.has_scales]
_RANGED = [mode for mode in _MODES if mode.has_ranges]
_CHANNELS = [channel.value for channel in Channel]
#: Patterns of float32 around every limit: zeros, subnormals, 2**-120, 2**-111, 1, 2**111, 2**120, the largest, infinity, NaN.
_SPECIAL = [0x00000000, 0x00000001, 0x007FFFFF, 0x3F800000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000, 0x7FFFFFFF]
_SPECIAL += [((exponent + 127) << 23) + step for exponent, step in product((-120, -111, 111, 120), (-1, 0, 1))]
_SPECIAL += [pattern | 1 << 31 for pattern in _SPECIAL]


@bench_test(
    ArmedBench,
    skip=not _SCALED,
    direction=_CHANNELS,
    source=[source.name.lower() for source in (ScaleSource.PORT, ScaleSource.REGISTERS)],
)
async def scales_of_any_bits(bench: ArmedBench, direction: str, source: str) -> None:
    """Scales of any bit pattern: positive numbers in the mode's range are used, others replaced by 1.0 with an error."""
    channel, chosen = Channel(direction), ScaleSource[source.upper()]
    special = iter(bench.rng.sample(_SPECIAL, len(_SPECIAL)))
    for number in range(3 * len(_SPECIAL) if bench.full else len(_SPECIAL) // 2):
        item = small_item(bench, _SCALED[number % len(_SCALED)], 8)
        job = job_of(channel, item)
        patterns = bit_patterns(job.scales).tolist()
        for place in range(len(patterns)):
            if bench.rng.random() < 0.6:
                patterns[place] = next(special, None) or bench.rng.getrandbits(32)
        if bench.rng.random() < 0.7:  # no more significant bits than the unit uses
            patterns = [pattern >> _lost(channel) << _lost(channel) for pattern in patterns]
        await prepare(bench, channel, job, source=chosen)
        bench.i[channel].send(input_of(channel, item))
        if chosen is ScaleSource.PORT:
            packet = bytearray(bench.scale_packet(job))
            for place, pattern in enumerate(patterns):
                begin = bench.scales[channel].size * place
                packet[begin : begin + 4] = pack("<I", pattern)
            bench.scales[channel].send(bytes(packet))
        else:
            await write_scales(bench, channel, patterns, job.offsets.tolist())
        allowed = [_is_scale(pattern, channel, job.mode) for pattern in patterns]
        used = [pattern if right else 0x3F800000 for pattern, right in zip(patterns, allowed, strict=True)]
        scales = torch.tensor([unpack("<f", pack("<I", pattern))[0] for pattern in used], dtype=torch.float32)
        _check_rescaled(channel, item, replace(job, scales=scales), await bench.result(channel, job))
        await bench.idle(20)
        for was_allowed in set(allowed):
            bench.cover("cp_scale", cover_points.scale(channel, was_allowed))
        if all(allowed):
            assert not await bench.errors(channel), f"{[hex(pattern) for pattern in patterns]} are scales of {job.mode.label}"
            bench.cases += 1
        else:
            await expect(bench, channel, "bad_scale")
        await good(bench, channel)


def _is_scale(pattern: int, channel: Channel, mode: Mode) -> bool:
    """Return whether a pattern is allowed (bitstream.md, "Reciprocals" and "Affine modes"; registers.md, NUMBERS)."""
    (value,) = unpack("<f", pack("<I", pattern))
    least = 2.0**-111 if mode.is_affine and channel is Channel.COMPRESS else 2.0**-120
    most = 2.0**111 if mode.is_affine and channel is Channel.DECOMPRESS else 2.0**120
    return bool(least <= value <= most) and not pattern & ((1 << _lost(channel)) - 1)


def _lost(channel: Channel) -> int:
    """Return the number of a float32's significand bits that the unit does not multiply with."""
    return 24 - (_CONFIG.scale_bits if channel is Channel.COMPRESS else _CONFIG.used_reciprocal_bits)


def _check_rescaled(channel: Channel, item: Exchange, job: Job, result: bytes) -> None:
    """Check that the result is that of the job with its new scales."""
    if channel is Channel.COMPRESS:
        assert result == golden(job, item.beats), f"{item.name}: not the payload for these scales"
    else:
        payload = torch.frombuffer(bytearray(item.payload), dtype=torch.uint8)
        expected = float_bytes(TorchBackend().decompress(job, payload))
        assert result == expected, f"{item.name}: not the values for these scales"


@bench_test(ArmedBench, skip=not _RANGED)
async def heads_of_any_bits(bench: ArmedBench) -> None:
    """Block heads of any bits: valid ranges are decoded, invalid ones raise an error; the next job is right."""
    channel = Channel.DECOMPRESS
    for _ in range(80 if bench.full else 16):
        item = small_item(bench, bench.rng.choice(_RANGED), bench.rng.choice((8, 24, 40)))
        job = job_of(channel, item)
        settings = known(job.how, AffineSettings)
        if job.mode is Mode.DIVISION and not settings.block_range:
            continue
        payload, size = bytearray(item.payload), 4 + 8 * settings.bits * (4 if job.mode is Mode.ACTNN else 1)
        allowed = []
        for begin in range(0, len(payload), size):
            if bench.rng.random() < 0.4:
                payload[begin : begin + 4] = pack("<hBB", *_head(bench.rng, settings.levels))
            low, mantissa, exponent = unpack("<hBB", payload[begin : begin + 4])
            allowed.append(mantissa > 0 and exponent <= 9 and low + settings.levels * (mantissa << exponent) <= 65535)
        await prepare(bench, channel, job, payload_bytes=len(payload))
        bench.feed(channel, item, bytes(payload))
        result = await bench.result(channel, job)
        await bench.idle(20)
        for was_allowed in set(allowed):
            bench.cover("cp_head", cover_points.head(was_allowed))
        if all(allowed):
            assert not await bench.errors(channel), f"the heads of {bytes(payload).hex()} are ranges"
            expected = float_bytes(TorchBackend().decompress(job, torch.frombuffer(payload, dtype=torch.uint8)))
            assert result == expected, f"{item.name}: not the values of these heads"
            bench.cases += 1
        else:
            assert len(result) == len(float_bytes(item.restored)), f"{item.name}: {len(result)} bytes of values"
            await expect(bench, channel, "bad_head")
        await good(bench, channel)


def _head(rng: Random, levels: int) -> tuple[int, int, int]:
    """Return Z, m and e: random bits, the very limit of the allowed values, or one beyond it."""
    mantissa, exponent = (
        rng.choice((0, 1, 128, 255, rng.randint(0, 255))),
        rng.choice((0, 9, 10, 15, 16, 25, 255, rng.randint(0, 9))),
    )
    at_limit = 65535 - levels * (mantissa << min(exponent, 9)) + rng.choice((0, 1))
    low = at_limit if -32768 <= at_limit <= 32767 and rng.random() < 0.7 else rng.randint(-32768, 32767)
    return low, mantissa, exponent
