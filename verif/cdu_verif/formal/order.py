"""Nothing is lost, doubled or put in another order.

One item that enters is chosen freely and followed (``harness/follow.sv``): how many items leave before it is known when it
enters, and when these have left, the next one must be it. As the choice is free this holds for all items. Items are followed by
one bit of their payload; the other bits take the same way, by the same selections.
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
    """Value at ``column`` of row ``row`` of any block leaves in lane ``row`` of beat ``column`` of the same block."""
    return with_assumptions(device, instance("transposer_order", {"WIDTH": width, "BLOCK_SIDE": BLOCK_SIDE}, {}))


def distributor_harness(device: Device, lanes: int, beats: int) -> str:
    """Rows of the blocks that are a lane's turn leave at that lane, one by one, marked where a block ends."""
    ports = {
        **fields(device, "i__payload", *_WORD),
        **lane_fields(device, "o", lanes, *_ROW),
        **_rings(lanes),
    }
    body = instance("distributor_order", _ring_parameters(device, "i__payload", lanes, beats), ports)
    return with_assumptions(device, body, {"i__payload": one_bit_each(device, "i__payload", ROW_BITS)})


def gatherer_harness(device: Device, lanes: int, beats: int) -> str:
    """Rows of a lane leave in words, in turn block by block; a word is full or ends its block."""
    ports = {
        **fields(device, "o__payload", *_WORD),
        **lane_fields(device, "i", lanes, *_ROW),
        **_rings(lanes),
    }
    body = instance("gatherer_order", _ring_parameters(device, "o__payload", lanes, beats), ports)
    free = {port: one_bit_each(device, port, ROW_BITS) for port in (f"i__{lane}__payload" for lane in range(lanes))}
    return with_assumptions(device, body, free)


def collector_harness(device: Device, lanes: int, slice_bytes: int, word_bytes: int) -> str:
    """Bytes of the slices of the lane whose turn it is leave without gaps; a job ends with its last byte and no other."""
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
    """Bytes of words leave once, in order, each in its own job; words are full but for the last one of a job.

    ``partial`` words enter with as many bytes as they have, else they count as full, but for the last one of a job.
    """
    ports = {**fields(device, "i__payload", *_BYTES), **fields(device, "o__payload", *_BYTES)}
    body = instance("width_order", {"I_BYTES": i_bytes, "O_BYTES": o_bytes, "PARTIAL": int(partial)}, ports)
    return with_assumptions(device, body, {"i__payload": one_bit_each(device, "i__payload", 8, "data")})


def alignment_harness(device: Device, beats: int, to_blocks: bool, width: int | None = None) -> str:
    """Row ``row`` of block ``block`` of any tile leaves at its place in the other order of the tile.

    With ``width``, all tiles have so many blocks, else any number.
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
    """Mask of a payload: of a field of data the first of every ``size`` bits, of the other fields everything."""
    entry = next(entry for entry in device.ports if entry["name"] == port)
    mask = (1 << int(entry["width"])) - 1
    found = next(part for part in entry["fields"] if part["name"] == name)
    width = found["width"] * found["count"]
    kept = sum(1 << place for place in range(0, width, size))
    return int(mask ^ ((((1 << width) - 1) ^ kept) << found["offset"]))


def _ring_parameters(device: Device, port: str, lanes: int, beats: int) -> dict[str, int]:
    """Parameters of a block with a ring of words in each lane; ``port`` has the payload of a word."""
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
    """The probes of the rings, as arrays by lane."""
    return {f"inner_{name}": concat([f"inner_lane{lane}__{name}" for lane in range(lanes)]) for name in LANE_PROBES}
