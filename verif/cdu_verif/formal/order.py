"""Proofs that nothing is lost, duplicated or reordered.

One item that enters is chosen freely and followed (``harness/follow.sv``): the number of items that leave before it is known
when it enters, and when these have left, the next one must be it. As the choice is free this holds for all items. Items are
followed by one bit of their payload; the other bits take the same way, by the same selections.
"""

from __future__ import annotations

from cdu_spec.geometry import BLOCK_SIDE, TILE_BLOCKS

from cdu_verif.formal.binding import concat, fields, instance, lane_fields
from cdu_verif.formal.device import Device
from cdu_verif.formal.invariants import LANE_PROBES, ROW_BITS, lane_probes, ring_bytes
from cdu_verif.formal.stream_rules import with_assumptions

_ROW = ("values", "ends", "tag.last")
_WORD = ("values", "count", "ends", "tag.last")
_BYTES = ("data", "count", "last")


def transposer_harness(device: Device, width: int) -> str:
    """Return a harness: the value at ``column`` of row ``row`` of any block leaves in lane ``row`` of beat ``column``."""
    return with_assumptions(device, instance("transposer_order", {"WIDTH": width, "BLOCK_SIDE": BLOCK_SIDE}, {}))


def distributor_harness(device: Device, lanes: int, beats: int) -> str:
    """Return a harness: rows of the blocks of a lane's turn leave at that lane, in order, marked where a block ends."""
    ports = {
        **fields(device, "i__payload", *_WORD),
        **lane_fields(device, "o", lanes, *_ROW),
        **_rings(lanes),
    }
    body = instance("distributor_order", _ring_parameters(device, "i__payload", lanes, beats), ports)
    return with_assumptions(device, body, {"i__payload": one_bit_each(device, "i__payload", ROW_BITS)})


def gatherer_harness(device: Device, lanes: int, beats: int) -> str:
    """Return a harness: rows of a lane leave in words, in turn block by block; a word is full or ends its block."""
    ports = {
        **fields(device, "o__payload", *_WORD),
        **lane_fields(device, "i", lanes, *_ROW),
        **_rings(lanes),
    }
    body = instance("gatherer_order", _ring_parameters(device, "o__payload", lanes, beats), ports)
    free = {port: one_bit_each(device, port, ROW_BITS) for port in (f"i__{lane}__payload" for lane in range(lanes))}
    return with_assumptions(device, body, free)


def collector_harness(device: Device, lanes: int, slice_bytes: int, word_bytes: int) -> str:
    """Return a harness: bytes of slices leave lane by lane in turn without gaps; a job ends with its last byte and no other."""
    parameters = {
        "LANES": lanes,
        "SLICE_BYTES": slice_bytes,
        "WORD_BYTES": word_bytes,
        "RING_BYTES": ring_bytes(slice_bytes),
    }
    ports = {
        **lane_fields(device, "i", lanes, "data", "count", "ends", "tag.last"),
        **fields(device, "o__payload", *_BYTES),
        **({"inner_turn": "1'b0"} if lanes == 1 else {}),
    }
    free = {port: one_bit_each(device, port, 8, "data") for port in (f"i__{lane}__payload" for lane in range(lanes))}
    return with_assumptions(device, instance("collector_order", parameters, ports), free)


def width_harness(device: Device, i_bytes: int, o_bytes: int, partial: bool = False) -> str:
    """Return a harness: bytes of words leave once, in order, in their job; words are full except for a job's last one.

    ``partial`` words enter with as many bytes as they have, otherwise they count as full, except for the last one of a job.
    """
    ports = {**fields(device, "i__payload", *_BYTES), **fields(device, "o__payload", *_BYTES)}
    body = instance("width_order", {"I_BYTES": i_bytes, "O_BYTES": o_bytes, "PARTIAL": int(partial)}, ports)
    return with_assumptions(device, body, {"i__payload": one_bit_each(device, "i__payload", 8, "data")})


def alignment_harness(device: Device, beats: int, to_blocks: bool, width: int | None = None) -> str:
    """Return a harness: row ``row`` of block ``block`` of any tile leaves at its place in the other order of the tile.

    With ``width``, all tiles have that many blocks, else any number.
    """
    parameters = {
        "BEATS": beats,
        "ROW_BITS": ROW_BITS,
        "BLOCK_SIDE": BLOCK_SIDE,
        "TILE_BLOCKS": TILE_BLOCKS,
        "TO_BLOCKS": int(to_blocks),
        "TILE_WIDTH": width or 0,
    }
    ports = {
        **fields(device, "i__payload", "values", "count", "ends", "blocks"),
        **fields(device, "o__payload", "values", "count"),
    }
    body = instance("alignment_order", parameters, ports)
    return with_assumptions(device, body, {"i__payload": one_bit_each(device, "i__payload", ROW_BITS)})


def one_bit_each(device: Device, port: str, size: int, name: str = "values") -> int:
    """Return the mask of a payload: the first of every ``size`` bits of a field of data, all bits of the other fields."""
    entry = next(entry for entry in device.ports if entry["name"] == port)
    mask = (1 << int(entry["width"])) - 1
    found = next(part for part in entry["fields"] if part["name"] == name)
    width = found["width"] * found["count"]
    kept = sum(1 << place for place in range(0, width, size))
    return int(mask ^ ((((1 << width) - 1) ^ kept) << found["offset"]))


def _ring_parameters(device: Device, port: str, lanes: int, beats: int) -> dict[str, int]:
    """Return parameters of a block with a ring of words in each lane; ``port`` has the payload of a word."""
    words = BLOCK_SIDE // beats
    return {
        "LANES": lanes,
        "BEATS": beats,
        "ROW_BITS": ROW_BITS,
        "BLOCK_SIDE": BLOCK_SIDE,
        "WIDTH": lane_probes(device, port, lanes, beats)["lane0.words"] // words,
        "COUNT_AT": device.offset(port, "count"),
        "ENDS_AT": device.offset(port, "ends"),
        "LAST_AT": device.offset(port, "tag", "last"),
    }


def _rings(lanes: int) -> dict[str, str]:
    """Return the probes of the rings, as arrays by lane."""
    return {f"inner_{name}": concat([f"inner_lane{lane}__{name}" for lane in range(lanes)]) for name in LANE_PROBES}
