"""Cycles of an access of a DMA engine to the unit's registers, and of a START, which the performance model adds up."""

import pytest
from amaranth.hdl import Module
from amaranth.lib.wiring import In
from amaranth.sim import Simulator
from cdu.bus import axi_lite
from cdu.control.control import Control
from cdu.dma import register_bridge
from cdu.dma.register_bridge import RegisterBridge
from cdu_spec import CduConfig, latencies
from cdu_spec.modes import Mode
from cdu_spec.ports import REGISTER_PORT
from cdu_spec.register_types import REGISTER_BYTES, Channel
from cdu_spec.registers import address, register


@pytest.mark.parametrize("mode", [Mode.SFPR, Mode.JPEG_ACT])
def test_an_access_takes_its_cycles_and_a_start_those_of_its_check_more(mode):
    m = Module()
    m.submodules.bridge = bridge = RegisterBridge(1)
    m.submodules.control = control = Control(CduConfig())
    for (name, member), outer in zip(
        axi_lite.members(REGISTER_PORT).items(), axi_lite.members(register_bridge.PREFIX), strict=True
    ):
        inner, other = getattr(control, name), getattr(bridge, outer)
        m.d.comb += inner.eq(other) if member.flow is In else other.eq(inner)
    took = {}

    async def bench(context):
        access = bridge.access[0]
        context.set(control.compress.room, 1)
        start = register("CONTROL").pack(start=1)
        writes = {"MODE": int(mode), "BEATS": 8, "ROW_BEATS": 1, "CHANNEL_ROWS": 8, "CONTROL": start, "ERRORS": None}
        for name, value in writes.items():
            context.set(access.active, 1)
            context.set(access.whole, 1)
            context.set(access.word, address(name, Channel.COMPRESS) // REGISTER_BYTES)
            context.set(access.write, value is not None)
            context.set(access.data, value or 0)
            took[name] = 1
            while not context.get(access.done):
                await context.tick()
                took[name] += 1
            await context.tick()

    simulator = Simulator(m)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()
    assert took.pop("CONTROL") == latencies.REGISTER_ACCESS + latencies.job_check(mode)
    assert set(took.values()) == {latencies.REGISTER_ACCESS}
