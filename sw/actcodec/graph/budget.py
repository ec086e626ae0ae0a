"""From a survey of a step to the choice for each kept value under a budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from torch import fx
from torch.utils.flop_counter import flop_registry

from actcodec.graph.choices import LEAST_BYTES, Choices, action_of, allowed
from actcodec.graph.formats import format_of
from actcodec.graph.partition import KEEP, RECOMPUTE, Action, Saved
from actcodec.graph.plan import Item, Option, choose, least_budget
from actcodec.graph.survey import Survey
from actcodec.graph.timeline import BACKWARD, FORWARD

#: A peak may be below the budget by so much of it before another choice is looked for.
TOLERANCE = 0.02
#: Part of a peak by which that of the next choice is lower, at most.
_STEP = 0.01
#: Choices that are tried for a peak, at most, and for the least one.
_MOST_GUESSES, _LEAST_GUESSES = 3, 3
#: Choices between two others that are tried, at most.
_MOST_MIXED = 12
#: Part of the error of a choice that a better one has at most.
_BETTER = 0.9
_BEYOND_NEED = 1 << 50  #: bytes


@dataclass(frozen=True)
class Row:
    """One kept value in a report."""

    saved: Saved
    key: tuple[str, int]
    item: Item
    chosen: Option


@dataclass(frozen=True)
class _Told:
    """The step with a choice, as the graphs that it makes tell without a compiler."""

    choices: Choices
    rows: list[Row]  #: all kept values, as they are chosen
    others: list[int]  #: bytes of everything else at each moment
    peak: int
    work: float  #: floating-point operations of products

    @property
    def loss(self) -> float:
        """Return the squared relative error of the gradient."""
        return loss(self.rows)


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
        self._survey, self._formats = survey, formats
        self._losses = survey.losses()
        self._known: dict[str, _Told] = {}
        self._first = Choices(_usual(formats))
        self._most_work = recompute * self._told(self._first).work

    def _told(self, choices: Choices) -> _Told:
        """Follow the step with a choice, once for each."""
        key = repr(choices)
        if key not in self._known:
            self._known[key] = self._followed(choices)
        return self._known[key]

    def _followed(self, choices: Choices) -> _Told:
        survey, chosen, counts = self._survey, Counter[str](), Counter[str]()
        rows: list[Row] = []
        others: list[int] = []
        backwards: list[tuple[list[int], list[tuple[Saved, int, int, list[Option], Option]]]] = []
        work, kept, peak, kept_before = 0.0, 0, 0, 0
        for number, part in enumerate(survey.parts):
            names: list[str] = []

            def actions(values: Sequence[Saved], names: list[str] = names) -> list[Action]:
                names += choices.of(values, chosen)
                return [action_of(name) for name in names]

            pair, saved, line = part.timeline(actions)
            work += sum(map(flops, pair.forward.nodes)) + sum(map(flops, pair.backward.nodes))
            options = [self._options(one, self._losses[number].get(one.name, {})) for one in saved]
            picked = [_option(some, name) for some, name in zip(options, names, strict=True)]
            inside = [one.nbytes for one in picked]
            forward = [moment for moment in line.moments if moment.phase == FORWARD]
            backward = [moment for moment in line.moments if moment.phase == BACKWARD]
            births = _places(pair.forward, [moment.node for moment in forward], [[one.node] for one in saved])
            deaths = _places(pair.backward, [moment.node for moment in backward], [_readers(pair, one) for one in saved])
            start = len(others)
            for place, moment in enumerate(forward):
                mine = sum(size for size, birth in zip(inside, births, strict=True) if birth <= place)
                others.append(moment.live - mine + kept_before + part.around[0])
                peak = max(peak, moment.live + kept + part.around[0])
            rest = []
            for place, moment in enumerate(backward):
                mine = sum(size for size, death in zip(inside, deaths, strict=True) if place <= death)
                rest.append(moment.live - mine + kept_before + part.around[1])
                peak = max(peak, moment.live + kept + part.around[1])
            lives = [start + birth for birth in births]
            backwards.append((rest, list(zip(saved, lives, deaths, options, picked, strict=True))))
            kept += line.kept
            kept_before += max(line.kept - sum(inside), 0)
        others.append(kept_before + survey.between)
        peak = max(peak, kept + survey.between)
        ends: list[int] = []
        for rest, _ in reversed(backwards):
            ends.insert(0, len(others))
            others += rest
        for end, (_, values) in zip(ends, backwards, strict=True):
            for one, first, death, some, option in values:
                rows.append(Row(one, (one.key, counts[one.key]), Item(tuple(some), first, end + death), option))
                counts[one.key] += 1
        return _Told(choices, rows, others, peak, work)

    def _options(self, saved: Saved, losses: dict[str, float]) -> list[Option]:
        found = []
        for name in self._formats:
            if allowed(saved, name) == name and (nbytes := int(format_of(name).nbytes(saved.value))) < saved.nbytes:
                found.append(Option(name, nbytes, losses.get(name, 0.0)))
        found.append(Option(KEEP, saved.nbytes, 0.0))
        steps = saved.recomputed
        if steps and saved.nbytes >= LEAST_BYTES:
            found.append(Option(RECOMPUTE, 0, 0.0, sum(map(flops, steps))))
        return found

    def choices(self, nbytes: int, error: float) -> list[tuple[Choices, list[Row]]]:
        """Return the best choice of a predicted peak, times ``error``, within a budget, and the next one above, if any.

        Without a choice within the budget the first one is that of the least peak.

        More bytes never bring a lower predicted peak or a greater error than fewer: the choices that budgets find between two
        others have a peak and an error between theirs, and are the same for every budget there.
        """
        wanted = nbytes / error
        below, above = self._told(self._least), self._told(self._finest)
        if above.peak <= wanted:
            return [(above.choices, above.rows)]
        while min(above.peak, wanted) > (1 + _STEP) * below.peak and (middle := self._between(below, above)) is not None:
            below, above = (middle, above) if middle.peak <= wanted else (below, middle)
        return [(one.choices, one.rows) for one in (below, above)]

    def _between(self, below: _Told, above: _Told) -> _Told | None:
        """Return what a choice with a peak and an error between those of two others tells, None if none is found."""
        target = (below.peak * above.peak) ** 0.5
        for guess in (partial(self._below, below), partial(self._below, above), partial(self._mixed, below, above)):
            found = guess(target)
            if found and below.peak < found.peak < above.peak and above.loss <= found.loss <= below.loss:
                return found
        return None

    def _below(self, told: _Told, target: float) -> _Told | None:
        """Return what the best choice of a peak of at most ``target`` tells, None if none is found.

        The programme knows bytes of other values as they are with a choice that is near. As they change with the choice, the
        budget that it is given is corrected by what it missed; and it starts once more from each better choice that it finds.
        """
        best: _Told | None = None
        given = target
        for _ in range(_MOST_GUESSES):
            choices = self._picked(told, int(given))
            if choices is None:
                break
            found = self._told(choices)
            missed = target - found.peak
            if missed >= 0 and (best is None or found.loss < _BETTER * best.loss):
                best = told = found
                given = target
            elif abs(missed) < _STEP / 2 * target:
                break
            else:
                given += missed
        return best

    def _mixed(self, below: _Told, above: _Told, target: float) -> _Told | None:
        """Return what a choice tells that has as many values as ``above`` as fit below ``target``, None if none of them does.

        Those go first that lower the error most for their bytes; the others are as in ``below``.
        """
        pairs = [(one, row) for one, row in zip(below.rows, above.rows, strict=True) if one.chosen != row.chosen]
        pairs.sort(key=lambda pair: _worth(*(row.chosen for row in pair)), reverse=True)
        best: _Told | None = None
        actions = {row.key: row.chosen.action for row in below.rows}
        waiting = [{row.key: row.chosen.action for _, row in pairs}]
        for _ in range(_MOST_MIXED):
            if not waiting:
                break
            more = waiting.pop()
            found = self._told(Choices(self._first.default, actions | more))
            if found.peak <= target:
                best = found
                actions |= more
                if found.peak > (1 - _STEP) * target:
                    break
            elif len(more) > 1:
                keys = list(more)
                halves = keys[: len(keys) // 2], keys[len(keys) // 2 :]
                waiting += [{key: more[key] for key in half} for half in reversed(halves)]
        return best

    def peak(self, choices: Choices) -> int:
        """Return the peak of the step with a choice, as the graphs that it makes tell without a compiler."""
        return self._told(choices).peak

    def scheduled_peak(self, choices: Choices) -> int:
        """Return the peak of the step with a choice in inductor's own schedule, which takes longer to find."""
        counts, kept, peak = Counter[str](), 0, 0
        for part in self._survey.parts:
            forward, backward, mine = part.scheduled_peaks(
                lambda saved: [action_of(name) for name in choices.of(saved, counts)]
            )
            peak = max(peak, kept + forward + part.around[0], kept + backward + part.around[1])
            kept += mine
        return max(peak, kept + self._survey.between)

    def _picked(self, told: _Told, nbytes: int) -> Choices | None:
        """Return the best choice within a budget, None if none is, when all that is not kept has its bytes as it is told."""
        return self._chosen(told, [row.item for row in told.rows], nbytes, self._most_work)

    def _smallest(self, told: _Told, most_work: float) -> Choices | None:
        """Return the best choice of the least bytes, when all that is not kept has its bytes as it is told."""
        items = [row.item for row in told.rows]
        return self._chosen(told, items, least_budget(items, told.others, most_work), most_work)

    def _chosen(self, told: _Told, items: Sequence[Item], nbytes: int, most_work: float) -> Choices | None:
        picked = choose(items, told.others, nbytes, most_work)
        if picked is None:
            return None
        actions = {row.key: one.action for row, one in zip(told.rows, picked, strict=True)}
        return Choices(self._first.default, actions)

    @cached_property
    def _finest(self) -> Choices:
        """The choice of the least error, whatever its peak."""
        found = self._picked(self._told(self._first), _BEYOND_NEED)
        assert found is not None, "a budget beyond need is enough"
        return found

    @cached_property
    def _least(self) -> Choices:
        """The choice of the least peak, as the programme sees it after each of a few choices.

        A value that is computed again counts for nothing, which is too little: the programme also looks without such values.
        """
        found = [self._first]
        for most_work in {0.0, self._most_work}:
            choices: Choices | None = self._first
            for _ in range(_LEAST_GUESSES):
                if choices is None or (choices := self._smallest(self._told(choices), most_work)) is None:
                    break
                found.append(choices)
        return min(found, key=self.peak)


