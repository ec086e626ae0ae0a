"""Settings with which a mode codes its blocks: one type for each kind of coding, and their union :data:`How`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from cdu_tools.errors import UserError

from cdu_spec.affine import AffineSettings
from cdu_spec.geometry import VALUE_BITS
from cdu_spec.modes import LOW_BYTES, RANGE_BYTES, STATISTICS_BYTES, Coder, Mode
from cdu_spec.mx import MxSettings
from cdu_spec.reconstruction import MAX_POINT


@dataclass(frozen=True)
class ShiftCoding:
    """Coding of mode jpeg-act: ``coder`` of its blocks, and reconstruction ``point`` in eighths of a step, 0 to 4.

    Compression does not use the point. Raises UserError for another point.
    """

    coder: Coder = Coder.ZVC
    point: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.point <= MAX_POINT:
            raise UserError(f"reconstruction point {self.point} is not allowed: use a number of eighths, 0 to {MAX_POINT}")

    @property
    def is_published(self) -> bool:
        """Return whether blocks are coded and restored as in the paper: with ZVC, and without a reconstruction point."""
        return self == ShiftCoding()


#: Settings of one job: :class:`ShiftCoding` in mode jpeg-act, :class:`~cdu_spec.affine.AffineSettings` in affine modes,
#: :class:`~cdu_spec.mx.MxSettings` in mode mx, None in the other modes.
How: TypeAlias = ShiftCoding | AffineSettings | MxSettings | None
HowT = TypeVar("HowT", ShiftCoding, AffineSettings, MxSettings)
#: Settings in words, for errors.
_IN_WORDS: dict[type, str] = {
    ShiftCoding: "a coder and reconstruction point",
    AffineSettings: "settings of the affine quantiser",
    MxSettings: "a format of MX",
}


def kind_of(mode: Mode) -> type:
    """Return the type of :data:`How` that a mode takes."""
    if mode.has_dct:
        return ShiftCoding
    if mode.is_affine:
        return AffineSettings
    return MxSettings if mode is Mode.MX else type(None)


def known(how: How, kind: type[HowT]) -> HowT:
    """Return settings, which must be of one kind; ValueError for settings of another kind."""
    if not isinstance(how, kind):
        raise ValueError(f"{_IN_WORDS[kind]} expected, not {how}")
    return how


def coder_of(how: How) -> Coder:
    """Return the coder of blocks with masks: GMC or ZVC in mode jpeg-act, ZVC in other modes."""
    return how.coder if isinstance(how, ShiftCoding) else Coder.ZVC


def code_bits(how: How) -> int:
    """Return the bits of a code: of an affine mode those of its settings, of other modes of integers 8."""
    return how.bits if isinstance(how, AffineSettings) else VALUE_BITS


def seed_of(how: How) -> int:
    """Return the seed of stochastic rounding, 0 in modes without it."""
    return how.seed if isinstance(how, AffineSettings) else 0


def to_decode(how: How) -> How:
    """Return settings as far as a decoder needs them: without seed, rounding and scale rule.

    Raises UserError for statistics, from which no tensor can be decoded.
    """
    if isinstance(how, MxSettings):
        return MxSettings(how.format)
    if not isinstance(how, AffineSettings):
        return how
    if how.statistics:
        raise UserError("statistics are no stream: they are for the scales of the pass that follows")
    return AffineSettings(how.bits, how.step_log2, stochastic=False, block_range=how.block_range)


def head_bytes(mode: Mode, settings: AffineSettings) -> int:
    """Return the bytes before the codes of a block of an affine mode that begins with its range: low or mean, and the step.

    In mode actnn one block in four begins in this way. In a first pass a block consists of its statistics alone.
    """
    if not mode.in_tiles:
        return 0
    if settings.statistics:
        return STATISTICS_BYTES
    return LOW_BYTES if mode is Mode.DIVISION and not settings.block_range else RANGE_BYTES


def checked(mode: Mode, how: How) -> How:
    """Return the settings of a mode, for None in mode jpeg-act ``ShiftCoding()``; raise UserError for what does not fit."""
    if how is None and mode.has_dct:
        return ShiftCoding()
    kind = kind_of(mode)
    if not isinstance(how, kind):
        what = _IN_WORDS[kind] if how is None else f"no {_IN_WORDS[type(how)].removeprefix('a ')}"
        raise UserError(f"mode {mode.label} takes {what}")
    if isinstance(how, AffineSettings):
        _check_affine(mode, how)
    return how


def _check_affine(mode: Mode, settings: AffineSettings) -> None:
    if settings.block_range and mode is not Mode.DIVISION:
        raise UserError(f"the range of a block is not a choice of mode {mode.label}: use it with division")
    if settings.statistics and (mode is not Mode.DIVISION or settings.block_range):
        raise UserError("statistics come from mode division with the channel's range: use that")
    found = mode is Mode.ACTNN or settings.block_range
    if found and settings.step_log2:
        raise UserError(f"step_log2 = {settings.step_log2} is not allowed where the step is found: use 0")
    if mode is Mode.DIVISION and not (found or settings.statistics or settings.step_log2):
        raise UserError("step_log2 = 0 is not allowed in division with the channel's range: use 1 or more")
