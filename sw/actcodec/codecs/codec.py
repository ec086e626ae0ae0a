"""Interface of codecs, which compress tensors, and the codecs of JPEG-ACT and the exact baselines.

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
from cdu_spec.bitstream import MAX_RANK, Header
from cdu_spec.coding import How, ShiftCoding
from cdu_spec.config import CduConfig
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import JPEG_GMC, Coder, Dtype, Mode
from cdu_spec.reconstruction import STEP_POINTS, point_of
from cdu_spec.sfpr import DEFAULT_S, GREATEST_S, LEAST_S, PUBLISHED_S
from cdu_tools.errors import UserError
from cdu_tools.numbers import is_real
from cdu_tools.texts import extents
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.backends.job import FORMATS, Job, Scaling, compression_job, payload_shifts
from actcodec.backends.named import backend
from actcodec.backends.near_zero import begin_scaled, tells_channels
from actcodec.backends.torch_backend import TorchBackend
from actcodec.codecs.compressed import Compressed, Packed, RawCopy
from actcodec.codecs.jpeg.block_codec import BlockCodec
from actcodec.codecs.tensor_kinds import QUANTISED, kind_of
from actcodec.golden.blocks import by_channel
from actcodec.golden.dtype_names import dtype_name
from actcodec.golden.sfpr import NonFiniteError, channel_maxima, check_nonfinite_policy, scales_of


class Codec(ABC):
    """Compression method for tensors."""

    name: str
    #: True if a reconstruction is zero exactly where the values are, so that ReLU needs no signs beside it.
    keeps_zeros: bool = False
    #: True if only the set of positive values is kept.
    signs_only: bool = False
    #: True if channels far from zero are to be centred first (:mod:`actcodec.codecs.centring`), because reconstructions are
    #: only near the values.
    centred: bool = False
    #: True if reconstructions equal the tensor to the last bit.
    lossless: bool = False

    @abstractmethod
    def compress(self, x: Tensor) -> Packed:
        """Return the compressed form of ``x``, which is not changed; raise UserError for tensors that the codec cannot take."""

    def compress_near_zero(self, x: Tensor) -> Packed | None:
        """Return :meth:`compress` of ``x`` if it is certain that no channel is far from zero and kernels tell; else None."""
        end = self.begin(x)
        return None if end is None else end()

    def begin(self, x: Tensor) -> Callable[[], Packed | None] | None:
        """Begin to compress ``x`` on a device that computes beside the host; return the function that ends it.

        That function waits for what was launched until now, and returns None if values have to be seen again: not all are
        finite, or a channel may be far from zero. None for codecs and devices that compress as a whole, and for subclasses with
        a :meth:`compress` of their own.
        """
        del x
        return None

    @abstractmethod
    def decompress(self, compressed: Packed) -> Tensor:
        """Return the reconstructed tensor in the original shape, in the original dtype and on the original device."""

    def takes(self, shape: Sequence[int]) -> bool:
        """Return whether :meth:`compress` takes tensors of this shape."""
        return 1 <= len(shape) <= MAX_RANK and prod(shape) > 0

    def fits(self, shape: Sequence[int]) -> bool:
        """Return whether policies use the codec for tensors of this shape.

        The answer is that of :meth:`takes`, except for maps that are too small according to the codec's paper.
        """
        return self.takes(shape)

    def takes_dtype(self, dtype: torch.dtype) -> bool:
        """Return whether :meth:`compress` takes tensors of this number format; policies keep all others exactly."""
        return dtype in FORMATS

    def set_epoch(self, epoch: int) -> None:
        """Set the number of training epochs that are over; only codecs with a schedule use it."""
        del epoch

    def restart(self, seed: int) -> None:
        """Restart the codec's random numbers from a seed, so that a run can be repeated; only stochastic rounding uses them."""
        del seed

    def state_dict(self) -> dict[str, Any]:
        """Return the state that passes from one tensor to the next, as plain values; empty for codecs without one."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from the state of a codec of the same name and options."""
        del state


@dataclass
class NoCodec(Codec):
    """Codec ``none``: keeps an exact copy in memory; the baseline."""

    name = "none"
    keeps_zeros = True
    lossless = True

    def compress(self, x: Tensor) -> RawCopy:
        """Implement :class:`Codec`."""
        if x.is_quantized:  # torch can clone only some kinds of quantised tensors
            raise UserError(f"cannot compress {QUANTISED.name}: {QUANTISED.remedy}")
        return RawCopy(x.detach().clone())

    def takes_dtype(self, dtype: torch.dtype) -> bool:
        """Return True."""
        return True

    def decompress(self, compressed: Packed) -> Tensor:
        """Implement :class:`Codec`."""
        return compressed.decompress()


