"""Find the graph edges on which the gradients of one operation arrive and leave, and listen to them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor
from torch.autograd.graph import Node, get_gradient_edge

from actcodec.saved.operations import Source

#: Most nodes between a layer's result and its weight or input: views, casts, transposition, the sum with a bias.
_SEARCH_LIMIT = 12
_LEAF = "torch::autograd::AccumulateGrad"
Place = tuple[Node, int]


def nodes_below(output: Tensor, end: Node | None = None) -> Iterator[Node]:
    """Yield nodes below a result, the nearest first, except ``end`` and nodes reached only through it."""
    waiting, seen = deque([output.grad_fn]), {end, None}
    for _ in range(_SEARCH_LIMIT):
        while waiting and waiting[0] in seen:
            waiting.popleft()
        if not waiting:
            return
        node = waiting.popleft()
        assert node is not None, "None has been seen"
        seen.add(node)
        yield node
        waiting.extend(below for below, _ in node.next_functions)


def places_of(output: Tensor, target: Tensor) -> list[Place]:
    """Return the nodes below ``output`` that pass a gradient to ``target``, each with the index of that gradient."""
    wanted = get_gradient_edge(target)
    return [
        (node, place)
        for node in nodes_below(output, wanted.node)
        for place, (below, number) in enumerate(node.next_functions)
        if below is wanted.node and number == wanted.output_nr
    ]


def place_of_source(node: Node, source: Source, places: Sequence[int]) -> int | None:
    """Return the index, among ``places``, of the input of a node that comes from ``source``; None if there is none."""
    for place in places:
        below, number = node.next_functions[place]
        if (below, number) == source or (source[0] is None and (below is None or below.name() == _LEAF)):
            return place
    return None


def on_passed_gradient(node: Node, place: int, learn: Callable[[Tensor, Tensor], None]) -> None:
    """Call ``learn`` with the gradient that a node passes to one of its inputs, and the first gradient that it received."""

    def hook(inputs: Sequence[Tensor | None], outputs: Sequence[Tensor | None]) -> None:
        mine, first = inputs[place], outputs[0]
        if mine is not None and first is not None:
            with torch.no_grad():
                learn(mine, first)

    node.register_hook(hook)


def on_total_gradient(places: Sequence[Place], learn: Callable[[Tensor], None]) -> None:
    """Call ``learn`` with the sum of the gradients that several nodes pass on, once all have arrived.

    The hooks refer to no node: a node that its own hook refers to is freed by the cycle collector alone.
    """
    parts: list[Tensor] = []
    count = len(places)

    def add(gradient: Tensor, _: Tensor) -> None:
        parts.append(gradient)
        if len(parts) == count:
            total = parts[0] if len(parts) == 1 else torch.stack(parts).sum(0)
            parts.clear()
            learn(total)

    for node, place in places:
        on_passed_gradient(node, place, add)
