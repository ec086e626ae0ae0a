"""The largest batch whose peak is within a budget."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from cdu_tools.errors import UserError

#: Most samples of a batch that is tried.
_MOST = 1 << 32


def largest(peak: Callable[[int], int], budget: int, first: int) -> int:
    """Return the greatest batch whose peak is within the budget, 0 for none; peaks must grow with the batch, nearly linearly.

    The search asks for the peaks of ``first`` and of twice that, and then follows the line through the two peaks around or
    below the budget, until a batch fits and the next one does not: four peaks in all if they lie on a line.

    UserError if peaks do not grow.
    """
    peak = cache(peak)
    fits, beyond = 0, first
    if peak(first) <= budget:
        fits, beyond = first, 2 * first
        while peak(beyond) <= budget:
            slope = (peak(beyond) - peak(fits)) / (beyond - fits)
            further = 1 + int((budget - peak(beyond)) / slope) if slope > 0 else beyond
            fits, beyond = beyond, beyond + further
            if beyond > _MOST:
                raise UserError(
                    f"the peak of {peak(fits)} bytes does not grow with the batch: any batch fits into {budget} bytes"
                )
    while beyond - fits > 1:
        low = peak(fits) if fits else 0
        guess = fits + int((budget - low) / (peak(beyond) - low) * (beyond - fits))
        guess = min(max(guess, fits + 1), beyond - 1)
        fits, beyond = (guess, beyond) if peak(guess) <= budget else (fits, guess)
    return fits
