"""The order in which a unit takes and gives the values of a tensor, as segments of memory."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2
from cdu_spec.config import CduConfig
from cdu_spec.dma import MEMORY_ADDRESS_BITS
from cdu_spec.geometry import BLOCK_SIDE, LANES, TILE_BLOCKS, TILE_COLUMNS
from cdu_spec.register_types import COUNT_BITS, Channel

from cdu.dma.records import VALUES_BITS, TensorJob
from cdu.dma.segments import Segment


class Cursor(data.StructLayout):
    """A row of a tensor: the addresses of it, its channel and its sample; how many channels of its sample, rows of its channel
    and rows there are from it on.
    """

    def __init__(self) -> None:
        addresses = dict.fromkeys(("row", "channel", "sample"), MEMORY_ADDRESS_BITS)
        super().__init__({**addresses, "c": VALUES_BITS, "h": VALUES_BITS, "left": VALUES_BITS})


class TensorWalk(wiring.Component):
    """Walks over a tensor (page ``bitstream.md``, section 2): in strips and tiles, or row by row.

    Ports
    -----
    job
        Stream of :class:`~cdu.dma.records.TensorJob`, which is taken with its last segment.
    o
        Stream of :class:`~cdu.dma.segments.Segment`: a row of a tile, or of the tensor, each with the padding behind it.

    Where padding ``repeats`` values, rows below a tensor that is to be read are its last row again.

    A segment per cycle, and a cycle between jobs.
    """

    job: stream.Interface
    o: stream.Interface

    def __init__(self, config: CduConfig, channel: Channel) -> None:
        self.value_bytes = config.dtype.bits // 8
        self.repeats = config.has_ranges and channel is Channel.COMPRESS
        super().__init__({"job": In(stream.Signature(TensorJob())), "o": Out(stream.Signature(Segment()))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        job, counts, segment = self.job.payload, self.job.payload["counts"], self.o.payload
        place = exact_log2(self.value_bytes)
        active = Signal()
        here: Any = Signal(Cursor())
        strip: Any = Signal(Cursor())  # the first row of the strip
        row = Signal(range(BLOCK_SIDE))  # of the strip
        beat = Signal(COUNT_BITS)  # of the row
        repeats = job["repeats"] if self.repeats else Const(0)
        ahead = self._next(m, here, job, repeats)

        # A row of a tile: what of it is there, and up to whole blocks padding
        beats = Signal(range(TILE_BLOCKS + 1))
        width = Signal(VALUES_BITS)
        values = Signal(range(TILE_COLUMNS + 1))
        last_tile = Signal()
        m.d.comb += [
            width.eq(job["w"] - (beat << exact_log2(LANES))),
            last_tile.eq(counts["row_beats"] - beat <= TILE_BLOCKS),
            beats.eq(Mux(last_tile, counts["row_beats"] - beat, TILE_BLOCKS)),
            values.eq(Mux((here["left"] == 0) & ~repeats, 0, Mux(width < TILE_COLUMNS, width, TILE_COLUMNS))),
        ]
        # A row of the tensor: padding where a row of the matrix ends, and at the end
        ends = here["left"] == 1
        fills = Signal()
        m.d.comb += fills.eq(Mux(job["flat"], ends, here["h"] == 1))
        row_pad = Mux(fills, counts["row_pad"], 0) + Mux(ends, counts["end_pad"] << exact_log2(LANES), 0)

        m.d.comb += [
            self.o.valid.eq(active),
            segment["address"].eq(here["row"] + (beat << exact_log2(LANES) + place)),
            segment["bytes"].eq(Mux(job["in_tiles"], values, job["w"]) << place),
            segment["pad"].eq(Mux(job["in_tiles"], (beats << exact_log2(LANES)) - values, row_pad) << place),
            segment["repeats"].eq(repeats),
            segment["last"].eq(Mux(job["in_tiles"], (row == BLOCK_SIDE - 1) & last_tile & (ahead["left"] == 0), ends)),
            self.job.ready.eq(active & self.o.ready & segment["last"]),
        ]
        with m.If(~active):
            for cursor in (here, strip):
                m.d.sync += [
                    *(cursor[name].eq(job["tensor"]) for name in ("row", "channel", "sample")),
                    *(cursor[name].eq(job[name]) for name in "ch"),
                    cursor["left"].eq(counts["rows"]),
                ]
            m.d.sync += [active.eq(self.job.valid), row.eq(0), beat.eq(0)]
        with m.Elif(self.o.ready):
            m.d.sync += active.eq(~segment["last"])
            with m.If(~job["in_tiles"]):
                m.d.sync += here.eq(ahead)
            with m.Elif(row != BLOCK_SIDE - 1):
                m.d.sync += [here.eq(ahead), row.eq(row + 1)]
            with m.Elif(~last_tile):
                m.d.sync += [here.eq(strip), row.eq(0), beat.eq(beat + TILE_BLOCKS)]
            with m.Else():
                m.d.sync += [here.eq(ahead), strip.eq(ahead), row.eq(0), beat.eq(0)]
        return m

    def _next(self, m: Module, here: Any, job: Any, repeats: Value) -> Any:
        """The row behind a row; behind the last one there is none, or that one again."""
        ahead: Any = Signal(Cursor())
        m.d.comb += ahead.eq(here)
        with m.If(here["left"] != 0):
            m.d.comb += ahead["left"].eq(here["left"] - 1)
        with m.If((here["left"] != 0) & ~(repeats & (here["left"] == 1))):
            with m.If(here["h"] != 1):
                m.d.comb += [ahead["h"].eq(here["h"] - 1), ahead["row"].eq(here["row"] + job["stride_h"])]
            with m.Elif(here["c"] != 1):
                channel = here["channel"] + job["stride_c"]
                m.d.comb += [ahead["h"].eq(job["h"]), ahead["c"].eq(here["c"] - 1)]
                m.d.comb += [ahead[name].eq(channel) for name in ("row", "channel")]
            with m.Else():
                sample = here["sample"] + job["stride_n"]
                m.d.comb += [ahead["h"].eq(job["h"]), ahead["c"].eq(job["c"])]
                m.d.comb += [ahead[name].eq(sample) for name in ("row", "channel", "sample")]
        return ahead
