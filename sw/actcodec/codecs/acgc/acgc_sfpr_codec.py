"""SFPR+ZVC within an error: AC-GC's AutoJPEGZ uses it for sparse activations, and AutoJPEG for dense ones."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from cdu_spec.bitstream import Header
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Mode
from cdu_spec.sfpr import SCALE_BITS, VALUE_MAX
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.backends.job import compression_job
from actcodec.backends.named import backend
from actcodec.codecs.acgc.error_bounded import SAFE_STEP, ErrorBoundedCodec, checked_error
from actcodec.codecs.acgc.error_steps import steps_of_rms
from actcodec.codecs.codec import check_finite, check_input
from actcodec.codecs.compressed import Compressed, Packed
from actcodec.golden.blocks import by_channel
from actcodec.golden.sfpr import channel_maxima, reciprocals, rounded_scales

#: Part of the error that is left to the rounding of multipliers and reciprocals.
_RESERVE = 2.0**-10


@dataclass
class AcgcSfprZvcCodec(ErrorBoundedCodec):
    """Codec ``acgc-sfpr+zvc``: SFPR with the largest steps that keep an error, then a zero costs one bit (AC-GC: AutoJPEGZ).

    Takes any shape; streams are those of ``sfpr+zvc``. Values less than half a step from zero become zeros, so that larger
    steps make fewer bytes. Nothing saturates; if the error needs more steps than 8 bits have, all of them are used and errors
    are larger.

    Parameters
    ----------
    backend
        ``torch``, or an object derived from Backend.
    """

    backend: str | Backend = "torch"

    name = "acgc-sfpr+zvc"

    def __post_init__(self) -> None:
        self._backend = backend(self.backend)

    def compress_within(self, x: Tensor, error: Tensor) -> Compressed:
        """Implement :class:`ErrorBoundedCodec`."""
        form = check_input(x)
        check_finite(x, self._backend)
        x, error = x.detach().contiguous(), checked_error(x, error)
        view = MatrixView.of(x.shape, Mode.SFPR_ZVC)
        if len(error) in (1, view.channels):
            steps = steps_of_rms(x, error * (1 - _RESERVE), self._backend).to(torch.float64)
        else:  # small maps, whose channels share one scale
            steps = SAFE_STEP * error.min().view(1).to(torch.float64) * (1 - _RESERVE)
        # The factor keeps the greatest code from exceeding the greatest value, which may be the format's greatest number.
        most = VALUE_MAX / self._backend.run(channel_maxima, by_channel(x, view)) * (1 + 2.0**-20)
        k = rounded_scales(torch.minimum(1 / steps, most), max(SCALE_BITS))
        payload = self._backend.compress_tensor(x, view, compression_job(view, form, k))
        return Compressed(Header(Mode.SFPR_ZVC, form, tuple(x.shape), payload.numel()), (), reciprocals(k), payload)

    def decompress(self, compressed: Packed) -> Tensor:
        """Implement :class:`~actcodec.codecs.codec.Codec`."""
        return compressed.decompress(self._backend)
