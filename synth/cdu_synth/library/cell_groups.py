"""Groups of a cell's Liberty text besides delays: the state of a flip-flop, and the energies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cdu_synth.library.liberty import Group, LibertyError, Library, contents, parse

#: Groups of a cell that take time to read and are not needed here.
_SKIPPED = frozenset(
    {"timing", "output_current_rise", "output_current_fall", "receiver_capacitance", "ccsn_first_stage", "ccsn_last_stage"}
)


@dataclass(frozen=True)
class FlipFlop:
    """A cell's ``ff`` group: names of state and inverse, and the functions of the cell's pins that set them.

    ``clear`` and ``preset`` are empty if the flip-flop has none.
    """

    state: str
    inverse: str
    clock: str
    next_state: str
    clear: str = ""
    preset: str = ""

    @classmethod
    def of(cls, cell: Group) -> FlipFlop | None:
        """Return the flip-flop of a cell, None for a gate."""
        group = next(cell.all("ff"), None)
        if group is None:
            return None
        state, inverse = group.arguments
        texts = (group.text(name) for name in ("clocked_on", "next_state", "clear", "preset"))
        return cls(state, inverse, *texts)


def library_groups(library: Library, kinds: Iterable[str]) -> tuple[list[Group], dict[str, Group]]:
    """Return the ``library`` group of every file, and the groups of some cells by name.

    The library groups have templates and units but no cells; the groups of cells have energies but no delays.

    Only these cells are read, because reading a whole library takes long. Raises LibertyError if one is missing.
    """
    wanted, cells, tops = set(kinds), dict[str, Group](), []
    for path in library.files:
        text = contents(path)
        spans = _cells(text)
        head = text[: min((begin for begin, _ in spans.values()), default=len(text))]
        chosen = [text[begin:end] for name, (begin, end) in spans.items() if name in wanted]
        top = parse("".join((head, *chosen, "}")), _SKIPPED)
        tops.append(top)
        cells |= {cell.arguments[0]: cell for cell in top.all("cell")}
    if missing := sorted(wanted - set(cells)):
        raise LibertyError(f"library {library.name} has no cells {', '.join(missing)}: use the one that they were mapped onto")
    return tops, cells


def flip_flops(cells: Mapping[str, Group]) -> dict[str, FlipFlop]:
    """Return the flip-flops among cells, by name."""
    found = {name: FlipFlop.of(cell) for name, cell in cells.items()}
    return {name: one for name, one in found.items() if one}


def _cells(text: str) -> dict[str, tuple[int, int]]:
    """Return the first and the last position of each cell group of a library's text. Strings contain no braces."""
    spans = {}
    for found in re.finditer(r'\bcell\s*\(\s*"?([^")\s]+)"?\s*\)\s*\{', text):
        depth, end = 1, found.end()
        for brace in re.compile(r"[{}]").finditer(text, found.end()):
            depth += 1 if brace[0] == "{" else -1
            if depth == 0:
                end = brace.end()
                break
        spans[found[1]] = (found.start(), end)
    return spans
