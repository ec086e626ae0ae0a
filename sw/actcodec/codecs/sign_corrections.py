"""Exact signs beside a lossy reconstruction: one bit per value where decoding errs, mostly zeros, which ZVC shortens.

A decoder takes a value for positive where the reconstruction is more than a few steps of SFPR: rounding leaves some of them
where ReLU left zeros. How many they are, 0 to 127, says the corrections' first byte. Behind it stand bits in the order of
memory, value i at bit ``i % 8`` of byte ``i // 8``, as BRC packs them: 1 where that is wrong. These bytes, as numbers from -128
to 127, are a stream of mode sfpr+zvc with scale 1. So a unit makes corrections in two jobs, BRC of the differences and
SFPR + ZVC of its payload, and reads them in two.
"""

from __future__ import annotations

import torch
from cdu_spec.bitstream import BitstreamError, Header, MatrixView, Mode
from cdu_spec.geometry import VALUE_BITS
from cdu_spec.sfpr import VALUE_MAX
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.backends.job import FORMATS, compression_job
from actcodec.codecs.compressed import Compressed

#: Bytes in front of the bits.
_HEAD_BYTES = 1
#: Steps that are told apart: none or fewer, and 0 to 127.
_PLACES = VALUE_MAX + 2


def corrections(steps: Tensor, positive: Tensor, dtype: torch.dtype, backend: Backend) -> Compressed:
    """The stream that turns the signs of a reconstruction into those of the original.

    Parameters
    ----------
    steps
        The reconstruction in steps of SFPR: whole numbers, a float tensor of any shape.
    positive
        Which values of the original are positive, boolean, of the same shape.
    dtype
        Of the numbers that a unit gets: float32, bfloat16 or float16.
    backend
        Computes both jobs.
    """
    limit = _limit(steps, positive)
    differences = (steps > limit) != positive
    bits = _compressed(differences.view(-1).to(dtype), Mode.BRC, backend)
    numbers = torch.cat((bits.payload.new_full((_HEAD_BYTES,), limit), bits.payload))
    return _compressed(numbers.view(torch.int8).to(dtype), Mode.SFPR_ZVC, backend)


def corrected(steps: Tensor, stream: Compressed, backend: Backend) -> Tensor:
    """Which values of the original are positive, boolean, of the shape of ``steps``, the same ones as :func:`corrections` got.

    Raises BitstreamError for a stream of another number of bits.
    """
    numbers = stream.decompress(backend).to(torch.int8).view(torch.uint8)
    count = steps.numel()
    if numbers.shape != (_HEAD_BYTES - (-count // VALUE_BITS),):
        raise BitstreamError(f"corrupted stream: a tensor of shape {tuple(numbers.shape)} does not correct {count} signs")
    bits = numbers[_HEAD_BYTES:]
    header = Header(Mode.BRC, stream.header.dtype, (count,), bits.numel())
    differences = Compressed(header, (), stream.reciprocals[:0], bits).decompress(backend)
    return (steps > int(numbers[0])) != differences.to(torch.bool).view(steps.shape)


def _limit(steps: Tensor, positive: Tensor) -> int:
    """The number of steps, 0 to 127, beyond which values count as positive with the fewest errors."""
    places = steps.clamp(-1, VALUE_MAX).add_(1).add_(positive, alpha=_PLACES).to(torch.int16)
    others, positives = torch.bincount(places.flatten(), minlength=2 * _PLACES).view(2, _PLACES).cumsum(1)[:, 1:]
    return int((positives - others).argmin())


def _compressed(values: Tensor, mode: Mode, backend: Backend) -> Compressed:
    """The stream of values (n,) in a mode without a transform; where it has scales, they are 1."""
    view, form = MatrixView.of(values.shape, mode), FORMATS[values.dtype]
    scales = torch.ones(int(mode.has_scales), device=values.device)
    payload = backend.compress_tensor(values, view, compression_job(view, form, scales))
    return Compressed(Header(mode, form, tuple(values.shape), payload.numel()), (), scales, payload)
