"""Bytes that live at each kernel of a compiled step, in the order and the fusions that inductor itself chooses.

Beside :mod:`actcodec.graph.timeline`, which tells them from graphs alone, inductor is run as far as to its schedule: no code is
generated or compiled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from torch import Tensor, fx

from actcodec.graph.timeline import Timeline, bytes_of, is_view, workspace_of
from actcodec.graph.torch_private import Kernel, kernels_of


def scheduled_peaks(forward: fx.GraphModule, backward: fx.GraphModule, line: Timeline) -> tuple[int, int]:
    """Return the most bytes that live in the forward and in the backward of a pair of graphs, which are changed.

    Parameters
    ----------
    forward, backward
        On the CPU or a GPU, with fake values.
    line
        The same graphs' live bytes; the bytes at the beginning of the backward are taken from it.
    """
    names = {node.name for node in forward.graph.nodes}
    static = {node.name for node in forward.graph.nodes if _is_static(node)}
    on_cpu = all(one.meta["val"].device.type == "cpu" for one in forward.graph.nodes if isinstance(one.meta.get("val"), Tensor))
    first = max(_live(kernels_of(forward, is_backward=False), {}, frozenset(), on_cpu), default=0)
    inputs = [node for node in backward.graph.find_nodes(op="placeholder") if node.name not in static]
    given = {str(node.target): bytes_of(node.meta.get("val")) for node in inputs}  # inductor calls inputs by their target
    gradients = frozenset(str(node.target) for node in inputs if node.name not in names)  # no kernel writes over them
    rises = max(_live(kernels_of(backward, is_backward=True), given, gradients, on_cpu), default=0) - sum(given.values())
    return first, line.begin + max(rises, 0)


def _is_static(node: fx.Node) -> bool:
    """Return whether a node of a forward is given to it, or a view of that: parameters, transposed or not."""
    while is_view(node):
        node = node.all_input_nodes[0]
    return node.op == "placeholder"


def _live(kernels: Iterable[Kernel], given: Mapping[str, int], read_only: frozenset[str], on_cpu: bool) -> Iterable[int]:
    """Yield the bytes that live while each kernel runs."""
    order = list(kernels)
    last: dict[str, int] = {}
    for place, kernel in enumerate(order):
        last |= dict.fromkeys([*kernel.reads, *kernel.made], place)
    live = dict(given)
    now = sum(live.values())
    for place, kernel in enumerate(order):
        # A buffer that only loops of its own kernel read is none.
        made = {name: size for name, size in kernel.made.items() if kernel.is_extern or last[name] > place}
        dying = [name for name in live if last.get(name, -1) == place]
        now += sum(size for size, _ in made.values())
        extra = max(map(workspace_of, kernel.nodes), default=0) if kernel.is_extern and on_cpu else 0
        yield now - _over(kernel, made, live, {*dying} - read_only) + extra
        live |= {name: size for name, (_, size) in made.items()}
        for name in [*dying, *(name for name in made if last[name] == place)]:
            now -= live.pop(name)


def _over(kernel: Kernel, made: Mapping[str, tuple[int, int]], live: Mapping[str, int], dying: set[str]) -> int:
    """Return the bytes of buffers that a kernel writes in the place of others, which nothing reads any more."""
    total = 0
    for name, (size, _) in made.items():
        place = next((one for one in kernel.over[name] if one in dying and live[one] == size), None)
        if place is not None:
            dying = dying - {place}
            total += size
    return total
