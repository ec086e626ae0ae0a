"""Specification of the forms in floating point: functions on whole tensors, float32 or float64 operations in the order written.

Backends compute the same bits faster (:attr:`actcodec.backends.backend.Backend.implementations`). No hardware has these forms.
"""

from actcodec.golden.floating import blocks, groups, predicted, ranges, rows, scaled_rows, signs, steps

__all__ = ["blocks", "groups", "predicted", "ranges", "rows", "scaled_rows", "signs", "steps"]
