"""Tells losses, which are kept exactly: they are small, and the whole gradient goes through them.

A loss is

- code in the ``forward`` of a module that is called a loss or a criterion, by its class or by its name in the model, and in
  modules without parameters that it calls;
- code outside of every network, behind one: no step says where its forward pass ends, so that it is decided when a tensor is
  saved. Code between two calls of a network counts as a loss, too.

A network is a module of the model, or any module with parameters: the networks within a perceptual loss, the teacher of a
distillation and a critic are networks. A module without parameters that is none of the model's is no network, whatever it is
called.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from torch import nn

#: A word for a loss within a name, such as those of ``MSELoss``, ``loss_fn`` and ``SetCriterion``.
_NAMED = re.compile(r"([Ll]oss|LOSS)(es)?(?![a-z])|[Cc]riteri(on|a)")
_MOST_NAMES = 1 << 12


class Losses:
    """Tells loss and network apart while one context is open.

    Parameters
    ----------
    modules
        The modules of the context's model by their names.
    """

    def __init__(self, modules: Mapping[str, nn.Module]) -> None:
        self._of_model = set(map(id, modules.values()))
        names = [(name.rpartition(".")[2], module) for name, module in modules.items()]
        named = [module for name, module in names if _means_loss(name) or _is_named(module)]
        whole = [part for module in named if not _has_parameters(module) for part in module.modules()]
        self._losses = {id(module) for module in (*named, *whole)}
        self._behind_network = False

    @property
    def behind_network(self) -> bool:
        """Return whether a network has saved a tensor, so that code outside of all networks is a loss."""
        return self._behind_network

    def running(self, modules: Iterable[nn.Module]) -> bool:
        """Return whether a tensor belongs to a loss that is saved while some modules run, the innermost first."""
        for module in modules:
            if id(module) in self._losses or _is_named(module):
                return True
            if id(module) in self._of_model or _has_parameters(module):
                self._behind_network = True
                return False
        return self._behind_network


def _is_named(module: nn.Module) -> bool:
    return _means_loss(type(module).__name__)


@lru_cache(_MOST_NAMES)
def _means_loss(name: str) -> bool:
    return _NAMED.search(name) is not None


def _has_parameters(module: nn.Module) -> bool:
    return next(module.parameters(), None) is not None
