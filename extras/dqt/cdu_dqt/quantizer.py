"""Quantisers of coefficients with their codecs: a ladder of steps, the same for each of the 64 coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from actcodec.golden import div_quantizer, shift_quantizer
from cdu_spec.dqt import DC_DIVISOR, LEAST_SHIFT, MAX_DIVISOR, MAX_SHIFT, Table, divisors
from cdu_spec.dqt import shifts as shifts_of
from cdu_spec.modes import JPEG_BASE, JPEG_GMC, Coder, Mode
from cdu_spec.rounding import DEFAULT_ROUNDING, Rounding
from cdu_tools.errors import UserError
from cdu_tools.near_names import unknown
from torch import Tensor

DIV, SHIFT = "div", "shift"
KINDS = (DIV, SHIFT)
#: Rates of a table: the entropy of each coefficient, or the bytes that a coder of shifts writes.
ENTROPY, ZVC, GMC = "entropy", Coder.ZVC.label, Coder.GMC.label


@dataclass(frozen=True)
class TableQuantizer:
    """``div``, the divisors of jpeg-base, or ``shift``, the powers of two of jpeg-act and jpeg-gmc, with a rounding rule.

    A rung is an index into :attr:`steps`. UserError for an unknown kind, and for divisors with a reconstruction point or GMC.
    """

    kind: str
    rounding: Rounding
    point: int = 0  #: reconstruction point of shifts, in eighths of a step, 0 to 4
    coder: Coder = Coder.ZVC  #: coder of shifts

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UserError(unknown("kind of table", self.kind, KINDS))
        if self.kind != SHIFT and self.coder is Coder.GMC:
            raise UserError("rate 'gmc' goes with kind 'shift': jpeg-base, which divides, writes no GMC; use rate 'entropy'")
        if self.kind != SHIFT and self.point:
            raise UserError("a reconstruction point goes with kind 'shift': jpeg-base, which divides, has none; use rec 0")

    @classmethod
    def usual(cls, kind: str) -> TableQuantizer:
        """Return the quantiser with the rounding rule that the codec has by default."""
        return cls(kind, DEFAULT_ROUNDING if kind == SHIFT else Rounding.HALF_AWAY)

    @property
    def codec(self) -> str:
        """Name of the codec that quantises in this way."""
        if self.kind == DIV:
            return JPEG_BASE
        return JPEG_GMC if self.coder is Coder.GMC else Mode.JPEG_ACT.label

    @property
    def written(self) -> str:
        """Name of the rate that equals, or approximates, the bytes that the codec writes."""
        return ENTROPY if self.kind == DIV else self.coder.label

    @property
    def steps(self) -> Table:
        """The ladder: every step that an entry of the table can have, ascending."""
        if self.kind == DIV:
            return tuple(range(1, MAX_DIVISOR + 1))
        return tuple(1 << shift for shift in range(LEAST_SHIFT, MAX_SHIFT + 1))

    @property
    def dc_rung(self) -> int:
        """Rung of the DC entry, which is fixed."""
        return self.steps.index(DC_DIVISOR)

    def steps_of(self, table: str | Sequence[int]) -> Table:
        """Return the 64 steps for a table, given by name or by its divisors. ValueError for an invalid table."""
        return tuple(1 << shift for shift in shifts_of(table)) if self.kind == SHIFT else divisors(table)

    def rungs(self, table: Sequence[int]) -> Tensor:
        """Return the rungs of a table, int64 (64,). ValueError for a step that is not on the ladder."""
        return torch.tensor([self.steps.index(step) for step in table])

    def table(self, rungs: Tensor) -> Table:
        """Return the 64 steps of rungs (64,)."""
        return tuple(self.steps[rung] for rung in rungs.tolist())

    def quantize(self, coefficients: Tensor, rungs: Tensor) -> tuple[Tensor, Tensor]:
        """Quantise coefficients as the golden model does; return the codes and their decoded values.

        Takes int16 coefficients and int64 rungs that can be broadcast together; returns two int16 tensors.
        """
        if self.kind == DIV:
            table = rungs + 1
            codes = div_quantizer.quantize(coefficients, table, self.rounding)
            return codes, div_quantizer.inverse(codes, table)
        shifts = rungs + LEAST_SHIFT
        codes = shift_quantizer.quantize(coefficients, shifts, self.rounding)
        return codes.to(torch.int16), shift_quantizer.inverse(codes, shifts, self.point)
