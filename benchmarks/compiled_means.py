"""The means that benchmarks/compiled_step.py compares: how each prepares a model, compiles it and runs its forward pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import actcodec
from actcodec.policies.recommended import has_kernels, recommended
from actcodec.study.check import named_policy
from compiled_networks import Network
from torch import nn
from torch.utils.checkpoint import checkpoint

Prepare = Callable[[nn.Module, Network], None]
Hooks = Callable[[nn.Module, Network], AbstractContextManager[Any]]

#: torch's pass that stores what crosses from forward to backward in FP8 (e4m3, one scale a tensor), for tensors from 0.1 MB.
FP8_PASS = {
    "activation_quantization_aten_pass": {
        "quant_type": "torch.float8_e4m3fn",
        "use_scaling": True,
        "size_in_mb": 0.1,
        "exclude_primals": True,
        "allowed_dtypes": "torch.float32;torch.bfloat16",
    }
}


def _unchanged(model: nn.Module, network: Network) -> None:
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
        Changes the model in place before its first step, and may compile it.
    compiling
        Makes a context that is open during the first step alone, in which the model is compiled.
    hooks
        Makes a context that is open during every forward pass.
    own
        Whether this project provides it; torch does otherwise.
    """

    prepare: Prepare = _unchanged
    compiling: Callable[[], AbstractContextManager[Any]] = nullcontext
    hooks: Hooks = _without
    own: bool = False


def _checkpointed(model: nn.Module, network: Network) -> None:
    for block in network.blocks(model):
        block.forward = partial(checkpoint, block.forward, use_reentrant=False)


def _compiled(model: nn.Module, network: Network) -> None:
    model.compile()


@contextmanager
def _settings(budget: float = 1.0, fp8: bool = False, switches: bool = False) -> Iterator[None]:
    """Set torch's own means: a share of the saved bytes, the FP8 pass, and two switches that lower the peak beside it."""
    import torch._functorch.config as functorch
    import torch._inductor.config as inductor

    with ExitStack() as stack:
        stack.enter_context(functorch.patch(activation_memory_budget=budget))
        if fp8:
            stack.enter_context(inductor.patch(post_grad_fusion_options=FP8_PASS))
        if switches:
            stack.enter_context(functorch.patch(ban_recompute_materialized_backward=False))
            stack.enter_context(inductor.patch(allow_buffer_reuse=False))
        yield


def _torch(**settings: Any) -> Means:
    return Means(_compiled, partial(_settings, **settings))


def _with_policy(name: str, model: nn.Module, network: Network) -> AbstractContextManager[Any]:
    return actcodec.compress_activations(model, named_policy(name)[1])


def _recommended(model: nn.Module, network: Network) -> AbstractContextManager[Any]:
    return actcodec.compress_activations(model, named_policy(recommended(network.family, has_kernels).policy)[1])


EAGER, INDUCTOR = "eager", "inductor"
MEANS = {
    EAGER: Means(),
    "checkpoint per block": Means(_checkpointed),
    INDUCTOR: Means(_compiled),
    "inductor, budget 0.5": _torch(budget=0.5),
    "inductor, budget 0.2": _torch(budget=0.2),
    "FP8 pass": _torch(fp8=True),
    "FP8 pass, budget 0.5": _torch(fp8=True, budget=0.5),
    "FP8 pass, budget 0.2": _torch(fp8=True, budget=0.2),
    "FP8 pass, two switches": _torch(fp8=True, switches=True),
    "hooks, int8-rows": Means(hooks=partial(_with_policy, "int8-rows"), own=True),
    "hooks, mxint8": Means(hooks=partial(_with_policy, "mxint8"), own=True),
    "hooks, nvfp4": Means(hooks=partial(_with_policy, "nvfp4"), own=True),
    "hooks, recommended": Means(hooks=_recommended, own=True),
}
