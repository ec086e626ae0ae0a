"""Bytes that live at each moment of a compiled step, from its forward and its backward graph alone.

The graphs are those of torch's AOT autograd after the partition, with fake values. Inductor fuses pointwise operations into
their consumers: a value takes memory only where inductor makes a buffer of it, which it does of results of matrix products,
convolutions, attention and reductions, of what these read, of the graph's outputs, and of pointwise values that several
operations read and that are dear to compute again. On a CPU a matrix product and the sum that alone reads it are one
operation. The thresholds are inductor's own. A buffer lives from the node that makes it to the last one that reads it, through
all that is fused in between. Workspace within a kernel is not seen, but for the weights of convolutions on the CPU; what loops
within one kernel read may live until the kernel ends.
"""

from __future__ import annotations

import operator
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf, prod
from typing import Any

import torch
from torch import Tensor, fx

from actcodec.graph.torch_private import OpOverload, fusion_limits

FORWARD, BACKWARD = "forward", "backward"


@dataclass(frozen=True)
class Moment:
    """One node that makes a buffer, while it runs."""

    phase: str  #: ``forward`` or ``backward``
    node: str  #: its name in the graph
    live: int  #: bytes


@dataclass(frozen=True)
class Buffer:
    """Memory that one node made."""

    phase: str  #: whose graph the node is in
    node: str
    bytes: int


@dataclass(frozen=True)
class Timeline:
    """Bytes of a compiled step above those of what it is given: parameters, buffers, batch."""

    moments: tuple[Moment, ...]  #: in the order of the graphs
    kept: int  #: bytes between forward and backward, the model's outputs included
    begin: int  #: bytes when the backward begins, gradients of the outputs included
    at_peak: tuple[Buffer, ...]  #: what lives at the worst moment; a loop that writes over a buffer counts beside it

    @property
    def worst(self) -> Moment:
        """Return the first moment with the most live bytes."""
        return max(self.moments, key=lambda moment: moment.live)

    @property
    def peak(self) -> int:
        """Return bytes at the worst moment."""
        return self.worst.live


def peak_of(
    forward: fx.Graph,
    backward: fx.Graph,
    *,
    workspace: bool = True,
    layouts: bool = True,
    released: Container[int] = (),
) -> Timeline:
    """Follow the buffers of a pair of graphs from the first node of the forward to the last one of the backward.

    Operations and tensors given to the graphs have their fake values in ``meta["val"]``; symbolic sizes count by their hints.

    Parameters
    ----------
    forward
        Its placeholders are static and count nowhere. Of its outputs, those that the backward takes by name die with their last
        reader there; those that are the model's stay.
    backward
        Placeholders with the name of a forward node are what is kept. The others, gradients of the outputs, are there from the
        beginning. Its outputs stay.
    workspace
        Whether convolutions on the CPU take the workspace of oneDNN.
    layouts
        Whether inductor lays out again what convolutions read (its setting ``layout_optimization``).
    released
        Places among the forward's outputs that nothing but the backward holds any more when that begins.
    """
    first = _Run(FORWARD, forward, {}, workspace, layouts)
    nodes = {node.name: node for node in forward.nodes}
    wanted = [node.name for node in backward.find_nodes(op="placeholder")]
    kept = {name: first.root(nodes[name]) for name in wanted if name in nodes}
    outputs = outputs_of(forward)
    listed = [first.root(node) for node in outputs]
    saved = {root for name, root in kept.items() if nodes[name] in outputs}
    held = {root for root in listed if root not in saved or listed.count(root) > 1}
    lost = {root for place, root in enumerate(listed) if place in released}
    first.follow({}, dict.fromkeys(listed, inf))
    second = _Run(BACKWARD, backward, kept, workspace, layouts)
    given = {root: size for root in {*held, *saved} if (size := first.bytes(root))}
    stays = dict.fromkeys(held - lost, inf) | {second.root(node): inf for node in backward.output_node().all_input_nodes}
    begin = second.follow({root: size for root, size in given.items() if root not in lost - saved}, stays)
    worst = max((first, second), key=lambda run: run.peak)
    return Timeline((*first.moments, *second.moments), sum(given.values()), begin, worst.at_peak)


def outputs_of(graph: fx.Graph) -> list[fx.Node]:
    """Return the nodes that a graph returns, in order, one as often as it is returned."""
    (returned,) = graph.output_node().args
    assert isinstance(returned, tuple | list), "AOT autograd's graphs return several values"
    return [node for node in returned if isinstance(node, fx.Node)]


def bytes_of(value: Any) -> int:
    """Return bytes of the tensors of a fake value, each dense; symbolic sizes by their hints."""
    if isinstance(value, Tensor):
        return prod(hint(size) for size in value.shape) * value.element_size()
    return sum(map(bytes_of, value)) if isinstance(value, tuple | list) else 0


def hint(size: Any) -> int:
    """Return a size, that of the first step where it is symbolic."""
    return int(size.node.hint) if isinstance(size, torch.SymInt) else int(size)


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


