"""Booleans and positions of pools, which the backward takes exactly and in few bits."""

from __future__ import annotations

from math import prod

import torch
from torch import Tensor, fx

from actcodec.graph.decoding import code
from actcodec.graph.formats import FORMATS, Format, format_of
from actcodec.graph.pair import GraphPair, ancestors, numel, operation
from actcodec.graph.windows import Windows

#: Booleans of fewer values are computed again from what is reconstructed.
LEAST_MASK = 1024


def keep_masks(pair: GraphPair, coded: set[fx.Node | None]) -> None:
    """Keep booleans that the backward would derive from approximations as the forward has them, a bit each.

    A rectifier's mask, derived from a coded value, has the wrong sign wherever coding moved a value across zero. So have signs
    of values, which become two masks.
    """
    for node in pair.backward.find_nodes(op="call_function", target=torch.ops.aten.sign.default):
        if numel(node) >= LEAST_MASK and not coded.isdisjoint(ancestors(node)):
            with pair.backward.inserting_before(node):
                node.replace_all_uses_with(*pair.trace(pair.backward, _signs, node.all_input_nodes))
            pair.backward.erase_node(node)
    for node in list(pair.backward.nodes):
        if node.op != "call_function" or not _is_mask(node) or numel(node) < LEAST_MASK:
            continue
        if all(_is_mask(user) for user in node.users) or coded.isdisjoint(ancestors(node)):
            continue
        twin = _in_forward(pair, node)
        if twin is not None:
            node.replace_all_uses_with(pair.keep(twin))
            pair.backward.erase_node(node)


def _signs(x: Tensor) -> Tensor:
    return (x > 0).to(x.dtype) - (x < 0).to(x.dtype)


def _in_forward(pair: GraphPair, node: fx.Node) -> fx.Node | None:
    """Return a node of the forward that computes what one of the backward does, made where there is none; None if none can."""
    twin = pair.made.get(node.name)
    if twin is not None and twin.target is node.target:
        return twin
    if node.op != "call_function" or operation(node) is None:
        return None
    known = {}
    for argument in node.all_input_nodes:
        found = pair.source(argument) if argument.op == "placeholder" else _in_forward(pair, argument)
        if found is None:
            return None
        known[argument] = found
    with pair.forward.inserting_before(pair.forward.output_node()):
        made: fx.Node = pair.forward.node_copy(node, known.__getitem__)
    pair.made[node.name] = made
    return made


def _is_mask(node: fx.Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, Tensor) and value.dtype is torch.bool


def pack_integers(pair: GraphPair, node: fx.Node) -> None:
    """Code booleans and the positions that a pool found in its windows in bits; other integers are kept as they are."""
    form = format_of("bits") if _is_mask(node) else _windows(node)
    if form is not None and node not in pair.returned and form.fits(node.meta["val"]):
        code(pair, node, form)


def _windows(node: fx.Node) -> Format | None:
    """Return the format of positions in the windows of a pool, None for other values."""
    if getattr(node.target, "__name__", "") != "getitem" or node.args[1] != 1:
        return None
    pool = node.all_input_nodes[0]
    if operation(pool) is not torch.ops.prims._low_memory_max_pool_with_offsets.default:
        return None
    positions = prod(pool.args[1])  # type: ignore[arg-type]
    return next((form for form in FORMATS.values() if isinstance(form, Windows) and positions <= form.positions), None)
