"""The saved-tensor hooks of one open context: what the graph holds, and what backward gets for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import torch
import torch.utils.checkpoint
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from actcodec.saved.forms import Exact
from actcodec.saved.kept import Saved
from actcodec.saved.second_order import SecondOrder
from actcodec.saved.untraced import untraced
from actcodec.training.compiled import EAGER
from actcodec.training.compression import naming
from actcodec.training.session import Session


@contextmanager
def hooked(session: Session) -> Iterator[None]:
    """While entered, autograd gives what it saves on this thread to ``session``; the policy is told when it ends in peace."""
    try:
        with EAGER, session.tracker, saved_tensors_hooks(partial(_pack, session), partial(_unpack, session.second_order)):
            yield
        session.close()
    finally:
        session.leave()


def in_checkpoint() -> bool:
    """Whether a checkpoint's own hooks are those that a context would now take the place of."""
    hooks = torch._C._autograd._top_saved_tensors_default_hooks(True)
    return hooks is not None and hooks[0].__module__ == torch.utils.checkpoint.__name__


@untraced
def _pack(session: Session, x: Tensor) -> Saved:
    """Pack hook: what the graph holds in place of a tensor that autograd saves."""
    with _PlainTorch():
        return session.pack(x)


@untraced
def _unpack(second_order: SecondOrder, saved: Saved) -> Tensor:
    """Unpack hook: the tensor for backward; the same values however often it is called."""
    form = saved.form
    if isinstance(form, Exact):
        return form.tensor()
    second_order.unpacked(saved)
    with _PlainTorch(), torch.no_grad(), naming("" if saved.record is None else saved.record.name):
        return form.tensor()


class _PlainTorch:
    """While entered: torch without function modes and autocast, which must not reach into a codec's arithmetic."""

    def __enter__(self) -> None:
        self._contexts: list[AbstractContextManager[Any]] = [torch._C.DisableTorchFunction()]
        self._contexts += [torch.autocast(kind, enabled=False) for kind in ("cpu", "cuda") if torch.is_autocast_enabled(kind)]
        for context in self._contexts:
            context.__enter__()

    def __exit__(self, *raised: Any) -> None:
        for context in reversed(self._contexts):
            context.__exit__(*raised)
