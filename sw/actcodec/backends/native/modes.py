"""Kernels of each mode that compute payloads from tensors and tensors from payloads, like the golden model.

Encoders take a contiguous tensor on the CPU, its view and its job, and return the payload. Decoders take the payload, of a
length that the view allows, and fill the tensor; they return False for a payload that no encoder writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

import torch
from cdu_spec.affine import AffineSettings
from cdu_spec.coding import ShiftCoding, coder_of, known
from cdu_spec.dct import pass_shifts
from cdu_spec.geometry import LANES
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Coder, Mode
from cdu_spec.reconstruction import offsets
from cdu_spec.rounding import Rounding
from torch import Tensor

from actcodec.backends.job import FORMATS, Job
from actcodec.backends.native.kernels import NOTHING, kernels
from actcodec.backends.transform import integer_basis, needs_64_bits

Encoder = Callable[[Tensor, MatrixView, Job], Tensor]
Decoder = Callable[[Tensor, MatrixView, Job, Tensor], bool]


def _encode_sfpr(x: Tensor, view: MatrixView, job: Job) -> Tensor:
    width = view.row_beats * LANES
    make = torch.empty if width == view.columns else torch.zeros
    q = make(view.rows * width, dtype=torch.uint8)
    kernels()("sfpr_encode", x, FORMATS[x.dtype], view.rows, view.columns, width, job.scales, q)
    return q


def _decode_sfpr(payload: Tensor, view: MatrixView, job: Job, y: Tensor) -> bool:
    decode_rows(payload, view, job.scales, y)
    return True


def compress_rows(x: Tensor, view: MatrixView, rule: tuple[float, ...]) -> tuple[Tensor, Tensor] | None:
    """Return payload and reciprocals of a tensor in mode sfpr; None if its values are not all finite.

    ``rule`` is as :func:`actcodec.backends.native.statistics.scale_rule` returns it.
    """
    width = view.row_beats * LANES
    make = torch.empty if width == view.columns else torch.zeros
    q, r = make(view.rows * width, dtype=torch.uint8), torch.empty(view.channels)
    layout = (view.rows // view.channels, view.channels, view.columns, width)
    return (q, r) if kernels()("sfpr_compress", x, FORMATS[x.dtype], *layout, *rule, r, q) else None


def decode_rows(payload: Tensor, view: MatrixView, r: Tensor, y: Tensor) -> None:
    """Fill ``y`` from a payload of mode sfpr; ``r`` has a reciprocal for each channel or for each row."""
    layout = (view.rows, view.columns, view.row_beats * LANES)
    kernels()("sfpr_decode", payload, FORMATS[y.dtype], *layout, r, r.numel(), y)


def _encode_sfpr_zvc(x: Tensor, view: MatrixView, job: Job) -> Tensor:
    scratch = _scratch(view)
    layout = (view.rows, view.columns, view.row_beats, view.blocks)
    size = kernels()("sfpr_zvc_encode", x, FORMATS[x.dtype], *layout, job.scales, scratch)
    return scratch[:size].clone()


def _decode_sfpr_zvc(payload: Tensor, view: MatrixView, job: Job, y: Tensor) -> bool:
    layout = (view.rows, view.columns, view.row_beats, view.blocks)
    return bool(kernels()("sfpr_zvc_decode", payload, payload.numel(), job.dtype, *layout, job.scales, y))


def _encode_jpeg_act(x: Tensor, view: MatrixView, job: Job) -> Tensor:
    if job.rounding is None:
        raise ValueError("a jpeg-act job to compress needs a rounding rule")
    scratch = _scratch(view, coder_of(job.how))
    layout = (view.rows, view.columns, view.channel_rows, job.scales)
    table = _bytes(job.shifts)
    transform = (integer_basis(job.const_bits), *pass_shifts(job.const_bits, job.pass1_bits))
    half_away = job.rounding is Rounding.HALF_AWAY
    size = kernels()("jpeg_act_encode", x, FORMATS[x.dtype], *layout, *transform, table, half_away, coder_of(job.how), scratch)
    return scratch[:size].clone()


def _decode_jpeg_act(payload: Tensor, view: MatrixView, job: Job, y: Tensor) -> bool:
    layout = (view.rows, view.columns, view.channel_rows, job.scales)
    table = _bytes(job.shifts)
    transform = (integer_basis(job.const_bits), *pass_shifts(job.const_bits, job.pass1_bits))
    offset = _bytes(offsets(job.shifts, known(job.how, ShiftCoding).point))
    steps = (table, offset, coder_of(job.how))
    wide = needs_64_bits(job.const_bits, job.pass1_bits)
    return bool(kernels()("jpeg_act_decode", payload, payload.numel(), job.dtype, *layout, *transform, *steps, wide, y))


def _encode_brc(x: Tensor, view: MatrixView, job: Job) -> Tensor:
    payload = torch.empty(-(-view.columns // LANES), dtype=torch.uint8)
    kernels()("brc_encode", x, FORMATS[x.dtype], view.columns, payload)
    return payload


def _decode_brc(payload: Tensor, view: MatrixView, job: Job, y: Tensor) -> bool:
    if payload.numel() != -(-view.columns // LANES):
        return False
    kernels()("brc_decode", payload, job.dtype, view.columns, y)
    return True


def _encode_division(x: Tensor, view: MatrixView, job: Job) -> Tensor:
    settings = known(job.how, AffineSettings)
    payload = torch.empty(view.payload_bounds(job.dtype, settings)[0], dtype=torch.uint8)
    layout = (view.rows, view.columns, view.channel_rows, job.scales)
    quantizer = (settings.bits, settings.step_log2, settings.block_range, settings.stochastic, settings.seed, job.first)
    kernels()("division_encode", x, FORMATS[x.dtype], *layout, *quantizer, payload)
    return payload


def _decode_division(payload: Tensor, view: MatrixView, job: Job, y: Tensor) -> bool:
    settings = known(job.how, AffineSettings)
    layout = (view.rows, view.columns, view.channel_rows, job.scales)
    quantizer = (settings.bits, settings.step_log2, settings.block_range)
    return bool(kernels()("division_decode", payload, job.dtype, *layout, *quantizer, y))


def _encode_actnn(x: Tensor, view: MatrixView, job: Job) -> Tensor:
    settings = known(job.how, AffineSettings)
    payload = torch.empty(view.payload_bounds(job.dtype, settings)[0], dtype=torch.uint8)
    quantizer = (settings.bits, settings.stochastic, settings.seed, job.first)
    kernels()("actnn_encode", x, FORMATS[x.dtype], x.numel(), float(job.scales[0]), *quantizer, payload)
    return payload


def _decode_actnn(payload: Tensor, view: MatrixView, job: Job, y: Tensor) -> bool:
    return bool(
        kernels()("actnn_decode", payload, job.dtype, y.numel(), float(job.scales[0]), known(job.how, AffineSettings).bits, y)
    )


def _encode_fixed(x: Tensor, view: MatrixView, job: Job) -> Tensor:
    settings = known(job.how, AffineSettings)
    payload = torch.empty(view.payload_bounds(job.dtype, settings)[0], dtype=torch.uint8)
    layout = (view.rows, view.columns, view.row_beats, job.scales, _offsets(job))
    quantizer = (settings.bits, settings.step_log2, settings.stochastic, settings.seed, job.first)
    kernels()("fixed_encode", x, FORMATS[x.dtype], *layout, *quantizer, payload)
    return payload


def _decode_fixed(payload: Tensor, view: MatrixView, job: Job, y: Tensor) -> bool:
    settings = known(job.how, AffineSettings)
    layout = (view.rows, view.columns, view.row_beats, job.scales, _offsets(job))
    kernels()("fixed_decode", payload, job.dtype, *layout, settings.bits, settings.step_log2, y)
    return True


def _encode_masked(x: Tensor, view: MatrixView, job: Job) -> Tensor:
    settings = known(job.how, AffineSettings)
    scratch = torch.empty(view.payload_bounds(job.dtype, settings)[1], dtype=torch.uint8)
    layout = (view.rows, view.columns, view.row_beats, view.blocks, job.scales)
    quantizer = (settings.bits, settings.step_log2, settings.stochastic, settings.seed, job.first)
    size = kernels()("fixed_masked_encode", x, FORMATS[x.dtype], *layout, *quantizer, scratch)
    return scratch[:size].clone()


def _decode_masked(payload: Tensor, view: MatrixView, job: Job, y: Tensor) -> bool:
    settings = known(job.how, AffineSettings)
    layout = (view.rows, view.columns, view.row_beats, view.blocks, job.scales)
    quantizer = (settings.bits, settings.step_log2)
    return bool(kernels()("fixed_masked_decode", payload, payload.numel(), job.dtype, *layout, *quantizer, y))


def _offsets(job: Job) -> Tensor | int:
    """Return the offsets of the rows, which exist in mode blpa only."""
    return job.offsets if job.mode.has_offsets else NOTHING


#: Modes with kernels.
ENCODERS: Mapping[Mode, Encoder] = {
    Mode.SFPR: _encode_sfpr,
    Mode.SFPR_ZVC: _encode_sfpr_zvc,
    Mode.JPEG_ACT: _encode_jpeg_act,
    Mode.BRC: _encode_brc,
    Mode.DIVISION: _encode_division,
    Mode.ACTNN: _encode_actnn,
    Mode.BLPA: _encode_fixed,
    Mode.AUTOQUANT: _encode_fixed,
    Mode.AUTOQUANTZ: _encode_masked,
}
DECODERS: Mapping[Mode, Decoder] = {
    Mode.SFPR: _decode_sfpr,
    Mode.SFPR_ZVC: _decode_sfpr_zvc,
    Mode.JPEG_ACT: _decode_jpeg_act,
    Mode.BRC: _decode_brc,
    Mode.DIVISION: _decode_division,
    Mode.ACTNN: _decode_actnn,
    Mode.BLPA: _decode_fixed,
    Mode.AUTOQUANT: _decode_fixed,
    Mode.AUTOQUANTZ: _decode_masked,
}


@lru_cache
def _bytes(values: tuple[int, ...]) -> Tensor:
    """Return a table that kernels read, uint8; it is kept for the next tensor."""
    return torch.tensor(values, dtype=torch.uint8)


def _scratch(view: MatrixView, coder: Coder = Coder.ZVC) -> Tensor:
    """Return a buffer for the longest payload that a coder writes."""
    return torch.empty(view.blocks * coder.block_bounds[1], dtype=torch.uint8)
