"""Store of blocks of a variable-length code, written front to back and read once their length is known."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec import gmc
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE

from cdu.coding.gmc_words import CATEGORY_AT, Mark, slot_bytes, tag_of
from cdu.parts.stream_fifo import StreamFifo
from cdu.words import Slice

NIBBLE = 4
#: Number of blocks that can wait for the one that leaves.
_WAITING = 2


class BlockPart(data.StructLayout):
    """A slot of a block; ``ends`` marks the last one of the block, with its ``category`` of DC and ``tag``."""

    def __init__(self, size: int) -> None:
        super().__init__({"data": 8 * size, "ends": 1, "category": gmc.CATEGORY_BITS, "tag": Mark()})


class BlockStore(wiring.Component):
    """A ring of slots. The length of a block determines its head and the position of its body behind it.

    A block is written as if its body were long: 8 bits that are replaced by the head, 4 bits of category, the rest. The bits
    of a short block behind the head move 4 bits forward when it leaves. Zero bytes at its end are left out.

    Parameters
    ----------
    config
        ``slice_bytes``: the width of a slice.

    Ports
    -----
    i
        Stream of :class:`BlockPart`. The last ones of two blocks are at least 7 cycles apart, as 8 columns are between them.
    o
        Stream of :class:`~cdu.words.Slice`.

    Latency: 4 cycles from a block's last part to its first slice. One part and one slice per cycle.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self, config: CduConfig) -> None:
        self.slice_bytes, self.slot_bytes = config.slice_bytes, slot_bytes(config)
        self.slots = self.slice_bytes // self.slot_bytes  # of a slice: those of a row of the ring
        self.longest = -(-gmc.MAX_WRITTEN_BLOCK_BYTES // self.slot_bytes)
        self.rows = max(2, -(-self.longest // self.slots))
        super().__init__({"i": In(stream.Signature(BlockPart(self.slot_bytes))), "o": Out(stream.Signature(Slice(config)))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        last_nibble = Signal(range(2 * gmc.MAX_WRITTEN_BLOCK_BYTES))
        written = Signal(range(self.longest + 1))
        whole = data.StructLayout(
            {"last": last_nibble.shape(), "slots": written.shape(), "category": gmc.CATEGORY_BITS, "tag": Mark()}
        )
        m.submodules.waiting = waiting = StreamFifo(whole, _WAITING)
        used = Signal(range(self.rows + 1))
        ring = [
            [Signal(8 * self.slot_bytes, name=f"slot{r}_{b}", reset_less=True) for b in range(self.slots)]
            for r in range(self.rows)
        ]
        takes, begins_row = self._fill(m, ring, used, waiting.i.ready)
        self._measure(m, takes, last_nibble, written, waiting)
        self._empty(m, ring, waiting, used, takes & begins_row)
        return m

    def _fill(self, m: Module, ring: list[list[Signal]], used: Value, free: Value) -> tuple[Value, Value]:
        """Write a part into its slot; return whether one is taken, and whether it begins a row of the ring."""
        part: Any = self.i.payload
        row = Signal(range(self.rows))
        bank = Signal(range(self.slots))
        begins_row = bank == 0
        takes = Signal()
        m.d.comb += [
            self.i.ready.eq(free & (~begins_row | (used != self.rows))),
            takes.eq(self.i.valid & self.i.ready),
        ]
        for r, slots in enumerate(ring):
            for b, slot in enumerate(slots):
                with m.If(takes & (row == r) & (bank == b)):
                    m.d.sync += slot.eq(part["data"])
        closes_row = part["ends"] | (bank == self.slots - 1)
        with m.If(takes):
            m.d.sync += bank.eq(Mux(closes_row, 0, bank + 1))
            with m.If(closes_row):
                m.d.sync += row.eq(Mux(row == self.rows - 1, 0, row + 1))
        return takes, begins_row

    def _measure(self, m: Module, takes: Value, last_nibble: Signal, written: Signal, waiting: StreamFifo) -> None:
        """Find the last nibble of a block that is not zero and its slots, one cycle behind its parts; the block then waits."""
        part: Any = self.i.payload
        nibbles = 2 * self.slot_bytes
        looks = Signal()
        ends = Signal()
        present = Signal(nibbles, reset_less=True)
        category = Signal(gmc.CATEGORY_BITS, reset_less=True)
        tag = Signal(Mark(), reset_less=True)
        before = Signal.like(last_nibble, init=CATEGORY_AT // NIBBLE)
        first = Signal.like(last_nibble)  # nibble of the part
        m.d.sync += looks.eq(takes)
        with m.If(takes):
            m.d.sync += [
                present.eq(Cat(part["data"].word_select(place, NIBBLE).any() for place in range(nibbles))),
                ends.eq(part["ends"]),
                category.eq(part["category"]),
                tag.eq(part["tag"]),
            ]
        m.d.comb += last_nibble.eq(before)
        for place in range(nibbles):
            with m.If(present[place]):
                m.d.comb += last_nibble.eq(first + place)
        with m.If(looks):
            m.d.sync += [
                before.eq(Mux(ends, before.init, last_nibble)),
                first.eq(Mux(ends, 0, first + nibbles)),
                written.eq(Mux(ends, 0, written + 1)),
            ]
        known: Any = waiting.i.payload
        m.d.comb += [
            waiting.i.valid.eq(looks & ends),
            known["last"].eq(last_nibble),
            known["slots"].eq(written + 1),
            known["category"].eq(category),
            known["tag"].eq(tag),
        ]

    def _empty(self, m: Module, ring: list[list[Signal]], waiting: StreamFifo, used: Signal, begins_row: Value) -> None:
        """Give the slices of the blocks that wait, a row of the ring per slice, and count the rows in use."""
        next_one: Any = waiting.o.payload
        read = Signal(range(self.rows))
        left = Signal(range(gmc.MAX_WRITTEN_BLOCK_BYTES + 1))
        slots_left = Signal.like(next_one["slots"])
        busy, begins, short = (Signal(name=name) for name in ("busy", "begins", "short"))
        head = Signal(8)
        leaving: Any = Signal(Mark())
        left_with: Any = Signal(Mark())  # the tag of o
        free, leaves, frees, final, over, turn = (
            Signal(name=name) for name in ("free", "leaves", "frees", "final", "over", "turn")
        )
        m.d.comb += [
            free.eq(~self.o.valid | self.o.ready),
            final.eq(left <= self.slice_bytes),
            # Slots behind the last byte go without a slice; slices behind the last slot are zeros.
            leaves.eq(busy & (free | (left == 0))),
            frees.eq(leaves & (slots_left != 0)),
            over.eq(final & (slots_left <= self.slots)),
            turn.eq(~busy | (leaves & over)),
            waiting.o.ready.eq(turn),
        ]
        with m.If(leaves):
            m.d.sync += [
                left.eq(Mux(final, 0, left - self.slice_bytes)),
                slots_left.eq(Mux(slots_left <= self.slots, 0, slots_left - self.slots)),
                begins.eq(0),
            ]
        with m.If(frees):
            m.d.sync += read.eq(Mux(read == self.rows - 1, 0, read + 1))
        is_short, amount = self._amount(m, next_one)
        with m.If(turn):
            m.d.sync += [
                busy.eq(waiting.o.valid),
                begins.eq(1),
                short.eq(is_short),
                left.eq(amount),
                slots_left.eq(next_one["slots"]),
                leaving.eq(next_one["tag"]),
                head.eq(
                    Mux(
                        is_short,
                        Cat(next_one["category"][:3], (amount - 1)[:5]),
                        (amount + (gmc.LONG_HEAD - gmc.SHORT_BYTES - 2))[:8],
                    )
                ),
            ]
        m.d.sync += used.eq(used + begins_row - frees)
        bits = self._bits(m, ring, read, short, slots_left)
        out: Any = self.o.payload
        m.d.comb += [out["rows"].eq(BLOCK_SIDE), *tag_of(out["tag"], left_with)]
        with m.If(free):
            m.d.sync += [
                self.o.valid.eq(busy & (left != 0)),
                out["data"].eq(Cat(Mux(begins, head, bits[:8]), bits[8:])),
                out["ends"].eq(final),
                out["count"].eq(Mux(final, left, self.slice_bytes)),
                left_with.eq(leaving),
            ]

    def _amount(self, m: Module, block: Any) -> tuple[Value, Value]:
        """Return whether a block is short, and its bytes with those of its head."""
        is_short = Signal()
        up_to_last = Signal(range(gmc.MAX_WRITTEN_BLOCK_BYTES + 1))
        amount = Signal.like(up_to_last)
        m.d.comb += [
            is_short.eq((block["last"] <= 2 * (1 + gmc.SHORT_BYTES)) & ~block["category"][-1]),
            up_to_last.eq((block["last"] + is_short) >> 1),
        ]
        with m.If(is_short):
            m.d.comb += amount.eq(up_to_last)
        with m.Else():
            longer = up_to_last > gmc.SHORT_BYTES
            m.d.comb += amount.eq(Mux(longer, up_to_last + 1, gmc.SHORT_BYTES + 2))
        return is_short, amount

    def _bits(self, m: Module, ring: list[list[Signal]], row: Value, short: Value, slots_left: Value) -> Value:
        """Return the bits of a slice: a row; for a short block from its second nibble to the first one of the next row."""
        behind = Signal(NIBBLE)
        m.d.comb += behind.eq(Array(ring[(r + 1) % self.rows][0][:NIBBLE] for r in range(self.rows))[row])
        slots = []
        for number in range(self.slots):
            slot = Signal(8 * self.slot_bytes, name=f"read{number}")
            written = Array(slots[number] for slots in ring)[row]
            m.d.comb += slot.eq(written & (slots_left > number).replicate(len(slot)))
            slots.append(slot)
        following = behind & (slots_left > self.slots).replicate(NIBBLE)
        present = Cat(*slots)
        return Mux(short, Cat(present[NIBBLE:], following), present)
