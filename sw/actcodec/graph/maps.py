"""Maps of convolutions on the CPU, channels last: oneDNN reads and writes them as they lie, and copies no map.

It copies weights and their gradients instead, so maps lie so only where they have more bytes than both.
"""

from __future__ import annotations

import torch
from torch import Tensor, fx

from actcodec.graph.timeline import bytes_of

_CONVOLUTIONS = (torch.conv2d, torch.conv3d, torch.conv_transpose2d, torch.conv_transpose3d)
_FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}


def lay_out_maps(graph: fx.GraphModule) -> None:
    """Let convolutions on the CPU read channels last, and what follows them; the graph's outputs keep their layouts.

    Parameters
    ----------
    graph
        A graph of dynamo, changed in place. It stays as it is where the maps that convolutions read have fewer bytes than twice
        the weights, or an operation depends on strides.
    """
    nodes = list(graph.graph.nodes)
    convolutions = [(node, value) for node in nodes if (value := _maps_of(node)) is not None]
    maps = sum(bytes_of(value) for _, value in convolutions)
    weights = sum(bytes_of(_value(one)) for node, _ in convolutions for one in node.all_input_nodes[1:])
    if maps <= 2 * weights or any(map(_depends_on_strides, nodes)):
        return
    for node, value in convolutions:
        _lay_out(graph.graph, node, node.all_input_nodes[0], _FORMATS[value.dim()])
    for node in nodes:
        if node.op == "call_method" and node.target == "view":
            node.target = "reshape"  # of a result whose channels lie last, a view may be none
    end = graph.graph.output_node()
    for node in end.all_input_nodes:
        value = _value(node)
        if node.op not in ("placeholder", "get_attr") and value is not None and value.dim() > 1 and value.is_contiguous():
            _lay_out(graph.graph, end, node, torch.contiguous_format)
    graph.recompile()


def _lay_out(graph: fx.Graph, reader: fx.Node, node: fx.Node, layout: torch.memory_format) -> None:
    value = _value(node)
    assert value is not None, "dynamo's nodes have fake values"
    with graph.inserting_before(reader), value.fake_mode:  # type: ignore[attr-defined]
        laid_out = graph.call_method("contiguous", (node,), {"memory_format": layout})
        laid_out.meta = {**node.meta, "example_value": value.contiguous(memory_format=layout)}
    reader.replace_input_with(node, laid_out)


def _value(node: fx.Node) -> Tensor | None:
    value = node.meta.get("example_value")
    return value if isinstance(value, Tensor) else None


def _maps_of(node: fx.Node) -> Tensor | None:
    """Return what a convolution on the CPU reads, None for other nodes."""
    if node.op != "call_function" or node.target not in _CONVOLUTIONS or not node.all_input_nodes:
        return None
    value = _value(node.all_input_nodes[0])
    return value if value is not None and value.dim() in _FORMATS and value.device.type == "cpu" else None


def _depends_on_strides(node: fx.Node) -> bool:
    return str(getattr(node.target, "__name__", node.target)) in (
        "as_strided",
        "stride",
        "storage_offset",
        "data_ptr",
        "unsafe_chunk",
    )
