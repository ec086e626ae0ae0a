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
from actcodec.golden.pieces import pieces

#: Bytes in front of the bits.
_HEAD_BYTES = 1
#: Steps that are told apart: -1 stands for itself and all below, this for all above.
LEAST_STEPS, MOST_STEPS = -1, VALUE_MAX + 1
_PLACES = MOST_STEPS - LEAST_STEPS + 1


def corrections(steps: Tensor, original: Tensor, backend: Backend) -> Compressed:
    """The stream that turns the signs of a reconstruction into those of the original.

    Parameters
    ----------
    steps
        The reconstruction in steps of SFPR: whole numbers from :data:`LEAST_STEPS` to :data:`MOST_STEPS`, contiguous, of any
        shape and of a dtype that a unit gets: float32, bfloat16 or float16. They are overwritten.
    original
        Of the same shape, contiguous; zero counts as not positive.
    backend
        Computes both jobs.
    """
    steps, original = steps.view(-1), original.view(-1)
    limit = _limit(steps, original)
    for part in pieces(steps.numel(), steps.device):
        steps[part] = (steps[part] > limit) != (original[part] > 0)
    bits = _compressed(steps, Mode.BRC, backend)
    numbers = torch.cat((bits.payload.new_full((_HEAD_BYTES,), limit), bits.payload))
    return _compressed(numbers.view(torch.int8).to(steps.dtype), Mode.SFPR_ZVC, backend)


def wrong_signs(stream: Compressed, count: int, backend: Backend) -> tuple[int, Tensor]:
    """The number of steps beyond which a reconstruction counts as positive, and where that is wrong, boolean (count,).

    Raises BitstreamError for a stream of another number of bits.
    """
    numbers = stream.decompress(backend).to(torch.int8).view(torch.uint8)
    if numbers.shape != (_HEAD_BYTES - (-count // VALUE_BITS),):
        raise BitstreamError(f"corrupted stream: a tensor of shape {tuple(numbers.shape)} does not correct {count} signs")
    bits = numbers[_HEAD_BYTES:]
    header = Header(Mode.BRC, stream.header.dtype, (count,), bits.numel())
    differences = Compressed(header, (), stream.reciprocals[:0], bits).decompress(backend)
    return int(numbers[0]), differences.to(torch.bool)


def _limit(steps: Tensor, original: Tensor) -> int:
    """The number of steps, 0 to 127, beyond which values count as positive with the fewest errors."""
    counts = torch.zeros(2 * _PLACES, dtype=torch.int64, device=steps.device)
    for part in pieces(steps.numel(), steps.device):
        places = (steps[part] - LEAST_STEPS).to(torch.int16).add_(original[part] > 0, alpha=_PLACES)
        counts += torch.bincount(places, minlength=2 * _PLACES)
    # What is above the last limit is positive whichever it is.
    others, positives = counts.view(2, _PLACES).cumsum(1)[:, 1:-1]
    return int((positives - others).argmin())


def _compressed(values: Tensor, mode: Mode, backend: Backend) -> Compressed:
    """The stream of values (n,) in a mode without a transform; where it has scales, they are 1."""
    view, form = MatrixView.of(values.shape, mode), FORMATS[values.dtype]
    scales = torch.ones(int(mode.has_scales), device=values.device)
    payload = backend.compress_tensor(values, view, compression_job(view, form, scales))
    return Compressed(Header(mode, form, tuple(values.shape), payload.numel()), (), scales, payload)
