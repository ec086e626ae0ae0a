"""The seam between the driver and what it drives."""

from __future__ import annotations

from abc import ABC, abstractmethod

from cdu_driver.errors import DriverError


class BusError(DriverError):
    """An access to a register that was answered with an error."""


class Device(ABC):
    """Registers and streams of a unit.

    Ports are named as in :data:`cdu_spec.ports.PORTS`. A packet is what lies between two TLASTs, without the bytes that TKEEP
    leaves out. Packets of one port keep their order.
    """

    @abstractmethod
    async def read(self, address: int) -> int:
        """The register at a byte address. Raises BusError when the unit refuses."""

    @abstractmethod
    async def write(self, address: int, value: int) -> None:
        """Write the register at a byte address. Raises BusError when the unit refuses."""

    @abstractmethod
    async def send(self, port: str, packet: bytes | memoryview) -> None:
        """Hand over a packet for an input port; does not wait until it has moved (a descriptor for a DMA engine)."""

    @abstractmethod
    async def expect(self, port: str, size: int) -> None:
        """A packet of at most ``size`` bytes will come from an output port: make room for it."""

    @abstractmethod
    async def receive(self, port: str) -> bytes | memoryview:
        """The oldest expected packet that was not received yet; waits until it is there."""

    @abstractmethod
    async def cancel(self, port: str) -> None:
        """Forget what is under way at a port.

        Input: packets that have not begun never begin; one that has begun may go on to its end. Output: packets that came or
        are expected are dropped, also the rest of one that has begun, and one that the port offers. The port goes on taking
        what is dropped.
        """

    @abstractmethod
    async def wait_interrupt(self) -> None:
        """Wait until the interrupt line is high; returns at once when it is."""
