"""Maps of convolutions on the CPU, channels last: oneDNN reads and writes them as they lie, and lays out no copies again."""

from __future__ import annotations

import torch
from torch import Tensor, fx

_CONVOLUTIONS = (torch.conv2d, torch.conv3d, torch.conv_transpose2d, torch.conv_transpose3d)
_FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}


def lay_out_maps(graph: fx.GraphModule) -> None:
    """Let convolutions on the CPU read channels last, and what follows them; the graph's outputs keep their layouts.

    Parameters
    ----------
    graph
        A graph of dynamo, changed in place. One with an operation that depends on strides stays as it is.
    """
    nodes = list(graph.graph.nodes)
    convolutions = [(node, value) for node in nodes if (value := _maps_of(node)) is not None]
    if not convolutions or any(_depends_on_strides(node) for node in nodes):
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
