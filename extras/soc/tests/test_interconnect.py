"""The interconnect under all its masters at once, each with stalls of its own, against plain lists of bytes."""

from random import Random

import pytest
from amaranth.sim import Simulator
from cdu_soc.interconnect import EXIT, REGISTERS, Interconnect
from cdu_soc.memory_access import WORD_BYTES

WORD_BITS = 6
SIZE = WORD_BYTES << WORD_BITS
#: Bytes that the engine and the processor change, and those that only instructions are read from.
ENGINE, PROCESSOR, PROGRAM = range(SIZE // 2), range(SIZE // 2, 3 * SIZE // 4), range(3 * SIZE // 4, SIZE)
OKAY, SLVERR = 0, 2
#: An address of a register whose accesses are refused.
REFUSED = 0x104


class System:
    """An interconnect in a simulation: memory and registers behind it, and masters that are written as functions."""

    def __init__(self, seed):
        self.dut, self.rng = Interconnect(WORD_BITS), Random(seed)
        self.memory = bytearray(self.rng.randbytes(SIZE))
        self.registers = {}
        self.simulator = Simulator(self.dut)
        self.simulator.add_clock(1e-8)
        self.simulator.add_process(self.ram)
        self.simulator.add_testbench(self.unit, background=True)

    def run(self, *masters):
        """All masters until they have ended."""
        for master in masters:
            self.simulator.add_testbench(master)
        self.simulator.run()

    async def ram(self, ctx):
        """Memory with one port."""
        dut = self.dut
        async for _, _, word, strobe, data in ctx.tick().sample(dut.ram_word, dut.ram_strobe, dut.ram_wdata):
            begin = word * WORD_BYTES
            ctx.set(dut.ram_rdata, int.from_bytes(self.memory[begin : begin + WORD_BYTES], "little"))
            for lane in range(WORD_BYTES):
                if strobe >> lane & 1:
                    self.memory[begin + lane] = data >> 8 * lane & 0xFF

    async def unit(self, ctx):
        """Registers behind AXI4-Lite; address and data of a write are taken in any order."""
        dut = self.dut
        while True:
            await self.pause(ctx)
            if ctx.get(dut.m_axil_arvalid):
                place = ctx.get(dut.m_axil_araddr)
                await self.pulse(ctx, dut.m_axil_arready)
                ctx.set(dut.m_axil_rdata, self.registers.get(place, 0))
                ctx.set(dut.m_axil_rresp, SLVERR if place == REFUSED else OKAY)
                await self.offer(ctx, dut.m_axil_rvalid, dut.m_axil_rready)
            elif ctx.get(dut.m_axil_awvalid):
                place, data = ctx.get(dut.m_axil_awaddr), ctx.get(dut.m_axil_wdata)
                taken = [dut.m_axil_awready, dut.m_axil_wready]
                for ready in self.rng.sample(taken, 2):
                    await self.pulse(ctx, ready)
                    await self.pause(ctx)
                assert not ctx.get(dut.m_axil_awvalid) | ctx.get(dut.m_axil_wvalid), "what was taken is offered again"
                self.registers[place] = data
                ctx.set(dut.m_axil_bresp, SLVERR if place == REFUSED else OKAY)
                await self.offer(ctx, dut.m_axil_bvalid, dut.m_axil_bready)

    async def pause(self, ctx):
        """A cycle or more."""
        for _ in range(self.rng.choice((1, 1, 1, 2, 7))):
            await ctx.tick()

    async def pulse(self, ctx, signal):
        """High for a cycle."""
        ctx.set(signal, 1)
        await ctx.tick()
        ctx.set(signal, 0)

    async def access(self, ctx, bus, place, value=None, select=0b1111):
        """An access of the processor: what is read and whether it was refused."""
        ctx.set(bus.adr, place >> 2)
        ctx.set(bus.we, value is not None)
        ctx.set(bus.dat_w, value or 0)
        ctx.set(bus.sel, select)
        ctx.set(bus.cyc, 1)
        ctx.set(bus.stb, 1)
        data, refused = await ctx.tick().sample(bus.dat_r, bus.err).until(bus.ack | bus.err)
        ctx.set(bus.cyc, 0)
        ctx.set(bus.stb, 0)
        return data, refused

    async def write(self, ctx, begin, words):
        """A burst of the engine, of words and the bytes of each that count; the answer."""
        dut, number = self.dut, self.rng.randrange(16)
        ctx.set(dut.s_axi_awaddr, begin)
        ctx.set(dut.s_axi_awlen, len(words) - 1)
        ctx.set(dut.s_axi_awid, number)
        await self.offer(ctx, dut.s_axi_awvalid, dut.s_axi_awready)
        for place, (data, strobe) in enumerate(words):
            await self.maybe(ctx)
            ctx.set(dut.s_axi_wdata, data)
            ctx.set(dut.s_axi_wstrb, strobe)
            ctx.set(dut.s_axi_wlast, place == len(words) - 1)
            await self.offer(ctx, dut.s_axi_wvalid, dut.s_axi_wready)
        await self.maybe(ctx)
        answer, found = await self.taken(ctx, "b", dut.s_axi_bresp, dut.s_axi_bid)
        assert found == number
        return answer

    async def read(self, ctx, begin, count):
        """A burst of the engine: words and answers."""
        dut, number = self.dut, self.rng.randrange(16)
        ctx.set(dut.s_axi_araddr, begin)
        ctx.set(dut.s_axi_arlen, count - 1)
        ctx.set(dut.s_axi_arid, number)
        await self.offer(ctx, dut.s_axi_arvalid, dut.s_axi_arready)
        words = []
        for place in range(count):
            await self.maybe(ctx)
            names = (dut.s_axi_rdata, dut.s_axi_rresp, dut.s_axi_rid, dut.s_axi_rlast)
            data, answer, found, last = await self.taken(ctx, "r", *names)
            assert (found, last) == (number, place == count - 1)
            words.append((data, answer))
        return words

    async def maybe(self, ctx):
        """Now and then a pause."""
        if self.rng.random() < 0.4:
            await self.pause(ctx)

    async def offer(self, ctx, valid, ready):
        """Offer something until it is taken."""
        ctx.set(valid, 1)
        await ctx.tick().until(ready)
        ctx.set(valid, 0)

    async def taken(self, ctx, channel, *values):
        """Signals of the next transfer of R or B."""
        valid, ready = (getattr(self.dut, f"s_axi_{channel}{name}") for name in ("valid", "ready"))
        ctx.set(ready, 1)
        found = await ctx.tick().sample(*values).until(valid)
        ctx.set(ready, 0)
        return found


@pytest.fixture(params=range(3))
def system(request):
    return System(request.param)


def _mixed(before, data, strobe):
    """A word of which some bytes were written."""
    return sum((data if strobe >> lane & 1 else before) & 0xFF << 8 * lane for lane in range(WORD_BYTES))


def test_all_masters_at_once_find_what_they_wrote(system):
    rng, start = system.rng, bytes(system.memory)
    ended = []

    async def engine(ctx):
        model = [int.from_bytes(start[place : place + WORD_BYTES], "little") for place in ENGINE[::WORD_BYTES]]
        for _ in range(60):
            count = rng.choice((1, 2, 5, 16))
            first = rng.randrange(len(model) - count + 1)
            if rng.random() < 0.5:
                words = [(rng.getrandbits(64), rng.choice((0xFF, 0x0F, 0x81, 0))) for _ in range(count)]
                assert await system.write(ctx, first * WORD_BYTES, words) == OKAY
                model[first : first + count] = [_mixed(model[first + place], *word) for place, word in enumerate(words)]
            else:
                found = await system.read(ctx, first * WORD_BYTES, count)
                assert found == [(word, OKAY) for word in model[first : first + count]]
        ended.append("engine")

    async def data(ctx):
        model = dict(enumerate(start))
        for _ in range(150):
            await system.maybe(ctx)
            place = rng.choice(PROCESSOR[::4])
            select, value = rng.choice((0b1111, 0b0011, 0b1100, 0b0100)), rng.getrandbits(32)
            if rng.random() < 0.5:
                assert (await system.access(ctx, system.dut.dbus, place, value, select))[1] == 0
                model |= {place + lane: value >> 8 * lane & 0xFF for lane in range(4) if select >> lane & 1}
            else:
                found = (await system.access(ctx, system.dut.dbus, place))[0].to_bytes(4, "little")
                assert list(found) == [model[place + lane] for lane in range(4)]
        ended.append("data")

    async def instructions(ctx):
        for _ in range(200):
            place = rng.choice(PROGRAM[::4])
            assert (await system.access(ctx, system.dut.ibus, place))[0].to_bytes(4, "little") == start[place : place + 4]
        ended.append("instructions")

    system.run(engine, data, instructions)
    assert sorted(ended) == ["data", "engine", "instructions"]


def test_what_lies_behind_memory_is_refused(system):
    before, far = bytes(system.memory), (1 << 39) + 8

    async def engine(ctx):
        for place in (SIZE, far):
            assert await system.write(ctx, place, [(0, 0xFF)] * 3) == SLVERR
            assert [answer for _, answer in await system.read(ctx, place, 3)] == [SLVERR] * 3
        # A burst that begins in memory and ends behind it
        assert await system.write(ctx, SIZE - WORD_BYTES, [(7, 0xFF), (8, 0xFF)]) == SLVERR
        assert await system.read(ctx, SIZE - WORD_BYTES, 1) == [(7, OKAY)]
        assert await system.read(ctx, 0, 1) == [(int.from_bytes(before[:WORD_BYTES], "little"), OKAY)]

    system.run(engine)
    assert bytes(system.memory[:-WORD_BYTES]) == before[:-WORD_BYTES]


def test_registers_and_the_end(system):
    seen, dut = [], system.dut

    async def processor(ctx):
        for place in (0xC00, 0x004, 0xFFC):
            assert (await system.access(ctx, dut.dbus, REGISTERS + place, 0x1234_0000 + place))[1] == 0
            assert system.registers[place] == 0x1234_0000 + place
            assert await system.access(ctx, dut.dbus, REGISTERS + place) == (0x1234_0000 + place, 0)
        assert (await system.access(ctx, dut.dbus, REGISTERS + REFUSED, 5))[1] == 1
        assert (await system.access(ctx, dut.dbus, REGISTERS + REFUSED))[1] == 1
        await system.access(ctx, dut.dbus, EXIT, 77)

    async def watch(ctx):
        async for _, _, ends, code in ctx.tick().sample(dut.exit, dut.exit_code):
            seen.extend([code] if ends else [])

    before = bytes(system.memory)
    system.simulator.add_process(watch)
    system.run(processor)
    assert seen == [77]
    assert bytes(system.memory) == before
