"""GridQuantZ, AC-GC's comparison: the fewest bits, the same for every activation, with which a score is not reduced."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from cdu_tools.errors import UserError

#: Widths that are tried: with one bit a format for both signs has no code.
WIDTHS = range(2, 9)


@dataclass(frozen=True)
class GridResult:
    """The result of a search."""

    bits: int  #: fewest bits with which the score is not reduced
    scores: dict[int, float]  #: scores of all widths that were tried


def least_bits(score: Callable[[int], float], baseline: float, loss: float = 0.0, widths: Iterable[int] = WIDTHS) -> GridResult:
    """Try widths from the fewest bits up until the score is no more than ``loss`` below ``baseline``.

    Each width costs one call of ``score``, a training run; AC-GC's bounds avoid this cost.

    Parameters
    ----------
    score
        Returns the score with a number of bits; higher is better.
    baseline
        Score without compression.
    loss
        Allowed loss of score, 0 or more.
    widths
        Bits to try.

    Raises UserError if no width suffices.
    """
    if not loss >= 0:
        raise UserError(f"loss = {loss!r} is not allowed: use 0 or more")
    scores: dict[int, float] = {}
    for bits in sorted(widths):
        scores[bits] = score(bits)
        if scores[bits] >= baseline - loss:
            return GridResult(bits, scores)
    found = ", ".join(f"{bits} bits {value:g}" for bits, value in scores.items())
    raise UserError(f"no number of bits keeps a score of {baseline - loss:g} ({found or 'none was tried'}): allow more loss")
