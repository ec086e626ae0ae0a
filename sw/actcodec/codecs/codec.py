"""Codecs: how a tensor is compressed. Here those of JPEG-ACT, and the baselines.

Decoding needs no codec: a :class:`~actcodec.codecs.compressed.Compressed` has everything in it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from cdu_spec import dqt as tables
from cdu_spec.bitstream import JPEG_GMC, MAX_RANK, Coder, Dtype, Header, MatrixView, Mode
from cdu_spec.config import CduConfig
from cdu_spec.reconstruction import STEP_POINTS, point_of
from cdu_spec.sfpr import DEFAULT_S, GREATEST_S, LEAST_S, PUBLISHED_S
from cdu_tools.errors import UserError
from torch import Tensor

from actcodec.backends.backend import Backend, backend
from actcodec.backends.job import FORMATS, compression_job, payload_shifts
from actcodec.codecs.compressed import Compressed, Packed, RawCopy
from actcodec.codecs.jpeg.block_codec import BlockCodec
from actcodec.codecs.tensor_kinds import QUANTISED, kind_of
from actcodec.golden.blocks import by_channel
from actcodec.golden.sfpr import channel_maxima, check_nonfinite_policy, scales_of


class Codec(ABC):
    """One way to compress a tensor."""

    name: str
    #: Whether a reconstruction is zero where the values are and nowhere else, so that ReLU needs no signs beside it.
    keeps_zeros: bool = False
    #: Whether it keeps nothing but which values are positive.
    signs_only: bool = False
    #: Whether channels far from zero are to be centred before it (:mod:`actcodec.codecs.centring`): what it keeps of a value is
    #: only near the value.
    centred: bool = False
    #: Whether a reconstruction is the tensor to the last bit.
    lossless: bool = False

    @abstractmethod
    def compress(self, x: Tensor) -> Packed:
        """The compressed form of ``x``; ``x`` is not changed. UserError for tensors that the codec cannot take."""

    @abstractmethod
    def decompress(self, compressed: Packed) -> Tensor:
        """The reconstructed tensor: original shape, dtype and device."""

    def takes(self, shape: Sequence[int]) -> bool:
        """Whether :meth:`compress` takes tensors of this shape."""
        return 1 <= len(shape) <= MAX_RANK and prod(shape) > 0

    def fits(self, shape: Sequence[int]) -> bool:
        """Whether policies give the codec tensors of this shape: what it takes, but for maps that its paper finds too small."""
        return self.takes(shape)

    def set_epoch(self, epoch: int) -> None:
        """Tell the codec how many epochs of training are over; only schedules care."""
        del epoch

    def restart(self, seed: int) -> None:
        """Begin again with the random numbers of a run, so that the run can be repeated; only stochastic rounding cares."""
        del seed

    def state_dict(self) -> dict[str, Any]:
        """What goes from one tensor to the next, as plain values: place in the random numbers, epoch of a schedule."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where a codec of the same name and options was."""
        del state


@dataclass
class NoCodec(Codec):
    """``none``: an exact copy in memory, the baseline."""

    name = "none"
    keeps_zeros = True
    lossless = True

    def compress(self, x: Tensor) -> RawCopy:
        """See :class:`Codec`."""
        if x.is_quantized:  # torch copies some kinds of them only
            raise UserError(f"cannot compress {QUANTISED.name}: {QUANTISED.remedy}")
        return RawCopy(x.detach().clone())

    def decompress(self, compressed: Packed) -> Tensor:
        """See :class:`Codec`."""
        return compressed.decompress()


@dataclass
class BrcCodec(Codec):
    """``brc``: one bit per value, ``x > 0``; decodes to 1.0 and 0.0.

    Parameters
    ----------
    nonfinite
        ``raise`` refuses NaN and infinity; ``saturate`` takes their sign, NaN counting as not positive.
    backend
        ``torch``, or an object derived from Backend.
    """

    nonfinite: str = "raise"
    backend: str | Backend = "torch"

    name = Mode.BRC.label
    signs_only = True

    def __post_init__(self) -> None:
        check_nonfinite_policy(self.nonfinite)
        self._backend = backend(self.backend)

    def compress(self, x: Tensor) -> Compressed:
        """See :class:`Codec`."""
        form = check_input(x)
        if self.nonfinite == "raise":
            check_finite(x, self._backend.channel_maxima)
        return _without_scales(x, Mode.BRC, form, self._backend)

    def decompress(self, compressed: Packed) -> Tensor:
        """See :class:`Codec`."""
        return compressed.decompress(self._backend)


