"""The interface between the driver and a unit."""

from __future__ import annotations

from abc import ABC, abstractmethod

from cdu_driver.errors import DriverError


class BusError(DriverError):
    """A register access that was answered with an error."""


class Device(ABC):
    """Registers and streams of a unit.

    Ports are named as in :data:`cdu_spec.ports.PORTS`. A packet is the data between two TLASTs, without the bytes that TKEEP
    leaves out. Packets of one port keep their order.
    """

    @abstractmethod
    async def read(self, address: int) -> int:
        """Return the register at a byte address. Raises BusError if the unit refuses."""

    @abstractmethod
    async def write(self, address: int, value: int) -> None:
        """Write the register at a byte address. Raises BusError if the unit refuses."""

    @abstractmethod
    async def send(self, port: str, packet: bytes | memoryview) -> None:
        """Pass on a packet for an input port; does not wait until it has moved (a descriptor for a DMA engine)."""

    @abstractmethod
    async def expect(self, port: str, size: int) -> None:
        """Make room for a packet of at most ``size`` bytes that will come from an output port."""

    @abstractmethod
    async def receive(self, port: str) -> bytes | memoryview:
        """Return the oldest expected packet that was not received yet; waits until it has arrived."""

    @abstractmethod
    async def cancel(self, port: str) -> None:
        """Cancel the packets under way at a port.

        Input: packets that have not begun never begin; one that has begun may go on to its end. Output: packets that have
        arrived or are expected are dropped, also the rest of one that has begun, and one that the port offers. The port
        continues to accept packets that are dropped.
        """

    @abstractmethod
    async def wait_interrupt(self) -> None:
        """Wait until the interrupt line is high; returns at once if it is."""
