"""One step of the user's own in which each kept value is coded in turn, to see what that does to the gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, fx

from actcodec.graph.choices import LEAST_BYTES
from actcodec.graph.formats import Format, layout_of
from actcodec.graph.pair import GraphPair, Traces
from actcodec.graph.partition import Partitioner, Saved, keep_exact_masks, saved_values
from actcodec.graph.schedule import scheduled_peaks
from actcodec.graph.segments import Roles
from actcodec.graph.timeline import Timeline, peak_of
from actcodec.graph.torch_private import recorded_part, storage_is_gone, storage_of
from actcodec.saved.allocations import bytes_at_marks, mark


@dataclass
class Part:
    """A part of the model's graph, and what was measured in it."""

    roles: Roles
    saved: list[Saved] = field(default_factory=list)
    plain: tuple[fx.GraphModule, fx.GraphModule] | None = None  #: as min-cut leaves them
    static: frozenset[int] = frozenset()
    outputs: int = 0
    gone: list[Callable[[], bool]] = field(default_factory=list)  #: whether the memory of each output is free
    released: frozenset[int] = frozenset()  #: places of the outputs whose memory was free when the backward began
    squares: dict[str, dict[str, float]] = field(default_factory=dict)  #: squared error of own gradients by value and format
    passed: dict[str, dict[str, float]] = field(default_factory=dict)  #: squared relative error of gradients passed on
    own: float = 0.0  #: squares of the gradients of parameters
    ended: bool = False  #: whether its backward has run
    alive: list[tuple[Callable[[], bool], int]] = field(default_factory=list)  #: whether memory that it made is free, and bytes
    around: tuple[int, int] = (0, 0)  #: bytes that no part made, when the forward and when the backward begins
    traces: Traces = field(default_factory=dict)  #: of all pairs of its graphs

    def timeline(self, choose: Callable[[Sequence[Saved]], Sequence[Any]]) -> tuple[GraphPair, list[Saved], Timeline]:
        """Return the graphs, the kept values and the live bytes when values are kept as ``choose`` says."""
        assert self.plain is not None
        forward, backward = (fx.GraphModule(one, _copy(one.graph)) for one in self.plain)
        pair = GraphPair(forward, backward, self.outputs, self.static, self.traces)
        found: list[Saved] = []

        def remembered(saved: Sequence[Saved]) -> Sequence[Any]:
            found.extend(saved)
            return choose(saved)

        Partitioner(remembered, self.roles).apply(pair)
        pair.write()
        return pair, found, peak_of(pair.forward, pair.backward, layouts=False, released=self.released)

    def scheduled_peaks(self, choose: Callable[[Sequence[Saved]], Sequence[Any]]) -> tuple[int, int, int]:
        """Return the peaks of forward and backward in inductor's schedule, and the bytes between them."""
        pair, _, line = self.timeline(choose)
        return *scheduled_peaks(*pair.modules, line), line.kept


def _copy(graph: fx.Graph) -> fx.Graph:
    new = fx.Graph()
    known: dict[fx.Node, fx.Node] = {}
    for node in graph.nodes:
        known[node] = new.node_copy(node, known.__getitem__)
    return new


_FORWARD, _MADE, _BACKWARD = "forward", "made", "backward"


@dataclass(frozen=True)
class _Seen:
    """A moment at which bytes are counted: when a part's forward begins, when it ends, or when its backward begins."""

    part: Part
    kind: str
    nbytes: int  #: bytes that the parts made


def _memory_of(values: Sequence[Any], without: Sequence[Any]) -> list[tuple[Callable[[], bool], int]]:
    """Return for each storage of tensors, those of other ones left out, whether it is free, and its bytes."""
    known = {storage_of(one) for one in without if isinstance(one, Tensor)}
    found = []
    for one in values:
        if isinstance(one, Tensor) and storage_of(one) not in known:
            known.add(storage_of(one))
            found.append((storage_is_gone(one), one.untyped_storage().nbytes()))
    return found


