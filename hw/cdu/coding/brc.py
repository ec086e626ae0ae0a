"""BRC, binary ReLU compression: one bit per value (GIST; JPEG-ACT, "BRC")."""

from __future__ import annotations

from amaranth.hdl import Cat, Value
from amaranth.lib import data
from cdu_spec.geometry import LANES


def encode_row(values: data.View[data.ArrayLayout]) -> Value:
    """The byte of a row of 8 values that are 0 or 1, value 0 in the lowest bit."""
    return Cat(*(values[lane][0] for lane in range(LANES)))


def decode_row(byte: Value) -> list[Value]:
    """The 8 values, 0 or 1, of a byte."""
    return [byte[lane] for lane in range(LANES)]
