"""Argument checks shared by the golden functions."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, dtype


def require(name: str, value: Tensor, dtypes: Sequence[dtype], trailing: Sequence[int] = ()) -> None:
    """Raise TypeError for a dtype not in ``dtypes``, ValueError when the last axes are not ``trailing``."""
    if value.dtype not in dtypes:
        allowed = ", ".join(str(kind).removeprefix("torch.") for kind in dtypes)
        raise TypeError(f"{name} has dtype {str(value.dtype).removeprefix('torch.')}: use {allowed}")
    if trailing and tuple(value.shape[-len(trailing) :]) != tuple(trailing):
        axes = ", ".join(map(str, trailing))
        raise ValueError(f"{name} has shape {tuple(value.shape)}: use (..., {axes})")