def is_view(node: fx.Node) -> bool:
    """Return whether a node's result is its first input's memory."""
    return isinstance(node.target, OpOverload) and node.target.is_view


#: Loops that torch does not tag as pointwise.
_LOOPS = _names(
    """clone _to_copy convert_element_type full full_like empty iota arange scalar_tensor constant_pad_nd embedding index
    _unsafe_index gather masked_fill select_scatter slice_scatter where tril triu flip roll repeat copy fill rand randn
    bernoulli inductor_random inductor_seeds inductor_lookup_seed inductor_randint broadcast_in_dim lift_fresh_copy
    expand_copy detach zeros ones new_zeros new_ones new_full zeros_like ones_like"""
)
#: Loops whose results have buffers always: reductions that torch does not tag, and what writes at indices over a copy of its
#: first input, over which nothing else is written.
_REDUCTIONS = _names("var_mean std_mean max min aminmax var std sum mean amax amin prod any all argmax argmin")
_WRITES = _names("scatter scatter_add scatter_reduce index_put index_add _unsafe_index_put _unsafe_masked_index_put_accumulate")
#: Operations that inductor does not compute twice on a CPU.
_HEAVY = _names("exp log log10 log1p log2 sigmoid tanh erf gelu silu softplus")
_LOOP, _REDUCTION, _EXTERN, _GIVEN, _PART, _VIEW = range(6)


def _kind(node: fx.Node) -> int:
    if node.op in ("placeholder", "get_attr"):
        return _GIVEN
    if node.target is operator.getitem:
        return _PART
    if is_view(node):
        return _VIEW
    if not isinstance(node.target, OpOverload):
        return _EXTERN
    name = _name(node)
    if name in _REDUCTIONS | _WRITES or torch.Tag.reduction in node.target.tags:
        return _REDUCTION
    return _LOOP if name in _LOOPS or torch.Tag.pointwise in node.target.tags else _EXTERN


def _is_laid_out_again(node: fx.Node) -> bool:
    """Return whether inductor copies what the forward is given because convolutions read it, channels last."""
    value = node.meta.get("val")
    if not isinstance(value, Tensor):  # a number, or a constant
        return False
    read = any(user.target is torch.ops.aten.convolution.default and node in user.args[:2] for user in node.users)
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    return read and value.dim() in formats and not value.is_contiguous(memory_format=formats[value.dim()])


def workspace_of(node: fx.Node) -> int:
    """Return bytes beside a convolution's results on the CPU: oneDNN lays weights out again, and their gradients twice."""
    if node.target is torch.ops.aten.convolution.default:
        return bytes_of(node.all_input_nodes[1].meta.get("val"))
    if node.target is torch.ops.aten.convolution_backward.default:
        given, weight = (one.meta["val"] for one in node.args[1:3] if isinstance(one, fx.Node))
        return max(2 * bytes_of(weight), workspace_of_small_maps(given, weight))
    return 0


def workspace_of_small_maps(given: Tensor, weight: Tensor) -> int:
    """Return bytes that oneDNN takes for a weight's gradient where the maps are smaller than the kernel, else 0.

    Without AVX-512 it then computes a product of matrices in four buffers of the weight's size.
    """
    small = any(hint(size) < kernel for size, kernel in zip(given.shape[2:], weight.shape[2:], strict=True))
    return 4 * bytes_of(weight) if small and torch.backends.cpu.get_cpu_capability() == "AVX2" else 0


def _name(node: fx.Node) -> str:
    return str(getattr(node.target, "overloadpacket", node.target)).rpartition(".")[2]


@dataclass
class _Fused:
    """Records what a read of a node reads and computes."""

    reads: frozenset[fx.Node]
    operations: int = 0
    heavy: bool = False


