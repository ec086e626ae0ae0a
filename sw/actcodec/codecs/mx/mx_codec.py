"""Codecs of MX and NVFP4 (docs/methods/mx.md). Blocks are consecutive values in the order of memory, whatever the shape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from cdu_spec.bitstream import Header
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Mode
from cdu_spec.mx import NVFP4, MxSettings, ScaleRule
from cdu_tools.errors import UserError
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.backends.job import compression_job
from actcodec.backends.named import backend as backend_of
from actcodec.backends.near_zero import begin_near_zero
from actcodec.codecs.codec import Codec, check_finite, check_input
from actcodec.codecs.compressed import Compressed, Packed
from actcodec.codecs.mx.block_form import Nvfp4Form
from actcodec.golden.floating.blocks import nvfp4_codes
from actcodec.golden.sfpr import channel_maxima
from actcodec.golden.shapes import per_channel


@dataclass
class MxInt8Codec(Codec):
    """Codec ``mxint8``: 8-bit integers with a power of two for every 32 values; any shape. Base class of the other formats.

    NaN and infinity are refused; :mod:`actcodec.golden.mx` describes how the format itself treats them.

    Parameters
    ----------
    scale
        Rule that derives the power of two from the greatest magnitude: ``floor``, as in the specification, or ``rceil``, with
        which nothing saturates.
    backend
        ``torch``, or an object derived from Backend.
    """

    scale: str = ScaleRule.FLOOR.value
    backend: str | Backend = "torch"

    name = "mxint8"
    centred = True

    def __post_init__(self) -> None:
        rules = [rule.value for rule in ScaleRule]
        if self.scale not in rules:
            raise UserError(f"scale = {self.scale!r} is not allowed: use {' or '.join(rules)}")
        self._backend = backend_of(self.backend)

    def compress(self, x: Tensor) -> Compressed:
        """Implement :class:`Codec`."""
        check_input(x)
        check_finite(x, self._backend)
        return self._compressed(x)

    def begin(self, x: Tensor) -> Callable[[], Compressed | None] | None:
        """Implement :class:`Codec`."""
        check_input(x)
        own = type(self).compress is MxInt8Codec.compress
        near = begin_near_zero(self._backend, x.detach().contiguous()) if own else None
        if near is None:
            return None
        packed = self._compressed(x)
        return lambda: packed if near.holds() else None

    def _compressed(self, x: Tensor) -> Compressed:
        form, view, no_scales = check_input(x), MatrixView.of(x.shape, Mode.MX), torch.empty(0, device=x.device)
        how = MxSettings(self.name, ScaleRule(self.scale))
        job = compression_job(view, form, no_scales, how=how)
        payload = self._backend.compress_tensor(x.detach(), view, job)
        header = Header(Mode.MX, form, tuple(x.shape), payload.numel(), how=how)
        return Compressed(header, (), no_scales, payload)

    def decompress(self, compressed: Packed) -> Tensor:
        """Implement :class:`Codec`."""
        return compressed.decompress(self._backend)


@dataclass
class MxFp8E4m3Codec(MxInt8Codec):
    """Codec ``mxfp8-e4m3``. Parameters as for :class:`MxInt8Codec`."""

    name = "mxfp8-e4m3"


@dataclass
class MxFp8E5m2Codec(MxInt8Codec):
    """Codec ``mxfp8-e5m2``. Parameters as for :class:`MxInt8Codec`."""

    name = "mxfp8-e5m2"


@dataclass
class MxFp6E2m3Codec(MxInt8Codec):
    """Codec ``mxfp6-e2m3``. Parameters as for :class:`MxInt8Codec`."""

    name = "mxfp6-e2m3"


@dataclass
class MxFp6E3m2Codec(MxInt8Codec):
    """Codec ``mxfp6-e3m2``. Parameters as for :class:`MxInt8Codec`."""

    name = "mxfp6-e3m2"


@dataclass
class MxFp4Codec(MxInt8Codec):
    """Codec ``mxfp4``. Parameters as for :class:`MxInt8Codec`."""

    name = "mxfp4"


@dataclass
class Nvfp4Codec(Codec):
    """Codec ``nvfp4``: 4-bit numbers, a scale of 8 bits for every 16 of them and one of 32 bits for the tensor; any shape.

    Parameters
    ----------
    backend
        ``torch``, or a backend that computes the same in less time, such as ``native``.
    """

    backend: str | Backend = "torch"

    name = NVFP4
    centred = True

    def __post_init__(self) -> None:
        self._backend = backend_of(self.backend)

    def compress(self, x: Tensor) -> Nvfp4Form:
        """Implement :class:`Codec`."""
        check_input(x)
        largest = self._backend.run(channel_maxima, per_channel(x.detach()))
        return self._coded(x, largest.amax().to(torch.float32))

    def begin(self, x: Tensor) -> Callable[[], Nvfp4Form | None] | None:
        """Implement :class:`Codec`."""
        check_input(x)
        own = type(self).compress is Nvfp4Codec.compress
        near = begin_near_zero(self._backend, x.detach().contiguous()) if own else None
        if near is None:
            return None
        form = self._coded(x, near.largest)
        return lambda: form if near.holds() else None

    def _coded(self, x: Tensor, largest: Tensor) -> Nvfp4Form:
        payload, scale = self._backend.run(nvfp4_codes, x.detach(), largest)
        return Nvfp4Form(tuple(x.shape), x.dtype, scale, payload)

    def decompress(self, compressed: Packed) -> Tensor:
        """Implement :class:`Codec`."""
        return compressed.decompress(self._backend)
