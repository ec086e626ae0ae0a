"""Proofs of the ranges of blocks: how they are found, that their steps cover them, and where they wait."""

from __future__ import annotations

from cdu.words import Range
from cdu_spec.affine import BASE_BITS, MANTISSA_BITS, MAX_EXPONENT
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES, LANES, TILE_BLOCKS, VALUE_BITS
from cdu_spec.modes import Mode

from cdu_verif.formal.binding import concat, fields, instance
from cdu_verif.formal.device import BoundDevice
from cdu_verif.formal.order import one_bit_each
from cdu_verif.formal.progress import progress_harness
from cdu_verif.formal.queues import queue_counters, queue_probes
from cdu_verif.formal.stream_rules import stream_harness, with_assumptions

#: Number of blocks that a range store has room for.
_SLOTS = 2 * TILE_BLOCKS
_RANGE_BITS = Range().size
_ENTRY_BITS = _RANGE_BITS + (TILE_BLOCKS - 1).bit_length()

#: Bits of a range that are followed, one of each field.
_BITS_FOLLOWED = (0, BASE_BITS, BASE_BITS + MANTISSA_BITS)

#: Parameters of the rules of its ring.
_RING = {"SLOTS": _SLOTS, "TILE_BLOCKS": TILE_BLOCKS, "ENTRY_BITS": _ENTRY_BITS, "RANGE_BITS": _RANGE_BITS}

#: Signals of a range store that proofs observe.
STORE_PROBES = {
    "used": _SLOTS.bit_length(),
    "complete": _SLOTS.bit_length(),
    "write_slot": (_SLOTS - 1).bit_length(),
    "read_slot": (_SLOTS - 1).bit_length(),
    "block": (TILE_BLOCKS - 1).bit_length(),
    "ring": _SLOTS * _ENTRY_BITS,
}

#: Signals of the arithmetic of a range finder that proofs observe.
STEP_PROBES = {
    "found__valid": 1,
    "found__ready": 1,
    "found__payload__values__least": BASE_BITS,
    "found__payload__values__most": BASE_BITS,
    "found__payload__values__total": BASE_BITS + (BLOCK_VALUES - 1).bit_length(),
    "found__payload__quantizer__bits_log2": 2,
    "found__payload__quantizer__block_range": 1,
    "found__payload__mode": 4,
    "extent1": BASE_BITS,
    "bits1": 2,
    "low1": BASE_BITS,
    "quotient2": BASE_BITS,
    "low2": BASE_BITS,
    **{f"{end}{stage}": BASE_BITS for end in ("least", "most") for stage in (1, 2)},
    "waiting.i__payload": _RANGE_BITS + 2 * BASE_BITS + TILE_BLOCKS.bit_length(),
}


#: Queues in a range finder by the name of their signals, with their depths; the second exists with P above 1 only.
_QUEUES = {"waiting.queue": 4, "statistics.tiles.queue": 2}


def finder_probes(beats: int) -> dict[str, int]:
    """Return the probes of the queues of a range finder."""
    queues = list(_QUEUES.items())[: 1 if beats == 1 else 2]
    return {name: width for path, depth in queues for name, width in queue_probes(path, depth).items()}


def finder_rules(device: BoundDevice) -> str:
    """Return a harness of the stream rules, with the invariants of the queues' counters."""
    seen = {probe.path for probe in device.probes}
    checks = "".join(queue_counters(path, depth) for path, depth in _QUEUES.items() if f"{path}.level" in seen)
    return stream_harness(device, body=checks)


def step_harness(device: BoundDevice) -> str:
    """Return a harness for the step found from least and greatest value, with any stalls.

    ``D = m * 2**e`` is the least number with that many significant bits that is not below ``max(1, ceil(R / B))``. So it
    covers the range, ``B * D >= R``; and no code is decoded to more than 65535. Mean, least and greatest value pass unchanged,
    because they are the statistics of a block.
    """
    parameters = {
        "BASE_BITS": BASE_BITS,
        "BLOCK_VALUES": BLOCK_VALUES,
        "MANTISSA_BITS": MANTISSA_BITS,
        "MAX_EXPONENT": MAX_EXPONENT,
        "DIVISION": Mode.DIVISION,
    }
    waiting = "inner_waiting__i__payload"
    ports = {
        **{f"found_{name}": f"inner_found__{name}" for name in ("valid", "ready")},
        **{f"found_{name}": f"inner_found__payload__values__{name}" for name in ("least", "most", "total")},
        **{f"found_{name}": f"inner_found__payload__quantizer__{name}" for name in ("bits_log2", "block_range")},
        "found_mode": "inner_found__payload__mode",
        **{f"inner_{name}": concat([f"inner_{name}{stage}" for stage in (1, 2)]) for name in ("least", "most")},
        "range_low": f"{waiting}[0 +: {BASE_BITS}]",
        "range_mantissa": f"{waiting}[{BASE_BITS} +: {MANTISSA_BITS}]",
        "range_exponent": f"{waiting}[{BASE_BITS + MANTISSA_BITS} +: 4]",
        "range_least": f"{waiting}[{_RANGE_BITS} +: {BASE_BITS}]",
        "range_most": f"{waiting}[{_RANGE_BITS + BASE_BITS} +: {BASE_BITS}]",
    }
    return with_assumptions(device, instance("range_step", parameters, ports))


