"""The saved-tensor hooks of one open context: pack tensors for the graph, and unpack them for backward."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.utils.checkpoint
from cdu_tools.errors import UserError
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from actcodec.saved.arithmetic import NoFunctionModes, autocast_off
from actcodec.saved.forms import Exact
from actcodec.saved.kept import Begun, Saved
from actcodec.saved.second_order import SecondOrder
from actcodec.saved.untraced import untraced
from actcodec.training.compiled import EAGER
from actcodec.training.compression import naming
from actcodec.training.session import Session

#: Torch refuses hooks within these transforms, and the transforms within hooks.
NO_TRANSFORMS = (
    "torch.func.grad, vjp, jacrev and hessian do not run together with saved-tensor hooks: use torch.autograd.grad or "
    "torch.func.jacfwd, or compute them outside of compress_activations"
)
_TORCH_REFUSES = "support saved tensor hooks"
_TAKEN_OUT = (
    "a context of torch's hooks or function modes that was opened before this compression was closed while it was enabled, and "
    "closed this compression in its own place: close the one that was opened last first"
)


class Hooks:
    """Pass tensors that autograd saves on this thread to a session, from :meth:`enter` to :meth:`leave`.

    Torch keeps hooks and function modes on stacks of the thread. The entries of this context are removed from any position of
    the stacks, so that several contexts may be left in any order.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._hooks = saved_tensors_hooks(partial(_pack, session), partial(_unpack, session.second_order, session.begun))

    def enter(self) -> None:
        """Enter; UserError within a transform that allows no hooks."""
        if not torch._C._autograd._saved_tensors_hooks_is_enabled():  # type: ignore[attr-defined]
            raise UserError(NO_TRANSFORMS)
        EAGER.__enter__()
        _push_mode(self._session.tracker)
        self._hooks.__enter__()

    def leave(self, raised: BaseException | None = None) -> str:
        """Leave, and inform the policy unless an error was ``raised``. Returns the text of a warning, empty if there is none.

        Raises UserError in place of torch's own error for a transform that allows no hooks, and if the stacks have lost these
        hooks.
        """
        found = _take_out(self._hooks.pack_hook, _top_hooks, _pop_hooks, _push_hooks)
        found &= _take_out(self._session.tracker, _top_mode, _pop_mode, _push_mode)
        EAGER.__exit__()
        try:
            if raised is None and found:
                with NoFunctionModes(), autocast_off():
                    self._session.close()
        finally:
            self._session.leave()
        if isinstance(raised, RuntimeError) and _TORCH_REFUSES in str(raised):
            raise UserError(NO_TRANSFORMS) from raised
        if raised is None and not found:
            raise UserError(_TAKEN_OUT)
        return self._session.much_uncoded if raised is None else ""


def _take_out(wanted: object, top: Callable[[], Any], pop: Callable[[], Any], push: Callable[[Any], Any]) -> bool:
    """Remove an entry from a stack and keep those above it; return whether it was found. ``top`` is None for an empty stack."""
    above = []
    while (entry := top()) is not None:
        pop()
        if wanted in (entry if isinstance(entry, tuple) else (entry,)):
            break
        above.append(entry)
    for entry_above in reversed(above):
        push(entry_above)
    return entry is not None


def _top_hooks() -> tuple[Callable[..., Any], Callable[..., Any]] | None:
    return torch._C._autograd._top_saved_tensors_default_hooks(True)


def _pop_hooks() -> None:
    torch._C._autograd._pop_saved_tensors_default_hooks()


def _push_hooks(pair: tuple[Callable[..., Any], Callable[..., Any]]) -> None:
    torch._C._autograd._push_saved_tensors_default_hooks(*pair)


def _top_mode() -> Any:
    count = torch._C._len_torch_function_stack()
    return torch._C._get_function_stack_at(count - 1) if count else None


def _pop_mode() -> None:
    torch._C._pop_torch_function_stack()


def _push_mode(mode: Any) -> None:
    torch._C._push_on_torch_function_stack(mode)


def in_checkpoint() -> bool:
    """Return whether the innermost hooks are those of a checkpoint, which a context would override."""
    hooks = _top_hooks()
    return hooks is not None and hooks[0].__module__ == torch.utils.checkpoint.__name__


@untraced
def _pack(session: Session, x: Tensor) -> Saved:
    """Pack hook: return the object that the graph holds in place of a tensor that autograd saves."""
    with NoFunctionModes(), autocast_off():
        return session.pack(x)


@untraced
def _unpack(second_order: SecondOrder, begun: Begun, saved: Saved) -> Tensor:
    """Unpack hook: return the tensor for backward, with the same values on every call."""
    if begun.pending is not None:
        with NoFunctionModes(), autocast_off():
            begun.end()
    form = saved.form
    if isinstance(form, Exact):
        return form.tensor()
    second_order.unpacked(saved)
    name = "" if saved.record is None else saved.record.name
    with NoFunctionModes(), autocast_off(), torch.no_grad(), naming(name):
        return form.tensor()
