"""Check of a job's registers before the job is queued."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from cdu_spec import gmc, latencies
from cdu_spec.affine import BASE_BITS, CODE_BITS
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, LANES, TILE_BLOCKS
from cdu_spec.modes import LOW_BYTES, MAX_BLOCK_BYTES, RANGE_BYTES, Coder, Mode
from cdu_spec.mx import MX_FORMATS, SCALE_BYTES
from cdu_spec.reconstruction import MAX_POINT
from cdu_spec.register_types import Channel, ScaleSource

from cdu.parts.mx_words import BLOCK_ROWS, constant
from cdu.parts.streams import BEATS_BITS
from cdu.words import How, is_gmc, is_one_of

#: Bits of a payload's length.
LENGTH_BITS = 64
#: Logarithm of the rows per block.
_BLOCK_SHIFT = (BLOCK_SIDE - 1).bit_length()
_BLOCK_COUNT_BITS = BEATS_BITS - _BLOCK_SHIFT
#: Logarithm of the rows per block of MX.
_MX_SHIFT = (BLOCK_ROWS - 1).bit_length()


class JobCheck(wiring.Component):
    """Checks a job's registers. All inputs are constant from ``begin`` until ``done``.

    Parameters
    ----------
    config
        ``modes``, ``coders`` and ``value_format`` are used.
    channel
        Only decompression checks the length of the payload.

    Ports
    -----
    begin
        High for a cycle: start a check.
    mode, beats, row_beats, channel_rows, how
        The job's parameters, as in :class:`cdu.words.Job`.
    beyond
        A count in the registers is wider than the job's field.
    scales
        MODE.scales.
    payload_bytes
        Length of the payload in bytes, 0 if unknown; only when decompressing.
    running
        From the cycle after ``begin`` until ``done``.
    done
        High for a cycle, in which the results below are valid.
    bad_job
        The mode is unknown or not built, a count is 0 or ``beyond``, or the beats are not whole blocks (modes with masks, and
        mx) or not whole strips of 8 matrix rows (modes in tiles). actnn: a row is not 4 beats. Affine modes: bits and
        step_log2 add up to more than 16, or step_log2 is 0 in division with the channel's range. jpeg-act: the coder is not
        built, or the point is beyond half a step. mx: the format does not exist. ``scales`` is no
        :class:`~cdu_spec.register_types.ScaleSource`.
    bad_length
        No payload of that many beats has ``payload_bytes`` bytes.

    Latency: ``done`` comes 3 cycles after ``begin``, in modes with tiles 24 cycles after it, as a serial division checks that
    the strips are whole.
    """

    begin: Signal
    mode: Signal
    beats: Signal
    row_beats: Signal
    channel_rows: Signal
    beyond: Signal
    how: Any
    scales: Signal
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
            "beyond": In(1),
            "how": In(How()),
            "scales": In(max(ScaleSource).bit_length()),
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
        m.d.comb += tiled.eq(is_one_of(self.mode, [mode for mode in self.config.built_modes if mode.in_tiles]))

        left = Signal(range(latencies.JOB_CHECK_IN_TILES + 1))
        m.d.comb += [self.running.eq(left != 0), self.done.eq(left == 1)]
        with m.If(self.begin):
            m.d.sync += left.eq(Mux(tiled, latencies.JOB_CHECK_IN_TILES, latencies.JOB_CHECK))
        with m.Elif(self.running):
            m.d.sync += left.eq(left - 1)

        unfit_count = Signal()
        partial = Signal()
        blocks, block_bits = self.beats[_BLOCK_SHIFT:], self.beats[:_BLOCK_SHIFT]
        m.d.sync += [
            unfit_count.eq((self.beats == 0) | (self.row_beats == 0) | (self.channel_rows == 0) | self.beyond),
            partial.eq(_bit(zvc, mode) & block_bits.any()),
        ]
        if self.config.has_mx:
            with m.If(self.mode == Mode.MX):
                m.d.sync += partial.eq(self.beats[:_MX_SHIFT].any())
        remainder = self._remainder(m, blocks)
        unfit: Value = self._unfit(m) if self.config.has_affine else Const(0)
        if self.config.has_gmc:
            unfit |= self._uncodable(m)
        if self.config.has_mx:
            unfit |= self._unknown_format(m)
        no_source = self.scales > max(ScaleSource)
        m.d.comb += self.bad_job.eq(~_bit(built, mode) | unfit_count | partial | (tiled & remainder.any()) | unfit | no_source)

        if self.channel is Channel.DECOMPRESS:
            self._check_length(m)
        return m

    def _check_length(self, m: Module) -> None:
        """Drive ``bad_length``, two cycles after the inputs, three in mode mx."""
        longest = max(MAX_BLOCK_BYTES, gmc.MAX_BLOCK_BYTES if self.config.has_gmc else 0)
        least: Value = self.beats
        most = Signal(range(longest * (1 << _BLOCK_COUNT_BITS)), reset_less=True)
        m.d.sync += most.eq(self._rows() + self._besides())
        if self.config.has_gmc:
            blocks = self.beats[_BLOCK_SHIFT:]
            headed = is_gmc(self.config, self.mode, self.how)
            least = Mux(headed, gmc.MIN_BLOCK_BYTES * blocks, self.beats)
            with m.If(headed):
                m.d.sync += most.eq(gmc.MAX_BLOCK_BYTES * blocks)
        if self.config.has_mx:
            mx_bytes = self._mx_bytes(m)
            with m.If(self.mode == Mode.MX):
                m.d.sync += most.eq(mx_bytes)
        possible = Signal()
        known = Signal()
        row_bytes = {Mode.SFPR: LANES, Mode.BRC: 1, Mode.BYPASS: self.config.beat_bits // 8}
        exactly = [mode for mode in _affine(self.config) if not mode.has_zvc] + ([Mode.MX] if self.config.has_mx else [])
        with m.Switch(self.mode):
            for exact, size in row_bytes.items():
                with m.Case(exact):
                    m.d.sync += possible.eq(self.payload_bytes == Cat(Const(0, (size - 1).bit_length()), self.beats))
            if exactly:
                with m.Case(*exactly):
                    m.d.sync += possible.eq(self.payload_bytes == most)
            with m.Default():
                m.d.sync += possible.eq((self.payload_bytes >= least) & (self.payload_bytes <= most))
        m.d.sync += known.eq(self.payload_bytes.any())
        m.d.comb += self.bad_length.eq(known & ~possible)

    def _rows(self) -> Value:
        """Return the maximum of the bytes of the values of all rows; a value has a byte, in affine modes the bits of a code."""
        rows = self.beats << (LANES - 1).bit_length()
        if not self.config.has_affine:
            return rows
        return Mux(is_one_of(self.mode, _affine(self.config)), self.beats << self.how["affine"]["bits_log2"], rows)

    def _besides(self) -> Value:
        """Return the bytes of all masks (one bit per value) or of all ranges."""
        masks = self.beats
        if not self.config.has_affine:
            return masks
        blocks, division = self.beats[_BLOCK_SHIFT:], self.mode == Mode.DIVISION
        heads = Mux(self.how["affine"]["block_range"], blocks * RANGE_BYTES, blocks * LOW_BYTES)
        # Four blocks share a range
        groups = blocks[(TILE_BLOCKS - 1).bit_length() :] * RANGE_BYTES
        unmasked = is_one_of(self.mode, (Mode.BLPA, Mode.AUTOQUANT))
        return Mux(division, heads, Mux(self.mode == Mode.ACTNN, groups, Mux(unmasked, 0, masks)))

    def _unfit(self, m: Module) -> Signal:
        """Return whether the affine mode does not allow the quantiser or the row length, one cycle after the inputs."""
        step, bits_log2 = self.how["affine"]["step_log2"], self.how["affine"]["bits_log2"]
        beyond = Signal()
        unfit = Signal()
        with m.Switch(bits_log2):
            for number, bits in enumerate(CODE_BITS):
                most = BASE_BITS - bits
                if most < (1 << len(step)) - 1:
                    with m.Case(number):
                        m.d.comb += beyond.eq(step > most)
        affine = is_one_of(self.mode, _affine(self.config))
        statistics = self.how["affine"]["statistics"]
        halved = (self.mode == Mode.DIVISION) & ~self.how["affine"]["block_range"]
        # Nothing can be decompressed from statistics.
        misplaced = affine & ~halved if self.channel is Channel.COMPRESS else affine
        m.d.sync += unfit.eq(
            (affine & beyond)
            | (halved & ~statistics & (step == 0))
            | (misplaced & statistics)
            | ((self.mode == Mode.ACTNN) & (self.row_beats != TILE_BLOCKS))
        )
        return unfit

    def _uncodable(self, m: Module) -> Signal:
        """Return whether jpeg-act is not built with the coder, or does not allow the point, one cycle after the inputs."""
        coded = self.how["shifts"]
        uncodable = Signal()
        unbuilt = Const(0) if Coder.ZVC in self.config.built_coders else coded["coder"] == Coder.ZVC
        m.d.sync += uncodable.eq((self.mode == Mode.JPEG_ACT) & (unbuilt | (coded["point"] > MAX_POINT)))
        return uncodable

    def _unknown_format(self, m: Module) -> Signal:
        """Return whether the format of mode mx does not exist, one cycle after the inputs."""
        unknown = Signal()
        m.d.sync += unknown.eq((self.mode == Mode.MX) & (self.how["mx"]["format"] >= len(MX_FORMATS)))
        return unknown

    def _mx_bytes(self, m: Module) -> Value:
        """Return the bytes of the blocks of mode mx, one cycle after the inputs: 32 or 16, 8 and 1 times their number."""
        blocks, format_number = self.beats[_MX_SHIFT:], self.how["mx"]["format"]
        codes = constant(m, format_number, lambda kind: kind.block_bytes - SCALE_BYTES, "code_bytes")
        assert all(kind.block_bytes - SCALE_BYTES in (16, 24, 32) for kind in MX_FORMATS.values())
        besides = Signal(len(blocks) + 4, reset_less=True)
        m.d.sync += besides.eq(blocks + Mux(codes[3], blocks << 3, 0))
        return Mux(codes[5], blocks << 5, blocks << 4) + besides

    def _remainder(self, m: Module, dividend: Value) -> Signal:
        """Return ``dividend`` modulo ``row_beats``, valid at ``done`` in modes with tiles; restoring, one bit per cycle."""
        remainder = Signal(_BLOCK_COUNT_BITS, reset_less=True)
        if not self.config.has_tiles:
            return remainder
        rest = Signal(_BLOCK_COUNT_BITS, reset_less=True)
        trial = Cat(rest[-1], remainder)
        fits = Signal()
        difference = Signal(len(trial))
        m.d.comb += [fits.eq(trial >= self.row_beats), difference.eq(trial - self.row_beats)]
        with m.If(self.begin):
            m.d.sync += [rest.eq(dividend), remainder.eq(0)]
        with m.Elif(self.running & ~self.done):
            # The remainder after a subtraction is less than the divisor and at most the bits of the dividend taken so far
            m.d.sync += [rest.eq(rest << 1), remainder.eq(Mux(fits, difference, trial)[:_BLOCK_COUNT_BITS])]
        return remainder


def _affine(config: CduConfig) -> list[Mode]:
    """Return the affine modes that are built in."""
    return [mode for mode in config.built_modes if mode.is_affine]


def _bit(mask: int, number: Value) -> Value:
    """Return bit ``number`` of a constant."""
    return Const(mask, 1 << len(number)).bit_select(number, 1)
