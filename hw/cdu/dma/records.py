"""Layouts of descriptors and completion records, and of what the engine computes for a job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from amaranth.hdl import Value
from amaranth.lib import data
from cdu_spec.config import CduConfig
from cdu_spec.dma import (
    COMPLETION,
    COMPLETION_BYTES,
    DESCRIPTOR,
    DESCRIPTOR_BYTES,
    DMA_ERRORS,
    MEMORY_ADDRESS_BITS,
    SIZE_BITS,
    Part,
)
from cdu_spec.geometry import BLOCK_SIDE, LANES, TILE_BLOCKS
from cdu_spec.modes import Mode
from cdu_spec.register_types import COUNT_BITS, REGISTER_BITS

from cdu.words import is_one_of

#: Bits of the number of values of a job, and of the number of rows in memory.
VALUES_BITS = COUNT_BITS + (LANES - 1).bit_length()


def _layout(table: Sequence[Part], size: int) -> data.FlexibleLayout:
    return data.FlexibleLayout(8 * size, {part.name: data.Field(8 * part.size, 8 * part.offset) for part in table})


#: A descriptor as stored in memory.
DescriptorRecord = _layout(DESCRIPTOR, DESCRIPTOR_BYTES)
#: A completion record as stored in memory.
CompletionRecord = _layout(COMPLETION, COMPLETION_BYTES)


class Errors(data.StructLayout):
    """The bits of ``errors`` of a completion record."""

    def __init__(self) -> None:
        super().__init__({name: 1 for name, _ in DMA_ERRORS})


class Fetched(data.StructLayout):
    """A descriptor with its number; ``failed``: it could not be read from memory."""

    def __init__(self) -> None:
        super().__init__({"descriptor": DescriptorRecord, "number": REGISTER_BITS, "failed": 1})


class Counts(data.StructLayout):
    """Counts of a job that the unit and the walkers need.

    ``rows`` in memory, N * C * H. ``beats``, ``row_beats`` and ``channel_rows`` of the unit's registers; ``groups``, its
    number of scales, of which ``extra`` begin in the padding. ``row_pad`` values fill up a row of the matrix to a beat,
    ``end_pad`` beats fill up the job to a block or a group.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "rows": VALUES_BITS,
                "beats": COUNT_BITS,
                "row_beats": COUNT_BITS,
                "channel_rows": COUNT_BITS,
                "groups": COUNT_BITS,
                "extra": range(BLOCK_SIDE),
                "row_pad": range(LANES),
                "end_pad": range(TILE_BLOCKS * BLOCK_SIDE),
            }
        )


class Planned(data.StructLayout):
    """A checked descriptor. A job with ``errors`` cannot be run; a job without a place for its record has ``nowhere``."""

    def __init__(self) -> None:
        super().__init__({"fetched": Fetched(), "counts": Counts(), "errors": Errors(), "nowhere": 1})


#: Properties of a mode that the engine needs: whether values pass in strips and tiles of maps; whether a tensor is one row
#: without channels; whether there are scales, and offsets beside them; whether padding repeats values.
KINDS: Mapping[str, Callable[[Mode], bool]] = {
    "in_tiles": lambda mode: mode.in_tiles and not mode.is_flat,
    "flat": lambda mode: mode.is_flat,
    "has_scales": lambda mode: mode.has_scales,
    "wide": lambda mode: mode.has_offsets,
    "repeats": lambda mode: mode.has_ranges,
}


def kinds(config: CduConfig, mode: Value) -> dict[str, Value]:
    """Return for each of :data:`KINDS` whether a mode has the property; modes that are not built in have none."""
    return {name: is_one_of(mode, [one for one in config.built_modes if is_so(one)]) for name, is_so in KINDS.items()}


class TensorJob(data.StructLayout):
    """Job for the walk over a tensor; ``in_tiles``, ``flat`` and ``repeats`` are those of :data:`KINDS`."""

    def __init__(self) -> None:
        super().__init__(
            {
                **dict.fromkeys(("tensor", "stride_n", "stride_c", "stride_h"), MEMORY_ADDRESS_BITS),
                **dict.fromkeys(("c", "h", "w"), VALUES_BITS),
                **dict.fromkeys(("in_tiles", "flat", "repeats"), 1),
                "counts": Counts(),
            }
        )


class ScalesJob(data.StructLayout):
    """Job for the walk over scales; ``wide`` and ``repeats`` are those of :data:`KINDS`."""

    def __init__(self) -> None:
        super().__init__(
            {
                **{"address": MEMORY_ADDRESS_BITS, "channels": VALUES_BITS, "groups": COUNT_BITS, "extra": range(BLOCK_SIDE)},
                **dict.fromkeys(("wide", "repeats"), 1),
            }
        )


def tensor_job(target: Any, planned: Any, kind: Mapping[str, Value]) -> list[Any]:
    """Return statements that set ``target``, a :class:`TensorJob`, from a planned job and its ``kind`` (:func:`kinds`)."""
    descriptor = planned["fetched"]["descriptor"]
    return [
        *(target[name].eq(descriptor[name]) for name in ("tensor", "stride_n", "stride_c", "stride_h", "c", "h", "w")),
        *(target[name].eq(kind[name]) for name in ("in_tiles", "flat", "repeats")),
        target["counts"].eq(planned["counts"]),
    ]


def scales_job(target: Any, planned: Any, kind: Mapping[str, Value]) -> list[Any]:
    """Return statements that set ``target``, a :class:`ScalesJob`, from a planned job and its ``kind`` (:func:`kinds`)."""
    descriptor, counts = planned["fetched"]["descriptor"], planned["counts"]
    return [
        target["address"].eq(descriptor["scales"]),
        target["channels"].eq(descriptor["c"]),
        *(target[name].eq(counts[name]) for name in ("groups", "extra")),
        *(target[name].eq(kind[name]) for name in ("wide", "repeats")),
    ]


def payload_segment(target: Any, planned: Any) -> list[Any]:
    """Return statements that set ``target``, a :class:`~cdu.dma.segments.Segment`, to the payload of a planned job."""
    descriptor = planned["fetched"]["descriptor"]
    return [
        target["address"].eq(descriptor["payload"]),
        target["bytes"].eq(descriptor["payload_bytes"]),
        target["last"].eq(1),
    ]


def runs(planned: Any) -> Value:
    """Return whether a planned job can be run: its descriptor was read and has no errors."""
    can: Value = ~planned["fetched"]["failed"] & ~planned["errors"].as_value().any()
    return can


class Ended(data.StructLayout):
    """A job that the unit has ended, or that it was never given.

    ``started``: the unit has accepted it, so that its result goes to memory and the writer's result follows.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                **{"address": MEMORY_ADDRESS_BITS, "job": REGISTER_BITS, "tag": REGISTER_BITS, "errors": Errors()},
                **{"unit_errors": REGISTER_BITS},
                **dict.fromkeys(("nowhere", "failed", "started"), 1),
            }
        )


def ran(ended: Any) -> Value:
    """Return whether an :class:`Ended` job could be run, as :func:`runs`, as long as it has errors of its descriptor only."""
    could: Value = ~ended["failed"] & ~ended["errors"].as_value().any()
    return could


class Outcome(data.StructLayout):
    """A record and its address; ``nowhere``: it cannot be written; ``failed``: no record, as the descriptor was not read."""

    def __init__(self) -> None:
        super().__init__({"address": MEMORY_ADDRESS_BITS, "record": CompletionRecord, "nowhere": 1, "failed": 1})


#: A record has room for the length of a packet.
assert SIZE_BITS == REGISTER_BITS
