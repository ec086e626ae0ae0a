"""Alignment buffer: changes between rows of 32 columns and blocks of 8 columns (JPEG-ACT, "alignment buffer")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from amaranth.hdl import Module, Mux, Shape, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, TILE_BLOCKS, VALUE_BITS

from cdu.alignment.tile_banks import TileBanks
from cdu.parts.join import assigned
from cdu.parts.lookup import lookup
from cdu.parts.ram import Ram
from cdu.parts.streams import registered
from cdu.words import BlockTag, BlockWord, TileWord

#: Blocks that have room: two whole tiles.
SLOTS = 2 * TILE_BLOCKS


class Direction(Enum):
    """Direction in which an alignment buffer reorders its tiles."""

    TO_BLOCKS = "to_blocks"
    TO_ROWS = "to_rows"
    BOTH = "both"


class AlignmentBuffer(wiring.Component):
    """Reorder tiles of 8 rows x 1 to 4 blocks from row by row to block by block, or back, P beats per cycle.

    The memory has P banks (:class:`~cdu.parts.ram.Ram`, :class:`~cdu.alignment.tile_banks.TileBanks`) and 8 slots of a
    block. A tile takes the next slots of this ring, one per block: when block by block words leave, each slot is free again
    once it has been read, else all slots of a tile are. The tiles of a job follow each other without a bubble, whatever its
    width (4, 1, 4, 1 or 3, 3 blocks), and so do equal jobs; a wide tile behind narrow ones waits at the output until it is
    complete.

    Parameters
    ----------
    config
        P is used; ``value_bits`` of the values where the direction is not ``TO_ROWS`` (8 there).
    direction
        ``TO_BLOCKS`` (compression): i goes row by row through the tile, o block by block (8 rows each).
        ``TO_ROWS`` (decompression): the other way. ``BOTH``: one or the other.

    Ports
    -----
    i
        Stream of :class:`~cdu.words.TileWord`; only a tile of one block may have fewer than 8 rows. With ``BOTH`` the words
        that become blocks.
    blocks
        Only with ``BOTH``: stream of the words that become rows. Only the stream of the present direction may be valid.
        Neither ``ready`` depends on ``to_rows``, whose large fan-out would make it late.
    o
        Stream of :class:`~cdu.words.BlockWord`, or of :class:`~cdu.words.TileWord` where the direction is not ``TO_BLOCKS``.
    to_rows
        Only with ``BOTH``: the direction. Must change only while ``empty`` is high and nothing comes.
    empty
        The buffer holds no word.

    Latency: a tile and 1 cycle. One transfer per cycle at both ends.
    """

    i: stream.Interface
    blocks: stream.Interface
    o: stream.Interface
    to_rows: Signal
    empty: Signal

    def __init__(self, config: CduConfig, direction: Direction) -> None:
        self.direction = direction
        self.beats = config.port_beats
        bits = VALUE_BITS if direction is Direction.TO_ROWS else config.value_bits
        word = (BlockWord if direction is Direction.TO_BLOCKS else TileWord)(config, bits)
        both = {"blocks": In(stream.Signature(TileWord(config))), "to_rows": In(1)}
        super().__init__(
            {
                "i": In(stream.Signature(TileWord(config, bits))),
                "o": Out(stream.Signature(word)),
                **(both if direction is Direction.BOTH else {}),
                "empty": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        both = self.direction is Direction.BOTH
        words = stream.Signature(self.i.payload.shape()).create(path=("words",)) if both else self.i
        ring = _Ring(m, self.beats, words, self.o)
        if self.direction is Direction.TO_BLOCKS:
            ring.write_rows()
            ring.read_blocks()
        elif self.direction is Direction.TO_ROWS:
            ring.write_blocks()
            ring.read_rows()
        else:
            m.d.comb += [self.i.ready.eq(ring.tile_fits(self.i.payload.blocks)), self.blocks.ready.eq(ring.block_fits())]
            with m.If(self.to_rows):
                m.d.comb += [words.valid.eq(self.blocks.valid), *assigned(words.payload, self.blocks.payload)]
                ring.write_blocks()
                ring.read_rows()
            with m.Else():
                m.d.comb += [words.valid.eq(self.i.valid), words.payload.eq(self.i.payload)]
                ring.write_rows()
                ring.read_blocks()
        m.d.comb += self.empty.eq((ring.used == 0) & ~self.o.valid)
        return m


class _TileRecord(data.StructLayout):
    """Record of a complete tile, which the reading side needs.

    ``blocks``; ``final``, the number of the last word of the tile (of a block, where it leaves block by block); ``count`` of
    beats in that word; ``tag`` of the last word.
    """

    def __init__(self, words: int, beats: int) -> None:
        super().__init__(
            {"blocks": range(TILE_BLOCKS + 1), "final": range(words), "count": range(beats + 1), "tag": BlockTag()},
        )


class _Ring:
    """The memory with a writing and a reading side, each of which goes row by row or block by block.

    Both kinds of a side drive the same signals, so that they can stand under a condition.
    """

    def __init__(self, m: Module, beats: int, i: stream.Interface, o: stream.Interface) -> None:
        self.m, self.beats, self.i, self.o = m, beats, i, o
        self.map = TileBanks(beats)
        self.slot_words = BLOCK_SIDE // beats
        tile_words = self.map.words(TILE_BLOCKS)

        self.beat = i.payload["values"].shape().elem_shape
        self.banks = [Ram(Shape.cast(self.beat).width, SLOTS * self.slot_words) for _ in range(beats)]
        for number, bank in enumerate(self.banks):
            m.submodules[f"bank{number}"] = bank
        records: Memory
        m.submodules.records = records = Memory(shape=_TileRecord(tile_words, beats), depth=SLOTS, init=[])
        write_record = records.write_port()
        read_record = records.read_port(domain="comb")
        write_tile = Signal(range(SLOTS))  # every tile has a slot at least
        read_tile = Signal(range(SLOTS))
        self.entering: Any = write_record.data
        self.leaving: Any = read_record.data

        # First slot, block and word (of the block or of the tile), for the tile that enters and for the one that leaves
        self.write_slot = Signal(range(SLOTS))
        self.read_slot = Signal(range(SLOTS))
        self.write_block = Signal(range(TILE_BLOCKS))
        self.read_block = Signal(range(TILE_BLOCKS))
        self.write_word = Signal(range(tile_words))
        self.begins = self.write_word == 0  # a block, or a tile row by row
        self.read_word = Signal(range(tile_words))
        self.used = Signal(range(SLOTS + 1))  # slots
        self.complete = Signal(range(SLOTS + 1))  # tiles

        self.allocated = Signal(range(TILE_BLOCKS + 1))
        self.released = Signal(range(TILE_BLOCKS + 1))
        self.filled = Signal()  # a tile, in this cycle
        self.emptied = Signal()  # a tile, in this cycle
        self.written = Signal()
        self.row: Any = Signal(data.ArrayLayout(self.beat, beats), name="row")  # as it comes out of the banks
        self.taken = Signal()
        m.d.comb += [ours.eq(bank.read_data) for ours, bank in zip(self.row, self.banks, strict=True)]
        m.d.comb += [
            self.written.eq(i.valid & i.ready),
            self.taken.eq((self.complete != 0) & (~o.valid | o.ready)),
            *(bank.write_enable.eq(self.written) for bank in self.banks),
            *(bank.read_enable.eq(self.taken) for bank in self.banks),
            write_record.addr.eq(write_tile),
            write_record.en.eq(self.filled),
            read_record.addr.eq(read_tile),
            self.entering.blocks.eq(i.payload.blocks),
            self.entering.count.eq(i.payload.count),
            self.entering.tag.eq(i.payload.tag),
        ]
        m.d.sync += [
            self.used.eq(self.used + self.allocated - self.released),
            self.complete.eq(self.complete + self.filled - self.emptied),
        ]
        with m.If(self.filled):
            m.d.sync += [write_tile.eq(write_tile + 1), self.write_slot.eq(self.write_slot + i.payload.blocks)]
        with m.If(self.emptied):
            m.d.sync += [read_tile.eq(read_tile + 1), self.read_slot.eq(self.read_slot + self.leaving.blocks)]
        with m.If(~o.valid | o.ready):
            m.d.sync += o.valid.eq(self.taken)

    def tile_fits(self, blocks: Value) -> Value:
        """Return whether the next word along the rows of a tile of that many blocks has room."""
        return ~self.begins | (self.used + blocks <= SLOTS)

    def block_fits(self) -> Value:
        """Return whether the next word of a block has room."""
        return ~self.begins | (self.used != SLOTS)

    def write_rows(self) -> None:
        """Write words along the rows of a tile; all its slots must be free when it begins."""
        m, word = self.m, self.i.payload
        lanes = self._entries(self.map.raster_lanes, word.blocks, self.write_word, "raster_lane")
        places = self._entries(self.map.raster_addresses, word.blocks, self.write_word, "raster_write")
        for bank, lane, place in zip(self.banks, lanes, places, strict=True):
            m.d.comb += [
                bank.write_data.eq(word["values"][lane]),
                bank.write_address.eq(self.write_slot * self.slot_words + place),
            ]
        m.d.comb += [
            self.i.ready.eq(self.tile_fits(word.blocks)),
            self.allocated.eq(Mux(self.written & self.begins, word.blocks, 0)),
            self.filled.eq(self.written & word.ends),
            self.entering.final.eq(Mux(word.blocks == 1, self.write_word, self.slot_words - 1)),
        ]
        with m.If(self.written):
            m.d.sync += self.write_word.eq(Mux(word.ends, 0, self.write_word + 1))

    def write_blocks(self) -> None:
        """Write words along the rows of one block after the other; the slot of a block must be free when the block begins."""
        m, word = self.m, self.i.payload
        last_block = self.write_block == word.blocks - 1
        lanes = self._entries(self.map.block_lanes, word.blocks, self.write_block, "block_lane")
        for bank, lane in zip(self.banks, lanes, strict=True):
            m.d.comb += [
                bank.write_data.eq(word["values"][lane]),
                bank.write_address.eq((self.write_slot + self.write_block) * self.slot_words + self.write_word),
            ]
        m.d.comb += [
            self.i.ready.eq(self.block_fits()),
            self.allocated.eq(self.written & self.begins),
            self.filled.eq(self.written & word.ends & last_block),
            self.entering.final.eq(Mux(word.blocks == 1, self.write_word, word.blocks * self.slot_words - 1)),
        ]
        with m.If(self.written):
            m.d.sync += self.write_word.eq(Mux(word.ends, 0, self.write_word + 1))
            with m.If(word.ends):
                m.d.sync += self.write_block.eq(Mux(last_block, 0, self.write_block + 1))

    def read_rows(self) -> None:
        """Read words along the rows of a tile; its slots are free once the whole tile has left."""
        m, tile = self.m, self.leaving
        ends = self.read_word == tile.final
        banks = self._entries(self.map.raster_banks, tile.blocks, self.read_word, "raster_bank")
        places = self._entries(self.map.raster_addresses, tile.blocks, self.read_word, "raster_read")
        for bank, place in zip(self.banks, places, strict=True):
            m.d.comb += bank.read_address.eq(self.read_slot * self.slot_words + place)
        m.d.comb += [self.emptied.eq(self.taken & ends), self.released.eq(Mux(self.emptied, tile.blocks, 0))]
        self._leave(banks, ends, tile.tag.last)
        with m.If(self.taken):
            m.d.sync += self.read_word.eq(Mux(ends, 0, self.read_word + 1))

    def read_blocks(self) -> None:
        """Read words along the rows of one block after the other; the slot of a block is free once the block has left."""
        m, tile = self.m, self.leaving
        ends, last_block = self.read_word == tile.final, self.read_block == tile.blocks - 1
        banks = self._entries(self.map.block_banks, tile.blocks, self.read_block, "block_bank")
        for bank in self.banks:
            m.d.comb += bank.read_address.eq((self.read_slot + self.read_block) * self.slot_words + self.read_word)
        m.d.comb += [self.emptied.eq(self.taken & ends & last_block), self.released.eq(self.taken & ends)]
        self._leave(banks, ends, tile.tag.last & last_block)
        with m.If(self.taken):
            m.d.sync += self.read_word.eq(Mux(ends, 0, self.read_word + 1))
            with m.If(ends):
                m.d.sync += self.read_block.eq(Mux(last_block, 0, self.read_block + 1))

    def _leave(self, banks: Sequence[Value], ends: Value, last: Value) -> None:
        """Put the word that was read, held by the memory's output registers, at ``o``; lane j comes from bank ``banks[j]``."""
        m, tile, word = self.m, self.leaving, self.o.payload
        for lane, bank in enumerate(banks):
            m.d.comb += word["values"][lane].eq(self.row[registered(m, self.taken, bank, f"bank_of_lane{lane}")])
        with m.If(self.taken):
            m.d.sync += [
                word["count"].eq(Mux(ends, tile.count, self.beats)),
                word.ends.eq(ends),
                word.tag.eq(tile.tag),
                word.tag.last.eq(last),
            ]
            if "blocks" in dict(word.shape()):
                m.d.sync += word.blocks.eq(tile.blocks)

    def _entries(self, table: Mapping[int, Sequence[Sequence[int]]], blocks: Value, word: Value, name: str) -> list[Signal]:
        """Return the entries of a table of :class:`~cdu.alignment.tile_banks.TileBanks` for all lanes or banks."""
        return [
            lookup(
                self.m,
                {width: [entries[place] for entries in rows] for width, rows in table.items()},
                blocks,
                word,
                f"{name}{place}",
            )
            for place in range(self.beats)
        ]
