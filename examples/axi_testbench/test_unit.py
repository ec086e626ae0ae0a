"""Jobs at the ports of a delivered unit, tested with its Verilog, its NAME.json and its manual only.

$CDU_MANIFEST is NAME.json, which describes the registers and their fields. $CDU_JOB is a job with the expected bytes.
run.py makes both and starts this test; copy the two functions `start` and `finish` into a bench of your own.
"""

from __future__ import annotations

import json
import os
from itertools import cycle
from pathlib import Path
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge, with_timeout
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp, AxiStreamBus, AxiStreamSink, AxiStreamSource

MANIFEST = json.loads(Path(os.environ["CDU_MANIFEST"]).read_text(encoding="utf-8"))
JOB = json.loads(Path(os.environ["CDU_JOB"]).read_text(encoding="utf-8"))
REGISTERS = {(entry["block"], entry["name"]): entry for entry in MANIFEST["registers"]}
#: Ports of values or payload in, of scales, and out, by direction.
PORTS = {
    "compress": ("s_axis", "s_axis_scale", "m_axis"),
    "decompress": ("s_axis_packed", "s_axis_reciprocal", "m_axis_values"),
}
SCALES_FROM_PORT = 1  # MODE.scales


class Unit:
    """The unit with a master at its registers, sources and sinks at its streams."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.bus = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk, dut.rst)
        self.sources, self.sinks = {}, {}
        for data, scales, out in PORTS.values():
            for name in (data, scales):
                self.sources[name] = AxiStreamSource(AxiStreamBus.from_prefix(dut, name), dut.clk, dut.rst)
            self.sinks[out] = AxiStreamSink(AxiStreamBus.from_prefix(dut, out), dut.clk, dut.rst)

    async def reset(self) -> None:
        """Start the clock and hold the reset for some cycles."""
        Clock(self.dut.clk, 10, "ns").start()
        self.dut.rst.value = 1
        await ClockCycles(self.dut.clk, 4)
        self.dut.rst.value = 0
        await ClockCycles(self.dut.clk, 2)

    async def write(self, block: str, name: str, *numbers: int, **fields: int) -> None:
        """Write a register: one number, or its fields by name."""
        entry = REGISTERS[block, name]
        places = {field["name"]: field["offset"] for field in entry["fields"]}
        value = sum(numbers) + sum(number << places[field] for field, number in fields.items())
        await self.bus.write_dword(entry["address"], value)

    async def read(self, block: str, name: str) -> int:
        """The value of a register."""
        return int(await self.bus.read_dword(REGISTERS[block, name]["address"]))

    async def start(self, direction: str, data: bytes, scales: bytes) -> None:
        """Program the job, start it, queue its data: the manual's "A job", steps 2 to 5."""
        await self.write(direction, "INTERRUPT_ENABLE", job_done=1, error=1)
        await self.write(direction, "MODE", mode=JOB["mode"], scales=SCALES_FROM_PORT)
        for name in ("BEATS", "ROW_BEATS", "CHANNEL_ROWS"):
            await self.write(direction, name, JOB[name.lower()])
        if direction == "decompress":
            await self.write(direction, "PAYLOAD_BYTES_LOW", len(data))
        await self.write(direction, "CONTROL", start=1)
        inputs, multipliers, _ = PORTS[direction]
        await self.sources[multipliers].send(scales)
        await self.sources[inputs].send(data)

    async def finish(self, direction: str) -> bytes:
        """The packet that comes out; AssertionError when the unit found an error."""
        frame = await with_timeout(self.sinks[PORTS[direction][2]].recv(), 1, "ms")
        if not self.dut.irq.value:
            await with_timeout(RisingEdge(self.dut.irq), 1, "us")
        errors = await self.read(direction, "ERRORS")
        assert errors == 0, f"ERRORS reads {errors:#x}"
        await self.write(direction, "INTERRUPT_STATUS", job_done=1)
        return bytes(frame.tdata)


def content(name: str) -> bytes:
    """Bytes of the job."""
    return bytes.fromhex(JOB[name])


@cocotb.test()
async def it_is_a_unit_that_this_bench_knows(dut: Any) -> None:
    """ID and VERSION; the manifest's map has the same major version as the unit."""
    unit = Unit(dut)
    await unit.reset()
    assert await unit.read("global", "ID") == REGISTERS["global", "ID"]["reset"]
    assert await unit.read("global", "VERSION") >> 16 == REGISTERS["global", "VERSION"]["reset"] >> 16


@cocotb.test()
async def a_tensor_is_compressed(dut: Any) -> None:
    """The payload is the expected one, and so are the counters."""
    unit = Unit(dut)
    await unit.reset()
    await unit.start("compress", content("values"), content("multipliers"))
    assert await unit.finish("compress") == content("payload")
    assert await unit.read("compress", "JOBS_DONE") == 1
    assert await unit.read("compress", "BYTES_LOW") == len(content("payload"))


@cocotb.test()
async def a_payload_is_decompressed(dut: Any) -> None:
    """The values are the expected ones."""
    unit = Unit(dut)
    await unit.reset()
    await unit.start("decompress", content("payload"), content("reciprocals"))
    assert await unit.finish("decompress") == content("restored")


@cocotb.test()
async def both_directions_at_once_with_stalls(dut: Any) -> None:
    """Sources that hold data back and sinks that are slow change nothing, for several jobs in each direction."""
    unit = Unit(dut)
    await unit.reset()
    for place, end in enumerate((*unit.sources.values(), *unit.sinks.values())):
        end.set_pause_generator(cycle([False] * (place + 1) + [True] * 2))
    for _ in range(2):
        await unit.start("compress", content("values"), content("multipliers"))
        await unit.start("decompress", content("payload"), content("reciprocals"))
        assert await unit.finish("compress") == content("payload")
        assert await unit.finish("decompress") == content("restored")


@cocotb.test()
async def an_access_outside_the_map_is_refused(dut: Any) -> None:
    """The access is answered with SLVERR, counted in BUS_ERRORS, and the unit continues."""
    unit = Unit(dut)
    await unit.reset()
    outside = max(entry["address"] + 4 * entry["count"] for entry in REGISTERS.values())
    assert (await unit.bus.read(outside, 4)).resp == AxiResp.SLVERR
    assert await unit.read("global", "BUS_ERRORS") == 1
    await unit.start("compress", content("values"), content("multipliers"))
    # The interrupt is of the job: BUS_ERROR_ENABLE is 0 after reset.
    assert await unit.finish("compress") == content("payload")
