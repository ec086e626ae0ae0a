"""A user's script that defines ``model`` and ``step()``, and the loss that ``step()`` returns."""

from __future__ import annotations

import runpy
import traceback
from collections.abc import Callable
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Any

from cdu_tools.errors import UserError, unreadable
from torch import Tensor, nn


def names_of(script: Path, how: str = "") -> dict[str, Any]:
    """Run a script and return what it defines.

    Parameters
    ----------
    script
        The file.
    how
        Words for messages about a script that does not run: the way in which it was run.

    UserError if it lacks ``model`` or ``step``, does not run, or ends the process, then or in ``step``.
    """
    if not script.is_file():
        raise UserError(f"{unreadable(script)}; give a Python file that defines model and step()")
    try:
        names = runpy.run_path(str(script))
    except (Exception, SystemExit) as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        # The text of an error of syntax names its place.
        place = "" if isinstance(error, SyntaxError) else f" ({where.filename}, line {where.lineno})"
        if isinstance(error, SystemExit):
            raise UserError(f"{script} ends the process{place}: let it define model and step(), and go on to its end") from None
        raise UserError(f"{script} does not run{how}: {type(error).__name__}: {error}{place}") from None
    if not isinstance(names.get("model"), nn.Module) or not callable(names.get("step")):
        raise UserError(
            f"{script} does not define a model and its step: let model be a torch.nn.Module, and step() return the loss"
        )
    return names | {"step": _going_on(script, names["step"])}


def _going_on(script: Path, step: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(step)
    def run(*given: Any) -> Any:
        try:
            signature(step).bind(*given)
        except TypeError as error:
            raise UserError(
                f"step() of {script} does not take what it is given, {len(given)} values ({error}): cdu memory gives it "
                "those of batch(count), if there is one, and cdu check none"
            ) from None
        try:
            return step(*given)
        except SystemExit:
            raise UserError(f"step() of {script} ends the process: let it return the loss") from None

    return run


def checked_loss(loss: Any) -> Tensor:
    """Return the loss of a step; raise UserError for what is none."""
    if not isinstance(loss, Tensor) or loss.numel() != 1 or not loss.requires_grad:
        raise UserError("the step returned no loss that depends on a parameter: return a tensor of one value")
    return loss
