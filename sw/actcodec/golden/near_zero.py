"""Bounds between channels near zero and channels far from it, which :mod:`actcodec.codecs.centring` gives centres."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

#: Least ratio of mean to standard deviation of a channel that counts as far from zero: three bits of a scale around zero.
FAR = 8.0
#: Share of a channel's mean square that the mean of the squared means of its maps has at most where it is certain that neither
#: the channel nor its maps are far from zero, whatever the order in which values are summed: roundings of sums change the
#: share by less than 2**-10.
SURE_SHARE = FAR**2 / (FAR**2 + 1) * (1 - 2.0**-8)
#: Range of the sums of squares that float32 holds in full.
LEAST_SQUARE, MOST_SQUARE = 2.0**-100, 2.0**120
#: Least number of values with a centre of their own; with fewer, the centre would cost more than a bit per value.
LEAST_VALUES = 32


def channel_views(shape: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return the views (n, channels, values) of a tensor in which channels may be far from zero.

    Axis 1 counts channels. A tensor of rank 2 has columns for channels and, if they have no centres, rows; one of rank 1, and
    one whose channels have fewer than :data:`LEAST_VALUES` values, has none.
    """
    if len(shape) < 2:
        return []
    n, channels, values = shape[0], shape[1], prod(shape[2:])
    views = [(n, channels, values), (1, n, channels)] if len(shape) == 2 else [(n, channels, values)]
    return [view for view in views if view[0] * view[2] >= LEAST_VALUES]
