"""The partitioner: torch's own forward and backward, in which kept values are coded or computed again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from torch import Tensor, fx

from actcodec.graph.decoding import code, separate
from actcodec.graph.formats import Format
from actcodec.graph.halves import halve_attention
from actcodec.graph.infinities import with_infinities
from actcodec.graph.masks import keep_masks, pack_integers
from actcodec.graph.pair import GraphPair, base_of, operation
from actcodec.graph.poles import near_poles
from actcodec.graph.recomputation import keep_bases, recomputation, recompute
from actcodec.graph.segments import Roles
from actcodec.graph.timeline import hint
from actcodec.graph.torch_private import min_cut

#: A value is kept as it is, coded in a format, or computed again in the backward.
Action = Format | Literal["keep", "recompute"]
KEEP: Literal["keep"] = "keep"
RECOMPUTE: Literal["recompute"] = "recompute"

NO_ROLES = Roles()
#: Name of the model in paths that dynamo writes, for the function whose first argument it is.
_MODEL = "L['fn'].args[0]"


@dataclass(frozen=True)
class Saved:
    """A value of the forward that the backward takes."""

    pair: GraphPair
    node: fx.Node
    index: int  #: place among the values that are kept

    @property
    def name(self) -> str:
        """Return the name of the node, unique in its graph."""
        return self.node.name

    @property
    def value(self) -> Tensor:
        """Return the fake tensor of the node."""
        value: Tensor = self.node.meta["val"]
        return value

    @property
    def nbytes(self) -> int:
        """Return the bytes of the value as it is; sizes that change count as in the first step."""
        return hint(self.value.numel()) * self.value.element_size()

    @property
    def operation(self) -> str:
        """Return the name of the operation that made the value."""
        made = operation(self.node)
        return self.node.op if made is None else str(made)

    @property
    def module(self) -> str:
        """Return the path of the module that made the value, empty for none."""
        stack = self.node.meta.get("nn_module_stack") or {}
        return list(stack.values())[-1][0].removeprefix(_MODEL).lstrip(".") if stack else ""

    @property
    def key(self) -> str:
        """Return what finds the value again in a graph of other sizes or parts: module, operation, sizes but the first."""
        return f"{self.module} {self.operation} {tuple(hint(size) for size in self.value.shape[1:])}"

    @cached_property
    def recomputed(self) -> list[fx.Node] | None:
        """Return the operations that compute the value from others that are kept, None when it cannot be computed again."""
        return recomputation(self.pair, self.node)


#: Chooses an action for each value that may be coded.
Choose = Callable[[Sequence[Saved]], Sequence[Action]]


class Partitioner:
    """Partitions a joint graph of aten operations as min-cut does, then rewrites what is kept.

    Parameters
    ----------
    choose
        Called once for each graph with the values that may be coded.
    roles
        Which inputs of the part may be coded, and which live on.
    """

    def __init__(self, choose: Choose, roles: Roles = NO_ROLES) -> None:
        self._choose, self._roles = choose, roles

    def __call__(
        self, joint: fx.GraphModule, inputs: Sequence[Any], *, num_fwd_outputs: int, **options: Any
    ) -> tuple[fx.GraphModule, fx.GraphModule]:
        """Return the forward and the backward graph."""
        static = options.get("static_lifetime_input_indices") or ()
        forward, backward = min_cut(joint, inputs, num_fwd_outputs=num_fwd_outputs, **options)
        pair = GraphPair(forward, backward, num_fwd_outputs, frozenset(static) | frozenset(self._roles.parameters))
        self.apply(pair)
        return pair.finish()

    def apply(self, pair: GraphPair) -> None:
        """Rewrite the graphs of a pair."""
        keep_bases(pair)
        saved = saved_values(pair, self._roles)
        rewrite(pair, dict(zip(saved, self._choose(saved), strict=True)))


def saved_values(pair: GraphPair, roles: Roles) -> list[Saved]:
    """Return the kept values that may be approximations: floating point, made by the model and held by nothing else.

    Parameters and what is computed from them alone are none: an error in them would be the same in each step. Values whose
    errors a pole would multiply are none either, nor those that hold infinities or numbers as large.
    """
    inputs = pair.forward.find_nodes(op="placeholder")
    held = {node for place, node in enumerate(inputs) if place not in roles.between}
    exact = _fixed(pair) | near_poles(pair) | with_infinities(pair)
    return [
        Saved(pair, node, index)
        for index, node in enumerate(pair.kept())
        if node.meta["val"].is_floating_point()
        and not {node, base_of(node)} & held
        and node not in exact
        and node not in pair.returned
    ]


def _fixed(pair: GraphPair) -> set[fx.Node]:
    """Return parameters, buffers, and what is computed from them alone."""
    fixed = set(pair.parameters)
    for node in pair.forward.nodes:
        if node.all_input_nodes and fixed.issuperset(node.all_input_nodes):
            fixed.add(node)
    return fixed


def keep_exact_masks(pair: GraphPair, roles: Roles) -> None:
    """Keep the masks and the bases of views that :func:`rewrite` keeps, and all values as they are."""
    keep_bases(pair)
    keep_masks(pair, {pair.taken(saved.node) for saved in saved_values(pair, roles)})


def rewrite(pair: GraphPair, actions: dict[Saved, Action]) -> None:
    """Apply an action to each value that the backward takes."""
    for saved, action in actions.items():
        if action == RECOMPUTE:
            recompute(pair, saved.node)
    separate(pair)
    halve_attention(pair)
    changed = {saved.node: action for saved, action in actions.items() if isinstance(action, Format)}
    keep_masks(pair, {pair.taken(node) for node in changed})
    for node, form in changed.items():
        code(pair, node, form)
    for node in pair.kept():
        if not node.meta["val"].is_floating_point():
            pack_integers(pair, node)
