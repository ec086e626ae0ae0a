"""Kernels of each mode that compute payloads from tensors and tensors from payloads, like the golden model.

Encoders return the payload of a contiguous tensor, or blocks from which it will be packed. Decoders take the payload, of a
length that the view allows, and fill the tensor; they return False for a payload that no encoder writes. Jobs have scales and
offsets of groups of rows or of channels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import torch
from cdu_spec.affine import AffineSettings
from cdu_spec.coding import coder_of, known
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Coder, Mode
from cdu_spec.mx import MxSettings
from torch import Tensor

from actcodec.backends.job import Job
from actcodec.backends.triton import actnn, blocks, code_rows, division, jpeg_act, jpeg_gmc, sfpr, zvc
from actcodec.backends.triton.block_starts import unit_offsets
from actcodec.backends.triton.known_payloads import recalled, remember
from actcodec.backends.triton.lengths import Lengths, Measured
from actcodec.golden.heads import check_heads

#: Function of a tensor, its view, its job, and marks for the lengths of blocks, or None.
Encoder = Callable[[Tensor, MatrixView, Job, Tensor | None], Tensor | Measured]
Decoder = Callable[[Tensor, MatrixView, Job, Tensor], bool]


def _encode_sfpr(x: Tensor, view: MatrixView, job: Job, marks: Tensor | None) -> Tensor:
    return sfpr.encode(x, view, job).view(torch.uint8)


def _decode_sfpr(payload: Tensor, view: MatrixView, job: Job, y: Tensor) -> bool:
    sfpr.decode(payload.view(torch.int8), view, job, y)
    return True


def _encode_blocks(x: Tensor, view: MatrixView, job: Job, marks: Tensor | None) -> Measured:
    coder, quantise = coder_of(job.how), jpeg_act.forward if job.mode.has_dct else sfpr.encode
    lengths = Lengths.of(coder, view.blocks, x.device, marks)
    if coder is Coder.GMC:
        return jpeg_gmc.encode(x, view, job, lengths)
    return Measured(lengths, partial(zvc.pack, quantise(x, view, job, lengths), lengths))


def _decode_blocks(payload: Tensor, view: MatrixView, job: Job, y: Tensor) -> bool:
    coder, inverse = coder_of(job.how), jpeg_act.inverse if job.mode.has_dct else sfpr.decode
    offsets = unit_offsets(payload, view.blocks, coder)
    if offsets is None:
        return False
    if coder is Coder.GMC:
        jpeg_gmc.decode(payload, offsets, view, job, y)
    else:
        inverse(payload, view, job, y, offsets)
    return True


def _decode_brc(payload: Tensor, view: MatrixView, job: Job, y: Tensor) -> bool:
    code_rows.decode_signs(payload, y)
    return True


def _with_heads(encode: Callable[[Tensor, MatrixView, Job], Tensor]) -> Encoder:
    """Return an encoder whose payloads are known to have valid heads."""

    def encode_with_heads(x: Tensor, view: MatrixView, job: Job, marks: Tensor | None) -> Tensor:
        payload = encode(x, view, job)
        remember(payload, _heads(job))
        return payload

    return encode_with_heads


def _heads(job: Job) -> tuple[Mode, int, bool]:
    settings = known(job.how, AffineSettings)
    return job.mode, settings.bits, settings.block_range


def _check_heads(payload: Tensor, job: Job) -> None:
    if recalled(payload, _heads(job)) is None:
        check_heads(payload, job.mode, known(job.how, AffineSettings))


def _decode_division(payload: Tensor, view: MatrixView, job: Job, y: Tensor) -> bool:
    _check_heads(payload, job)
    division.decode(payload, view, job, y)
    return True


def _decode_actnn(payload: Tensor, view: MatrixView, job: Job, y: Tensor) -> bool:
    _check_heads(payload, job)
    actnn.decode(payload, job, y)
    return True


def _decode_code_rows(payload: Tensor, view: MatrixView, job: Job, y: Tensor) -> bool:
    code_rows.decode(payload, view, job, y)
    return True


def _encode_mx(x: Tensor, view: MatrixView, job: Job) -> Tensor:
    settings = known(job.how, MxSettings)
    return blocks.mx_codes(x, settings.kind, settings.rule)


def _decode_mx(payload: Tensor, view: MatrixView, job: Job, y: Tensor) -> bool:
    blocks.decode_mx(payload, known(job.how, MxSettings).kind, y)
    return True


def _at_once(encode: Callable[[Tensor, MatrixView, Job], Tensor]) -> Encoder:
    """Return an encoder whose payloads have a known size."""
    return lambda x, view, job, marks: encode(x, view, job)


#: Modes with kernels.
ENCODERS: Mapping[Mode, Encoder] = {
    Mode.SFPR: _encode_sfpr,
    Mode.SFPR_ZVC: _encode_blocks,
    Mode.JPEG_ACT: _encode_blocks,
    Mode.BRC: _at_once(lambda x, view, job: code_rows.encode_signs(x)),
    Mode.DIVISION: _with_heads(division.encode),
    Mode.ACTNN: _with_heads(lambda x, view, job: actnn.encode(x, job)),
    Mode.BLPA: _at_once(code_rows.encode),
    Mode.AUTOQUANT: _at_once(code_rows.encode),
    Mode.MX: _at_once(_encode_mx),
}
DECODERS: Mapping[Mode, Decoder] = {
    Mode.SFPR: _decode_sfpr,
    Mode.SFPR_ZVC: _decode_blocks,
    Mode.JPEG_ACT: _decode_blocks,
    Mode.BRC: _decode_brc,
    Mode.DIVISION: _decode_division,
    Mode.ACTNN: _decode_actnn,
    Mode.BLPA: _decode_code_rows,
    Mode.AUTOQUANT: _decode_code_rows,
    Mode.MX: _decode_mx,
}
