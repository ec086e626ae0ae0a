"""Whether a job can be done at all, before it is queued."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.bitstream import MAX_BLOCK_BYTES, Mode
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, LANES
from cdu_spec.registers import Channel

from cdu.streams import BEATS_BITS

#: Bits of a payload's length.
LENGTH_BITS = 64
#: Rows per block as a shift.
_BLOCK_SHIFT = (BLOCK_SIDE - 1).bit_length()
_BLOCK_COUNT_BITS = BEATS_BITS - _BLOCK_SHIFT
#: Cycles that the checks without a division take: two register stages, and one to hand over.
_SHORT = 3
_LONG = _BLOCK_COUNT_BITS + 1


class JobCheck(wiring.Component):
    """Checks a job's registers. All inputs are constant from ``begin`` until ``done``.

    Parameters
    ----------
    config
        ``modes`` and ``value_format`` are used.
    channel
        Only decompression checks the length of the payload.

    Ports
    -----
    begin
        High for a cycle: check.
    mode, beats, row_beats, channel_rows
        The job, in the terms of :class:`cdu.words.Job`.
    payload_bytes
        Length of the payload, 0 when it is not known; only when decompressing.
    running
        From the cycle after ``begin`` until ``done``.
    done
        High for a cycle, in which the following hold.
    bad_job
        The mode is unknown or not built, a count is 0, or the beats are no whole blocks (modes with ZVC) or strips of 8 matrix
        rows (jpeg-act).
    bad_length
        No payload of that many beats has ``payload_bytes`` bytes.

    ``done`` comes 3 cycles after ``begin``, in mode jpeg-act 30 cycles after it: a serial division finds whether the strips are
    whole.
    """

    begin: Signal
    mode: Signal
    beats: Signal
    row_beats: Signal
    channel_rows: Signal
    payload_bytes: Signal
    running: Signal
    done: Signal
    bad_job: Signal
    bad_length: Signal

    def __init__(self, config: CduConfig, channel: Channel) -> None:
        self.config, self.channel = config, channel
        members: dict[str, wiring.Member] = {
            "begin": In(1),
            "mode": In(Mode),
            "beats": In(BEATS_BITS),
            "row_beats": In(BEATS_BITS),
            "channel_rows": In(BEATS_BITS),
            "running": Out(1),
            "done": Out(1),
            "bad_job": Out(1),
            "bad_length": Out(1),
        }
        if channel is Channel.DECOMPRESS:
            members["payload_bytes"] = In(LENGTH_BITS)
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        mode = Value.cast(self.mode)
        built = sum(1 << mode for mode in self.config.built_modes)
        zvc = sum(1 << mode for mode in Mode if mode.has_zvc)
        tiled = Signal()
        m.d.comb += tiled.eq(self.mode == Mode.JPEG_ACT)

        left = Signal(range(_LONG + 1))
        m.d.comb += [self.running.eq(left != 0), self.done.eq(left == 1)]
        with m.If(self.begin):
            m.d.sync += left.eq(Mux(tiled, _LONG, _SHORT))
        with m.Elif(self.running):
            m.d.sync += left.eq(left - 1)

        zero, partial = Signal(), Signal()
        blocks, block_bits = self.beats[_BLOCK_SHIFT:], self.beats[:_BLOCK_SHIFT]
        m.d.sync += [
            zero.eq((self.beats == 0) | (self.row_beats == 0) | (self.channel_rows == 0)),
            partial.eq(_bit(zvc, mode) & block_bits.any()),
        ]
        remainder = self._remainder(m, blocks)
        m.d.comb += self.bad_job.eq(~_bit(built, mode) | zero | partial | (tiled & remainder.any()))

        if self.channel is Channel.DECOMPRESS:
            self._check_length(m)
        return m

    def _check_length(self, m: Module) -> None:
        """``bad_length``, two cycles after the inputs."""
        # A block of b rows has b mask bytes and at most 8 * b others
        most = Signal(range(MAX_BLOCK_BYTES * (1 << _BLOCK_COUNT_BITS)))
        m.d.sync += most.eq((self.beats << _BLOCK_SHIFT) + self.beats)
        possible, known = Signal(), Signal()
        row_bytes = {Mode.SFPR: LANES, Mode.BRC: 1, Mode.BYPASS: self.config.beat_bits // 8}
        with m.Switch(self.mode):
            for exact, size in row_bytes.items():
                with m.Case(exact):
                    m.d.sync += possible.eq(self.payload_bytes == Cat(Const(0, (size - 1).bit_length()), self.beats))
            with m.Default():
                m.d.sync += possible.eq((self.payload_bytes >= self.beats) & (self.payload_bytes <= most))
        m.d.sync += known.eq(self.payload_bytes.any())
        m.d.comb += self.bad_length.eq(known & ~possible)

    def _remainder(self, m: Module, dividend: Value) -> Signal:
        """``dividend`` modulo ``row_beats`` at ``done`` in mode jpeg-act; restoring division, one bit per cycle."""
        remainder = Signal(_BLOCK_COUNT_BITS)
        if Mode.JPEG_ACT not in self.config.built_modes:
            return remainder
        rest = Signal(_BLOCK_COUNT_BITS)
        trial = Cat(rest[-1], remainder)
        fits = Signal()
        difference = Signal(len(trial))
        m.d.comb += [fits.eq(trial >= self.row_beats), difference.eq(trial - self.row_beats)]
        with m.If(self.begin):
            m.d.sync += [rest.eq(dividend), remainder.eq(0)]
        with m.Elif(self.running & ~self.done):
            # What is left after a subtraction is below the divisor and no greater than the dividend so far
            m.d.sync += [rest.eq(rest << 1), remainder.eq(Mux(fits, difference, trial)[:_BLOCK_COUNT_BITS])]
        return remainder


def _bit(mask: int, number: Value) -> Value:
    """Bit ``number`` of a constant."""
    return Const(mask, 1 << len(number)).bit_select(number, 1)
