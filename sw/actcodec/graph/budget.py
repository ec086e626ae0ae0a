"""From a survey of a step to the choice for each kept value under a budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import fx
from torch.utils.flop_counter import flop_registry

from actcodec.graph.choices import LEAST_BYTES, Choices, action_of, allowed
from actcodec.graph.formats import format_of
from actcodec.graph.partition import KEEP, RECOMPUTE, Saved
from actcodec.graph.plan import Item, Option, choose
from actcodec.graph.survey import Survey
from actcodec.graph.timeline import BACKWARD, FORWARD


@dataclass(frozen=True)
class Row:
    """One kept value in a report."""

    part: int
    saved: Saved
    key: tuple[str, int]
    item: Item
    chosen: Option | None = None


class Budget:
    """The kept values of all parts of a model, their options, and the bytes of everything else at each moment.

    Parameters
    ----------
    survey
        After one step.
    formats
        Names of the formats to choose among.
    recompute
        Largest share of the step's floating-point operations of products that may be done again.
    """

    def __init__(self, survey: Survey, formats: Sequence[str], recompute: float) -> None:
        self.rows: list[Row] = []
        self.others: list[int] = []
        losses, counts = survey.losses(), Counter[str]()
        reference = Choices(formats[0])
        backwards: list[tuple[list[int], int]] = []
        spans: list[tuple[int, Saved, int, int, list[Option], int]] = []
        work = 0.0
        kept_before = 0
        starts: list[int] = []
        for number, part in enumerate(survey.parts):
            pair, saved, line = part.timeline(lambda values: [action_of(one) for one in reference.of(values)])
            work += sum(map(flops, pair.forward.nodes)) + sum(map(flops, pair.backward.nodes))
            options = [self._options(one, formats, losses[number].get(one.name, {})) for one in saved]
            inside = [
                next((o.nbytes for o in options[i] if o.action == allowed(one, formats[0])), one.nbytes)
                for i, one in enumerate(saved)
            ]
            forward = [moment for moment in line.moments if moment.phase == FORWARD]
            backward = [moment for moment in line.moments if moment.phase == BACKWARD]
            births = _places(pair.forward, [moment.node for moment in forward], [[one.node] for one in saved])
            deaths = _places(pair.backward, [moment.node for moment in backward], [_readers(pair, one) for one in saved])
            starts.append(len(self.others))
            for place, moment in enumerate(forward):
                mine = sum(size for size, birth in zip(inside, births, strict=True) if birth <= place)
                self.others.append(moment.live - mine + kept_before)
            rest = []
            for place, moment in enumerate(backward):
                mine = sum(size for size, death in zip(inside, deaths, strict=True) if place <= death)
                rest.append(moment.live - mine + kept_before)
            backwards.append((rest, number))
            for one, birth, death, choices in zip(saved, births, deaths, options, strict=True):
                spans.append((number, one, starts[-1] + birth, death, choices, counts[one.key]))
                counts[one.key] += 1
            kept_before += max(line.kept - sum(inside), 0)
        ends: dict[int, int] = {}
        for rest, number in reversed(backwards):
            ends[number] = len(self.others)
            self.others += rest
        for number, one, first, death, choices, count in spans:
            self.rows.append(Row(number, one, (one.key, count), Item(tuple(choices), first, ends[number] + death)))
        self._most_work = recompute * work

    def _options(self, saved: Saved, formats: Sequence[str], losses: dict[str, float]) -> list[Option]:
        found = []
        for name in formats:
            if allowed(saved, name) == name:
                found.append(Option(name, int(format_of(name).nbytes(saved.value)), losses.get(name, 0.0)))
        found.append(Option(KEEP, saved.nbytes, 0.0))
        steps = saved.recomputed
        if steps and saved.nbytes >= LEAST_BYTES:
            found.append(Option(RECOMPUTE, 0, 0.0, sum(map(flops, steps))))
        return found

    def choices(self, nbytes: int, scale: float, default: str) -> tuple[Choices, list[Row]]:
        """Return the choice whose predicted peak is within a budget; TooLittleError where there is none.

        ``scale`` multiplies the bytes of all that is not kept, whose prediction a measurement may correct.
        """
        items = [row.item for row in self.rows]
        picked = choose(items, [int(scale * other) for other in self.others], nbytes, self._most_work)
        rows = [Row(row.part, row.saved, row.key, row.item, one) for row, one in zip(self.rows, picked, strict=True)]
        return Choices(default, {row.key: row.chosen.action for row in rows if row.chosen}), rows

    def scale(self, rows: Sequence[Row], peak: int) -> float:
        """Return the scale with which the prediction for a choice is the peak that was measured."""
        kept = np.zeros(len(self.others))
        for row in rows:
            assert row.chosen is not None
            kept[row.item.first : row.item.last + 1] += row.chosen.nbytes
        others = np.array(self.others, dtype=float)
        low, high = 0.0, 4.0
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if (middle * others + kept).max() < peak else (low, middle)
        return high


def flops(node: fx.Node) -> float:
    """Return the floating-point operations of a product, a convolution or an attention, 0 for all else."""
    counter = flop_registry.get(getattr(node.target, "overloadpacket", None))
    if counter is None:
        return 0.0
    value = fx.node.map_arg(node.args, lambda one: one.meta["val"])
    options = fx.node.map_arg(node.kwargs, lambda one: one.meta["val"])
    return float(counter(*value, **options, out_val=node.meta["val"]))


def _readers(pair: Any, saved: Saved) -> list[fx.Node]:
    taken = pair.coded.get(saved.name) or [one for one in [pair.taken(saved.node)] if one is not None]
    return [user for one in taken for user in one.users]


def _places(graph: fx.Graph, moments: Sequence[str], wanted: Sequence[Sequence[fx.Node]]) -> list[int]:
    """Return for each list of nodes the number of the first moment that is not before the last of them."""
    order = {node.name: place for place, node in enumerate(graph.nodes)}
    when = [order[name] for name in moments]
    found = []
    for nodes in wanted:
        last = max((order[node.name] for node in nodes if node.name in order), default=0)
        found.append(next((place for place, one in enumerate(when) if one >= last), max(len(when) - 1, 0)))
    return found
