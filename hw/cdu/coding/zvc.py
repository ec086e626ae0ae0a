"""ZVC, zero-value compression: a mask of the non-zero values of a block, then these values (JPEG-ACT, "ZVC")."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from cdu_spec.geometry import LANES, VALUE_BITS


def popcount(mask: Value) -> Value:
    """Return the number of set bits, in as many bits as the greatest number needs."""
    return sum((bit for bit in mask[1:]), start=mask[0])[: len(mask).bit_length()]


def ranks(m: Module, mask: Value) -> list[Signal]:
    """For every lane the number of set mask bits before it, that is its place among the bytes that are kept."""
    places = [Signal(range(lane + 1), name=f"rank{lane}") for lane in range(LANES)]
    m.d.comb += [place.eq(popcount(mask[:lane])) for lane, place in enumerate(places) if lane]
    return places


def compact(m: Module, row: Value, mask: Value) -> Value:
    """The bytes of a row whose mask bit is set, moved to the front; zeros behind them."""
    places = ranks(m, mask)

    def kept(place: int) -> Value:
        candidates = (
            Mux(mask[lane] & (places[lane] == place), row.word_select(lane, VALUE_BITS), 0) for lane in range(place, LANES)
        )
        return reduce(or_, candidates)

    return Cat(*(kept(place) for place in range(LANES)))


def expand(m: Module, packed: Value, mask: Value) -> list[Value]:
    """The inverse of :func:`compact`: one signed value per lane, zero where the mask bit is clear."""
    return [
        Mux(mask[lane], packed[: (lane + 1) * VALUE_BITS].word_select(place, VALUE_BITS), 0).as_signed()
        for lane, place in enumerate(ranks(m, mask))
    ]
