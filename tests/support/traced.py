"""Fake tensors with symbolic sizes, and functions of tensors compiled as a pass over a graph compiles them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import torch
from torch import Tensor
from torch._inductor.decomposition import select_decomp_table
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext


def fake_of(x: Tensor, symbolic: Collection[int]) -> Tensor:
    """A fake tensor of the layout of ``x`` in which the sizes of some axes are symbols."""
    sizes = [DimDynamic.DYNAMIC if axis in symbolic else DimDynamic.STATIC for axis in range(x.dim())]
    context: Any = StatelessSymbolicContext(dynamic_sizes=sizes)
    return FakeTensorMode(shape_env=ShapeEnv()).from_tensor(x, symbolic_context=context)


def traced(function: Callable[..., Any], *arguments: Tensor) -> GraphModule:
    """A function as a graph of plain operations, with inductor's decompositions."""
    return make_fx(lambda *given: function(*given), decomposition_table=select_decomp_table())(*arguments)


def compiled(function: Callable[..., Any], *arguments: Tensor) -> Callable[..., Any]:
    """A function as inductor compiles it for these arguments."""
    torch._dynamo.reset()
    return torch.compile(traced(function, *arguments), dynamic=False)
