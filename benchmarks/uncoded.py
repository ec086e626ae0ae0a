"""The codecs of channels and of steps on a GPU without their coders: the same values in less time.

Payloads hold the quantised values as they are, where the codec has ZVC, GMC or an entropy coder after them. Reconstructions are
the codec's to the last bit (tests/benchmarks/test_uncoded.py), exact signs and groups of normalisations included;
sizes are not: benchmarks take them from the codec itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import cast

import torch
from actcodec.backends.job import Job
from actcodec.backends.triton import jpeg_act
from actcodec.backends.triton.backend import TritonBackend
from actcodec.backends.triton.modes import DECODERS, ENCODERS
from actcodec.golden.floating import predicted
from actcodec.golden.floating.predicted import Predicted
from actcodec.golden.floating.steps import Line, cells, finished
from actcodec.golden.integer_coder import CodedIntegers
from actcodec.golden.predicted_integers import DEFLATE
from actcodec.golden.shapes import per_channel
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Mode
from torch import Tensor


@dataclass(frozen=True, eq=False)
class _Numbers(CodedIntegers):
    """Numbers of steps as they are."""

    values: Tensor  #: float32, as :func:`per_channel`


def _cells(x: Tensor, step: Tensor, coder: str = DEFLATE) -> Predicted:
    """Return the steps of ``blpa-coded`` as they are."""
    numbers = cells(per_channel(x.to(torch.float32)), step[:, None])
    return Predicted(0, _Numbers((), (), numbers), torch.zeros(0, dtype=torch.int64, device=x.device))


def _middles(
    found: Predicted,
    step: Tensor,
    shape: Sequence[int],
    dtype: torch.dtype,
    *,
    rectified: bool = False,
    line: Line | None = None,
) -> Tensor:
    values = (cast(_Numbers, found.coded).values + 0.5).mul_(step[:, None])
    whole = (slice(None), slice(None), slice(None))
    return finished(values, whole, dtype, rectified=rectified, line=line).view(tuple(shape))


def _coefficients(x: Tensor, view: MatrixView, job: Job, marks: Tensor | None) -> Tensor:
    return jpeg_act.forward(x, view, job).view(-1).view(torch.uint8)


def _from_coefficients(payload: Tensor, view: MatrixView, job: Job, y: Tensor) -> bool:
    jpeg_act.inverse(payload.view(torch.int8), view, job, y)
    return True


class UncodedBackend(TritonBackend):
    """Backend ``triton`` without coders of modes sfpr+zvc and jpeg-act, and of ``blpa-coded``."""

    implementations = MappingProxyType({**TritonBackend.implementations, predicted.cells: _cells, predicted.middles: _middles})
    encoders = MappingProxyType({**ENCODERS, Mode.JPEG_ACT: _coefficients, Mode.SFPR_ZVC: ENCODERS[Mode.SFPR]})
    decoders = MappingProxyType({**DECODERS, Mode.JPEG_ACT: _from_coefficients, Mode.SFPR_ZVC: DECODERS[Mode.SFPR]})