class Survey:
    """Compiles parts so that their backward measures, operation by operation.

    Parameters
    ----------
    formats
        Those whose effect is measured.
    """

    def __init__(self, formats: Sequence[Format]) -> None:
        self.formats, self.parts = tuple(formats), list[Part]()
        self.between = 0  #: most bytes that no part made, between the forward and the backward
        self._seen: list[_Seen] | None = None  #: of marks; None unless bytes are counted

    def compile_part(self, graph: fx.GraphModule, inputs: Sequence[Any], roles: Roles) -> Callable[..., Any]:
        """Return a part that runs operation by operation and measures in its backward."""
        part = Part(roles)

        def edit(forward: fx.GraphModule, backward: fx.GraphModule, outputs: int, static: frozenset[int]) -> Any:
            self.parts.append(part)  # one that has a backward
            part.plain = tuple(fx.GraphModule(one, _copy(one.graph)) for one in (forward, backward))  # type: ignore[assignment]
            static |= frozenset(roles.parameters)
            part.outputs, part.static = outputs, static
            pair = GraphPair(forward, backward, outputs, static)
            keep_exact_masks(pair, roles)
            part.saved = saved_values(pair, roles)
            return pair.finish()

        def measure(backward: fx.GraphModule, values: Sequence[Any]) -> Any:
            return self._measured(part, backward, values)

        def run(forward: fx.GraphModule, values: Sequence[Any]) -> Any:
            self._note(part, _FORWARD)
            found = forward(*values)
            part.alive = _memory_of(found, values)
            self._note(part, _MADE)
            part.gone = [storage_is_gone(one) if isinstance(one, Tensor) else lambda: False for one in found[: part.outputs]]
            return found

        return recorded_part(graph, inputs, edit, run, measure)

    def count(self, step: Callable[[], object], device: torch.device) -> None:
        """Take one more step, and count in it the memory that no part of the model made: that of the loss, or of hooks."""
        self._seen = []
        marks = bytes_at_marks(step, device)
        seen, self._seen = self._seen, None
        before: _Seen | None = None
        for one, found in zip(seen, marks[:-1], strict=True):
            rest = max(found.now - one.nbytes, 0)
            if one.kind == _FORWARD:
                one.part.around = max(one.part.around[0], rest), one.part.around[1]
            elif one.kind == _BACKWARD:
                one.part.around = one.part.around[0], max(one.part.around[1], rest)
                if before is not None and before.kind == _MADE:
                    self.between = max(self.between, found.peak - before.nbytes)
            before = one

    def _note(self, part: Part, kind: str, more: int = 0) -> None:
        """Mark a moment, if bytes are counted, with the bytes that parts hold and ``more``."""
        if self._seen is not None:
            alive = sum(nbytes for one in self.parts for is_gone, nbytes in one.alive if not is_gone())
            self._seen.append(_Seen(part, kind, alive + more))
            mark()

    def _measured(self, part: Part, backward: fx.GraphModule, values: Sequence[Any]) -> Any:
        if self._seen is not None:
            names = [node.name for node in backward.graph.find_nodes(op="placeholder")]
            tangents = [one for name, one in zip(names, values, strict=True) if name.startswith("tangents")]
            self._note(part, _BACKWARD, sum(nbytes for _, nbytes in _memory_of(tangents, ())))
            return backward(*values)
        part.ended = True
        part.released = frozenset(place for place, is_gone in enumerate(part.gone) if is_gone())
        with torch.no_grad():
            exact = backward(*values)
            given = part.saved[0].pair.forward.find_nodes(op="placeholder") if part.saved else []
            parameters = [place in part.static for place in range(len(given))]
            part.own = _squares(exact, None, parameters, True)
            passed = _squares(exact, None, parameters, False)
            places = {node.name: place for place, node in enumerate(backward.graph.find_nodes(op="placeholder"))}
            for saved in part.saved:
                taken = saved.pair.taken(saved.node)
                place = places.get(saved.name if taken is None else taken.name)
                if place is None or saved.nbytes < LEAST_BYTES:
                    continue
                self._measure(part, saved, backward, list(values), place, exact, parameters, passed)
        return exact

    def _measure(
        self,
        part: Part,
        saved: Saved,
        backward: fx.GraphModule,
        values: list[Any],
        place: int,
        exact: Any,
        parameters: list[bool],
        passed: float,
    ) -> None:
        """Run the backward with one value in the coarsest format; other formats count by their own error of the value."""
        value: Tensor = values[place]
        fitting = [form for form in self.formats if form.fits(value)]
        if not fitting:
            return
        layout = layout_of(value)
        errors = {}
        coarse: tuple[float, Tensor] | None = None
        for form in fitting:
            rebuilt = form.unpack(form.pack(value), layout)
            errors[form.name] = float((rebuilt.float() - value.float()).square().sum())
            if coarse is None or errors[form.name] > coarse[0]:
                coarse = errors[form.name], rebuilt
        assert coarse is not None
        most, values[place] = coarse
        found = backward(*values)
        own = _squares(found, exact, parameters, True)
        other = _squares(found, exact, parameters, False) / passed if passed else 0.0
        share = {name: error / most if most else 0.0 for name, error in errors.items()}
        part.squares[saved.name] = {name: own * one for name, one in share.items()}
        part.passed[saved.name] = {name: other * one for name, one in share.items()}

    def losses(self) -> list[dict[str, dict[str, float]]]:
        """Return for each part the squared relative error of the whole gradient by value and format."""
        total = sum(part.own for part in self.parts) or 1.0
        found, before = [], 0.0
        for part in self.parts:
            found.append(
                {
                    name: {form: (own + part.passed[name][form] * before) / total for form, own in squares.items()}
                    for name, squares in part.squares.items()
                }
            )
            before += part.own
        return found


def _squares(values: Sequence[Any], exact: Sequence[Any] | None, parameters: Sequence[bool], wanted: bool) -> float:
    """Return the sum of squares of gradients of parameters, or of the others; of differences from the exact ones if given."""
    total = 0.0
    for place, value in enumerate(values):
        if isinstance(value, Tensor) and value.is_floating_point() and place < len(parameters) and parameters[place] is wanted:
            other = 0 if exact is None else exact[place].double()
            total += float((value.double() - other).square().sum())
    return total
