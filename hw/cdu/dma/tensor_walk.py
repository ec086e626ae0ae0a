"""The order in which a unit takes and gives the values of a tensor, as segments of memory."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2
from cdu_spec.config import CduConfig
from cdu_spec.dma import MEMORY_ADDRESS_BITS
from cdu_spec.geometry import BLOCK_SIDE, LANES, TILE_BLOCKS, TILE_COLUMNS
from cdu_spec.register_types import COUNT_BITS, Channel

from cdu.dma.records import VALUES_BITS, TensorJob
from cdu.dma.segments import Segment
from cdu.parts.wide_sum import LateCarry, within

#: Numbers that say where a row of a tensor is: the addresses of it, its channel and its sample; how many channels of its sample
#: and rows of its channel there are from it on.
_ADDRESS = LateCarry(MEMORY_ADDRESS_BITS)
_PLACES: dict[str, Any] = {**dict.fromkeys(("row", "channel", "sample"), _ADDRESS), **dict.fromkeys("ch", VALUES_BITS)}


def _cursor(name: str) -> dict[str, Any]:
    return {part: Signal(shape, name=f"{name}_{part}") for part, shape in _PLACES.items()}


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
        here, strip, ahead = _cursor("here"), _cursor("strip"), _cursor("ahead")  # a row, its strip's first row, the next one
        left = Signal(VALUES_BITS)  # rows of the tensor from this one on
        strip_left = Signal(VALUES_BITS)  # those from the strip's first row on
        row = Signal(range(BLOCK_SIDE))  # of the strip
        beat = Signal(COUNT_BITS)  # of the row
        across = Signal(VALUES_BITS)  # values of the row from this beat on
        rest = Mux(left == 0, 0, left - 1)
        repeats = job["repeats"] if self.repeats else Const(0)
        self._next(m, here, ahead, job)

        # A row of a tile: what of it is there, and up to whole blocks padding
        beats = Signal(range(TILE_BLOCKS + 1))
        values = Signal(range(TILE_COLUMNS + 1))
        last_tile = Signal()
        m.d.comb += [
            last_tile.eq(within(across, Const(TILE_COLUMNS))),
            beats.eq(Mux(last_tile, (across[: len(values)] + LANES - 1) >> exact_log2(LANES), TILE_BLOCKS)),
            values.eq(Mux((left == 0) & ~repeats, 0, Mux(last_tile, across, TILE_COLUMNS))),
        ]
        # A row of the tensor: padding where a row of the matrix ends, and at the end
        ends = left == 1
        fills = Signal()
        m.d.comb += fills.eq(Mux(job["flat"], ends, here["h"] == 1))
        row_pad = Mux(fills, counts["row_pad"], 0) + Mux(ends, counts["end_pad"] << exact_log2(LANES), 0)

        last_row = row == BLOCK_SIDE - 1
        m.d.comb += [
            self.o.valid.eq(active),
            segment["address"].eq(_ADDRESS.value(here["row"], beat << exact_log2(LANES) + place)),
            segment["bytes"].eq(Mux(job["in_tiles"], values, job["w"]) << place),
            segment["pad"].eq(Mux(job["in_tiles"], (beats << exact_log2(LANES)) - values, row_pad) << place),
            segment["repeats"].eq(repeats),
            segment["last"].eq(Mux(job["in_tiles"], last_row & last_tile & ~left[1:].any(), ends)),
            self.job.ready.eq(active & self.o.ready & segment["last"]),
        ]
        with m.If(~active):
            for cursor, rows in ((here, left), (strip, strip_left)):
                m.d.sync += [
                    *(cursor[name].eq(_ADDRESS.of(job["tensor"])) for name in ("row", "channel", "sample")),
                    *(cursor[name].eq(job[name]) for name in "ch"),
                    rows.eq(counts["rows"]),
                ]
            m.d.sync += [active.eq(self.job.valid), row.eq(0), beat.eq(0), across.eq(job["w"])]
        with m.Elif(self.o.ready):
            m.d.sync += active.eq(~segment["last"])
            with m.If(job["in_tiles"] & last_row & ~last_tile):
                m.d.sync += [*(here[name].eq(strip[name]) for name in here), left.eq(strip_left), row.eq(0)]
                m.d.sync += [beat.eq(beat + TILE_BLOCKS), across.eq(across - TILE_COLUMNS)]
            with m.Else():
                m.d.sync += left.eq(rest)
                # Behind the last row there is none, or that one again.
                with m.If((left != 0) & ~(repeats & ends)):
                    m.d.sync += [here[name].eq(ahead[name]) for name in here]
                with m.If(job["in_tiles"]):
                    m.d.sync += row.eq(row + 1)
                    with m.If(last_row):  # the last tile, with rows behind it or as the end of the job
                        m.d.sync += [*(strip[name].eq(ahead[name]) for name in strip), strip_left.eq(rest)]
                        m.d.sync += [beat.eq(0), across.eq(job["w"])]
        return m

    def _next(self, m: Module, here: dict[str, Any], ahead: dict[str, Any], job: Any) -> None:
        """Set ``ahead`` to the row behind a row that is not the last one."""
        m.d.comb += [ahead[name].eq(here[name]) for name in here]
        with m.If(here["h"] != 1):
            m.d.comb += [ahead["h"].eq(here["h"] - 1), ahead["row"].eq(_ADDRESS.plus(here["row"], job["stride_h"]))]
        with m.Elif(here["c"] != 1):
            channel = _ADDRESS.plus(here["channel"], job["stride_c"])
            m.d.comb += [ahead["h"].eq(job["h"]), ahead["c"].eq(here["c"] - 1)]
            m.d.comb += [ahead[name].eq(channel) for name in ("row", "channel")]
        with m.Else():
            sample = _ADDRESS.plus(here["sample"], job["stride_n"])
            m.d.comb += [ahead["h"].eq(job["h"]), ahead["c"].eq(job["c"])]
            m.d.comb += [ahead[name].eq(sample) for name in ("row", "channel", "sample")]
