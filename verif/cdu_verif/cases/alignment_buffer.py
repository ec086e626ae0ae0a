"""Cases of the alignment buffer in both directions."""

from __future__ import annotations

from random import Random

from actcodec.golden import blocks as golden
from cdu_spec.bitstream import MatrixView, Mode
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, LANES, TILE_BLOCKS

from cdu_verif.cases.case import Case, Ports, integers, words


class _Alignment:
    def __init__(self, to_rows: bool) -> None:
        self.to_rows = to_rows

    def case(self, ports: Ports, rng: Random, row_beats: int, strips: int, steady: tuple[str, ...] = ("i", "o")) -> Case:
        """A random matrix of ``strips`` times 8 rows."""
        view = MatrixView(BLOCK_SIDE * strips, LANES * row_beats, 1, 1, Mode.JPEG_ACT)
        matrix = integers(rng, -128, 127, view.rows, view.columns)
        by_rows = words(ports, "i" if not self.to_rows else "o", values=golden.to_beats(matrix, view))
        by_blocks = words(ports, "o" if not self.to_rows else "i", values=golden.tiles(matrix).reshape(-1, LANES))
        inputs, expected = (by_blocks, by_rows) if self.to_rows else (by_rows, by_blocks)
        return Case(f"row_beats_{row_beats}", inputs, expected, {"row_beats": row_beats}, steady=steady)

    def corners(self, config: CduConfig, ports: Ports, rng: Random) -> list[Case]:
        """Every width of 1 to 9 blocks, and greater ones."""
        return [self.case(ports, rng, row_beats, strips) for row_beats in (*range(1, 10), 16, 23) for strips in (1, 3)]

    def random(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> Case:
        """A random width."""
        row_beats = rng.randint(1, 13)
        return self.case(ports, rng, row_beats, max(blocks // row_beats, 1))

    def steady(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> list[Case]:
        """Every width of 1 to 9 blocks: whole tiles or not."""
        return [self.case(ports, rng, row_beats, blocks // row_beats) for row_beats in range(1, 2 * TILE_BLOCKS + 2)]


ALIGNMENT, INVERSE_ALIGNMENT = _Alignment(to_rows=False), _Alignment(to_rows=True)
