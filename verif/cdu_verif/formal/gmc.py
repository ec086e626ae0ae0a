"""The decoder of GMC: what leaves is what the format says, for any bytes."""

from __future__ import annotations

from cdu.coding.gmc_words import A_BITS, B_BITS, COLUMN_BITS, FIELDS_BITS, MASK_BITS
from cdu_spec import gmc
from cdu_spec.geometry import VALUE_BITS

from cdu_verif.formal.binding import fields, instance, packed
from cdu_verif.formal.device import Device
from cdu_verif.formal.stream_rules import with_assumptions

_PREFIX_BITS = 2 * MASK_BITS + A_BITS + B_BITS
_LENGTH_BITS = 4

#: What is seen of a decoder whose slices have 10 bytes.
_SLICE_BITS = 80
_WINDOW_BITS = COLUMN_BITS + _PREFIX_BITS + _SLICE_BITS
DECODER_PROBES = {
    "window": _WINDOW_BITS,
    "fill": _WINDOW_BITS.bit_length(),
    **dict.fromkeys(("busy", "more", "turn", "go", "first_ends"), 1),
    "phase": 2,
    "valid": 2,
    "first_bits": _SLICE_BITS,
    "first_fill": _SLICE_BITS.bit_length(),
    "first_classes": 10,
    "present": 10,
    "category": gmc.CATEGORY_BITS,
    "dc": VALUE_BITS,
    "block_dc": VALUE_BITS,
    "first_tag": 5,
    "tag": 5,
    "number": 3,
    "filled": _WINDOW_BITS,
    "length": 7,
    "prefix": 35,
    "fields": 2 * FIELDS_BITS,
    "bits3": COLUMN_BITS,
    "before3": 5,
    "fields_a3": 6,
    "of_a": FIELDS_BITS,
    "of_b": FIELDS_BITS,
    **{f"part{part}_{stage}": size for part, size in enumerate((4, 3, 4, 3, 7)) for stage in (3, 4)},
}


#: Of those, what a column is told by.
COLUMN_PROBES = {name: DECODER_PROBES[name] for name in ("window", "present", "number", "length", "prefix")}
#: Of those, what the window moves by.
WINDOW_PROBES = {
    name: DECODER_PROBES[name] for name in ("window", "filled", "fill", "busy", "more", "turn", "go", "first_bits", "length")
}


def window_harness(device: Device) -> str:
    """A slice stands behind the bits that are in the window, and the bits of a column go, whatever the registers hold."""
    parameters = {"SLICE_BITS": _SLICE_BITS, "WINDOW_BITS": _WINDOW_BITS}
    return with_assumptions(device, instance("gmc_window_rules", parameters, fields(device, "i__payload", "data")))


def column_harness(device: Device) -> str:
    """Masks, classes and lengths of a column are those of the tables, whatever stands in the registers of a decoder."""
    tables = {"A": gmc.A_CODES, "B": gmc.B_CODES, "MASK": gmc.MASK_CODES}
    parameters = {"PREFIX_BITS": _PREFIX_BITS, "COLUMN_BITS": COLUMN_BITS}
    for name, codes in tables.items():
        parameters |= _table(name, codes)
    ports = {"prefix_bits": f"inner_window[{_PREFIX_BITS - 1}:0]"}
    return with_assumptions(device, instance("gmc_column_rules", parameters, ports))


def decoder_harness(device: Device) -> str:
    """What leaves is what section 3 of the format says of first slices, and of the bits in the window, whatever bytes come."""
    parameters = {
        "SLICE_BITS": _SLICE_BITS,
        "WINDOW_BITS": _WINDOW_BITS,
        "PREFIX_BITS": _PREFIX_BITS,
        "COLUMN_BITS": COLUMN_BITS,
        **_table("A", gmc.A_CODES),
        **_table("B", gmc.B_CODES),
    }
    ports = {
        **fields(device, "i__payload", "data", "ends", "tag.bank", "tag.last"),
        **fields(device, "o__payload", "values", "ends", "tag.bank", "tag.last"),
    }
    return with_assumptions(device, instance("gmc_decoder_rules", parameters, ports))


def _table(name: str, codes: gmc.Codes) -> dict[str, int]:
    """Parameters with the code words of a table."""
    words = [word for row in codes for word in row]
    size = gmc.longest(codes)
    return {
        f"{name}_SIZE": size,
        f"{name}_WORDS": packed(map(gmc.number, words), size),
        f"{name}_LENGTHS": packed(map(len, words), _LENGTH_BITS),
    }
