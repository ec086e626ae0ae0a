"""The registers of the next job, written while one is under way."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.bitstream import CRC_BYTES
from cdu_spec.config import CduConfig
from cdu_spec.geometry import SHIFT_BITS
from cdu_spec.modes import Mode
from cdu_spec.register_types import BANKS, REGISTER_BYTES, SHIFT_REGISTERS, Channel, ScaleSource
from cdu_spec.registers import address, register

from cdu.bus.axi_lite import AccessPort
from cdu.control.register_file import layout
from cdu.dma.records import Planned, runs


class JobProgrammer(wiring.Component):
    """Write everything of a job but its START; the shift table goes to the bank that the job before has not.

    Parameters
    ----------
    config
        Registers that the unit has.
    channel
        The direction.

    Ports
    -----
    i, o
        Streams of :class:`~cdu.dma.records.Planned`; a job leaves when it is written, one that cannot be run at once. It is
        taken with the transfer at ``o``.
    access
        :data:`~cdu.bus.axi_lite.AccessPort`.
    """

    i: stream.Interface
    o: stream.Interface
    access: Any

    def __init__(self, config: CduConfig, channel: Channel) -> None:
        self.config, self.channel = config, channel
        jobs = stream.Signature(Planned())
        super().__init__({"i": In(jobs), "o": Out(jobs), "access": Out(AccessPort)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        planned = self.i.payload
        descriptor = planned["fetched"]["descriptor"]
        bank = Signal(range(BANKS))
        step = Signal(range(32))
        in_mode = descriptor["mode"] == Mode.JPEG_ACT
        writes = self._writes(m, planned, bank)
        common = len(writes)
        has_table = Mode.JPEG_ACT in self.config.built_modes
        if has_table:
            writes += _table(m, self.channel, descriptor["shifts"], bank)
        m.d.comb += [
            self.o.payload.eq(planned),
            self.access.write.eq(1),
            self.access.whole.eq(1),
            self.access.word.eq(Array(where for where, _ in writes)[step]),
            self.access.data.eq(Array(what for _, what in writes)[step]),
        ]
        last = step == (Mux(in_mode, len(writes) - 1, common - 1) if has_table else common - 1)
        with m.FSM():
            with m.State("REST"), m.If(self.i.valid):
                m.d.sync += step.eq(0)
                m.next = "GIVE"
                with m.If(runs(planned)):
                    m.next = "WRITE"
            with m.State("WRITE"):
                m.d.comb += self.access.active.eq(1)
                with m.If(self.access.done):
                    m.d.sync += step.eq(step + 1)
                    with m.If(last):
                        m.next = "GIVE"
            with m.State("GIVE"):
                m.d.comb += [self.o.valid.eq(1), self.i.ready.eq(self.o.ready)]
                with m.If(self.o.ready):
                    m.d.sync += bank.eq(bank + 1)
                    m.next = "REST"
        return m

    def _writes(self, m: Module, planned: Any, bank: Value) -> list[tuple[Value | int, Any]]:
        """Number and value of the registers of every job."""
        descriptor, counts = planned["fetched"]["descriptor"], planned["counts"]
        mode: Any = Signal(layout(register("MODE")))
        m.d.comb += [mode["mode"].eq(descriptor["mode"]), mode["bank"].eq(bank), mode["scales"].eq(ScaleSource.PORT)]
        found: list[tuple[Value | int, Any]] = [(self._word("MODE"), mode.as_value())]
        found += [(self._word(name), counts[name.lower()]) for name in ("BEATS", "ROW_BEATS", "CHANNEL_ROWS")]
        found.append((self._word("COMPLETION_KEEP"), register("COMPLETION_KEEP").pack(keep=1)))
        if self.config.has_gmc:
            coding: Any = Signal(layout(register("CODING")))
            m.d.comb += [coding["coder"].eq(descriptor["coder"]), coding["point"].eq(descriptor["point"])]
            found.append((self._word("CODING"), coding.as_value()))
        if any(mode.is_affine for mode in self.config.built_modes):
            found.append((self._word("QUANTIZER"), descriptor["quantizer"]))
            if self.channel is Channel.COMPRESS:
                found.append((self._word("SEED"), descriptor["seed"]))
        if Mode.MX in self.config.built_modes:
            found.append((self._word("MX_CODING"), descriptor["mx_coding"]))
        length: Value = descriptor["payload_bytes"]
        if self.config.payload_crc:
            present = descriptor["payload_crc"][0]
            found.append((self._word("PAYLOAD_CRC"), present))
            length = length - Mux(present, CRC_BYTES, 0)
        if self.channel is Channel.DECOMPRESS:
            found += [(self._word("PAYLOAD_BYTES_LOW"), length), (self._word("PAYLOAD_BYTES_HIGH"), 0)]
        return found

    def _word(self, name: str) -> int:
        return address(name, self.channel) // REGISTER_BYTES


def _table(m: Module, channel: Channel, shifts: Value, bank: Value) -> list[tuple[Value | int, Any]]:
    """Number and value of the registers of the shift table."""
    found: list[tuple[Value | int, Any]] = []
    parts = register("SHIFTS0").fields
    section = len(parts) * SHIFT_BITS
    for index in range(SHIFT_REGISTERS):
        words = [address(f"SHIFTS{number}", channel, index) // REGISTER_BYTES for number in range(BANKS)]
        entries: Any = Signal(layout(register("SHIFTS0")), name=f"shifts{index}")
        packed = data.View(data.ArrayLayout(SHIFT_BITS, len(parts)), shifts[index * section : (index + 1) * section])
        m.d.comb += Cat(entries[part.name] for part in parts).eq(Cat(packed[place] for place in range(len(parts))))
        found.append((Mux(bank, words[1], words[0]), entries.as_value()))
    return found
