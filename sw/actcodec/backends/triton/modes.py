"""Kernels of each mode that compute payloads from tensors and tensors from payloads, like the golden model.

Encoders take a contiguous tensor, its view and its job, and return the payload. Decoders take the payload, of a length that the
view allows, and fill the tensor; they return False for a payload that no encoder writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from cdu_spec.affine import AffineSettings
from cdu_spec.coding import coder_of, known
from cdu_spec.geometry import BLOCK_VALUES, LANES
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Coder, Mode
from torch import Tensor

from actcodec.backends.job import Job
from actcodec.backends.triton import actnn, code_rows, division, gmc_decoder, gmc_encoder, jpeg_act, sfpr, zvc
from actcodec.backends.triton.block_starts import block_starts
from actcodec.golden.heads import check_heads

Encoder = Callable[[Tensor, MatrixView, Job], Tensor]
Decoder = Callable[[Tensor, MatrixView, Job, Tensor], bool]


def encode_rows(x: Tensor, view: MatrixView, k: Tensor) -> Tensor:
    """Return the payload of a contiguous tensor in mode sfpr; ``k`` has a multiplier for each channel or for each row."""
    width = view.row_beats * LANES
    q = torch.empty(view.rows * width, dtype=torch.uint8, device=x.device)
    sfpr.encode(x, view.rows, view.columns, width, k, q.view(torch.int8))
    return q


def decode_rows(payload: Tensor, view: MatrixView, r: Tensor, y: Tensor) -> None:
    """Fill ``y`` from a payload of mode sfpr; ``r`` has a reciprocal for each channel or for each row."""
    sfpr.decode(payload.view(torch.int8), view.rows, view.columns, view.row_beats * LANES, r, y)


def _encode_sfpr(x: Tensor, view: MatrixView, job: Job) -> Tensor:
    return encode_rows(x, view, job.scales.to(x.device))


def _decode_sfpr(payload: Tensor, view: MatrixView, job: Job, y: Tensor) -> bool:
    decode_rows(payload, view, job.scales.to(y.device), y)
    return True


def _encode_sfpr_zvc(x: Tensor, view: MatrixView, job: Job) -> Tensor:
    q = torch.empty(view.blocks * BLOCK_VALUES, dtype=torch.int8, device=x.device)
    width = view.row_beats * LANES
    q[view.rows * width :] = 0
    sfpr.encode(x, view.rows, view.columns, width, job.scales.to(x.device), q)
    return zvc.encode(q)


def _decode_sfpr_zvc(payload: Tensor, view: MatrixView, job: Job, y: Tensor) -> bool:
    starts = block_starts(payload, view.blocks, Coder.ZVC)
    return starts is not None and _decode_sfpr(zvc.decode_at(payload, starts), view, job, y)


def _encode_jpeg_act(x: Tensor, view: MatrixView, job: Job) -> Tensor:
    q = jpeg_act.forward(x, view, job)
    return gmc_encoder.encode(q) if coder_of(job.how) is Coder.GMC else zvc.encode(q)


def _decode_jpeg_act(payload: Tensor, view: MatrixView, job: Job, y: Tensor) -> bool:
    starts = block_starts(payload, view.blocks, coder_of(job.how))
    if starts is None:
        return False
    q = (gmc_decoder if coder_of(job.how) is Coder.GMC else zvc).decode_at(payload, starts)
    jpeg_act.inverse(q, view, job, y)
    return True


def _encode_brc(x: Tensor, view: MatrixView, job: Job) -> Tensor:
    return code_rows.encode_signs(x)


def _decode_brc(payload: Tensor, view: MatrixView, job: Job, y: Tensor) -> bool:
    code_rows.decode_signs(payload, y)
    return True


def _decode_division(payload: Tensor, view: MatrixView, job: Job, y: Tensor) -> bool:
    check_heads(payload, job.mode, known(job.how, AffineSettings))
    division.decode(payload, view, job, y)
    return True


def _encode_actnn(x: Tensor, view: MatrixView, job: Job) -> Tensor:
    return actnn.encode(x, job)


def _decode_actnn(payload: Tensor, view: MatrixView, job: Job, y: Tensor) -> bool:
    check_heads(payload, job.mode, known(job.how, AffineSettings))
    actnn.decode(payload, job, y)
    return True


def _decode_code_rows(payload: Tensor, view: MatrixView, job: Job, y: Tensor) -> bool:
    code_rows.decode(payload, view, job, y)
    return True


#: Modes with kernels.
ENCODERS: Mapping[Mode, Encoder] = {
    Mode.SFPR: _encode_sfpr,
    Mode.SFPR_ZVC: _encode_sfpr_zvc,
    Mode.JPEG_ACT: _encode_jpeg_act,
    Mode.BRC: _encode_brc,
    Mode.DIVISION: division.encode,
    Mode.ACTNN: _encode_actnn,
    Mode.BLPA: code_rows.encode,
    Mode.AUTOQUANT: code_rows.encode,
}
DECODERS: Mapping[Mode, Decoder] = {
    Mode.SFPR: _decode_sfpr,
    Mode.SFPR_ZVC: _decode_sfpr_zvc,
    Mode.JPEG_ACT: _decode_jpeg_act,
    Mode.BRC: _decode_brc,
    Mode.DIVISION: _decode_division,
    Mode.ACTNN: _decode_actnn,
    Mode.BLPA: _decode_code_rows,
    Mode.AUTOQUANT: _decode_code_rows,
}
