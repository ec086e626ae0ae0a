"""Mode blpa on integers: a fixed step per job, always rounded down, so that the sign of a value is kept (BLPA)."""

from __future__ import annotations

from cdu_spec.affine import AffineSettings
from torch import Tensor

from actcodec.golden import autoquant


def encode(beats: Tensor, settings: AffineSettings, first: int = 0) -> Tensor:
    """Encode int16 (beats, 8) less offsets to uint8 (beats * bits,). Nothing is random, so that ``first`` has no effect."""
    return autoquant.encode(beats, settings, first, down=True)


def decode(payload: Tensor, beats: int, settings: AffineSettings) -> Tensor:
    """Decode a payload to the middles of the steps, int32 (beats, 8) in -32768..32767, before offsets are added.

    Raises BitstreamError for a payload of another length.
    """
    return autoquant.decode(payload, beats, settings).add_((1 << settings.step_log2) >> 1)
