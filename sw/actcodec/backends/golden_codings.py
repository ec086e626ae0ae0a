"""Codings of the golden model per mode, from the integers of a piece of a matrix to its payload and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from cdu_spec.affine import GROUP_VALUES, AffineSettings
from cdu_spec.coding import ShiftCoding, code_bits, coder_of, known
from cdu_spec.geometry import BLOCK_VALUES, LANES
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Coder, Mode
from torch import Tensor

from actcodec.backends.job import Job
from actcodec.golden import actnn, autoquant, blocks, blpa, brc, bypass, division, gmc, jpeg_act, zvc
from actcodec.golden.block_starts import Chain, mask_chain


@dataclass(frozen=True)
class Piece:
    """Part of a matrix whose payload is contiguous: whole strips, or some blocks of one strip.

    In modes without tiles its rows are beats.
    """

    rows: slice
    columns: slice
    row_beats: int
    first: int  #: number of the piece's first beat in the order of the payload
    beats: int  #: number of beats, padding included

    def scales(self, job: Job, of_groups: Tensor, device: torch.device) -> Tensor:
        """Return scales or offsets (n, 1) of the piece's rows, padding included."""
        rows = torch.arange(self.rows.start, self.rows.start + self.beats // self.row_beats)
        per_scale = job.channel_rows if job.mode.in_tiles else job.row_beats * job.channel_rows
        return of_groups[rows // per_scale, None].to(device)


@dataclass(frozen=True)
class ModeCoding:
    """Coding of one mode.

    ``encode(integers, piece, job)`` returns the payload (n,), uint8, of the integers of a piece, (rows, columns), padded: int8,
    or int16 in affine modes. ``decode(payload, starts, piece, job)`` is the inverse without offsets; ``starts`` (blocks,) holds
    where blocks with masks or of GMC begin. Both raise ValueError for a job that lacks what its mode needs.
    """

    encode: Callable[[Tensor, Piece, Job], Tensor]
    decode: Callable[[Tensor, Tensor, Piece, Job], Tensor]


@dataclass(frozen=True)
class DirectCoding:
    """Coding of a mode whose payload follows from the values alone.

    ``encode(values)`` returns the payload (n,), uint8, of values of any shape; ``decode(payload, count, dtype)`` returns the
    values (count,).
    """

    encode: Callable[[Tensor], Tensor]
    decode: Callable[[Tensor, int, torch.dtype], Tensor]


def block_chain(job: Job) -> Chain:
    """Return how block lengths follow from a job's payload, in modes with masks."""
    return gmc.CHAIN if coder_of(job.how) is Coder.GMC else mask_chain(code_bits(job.how))


def _bytes(integers: Tensor, piece: Piece, job: Job) -> Tensor:
    return integers.reshape(-1).view(torch.uint8)


def _from_bytes(payload: Tensor, starts: Tensor, piece: Piece, job: Job) -> Tensor:
    return payload.view(torch.int8).view(-1, LANES)


def _masked(integers: Tensor, piece: Piece, job: Job) -> Tensor:
    return zvc.encode(integers.reshape(-1, BLOCK_VALUES))


def _from_masked(payload: Tensor, starts: Tensor, piece: Piece, job: Job) -> Tensor:
    return zvc.decode_at(payload, starts).reshape(-1, LANES)


def _transformed(integers: Tensor, piece: Piece, job: Job) -> Tensor:
    if job.rounding is None:
        raise ValueError("a jpeg-act job to compress needs a rounding rule")
    coefficients = jpeg_act.forward(integers, job.shifts, job.const_bits, job.pass1_bits, job.rounding)
    return gmc.encode(coefficients)[0] if coder_of(job.how) is Coder.GMC else zvc.encode(coefficients)


def _from_transformed(payload: Tensor, starts: Tensor, piece: Piece, job: Job) -> Tensor:
    coefficients = (gmc if coder_of(job.how) is Coder.GMC else zvc).decode_at(payload, starts)
    return jpeg_act.inverse(
        coefficients, piece.row_beats, job.shifts, job.const_bits, job.pass1_bits, known(job.how, ShiftCoding).point
    )


def _blocks(integers: Tensor, piece: Piece, job: Job) -> Tensor:
    return division.encode(blocks.tiles(integers).reshape(-1, BLOCK_VALUES), known(job.how, AffineSettings), piece.first)


def _from_blocks(payload: Tensor, starts: Tensor, piece: Piece, job: Job) -> Tensor:
    view = MatrixView(piece.beats // piece.row_beats, piece.row_beats * LANES, 1, 1, job.mode)
    return blocks.untiled(division.decode(payload, view.blocks, known(job.how, AffineSettings)), view)


def _groups(integers: Tensor, piece: Piece, job: Job) -> Tensor:
    return actnn.encode(integers.reshape(-1, GROUP_VALUES), known(job.how, AffineSettings), piece.first)


def _from_groups(payload: Tensor, starts: Tensor, piece: Piece, job: Job) -> Tensor:
    groups = actnn.decode(payload, piece.beats * LANES // GROUP_VALUES, known(job.how, AffineSettings))
    return groups.view(-1, piece.row_beats * LANES)


def _rows(golden: Any) -> ModeCoding:
    """Return the coding of beats with codes of one width by the functions of a golden module."""
    return ModeCoding(
        lambda integers, piece, job: golden.encode(integers, known(job.how, AffineSettings), piece.first),
        lambda payload, starts, piece, job: golden.decode(payload, piece.beats, known(job.how, AffineSettings)),
    )


_MASKED_ROWS = ModeCoding(
    lambda integers, piece, job: autoquant.encode_masked(integers, known(job.how, AffineSettings), piece.first),
    lambda payload, starts, piece, job: autoquant.decode_masked_at(payload, starts, known(job.how, AffineSettings)),
)

DIRECT = {
    Mode.BRC: DirectCoding(brc.encode, brc.decode),
    Mode.BYPASS: DirectCoding(bypass.encode, bypass.decode),
}
#: Codings of the other modes, except mx, whose blocks :mod:`actcodec.golden.floating.blocks` computes.
CODINGS = {
    Mode.SFPR: ModeCoding(_bytes, _from_bytes),
    Mode.SFPR_ZVC: ModeCoding(_masked, _from_masked),
    Mode.JPEG_ACT: ModeCoding(_transformed, _from_transformed),
    Mode.DIVISION: ModeCoding(_blocks, _from_blocks),
    Mode.ACTNN: ModeCoding(_groups, _from_groups),
    Mode.BLPA: _rows(blpa),
    Mode.AUTOQUANT: _rows(autoquant),
    Mode.AUTOQUANTZ: _MASKED_ROWS,
}
