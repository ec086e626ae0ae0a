"""Division of the last axes of a tensor into blocks that share a scale and parts whose codes share bytes."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from actcodec.graph.format import VECTOR
from actcodec.graph.layout import Layout

#: Values of a group.
GROUP = 32


@dataclass(frozen=True)
class Blocks:
    """Division of the last axes of a tensor: ``sizes`` replace the last ``axes`` ones in memory order."""

    axes: int
    sizes: tuple[int, ...]
    shared: tuple[int, ...]  #: the axes of ``sizes`` along which values share a scale, counted from the end
    parts: int  #: the axis of ``sizes`` along which codes share a byte, counted from the end

    @property
    def values_per_scale(self) -> int:
        """Return the number of values that share a scale."""
        return prod(self.sizes[axis] for axis in self.shared)


def in_parts(sizes: tuple[int, ...], parts: int) -> tuple[int, ...]:
    """Return the sizes of axes whose values, a multiple of ``parts``, are cut into so many: (parts, ...).

    The first axis is cut where it can be and the others stay, so that indices of a part need no arithmetic across axes,
    which inductor does not make vectors of.
    """
    if sizes[0] % parts == 0:
        return parts, sizes[0] // parts, *sizes[1:]
    return parts, prod(sizes) // parts


def has_plain_parts(sizes: tuple[int, ...], parts: int) -> bool:
    """Return whether the first axis of several can be cut into parts, or a single one into parts of whole vectors."""
    return sizes[0] % (parts if len(sizes) > 1 else parts * VECTOR) == 0 or parts == 1


def group_blocks(layout: Layout, group: int, parts: int) -> Blocks | None:
    """Blocks of ``group`` values that follow each other in memory, in ``parts`` parts; None where they do not divide a row."""
    axes = layout.axes(lambda values: values % (group * parts) == 0)
    if axes is None:
        return None
    row = layout.inner[-axes:]
    sizes = (*row[:-1], row[-1] // group) if row[-1] % group == 0 else (prod(row) // group,)
    sizes = (*in_parts(sizes, parts), group)
    return Blocks(axes, sizes, (-1,), -len(sizes))
