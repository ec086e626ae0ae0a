"""The coded form of a kept value, and the moments at which the backward decodes it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor, fx

from actcodec.graph.formats import Format, Layout, layout_of
from actcodec.graph.pair import GraphPair, ancestors, operation
from actcodec.graph.timeline import is_view


def code(pair: GraphPair, node: fx.Node, form: Format) -> None:
    """Keep a value as the parts of its coded form; each operation of the backward that reads it decodes it for itself."""
    old = pair.taken(node)
    assert old is not None, "a kept value has an input of the backward"
    value = node.meta["val"]
    layout = layout_of(value)
    with pair.forward.inserting_before(node.next):
        parts = pair.trace(pair.forward, form.pack, [node])
    taken = [pair.keep(part) for part in reversed(parts)][::-1]
    pair.coded[node.name] = taken
    uses = list(_uses(old))
    leaves = {user: leaf for user, _ in uses if (leaf := _leaf(user)) is not None}
    for user, read in uses:
        others = [leaf for one, leaf in leaves.items() if one is not user and user not in leaves]
        if others and user not in set(ancestors(others[0])):
            given = _after(pair, taken, others[0], user)
        elif user in pair.follows:
            given = _once_there(pair, taken, pair.follows[user], user)
        elif user in leaves and (beside := _beside(pair, user, leaves[user])) is not None:
            given = _once_there(pair, taken, _barrier(pair, beside, user), user)
        else:
            given = taken
        with pair.backward.inserting_before(user):
            (decoded,) = pair.trace(pair.backward, _unpacked, given, form, layout)
            known = {old: decoded}
            for one in read:
                user.replace_input_with(one, _viewed(pair, one, known))
    for one in _views_of(old):
        pair.backward.erase_node(one)
    pair.drop(node)


def _unpacked(form: Format, layout: Layout, *parts: Tensor) -> Tensor:
    return form.unpack(parts, layout)


def _uses(taken: fx.Node) -> Iterator[tuple[fx.Node, list[fx.Node]]]:
    """Yield each operation that reads an input of the backward or views of it, in order, and the values that it reads."""
    views = [taken]
    for one in views:
        views += [user for user in one.users if is_view(user) and user.all_input_nodes[0] is one]
    read = set(views)
    for node in list(taken.graph.nodes):
        if node not in read and (values := [one for one in node.all_input_nodes if one in read]):
            yield node, values


def _viewed(pair: GraphPair, node: fx.Node, known: dict[fx.Node, fx.Node]) -> fx.Node:
    """Return a copy of a view for another base, made at the graph's place of insertion."""
    if node not in known:
        base = _viewed(pair, node.all_input_nodes[0], known)
        known[node] = pair.backward.node_copy(node, lambda one: base if one is node.all_input_nodes[0] else one)
    return known[node]


def _views_of(node: fx.Node) -> list[fx.Node]:
    """Return the views of a value that nothing uses, the last ones first."""
    found = [node]
    for one in found:
        found += [user for user in one.users if is_view(user)]
    return found[:0:-1]


def separate(pair: GraphPair) -> None:
    """Compute again for each gradient of a parameter what it is made of, so that it can be made before all else is needed."""
    for node in list(pair.backward.nodes):
        if not (_is_product(node) and _is_leaf(node)):
            continue
        for argument in node.all_input_nodes:
            chain = [one for one in {argument, *ancestors(argument)} if one.op == "call_function"]
            if argument.op != "call_function" or pair.tangents & set(ancestors(argument)) or not all(map(_is_cheap, chain)):
                continue
            if all(user in chain or user is node for one in chain for user in one.users):
                continue
            known: dict[fx.Node, fx.Node] = {}
            with pair.backward.inserting_before(node):
                for one in sorted(chain):
                    known[one] = pair.backward.node_copy(one, partial(_copied, known))
            node.replace_input_with(argument, known[argument])


def _is_cheap(node: fx.Node) -> bool:
    """Return whether the compiler fuses an operation into each that reads it: one by one for each value, or a view."""
    made = operation(node)
    return made is not None and (is_view(node) or torch.Tag.pointwise in made.tags)