def _usual(formats: Sequence[str]) -> str:
    """Return the format of values that the survey has not seen: the first that is not int16, or the first of all."""
    return next((name for name in formats if name != "int16"), formats[0])


def _option(options: Sequence[Option], action: str) -> Option:
    """Return the option of an action; what has none is kept."""
    return next((one for one in options if one.action == action), next(one for one in options if one.action == KEEP))


def preference(peak: int, nbytes: int, rows: Sequence[Row]) -> tuple[bool, float, int]:
    """Return what is less for a better choice: one within the budget, with the least error of the gradient; else the peak."""
    return (True, peak, 0) if peak > nbytes else (False, loss(rows), peak)


def _worth(less: Option, more: Option) -> float:
    """Return by how much a second option lowers the error for each of its further bytes."""
    return (less.loss - more.loss) / max(more.nbytes - less.nbytes, 1)


def loss(rows: Sequence[Row]) -> float:
    """Return the squared relative error of the gradient, as the rows' choices have it."""
    return sum(row.chosen.loss for row in rows)


def keeps_all(rows: Sequence[Row]) -> bool:
    """Return whether all values are kept as they are."""
    return all(row.chosen.action == KEEP for row in rows)


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
    readers = [user for one in taken for user in one.users]
    # Bytes of a value that is computed again, if it were kept, would count until the end.
    return readers or [pair.backward.output_node()]


def _places(graph: fx.Graph, moments: Sequence[str], wanted: Sequence[Sequence[fx.Node]]) -> list[int]:
    """Return for each list of nodes the number of the first moment that is not before the last of them."""
    order = {node.name: place for place, node in enumerate(graph.nodes)}
    when = [order[name] for name in moments]
    found = []
    for nodes in wanted:
        last = max((order[node.name] for node in nodes if node.name in order), default=0)
        found.append(next((place for place, one in enumerate(when) if one >= last), max(len(when) - 1, 0)))
    return found
