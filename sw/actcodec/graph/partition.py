"""The partitioner: torch's own forward and backward, in which kept values are coded or computed again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import prod
from typing import Any, Literal

import torch
from torch import Tensor, fx

from actcodec.graph.formats import FORMATS, Format, format_of, layout_of
from actcodec.graph.halves import halve_attention
from actcodec.graph.pair import GraphPair, ancestors, operation
from actcodec.graph.segments import Roles
from actcodec.graph.timeline import is_view
from actcodec.graph.torch_private import min_cut
from actcodec.graph.windows import Windows

#: A value is kept as it is, coded in a format, or computed again in the backward.
Action = Format | Literal["keep", "recompute"]

NO_ROLES = Roles()
#: Booleans of fewer values are computed again from what is reconstructed.
LEAST_MASK = 1024


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
        return list(stack.values())[-1][0] if stack else ""

    @property
    def key(self) -> str:
        """Return what finds the value again in a graph of other sizes or parts: module, operation, sizes but the first."""
        return f"{self.module} {self.operation} {tuple(hint(size) for size in self.value.shape[1:])}"

    @cached_property
    def recomputed(self) -> list[fx.Node] | None:
        """Return the operations that compute the value from others that are kept, None when it cannot be computed again."""
        return _recomputation(self.pair, self.node)


#: Chooses an action for each value that is floating point and no input of the model.
Choose = Callable[[Sequence[Saved]], Sequence[Action]]


def hint(size: Any) -> int:
    """Return a size, that of the first step where it is symbolic."""
    return size if isinstance(size, int) else size.node.hint


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
        _keep_bases(pair)
        saved = saved_values(pair, self._roles)
        rewrite(pair, dict(zip(saved, self._choose(saved), strict=True)))


def saved_values(pair: GraphPair, roles: Roles) -> list[Saved]:
    """Return the kept values that may be approximations: floating point, made by the model and held by nothing else.

    Parameters and what is computed from them alone are none: an error in them would be the same in each step.
    """
    inputs = pair.forward.find_nodes(op="placeholder")
    held = {node for place, node in enumerate(inputs) if place not in roles.between}
    fixed = _fixed(pair)
    return [
        Saved(pair, node, index)
        for index, node in enumerate(pair.kept())
        if node.meta["val"].is_floating_point()
        and not {node, _base(node)} & held
        and node not in fixed
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
    _keep_bases(pair)
    _keep_masks(pair, {pair.taken(saved.node) for saved in saved_values(pair, roles)})


def rewrite(pair: GraphPair, actions: dict[Saved, Action]) -> None:
    """Apply an action to each value that the backward takes."""
    for saved, action in actions.items():
        if action == "recompute":
            _recompute(pair, saved.node)
    _separate(pair)
    halve_attention(pair)
    changed = {saved.node: action for saved, action in actions.items() if isinstance(action, Format)}
    _keep_masks(pair, {pair.taken(node) for node in changed})
    for node, form in changed.items():
        _code(pair, node, form)
    for node in pair.kept():
        if not node.meta["val"].is_floating_point():
            _pack_integers(pair, node)


def _base(node: fx.Node) -> fx.Node:
    """Return the value that a view is a view of."""
    while is_view(node):
        node = node.all_input_nodes[0]
    return node


def _keep_bases(pair: GraphPair) -> None:
    """Keep the base of views in their place where it has no more bytes than these: a kept view holds its base in memory."""
    views: dict[fx.Node, list[fx.Node]] = {}
    for node in pair.kept():
        if is_view(node):
            views.setdefault(_base(node), []).append(node)
    for base, nodes in views.items():
        if base.op == "placeholder" and pair.taken(base) is None:
            continue
        if pair.taken(base) is None and _numel(base) > sum(_numel(node) for node in nodes):
            continue
        pair.keep(base)
        for node in nodes:
            _recompute(pair, node)


def _numel(node: fx.Node) -> int:
    return hint(node.meta["val"].numel())


def _recomputation(pair: GraphPair, node: fx.Node) -> list[fx.Node] | None:
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


def _recompute(pair: GraphPair, node: fx.Node) -> None:
    """Compute a kept value in the backward, before its first use, and keep it no longer."""
    old = pair.taken(node)
    assert old is not None, "a kept value has an input of the backward"
    known: dict[fx.Node, fx.Node] = {}
    steps = _recomputation(pair, node)
    assert steps is not None, "the value can be computed again"

    def copied(argument: fx.Node) -> fx.Node:
        return known[argument] if argument in known else pair.keep(argument)

    first = _first_user(old)
    with pair.backward.inserting_before(first):
        for step in steps:
            known[step] = pair.backward.node_copy(step, copied)
    old.replace_all_uses_with(known[node])
    pair.drop(node)


def _first_user(node: fx.Node) -> fx.Node:
    """Return the user that comes first in the graph."""
    order = {one: place for place, one in enumerate(node.graph.nodes)}
    return min(node.users, key=order.__getitem__)


def _uses(taken: fx.Node) -> Iterator[tuple[fx.Node, list[fx.Node]]]:
    """Yield each operation that reads an input of the backward or views of it, in order, and the values that it reads."""
    views = [taken]
    for one in views:
        views += [user for user in one.users if is_view(user) and user.all_input_nodes[0] is one]
    read = set(views)
    for node in list(taken.graph.nodes):
        if node not in read and (values := [one for one in node.all_input_nodes if one in read]):
            yield node, values


def _code(pair: GraphPair, node: fx.Node, form: Format) -> None:
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
            (decoded,) = pair.trace(pair.backward, lambda *given: form.unpack(given, layout), given)
            known = {old: decoded}
            for one in read:
                user.replace_input_with(one, _viewed(pair, one, known))
    for one in _views_of(old):
        pair.backward.erase_node(one)
    pair.drop(node)


def _separate(pair: GraphPair) -> None:
    """Compute again for each gradient of a parameter what it is made of, so that it can be made before all else is needed."""
    for node in list(pair.backward.nodes):
        if not (_is_product(node) and (leaf := node) is _leaf_of(node)):
            continue
        for argument in node.all_input_nodes:
            chain = [one for one in {argument, *ancestors(argument)} if one.op == "call_function"]
            if argument.op != "call_function" or pair.tangents & set(ancestors(argument)) or not all(map(_is_cheap, chain)):
                continue
            if all(user in chain or user is leaf for one in chain for user in one.users):
                continue
            order = {one: index for index, one in enumerate(pair.backward.nodes)}
            known: dict[fx.Node, fx.Node] = {}
            with pair.backward.inserting_before(node):
                for one in sorted(chain, key=order.__getitem__):
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


def _leaf_of(node: fx.Node) -> fx.Node | None:
    """Return a product when it goes to the backward's output, through views alone."""
    one = node
    while len(one.users) == 1:
        (one,) = one.users
        if one.op == "output":
            return node
        if not is_view(one):
            return None
    return None


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
        if step.op != "call_function" or step in needed or not step.users:
            continue
        order = {node: index for index, node in enumerate(pair.backward.nodes)}
        first = min(step.users, key=order.__getitem__)
        if order[step] < order[user] < order[first] and first.op != "output":
            first.prepend(step)
    return _once_there(pair, parts, leaf, user)


