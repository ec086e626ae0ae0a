"""Assignment of the rows of a tile's blocks to the banks of the alignment buffer."""

from __future__ import annotations

from cdu_spec.geometry import BLOCK_SIDE, TILE_BLOCKS


class TileBanks:
    """Assign the rows of a tile to P banks so that each word of two kinds touches every bank once.

    One kind of word is P consecutive rows of one block, the other P consecutive beats of the tile taken row by row. A block
    has a slot of ``8 / P`` addresses in every bank; its row r is at address ``r // P`` of the slot.

    Parameters
    ----------
    beats
        P: 1, 2, 4 or 8.

    Tables are indexed by the number of blocks in the tile (1..4), then by the word (its number in the tile row by row; the
    block for words of a block, where all words of a block are alike), and hold one entry per lane or per bank.
    """

    def __init__(self, beats: int) -> None:
        self.beats = beats
        widths = range(1, TILE_BLOCKS + 1)
        lanes = range(beats)
        #: Row and block of every lane.
        self.raster = {
            blocks: [[divmod(word * beats + lane, blocks) for lane in lanes] for word in range(self.words(blocks))]
            for blocks in widths
        }
        #: Bank of every lane.
        self.raster_banks = {
            blocks: [[self.bank(row, block, blocks) for row, block in word] for word in self.raster[blocks]]
            for blocks in widths
        }
        self.block_banks = {
            blocks: [[self.bank(lane, block, blocks) for lane in lanes] for block in range(blocks)] for blocks in widths
        }
        #: Lane of every bank.
        self.raster_lanes = {blocks: [_inverse(word) for word in self.raster_banks[blocks]] for blocks in widths}
        self.block_lanes = {blocks: [_inverse(word) for word in self.block_banks[blocks]] for blocks in widths}
        #: Address in every bank, from the tile's first slot on.
        self.raster_addresses = {
            blocks: [
                [self._address(*word[lane]) for lane in order]
                for word, order in zip(self.raster[blocks], self.raster_lanes[blocks], strict=True)
            ]
            for blocks in widths
        }

    def words(self, blocks: int) -> int:
        """Return the number of words in a tile of ``blocks`` blocks."""
        return blocks * BLOCK_SIDE // self.beats

    def bank(self, row: int, block: int, blocks: int) -> int:
        """Return the bank of row ``row`` of block ``block`` in a tile of ``blocks`` blocks."""
        if blocks % 2:
            return (row * blocks + block) % self.beats
        return (row + block * max(1, self.beats // blocks)) % self.beats

    def _address(self, row: int, block: int) -> int:
        return block * (BLOCK_SIDE // self.beats) + row // self.beats


def _inverse(order: list[int]) -> list[int]:
    """Return the inverse of a permutation; ValueError if it is none, that is if two beats of a word are in the same bank."""
    return [order.index(place) for place in range(len(order))]
