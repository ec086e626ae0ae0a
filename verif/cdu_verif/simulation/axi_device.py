"""Simulated array as a device of the reference driver."""

from __future__ import annotations

from typing import Any

from cdu_driver import BusError, Device
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge

from cdu_verif.simulation.axi_ports import Registers, StreamIn, StreamOut


class AxiDevice(Device):
    """Access registers and streams through cocotbext-axi.

    Parameters
    ----------
    dut
        cocotb's handle of the top.
    bus
        The AXI4-Lite port.
    inputs, outputs
        The AXI4-Stream ports by name.
    """

    def __init__(self, dut: Any, bus: Registers, inputs: dict[str, StreamIn], outputs: dict[str, StreamOut]) -> None:
        self._dut, self._bus, self._inputs, self._outputs = dut, bus, inputs, outputs

    async def read(self, address: int) -> int:
        """Implement :class:`cdu_driver.Device`."""
        return await self._bus.read(address)

    async def write(self, address: int, value: int) -> None:
        """Implement :class:`cdu_driver.Device`."""
        response = await self._bus.write(address, value)
        if response:
            raise BusError(f"a write of {value:#x} to address {address:#x} was answered with response {response}")

    async def send(self, port: str, packet: bytes | memoryview) -> None:
        """Implement :class:`cdu_driver.Device`."""
        self._inputs[port].send(bytes(packet))

    async def expect(self, port: str, size: int) -> None:
        """Implement :class:`cdu_driver.Device`; no buffer is needed, as there is room for any packet."""

    async def receive(self, port: str) -> bytes:
        """Implement :class:`cdu_driver.Device`."""
        return await self._outputs[port].receive()

    async def cancel(self, port: str) -> None:
        """Implement :class:`cdu_driver.Device`."""
        if port in self._inputs:
            self._inputs[port].forget()
            return
        # A packet that has begun, or waits at the port, continues to its TLAST.
        while not await self._outputs[port].at_rest():
            pass
        self._outputs[port].forget()

    async def wait_interrupt(self) -> None:
        """Implement :class:`cdu_driver.Device`."""
        await ReadOnly()
        if not int(self._dut.irq.value):
            await RisingEdge(self._dut.irq)
        await ClockCycles(self._dut.clk, 1)
