"""Find values that have to stay exact, because they hold infinities, or numbers as large, beside others.

A format takes its steps from the greatest number, so that nothing would be left of the numbers beside it, and an infinity would
make them NaN. Masks put such numbers in: those that attention adds to its scores, and those of scores before a softmax.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import fx

from actcodec.graph.pair import GraphPair, operation
from actcodec.graph.poles import name_of
from actcodec.graph.timeline import is_view

#: Least magnitude of a constant that counts as large: masks have -10,000 and numbers beyond.
_LARGE = 1e4
#: Operations that put a constant beside other values.
_PUT_IN = frozenset(("full", "fulllike", "scalartensor", "maskedfill", "where"))
#: Operations whose results hold the large numbers of an argument.
_KEEP = frozenset(
    (
        *("where", "maskedfill", "add", "sub", "rsub", "mul", "neg", "clone", "cat", "tocopy", "convertelementtype", "slice"),
        *("select", "index", "constantpadnd", "logsoftmax"),
    )
)
#: Names of the argument that attention adds to its scores.
_BIASES = frozenset(("attn_mask", "attn_bias"))


def with_infinities(pair: GraphPair) -> set[fx.Node]:
    """Return values of the forward that hold large constants, and masks of attention with the values that they are views of."""
    found: set[fx.Node] = set()
    for node in pair.forward.nodes:
        name = name_of(node)
        constants = [one for one in node.args if isinstance(one, (int, float))]
        put_in = name in _PUT_IN and any(abs(one) >= _LARGE for one in constants)
        put_in |= name == "mul" and any(one <= -_LARGE for one in constants)  # ones of a mask become such numbers
        kept = (name in _KEEP or is_view(node)) and not found.isdisjoint(node.all_input_nodes)
        if put_in or kept:
            found.add(node)
        for bias in _biases(node):
            found.add(bias)
            while is_view(bias) or name_of(bias) == "constantpadnd":
                bias = bias.all_input_nodes[0]
                found.add(bias)
    return found


def _biases(node: fx.Node) -> Iterator[fx.Node]:
    """Yield the arguments of an operation that attention adds to its scores."""
    made = operation(node)
    if made is not None:
        given = dict(zip((one.name for one in made._schema.arguments), node.args, strict=False)) | dict(node.kwargs)
        yield from (value for name, value in given.items() if name in _BIASES and isinstance(value, fx.Node))
