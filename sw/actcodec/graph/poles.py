"""Find values that have to stay exact, because an operation with a pole, or a steep one, would multiply their errors.

``sqrt(d * d + eps)`` has the derivative d / sqrt(d * d + eps), which multiplies an error of d where d is small. From every
argument that has a pole, and from every denominator of the backward, a search goes back through the steps of
:mod:`actcodec.saved.poles` under the same limits. A step that is not linear is near the pole: its arguments and its result
have to be exact.

An operation of the backward counts as steep unless :mod:`actcodec.saved.gradient_needs` knows it as smooth. An example is the
cosine in the backward of ``sin(100 * x)``.

The number 1 beside values that are not negative, as in the derivative of softplus, keeps a denominator away from its pole.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, fx

from actcodec.graph.pair import GraphPair, operation
from actcodec.graph.timeline import hint, is_view
from actcodec.saved.gradient_needs import SMOOTH
from actcodec.saved.operations import plain
from actcodec.saved.poles import FEW, MOST_STEPS, POLES, POWERS, PRODUCTS, QUOTIENTS, STEPS

#: Steps with other names among aten's operations.
_MOVES = frozenset(
    ("tocopy", "convertelementtype", "slice", "select", "splitwithsizes", "index", "constantpadnd", "linalgvectornorm")
)
#: Operations that are not steep. :mod:`actcodec.graph.masks` keeps signs exactly.
_KNOWN = STEPS | SMOOTH | POLES.keys() | _MOVES | {"fma", "sign"}
#: Operations whose results are not negative.
_NOT_NEGATIVE = frozenset(("exp", "exp2", "abs", "relu", "sigmoid", "square", "sqrt"))


def near_poles(pair: GraphPair) -> set[fx.Node]:
    """Return values of the forward, kept or not, whose errors a pole would multiply."""
    begins = {begin for node in pair.forward.nodes for begin in _at_pole(node)}
    for node in pair.backward.nodes:
        for begin in (*_at_pole(node), *_steep(node)):
            met = {begin, *(argument for _, argument in _behind(begin))}
            begins |= {source for one in met if one.op == "placeholder" and (source := pair.source(one)) is not None}
    return begins.union(*({step, argument} for begin in begins for step, argument in _behind(begin) if not _is_linear(step)))


def steps_to_poles(graph: fx.Graph) -> Iterator[tuple[fx.Node, fx.Node]]:
    """Yield pairs of a step that is not linear, and an operation behind it whose pole would multiply the errors."""
    for node in graph.nodes:
        for begin in _at_pole(node):
            yield from ((step, node) for step, _ in _behind(begin) if not _is_linear(step))


def _behind(begin: fx.Node) -> Iterator[tuple[fx.Node, fx.Node]]:
    """Yield the steps by which a value is made, each with one of its arguments."""
    waiting, seen = [(begin, 0, 1.0)], {begin}
    while waiting:
        step, number, added = waiting.pop()
        if number == MOST_STEPS or not _is_step(step):
            continue
        for argument in step.all_input_nodes[:1] if name_of(step) in QUOTIENTS else step.all_input_nodes:
            together = added * max(1.0, _values(argument) / _values(step))
            if together <= FEW:
                yield step, argument
                if argument not in seen:
                    seen.add(argument)
                    waiting.append((argument, number + (not is_view(step)), together))


def _at_pole(node: fx.Node) -> Iterator[fx.Node]:
    """Yield the argument in which an operation has a pole."""
    name = name_of(node)
    place = 0 if name in POWERS else POLES.get(name)
    if place is None or len(node.args) <= place:
        return
    argument = node.args[place]
    if name in POWERS and isinstance(node.args[1], (int, float)) and node.args[1] >= 1:
        return
    if name == "log1p" and _is_not_negative(argument):
        return
    if isinstance(argument, fx.Node) and not _is_at_least_one(argument):
        yield argument


def _steep(node: fx.Node) -> Iterator[fx.Node]:
    """Yield the arguments of a pointwise operation whose results are floating point, and which is not known to be smooth."""
    made = operation(node)
    if made is None or torch.Tag.pointwise not in made.tags or name_of(node).removesuffix("backward") in _KNOWN:
        return
    if node.meta["val"].is_floating_point():
        yield from (one for one in node.all_input_nodes if isinstance(one.meta.get("val"), Tensor))


def name_of(node: fx.Node) -> str:
    """Return the plain name of the operation or function that a node calls; empty for none."""
    made = operation(node)
    if made is not None:
        return plain(made._schema.name.partition("::")[2])
    if node.op == "call_method":
        return plain(str(node.target))
    return plain(getattr(node.target, "__name__", "")) if node.op == "call_function" else ""


def _is_step(node: fx.Node) -> bool:
    made = operation(node)
    pointwise = made is not None and torch.Tag.pointwise in made.tags
    return pointwise or is_view(node) or node.target is operator.getitem or name_of(node) in STEPS | _MOVES


def _is_linear(step: fx.Node) -> bool:
    """Return whether the gradient of a step reads neither its arguments nor its result."""
    name = name_of(step)
    if name in PRODUCTS:
        return name in ("mul", "div", "truediv") and not all(isinstance(one, fx.Node) for one in step.args[:2])
    return name in STEPS | _MOVES or is_view(step)


def _is_not_negative(value: Any) -> bool:
    if not isinstance(value, fx.Node):
        return False
    return name_of(value) in _NOT_NEGATIVE or (name_of(value) == "mul" and value.args[0] is value.args[1])


def _is_at_least_one(node: fx.Node) -> bool:
    """Return whether a value is a sum of 1, or more, and a value that is not negative."""
    if name_of(node) != "add" or len(node.args) < 2:
        return False
    first, second = node.args[:2]
    pairs = (first, second), (second, first)
    return any(isinstance(one, (int, float)) and one >= 1 and _is_not_negative(other) for one, other in pairs)


def _values(node: fx.Node) -> int:
    """Return the number of values of a tensor; 1 for several tensors, and for what is none."""
    value = node.meta.get("val", node.meta.get("example_value"))
    return max(1, hint(value.numel())) if isinstance(value, Tensor) else 1
