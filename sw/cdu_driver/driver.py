"""The driver of a whole unit."""

from __future__ import annotations

from cdu_spec.modes import Coder, Dtype, Mode
from cdu_spec.register_types import Channel
from cdu_spec.registers import MAJOR, address, register

from cdu_driver.device import Device
from cdu_driver.errors import WrongUnitError
from cdu_driver.queue import JobQueue


class Driver:
    """Both directions of a unit.

    Parameters
    ----------
    device
        The unit.
    watchdog
        Cycles without a transfer after which the unit gives up jobs under way, 0 for never. Waiting for memory counts.
    scales_by_registers
        Write scales to registers instead of sending them to the scale ports.

    Attributes
    ----------
    compress, decompress
        The :class:`JobQueue` of each direction. Both share the interrupt line; they may be used by two coroutines.
    dtype, modes, coders, payload_crc, completions
        Format of uncompressed values, modes, and coders of mode jpeg-act that are built in, whether payloads may carry a
        CRC, and for how many jobs and their records there is room: read from the unit by :meth:`open`.
    """

    def __init__(self, device: Device, *, watchdog: int = 0, scales_by_registers: bool = False) -> None:
        self._device, self._watchdog = device, watchdog
        self.compress, self.decompress = (
            JobQueue(device, channel, scales_by_registers=scales_by_registers) for channel in Channel
        )
        self.dtype: Dtype | None = None
        self.modes: frozenset[Mode] = frozenset()
        self.coders: frozenset[Coder] = frozenset()
        self.payload_crc = False
        self.completions = 0

    async def open(self) -> None:
        """Identify the unit and make it idle. Raises WrongUnitError if this driver does not know it."""
        found = await self._device.read(address("ID"))
        if found != register("ID").reset:
            raise WrongUnitError(f"there is no unit: its ID reads {found:#010x}, not {register('ID').reset:#010x}")
        major = register("VERSION").field("major").get(await self._device.read(address("VERSION")))
        if major != MAJOR:
            raise WrongUnitError(f"the register map has version {major}: this driver knows version {MAJOR}")
        numbers = register("NUMBERS").unpack(await self._device.read(address("NUMBERS")))
        self.dtype = Dtype(numbers["value_format"])
        built = register("MODES").unpack(await self._device.read(address("MODES")))
        self.modes = frozenset(mode for mode in Mode if built[mode.name.lower()])
        self.coders = frozenset(coder for coder in Coder if built[coder.label])
        array = register("ARRAY").unpack(await self._device.read(address("ARRAY")))
        self.payload_crc, self.completions = bool(array["payload_crc"]), array["completions"]
        for queue in (self.compress, self.decompress):
            await queue.open(
                self.dtype, self.modes, self.coders, self._watchdog, payload_crc=self.payload_crc, completions=self.completions
            )
