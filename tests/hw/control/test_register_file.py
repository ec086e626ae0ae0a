"""Registers made from their table: what a write does, and when it is refused."""

import random

import pytest
from amaranth.sim import Simulator
from cdu.control.register_file import RegisterFile
from cdu_spec.channel_block import CHANNEL
from cdu_spec.dma import DMA_CHANNEL, RING_REGISTERS
from cdu_spec.register_types import Access, Channel
from cdu_verif.stimulus.register_values import refused, taken

ALL = (1 << 32) - 1
TABLES = {
    "unit": [entry for entry in CHANNEL if Channel.COMPRESS in entry.channels],
    "engine": list(DMA_CHANNEL),
}


def signs(entry, rng):
    """Negative numbers with their sign repeated up to the top, and one whose sign is broken."""
    parts = [part for part in entry.fields if part.signed]
    return [ALL ^ rng.getrandbits(part.width - 1) for part in parts] + [ALL ^ (1 << part.width - 1) for part in parts]


@pytest.mark.parametrize("table", TABLES)
def test_registers_take_what_their_table_says(table):
    registers, rng = TABLES[table], random.Random(table)
    dut = RegisterFile(registers, guarded=RING_REGISTERS if table == "engine" else ())
    written = [entry for entry in registers if entry.access is Access.RW]

    async def access(ctx, place, value=None):
        ctx.set(dut.block.word, place // 4)
        ctx.set(dut.block.data, value or 0)
        await ctx.tick()
        strobe = dut.block.read if value is None else dut.block.write
        ctx.set(strobe, 1)
        await ctx.tick()
        ctx.set(strobe, 0)
        return ctx.get(dut.block.error), ctx.get(dut.block.read_data)

    async def bench(ctx):
        await ctx.tick()
        for entry in written:
            fields, held = sum(part.mask for part in entry.fields), entry.reset
            values = [taken(entry, rng) for _ in range(20)] + refused(entry, rng) + signs(entry, rng)
            for value in rng.sample(values, len(values)):
                error, _ = await access(ctx, entry.offset, value)
                assert bool(error) is not entry.takes(value), f"{entry.name}: {value:#x}"
                held = held if error else value & fields
                assert await access(ctx, entry.offset) == (0, held), f"{entry.name} after {value:#x}"
            if table == "engine":
                ctx.set(dut.guard, 1)
                error, _ = await access(ctx, entry.offset, taken(entry, rng) & fields)
                assert bool(error) is (entry.name in RING_REGISTERS), entry.name
                ctx.set(dut.guard, 0)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert any(refused(entry, rng) for entry in written)
