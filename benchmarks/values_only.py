"""Codecs reduced to their effect on values: fast on a GPU, where a codec's packing and coding would be most of a step.

A form holds the reconstruction itself, so that its bytes mean nothing. The values are those of the codec: the same bits for
NVFP4 and MX, for copies in steps the same to a few units in the last place (tests/benchmarks/test_values_only.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from actcodec import codecs
from actcodec.codecs import Codec, Packed, RawCopy
from actcodec.codecs.affine.affine_scales import BLPA_REACH
from actcodec.codecs.blpa.blpa_float import least_step
from actcodec.codecs.blpa.feature_coded import TOKEN
from actcodec.golden.mx import numbers
from actcodec.golden.nvfp4 import tensor_scale
from cdu_spec.mx import MX_FORMATS, NVFP4, NVFP4_FORMAT, NVFP4_SCALE
from torch import Tensor
from torch.nn import functional as F

Values = Callable[[Tensor], Tensor]
_E4M3 = torch.float8_e4m3fn
_MXINT8 = "mxint8"


class ValuesOnly(Codec):
    """A codec that returns the reconstruction without coding it."""

    def __init__(self, codec: Codec, values: Values) -> None:
        self.name, self.keeps_zeros = codec.name, codec.keeps_zeros
        self._values = values

    def compress(self, x: Tensor) -> Packed:
        """Implement :class:`Codec`."""
        return RawCopy(self._values(x.detach()).to(x.dtype))

    def decompress(self, compressed: Packed) -> Tensor:
        """Implement :class:`Codec`."""
        return compressed.decompress()


def values_only(name: str, **options: Any) -> Codec:
    """A codec by name, by values alone where that is known of it: a codec factory."""
    codec = codecs.codec(name, **options)
    if name == NVFP4:
        return ValuesOnly(codec, nvfp4)
    if name == _MXINT8:
        return ValuesOnly(codec, mxint8)
    if name == "blpa-coded":
        return ValuesOnly(codec, lambda x: stepped(x, (0, *range(2, x.ndim)), options["bits"]))
    if name == "feature-coded":
        axis = 1 if options.get("steps_of") == TOKEN else 0
        return ValuesOnly(codec, lambda x: stepped(x.reshape(-1, x.shape[-1]), (axis,), options["bits"]).view(x.shape))
    return codec


def stepped(x: Tensor, axes: tuple[int, ...], bits: float) -> Tensor:
    """Copies of codec ``blpa-coded``, whose steps are one along these axes."""
    variance, mean = torch.var_mean(x, axes, correction=0, keepdim=True)
    least, greatest = x.amin(axes, keepdim=True), x.amax(axes, keepdim=True)
    rectified = (least >= 0).all()
    variance = torch.where(rectified, 2 * (variance + mean.square()), variance)
    mean = mean.masked_fill(rectified, 0)
    reach = BLPA_REACH * variance.sqrt()
    low = torch.maximum(least.masked_fill(rectified, 0), mean - reach)
    high = torch.minimum(greatest, mean + reach)
    step = ((high - low) / 2**bits).clamp_min(least_step(x.dtype))
    values = (torch.ceil(x / step) - 0.5) * step
    return torch.where(rectified, values.clamp_min(0), values)


def nvfp4(x: Tensor) -> Tensor:
    """Return the reconstruction of NVFP4."""
    blocks = _blocks(x, NVFP4_FORMAT.values)
    scale = tensor_scale(x.abs().amax().float())
    greatest = float(numbers(NVFP4_FORMAT)[NVFP4_FORMAT.greatest])
    wanted = (blocks.abs().amax(1) / greatest / scale).clamp(2.0**NVFP4_SCALE.emin, torch.finfo(_E4M3).max)
    scales = wanted.to(_E4M3).float()[:, None]
    scaled = blocks * ((1.0 / scale) / scales)
    quantum = torch.exp2(torch.floor(torch.log2(scaled.abs().clamp(1, greatest)))) / 2
    return _unblocked((scaled / quantum).round_().mul_(quantum).clamp_(-greatest, greatest) * (scale * scales), x)


def mxint8(x: Tensor) -> Tensor:
    """Return the reconstruction of MXINT8, the scale rounded down."""
    kind = MX_FORMATS[_MXINT8]
    blocks = _blocks(x, kind.values)
    _, exponent = torch.frexp(blocks.abs().amax(1, keepdim=True))
    step = torch.exp2((exponent - 1 - kind.emax - kind.fraction_bits).float())
    most = 2 ** (kind.bits - 1) - 1
    return _unblocked((blocks / step).round_().clamp_(-most, most) * step, x)


def _blocks(x: Tensor, size: int) -> Tensor:
    flat = x.float().flatten()
    return F.pad(flat, (0, -flat.numel() % size)).view(-1, size)


def _unblocked(blocks: Tensor, x: Tensor) -> Tensor:
    return blocks.flatten()[: x.numel()].view(x.shape)
