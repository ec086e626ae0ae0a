"""Check of the ranges with which blocks of a payload begin."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Const, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.affine import BASE_BITS, CODE_BITS, MANTISSA_BITS, MAX_EXPONENT
from cdu_spec.config import CduConfig
from cdu_spec.modes import Mode

from cdu.words import BlockTag, Range

#: Greatest integer that a block may have (docs/reference/bitstream.md, section 7).
MOST_INTEGER = (1 << BASE_BITS) - 1


class HeadCheck(wiring.Component):
    """Check the range of each block in division with the block's range and in actnn.

    The rules are those of docs/reference/bitstream.md, section 7.

    Parameters
    ----------
    config
        ``modes`` are used; at least one of them has ranges.

    Ports
    -----
    passes
        High for a cycle when a block passes the check's inputs.
    tag, range
        :class:`~cdu.words.BlockTag` and :class:`~cdu.words.Range` of that block.
    bad_head
        High for a cycle, 3 cycles later: m is 0, e is above 9, or Z + B * m * 2**e is above 65535.
    """

    passes: Signal
    tag: Any
    range: Any
    bad_head: Signal

    latency = 3

    def __init__(self, config: CduConfig) -> None:
        self.config = config
        super().__init__({"passes": In(1), "tag": In(BlockTag()), "range": In(Range()), "bad_head": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        channel = self._channel_range()
        checked1 = Signal()
        bits_log2 = Signal.like(self.tag["how"]["affine"]["bits_log2"])
        range1: Any = Signal(Range())
        m.d.sync += [
            checked1.eq(self.passes & self.tag["heads"] & ~channel),
            range1.eq(self.range),
            bits_log2.eq(self.tag["how"]["affine"]["bits_log2"]),
        ]

        # 2: B * m, without a multiplier, as B = 2**bits - 1
        mantissa = range1["mantissa"]
        spread = Signal(MANTISSA_BITS + max(CODE_BITS))
        checked2 = Signal()
        low2 = Signal.like(range1["low"])
        exponent2 = Signal.like(range1["exponent"])
        wrong2 = Signal()
        with m.Switch(bits_log2):
            for number, bits in enumerate(CODE_BITS):
                with m.Case(number):
                    m.d.sync += spread.eq((mantissa << bits) - mantissa)
        m.d.sync += [
            checked2.eq(checked1),
            low2.eq(range1["low"]),
            exponent2.eq(range1["exponent"]),
            wrong2.eq((mantissa == 0) | (range1["exponent"] > MAX_EXPONENT)),
        ]

        # 3: Z + B * m * 2**e
        m.d.sync += self.bad_head.eq(checked2 & (wrong2 | ((low2 + (spread << exponent2)) > MOST_INTEGER)))
        return m

    def _channel_range(self) -> Value:
        """Return whether the block begins with its mean instead of a range."""
        if Mode.DIVISION not in self.config.built_modes:
            return Const(0, 1)
        channel: Value = (self.tag["mode"] == Mode.DIVISION) & ~self.tag["how"]["affine"]["block_range"]
        return channel
