"""Cases of the alignment buffer in both directions."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from actcodec.golden import blocks as golden
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, LANES, TILE_BLOCKS
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Mode
from cdu_spec.port_fields import pack
from torch import Tensor

from cdu_verif.cases.block_streams import NO_USE, Tag, random_settings
from cdu_verif.cases.case import Case, Cases
from cdu_verif.content.values import integers
from cdu_verif.simulation.ports import Ports

#: Modes whose jobs pass as single blocks, the last of which may have fewer rows.
_SEQUENCES = (Mode.SFPR, Mode.BRC)


class _Job:
    """Random beats of one job in the order of both sides, cut into tiles and blocks."""

    def __init__(self, rng: Random, view: MatrixView, bits: int) -> None:
        self.view = view
        self.bank = rng.randint(0, 1)
        self.settings = random_settings(rng, view.mode)
        matrix = integers(rng, -(1 << (bits - 1)), (1 << (bits - 1)) - 1, view.padded_rows, LANES * view.row_beats)
        self.by_rows = golden.to_beats(matrix, view)
        self.by_blocks = golden.tiles(matrix).reshape(-1, LANES) if view.mode.in_tiles else self.by_rows
        if view.mode.in_tiles:
            lefts = range(0, view.row_beats, TILE_BLOCKS)
            widths = [min(TILE_BLOCKS, view.row_beats - left) for left in lefts]
            self.tiles = [(blocks, BLOCK_SIDE) for _ in range(view.padded_rows // BLOCK_SIDE) for blocks in widths]
        else:
            starts = range(0, view.beats, BLOCK_SIDE)
            self.tiles = [(1, min(BLOCK_SIDE, view.beats - start)) for start in starts]

    def words(self, ports: Ports, stream: str, rowwise: bool) -> list[int]:
        """Return the payloads of a side in the order of the rows of every tile, or of one block after the other."""
        beats = self.by_rows if rowwise else self.by_blocks
        units = [(blocks, rows) for blocks, rows in self.tiles for _ in range(1 if rowwise else blocks)]
        result, start = [], 0
        for number, (blocks, rows) in enumerate(units):
            end = start + rows * (blocks if rowwise else 1)
            result += self._unit(ports, stream, beats[start:end], blocks, number == len(units) - 1)
            start = end
        return result

    def _unit(self, ports: Ports, stream: str, beats: Tensor, blocks: int, last: bool) -> list[int]:
        """Return the words of one tile or block."""
        port = dict(ports[f"{stream}__payload"])
        sizes = {field["name"]: field["count"] for field in port["fields"]}
        per_word = sizes["values"] // LANES
        result = []
        for start in range(0, len(beats), per_word):
            values = beats[start : start + per_word].flatten().tolist()
            fields = {
                "values": values + [0] * (per_word * LANES - len(values)),
                "count": len(values) // LANES,
                "ends": int(start + per_word >= len(beats)),
                "tag": Tag(self.view.mode, self.bank, int(last), self.settings, beside=NO_USE[self.bank]).fields,
            }
            result.append(pack(port, fields | ({"blocks": blocks} if "blocks" in sizes else {})))
        return result


class _Alignment(Cases):
    def __init__(self, to_rows: bool) -> None:
        self.to_rows = to_rows

    def case(self, ports: Ports, rng: Random, name: str, views: Sequence[MatrixView]) -> Case:
        """Return a case of random jobs with these views, one after the other."""
        values = next(entry for entry in ports["i__payload"]["fields"] if entry["name"] == "values")
        jobs = [_Job(rng, view, values["width"]) for view in views]
        inputs = [word for job in jobs for word in job.words(ports, "i", not self.to_rows)]
        expected = [word for job in jobs for word in job.words(ports, "o", self.to_rows)]
        return Case(name, {"i": inputs}, {"o": expected}, steady=("i", "o"))

    def corners(self, config: CduConfig, ports: Ports, rng: Random) -> list[Case]:
        """Return every width of 1 to 9 blocks, and greater ones; last blocks of every height; wide tiles behind narrow ones."""
        widths = [
            self.case(ports, rng, f"row_beats_{row_beats}", [_strips(row_beats, strips)])
            for row_beats in (*range(1, 10), 16, 23)
            for strips in (1, 3)
        ]
        heights = [_sequence(mode, beats) for mode in _SEQUENCES for beats in range(1, 2 * BLOCK_SIDE + 1)]
        mixed = [view for blocks in range(1, TILE_BLOCKS + 1) for view in (_strips(blocks, 2), _sequence(Mode.SFPR, 9))]
        return [*widths, self.case(ports, rng, "heights", heights), self.case(ports, rng, "mixed", [*mixed, *mixed[::-1]])]

    def random(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> Case:
        """Return a few jobs of both kinds with random sizes."""
        views = []
        while blocks > 0:
            size = rng.randint(1, blocks)
            row_beats = rng.randint(1, 13)
            tiled = rng.random() < 0.7
            views.append(
                _strips(row_beats, max(size // row_beats, 1))
                if tiled
                else _sequence(rng.choice(_SEQUENCES), BLOCK_SIDE * size - rng.randrange(BLOCK_SIDE))
            )
            blocks -= size
        return self.case(ports, rng, "random", views)

    def steady(self, config: CduConfig, ports: Ports, rng: Random, blocks: int) -> list[Case]:
        """Return every width of 1 to 9 blocks, whole tiles or not, in jobs that follow each other; single blocks."""
        tiled = [
            self.case(ports, rng, f"row_beats_{row_beats}", [_strips(row_beats, max(blocks // row_beats // 3, 1))] * 3)
            for row_beats in range(1, 2 * TILE_BLOCKS + 2)
        ]
        return [*tiled, self.case(ports, rng, "single_blocks", [_sequence(Mode.SFPR_ZVC, BLOCK_SIDE * blocks // 3)] * 3)]


def _strips(row_beats: int, strips: int) -> MatrixView:
    """Return a jpeg-act matrix of ``strips`` times 8 rows."""
    return MatrixView(BLOCK_SIDE * strips, LANES * row_beats, 1, 1, Mode.JPEG_ACT)


def _sequence(mode: Mode, beats: int) -> MatrixView:
    """Return a job of beats one after the other."""
    return MatrixView(1, LANES * beats, 1, 1, mode)


ALIGNMENT, INVERSE_ALIGNMENT = _Alignment(to_rows=False), _Alignment(to_rows=True)
