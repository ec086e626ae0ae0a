"""The forward and the backward graph of a step on fake tensors, as ``torch.compile`` would make them, without compiling them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from cdu_tools.errors import UserError
from torch import Tensor, fx, nn
from torch._subclasses.fake_tensor import FakeTensorMode

#: A partition function of AOT autograd: the joint graph -> forward and backward.
Partition = Callable[..., tuple[fx.GraphModule, fx.GraphModule]]


def traced(
    model: nn.Module,
    loss: Callable[..., Tensor],
    data: Sequence[Any],
    mode: FakeTensorMode,
    *,
    budget: float = 1.0,
    partition: Partition | None = None,
) -> tuple[fx.GraphModule, fx.GraphModule]:
    """Trace, decompose and partition a step in one graph: the model and its loss.

    Parameters
    ----------
    model
        With fake parameters and buffers of ``mode``.
    loss
        ``loss(*data)`` calls the model; a tensor of one value.
    budget
        torch's ``activation_memory_budget``, 0 to 1.
    partition
        Inductor's own unless given; a pass of one's own stands here, and what it keeps in fewer bytes is seen.

    UserError for a step in which nothing has a gradient.
    """
    from torch._functorch import config
    from torch._functorch.aot_autograd import aot_function, make_boxed_func
    from torch._inductor.compile_fx import partition_fn
    from torch._inductor.decomposition import select_decomp_table
    from torch._inductor.virtualized import V

    graphs: dict[str, fx.GraphModule] = {}

    def recorded(name: str) -> Callable[..., Any]:
        def compiler(graph: fx.GraphModule, examples: Any) -> Any:
            del examples
            graphs[name] = graph
            return make_boxed_func(graph)

        return compiler

    own = {name: tensor for name, tensor in (*model.named_parameters(), *model.named_buffers())}

    def step(values: Sequence[Tensor], *batch: Any) -> Tensor:
        with torch.nn.utils.stateless._reparametrize_module(model, dict(zip(own, values, strict=True))):
            return loss(*batch)

    compiled = aot_function(
        step,
        fw_compiler=recorded("forward"),
        bw_compiler=recorded("backward"),
        partition_fn=partition or partition_fn,
        decompositions=select_decomp_table(),
        keep_inference_input_mutations=True,
    )
    with mode, V.set_fake_mode(mode), config.patch(activation_memory_budget=budget, enable_autograd_cache=False):
        compiled(list(own.values()), *data).backward()
    if len(graphs) < 2:
        raise UserError("nothing in the step has a gradient: let step return a loss of the model's parameters")
    return graphs["forward"], graphs["backward"]