@dataclass
class BypassCodec(Codec):
    """``bypass``: the values themselves, NaN and infinity included, in a stream.

    Parameters
    ----------
    backend
        ``torch``, or an object derived from Backend.
    """

    backend: str | Backend = "torch"

    name = Mode.BYPASS.label
    keeps_zeros = True
    lossless = True

    def __post_init__(self) -> None:
        self._backend = backend(self.backend)

    def compress(self, x: Tensor) -> Compressed:
        """See :class:`Codec`."""
        return _without_scales(x, Mode.BYPASS, check_input(x), self._backend)

    def decompress(self, compressed: Packed) -> Tensor:
        """See :class:`Codec`."""
        return compressed.decompress(self._backend)


@dataclass
class SfprCodec(Codec):
    """``sfpr``: 8 bits per value with one scale per channel.

    Parameters
    ----------
    S
        Target of the largest magnitude of a channel in units of full scale (paper: S), positive. JPEG-ACT has 1.125.
    scale_bits
        Significand bits of the multiplier: 24, 11 or 8.
    nonfinite
        ``raise`` refuses NaN and infinity; ``saturate`` turns NaN into 0 and infinity into the largest value.
    backend
        ``torch``, or an object derived from Backend.
    """

    S: float = DEFAULT_S
    scale_bits: int = CduConfig.scale_bits
    nonfinite: str = "raise"
    backend: str | Backend = "torch"

    name = Mode.SFPR.label
    centred = True
    mode = Mode.SFPR
    coder = Coder.ZVC

    def __post_init__(self) -> None:
        check_s(self.S)
        check_nonfinite_policy(self.nonfinite)
        self._precision()
        self._backend = backend(self.backend)

    def _precision(self) -> CduConfig:
        """The configuration of a unit for this codec; ConfigError when there is none."""
        return CduConfig(scale_bits=self.scale_bits)

    def compress(self, x: Tensor) -> Compressed:
        """See :class:`Codec`."""
        form = check_input(x)
        self._check_shape(x.shape)
        x = x.detach().contiguous()
        view = MatrixView.of(x.shape, self.mode)
        largest = self._backend.channel_maxima(by_channel(x, view), self.nonfinite)
        k, r = scales_of(largest, self.S, self.scale_bits, x.dtype)
        precision = self._precision() if self.mode.has_dct else None
        bits = (precision.const_bits, precision.pass1_bits) if precision else (0, 0)
        shifts = self._shifts()
        rounding = precision.rounding_mode if precision else None
        job = compression_job(view, form, k, shifts, *bits, rounding, coder=self.coder)
        payload = self._backend.compress_tensor(x, view, job)
        header = Header(
            self.mode, form, tuple(x.shape), payload.numel(), *bits, coder=self.coder, point=self._reconstruction_point()
        )
        return Compressed(header, shifts, r, payload)

    def decompress(self, compressed: Packed) -> Tensor:
        """See :class:`Codec`."""
        return compressed.decompress(self._backend)

    def _check_shape(self, shape: Sequence[int]) -> None:
        """UserError for shapes beyond what every codec takes."""

    def _shifts(self) -> tuple[int, ...]:
        """Shifts in payload order."""
        return ()

    def _reconstruction_point(self) -> int:
        """In eighths of a step."""
        return 0


@dataclass
class SfprZvcCodec(SfprCodec):
    """``sfpr+zvc``: SFPR, then zeros cost one bit. Parameters as for :class:`SfprCodec`."""

    name = Mode.SFPR_ZVC.label
    mode = Mode.SFPR_ZVC


