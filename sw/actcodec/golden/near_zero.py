"""Bounds between channels near zero and channels far from it, which :mod:`actcodec.codecs.centring` gives centres."""

from __future__ import annotations

#: Least ratio of mean to standard deviation of a channel that counts as far from zero: three bits of a scale around zero.
FAR = 8.0
#: Share of a channel's mean square that the mean of the squared means of its maps has at most where it is certain that neither
#: the channel nor its maps are far from zero, whatever the order in which values are summed: roundings of sums change the
#: share by less than 2**-10.
SURE_SHARE = FAR**2 / (FAR**2 + 1) * (1 - 2.0**-8)
#: Range of the sums of squares that float32 holds in full.
LEAST_SQUARE, MOST_SQUARE = 2.0**-100, 2.0**120