@dataclass
class BrcCodec(Codec):
    """Codec ``brc``: keeps one bit per value, ``x > 0``, and decodes it to 1.0 or 0.0.

    Parameters
    ----------
    nonfinite
        ``raise`` refuses NaN and infinity; ``saturate`` takes their sign and counts NaN as not positive.
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
        """Implement :class:`Codec`."""
        form = check_input(x)
        if self.nonfinite == "raise":
            check_finite(x, self._backend)
        return _without_scales(x, Mode.BRC, form, self._backend)

    def begin(self, x: Tensor) -> Callable[[], Compressed | None] | None:
        """Implement :class:`Codec`."""
        may_begin = self.nonfinite == "raise" and type(self).compress is BrcCodec.compress
        are_finite = self._backend.begin_finite(x) if may_begin else None
        if are_finite is None:
            return None
        packed = _without_scales(x, Mode.BRC, check_input(x), self._backend)
        return lambda: packed if are_finite() else None

    def decompress(self, compressed: Packed) -> Tensor:
        """Implement :class:`Codec`."""
        return compressed.decompress(self._backend)


@dataclass
class BypassCodec(Codec):
    """Codec ``bypass``: stores the values themselves, NaN and infinity included, in a stream.

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
        """Implement :class:`Codec`."""
        return _without_scales(x, Mode.BYPASS, check_input(x), self._backend)

    def decompress(self, compressed: Packed) -> Tensor:
        """Implement :class:`Codec`."""
        return compressed.decompress(self._backend)


@dataclass
class SfprCodec(Codec):
    """Codec ``sfpr``: stores 8 bits per value with one scale per channel.

    Parameters
    ----------
    S
        Target of a channel's largest magnitude in units of full scale (paper: S), positive. JPEG-ACT uses 1.125.
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
        self._unit = self._precision()
        self._backend = backend(self.backend)

    def _precision(self) -> CduConfig:
        """Return the configuration of a unit for this codec; raise ConfigError if there is none."""
        return CduConfig(scale_bits=self.scale_bits)

    def compress(self, x: Tensor) -> Compressed:
        """Implement :class:`Codec`."""
        x, view, scaling = self._begun(x)
        at_once = self._backend.compress_scaled(x, view, scaling, near_zero=False)
        if at_once is None:
            largest = finite_maxima(x, by_channel(x, view), self.nonfinite, self._backend)
            k, r = self._backend.run(scales_of, largest, self.S, self.scale_bits, x.dtype)
            at_once = self._backend.compress_tensor(x, view, scaling.job(k)), r
        return self._compressed(x, *at_once)

    def compress_near_zero(self, x: Tensor) -> Compressed | None:
        """Implement :class:`Codec`; None for a subclass with a :meth:`compress` of its own."""
        x, view, scaling = self._begun(x)
        if not tells_channels(x, view) or type(self).compress is not SfprCodec.compress:
            return None
        at_once = self._backend.compress_scaled(x, view, scaling, near_zero=True)
        return None if at_once is None else self._compressed(x, *at_once)

    def begin(self, x: Tensor) -> Callable[[], Compressed | None] | None:
        """Implement :class:`Codec`."""
        if type(self).compress is not SfprCodec.compress:
            return None
        x, view, scaling = self._begun(x)
        end = begin_scaled(self._backend, x, view, scaling)
        if end is None:
            return None

        def compressed() -> Compressed | None:
            at_once = end()
            return None if at_once is None else self._compressed(x, *at_once)

        return compressed

    def _begun(self, x: Tensor) -> tuple[Tensor, MatrixView, Scaling]:
        """Check a tensor; return it contiguous, its view and its scaling."""
        form = check_input(x)
        self._check_shape(x.shape)
        x, view = x.detach().contiguous(), MatrixView.of(x.shape, self.mode)
        rounding = self._unit.rounding_mode if self.mode.has_dct else None

        def job(k: Tensor) -> Job:
            return compression_job(view, form, k, self._shifts(), *self._bits(), rounding, self._how())

        return x, view, Scaling(self.S, self.scale_bits, job)

    def _compressed(self, x: Tensor, payload: Tensor, r: Tensor) -> Compressed:
        header = Header(self.mode, FORMATS[x.dtype], tuple(x.shape), payload.numel(), *self._bits(), self._how())
        return Compressed(header, self._shifts(), r, payload)

    def _bits(self) -> tuple[int, int]:
        """Return the precision of the transform; zeros without one."""
        return (self._unit.const_bits, self._unit.pass1_bits) if self.mode.has_dct else (0, 0)

    def _how(self) -> How:
        return ShiftCoding(self.coder, self._reconstruction_point()) if self.mode.has_dct else None

    def decompress(self, compressed: Packed) -> Tensor:
        """Implement :class:`Codec`."""
        return compressed.decompress(self._backend)

    def _check_shape(self, shape: Sequence[int]) -> None:
        """Raise UserError for shapes that this codec refuses and others take."""

    def _shifts(self) -> tuple[int, ...]:
        """Return the shifts in payload order, empty without a transform."""
        return ()

    def _reconstruction_point(self) -> int:
        """Return the reconstruction point in eighths of a step."""
        return 0


@dataclass
class SfprZvcCodec(SfprCodec):
    """Codec ``sfpr+zvc``: SFPR, then a zero costs one bit. Parameters as for :class:`SfprCodec`."""

    name = Mode.SFPR_ZVC.label
    mode = Mode.SFPR_ZVC


@dataclass
class JpegActCodec(BlockCodec, SfprCodec):
    """Codec ``jpeg-act``: SFPR, 8x8 DCT, shift quantiser and ZVC with the published S. Takes (N, C, H, W).

    Policies use it for maps with W >= 8 and N * C * H >= 8; smaller ones are mostly padding.

    Parameters beyond those of :class:`SfprCodec`:

    dqt
        ``optL``, ``optH``, ``optsL``, ``optsH``, ``searchsH``, ``imageQ`` with Q from 1 to 100, ``optLH``: optL before epoch 5,
        then optH (see :meth:`set_epoch`); the path of a ``.json`` file that ``cdu dqt`` wrote, or 64 divisors 1..255 in
        row-major order. Each divisor is rounded to the nearest power of two, at least 8: coefficients would saturate with
        smaller ones.
    const_bits, pass1_bits
        Precision of the DCT.
    rounding
        Rounding of the shift quantiser: ``half_away`` or ``trunc``.
    rec
        Reconstruction point in steps: 0, as published, 1/8, 1/4, 3/8 or 1/2. The decoder adds it to the magnitudes of nonzero
        coefficients. It costs no byte; with ``trunc``, 3/8 is nearer to the original than 0.
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
    """Codec ``jpeg-gmc``: jpeg-act with the entropy coder GMC in place of ZVC. Parameters as for :class:`JpegActCodec`.

    Its defaults differ from the published ones of ``jpeg-act``: an S that saturates nothing, a uniform table and a
    reconstruction point of 3/8.
    """

    S: float = DEFAULT_S
    dqt: str | Sequence[int] = "uniform-16"
    rec: float = 3 / STEP_POINTS

    name = JPEG_GMC
    coder = Coder.GMC


