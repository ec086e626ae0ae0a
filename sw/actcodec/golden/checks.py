"""Argument checks shared by the golden functions."""

from __future__ import annotations

from collections.abc import Sequence

from cdu_tools.texts import extents
from torch import Tensor, dtype

from actcodec.golden.dtype_names import dtype_name


def require(name: str, value: Tensor, dtypes: Sequence[dtype], trailing: Sequence[int] = ()) -> None:
    """Raise TypeError for a dtype not in ``dtypes``, ValueError when the last axes are not ``trailing``."""
    if value.dtype not in dtypes:
        raise TypeError(f"{name} has dtype {dtype_name(value.dtype)}: use {', '.join(map(dtype_name, dtypes))}")
    if trailing and tuple(value.shape[-len(trailing) :]) != tuple(trailing):
        axes = ", ".join(map(str, trailing))
        raise ValueError(f"{name} has shape {extents(value.shape)}: use (..., {axes})")
