"""Blocks that are compiled one by one, in a step that runs operation by operation on fake tensors.

A block is traced once for each kind and shapes. In the step it takes the memory that the timeline of its two graphs predicts;
its operations do not run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from cdu_tools.errors import UserError
from torch import Tensor, nn
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from actcodec.graph.partition import Choose, Partitioner
from actcodec.graph.segments import Roles
from actcodec.graph.timeline import BACKWARD, FORWARD, Timeline, bytes_of, outputs_of, peak_of
from actcodec.graph.torch_private import FakeTensorMode, partition_by, partitioner, without_modes
from actcodec.graph.traced import own_tensors, traced


@dataclass(frozen=True)
class _Plan:
    """Bytes and results of one kind of block."""

    outputs: tuple[Tensor, ...]  #: fake
    spec: TreeSpec
    inputs: tuple[int, ...]  #: indices of inputs that the backward reads unchanged
    hidden: int  #: kept beside inputs and outputs
    forward: int  #: bytes at the peak of the forward, without those kept
    backward: int  #: bytes at the peak of the backward, without those kept and the gradients passed in


class CompiledBlocks:
    """Make forwards of blocks that take the memory of ``torch.compile``.

    Parameters
    ----------
    mode
        Mode of the fake tensors.
    budget
        torch's ``activation_memory_budget``.
    choose
        What ``actcodec.compiled`` keeps in which format; None for ``torch.compile`` alone.
    on_cpu
        True to count the workspace of oneDNN's convolutions.
    """

    def __init__(self, mode: FakeTensorMode, budget: float, choose: Choose | None = None, *, on_cpu: bool = False) -> None:
        self._mode, self._budget, self._choose, self._on_cpu = mode, budget, choose, on_cpu
        self._plans: dict[Any, _Plan] = {}

    def call(self, block: nn.Module, original: Any, *args: Any, **kwargs: Any) -> Any:
        """Return what ``original``, the forward of ``block``, returns; UserError for results that hide tensors in objects."""
        flat, spec = tree_flatten((args, kwargs))
        own = list(own_tensors(block).values())
        key = (type(block), spec, tuple(_shape(one) for one in (*own, *flat)))
        if key not in self._plans:
            self._plans[key] = self._plan(block, original, flat, spec)
        plan = self._plans[key]
        tensors = [*own, *(one for one in flat if isinstance(one, Tensor))]
        found = _Replayed.apply(plan, *tensors)  # type: ignore[no-untyped-call]
        return tree_unflatten(list(found), plan.spec)

    def _plan(self, block: nn.Module, original: Any, flat: list[Any], spec: TreeSpec) -> _Plan:
        returned: list[TreeSpec] = []
        places = [place for place, one in enumerate(flat) if isinstance(one, Tensor)]

        def call(*tensors: Tensor) -> list[Any]:
            values = list(flat)
            for place, one in zip(places, tensors, strict=True):
                values[place] = one
            args, kwargs = tree_unflatten(values, spec)
            outputs, out = tree_flatten(original(*args, **kwargs))
            returned[:] = [out]
            for one in outputs:
                if not isinstance(one, Tensor | int | float | str | None):
                    raise UserError(
                        f"cannot predict {type(block).__name__}, compiled: it returns a {type(one).__name__}; let it return "
                        "tensors (models of transformers: config.use_cache = False)"
                    )
            return outputs

        with without_modes(), self._mode:
            given = [flat[place].detach().requires_grad_(flat[place].requires_grad) for place in places]
            partition = None
            if self._choose is not None:
                own = tuple(range(len(own_tensors(block))))
                partition = partition_by(partitioner(Partitioner(self._choose, Roles((), own)), ""))
            forward, backward = traced(block, call, given, self._mode, budget=self._budget, partition=partition)
        line = peak_of(forward.graph, backward.graph, workspace=self._on_cpu, layouts=partition is None)
        primals = [node.name for node in forward.graph.find_nodes(op="placeholder")]
        wanted = {node.name for node in backward.graph.find_nodes(op="placeholder")}
        listed = outputs_of(forward.graph)
        # The order of results: tensors changed in place, outputs, kept tensors.
        results = len(listed) - len(wanted & {node.name for node in forward.graph.nodes})
        outputs = tuple(node.meta["val"] for node in listed[results - returned[0].num_leaves : results])
        tangents = sum(
            bytes_of(node.meta["val"])
            for node in backward.graph.find_nodes(op="placeholder")
            if node.name.startswith("tangents")
        )
        return _Plan(
            outputs,
            returned[0],
            tuple(place for place, name in enumerate(primals) if name in wanted),
            max(line.kept - bytes_of(outputs), 0),
            _peak(line, FORWARD) - line.kept,
            _peak(line, BACKWARD) - line.kept - tangents,
        )


def _peak(line: Timeline, phase: str) -> int:
    return max((moment.live for moment in line.moments if moment.phase == phase), default=line.kept)


def _shape(value: Any) -> Any:
    return (tuple(value.shape), value.dtype, value.requires_grad) if isinstance(value, Tensor) else value


class _Replayed(torch.autograd.Function):
    """Allocate a block's memory without running its operations."""

    @staticmethod
    def forward(ctx: Any, plan: _Plan, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Compute outputs from inputs, the block's own tensors first."""
        ctx.plan = plan
        ctx.save_for_backward(*(tensors[place] for place in plan.inputs))
        ctx.like = [(tuple(one.shape), one.dtype, need) for one, need in zip(tensors, ctx.needs_input_grad[1:], strict=True)]
        source = tensors[0]
        outputs = tuple(source.new_empty(one.shape, dtype=one.dtype) for one in plan.outputs)
        ctx.hidden = source.new_empty(plan.hidden, dtype=torch.uint8)
        source.new_empty(max(plan.forward, 0), dtype=torch.uint8)
        return outputs

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Compute gradients of inputs from gradients of outputs."""
        source = gradients[0]
        source.new_empty(max(ctx.plan.backward, 0), dtype=torch.uint8)
        found = (source.new_empty(size, dtype=dtype) if need else None for size, dtype, need in ctx.like)
        del ctx.hidden
        return (None, *found)
