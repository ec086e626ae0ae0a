"""Open a ring of the DMA engine, whatever state the engine is in."""

from __future__ import annotations

from typing import Protocol

from cdu_spec.dma import DESCRIPTOR_BYTES, DMA_CHANNEL, MAX_RING_LOG2, MEMORY_ADDRESS_BITS, dma_address, dma_register
from cdu_spec.register_types import REGISTER_BITS, Access, Channel

from cdu_driver.errors import RecoveryError

#: Reads of STATUS after which stopping a ring fails, by default.
PATIENCE = 100_000


class Bus(Protocol):
    """Registers of a unit; a :class:`~cdu_driver.device.Device` is one."""

    async def read(self, address: int) -> int:
        """Return the register at a byte address."""

    async def write(self, address: int, value: int) -> None:
        """Write the register at a byte address. Raises BusError if the unit refuses."""


async def stop_ring(bus: Bus, channel: Channel, patience: int = PATIENCE) -> None:
    """Stop the ring of a direction and wait until it is idle: jobs whose descriptors were fetched have ended, HEAD is 0.

    Raises RecoveryError if STATUS.busy is still 1 after ``patience`` reads: memory has not answered the engine.
    """
    await bus.write(dma_address("CONTROL", channel), 0)
    for _ in range(patience):
        if not dma_register("STATUS").field("busy").get(await bus.read(dma_address("STATUS", channel))):
            return
    raise RecoveryError(
        f"the engine's ring of channel {channel.value} does not stop: STATUS.busy is still 1 after {patience} reads; "
        "reset the unit together with the memory that owes it an answer"
    )


async def open_ring(bus: Bus, channel: Channel, address: int, log2: int, patience: int = PATIENCE) -> None:
    """Stop a running direction, clear its errors, and start an empty ring of ``2**log2`` places at ``address``.

    The engine may be running, stopped half-way, reset, or never started. Both interrupts of the direction are
    enabled. Raises ValueError for an impossible ring, and RecoveryError as :func:`stop_ring` does.
    """
    if not 0 <= log2 <= MAX_RING_LOG2:
        raise ValueError(f"a ring of 2**{log2} places is not allowed: use 0 to {MAX_RING_LOG2}")
    if address % DESCRIPTOR_BYTES or not 0 <= address <= (1 << MEMORY_ADDRESS_BITS) - (DESCRIPTOR_BYTES << log2):
        raise ValueError(
            f"a ring of 2**{log2} places at {address:#x} is not allowed: use a multiple of {DESCRIPTOR_BYTES}, with all places "
            f"below 2**{MEMORY_ADDRESS_BITS}"
        )
    await stop_ring(bus, channel, patience)
    low = (1 << REGISTER_BITS) - 1
    sticky = {entry.name: sum(part.mask for part in entry.fields) for entry in DMA_CHANNEL if entry.access is Access.W1C}
    values = {"RING_LOW": address & low, "RING_HIGH": address >> REGISTER_BITS, "RING_SIZE": log2, "TAIL": 0}
    enabled = {"INTERRUPT_ENABLE": sticky["INTERRUPT_STATUS"], "CONTROL": dma_register("CONTROL").pack(enable=1)}
    for name, value in (values | sticky | enabled).items():
        await bus.write(dma_address(name, channel), value)
