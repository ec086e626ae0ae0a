"""Private names of torch that compression in compiled graphs needs, and the versions it is tested with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from cdu_tools.errors import UserError
from torch import fx

#: Minor releases of torch 2 that the tests have run with.
TESTED = range(11, 15)


def check_version() -> None:
    """Raise UserError for a release of torch whose private functions are not known to fit."""
    major, minor = (int(part) for part in torch.__version__.split(".")[:2])
    if major != 2 or minor not in TESTED:
        raise UserError(
            f"torch {torch.__version__} is not known to compressed compilation: use torch 2.{TESTED[0]} to 2.{TESTED[-1]}, "
            "or compress_activations, which uses public functions alone"
        )


def min_cut(joint: fx.GraphModule, inputs: Sequence[Any], **options: Any) -> tuple[fx.GraphModule, fx.GraphModule]:
    """Return torch's own forward and backward graph of a joint graph: values that are cheap to compute are computed again."""
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    return min_cut_rematerialization_partition(joint, inputs, **options)


def inductor_partition(joint: fx.GraphModule, inputs: Sequence[Any], **options: Any) -> tuple[fx.GraphModule, fx.GraphModule]:
    """Return inductor's forward and backward graph: its passes over the joint graph, then the partitioner that is set."""
    from torch._inductor.compile_fx import partition_fn

    return partition_fn(joint, inputs, **options)


def inductor(graph: fx.GraphModule, inputs: Sequence[Any], partitioner: object) -> Callable[..., Any]:
    """Compile a graph of dynamo with inductor, which partitions with ``partitioner`` and schedules for a low peak.

    By default the partitioner keeps on the CPU as much as eager execution does, and a freed buffer may be taken by a smaller one
    that lives longer.
    """
    import torch._functorch.config as functorch
    from torch._inductor.compile_fx import compile_fx

    settings = {"custom_partitioner_fn": partitioner, "allow_buffer_reuse": False, "layout_optimization": False}
    with functorch.patch(ban_recompute_materialized_backward=False):
        return compile_fx(graph, inputs, config_patches=settings)


def partitioner_base() -> type:
    """Return the class of which inductor's setting ``custom_partitioner_fn`` takes an object."""
    from torch._inductor.custom_graph_pass import CustomPartitionerFn

    return CustomPartitionerFn


def saved_output(value: object, index: int) -> object:
    """Return torch's description of an output of the forward that the backward takes."""
    from torch._functorch._aot_autograd import descriptors

    unchecked = isinstance(value, fx.Node) and value.meta.get("saved_tensor_with_no_vc_check")
    kind = descriptors.SavedForBackwardsNoVcCheckAOTOutput if unchecked else descriptors.SavedForBackwardsAOTOutput
    return kind(index)


def is_parameter(node: fx.Node) -> bool:
    """Return whether an input of the forward is a parameter or buffer of the model."""
    from torch._functorch._aot_autograd.descriptors import BufferAOTInput, ParamAOTInput

    return isinstance(node.meta.get("desc"), (ParamAOTInput, BufferAOTInput))


def decompositions() -> dict[Any, Callable[..., Any]]:
    """Return inductor's decompositions."""
    from torch._inductor.decomposition import select_decomp_table

    return select_decomp_table()


def split(graph: fx.GraphModule, inputs: Sequence[Any], nbytes: int, compile_part: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a graph of dynamo in parts whose gradients of parameters are at least ``nbytes`` each."""
    from torch._dynamo.backends.distributed import DDPOptimizer

    return DDPOptimizer(nbytes, compile_part, nbytes).compile_fn(graph, list(inputs))
