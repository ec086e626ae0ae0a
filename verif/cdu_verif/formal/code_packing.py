"""Proof of the packing of codes: unpacking inverts it, and codes are where the format says, for all codes and widths."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from cdu.coding.code_packing import ROW_BITS, code_bytes, pack_codes, unpack_codes
from cdu_spec.geometry import LANES, VALUE_BITS

from cdu_verif.formal.binding import instance
from cdu_verif.formal.device import Device, harness


class PackedCodes(wiring.Component):
    """Combinational functions of :mod:`cdu.coding.code_packing` between ports.

    Ports
    -----
    row, bits_log2
        8 codes in a byte each, and the binary logarithm of their bits.
    behind
        Bits behind the codes when they are unpacked.
    together, back
        The codes side by side, and unpacked again.
    count, size
        A number of codes (0..8) and the bytes that they take.
    """

    row: Signal
    bits_log2: Signal
    behind: Signal
    together: Signal
    back: Signal
    count: Signal
    size: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "row": In(ROW_BITS),
                "bits_log2": In(2),
                "behind": In(ROW_BITS),
                "together": Out(ROW_BITS),
                "back": Out(ROW_BITS),
                "count": In(range(LANES + 1)),
                "size": Out(range(LANES + 1)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        beyond = self.behind << (LANES << self.bits_log2)
        m.d.comb += [
            self.together.eq(pack_codes(m, self.row, self.bits_log2, "codes")),
            self.back.eq(unpack_codes(m, (self.together | beyond)[:ROW_BITS], self.bits_log2, "unpacked")),
            self.size.eq(code_bytes(m, self.count, self.bits_log2, "bytes_of_codes")),
        ]
        return m


def packing_harness(device: Device) -> str:
    """Return a harness: code n is at bit ``n * bits``, zeros behind the last one; unpacking gives the codes, for any rest."""
    return harness(device, instance("code_packing_rules", {"CODES": LANES, "VALUE_BITS": VALUE_BITS}, {}))
