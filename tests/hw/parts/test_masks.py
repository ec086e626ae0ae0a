"""Masks of bytes: which bits they have, and that they are not computed anew for each bit of a word."""

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Cat, Module, Signal
from amaranth.sim import Simulator
from cdu.parts.barrel import wrapped
from cdu.parts.width_converter import expand, ones

SIZE = 16


@pytest.mark.parametrize(("mask_of", "most"), [(ones, SIZE), (wrapped, SIZE - 1)])
def test_the_lowest_places_are_set(mask_of, most):
    count, mask = Signal(range(SIZE + 1)), Signal(SIZE)
    m = Module()
    m.d.comb += mask.eq(Cat(*mask_of(count, SIZE)))

    async def bench(ctx):
        for number in range(most + 1):
            ctx.set(count, number)
            await ctx.delay(1e-9)
            assert ctx.get(mask) == (1 << number) - 1, number

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("size", [16, 64])
def test_a_word_has_as_many_comparisons_as_bits(size):
    """Amaranth computes an expression anew for each slice of it: of a whole mask that would be for each pair of bits."""
    count, word, masked = Signal(range(size + 1)), Signal(8 * size), Signal(8 * size)
    m = Module()
    m.d.comb += masked.eq(word & expand(ones(count, size)))
    text = rtlil.convert(m, ports=[count, word, masked], emit_src=False)
    assert text.count("cell $gt ") == 8 * size
