"""Cuts of a model's graph into parts, so that gradients of parameters leave the backward before its end.

A compiled backward hands over all gradients of parameters at once, and so all of them live at its end. Parts that are compiled
one by one hand over theirs one by one, as eager execution does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.fx.passes.split_module import split_module

from actcodec.graph.maps import lay_out_maps, written
from actcodec.graph.poles import steps_to_poles
from actcodec.graph.timeline import bytes_of
from actcodec.graph.torch_private import compile_parts, storage_of

#: Most parts of a graph; each costs a call of a compiled function in either direction.
MOST_PARTS = 8


@dataclass(frozen=True)
class Roles:
    """The places of a part's inputs that may be coded, and of those that live on by themselves."""

    between: tuple[int, ...] = ()  #: results of an earlier part, which nothing else holds
    parameters: tuple[int, ...] = ()


#: Compiles a part: its graph, its inputs and their roles -> a function.
CompilePart = Callable[[fx.GraphModule, Sequence[Any], Roles], Callable[..., Any]]


def compile_in_parts(
    graph: fx.GraphModule, inputs: Sequence[Any], compile_part: CompilePart, parts: int | None
) -> Callable[..., Any]:
    """Compile a graph of dynamo in parts.

    Parameters
    ----------
    graph, inputs
        As dynamo gives them to a backend.
    compile_part
        Compiles one part.
    parts
        Their number; None for as many as it takes for the gradients of one to be small beside what is kept.
    """
    lay_out_maps(graph)
    number = parts_of(graph) if parts is None else parts
    cuts = _cuts(graph, number) if number > 1 else []
    if not cuts:
        return compile_part(graph, inputs, Roles((), _parameters(graph)))
    where = {node: sum(place >= cut for cut in cuts) for place, node in enumerate(graph.graph.nodes)}
    inputs_of_all = graph.graph.find_nodes(op="placeholder")
    given = {node.name for node in inputs_of_all}
    own = {inputs_of_all[place].name for place in _parameters(graph)}
    whole = split_module(graph, graph, where.__getitem__, keep_original_order=True)

    def compile_one(part: fx.GraphModule, values: Sequence[Any]) -> Callable[..., Any]:
        names = [node.name for node in part.graph.find_nodes(op="placeholder")]
        between = (place for place, name in enumerate(names) if name not in given)
        return compile_part(
            part, values, Roles(tuple(between), tuple(place for place, name in enumerate(names) if name in own))
        )

    return compile_parts(whole, inputs, compile_one)


def _parameters(graph: fx.GraphModule) -> tuple[int, ...]:
    """Return the places of the inputs that are parameters."""
    inputs = graph.graph.find_nodes(op="placeholder")
    return tuple(place for place, node in enumerate(inputs) if isinstance(_value(node), nn.Parameter))


def parts_of(graph: fx.GraphModule) -> int:
    """Return the number of parts for which the gradients of one have at most half the bytes that coded values have."""
    gradients = sum(map(_parameter_bytes, graph.graph.nodes))
    made = sum(bytes_of(_value(node)) for node in graph.graph.nodes if node.op not in ("placeholder", "get_attr", "output"))
    kept = max(made // 8, 1)
    return min(max(-(-2 * gradients // kept), 1), MOST_PARTS)


def _value(node: fx.Node) -> Any:
    return node.meta.get("example_value")


def _parameter_bytes(node: fx.Node) -> int:
    """Return the bytes of a parameter with a gradient that an input of the graph is."""
    value = _value(node)
    is_parameter = node.op == "placeholder" and isinstance(value, nn.Parameter) and value.requires_grad
    return bytes_of(value) if is_parameter else 0


def _cuts(graph: fx.GraphModule, parts: int) -> list[int]:
    """Return places before which the graph is cut: near equal shares of gradients and of values, where little crosses."""
    nodes = list(graph.graph.nodes)
    place_of = {node: place for place, node in enumerate(nodes)}
    crossing, gradients, values = [0.0] * (len(nodes) + 1), [0] * (len(nodes) + 1), [0] * (len(nodes) + 1)
    seen: set[fx.Node] = set()
    written: dict[int, int] = {}  # the place of the first node of each storage
    for place, node in enumerate(nodes):
        made = 0
        if node.op not in ("placeholder", "get_attr", "output") and node.users:
            made = bytes_of(_value(node))
            for after in range(place + 1, max(place_of[user] for user in node.users) + 1):
                crossing[after] += _crossing(_value(node))
        for after in _until_written(node, place, written):
            crossing[after] = inf
        new = {one for one in node.all_input_nodes if one.op == "placeholder"} - seen
        seen |= new
        gradients[place + 1] = gradients[place] + sum(map(_parameter_bytes, new))
        values[place + 1] = values[place] + made
    for step, pole in steps_to_poles(graph.graph):  # a part has to see what its values are read by
        for after in range(place_of[step] + 1, place_of[pole] + 1):
            crossing[after] = inf
    total = (max(gradients[-1], 1), max(values[-1], 1))
    before = [one / total[0] + other / total[1] for one, other in zip(gradients, values, strict=True)]
    first = 1 + max((place for place, node in enumerate(nodes) if node.op in ("placeholder", "get_attr")), default=0)
    cuts: list[int] = []
    for share in range(1, parts):
        wanted = before[-1] * share / parts
        near = [
            place
            for place in range(first + 1, len(nodes) - 1)
            if abs(before[place] - wanted) <= before[-1] / parts / 2 and crossing[place] < inf
        ]
        if near:
            cuts.append(min(near, key=partial(_cost, crossing, before, wanted)))
    return sorted(set(cuts))


def _crossing(value: Any) -> float:
    """Return the bytes of a value that one part hands to another; infinitely many for a tuple, which none can."""
    return bytes_of(value) if isinstance(value, (Tensor, int, float, torch.SymInt)) else inf


def _until_written(node: fx.Node, place: int, made: dict[int, int]) -> range:
    """Return the places between where a storage is made and where a node writes into it: no part writes into another's."""
    firsts = [place + 1, *(made.get(storage_of(one), place) + 1 for one in written(node))]
    value = _value(node)
    if node.op not in ("placeholder", "get_attr", "output") and isinstance(value, Tensor):
        made.setdefault(storage_of(value), place)
    return range(min(firsts), place + 1)


def _cost(crossing: Sequence[float], before: Sequence[float], wanted: float, place: int) -> tuple[float, float]:
    return crossing[place], abs(before[place] - wanted)
