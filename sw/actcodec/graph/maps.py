"""Maps of convolutions on the CPU, channels last: oneDNN reads and writes them as they lie, and copies no map.

It copies weights and their gradients instead, so maps lie so only where they have more bytes than both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, fx

from actcodec.graph.timeline import bytes_of, hint
from actcodec.graph.torch_private import storage_of

_CONVOLUTIONS = (torch.conv2d, torch.conv3d, torch.conv_transpose2d, torch.conv_transpose3d)
_FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}
#: Calls whose results may depend on strides, and those that return a view or a copy by the strides of their argument.
_STRIDES = ("as_strided", "stride", "storage_offset", "data_ptr", "unsafe_chunk", "view_as_complex")
_VIEW_OR_COPY = ("view", "view_as", "reshape", "reshape_as", "flatten", "ravel", "contiguous", "to")


def lay_out_maps(graph: fx.GraphModule) -> None:
    """Let convolutions on the CPU read channels last, and what follows them; the graph's outputs keep their strides.

    Parameters
    ----------
    graph
        A graph of dynamo, changed in place. It stays as it is where the maps that convolutions read have fewer bytes than twice
        the weights, where an operation depends on strides, or where it could be seen that a copy takes the place of a view.
    """
    nodes = list(graph.graph.nodes)
    convolutions = [(node, value) for node in nodes if (value := _maps_of(node)) is not None]
    maps = sum(bytes_of(value) for _, value in convolutions)
    weights = sum(bytes_of(_value(one)) for node, _ in convolutions for one in node.all_input_nodes[1:])
    if maps <= 2 * weights or any(map(_depends_on_strides, nodes)) or _is_seen(nodes):
        return
    end = graph.graph.output_node()
    results = [(node, value) for node in end.all_input_nodes if (value := _value(node)) is not None]
    outputs = [(node, value) for node, value in results if node.op not in ("placeholder", "get_attr") and value.dim() > 1]
    if len({storage_of(value) for _, value in results}) < len(results) or not all(_order(value) for _, value in outputs):
        return
    for node, value in convolutions:
        _lay_out(graph.graph, node, node.all_input_nodes[0], _FORMATS[value.dim()])
    for node in nodes:
        if node.op == "call_method" and node.target == "view":
            node.target = "reshape"  # of a result whose channels lie last, a view may be none
    for node, value in outputs:
        _lay_back(graph.graph, end, node, _order(value))
    graph.recompile()


def _lay_out(graph: fx.Graph, reader: fx.Node, node: fx.Node, layout: torch.memory_format) -> None:
    with graph.inserting_before(reader):
        laid_out = _called(graph, "contiguous", node, memory_format=layout)
    reader.replace_input_with(node, laid_out)


def _lay_back(graph: fx.Graph, end: fx.Node, node: fx.Node, order: list[int]) -> None:
    """Give an output the strides that decrease in an order of its axes."""
    moved = order != sorted(order)
    with graph.inserting_before(end):
        found = _called(graph, "permute", node, *order) if moved else node
        found = _called(graph, "contiguous", found, memory_format=torch.contiguous_format)
        found = _called(graph, "permute", found, *map(order.index, sorted(order))) if moved else found
    end.replace_input_with(node, found)


def _called(graph: fx.Graph, method: str, node: fx.Node, *args: Any, **kwargs: Any) -> fx.Node:
    value = _value(node)
    assert value is not None, "dynamo's nodes have fake values"
    found = graph.call_method(method, (node, *args), kwargs)
    with value.fake_mode:  # type: ignore[attr-defined]
        found.meta = {**node.meta, "example_value": getattr(value, method)(*args, **kwargs)}
    return found


def _order(value: Tensor) -> list[int]:
    """Return the axes of a tensor from the greatest stride to the least, none if it has gaps or parts that overlap."""
    axes = list(range(value.dim()))
    if value.is_contiguous():
        return axes
    shape, strides = list(map(hint, value.shape)), list(map(hint, value.stride()))
    axes.sort(key=lambda axis: (shape[axis] == 1, -strides[axis]))
    return axes if value.permute(axes).is_contiguous() else []


def _value(node: fx.Node) -> Tensor | None:
    value = node.meta.get("example_value")
    return value if isinstance(value, Tensor) else None


def _maps_of(node: fx.Node) -> Tensor | None:
    """Return what a convolution on the CPU reads, None for other nodes."""
    if node.op != "call_function" or node.target not in _CONVOLUTIONS or not node.all_input_nodes:
        return None
    value = _value(node.all_input_nodes[0])
    return value if value is not None and value.dim() in _FORMATS and value.device.type == "cpu" else None


def _name(node: fx.Node) -> str:
    return str(getattr(node.target, "__name__", node.target))


def _depends_on_strides(node: fx.Node) -> bool:
    of_bits = _name(node) == "view" and any(isinstance(one, torch.dtype) for one in (*node.args, *node.kwargs.values()))
    return of_bits or _name(node) in _STRIDES


def written(node: fx.Node) -> Iterator[Tensor]:
    """Yield the tensors that an operation may write into.

    An operation that writes returns what it wrote into, or nothing; it counts versions of the tensor.
    """
    result = node.meta.get("example_value")
    if node.op in ("call_function", "call_method", "call_module"):
        for one in map(_value, node.all_input_nodes):
            if one is not None and one._version and (result is None or _is_same(result, one)):
                yield one


def _is_same(value: Any, other: Tensor) -> bool:
    """Return whether a value is the same part of the same storage as a tensor."""
    if not isinstance(value, Tensor) or storage_of(value) != storage_of(other):
        return False
    return value.shape == other.shape and value.stride() == other.stride()


def _is_seen(nodes: Sequence[fx.Node]) -> bool:
    """Return whether something is written into a view that may be a copy, or into what it is a view of."""
    viewed = set[int]()
    for node in nodes:
        if any(storage_of(one) in viewed for one in written(node)):
            return True
        if _name(node) in _VIEW_OR_COPY:
            viewed.update(storage_of(value) for one in (*node.all_input_nodes, node) if (value := _value(one)) is not None)
    return False
