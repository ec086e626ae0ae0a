"""Exact signs beside a lossy reconstruction: one bit per value, set where the decoded sign is wrong, shortened by ZVC.

A decoder takes a value for positive if the reconstruction has more than ``limit`` steps of SFPR: rounding leaves a few steps
where ReLU left zeros. The first byte of the corrections is ``limit``, 0 to 127. Then come bits in the order of memory, value i
at bit ``i % 8`` of byte ``i // 8``, as BRC packs them: 1 where the sign by the limit is wrong. These bytes, as numbers from
-128 to 127, are a stream of mode sfpr+zvc with scale 1. So a unit makes corrections in two jobs, BRC of the differences and
SFPR + ZVC of its payload, and reads them in two.
"""

from __future__ import annotations

from functools import partial

import torch
from cdu_spec.bitstream import BitstreamError, Header
from cdu_spec.geometry import VALUE_BITS
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Mode
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.backends.job import FORMATS, compression_job, decompression_job
from actcodec.codecs.compressed import Compressed
from actcodec.golden.floating.signs import Signs, compare, correct
from actcodec.golden.floating.steps import Line

#: Bytes in front of the bits.
_HEAD_BYTES = 1


def corrections(decoded: Tensor, unit: Tensor, original: Tensor, backend: Backend) -> Compressed:
    """Return the stream that turns the signs of a reconstruction into those of the original.

    Parameters
    ----------
    decoded
        The reconstruction, (N, channels, n), contiguous, of a dtype that a unit gets. It may be overwritten.
    unit
        Steps of SFPR, float32 (channels,).
    original
        Of the same shape and dtype, contiguous; zero counts as not positive.
    backend
        Computes both jobs.
    """
    signs = backend.run(compare, decoded, unit, original, partial(_packed, backend))
    numbers = torch.cat((signs.wrong.new_full((_HEAD_BYTES,), signs.limit), signs.wrong))
    return _compressed(numbers.view(torch.int8).to(decoded.dtype), Mode.SFPR_ZVC, backend)


def correct_signs(
    decoded: Tensor, unit: Tensor, signs: Signs | None, line: Line | None, backend: Backend, *, rectified: bool
) -> None:
    """Correct the signs of a reconstruction, in place: :func:`actcodec.golden.floating.signs.correct`."""
    backend.run(correct, decoded, unit, signs, line, partial(_unpacked, backend), rectified=rectified)


def signs_of(stream: Compressed, count: int, backend: Backend) -> Signs:
    """Return the content of a stream of :func:`corrections`; raise BitstreamError for another number of bits."""
    numbers = stream.decompress(backend).to(torch.int8).view(torch.uint8)
    if numbers.shape != (_HEAD_BYTES - (-count // VALUE_BITS),):
        raise BitstreamError(f"corrupted stream: a tensor of shape {tuple(numbers.shape)} does not correct {count} signs")
    return Signs(int(numbers[0]), numbers[_HEAD_BYTES:])


def _packed(backend: Backend, values: Tensor) -> Tensor:
    """Return the bits of ``values > 0``, as mode brc, of floats (n,)."""
    view = MatrixView.of(values.shape, Mode.BRC)
    return backend.compress_tensor(values, view, compression_job(view, FORMATS[values.dtype], torch.zeros(0)))


def _unpacked(backend: Backend, bits: Tensor, decoded: Tensor) -> Tensor:
    """Return the bits of the values of ``decoded``, boolean (values,)."""
    header = Header(Mode.BRC, FORMATS[decoded.dtype], (decoded.numel(),), bits.numel())
    job = decompression_job(header, (), torch.zeros(0, device=bits.device))
    return backend.decompress_tensor(bits, header.view, job, header.shape).to(torch.bool)


def _compressed(values: Tensor, mode: Mode, backend: Backend) -> Compressed:
    """Return the stream of values (n,) in a mode without a transform, with scales of 1 if the mode has scales."""
    view, form = MatrixView.of(values.shape, mode), FORMATS[values.dtype]
    scales = torch.ones(int(mode.has_scales), device=values.device)
    payload = backend.compress_tensor(values, view, compression_job(view, form, scales))
    return Compressed(Header(mode, form, tuple(values.shape), payload.numel()), (), scales, payload)