@dataclass
class JpegActCodec(BlockCodec, SfprCodec):
    """``jpeg-act``: SFPR, 8x8 DCT, shift quantiser, ZVC, with the published S. Takes (N, C, H, W).

    Policies give it maps with W >= 8 and N * C * H >= 8; smaller ones are mostly padding.

    Parameters beyond those of :class:`SfprCodec`:

    dqt
        ``optL``, ``optH``, ``optsL``, ``optsH``, ``searchsH``, ``imageQ`` with Q from 1 to 100, ``optLH``: optL before epoch 5,
        optH from it on (see :meth:`set_epoch`); the path of a ``.json`` file that ``cdu dqt`` wrote, or 64 divisors 1..255, row
        after row. A divisor becomes the nearest power of two, 8 at least: with less coefficients would saturate.
    const_bits, pass1_bits
        Precision of the DCT.
    rounding
        Of the shift quantiser, ``half_away`` or ``trunc``.
    rec
        Reconstruction point: what a decoder adds to the magnitudes of coefficients that are not zero, in steps: 0, as
        published, 1/8, 1/4, 3/8 or 1/2. It costs no byte, and with ``trunc`` 3/8 is nearer than 0.
    """

    S: float = PUBLISHED_S
    dqt: str | Sequence[int] = "optL"
    const_bits: int = CduConfig.const_bits
    pass1_bits: int = CduConfig.pass1_bits
    rounding: str = CduConfig.rounding
    rec: float = 0.0

    name = Mode.JPEG_ACT.label
    mode = Mode.JPEG_ACT

    def __post_init__(self) -> None:
        self._check_table()
        try:
            self._shifts()
        except ValueError as error:
            raise UserError(str(error)) from None
        self._reconstruction_point()
        super().__post_init__()

    def _precision(self) -> CduConfig:
        return CduConfig(
            scale_bits=self.scale_bits, const_bits=self.const_bits, pass1_bits=self.pass1_bits, rounding=self.rounding
        )

    def _shifts(self) -> tuple[int, ...]:
        return payload_shifts(tables.shifts(self.table))

    def _reconstruction_point(self) -> int:
        return point_of(self.rec)


@dataclass
class JpegGmcCodec(JpegActCodec):
    """``jpeg-gmc``: jpeg-act with GMC, an entropy coder, in place of ZVC. Parameters as for :class:`JpegActCodec`.

    Where that codec has what is published, this one has what is better: an S that saturates nothing, a uniform table and a
    reconstruction point.
    """

    S: float = DEFAULT_S
    dqt: str | Sequence[int] = "uniform-16"
    rec: float = 3 / STEP_POINTS

    name = JPEG_GMC
    coder = Coder.GMC


def _without_scales(x: Tensor, mode: Mode, form: Dtype, through: Backend) -> Compressed:
    """A tensor in a mode that has neither scales nor a shift table."""
    view = MatrixView.of(x.shape, mode)
    none = torch.zeros(0, dtype=torch.float32, device=x.device)
    payload = through.compress_tensor(x.detach(), view, compression_job(view, form, none))
    return Compressed(Header(mode, form, tuple(x.shape), payload.numel()), (), none, payload)


def check_s(S: float) -> None:  # noqa: N803
    """UserError for an S that is no number from :data:`~cdu_spec.sfpr.LEAST_S` to :data:`~cdu_spec.sfpr.GREATEST_S`."""
    if isinstance(S, bool) or not isinstance(S, (int, float)) or not LEAST_S <= S <= GREATEST_S:
        raise UserError(f"S = {S!r} is not allowed: use a number from {LEAST_S:g} to {GREATEST_S:g}")


def check_input(x: Tensor) -> Dtype:
    """The number format of a tensor that can be compressed; UserError for any other."""
    if not isinstance(x, Tensor):
        raise UserError(f"cannot compress a {type(x).__name__}: use a torch tensor")
    kind = kind_of(x)
    if kind is not None:
        raise UserError(f"cannot compress {kind.name}: {kind.remedy}")
    if x.dtype not in FORMATS:
        dtype = str(x.dtype).removeprefix("torch.")
        raise UserError(f"cannot compress a tensor of dtype {dtype}: use float32, bfloat16 or float16")
    if x.numel() == 0:
        raise UserError(f"cannot compress the empty tensor of shape {tuple(x.shape)}: every extent must be 1 or more")
    if not 1 <= x.ndim <= MAX_RANK:
        raise UserError(f"cannot compress a tensor of rank {x.ndim}: reshape it to a rank from 1 to {MAX_RANK}")
    return FORMATS[x.dtype]


def check_finite(x: Tensor, maxima: Callable[[Tensor], Tensor] = channel_maxima) -> None:
    """NonFiniteError when there is NaN or infinity; ``maxima``, a backend's :meth:`Backend.channel_maxima`, looks for it."""
    channels = x.detach().reshape(x.shape[0], x.shape[1], -1) if x.ndim > 1 else x.detach().reshape(1, 1, -1)
    maxima(channels)
