"""Kept values that the backward computes again from others, among them views of what is kept."""

from __future__ import annotations

import torch
from torch import fx

from actcodec.graph.pair import GraphPair, base_of, numel, operation
from actcodec.graph.timeline import is_view


def keep_bases(pair: GraphPair) -> None:
    """Keep the base of views in their place where it has no more bytes than these: a kept view holds its base in memory."""
    views: dict[fx.Node, list[fx.Node]] = {}
    for node in pair.kept():
        if is_view(node):
            views.setdefault(base_of(node), []).append(node)
    for base, nodes in views.items():
        if base.op == "placeholder" and pair.taken(base) is None:
            continue
        if pair.taken(base) is None and numel(base) > sum(numel(node) for node in nodes):
            continue
        pair.keep(base)
        for node in nodes:
            recompute(pair, node)


def recomputation(pair: GraphPair, node: fx.Node) -> list[fx.Node] | None:
    """Return the operations of the forward that compute a kept value from other kept values and parameters, in order."""
    found: dict[fx.Node, None] = {}

    def visit(one: fx.Node) -> bool:
        if one in found or (one is not node and pair.taken(one) is not None) or isinstance(one.meta.get("val"), torch.SymInt):
            return True
        if one.op == "placeholder":
            return one in pair.parameters and not _is_written(one)
        made = operation(one)
        if made is None and getattr(one.target, "__name__", "") != "getitem":
            return False
        if made is not None and (
            made._schema.is_mutable or torch.Tag.nondeterministic_seeded in made.tags or "c10d" in str(made)
        ):
            return False
        if not all(visit(argument) for argument in one.all_input_nodes):
            return False
        found[one] = None
        return True

    return list(found) if visit(node) else None


def _is_written(node: fx.Node) -> bool:
    """Return whether the graph writes into an input."""
    return any((made := operation(user)) is not None and made._schema.is_mutable for user in node.users)


def recompute(pair: GraphPair, node: fx.Node) -> None:
    """Compute a kept value in the backward, before its first use, and keep it no longer."""
    old = pair.taken(node)
    assert old is not None, "a kept value has an input of the backward"
    known: dict[fx.Node, fx.Node] = {}
    steps = recomputation(pair, node)
    assert steps is not None, "the value can be computed again"

    def copied(argument: fx.Node) -> fx.Node:
        return known[argument] if argument in known else pair.keep(argument)

    with pair.backward.inserting_before(min(old.users)):
        for step in steps:
            known[step] = pair.backward.node_copy(step, copied)
    old.replace_all_uses_with(known[node])
    pair.drop(node)