def _without_scales(x: Tensor, mode: Mode, form: Dtype, through: Backend) -> Compressed:
    """Return a tensor compressed in a mode that has neither scales nor a shift table."""
    view = MatrixView.of(x.shape, mode)
    none = torch.empty(0, dtype=torch.float32, device=x.device)
    payload = through.compress_tensor(x.detach(), view, compression_job(view, form, none))
    return Compressed(Header(mode, form, tuple(x.shape), payload.numel()), (), none, payload)


def check_s(S: float) -> None:  # noqa: N803
    """Raise UserError unless S is a number from :data:`~cdu_spec.sfpr.LEAST_S` to :data:`~cdu_spec.sfpr.GREATEST_S`."""
    if not is_real(S, LEAST_S, GREATEST_S):
        raise UserError(f"S = {S!r} is not allowed: use a number from {LEAST_S:g} to {GREATEST_S:g}")


def check_input(x: Tensor) -> Dtype:
    """Return the number format of a tensor that can be compressed; raise UserError for any other."""
    if not isinstance(x, Tensor):
        raise UserError(f"cannot compress a {type(x).__name__}: use a torch tensor")
    kind = kind_of(x)
    if kind is not None:
        raise UserError(f"cannot compress {kind.name}: {kind.remedy}")
    if x.dtype not in FORMATS:
        raise UserError(f"cannot compress a tensor of dtype {dtype_name(x.dtype)}: use float32, bfloat16 or float16")
    if x.numel() == 0:
        raise UserError(f"cannot compress the empty tensor of shape {extents(x.shape)}: every extent must be 1 or more")
    if not 1 <= x.ndim <= MAX_RANK:
        raise UserError(f"cannot compress a tensor of rank {x.ndim}: reshape it to a rank from 1 to {MAX_RANK}")
    return FORMATS[x.dtype]


def finite_maxima(x: Tensor, channels: Tensor, nonfinite: str, backend: Backend) -> Tensor:
    """Return :func:`channel_maxima` of the channels of a codec, which are made of ``x``.

    Raises NonFiniteError with the numbers of values and of the channel in ``x``, where channels may be fewer or padded.
    """
    try:
        return backend.run(channel_maxima, channels, nonfinite)
    except NonFiniteError:
        check_finite(x, backend)
        raise


def check_finite(x: Tensor, backend: Backend | None = None) -> None:
    """Raise NonFiniteError if ``x`` has NaN or infinity; the golden model looks for them unless a backend is given."""
    channels = x.detach().reshape(x.shape[0], x.shape[1], -1) if x.ndim > 1 else x.detach().reshape(1, 1, -1)
    (TorchBackend() if backend is None else backend).run(channel_maxima, channels)
