"""Proofs of the coder of GMC: tables decode what they encode, and a decoder follows the format for any bytes."""

from __future__ import annotations

from cdu.coding.gmc_store import BlockPart
from cdu.coding.gmc_words import A_BITS, B_BITS, BODY_AT, COLUMN_BITS, FIELDS_BITS, MASK_BITS
from cdu_spec import gmc
from cdu_spec.geometry import VALUE_BITS

from cdu_verif.formal.binding import concat, fields, instance, packed
from cdu_verif.formal.device import BoundDevice
from cdu_verif.formal.stream_rules import with_assumptions


def _with_length(bits: int) -> int:
    """Return the bits of a register with ``bits`` bits and their number."""
    return bits + bits.bit_length()


_PREFIX_BITS = 2 * MASK_BITS + A_BITS + B_BITS
_LENGTH_BITS = 4
#: Bits of a slot of 10 bytes.
_SLICE_BITS = 80

#: Bits at the beginning of a block: those of DC, and the classes of the first column.
_BEGIN_BITS = gmc.MAX_CATEGORY + A_BITS + B_BITS
#: Signals of an encoder's stages that proofs observe.
ENCODER_PROBES = {
    **dict.fromkeys(("moves0", "moves1", "moves2"), 1),
    **dict.fromkeys(("valid", "first", "ends", "number"), 3),
    "dc": 1 + VALUE_BITS,
    **dict.fromkeys(("a_class1", "b_class1", "a_before", "b_before"), 3),
    **dict.fromkeys(("a_mask1", "b_mask1"), gmc.GROUP_VALUES),
    **dict.fromkeys(("a_fields1", "b_fields1"), FIELDS_BITS),
    "masks2": _with_length(2 * MASK_BITS),
    "fields2": _with_length(2 * FIELDS_BITS),
    "begin2": _with_length(_BEGIN_BITS),
    "category2": gmc.CATEGORY_BITS,
    "column3": _with_length(COLUMN_BITS),
}

#: The lemmas of gmc_encoder_rules.sv in order; each assumes those before it.
ENCODER_LEMMAS = {
    "order": "Columns pass the stages in order, none is lost, none comes twice.",
    "classes": "Classes, masks and fields of a column are those of its coefficients.",
    "mask_words": "The tables read both masks back from their code words; no bit is behind them.",
    "fields": "Both groups' fields read back side by side are the coefficients; no bit is behind them.",
    "begin": "DC and the classes of the first column are read back from what a block begins with; no bit is behind it.",
    "column_masks": "The tables read both masks back from the whole column.",
    "column_next": "The tables read the classes of the next column back behind the masks, for all classes of this one.",
    "column_fields": "Fields stand behind the classes, and no bit behind them.",
    "column": "The coefficients are read back from the whole column.",
}
#: Bits of the last stage of an encoder whose slots have 10 bytes.
_KEPT_BITS = BODY_AT + _BEGIN_BITS + COLUMN_BITS
SLOTS_PROBES = {name: ENCODER_PROBES[name] for name in ("valid", "first", "ends", "begin2", "category2", "column3")} | {
    **dict.fromkeys(("accepts", "waits", "whole", "store.i__valid", "store.i__ready"), 1),
    "kept": _KEPT_BITS,
    "place": _KEPT_BITS.bit_length(),
    "part": BlockPart(_SLICE_BITS // 8).size,
}

#: Signals of a decoder whose slices have 10 bytes.
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


#: Signals that determine a column.
COLUMN_PROBES = {name: DECODER_PROBES[name] for name in ("window", "present", "number", "length", "prefix")}
#: Signals that determine the window.
WINDOW_PROBES = {
    name: DECODER_PROBES[name] for name in ("window", "filled", "fill", "busy", "more", "turn", "go", "first_bits", "length")
}


def encoder_harness(device: BoundDevice, lemma: int) -> str:
    """Return a harness for one lemma; together they prove that tables decode the encoder's bits of every column."""
    parameters = {"PROVEN": lemma, "COLUMN_BITS": COLUMN_BITS, "BEGIN_BITS": _BEGIN_BITS, **_tables()}
    return with_assumptions(device, instance("gmc_encoder_rules", parameters, fields(device, "i__payload", "values", "ends")))


def slots_harness(device: BoundDevice) -> str:
    """Return a harness that proves that slots are the bits of a block one behind the other."""
    parameters = {"SLOT_BITS": _SLICE_BITS, "KEPT_BITS": _KEPT_BITS, "COLUMN_BITS": COLUMN_BITS, "BEGIN_BITS": _BEGIN_BITS}
    ports = {"part_data": f"inner_part[{_SLICE_BITS - 1}:0]", "part_ends": f"inner_part[{_SLICE_BITS}]"}
    return with_assumptions(device, instance("gmc_slots_rules", parameters, ports))


def store_harness(device: BoundDevice, lengths: bool) -> str:
    """Return a harness for the blocks that leave a :class:`~cdu.coding.gmc_store.BlockStore`: heads and lengths, or bits."""
    parameters = {
        "LENGTHS": int(lengths),
        "SLOT_BITS": _SLICE_BITS,
        "SLICE_BYTES": _SLICE_BITS // 8,
        "MOST_BYTES": gmc.MAX_WRITTEN_BLOCK_BYTES,
    }
    tag = device.field("o__payload", "tag", "how", "shifts", "point")
    ports = {
        **fields(device, "i__payload", "data", "ends", "category", "tag"),
        **fields(device, "o__payload", "data", "ends", "count"),
        "o_tag": concat([device.field("o__payload", "tag", "bank"), device.field("o__payload", "tag", "last"), tag]),
    }
    return with_assumptions(device, instance("gmc_store_rules", parameters, ports), resets=False)


def window_harness(device: BoundDevice) -> str:
    """Return a harness that proves that slices are appended to the window and columns removed, in any state of registers."""
    parameters = {"SLICE_BITS": _SLICE_BITS, "WINDOW_BITS": _WINDOW_BITS}
    return with_assumptions(device, instance("gmc_window_rules", parameters, fields(device, "i__payload", "data")))


def column_harness(device: BoundDevice) -> str:
    """Return a harness that compares masks, classes and lengths of a column with the tables, in any state of registers."""
    parameters = {"PREFIX_BITS": _PREFIX_BITS, "COLUMN_BITS": COLUMN_BITS, **_tables()}
    ports = {"prefix_bits": f"inner_window[{_PREFIX_BITS - 1}:0]"}
    return with_assumptions(device, instance("gmc_column_rules", parameters, ports))


def decoder_harness(device: BoundDevice) -> str:
    """Return a harness that compares the output with section 3 of the format, for any first slices and bits in the window."""
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


def _tables() -> dict[str, int]:
    """Return parameters with the code words of all tables."""
    return _table("A", gmc.A_CODES) | _table("B", gmc.B_CODES) | _table("MASK", gmc.MASK_CODES)


def _table(name: str, codes: gmc.Codes) -> dict[str, int]:
    """Return parameters with the code words of a table."""
    words = [word for row in codes for word in row]
    size = gmc.longest(codes)
    return {
        f"{name}_SIZE": size,
        f"{name}_WORDS": packed(map(gmc.number, words), size),
        f"{name}_LENGTHS": packed(map(len, words), _LENGTH_BITS),
    }
