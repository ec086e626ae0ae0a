"""Codec with settings given in advance, like the registers of a unit: mode, shift table, bits, scales, point.

Other codecs look at a tensor and then choose scales and bits. Here all of these are a :class:`Setting` derived from earlier
tensors (:mod:`actcodec.policies.bounds.steered`), so that a unit can be configured while the tensor is still being computed.

A setting follows from a *step*, the distance of two levels in units of a channel's largest magnitude. A unit realises it with
powers of two, in its shift tables and in the affine quantiser, and with multipliers as fine as their significand:
``k = 2**shift / step`` gives any step, and the largest shift with which nothing saturates keeps the integers in between as fine
as possible.

DC needs a step of 8 integers to avoid saturation for every block. With steps below 1/16 of the largest magnitude DC may
saturate, which shows in the error: such steps are a kind of setting by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import torch
from cdu_spec import dqt
from cdu_spec.affine import BASE_BITS, CODE_BITS, RECIPROCAL_EXPONENT_LIMIT, AffineSettings
from cdu_spec.bitstream import Header
from cdu_spec.coding import ShiftCoding
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_VALUES
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Coder, Mode
from cdu_spec.reconstruction import MAX_POINT
from cdu_spec.sfpr import SFPR_RECIPROCAL_BITS, VALUE_MAX
from cdu_tools.errors import UserError
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.backends.job import compression_job
from actcodec.backends.named import backend
from actcodec.codecs.codec import JpegGmcCodec, check_input
from actcodec.codecs.compressed import Compressed, Packed
from actcodec.codecs.random_codec import RandomCodec
from actcodec.codecs.tensor_seeds import TensorSeeds
from actcodec.golden.block_shapes import has_blocks
from actcodec.golden.blocks import by_channel
from actcodec.golden.sfpr import channel_maxima, check_scale_bits, reciprocals, rounded_scales


@dataclass(frozen=True)
class ModeKind:
    """Settings that differ only in their step."""

    mode: Mode
    shifts: range = range(1)  #: shifts of jpeg-act, the largest first

    @property
    def least_step(self) -> float:
        """Return the least step in units of the largest magnitude."""
        shift = self.shifts[-1]
        return 2.0**shift / VALUE_MAX * (_error_of_shift(shift) if self.mode is Mode.JPEG_ACT else 1)


#: Kinds by name. A register decides the step of each of them.
KINDS = {
    Mode.SFPR_ZVC.label: ModeKind(Mode.SFPR_ZVC),
    Mode.SFPR.label: ModeKind(Mode.SFPR),
    Mode.JPEG_ACT.label: ModeKind(Mode.JPEG_ACT, range(dqt.MAX_SHIFT, dqt.LEAST_SHIFT - 1, -1)),
    f"{Mode.JPEG_ACT.label} fine": ModeKind(Mode.JPEG_ACT, range(2, 0, -1)),
    Mode.AUTOQUANTZ.label: ModeKind(Mode.AUTOQUANTZ),
}
#: Kind that takes any tensor and any step.
FIRST_KIND = Mode.SFPR_ZVC.label
_MODES = tuple(dict.fromkeys(kind.mode.label for kind in KINDS.values()))
#: Least number of bits of autoquantz; one bit has no code for positive values.
_LEAST_BITS = 2


@dataclass(frozen=True, eq=False)
class Setting:
    """Description of a job for a unit, except for the tensor's shape."""

    mode: Mode
    k: Tensor  #: multipliers as a unit takes them, float32 (channels,), CPU
    shift: int = 0  #: binary logarithm of the table's step, in jpeg-act
    point: int = 0  #: reconstruction point in eighths of a step, in jpeg-act
    bits: int = 0  #: bits per code, in autoquantz

    def __str__(self) -> str:
        if self.mode is Mode.JPEG_ACT:
            return f"{self.mode.label} shift {self.shift} point {self.point}"
        return f"{self.mode.label} {self.bits} bits" if self.bits else self.mode.label


