"""Backward passes of attention in two halves of the batch, so that one half of what they read is decoded at a time."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, constant_pad_nd, fx

from actcodec.graph.pair import GraphPair, operation

_BACKWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default
#: Attention over fewer bytes of queries stays whole.
LEAST_BYTES = 1 << 18


def halve_attention(pair: GraphPair) -> None:
    """Replace each backward pass of attention by one for either half of the batch; samples do not depend on each other.

    The second half is noted in ``pair.follows``: what it reads is decoded once the first half is there.
    """
    for node in list(pair.backward.nodes):
        if operation(node) is not _BACKWARD or len(node.args) < 8 or node.kwargs.get("attn_mask") is not None:
            continue
        query = node.args[1].meta["val"]
        batch = query.shape[0]
        if (
            not isinstance(batch, int)
            or batch % 2
            or not isinstance(query.numel(), int)
            or query.numel() * query.element_size() < LEAST_BYTES
        ):
            continue
        _halve(pair, node, batch // 2)


def _halve(pair: GraphPair, node: fx.Node, half: int) -> None:
    tensors: list[fx.Node] = list(node.args[:6])  # type: ignore[arg-type]
    settings = node.args[6:], tuple(node.kwargs.items())
    with pair.backward.inserting_before(node):
        one = pair.trace(pair.backward, _part, tensors, 0, half, *settings)
        other = pair.trace(pair.backward, _part, tensors, half, half, *settings)
        both = pair.trace(pair.backward, _all_joined, one + other)
    pair.follows[other[0].all_input_nodes[0]] = one[0]
    for part in list(node.users):
        part.replace_all_uses_with(both[part.args[1]])  # type: ignore[index]
        pair.backward.erase_node(part)
    pair.backward.erase_node(node)


def _part(first: int, count: int, settings: tuple[Any, ...], options: tuple[tuple[str, Any], ...], *values: Tensor) -> Any:
    """Return the gradients of samples from ``first`` on."""
    return _BACKWARD(*(one.narrow(0, first, count) for one in values), *settings, **dict(options))


def _all_joined(*values: Tensor) -> list[Tensor]:
    return list(map(_joined, values[:3], values[3:]))


def _joined(one: Tensor, other: Tensor) -> Tensor:
    """Join two halves along the first axis in operations that the compiler, unlike ``cat``, fuses into what reads them."""
    half, behind = len(one), [0] * (2 * one.dim() - 2)
    is_first = torch.arange(2 * half, device=one.device).view(-1, *[1] * (one.dim() - 1)) < half
    return torch.where(is_first, constant_pad_nd(one, [*behind, 0, half]), constant_pad_nd(other, [*behind, half, 0]))
