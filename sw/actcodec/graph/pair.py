"""A forward and a backward graph of aten operations, and the values that the first keeps for the second."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

from torch import Tensor, fx
from torch.fx.experimental.proxy_tensor import make_fx

from actcodec.graph.depthwise import keep_layouts
from actcodec.graph.timeline import hint, is_view
from actcodec.graph.torch_private import OpOverload, decompositions, descriptions, saved_output

#: Traced functions by function, settings and layouts of tensors.
Traces = dict[Hashable, fx.GraphModule]


class GraphPair:
    """The graphs, and edits of the values kept between them.

    Parameters
    ----------
    forward, backward
        As a partitioner of torch returns them: a kept value has one name in both graphs. Both are edited in place.
    static
        Places of the inputs that live on by themselves: parameters and buffers.
    outputs
        Number of the forward's outputs that the model returns; the others are kept for the backward.
    traces
        What :meth:`trace` has traced, of other pairs with the same graphs too.
    """

    def __init__(
        self,
        forward: fx.GraphModule,
        backward: fx.GraphModule,
        outputs: int,
        static: frozenset[int],
        traces: Traces | None = None,
    ) -> None:
        self.forward, self.backward = forward.graph, backward.graph
        self.modules = forward, backward
        end = self.forward.output_node()
        values = list(end.args[0])  # type: ignore[arg-type]
        self.returned: list[Any] = values[:outputs]
        self._kept: list[Any] = values[outputs:]
        self._descriptions = descriptions(end, outputs)
        self._taken = {node.name: node for node in self.backward.find_nodes(op="placeholder")}
        inputs = self.forward.find_nodes(op="placeholder")
        #: inputs that are parameters or buffers
        self.parameters = {node for place, node in enumerate(inputs) if place in static}
        self.tangents = {node for node in self._taken.values() if node.name.startswith("tangents")}  #: gradients of the outputs
        self._traces: Traces = {} if traces is None else traces
        self.coded: dict[str, list[fx.Node]] = {}  #: inputs of the backward that are the parts of a value, by its name
        self.follows: dict[fx.Node, fx.Node] = {}  #: operations of the backward whose values are decoded only after another one
        self.made: dict[str, fx.Node] = {node.name: node for node in self.forward.nodes}  #: nodes of the forward by name

    def kept(self) -> list[fx.Node]:
        """Return the tensors of the forward that the backward takes, in order."""
        return [node for node in self._kept if isinstance(node, fx.Node) and isinstance(node.meta.get("val"), Tensor)]

    def taken(self, node: fx.Node) -> fx.Node | None:
        """Return the backward's input for a value of the forward, None when the backward does not take it."""
        return self._taken.get(node.name)

    def source(self, taken: fx.Node) -> fx.Node | None:
        """Return the value of the forward that an input of the backward stands for, None for gradients."""
        return next((node for node in self._kept if isinstance(node, fx.Node) and self._taken.get(node.name) is taken), None)

    def keep(self, node: fx.Node) -> fx.Node:
        """Keep a tensor of the forward, or a size; return the backward's input."""
        found = self.taken(node)
        if found is not None:
            return found
        inputs = self.backward.find_nodes(op="placeholder")  # sizes first, then kept tensors: a new one between them
        first = next(one for one in inputs if isinstance(one.meta.get("val"), Tensor))
        with self.backward.inserting_before(first):
            found = self.backward.placeholder(node.name)
        while found.name != node.name:  # the name that is free in one graph may be taken in the other
            node._rename(found.name)
            if found.name != node.name:
                found._rename(node.name)
        found.meta = {key: value for key, value in node.meta.items() if key in ("val", "tensor_meta")}
        self._taken[node.name] = found
        self._kept.insert(0 if isinstance(node.meta["val"], Tensor) else len(self._kept), node)  # tensors first, then sizes
        return found

    def drop(self, node: fx.Node) -> None:
        """Keep a value no longer; nothing in the backward may use it."""
        self.backward.erase_node(self._taken.pop(node.name))
        self._kept.remove(node)

    def finish(self) -> tuple[fx.GraphModule, fx.GraphModule]:
        """Write the kept values into the forward's output and return both graphs, ready to be called."""
        self.write()
        keep_layouts(self.backward)
        for module in self.modules:
            module.graph.lint()
            module.recompile()
        return self.modules

    def write(self) -> None:
        """Write the kept values into the forward's output, and leave out what nothing uses."""
        end = self.forward.output_node()
        values = self.returned + self._kept
        end.args = (tuple(values),)
        end.meta["desc"] = self._descriptions + [saved_output(node, index) for index, node in enumerate(self._kept)]
        if "output_stack_traces" in end.meta:
            traces = (value.meta.get("stack_trace") if isinstance(value, fx.Node) else None for value in values)
            end.meta["output_stack_traces"] = list(traces)
        for module in self.modules:
            module.graph.eliminate_dead_code()

    def trace(
        self, graph: fx.Graph, function: Callable[..., Any], values: Sequence[fx.Node], *settings: Hashable
    ) -> list[fx.Node]:
        """Insert what a function of settings and tensors computes at the graph's place of insertion; return its results' nodes.

        It is traced once for the same settings and tensors of the same layouts.
        """
        given = [node.meta["val"] for node in values]
        key = function, settings, tuple((one.dtype, one.device, str(one.shape), str(one.stride())) for one in given)
        if key not in self._traces:
            with given[0].fake_mode:
                self._traces[key] = make_fx(lambda one: function(*settings, *one), decompositions(), tracing_mode="real")(given)
        traced = self._traces[key]
        known = dict(zip(traced.graph.find_nodes(op="placeholder"), values, strict=True))
        owner = self.modules[graph is self.backward]
        for node in traced.graph.nodes:
            if node.op == "output":
                results = node.args[0] if isinstance(node.args[0], (tuple, list)) else (node.args[0],)
                return [known[result] for result in results]
            if node.op == "get_attr":
                name = f"_packed_constant_{len(list(owner.buffers(recurse=False)))}"
                owner.register_buffer(name, getattr(traced, node.target), persistent=False)
                known[node] = graph.get_attr(name)
                known[node].meta["val"] = node.meta["val"]
            elif node.op != "placeholder":
                known[node] = graph.node_copy(node, known.__getitem__)
        raise AssertionError("a graph has an output")


def operation(node: fx.Node) -> OpOverload | None:
    """Return the operation of a node that calls one."""
    return node.target if node.op == "call_function" and isinstance(node.target, OpOverload) else None


def numel(node: fx.Node) -> int:
    """Return the number of values of a node."""
    return hint(node.meta["val"].numel())


def base_of(node: fx.Node) -> fx.Node:
    """Return the value that a view is a view of."""
    while is_view(node):
        node = node.all_input_nodes[0]
    return node


def ancestors(node: fx.Node) -> Iterator[fx.Node]:
    """Yield the nodes that a node is computed from, itself left out, each once."""
    seen, waiting = set(), list(node.all_input_nodes)
    while waiting:
        one = waiting.pop()
        if one not in seen:
            seen.add(one)
            yield one
            waiting += one.all_input_nodes
