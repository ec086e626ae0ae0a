"""What helper invariants see: registers of blocks with several lanes, so that their order can be shown by induction.

The invariants (``distributor_order.sv``, ``gatherer_order.sv``, ``collector_order.sv``) say how many items the registers hold
and at which place of them the followed item stands. Each is an assertion like any other: it is proven with the property.
"""

from __future__ import annotations

from cdu_spec.geometry import BLOCK_SIDE, LANES, VALUE_BITS

from cdu_verif.formal.device import Device

#: Bits of a row of values.
ROW_BITS = LANES * VALUE_BITS
#: What is seen of the ring of words in a lane.
LANE_PROBES = ("words", "held", "entering", "leaving", "row")


def lane_probes(device: Device, port: str, lanes: int, beats: int) -> dict[str, int]:
    """What is seen of the ring of words in every lane of a distributor or a gatherer; ``port`` has the payload of a word."""
    words = BLOCK_SIDE // beats
    bits = (words - 1).bit_length()
    width = next(entry["width"] for entry in device.ports if entry["name"] == port)
    sizes = dict(zip(LANE_PROBES, (words * width, words, bits, bits, (beats - 1).bit_length()), strict=True))
    return {"turn": (lanes - 1).bit_length()} | {f"lane{n}.{name}": size for n in range(lanes) for name, size in sizes.items()}


def collector_probes(lanes: int, slice_bytes: int, word_bytes: int) -> dict[str, int]:
    """What is seen of a collector."""
    bits = (word_bytes - 1).bit_length()
    probes = {"level": bits, "place": bits, "end": bits + 1, "valid": 1, "last": 1, "flush": 1}
    probes |= {"ring": 8 * ring_bytes(slice_bytes), "spilled": 8 * (slice_bytes - 1), "spilled_count": bits}
    return probes | ({"turn": (lanes - 1).bit_length()} if lanes > 1 else {})


def ring_bytes(slice_bytes: int) -> int:
    """Bytes of the ring of a collector in which a slice stands."""
    return 1 << (slice_bytes - 1).bit_length()
