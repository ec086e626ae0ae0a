"""Descriptors and completion records as layouts, and what the engine finds out about a job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from amaranth.hdl import Value
from amaranth.lib import data
from cdu_spec.bitstream import Mode
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
from cdu_spec.registers import COUNT_BITS, REGISTER_BITS

from cdu.words import is_one_of

#: Bits of a number of values of a job, and of a number of rows in memory.
VALUES_BITS = COUNT_BITS + (LANES - 1).bit_length()


def _layout(table: Sequence[Part], size: int) -> data.FlexibleLayout:
    return data.FlexibleLayout(8 * size, {part.name: data.Field(8 * part.size, 8 * part.offset) for part in table})


#: A descriptor, as it stands in memory.
DescriptorRecord = _layout(DESCRIPTOR, DESCRIPTOR_BYTES)
#: A completion record, as it stands in memory.
CompletionRecord = _layout(COMPLETION, COMPLETION_BYTES)


class Errors(data.StructLayout):
    """The bits of ``errors`` of a completion record."""

    def __init__(self) -> None:
        super().__init__({name: 1 for name, _ in DMA_ERRORS})


class Fetched(data.StructLayout):
    """A descriptor with its number; ``failed``: memory did not give it."""

    def __init__(self) -> None:
        super().__init__({"descriptor": DescriptorRecord, "number": REGISTER_BITS, "failed": 1})


class Counts(data.StructLayout):
    """What a unit and the walkers have to know of the size of a job.

    ``rows`` are those in memory, N * C * H. ``beats``, ``row_beats`` and ``channel_rows`` are the unit's, ``groups`` its
    scales, ``extra`` of them begin in the padding. ``row_pad`` values fill a row of the matrix up to a beat, ``end_pad`` beats
    the job up to a block or a group.
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
    """A descriptor that was looked at. One with ``errors`` cannot be run; one whose record has no place has ``nowhere``."""

    def __init__(self) -> None:
        super().__init__({"fetched": Fetched(), "counts": Counts(), "errors": Errors(), "nowhere": 1})


#: What the engine has to know of a mode: whether values pass in strips and tiles of maps; whether a tensor is one row without
#: channels; whether there are scales, with offsets beside them; whether padding repeats values.
KINDS: Mapping[str, Callable[[Mode], bool]] = {
    "in_tiles": lambda mode: mode.in_tiles and not mode.is_flat,
    "flat": lambda mode: mode.is_flat,
    "has_scales": lambda mode: mode.has_scales,
    "wide": lambda mode: mode.has_offsets,
    "repeats": lambda mode: mode.has_ranges,
}


def kinds(config: CduConfig, mode: Value) -> dict[str, Value]:
    """Which of :data:`KINDS` a mode is, of those that a unit has."""
    return {name: is_one_of(mode, [one for one in config.built_modes if is_so(one)]) for name, is_so in KINDS.items()}


class TensorJob(data.StructLayout):
    """What the walk over a tensor needs of a job; ``in_tiles``, ``flat`` and ``repeats`` are of :data:`KINDS`."""

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
    """What the walk over scales needs of a job; ``wide`` and ``repeats`` are of :data:`KINDS`."""

    def __init__(self) -> None:
        super().__init__(
            {
                **{"address": MEMORY_ADDRESS_BITS, "channels": VALUES_BITS, "groups": COUNT_BITS, "extra": range(BLOCK_SIDE)},
                **dict.fromkeys(("wide", "repeats"), 1),
            }
        )


def tensor_job(target: Any, planned: Any, kind: Mapping[str, Value]) -> list[Any]:
    """What the walk over the tensor of a job is told, a :class:`TensorJob`; ``kind``: which of :data:`KINDS` it is."""
    descriptor = planned["fetched"]["descriptor"]
    return [
        *(target[name].eq(descriptor[name]) for name in ("tensor", "stride_n", "stride_c", "stride_h", "c", "h", "w")),
        *(target[name].eq(kind[name]) for name in ("in_tiles", "flat", "repeats")),
        target["counts"].eq(planned["counts"]),
    ]


def scales_job(target: Any, planned: Any, kind: Mapping[str, Value]) -> list[Any]:
    """What the walk over the scales of a job is told, a :class:`ScalesJob`."""
    descriptor, counts = planned["fetched"]["descriptor"], planned["counts"]
    return [
        target["address"].eq(descriptor["scales"]),
        target["channels"].eq(descriptor["c"]),
        *(target[name].eq(counts[name]) for name in ("groups", "extra")),
        *(target[name].eq(kind[name]) for name in ("wide", "repeats")),
    ]


def payload_segment(target: Any, planned: Any) -> list[Any]:
    """Where the payload of a job lies, a :class:`~cdu.dma.segments.Segment`."""
    descriptor = planned["fetched"]["descriptor"]
    return [
        target["address"].eq(descriptor["payload"]),
        target["bytes"].eq(descriptor["payload_bytes"]),
        target["last"].eq(1),
    ]


def runs(planned: Any) -> Value:
    """Whether nothing is known that keeps a job from being run."""
    can: Value = ~planned["fetched"]["failed"] & ~planned["errors"].as_value().any()
    return can


class Ended(data.StructLayout):
    """A job that the unit has done, or that it never had.

    ``written``: its result goes to memory, and what became of it is still to come; ``cycles`` since its START.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                **{"address": MEMORY_ADDRESS_BITS, "job": REGISTER_BITS, "tag": REGISTER_BITS, "errors": Errors()},
                **{"unit_errors": REGISTER_BITS, "cycles": REGISTER_BITS},
                **dict.fromkeys(("nowhere", "failed", "written"), 1),
            }
        )


class Outcome(data.StructLayout):
    """A record and where it goes; ``nowhere``: it cannot be written; ``failed``: there is none, for there was no descriptor."""

    def __init__(self) -> None:
        super().__init__({"address": MEMORY_ADDRESS_BITS, "record": CompletionRecord, "nowhere": 1, "failed": 1})


#: Bits of the length of a packet in a record.
assert SIZE_BITS == REGISTER_BITS