def _copied(known: dict[fx.Node, fx.Node], node: fx.Node) -> fx.Node:
    return known.get(node, node)


def _is_product(node: fx.Node) -> bool:
    return operation(node) in (torch.ops.aten.mm.default, torch.ops.aten.addmm.default, torch.ops.aten.bmm.default)


def _is_leaf(product: fx.Node) -> bool:
    """Return whether a product goes to the backward's output, through views alone."""
    node = product
    while len(node.users) == 1:
        (node,) = node.users
        if not is_view(node):
            return node.op == "output"
    return False


def _leaf(user: fx.Node) -> fx.Node | None:
    """Return the gradient of a parameter that alone is made of what an operation computes, None for other operations."""
    node = user
    while len(node.users) == 1:
        (following,) = node.users
        if following.op == "output":
            return None if node is user else node
        node = following
    return None


def _beside(pair: GraphPair, user: fx.Node, leaf: fx.Node) -> fx.Node | None:
    """Return the gradient that a product for the gradient of a parameter takes beside what is made of a decoded value."""
    node = user
    while not _is_product(node):
        if node is leaf:
            return None
        (node,) = node.users
    for argument in node.all_input_nodes:
        before = set(ancestors(argument))
        if argument.op == "call_function" and user not in before and argument is not user and pair.tangents & before:
            return argument
    return None


def _barrier(pair: GraphPair, value: fx.Node, user: fx.Node) -> fx.Node:
    """Return zero, the product of one element of a value with zero: a kernel that the compiler fuses with nothing.

    Without it the compiler may fuse decoding with the operation that makes the value, while all that one reads still lives.
    """
    _move_before(user, {value, *ancestors(value)})
    with pair.backward.inserting_before(user):
        element, zero = pair.trace(pair.backward, _element_and_zero, [value])
        product = pair.backward.call_function(torch.ops.aten.mm.default, (element, zero))
        with value.meta["val"].fake_mode:
            product.meta["val"] = torch.mm(element.meta["val"], zero.meta["val"])
    return product


def _element_and_zero(value: Tensor) -> tuple[Tensor, Tensor]:
    while value.dim():
        value = value.select(0, 0)
    return value.view(1, 1), value.new_zeros(1, 1)


def _after(pair: GraphPair, parts: list[fx.Node], leaf: fx.Node, user: fx.Node) -> list[fx.Node]:
    """Return parts that are there only once ``leaf`` is computed, so that two operations do not decode a value at one time."""
    needed = {leaf, *ancestors(leaf)}
    _move_before(user, needed)
    for step in reversed(list(pair.backward.nodes)):
        if step < user and step.op == "call_function" and step not in needed and step.users:
            first = min(step.users)
            if user < first and first.op != "output":
                first.prepend(step)
    return _once_there(pair, parts, leaf, user)


def _move_before(user: fx.Node, needed: set[fx.Node]) -> None:
    """Move those of some nodes that come after an operation before it, in their order."""
    for step in sorted(node for node in needed if user < node):
        user.prepend(step)


def _once_there(pair: GraphPair, parts: list[fx.Node], value: fx.Node, user: fx.Node) -> list[fx.Node]:
    """Return parts that cannot be read before ``value`` is computed.

    Zero times an element of ``value`` is added to the first scale: no bit changes, unless a gradient is not finite anyway.
    """
    _move_before(user, {value, *ancestors(value)})
    place = next((index for index, part in enumerate(parts) if part.meta["val"].is_floating_point()), None)
    if place is None:
        return parts
    with pair.backward.inserting_before(user):
        (scale,) = pair.trace(pair.backward, _tied, [parts[place], value])
    return [*parts[:place], scale, *parts[place + 1 :]]


def _tied(scale: Tensor, value: Tensor) -> Tensor:
    while value.dim():
        value = value.select(0, 0)
    return scale + (value * 0).to(scale.dtype)
