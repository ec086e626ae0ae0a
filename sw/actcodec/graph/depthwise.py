"""Backward passes of depthwise convolutions, whose inputs inductor lays out in an order that oneDNN has no kernel for.

Inductor (torch 2.13) orders the inputs' axes as those of the weight's gradient. With one channel per group two of its strides
are equal, and maps that lie channels last come as N, H, C, W: oneDNN copies them, for twice the time and two maps more at the
peak. An operation that inductor does not know is given its inputs as they lie in the graph.
"""

from __future__ import annotations

import torch
from torch import Tensor, fx

_NEEDED = [True, True, False]


def _gradients(
    gradient: Tensor, x: Tensor, weight: Tensor, stride: list[int], padding: list[int], dilation: list[int], groups: int
) -> tuple[Tensor, Tensor]:
    """Return the gradients of what the convolution reads and of its weight."""
    sizes, none = weight.shape[:1], [0] * len(stride)
    found = torch.ops.aten.convolution_backward.default(
        gradient, x, weight, sizes, stride, padding, dilation, False, none, groups, _NEEDED
    )
    return found[0], found[1]


_OPERATION = torch.library.custom_op(
    "actcodec::depthwise_backward", _gradients, mutates_args=(), tags=torch.Tag.needs_fixed_stride_order
)
_OPERATION.register_fake(_gradients)


def keep_layouts(graph: fx.Graph) -> None:
    """Let depthwise convolutions of a backward graph on the CPU read maps that lie channels last as they lie."""
    for node in graph.find_nodes(op="call_function", target=torch.ops.aten.convolution_backward.default):
        gradient, x, weight, _, stride, padding, dilation, transposed, _, groups, needed = node.args
        value, kernel = x.meta["val"], weight.meta["val"]
        if (
            (value.device.type, value.dim(), kernel.shape[1]) == ("cpu", 4, 1)
            and (transposed, list(needed)) == (False, _NEEDED)
            and value.is_contiguous(memory_format=torch.channels_last)
            and all(user.args[1] < 2 for user in node.users)
        ):
            node.target = torch.ops.actcodec.depthwise_backward.default
            node.args = (gradient, x, weight, stride, padding, dilation, groups)
