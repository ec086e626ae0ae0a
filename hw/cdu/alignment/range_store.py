"""Store of the ranges of blocks while their values are in the alignment buffer."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.config import CduConfig
from cdu_spec.geometry import TILE_BLOCKS
from cdu_spec.modes import Mode

from cdu.alignment.alignment_buffer import SLOTS
from cdu.alignment.tile_banks import TileBanks
from cdu.parts.lookup import lookup
from cdu.words import Range, TileWord


class RangedTileWord(data.StructLayout):
    """A :class:`~cdu.words.TileWord` with the ``range`` of its block."""

    def __init__(self, config: CduConfig) -> None:
        super().__init__({**_fields(config), "range": Range()})


class RangedRasterWord(data.StructLayout):
    """A :class:`~cdu.words.TileWord` in the order of the rows of a tile, with the ``ranges`` of the blocks of its P beats."""

    def __init__(self, config: CduConfig) -> None:
        super().__init__({**_fields(config), "ranges": data.ArrayLayout(Range(), config.port_beats)})


def _fields(config: CduConfig) -> dict[str, Any]:
    return {name: field.shape for name, field in TileWord(config)}


class _Entry(data.StructLayout):
    """Entry of a block in the ring: its ``range``, and the number of the other blocks in its tile (``others``)."""

    def __init__(self) -> None:
        super().__init__({"range": Range(), "others": range(TILE_BLOCKS)})


class RangeStore(wiring.Component):
    """Take the ranges off words before an alignment buffer ``TO_ROWS`` and put them back on the words behind it.

    A ring has an entry for every block behind the tile that leaves the buffer. The entries of that tile are held in registers
    of their own, so that a ring with as many entries as the buffer has slots never stalls the buffer. In mode actnn all blocks
    of a tile have the range of the first one.

    Parameters
    ----------
    config
        P is used.

    Ports
    -----
    i
        Stream of :class:`RangedTileWord`, block by block. The range of a block that has none is ignored.
    to_alignment
        Stream of :class:`~cdu.words.TileWord`, combinationally from ``i``.
    from_alignment
        Stream of :class:`~cdu.words.TileWord`: the same tiles row by row.
    o
        Stream of :class:`RangedRasterWord`, combinationally from ``from_alignment``. Ranges are undefined in modes without
        ranges and for lanes beyond ``count`` beats.

    One word per cycle at both ends. A tile can leave 2 cycles after its last word has entered. The store holds up to 8 blocks
    behind the tile that leaves.
    """

    i: stream.Interface
    to_alignment: stream.Interface
    from_alignment: stream.Interface
    o: stream.Interface

    def __init__(self, config: CduConfig) -> None:
        self.beats = config.port_beats
        tiles = stream.Signature(TileWord(config))
        super().__init__(
            {
                "i": In(stream.Signature(RangedTileWord(config))),
                "to_alignment": Out(tiles),
                "from_alignment": In(tiles),
                "o": Out(stream.Signature(RangedRasterWord(config))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ring: Any = Signal(data.ArrayLayout(_Entry(), SLOTS), reset_less=True)
        used = Signal(range(SLOTS + 1))  # blocks
        complete = Signal(range(SLOTS + 1))  # tiles
        write_slot = Signal(range(SLOTS))
        read_slot = Signal(range(SLOTS))
        block = Signal(range(TILE_BLOCKS))  # that enters, in its tile
        word = self.i.payload

        # In: an entry is complete with its block
        room = Signal()
        enters = Signal()
        fills = Signal()
        m.d.comb += [
            room.eq(used != SLOTS),
            self.to_alignment.valid.eq(self.i.valid & room),
            self.i.ready.eq(self.to_alignment.ready & room),
            enters.eq(self.i.valid & self.i.ready & word["ends"]),
            fills.eq(enters & (block == (word["blocks"] - 1)[: len(block)])),
        ]
        m.d.comb += [self.to_alignment.payload[name].eq(word[name]) for name, _ in self.to_alignment.payload.shape()]
        with m.If(enters):
            m.d.sync += [
                ring[write_slot]["range"].eq(word["range"]),
                ring[write_slot]["others"].eq(word["blocks"] - 1),
                write_slot.eq(write_slot + 1),
                block.eq(Mux(fills, 0, block + 1)),
            ]

        # From the ring to the registers of the tile that leaves
        ranges: Any = Signal(data.ArrayLayout(Range(), TILE_BLOCKS), reset_less=True)
        present = Signal()  # a tile's ranges in them
        ends = Signal()
        moves = Signal()
        others = Signal(range(TILE_BLOCKS))
        m.d.comb += [
            others.eq(ring[read_slot]["others"]),
            ends.eq(self.o.valid & self.o.ready & self.o.payload["ends"]),
            moves.eq((complete != 0) & (~present | ends)),
        ]
        m.d.sync += [
            used.eq(used + enters - Mux(moves, others + 1, 0)),
            complete.eq(complete + fills - moves),
            present.eq(moves | (present & ~ends)),
        ]
        with m.If(moves):
            m.d.sync += read_slot.eq(read_slot + others + 1)
            m.d.sync += [ours.eq(ring[(read_slot + place)[: len(read_slot)]]["range"]) for place, ours in enumerate(ranges)]

        # Out: every beat with the range of its block
        tile, out = self.from_alignment, self.o.payload
        number = Signal(range(TileBanks(self.beats).words(TILE_BLOCKS)))
        m.d.comb += [
            self.o.valid.eq(tile.valid & present),
            tile.ready.eq(self.o.ready & present),
        ]
        m.d.comb += [out[name].eq(tile.payload[name]) for name, _ in tile.payload.shape()]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += number.eq(Mux(tile.payload["ends"], 0, number + 1))
        shared = tile.payload["tag"]["mode"] == Mode.ACTNN
        raster = TileBanks(self.beats).raster
        for lane in range(self.beats):
            blocks = {width: [entries[lane][1] for entries in rows] for width, rows in raster.items()}
            place = lookup(m, blocks, tile.payload["blocks"], number, f"place{lane}")
            m.d.comb += out["ranges"][lane].eq(ranges[Mux(shared, 0, place)])
        return m
