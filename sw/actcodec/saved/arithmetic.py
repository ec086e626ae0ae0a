"""Arithmetic of codecs, which neither function modes nor autocast may change."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

#: Disables function modes while entered.
NoFunctionModes = torch._C.DisableTorchFunction
_AS_IT_IS = nullcontext()
#: Devices whose autocast may be on.
_AUTOCAST = ("cpu", "cuda")


def autocast_off() -> AbstractContextManager[None]:
    """Return a context in which autocast is off."""
    return _NoAutocast() if torch._C._is_any_autocast_enabled() else _AS_IT_IS


class _NoAutocast(AbstractContextManager[None]):
    """Disable autocast while entered."""

    def __enter__(self) -> None:
        self._contexts = [torch.autocast(kind, enabled=False) for kind in _AUTOCAST if torch.is_autocast_enabled(kind)]
        for context in self._contexts:
            context.__enter__()  # type: ignore[no-untyped-call]

    def __exit__(self, *raised: Any) -> None:
        for context in reversed(self._contexts):
            context.__exit__(*raised)
