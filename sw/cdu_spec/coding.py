"""Settings with which the modes code their blocks."""

from __future__ import annotations

from cdu_tools.errors import UserError

from cdu_spec.affine import AffineSettings
from cdu_spec.modes import LOW_BYTES, RANGE_BYTES, STATISTICS_BYTES, Mode
from cdu_spec.mx import MxSettings


def head_bytes(mode: Mode, settings: AffineSettings) -> int:
    """Return the bytes before the codes of a block of an affine mode that begins with its range: low or mean, and the step.

    In mode actnn one block in four begins in this way. In a first pass a block consists of its statistics alone.
    """
    if not mode.in_tiles:
        return 0
    if settings.statistics:
        return STATISTICS_BYTES
    return LOW_BYTES if mode is Mode.DIVISION and not settings.block_range else RANGE_BYTES


def check_settings(mode: Mode, settings: AffineSettings | None) -> None:
    """Raise UserError for settings that do not fit a mode."""
    if (settings is not None) != mode.is_affine:
        raise UserError(f"mode {mode.label} takes {'' if mode.is_affine else 'no '}settings of the affine quantiser")
    if settings is None:
        return
    if settings.block_range and mode is not Mode.DIVISION:
        raise UserError(f"the range of a block is not a choice of mode {mode.label}: use it with division")
    if settings.statistics and (mode is not Mode.DIVISION or settings.block_range):
        raise UserError("statistics come from mode division with the channel's range: use that")
    found = mode is Mode.ACTNN or settings.block_range
    if found and settings.step_log2:
        raise UserError(f"step_log2 = {settings.step_log2} is not allowed where the step is found: use 0")
    if mode is Mode.DIVISION and not (found or settings.statistics or settings.step_log2):
        raise UserError("step_log2 = 0 is not allowed in division with the channel's range: use 1 or more")


def check_mx(mode: Mode, mx: MxSettings | None) -> None:
    """Raise UserError for settings of mode mx with another mode, and for mode mx without settings."""
    if (mx is not None) != (mode is Mode.MX):
        raise UserError(f"mode {mode.label} takes {'a' if mode is Mode.MX else 'no'} format of MX")