@dataclass
class SteeredCodec(RandomCodec):
    """Codec ``steered``: compresses a tensor of any shape with a given :class:`Setting`; transforms maps with blocks if set.

    Parameters
    ----------
    modes
        Names of the modes of :data:`KINDS` that the unit has; ``sfpr+zvc``, which takes any tensor, must be among them.
    coder
        Coder of jpeg-act: ``gmc``, or ``zvc``, with which units have no reconstruction point.
    seed
        Number, 0 to 2**32 - 1, that the seeds of autoquantz follow from (:class:`~actcodec.codecs.tensor_seeds.TensorSeeds`).
    const_bits, pass1_bits, rounding, scale_bits, backend
        As for :class:`~actcodec.codecs.codec.JpegActCodec`.
    """

    modes: Sequence[str] = _MODES
    coder: str = Coder.GMC.label
    seed: int = 0
    const_bits: int = CduConfig.const_bits
    pass1_bits: int = CduConfig.pass1_bits
    rounding: str = CduConfig.rounding
    scale_bits: int = CduConfig.scale_bits
    backend: str | Backend = "torch"

    name = "steered"
    centred = True

    def __post_init__(self) -> None:
        known = isinstance(self.modes, (list, tuple)) and all(label in _MODES for label in self.modes)
        if not known or FIRST_KIND not in self.modes:
            raise UserError(f"modes = {self.modes!r} is not allowed: use some of {', '.join(_MODES)}, {FIRST_KIND} among them")
        coders = [coder.label for coder in Coder]
        if self.coder not in coders:
            raise UserError(f"coder = {self.coder!r} is not allowed: use {' or '.join(coders)}")
        check_scale_bits(self.scale_bits)
        self._coder = next(coder for coder in Coder if coder.label == self.coder)
        self._precision = CduConfig(const_bits=self.const_bits, pass1_bits=self.pass1_bits, rounding=self.rounding)
        self._seeds = TensorSeeds(self.seed, Mode.AUTOQUANTZ)
        self.arithmetic = backend(self.backend)

    def kinds_of(self, shape: Sequence[int]) -> list[str]:
        """Return the names of the kinds of settings that suit a tensor of this shape."""
        fitting = {label for label in self.modes if label != Mode.JPEG_ACT.label or has_blocks(shape)}
        return [name for name, kind in KINDS.items() if kind.mode.label in fitting]

    def points_of(self, mode: Mode) -> range:
        """Return the reconstruction points that a job of this mode may have."""
        return range(MAX_POINT + 1 if mode is Mode.JPEG_ACT and self._coder is Coder.GMC else 1)

    def first_point(self, mode: Mode) -> int:
        """Return the reconstruction point for the first tensor."""
        return round(JpegGmcCodec.rec * 2 * MAX_POINT) if len(self.points_of(mode)) > 1 else 0

    def largest(self, x: Tensor) -> Tensor:
        """Return the largest magnitude per scale, float64 (scales,), CPU; raise NonFiniteError for NaN and infinity."""
        return self.arithmetic.run(channel_maxima, by_channel(x, scale_view(x.shape))).cpu()

    def setting(self, name: str, step: float, reach: Tensor, point: int = 0) -> Setting:
        """Return the setting for a step.

        Parameters
        ----------
        name
            Name of one of :data:`KINDS`.
        step
            Step in units of ``reach``, positive. If it is too small for 8 bits, the least possible step is used.
        reach
            Magnitudes that must not saturate, float64 (scales,), CPU, positive.
        point
            Reconstruction point in eighths.
        """
        kind = KINDS[name]
        if kind.mode is Mode.AUTOQUANTZ:
            bits = next((bits for bits in CODE_BITS if bits >= _LEAST_BITS and step * _most_code(bits) >= 1), max(CODE_BITS))
            exact = 2.0 ** (BASE_BITS - bits) * min(1 / step, _most_code(bits)) / reach
            k = rounded_scales(exact, self.scale_bits, down=True, exponent_limit=RECIPROCAL_EXPONENT_LIMIT)
            return Setting(kind.mode, k, bits=bits)
        shift, finer = kind.shifts[-1], step
        if kind.mode is Mode.JPEG_ACT:
            fitting = ((shift, step / _error_of_shift(shift)) for shift in kind.shifts)
            shift, finer = next(((s, one) for s, one in fitting if 2**s <= VALUE_MAX * one), (shift, step))
        return Setting(kind.mode, rounded_scales(min(2**shift / finer, VALUE_MAX) / reach, self.scale_bits), shift, point)

    def compress_with(self, x: Tensor, setting: Setting) -> Compressed:
        """Return ``x`` compressed with a setting; raise UserError as :meth:`~actcodec.codecs.codec.Codec.compress` does."""
        form, x, mode = check_input(x), x.detach().contiguous(), setting.mode
        view = MatrixView.of(x.shape, mode)
        if mode.is_affine:
            settings = AffineSettings(setting.bits, BASE_BITS - setting.bits, seed=self._seeds.next())
            payload = self.arithmetic.compress_tensor(x, view, compression_job(view, form, setting.k, how=settings))
            header = Header(mode, form, tuple(x.shape), payload.numel(), how=settings)
            return Compressed(header, (), reciprocals(setting.k).to(x.device), payload)
        r = reciprocals(setting.k, SFPR_RECIPROCAL_BITS).to(x.device)
        if not mode.has_dct:
            payload = self.arithmetic.compress_tensor(x, view, compression_job(view, form, setting.k))
            return Compressed(Header(mode, form, tuple(x.shape), payload.numel()), (), r, payload)
        shifts = (setting.shift,) * BLOCK_VALUES
        bits, how = (self.const_bits, self.pass1_bits), ShiftCoding(self._coder, setting.point)
        job = compression_job(view, form, setting.k, shifts, *bits, self._precision.rounding_mode, how)
        payload = self.arithmetic.compress_tensor(x, view, job)
        header = Header(mode, form, tuple(x.shape), payload.numel(), *bits, how)
        return Compressed(header, shifts, r, payload)

    def compress(self, x: Tensor) -> Compressed:
        """Implement :class:`~actcodec.codecs.codec.Codec`: mode sfpr+zvc, 8 bits with the scales of ``x`` itself."""
        check_input(x)
        largest = positive(self.largest(x.detach().contiguous()))
        return self.compress_with(x, Setting(Mode.SFPR_ZVC, rounded_scales(VALUE_MAX / largest, self.scale_bits)))

    def decompress(self, compressed: Packed) -> Tensor:
        """Implement :class:`~actcodec.codecs.codec.Codec`."""
        return compressed.decompress(self.arithmetic)


def scale_view(shape: Sequence[int]) -> MatrixView:
    """Return the matrix view with the scales that the modes use for this shape."""
    return MatrixView.of(shape, Mode.SFPR_ZVC)


def positive(largest: Tensor) -> Tensor:
    """Return the magnitudes with the least positive number in place of zeros, so that steps can follow from them."""
    return largest.clamp_min(torch.finfo(torch.float32).tiny)


def _most_code(bits: int) -> int:
    """Return the number of steps that signed codes reach on either side of zero."""
    return (1 << (bits - 1)) - 1


def _error_of_shift(shift: int) -> float:
    """Return the factor by which rounding the integers before a transform raises the RMS error of its uniform steps."""
    return sqrt(1 + 4.0**-shift)
