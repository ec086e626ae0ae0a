"""Encoder and decoder of mode mx, at every number of rows per cycle: golden bytes and values, with stalls."""

from random import Random

import pytest
import torch
from actcodec.backends.job import DTYPES
from actcodec.golden import mx
from actcodec.golden.formats import as_dtype
from amaranth.sim import Simulator
from cdu.unit.mx_blocks import MxPacker, MxUnpacker
from cdu_spec import CduConfig
from cdu_spec.modes import Mode
from cdu_spec.mx import MX_FORMATS, ScaleRule
from cdu_verif.content.payloads import bit_patterns

MODES = ("sfpr", "mx")
CONFIGS = [
    CduConfig(modes=MODES),
    CduConfig(modes=MODES, value_port_bits=1024),
    CduConfig(modes=MODES, cdus=2, value_format="bf16"),
    CduConfig(modes=MODES, cdus=4, value_format="fp16"),
    CduConfig(modes=MODES, cdus=8),
]


def _moved(component, sent):
    """Return the payloads that come out of a component for those that go in, both as dictionaries of fields."""
    rng, got = Random(1), []

    async def feed(ctx):
        for fields in sent:
            while rng.random() < 0.3:
                await ctx.tick()
            ctx.set(component.i.payload, fields)
            ctx.set(component.i.valid, 1)
            await ctx.tick().until(component.i.ready)
            ctx.set(component.i.valid, 0)

    async def take(ctx):
        quiet = 0
        while quiet < 60:
            ctx.set(component.o.ready, rng.random() < 0.7)
            taken = ctx.get(component.o.valid) and ctx.get(component.o.ready)
            word = ctx.get(component.o.payload) if taken else None
            quiet = 0 if taken else quiet + 1
            if taken:
                got.append(word)
            await ctx.tick()

    simulator = Simulator(component)
    simulator.add_clock(1e-9)
    simulator.add_testbench(feed, background=True)
    simulator.add_testbench(take)
    simulator.run()
    return got


def _jobs(config):
    """Return for every format and rule values (n, 32) of a job of the configuration's number format, whole blocks."""
    random = torch.Generator().manual_seed(4)
    for number, (name, rule) in enumerate((name, rule) for name in MX_FORMATS for rule in ScaleRule):
        blocks = 1 + number % 5
        x = torch.randn(blocks, 32, generator=random) * torch.exp2(torch.randint(-9, 9, (blocks, 1), generator=random).float())
        yield MX_FORMATS[name], rule, x.to(DTYPES[config.dtype])


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: f"{config.cdus}-{config.port_beats}-{config.value_format}")
def test_bytes_and_values(config):
    words, slices, payloads, values = [], [], [], []
    for kind, rule, x in _jobs(config):
        patterns = bit_patterns(x).view(-1, 8)
        for begin in range(0, len(patterns), config.port_beats):
            part = patterns[begin : begin + config.port_beats]
            rows = torch.nn.functional.pad(part, (0, 0, 0, config.port_beats - len(part))).tolist()
            last = begin + config.port_beats >= len(patterns)
            how = {"format": kind.number, "rceil": rule is ScaleRule.RCEIL}
            words.append({"values": rows, "count": len(part), "last": last, "scaling": how})
        coded = mx.encode(x.float(), kind, rule)
        payloads.append(bytes(coded.flatten().tolist()))
        values.append(as_dtype(mx.decode(coded, kind).view(-1, 8), x.dtype))
    found, payload = [], b""
    for word in _moved(MxPacker(config), words):
        assert word.ends
        data = int(word.data).to_bytes(config.slice_bytes, "little")
        assert not any(data[word.count :])
        payload += data[: word.count]
        slices.append(word)
        if word.tag.last:
            found.append(payload)
            payload = b""
    assert found == payloads

    sent, rows = [], 0
    kinds = iter([kind for kind, _, _ in _jobs(config)])
    kind = next(kinds)
    for word in slices:
        count = (
            (int(word.count) - int(rows % 4 == 0)) // kind.bits
            if config.mx_rows < 8
            else 8
            if word.count > kind.block_bytes
            else 4
        )
        tag = {
            "mode": Mode.MX,
            "last": word.tag.last,
            "heads": rows % 4 == 0,
            "how": {"mx": {"format": kind.number, "rceil": 0}},
        }
        sent.append({"data": word.data, "count": word.count, "ends": 1, "rows": count, "tag": tag})
        rows += count
        if word.tag.last:
            rows, kind = 0, next(kinds, kind)
    back, beats = [], []
    for word in _moved(MxUnpacker(config), sent):
        bits = config.dtype.bits
        flat = [int(value) & ((1 << bits) - 1) for row in word["values"] for value in row]
        assert not any(flat[8 * word["count"] :])
        beats += flat[: 8 * word["count"]]
        if word["last"]:
            back.append(torch.tensor(beats).view(-1, 8))
            beats = []
    assert len(back) == len(values)
    for patterns, expected in zip(back, values, strict=True):
        assert torch.equal(patterns, bit_patterns(expected))
