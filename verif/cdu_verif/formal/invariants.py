"""Signals for helper invariants: registers of blocks with several lanes, to prove their order by induction.

The invariants (``distributor_order.sv``, ``gatherer_order.sv``, ``collector_order.sv``) state how many items the registers
hold and the position of the followed item among them. Each is an assertion that is proven together with the property.
"""

from __future__ import annotations

from cdu_spec.geometry import BLOCK_SIDE, LANES, VALUE_BITS

from cdu_verif.formal.device import Device

#: Bits of a row of values.
ROW_BITS = LANES * VALUE_BITS
#: Signals of the ring of words in a lane that invariants observe.
LANE_PROBES = ("words", "held", "entering", "leaving", "row")


def lane_probes(device: Device, port: str, lanes: int, beats: int) -> dict[str, int]:
    """Return the probes of the ring of words in each lane of a distributor or gatherer; ``port`` has a word's payload."""
    words = BLOCK_SIDE // beats
    bits = (words - 1).bit_length()
    width = next(entry["width"] for entry in device.ports if entry["name"] == port)
    sizes = dict(zip(LANE_PROBES, (words * width, words, bits, bits, (beats - 1).bit_length()), strict=True))
    return {"turn": (lanes - 1).bit_length()} | {f"lane{n}.{name}": size for n in range(lanes) for name, size in sizes.items()}


def collector_probes(lanes: int, slice_bytes: int, word_bytes: int) -> dict[str, int]:
    """Return the probes of a collector, with their bits."""
    bits = (word_bytes - 1).bit_length()
    probes = {"level": bits, "place": bits, "end": bits + 1, "valid": 1, "last": 1, "flush": 1}
    probes |= {"ring": 8 * ring_bytes(slice_bytes), "spilled": 8 * (slice_bytes - 1), "spilled_count": bits}
    return probes | ({"turn": (lanes - 1).bit_length()} if lanes > 1 else {})


def ring_bytes(slice_bytes: int) -> int:
    """Return the bytes of the ring of a collector, which holds a slice."""
    return 1 << (slice_bytes - 1).bit_length()
