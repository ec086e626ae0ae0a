"""Payloads that encoders of this process made, known as long as they exist unchanged."""

from __future__ import annotations

from collections.abc import Hashable, MutableMapping

from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

#: Version of each payload and how it was made; what is kept beside it.
_known: MutableMapping[Tensor, tuple[tuple[int, Hashable], object]] = WeakTensorKeyDictionary()


def remember(payload: Tensor, made: Hashable, kept: object = True) -> None:
    """Keep something, not None, beside a payload that was made in this way; inference tensors have no versions."""
    if not payload.is_inference():
        _known[payload] = (payload._version, made), kept


def recalled(payload: Tensor, made: Hashable) -> object | None:
    """Return what is kept beside a payload; None if it was not made in this way or was changed."""
    how, kept = _known.get(payload, (None, None))
    return kept if how is not None and how == (payload._version, made) else None
