"""The forward and the backward graph of a step on fake tensors, as ``torch.compile`` would make them, not compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import torch
from cdu_tools.errors import UserError
from torch import Tensor, fx, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from actcodec.graph.torch_private import decompositions

#: A partition function of AOT autograd: the joint graph -> forward and backward.
Partition = Callable[..., tuple[fx.GraphModule, fx.GraphModule]]


def traced(
    model: nn.Module,
    call: Callable[..., Any],
    given: Sequence[Any],
    mode: FakeTensorMode,
    *,
    budget: float = 1.0,
    partition: Partition | None = None,
) -> tuple[fx.GraphModule, fx.GraphModule]:
    """Trace, decompose and partition a computation in one graph, as that of a model and its loss.

    Parameters
    ----------
    model
        With fake parameters and buffers of ``mode``; they come first among the graph's inputs.
    call
        ``call(*given)`` calls the model and returns tensors.
    given
        Tensors of ``mode``, and other values.
    mode
        The mode of all fake tensors.
    budget
        torch's ``activation_memory_budget``, 0 to 1.
    partition
        Inductor's own unless given; a pass of one's own stands here, and what it keeps in fewer bytes is seen.

    UserError where nothing has a gradient.
    """
    from torch._functorch import config
    from torch._functorch.aot_autograd import aot_function
    from torch._inductor.compile_fx import partition_fn
    from torch._inductor.virtualized import V

    pairs: list[tuple[fx.GraphModule, fx.GraphModule]] = []

    def recorded(*args: Any, **options: Any) -> tuple[fx.GraphModule, fx.GraphModule]:
        pairs.append((partition or partition_fn)(*args, **options))
        return pairs[-1]

    def stop(gm: fx.GraphModule, example_inputs: Any) -> Any:
        raise _TracedError

    own = own_tensors(model)

    def whole(values: Sequence[Tensor], *batch: Any) -> Any:
        with torch.nn.utils.stateless._reparametrize_module(model, dict(zip(own, values, strict=True))):
            return call(*batch)

    compiled = aot_function(
        whole,
        fw_compiler=stop,
        bw_compiler=stop,
        partition_fn=recorded,
        decompositions=decompositions(),
        keep_inference_input_mutations=True,
    )
    options = {"activation_memory_budget": budget, "enable_autograd_cache": False}
    with mode, V.set_fake_mode(mode), config.patch(options), suppress(_TracedError):
        compiled(list(own.values()), *given)
    if not pairs:
        raise UserError("nothing in the step has a gradient: let step return a loss of the model's parameters")
    return pairs[0]


class _TracedError(Exception):
    """Ends the tracing once there are graphs: nothing is compiled."""


def own_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by name, in the order in which graphs are given them."""
    return dict(model.named_parameters()) | dict(model.named_buffers())
