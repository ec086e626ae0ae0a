"""From a survey of a step to the choice for each kept value under a budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from torch import fx
from torch.utils.flop_counter import flop_registry

from actcodec.graph.choices import LEAST_BYTES, Choices, action_of, allowed
from actcodec.graph.formats import format_of
from actcodec.graph.partition import KEEP, RECOMPUTE, Saved
from actcodec.graph.plan import Item, Option, TooLittleError, choose
from actcodec.graph.survey import Part, Survey
from actcodec.graph.timeline import BACKWARD, FORWARD

#: A peak may differ from the budget by so much of it.
TOLERANCE = 0.02
#: Choices whose peak is predicted before one is compiled, at most.
MOST_GUESSES = 8


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
        self._survey, self._default = survey, formats[0]
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
                self.others.append(moment.live - mine + kept_before + part.around[0])
            rest = []
            for place, moment in enumerate(backward):
                mine = sum(size for size, death in zip(inside, deaths, strict=True) if place <= death)
                rest.append(moment.live - mine + kept_before + part.around[1])
            backwards.append((rest, number))
            for one, birth, death, choices in zip(saved, births, deaths, options, strict=True):
                spans.append((number, one, starts[-1] + birth, death, choices, counts[one.key]))
                counts[one.key] += 1
            kept_before += max(line.kept - sum(inside), 0)
        self.others.append(kept_before + survey.between)
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

    def choices(self, nbytes: int, error: float) -> tuple[Choices, list[Row]]:
        """Return the best choice of a predicted peak, times ``error``, within a budget; of the least peak if none is within.

        The programme knows bytes of other values as they are with the first format. The graphs of what it picks tell the peak
        itself, by which it is corrected.
        """
        scale, low, high = 1.0, 0.0, inf
        found: list[tuple[int, Choices, list[Row]]] = []
        for _ in range(MOST_GUESSES):
            try:
                choices, rows = self._picked(nbytes, scale)
                is_least = False
            except TooLittleError:
                choices, rows = self._least()
                is_least = True
            peak = int(error * self.peak(choices))
            found.append((peak, choices, rows))
            if abs(peak - nbytes) <= TOLERANCE * nbytes or (peak <= nbytes and keeps_all(rows)) or (peak > nbytes and is_least):
                break
            low, high = (scale, high) if peak > nbytes else (low, scale)
            wanted = low if is_least else self._scale(rows, peak)
            between = (low + high) / 2 if low and high < inf else scale * peak / nbytes
            scale = wanted if low < wanted < high else between
        return min(found, key=lambda one: preference(one[0], nbytes, one[2]))[1:]

    def peak(self, choices: Choices) -> int:
        """Return the peak of the step with a choice, as the graphs that it makes tell without a compiler."""
        return self._peak(choices, _told_peaks)

    def scheduled_peak(self, choices: Choices) -> int:
        """Return the peak of the step with a choice in inductor's own schedule, which takes longer to find."""
        return self._peak(choices, Part.scheduled_peaks)

    def _peak(self, choices: Choices, peaks: Callable[[Part, Callable[..., Any]], tuple[int, int, int]]) -> int:
        counts, kept, peak = Counter[str](), 0, 0
        for part in self._survey.parts:
            forward, backward, mine = peaks(part, lambda saved: [action_of(name) for name in choices.of(saved, counts)])
            peak = max(peak, kept + forward + part.around[0], kept + backward + part.around[1])
            kept += mine
        return max(peak, kept + self._survey.between)

    def _picked(self, nbytes: int, scale: float) -> tuple[Choices, list[Row]]:
        """Return the best choice within a budget if all that is not kept has ``scale`` times its bytes."""
        items = [row.item for row in self.rows]
        picked = choose(items, [int(scale * other) for other in self.others], nbytes, self._most_work)
        rows = [Row(row.part, row.saved, row.key, row.item, one) for row, one in zip(self.rows, picked, strict=True)]
        return Choices(self._default, {row.key: row.chosen.action for row in rows if row.chosen}), rows

    def _least(self) -> tuple[Choices, list[Row]]:
        """Return the choice of the least peak, as the programme sees it."""
        try:
            return self._picked(0, 1.0)
        except TooLittleError as too_little:
            return self._picked(too_little.least, 1.0)

    def _scale(self, rows: Sequence[Row], peak: int) -> float:
        """Return the scale with which the programme sees a choice have a peak."""
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


def preference(peak: int, nbytes: int, rows: Sequence[Row]) -> tuple[bool, float, int]:
    """Return what is less for a better choice: one within the budget, with the least error of the gradient; else the peak."""
    loss = sum(row.chosen.loss for row in rows if row.chosen is not None)
    return (True, peak, 0) if peak > nbytes * (1 + TOLERANCE) else (False, loss, peak)


def _told_peaks(part: Part, choose: Callable[..., Any]) -> tuple[int, int, int]:
    _, _, line = part.timeline(choose)
    forward, backward = (
        max((one.live for one in line.moments if one.phase == phase), default=0) for phase in (FORWARD, BACKWARD)
    )
    return forward, backward, line.kept


def keeps_all(rows: Sequence[Row]) -> bool:
    """Return whether all values are kept as they are."""
    return all(row.chosen is not None and row.chosen.action == KEEP for row in rows)


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
