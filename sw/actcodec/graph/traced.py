"""The forward and the backward graph of a step on fake tensors, as ``torch.compile`` would make them, not compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cdu_tools.errors import UserError
from torch import Tensor, fx, nn

from actcodec.graph.torch_private import FakeTensorMode, joint_graphs, partition_by, with_tensors

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
    own = own_tensors(model)

    def whole(values: Sequence[Tensor], *batch: Any) -> Any:
        with with_tensors(model, dict(zip(own, values, strict=True))):
            return call(*batch)

    pair = joint_graphs(whole, (list(own.values()), *given), mode, budget, partition or partition_by(None))
    if pair is None:
        raise UserError("nothing in the step has a gradient: let step return a loss of the model's parameters")
    return pair


def own_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by name, in the order in which graphs are given them."""
    return dict(model.named_parameters()) | dict(model.named_buffers())
