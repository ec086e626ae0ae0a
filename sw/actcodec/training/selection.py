"""Select the modules of a model that a context compresses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from cdu_tools.errors import UserError
from torch import nn
from torch.nn.modules.lazy import LazyModuleMixin


def check_model(model: object) -> None:
    """Raise UserError for anything but an ``nn.Module``."""
    if not isinstance(model, nn.Module):
        raise UserError(f"a {type(model).__name__} is no model: give an nn.Module")


def check_shapes(model: nn.Module) -> None:
    """Raise UserError for a module that finds the shapes of its parameters in its first call, which has not been."""
    for name, module in model.named_modules():
        if isinstance(module, LazyModuleMixin) and module.has_uninitialized_params():  # type: ignore[misc]
            raise UserError(
                f"{name or 'the model'}, an nn.{type(module).__name__}, finds the shapes of its parameters in its first call: "
                "call the model once before it is compressed"
            )


class ModuleSelection:
    """Select modules by patterns of their names; a name selects the module and all modules inside it.

    Parameters
    ----------
    model
        Model whose ``named_modules()`` are matched.
    only
        Patterns (``layer1``, ``*.attention``) of modules that are compressed; all modules if none is given.
    exclude
        Patterns of modules that are not compressed, even if ``only`` selects them.

    Raises UserError for a pattern that no module matches.
    """

    def __init__(self, model: nn.Module, only: str | Sequence[str] = (), exclude: str | Sequence[str] = ()) -> None:
        check_model(model)
        self._known: dict[str, bool] = {}
        self._names = [name for name, _ in model.named_modules()]
        self._only, self._exclude = self._patterns("only", only), self._patterns("exclude", exclude)

    def __contains__(self, module: object) -> bool:
        """Return whether tensors saved in this module, named as in ``named_modules()``, are compressed."""
        name = str(module)
        known = self._known.get(name)
        if known is None:
            known = (not self._only or _matches(name, self._only)) and not _matches(name, self._exclude)
            self._known[name] = known
        return known

    def _patterns(self, option: str, given: str | Sequence[str]) -> tuple[str, ...]:
        patterns = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Iterable) else (given,)
        for pattern in patterns:
            if not isinstance(pattern, str):
                raise UserError(f"{option} = {given!r} is not allowed: use names of modules, with * for any letters")
            if not any(_matches(name, (pattern,)) for name in self._names):
                near = get_close_matches(pattern, self._names, 3) or [name for name in self._names if name][:3]
                choice = (
                    f"use names as in named_modules(), for instance {', '.join(near)}" if near else "the model has no modules"
                )
                raise UserError(f"{option} = {pattern!r} is no module of the model: {choice}")
        return patterns


def _matches(module: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(module, pattern) or fnmatchcase(module, f"{pattern}.*") for pattern in patterns)
