"""The means that benchmarks/compiled_step.py compares: how each prepares a model, compiles it and runs its forward pass."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import actcodec
from actcodec.policies.recommended import has_kernels, recommended
from actcodec.study.check import named_policy
from compiled_networks import Network
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch_means import TORCH_MEANS, compile_in_place

Step = Callable[[], object]
Prepare = Callable[[nn.Module, Network, Step], None]
Hooks = Callable[[nn.Module, Network], AbstractContextManager[Any]]


def _unchanged(model: nn.Module, network: Network, step: Step) -> None:
    """Leave the model as it is."""


def _without(model: nn.Module, network: Network) -> AbstractContextManager[Any]:
    """Make a context that does nothing."""
    return nullcontext()


@dataclass(frozen=True)
class Means:
    """One way to take a training step. Everything in it can be pickled.

    Parameters
    ----------
    prepare
        Changes the model in place before its first step, and may compile it; a step of forward, loss and backward is given.
    compiling
        Makes a context that is open during the first step alone, in which the model is compiled.
    hooks
        Makes a context that is open during every forward pass.
    compiles
        Whether the first step compiles the model.
    own
        Whether this project provides it; torch does otherwise.
    """

    prepare: Prepare = _unchanged
    compiling: Callable[[], AbstractContextManager[Any]] = nullcontext
    hooks: Hooks = _without
    compiles: bool = False
    own: bool = False


def _checkpointed(model: nn.Module, network: Network, step: Step) -> None:
    for block in network.blocks(model):
        block.forward = partial(checkpoint, block.forward, use_reentrant=False)


def _compiled(model: nn.Module, network: Network, step: Step) -> None:
    compile_in_place(model)


def _coded(name: str, model: nn.Module, network: Network, step: Step) -> None:
    actcodec.compiled(model, name)


def _with_policy(name: str, model: nn.Module, network: Network) -> AbstractContextManager[Any]:
    return actcodec.compress_activations(model, named_policy(name)[1])


def _recommended(model: nn.Module, network: Network) -> AbstractContextManager[Any]:
    return actcodec.compress_activations(model, named_policy(recommended(network.family, has_kernels).policy)[1])


EAGER = "eager"
MEANS = {
    EAGER: Means(),
    "checkpoint per block": Means(_checkpointed),
    **{name: Means(_compiled, compiling, compiles=True) for name, compiling in TORCH_MEANS.items()},
    "compiled, int8": Means(partial(_coded, "int8"), compiles=True, own=True),
    "hooks, int8-rows": Means(hooks=partial(_with_policy, "int8-rows"), own=True),
    "hooks, mxint8": Means(hooks=partial(_with_policy, "mxint8"), own=True),
    "hooks, nvfp4": Means(hooks=partial(_with_policy, "nvfp4"), own=True),
    "hooks, recommended": Means(hooks=_recommended, own=True),
}