def _move_before(user: fx.Node, needed: set[fx.Node]) -> None:
    """Move those of some nodes that come after an operation before it, in their order."""
    order = {node: index for index, node in enumerate(user.graph.nodes)}
    for step in sorted((node for node in needed if order[node] > order[user]), key=order.__getitem__):
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


def _keep_masks(pair: GraphPair, coded: set[fx.Node | None]) -> None:
    """Keep booleans that the backward would derive from approximations as the forward has them, a bit each.

    A rectifier's mask, derived from a coded value, has the wrong sign wherever coding moved a value across zero.
    """
    for node in list(pair.backward.nodes):
        if node.op != "call_function" or not _is_mask(node) or _numel(node) < LEAST_MASK:
            continue
        if all(_is_mask(user) for user in node.users) or coded.isdisjoint(ancestors(node)):
            continue
        twin = _in_forward(pair, node)
        if twin is not None:
            node.replace_all_uses_with(pair.keep(twin))
            pair.backward.erase_node(node)


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


def _pack_integers(pair: GraphPair, node: fx.Node) -> None:
    """Code booleans and the positions that a pool found in its windows in bits; other integers are kept as they are."""
    form = format_of("bits") if _is_mask(node) else _windows(node)
    if form is not None and node not in pair.returned and form.fits(node.meta["val"]):
        _code(pair, node, form)


def _windows(node: fx.Node) -> Format | None:
    """Return the format of positions in the windows of a pool, None for other values."""
    if getattr(node.target, "__name__", "") != "getitem" or node.args[1] != 1:
        return None
    pool = node.all_input_nodes[0]
    if operation(pool) is not torch.ops.prims._low_memory_max_pool_with_offsets.default:
        return None
    positions = prod(pool.args[1])  # type: ignore[arg-type]
    return next((form for form in FORMATS.values() if isinstance(form, Windows) and positions <= form.positions), None)