def enclosing_harness(device: BoundDevice, beats: int, free_of_value: int, width: int | None = None) -> str:
    """Return a harness that proves that every value of a block is between the least and greatest value found for it.

    The values come in tiles of ``width`` blocks (default: of any number), row by row; the bits ``free_of_value`` of each value
    are free.
    """
    parameters = {
        "BEATS": beats,
        "LANES": LANES,
        "BASE_BITS": BASE_BITS,
        "BLOCK_SIDE": BLOCK_SIDE,
        "TILE_BLOCKS": TILE_BLOCKS,
        "TILE_WIDTH": width or 0,
        "DIVISION": Mode.DIVISION,
        "ACTNN": Mode.ACTNN,
    }
    ports = {
        **fields(device, "i__payload", "values", "count", "ends", "tag.mode", "blocks"),
        **fields(device, "found__payload", "values.least", "values.most"),
    }
    bits = next(int(port["width"]) for port in device.ports if port["name"] == "i__payload")
    values_bits = LANES * BASE_BITS * beats
    others = ((1 << bits) - 1) & ~((1 << values_bits) - 1)
    values_free = sum(free_of_value << place for place in range(0, values_bits, BASE_BITS))
    body = instance("block_enclosing", parameters, ports)
    return with_assumptions(device, body, {"i__payload": others | values_free}, resets=False)


def _ring(device: BoundDevice) -> str:
    """Return an instance of the invariants of a range store's registers."""
    outputs = ("enters", "entered", "width", "slots", "others")  # unused here
    ports = fields(device, "i__payload", "ends", "blocks") | dict.fromkeys(outputs, "")
    return instance("range_ring", _RING, ports)


def store_rules(device: BoundDevice) -> str:
    """Return a harness of the stream rules, and that the ring never holds more blocks than it has entries."""
    return stream_harness(device, body=_ring(device))


def store_progress(device: BoundDevice, cycles: int) -> str:
    """Return a harness: with all inputs offered and all outputs accepted something moves within ``cycles`` cycles."""
    return progress_harness(device, cycles, limits=_ring(device))


def order_probes(beats: int) -> dict[str, int]:
    """Return the probes of a range store for the proof of its order."""
    words = BLOCK_SIDE * TILE_BLOCKS // beats
    return {**STORE_PROBES, "present": 1, "ranges": TILE_BLOCKS * _RANGE_BITS, "number": (words - 1).bit_length()}


def store_order(device: BoundDevice, beats: int) -> str:
    """Return a harness: beats leave with the range of their block; in mode actnn of the first block of their tile.

    Tiles are assumed to leave in the order in which they entered, a property of the alignment buffer in between.
    """
    parameters = _RING | {
        "BEATS": beats,
        "BLOCK_SIDE": BLOCK_SIDE,
        **dict(zip(("LOW_BIT", "MANTISSA_BIT", "EXPONENT_BIT"), _BITS_FOLLOWED, strict=True)),
        "ACTNN": Mode.ACTNN,
    }
    ports = {
        **fields(device, "i__payload", "ends", "tag.mode", "blocks", "range"),
        **fields(device, "from_alignment__payload", "ends", "tag.mode", "blocks"),
        **fields(device, "o__payload", "ranges"),
    }
    free = one_bit_each(device, "i__payload", LANES * VALUE_BITS)
    beside = one_bit_each(device, "from_alignment__payload", LANES * VALUE_BITS)
    body = instance("range_store_order", parameters, ports)
    return with_assumptions(device, body, {"i__payload": free, "from_alignment__payload": beside})


def join_rules(device: BoundDevice) -> str:
    """Return a harness of the stream rules; in modes without ranges the range of a word is meaningless and may change."""
    mode = device.field("i__payload", "tag", "mode")
    ranged = " || ".join(f"{mode} == {mode_with_range:d}" for mode_with_range in (Mode.DIVISION, Mode.ACTNN))
    return stream_harness(device, body=f"  always @* if (i__valid) assume ({ranged});\n")
