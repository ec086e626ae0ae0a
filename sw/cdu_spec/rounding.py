"""Rounding rules, by name."""

from enum import Enum


class Rounding(Enum):
    """How the shift quantiser turns ``c / 2**shift`` into an integer.

    ``TRUNC``
        toward zero, as the published JPEG-ACT code does (a dead zone of twice the step around zero);
    ``HALF_AWAY``
        to nearest, ties away from zero.
    """

    TRUNC = "trunc"
    HALF_AWAY = "half_away"