@dataclass
class _Run:
    """One graph: which of its nodes have buffers, and what lives when."""

    phase: str
    graph: fx.Graph
    kept: Mapping[str, fx.Node]  #: whose memory a placeholder is, by its name
    workspace: bool
    layouts: bool
    moments: list[Moment] = field(default_factory=list)
    peak: int = 0
    at_peak: tuple[Buffer, ...] = ()

    def __post_init__(self) -> None:
        cpu = all(value.device.type == "cpu" for node in self.graph.nodes if isinstance(value := node.meta.get("val"), Tensor))
        self._limits = fusion_limits(on_cpu=cpu)
        self._cpu = cpu
        self._kinds = {node: _kind(node) for node in self.graph.nodes}
        self._kinds |= {node: _LOOP for node in self.graph.nodes if self._is_piece(node)}
        self._added = {product for node in self.graph.nodes if cpu for product in self._product_added_by(node)}
        self._kinds |= {user: _EXTERN for product in self._added for user in product.users}
        outputs = {self.root(node) for node in self.graph.output_node().all_input_nodes}
        self._fused: dict[fx.Node, _Fused] = {}
        #: Inputs of each node with a buffer.
        self._inputs: dict[fx.Node, frozenset[fx.Node]] = {}
        for node in self.graph.nodes:
            if node.op != "output" and self._kinds[node] != _VIEW:
                self._lower(node, node in outputs)

    def _is_piece(self, node: fx.Node) -> bool:
        """Return whether attention reads a part of what a loop computes, of which alone inductor makes a buffer."""
        base = self._own_root(node)
        return (
            base is not node
            and self._kinds[base] == _LOOP
            and bytes_of(node.meta["val"]) < bytes_of(base.meta["val"])
            and any(_name(user).startswith("_scaled_dot_product") for user in node.users)
        )

    def _product_added_by(self, node: fx.Node) -> list[fx.Node]:
        """Return the matrix product that inductor computes together with a sum of two tensors, at the sum's place."""
        if node.target is not torch.ops.aten.add.Tensor or node.kwargs or len(node.all_input_nodes) != 2:
            return []
        products = [one for one in node.all_input_nodes if one.target is torch.ops.aten.mm.default and len(one.users) == 1]
        return [one for one in products if one.meta["val"].shape == node.meta["val"].shape][:1]

    def root(self, node: fx.Node) -> fx.Node:
        """Return the node whose memory this one shows."""
        node = self._own_root(node)
        return self.kept.get(node.name, node) if node.op == "placeholder" else node

    def bytes(self, node: fx.Node) -> int:
        """Return bytes of the buffer of a root; 0 of what is given to the forward."""
        return 0 if self._kinds[node] == _GIVEN and node not in self._inputs else bytes_of(node.meta.get("val"))

    def _readers(self, node: fx.Node) -> Iterator[fx.Node]:
        for user in node.users:
            if self._kinds[user] == _VIEW:
                yield from self._readers(user)
            elif user.op != "output":
                yield user

    def _lower(self, node: fx.Node, output: bool) -> None:
        kind = self._kinds[node]
        if kind == _GIVEN:
            self._fused[node] = _Fused(frozenset({self.root(node)}))
            if self.phase == FORWARD and self.layouts and _is_laid_out_again(node):
                self._inputs[node] = frozenset()
            return
        if kind == _PART:  # of a tuple, made with it
            self._fused[node] = _Fused(frozenset({node}))
            return
        if is_view(node) and self._own_root(node.all_input_nodes[0]) in self._inputs:
            self._kinds[node] = _VIEW  # of a buffer
            return
        inputs = [self._fused[root] for one in node.all_input_nodes if (root := self._own_root(one)) in self._fused]
        reads = frozenset().union(*(one.reads for one in inputs))
        if kind == _LOOP and not output:
            operations = 1 + sum(one.operations for one in inputs)
            heavy = self._cpu and (_name(node) in _HEAVY or any(one.heavy for one in inputs))
            readers = list(self._readers(node))
            large = operations > self._limits.operations
            dear = heavy or large or len(reads) > self._limits.reuse
            if not (
                any(self._kinds[reader] == _EXTERN for reader in readers)
                or (len(readers) > 1 and dear)
                or (len(reads) > self._limits.reads or large)
            ):
                self._fused[node] = _Fused(reads, operations, heavy)
                return
        if node in self._added:
            self._fused[node] = _Fused(reads)
            return
        self._fused[node] = _Fused(frozenset({node}))
        self._inputs[node] = reads

    def _own_root(self, node: fx.Node) -> fx.Node:
        while self._kinds[node] == _VIEW:
            node = node.all_input_nodes[0]
        return node

    def _phase(self, node: fx.Node) -> str:
        return self.phase if node.graph is self.graph else FORWARD

    def follow(self, given: Mapping[fx.Node, int], last: Mapping[fx.Node, float]) -> int:
        """Let the graph run, with what is there before it; ``last`` names roots that stay. Return bytes at the beginning."""
        order = [node for node in self.graph.nodes if node in self._inputs]
        when: dict[fx.Node, float] = {}
        for place, node in enumerate(order):
            when |= dict.fromkeys(self._inputs[node], place)
        when |= last
        live = dict(given)
        for node in self.graph.find_nodes(op="placeholder"):
            if self.phase == BACKWARD and node.name not in self.kept:
                live[node] = bytes_of(node.meta.get("val"))
        begin = now = sum(live.values())
        for place, node in enumerate(order):
            parts = [user for user in node.users if user.target is operator.getitem] or [node]
            dying = [one for one in self._inputs[node] if when[one] == place and one in live]
            made = {part: bytes_of(part.meta.get("val")) for part in parts}
            # A loop writes over an input of its size that nothing reads any more.
            over = self._kinds[node] == _LOOP and any(live[one] == made[node] and _name(one) not in _WRITES for one in dying)
            live |= made
            now += sum(made.values())
            moment = now - (made[node] if over else 0) + (workspace_of(node) if self._cpu and self.workspace else 0)
            self.moments.append(Moment(self.phase, node.name, moment))
            if moment > self.peak:
                self.peak = moment
                self.at_peak = tuple(Buffer(self._phase(one), one.name, size) for one, size in live.items() if size)
            for one in (*dying, *(part for part in parts if part not in when)):
                now -= live.pop(one)
        return begin
