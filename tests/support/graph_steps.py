"""Steps of small compiled networks: by torch.compile alone, with all values kept, and with values coded."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import actcodec
import pytest
import torch
from actcodec.graph import compiled, partition
from actcodec.graph.choices import KEEP, Choices
from actcodec.graph.compiled import Compiled
from actcodec.graph.fallback import NotCompiledWarning
from actcodec.graph.torch_private import decompositions
from torch import Tensor, fx, nn

_INDUCTOR = compiled.inductor
#: Makes a network with one set of weights.
Make = Callable[[], nn.Module]
#: Takes some steps with it, from one seed of random numbers; returns losses.
Steps = Callable[..., list[Tensor]]


def run_as_they_are(graph: fx.GraphModule, inputs: Sequence[Any], partitioner: object) -> Callable[..., Any]:
    """Partition as inductor does, and run the graphs operation by operation, in a tenth of the time that a compiler takes."""
    import torch._functorch.config as functorch
    from torch._dynamo.backends.common import aot_autograd

    def boxed(one: fx.GraphModule, _: object) -> Callable[..., Any]:
        def call(values: list[Any]) -> Any:
            given = list(values)
            values.clear()
            return one(*given)

        call._boxed_call = True  # type: ignore[attr-defined]
        return call

    compilers = dict.fromkeys(("fw_compiler", "bw_compiler", "inference_compiler"), boxed)
    with functorch.patch(enable_autograd_cache=False, ban_recompute_materialized_backward=False):
        return aot_autograd(**compilers, partition_fn=partitioner, decompositions=decompositions())(graph, inputs)


@dataclass
class Found:
    """Holds the results of steps."""

    losses: list[Tensor]
    gradients: dict[str, Tensor]
    coded: int  #: values that were coded in graphs compiled meanwhile


def found(make: Make, steps: Steps, policy: str | None, part: Callable[..., nn.Module] = lambda model: model) -> Found:
    """Take steps with a network that torch.compile compiles alone (None), with all values kept (``keep``), or by a policy.

    ``part`` returns the part of the network that is compiled.
    """
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = make()
    called: Callable[..., object] = model
    if policy is None:
        called = torch.compile(model, backend="inductor" if compiled.inductor is _INDUCTOR else "aot_eager_decomp_partition")
    elif policy == KEEP:
        Compiled(part(model), Choices(KEEP), None)
    else:
        actcodec.compiled(part(model), policy=policy)
    torch.manual_seed(1)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("error", NotCompiledWarning)
        coded = []
        code = partition.code

        def counted(pair, node, form):
            coded.append(form.name)
            return code(pair, node, form)

        patch.setattr(partition, "code", counted)
        # A graph of the cache is not partitioned again, and so not counted.
        with torch._functorch.config.patch(enable_autograd_cache=False):
            losses = steps(called)
    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    return Found([loss.detach() for loss in losses], gradients, sum(name != "bits" for name in coded))


def cosine(a: dict[str, Tensor], b: dict[str, Tensor]) -> float:
    """Return the cosine of the angle between two gradients of all parameters."""
    assert a.keys() == b.keys()
    one, other = (torch.cat([grads[name].double().flatten() for name in a]) for grads in (a, b))
    return float(one @ other / (one.norm() * other.norm()))
