"""Decoder of GMC blocks to columns of quantised coefficients, the inverse of :class:`~cdu.coding.gmc_encoder.GmcEncoder`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec import gmc
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, VALUE_BITS
from cdu_spec.sfpr import VALUE_MAX, VALUE_MIN

from cdu.coding.gmc_words import (
    A_BITS,
    B_BITS,
    BODY_AT,
    CATEGORY_AT,
    CLASSES,
    COLUMN_BITS,
    FIELDS_BITS,
    MASK_BITS,
    Mark,
    context,
    field_bits,
    tag_of,
)
from cdu.coding.slice_cutter import SliceCutter
from cdu.coding.zvc import popcount
from cdu.parts.bit_shift import dropped, raised
from cdu.parts.stream_fifo import StreamFifo
from cdu.parts.streams import registered
from cdu.words import BlockRow, Slice

#: Bits before the fields of a column.
PREFIX_BITS = 2 * MASK_BITS + A_BITS + B_BITS
#: Bits with which a column can be decoded and the next one begun.
_ENOUGH = COLUMN_BITS + PREFIX_BITS

#: Rows of the tables of A and of B.
_Rows = tuple[set[int], set[int]]


class _Classes(data.StructLayout):
    """Classes of both groups of a column, and the length in bits of their code words."""

    def __init__(self) -> None:
        super().__init__({"a": range(CLASSES), "b": range(CLASSES), "length": range(A_BITS + B_BITS + 1)})


class _Prefix(data.StructLayout):
    """Decoded prefix of a column: both masks, classes of the next column, and bits of the prefix and of the fields."""

    def __init__(self) -> None:
        super().__init__(
            {
                "mask_a": gmc.GROUP_VALUES,
                "mask_b": gmc.GROUP_VALUES,
                "next": _Classes(),
                "length": range(PREFIX_BITS + 1),
                "fields_a": range(FIELDS_BITS + 1),
                "fields_b": range(FIELDS_BITS + 1),
            }
        )


class _FirstSlice:
    """The first slice of the next block, of which head, DC and the classes of the first column are parsed in turn."""

    def __init__(self, part_bits: int) -> None:
        self.phase = Signal(range(4))
        self.free, self.waits = self.phase == 0, self.phase == 3
        self.bits = Signal(part_bits, name="first_bits", reset_less=True)
        self.ends = Signal(name="first_ends", reset_less=True)
        self.tag = Signal(Mark(), name="first_tag", reset_less=True)
        self.category = Signal(gmc.CATEGORY_BITS, reset_less=True)
        self.dc = Signal(VALUE_BITS, reset_less=True)
        self.fill = Signal(range(part_bits + 1), name="first_fill", reset_less=True)
        self.classes: Any = Signal(_Classes(), name="first_classes", reset_less=True)


class _Window:
    """The window onto the bits of a block, and the number of the column at its front."""

    def __init__(self, part_bits: int) -> None:
        self.more = Signal()  # slices of the block are to come
        self.turn = Signal()
        self.fits = Signal()
        self.bits = Signal(_ENOUGH + part_bits, name="window", reset_less=True)
        self.fill = Signal(range(_ENOUGH + part_bits + 1), reset_less=True)
        self.present: Any = Signal(_Classes(), reset_less=True)
        self.number = Signal(range(BLOCK_SIDE))
        self.busy = Signal()
        self.go = Signal()
        self.final = self.number == BLOCK_SIDE - 1
        self.filled = Signal.like(self.bits)
        self.dc = Signal(VALUE_BITS, name="block_dc", reset_less=True)
        self.tag = Signal(Mark(), reset_less=True)


class GmcDecoder(wiring.Component):
    """Decode GMC blocks one after the other, one column of 8 coefficients per cycle.

    The first slice of a block is parsed while the block before is decoded: head, DC and the classes of the first column take a
    cycle each. From then on a window holds the bits that come next, enough of them to decode any column as a whole.

    Parameters
    ----------
    config
        ``slice_bytes``: the width of a slice. ``cdus``: with several, slices of a whole block wait in a queue.

    Ports
    -----
    i
        Stream of :class:`~cdu.words.Slice`.
    o
        Stream of :class:`~cdu.words.BlockRow`, the 8 columns of a block.

    Latency: 7 cycles from the first slice of a block to its first column, 8 with a queue. One column per cycle as long as
    slices arrive in time: of a sequence of blocks of the greatest length each takes 12 cycles instead of 8. Any bytes are
    accepted; bits beyond the end of a block are read as zeros.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self, config: CduConfig) -> None:
        self.config = config
        #: Slices that can wait; with the one being parsed they are the longest block, so that it never blocks the splitter's
        #: other lanes.
        self.ahead = -(-gmc.MAX_WRITTEN_BLOCK_BYTES // config.slice_bytes) - 1 if config.cdus > 1 else 0
        super().__init__({"i": In(stream.Signature(Slice(config))), "o": Out(stream.Signature(BlockRow()))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.cutter = cutter = SliceCutter(self.config)
        arrives: Any = wiring.flipped(self.i)
        if self.ahead:
            m.submodules.queue = queue = StreamFifo(self.i.payload.shape(), self.ahead)
            wiring.connect(m, arrives, queue.i)
            arrives = queue.o
        wiring.connect(m, arrives, cutter.i)
        parts = cutter.o
        part_bits = len(parts.payload["data"])
        first, window = _FirstSlice(part_bits), _Window(part_bits)
        m.d.comb += parts.ready.eq(Mux(window.more, window.fits, first.free))
        takes = parts.valid & parts.ready
        advance = Signal()
        self._parse(m, first, window, parts.payload, takes)
        prefix = self._move(m, first, window, parts, takes, advance)
        self._give(m, window, prefix, advance)
        return m

    def _parse(self, m: Module, first: _FirstSlice, window: _Window, part: Any, takes: Value) -> None:
        """Parse the first slice of a block, whose head goes as it comes: DC, then the classes of the first column."""
        part_bits = len(first.bits)
        begin_rows: _Rows = ({gmc.A_FIRST}, {gmc.B_FIRST, gmc.B_BESIDE_ZERO})
        begin = first.bits[: A_BITS + B_BITS]
        classes = self._classes(m, begin, Const(gmc.A_FIRST, 3), Const(gmc.B_FIRST, 3), "first", begin_rows)
        drops = Signal(range(16))
        dc_found = _dc(m, first.bits, first.category)
        with m.If(first.phase == 1):
            m.d.comb += drops.eq(first.category)
            m.d.sync += first.dc.eq(dc_found)
        with m.Else():
            m.d.comb += drops.eq(classes["length"])
            m.d.sync += first.classes.eq(Mux(first.waits, first.classes.as_value(), classes.as_value()))
        moved = dropped(m, first.bits, drops, part_bits, "first_moved")
        with m.If(~first.free & ~first.waits):
            m.d.sync += [
                first.bits.eq(moved),
                first.fill.eq(first.fill - drops),
                first.phase.eq(first.phase + 1),
            ]
        with m.If(window.turn):
            m.d.sync += first.phase.eq(0)
        head, told = part["data"][:8], part["data"][CATEGORY_AT:BODY_AT]
        long = head >= gmc.LONG_HEAD
        with m.If(takes & ~window.more):
            m.d.sync += [
                first.bits.eq(Mux(long, part["data"][BODY_AT:], part["data"][CATEGORY_AT:])),
                first.fill.eq(part_bits - Mux(long, BODY_AT, CATEGORY_AT)),
                first.category.eq(Mux(long, Mux(told > gmc.MAX_CATEGORY, gmc.MAX_CATEGORY, told), head[:3])),
                first.ends.eq(part["ends"]),
                first.tag.eq(part["tag"]),
                first.phase.eq(1),
            ]

    def _move(
        self, m: Module, first: _FirstSlice, window: _Window, parts: stream.Interface, takes: Value, advance: Value
    ) -> Any:
        """Move the window on by a column, or to the next block, and return the prefix of the column at its front."""
        part: Any = parts.payload
        part_bits = len(first.bits)
        prefix = self._prefix(m, window.bits[:PREFIX_BITS], window.present, window.final)
        length = Signal(range(COLUMN_BITS + 1))
        fields_length = prefix["fields_a"] + prefix["fields_b"]
        joins = Signal()
        stays = Signal()
        lacks = Signal()
        m.d.comb += lacks.eq(window.fill < _ENOUGH)
        m.d.comb += [
            length.eq(prefix["length"] + fields_length),
            # The rest of a block behind its last column is dropped.
            window.fits.eq(~window.busy | (advance & lacks)),
            joins.eq(window.busy & window.more & takes),
            window.go.eq(window.busy & advance & (~window.more | ~lacks | parts.valid)),
            stays.eq(window.more & ~(takes & part["ends"])),
            window.turn.eq(first.waits & ~stays & (~window.busy | (window.go & window.final))),
            window.filled.eq(
                window.bits | raised(m, part["data"] & joins.replicate(part_bits), window.fill, len(window.bits), "raised")
            ),
        ]
        m.d.sync += window.more.eq(stays)
        left = dropped(m, window.filled, length, len(window.bits), "dropped")
        with m.If(window.go):
            m.d.sync += [
                window.bits.eq(left),
                window.fill.eq(window.fill + Mux(joins, part_bits, 0) - length),
                window.present.eq(prefix["next"]),
                window.number.eq(window.number + 1),
            ]
            with m.If(window.final):
                m.d.sync += window.busy.eq(0)
        with m.If(window.turn):
            m.d.sync += [
                window.bits.eq(first.bits),
                window.fill.eq(first.fill),
                window.present.eq(first.classes),
                window.more.eq(~first.ends),
                window.busy.eq(1),
                window.dc.eq(first.dc),
                window.tag.eq(first.tag),
            ]
        return prefix

    def _give(self, m: Module, window: _Window, prefix: Any, advance: Signal) -> None:
        """Give the column at the front of the window, three stages later."""
        # 3: align the fields; 4: separate the fields of B
        valid = Signal(2)
        notes: Any = Signal(data.StructLayout({"first": 1, "ends": 1, "tag": Mark()}))
        m.d.comb += [notes["first"].eq(window.number == 0), notes["ends"].eq(window.final), notes["tag"].eq(window.tag)]
        stages: list[list[Any]] = [[prefix["mask_a"], window.present["a"], prefix["mask_b"], window.present["b"], notes]]
        bits = registered(m, advance, window.filled[:COLUMN_BITS], "bits3")
        before, fields_a = (
            registered(m, advance, prefix["length"], "before3"),
            registered(m, advance, prefix["fields_a"], "fields_a3"),
        )
        for stage in (3, 4):
            stages.append([registered(m, advance, part, f"part{index}_{stage}") for index, part in enumerate(stages[-1])])
        fields = Signal(2 * FIELDS_BITS)
        m.d.comb += fields.eq(dropped(m, bits, before, 2 * FIELDS_BITS, "fields"))
        of_a = registered(m, advance, fields[:FIELDS_BITS], "of_a")
        of_b = registered(m, advance, dropped(m, fields, fields_a, FIELDS_BITS, "behind_a"), "of_b")

        # 5: values to their places in the column
        mask_a, class_a, mask_b, class_b, notes = stages[2]
        values = [*self._values(m, mask_a, class_a, of_a, "a"), *self._values(m, mask_b, class_b, of_b, "b")]
        # The DC coefficient of the block is held until the block's last column is in the window.
        values[0] = Mux(notes["first"], window.dc, values[0])
        out: Any = self.o.payload
        m.d.comb += advance.eq(~self.o.valid | self.o.ready)
        with m.If(advance):
            m.d.sync += [
                valid.eq(Cat(window.go, valid)[:2]),
                self.o.valid.eq(valid[1]),
                out["values"].as_value().eq(Cat(*values)),
                out["ends"].eq(notes["ends"]),
                *tag_of(out["tag"], notes["tag"]),
            ]

    def _prefix(self, m: Module, bits: Value, present: Any, final: Value) -> Any:
        """Decode the prefix of a column at every place where mask B and the classes can begin, and select by the lengths."""
        prefix: Any = Signal(_Prefix(), name="prefix")
        mask_a, length_a = self._mask(m, bits[:MASK_BITS], present["a"], "mask_a")
        places = range(MASK_BITS + 1)
        masks_b = [self._mask(m, bits[at:][:MASK_BITS], present["b"], f"mask_b{at}") for at in places]
        masks, lengths = zip(*masks_b, strict=True)
        mask_b, length_b = Array(masks)[length_a], Array(lengths)[length_a]
        masks_length = Signal(range(2 * MASK_BITS + 1))
        m.d.comb += masks_length.eq(length_a + length_b)
        alone = (present["a"] == 0) & (present["b"] != 0)
        context_a = Mux(alone, gmc.A_AFTER_ZERO, context(present["a"]))
        context_b = context(present["b"])
        found = Array(
            self._classes(m, bits[at:][: A_BITS + B_BITS], context_a, context_b, f"classes{at}", rows).as_value()
            for at, rows in enumerate(_rows_behind_masks())
        )[masks_length]
        with m.If(~final):
            m.d.comb += prefix["next"].as_value().eq(found)
        m.d.comb += [
            prefix["mask_a"].eq(mask_a),
            prefix["mask_b"].eq(mask_b),
            prefix["length"].eq(masks_length + prefix["next"]["length"]),
            prefix["fields_a"].eq(_fields_length(m, mask_a, present["a"], "fields_a")),
            prefix["fields_b"].eq(_fields_length(m, mask_b, present["b"], "fields_b")),
        ]
        return prefix

    def _mask(self, m: Module, bits: Value, group_class: Value, name: str) -> tuple[Value, Value]:
        """Return the mask whose code word begins with the first of ``bits``, and the length of the code word."""
        mask, length = Signal(gmc.GROUP_VALUES, name=name), Signal(range(MASK_BITS + 1), name=f"{name}_length")
        with m.Switch(group_class):
            for number in range(1, CLASSES):
                with m.Case(number):
                    if number == gmc.RAW_CLASS:
                        m.d.comb += mask.eq(~0)
                        continue
                    _decode(m, bits, _mask_words(number), lambda symbol, size: [mask.eq(symbol + 1), length.eq(size)])
        return mask, length

    def _classes(self, m: Module, bits: Value, context_a: Value, context_b: Value, name: str, rows: _Rows) -> Any:
        """Return the classes of the column whose code words begin at the start of ``bits``; only ``rows`` can occur."""
        rows_a, rows_b = rows
        found: Any = Signal(_Classes(), name=name)
        symbol, length_a = Signal(range(CLASSES + 1), name=f"{name}_symbol"), Signal(range(A_BITS + 1), name=f"{name}_length_a")
        with m.Switch(context_a):
            for row in sorted(rows_a):
                with m.Case(row):
                    _decode(m, bits[:A_BITS], gmc.A_CODES[row], lambda number, size: [symbol.eq(number), length_a.eq(size)])
        length_b = Signal(range(B_BITS + 1), name=f"{name}_length_b")
        behind = Array(bits[max(at, 1) :][:B_BITS] for at in range(A_BITS + 1))[length_a]
        following = Signal(B_BITS, name=f"{name}_following")
        m.d.comb += [following.eq(behind), found["length"].eq(length_a + length_b)]
        with m.If(symbol > gmc.A_ZERO):
            m.d.comb += found["a"].eq(symbol - 1)
        with m.If(symbol != gmc.A_BOTH_ZERO), m.Switch(Mux(symbol == gmc.A_ZERO, gmc.B_BESIDE_ZERO, context_b)):
            for row in sorted(rows_b):
                with m.Case(row):
                    _decode(m, following, gmc.B_CODES[row], lambda number, size: [found["b"].eq(number), length_b.eq(size)])
        return found

    def _values(self, m: Module, mask: Value, group_class: Value, bits: Value, name: str) -> list[Value]:
        """Return the coefficients of a group."""
        packed = Signal(FIELDS_BITS, name=f"{name}_packed")  # of 8 bits each, still without their places
        with m.Switch(group_class):
            for number in range(1, CLASSES):
                with m.Case(number):
                    fields = [bits.word_select(place, field_bits(number)) for place in range(gmc.GROUP_VALUES)]
                    m.d.comb += packed.eq(Cat(*(_value(field, number) for field in fields)))
        values: list[Value] = []
        for lane, place in enumerate(_places(mask)):
            value = Signal(VALUE_BITS, name=f"{name}_value{lane}")
            choice = packed[: (lane + 1) * VALUE_BITS].word_select(place, VALUE_BITS)
            m.d.comb += value.eq(choice & mask[lane].replicate(VALUE_BITS))
            values.append(value)
        return values


def _rows_behind_masks() -> list[_Rows]:
    """Return, for each total length of a column's two masks, the rows of tables A and B that its classes can need."""
    lengths = {number: {len(word) for word in _mask_words(number)} or {0} for number in range(CLASSES)}
    rows: list[_Rows] = [(set(), {gmc.B_BESIDE_ZERO}) for _ in range(2 * MASK_BITS + 1)]
    for a, b in product(lengths, repeat=2):
        for at in {one + other for one in lengths[a] for other in lengths[b]}:
            rows_a, rows_b = rows[at]
            rows_a.add(gmc.A_AFTER_ZERO if b and not a else min(a, gmc.LAST_CLASS_CONTEXT))
            rows_b.add(min(b, gmc.LAST_CLASS_CONTEXT))
    return rows


def _mask_words(group_class: int) -> Sequence[str]:
    """Return the code words of the masks of a class; empty if the class has a single mask."""
    return gmc.MASK_CODES[min(group_class, gmc.LAST_MASK_CLASS) - 1] if group_class in gmc.CODED_CLASSES else ()


def _places(mask: Value) -> Iterable[Value]:
    return [Const(0) if not lane else popcount(mask[:lane]) for lane in range(len(mask))]


def _value(field: Value, group_class: int) -> Value:
    """Return the coefficient (a byte) of a field: sign and magnitude less one, or the byte itself."""
    if group_class == gmc.RAW_CLASS:
        return field
    sign, low = field[0], field[1:]
    return Mux(sign, ~Cat(low, Const(0, VALUE_BITS - len(low))), low + 1)[:VALUE_BITS]


def _dc(m: Module, bits: Value, category: Value) -> Value:
    """Return DC from its sign and the low bits of its magnitude, saturated to 8 bits."""
    found = Signal(VALUE_BITS, name="found_dc")
    with m.Switch(category):
        for size in range(1, gmc.MAX_CATEGORY + 1):
            with m.Case(size):
                if size == VALUE_BITS:
                    m.d.comb += found.eq(Mux(bits[0], VALUE_MIN, VALUE_MAX))
                    continue
                magnitude = Cat(bits[1:size], Const(1, 1), Const(0, VALUE_BITS - size))
                m.d.comb += found.eq(Mux(bits[0], -magnitude, magnitude))
    return found


def _fields_length(m: Module, mask: Value, group_class: Value, name: str) -> Value:
    """Return the number of bits of the fields of a group."""
    length = Signal(range(FIELDS_BITS + 1), name=f"{name}_length")
    with m.Switch(group_class):
        for number in range(1, CLASSES):
            with m.Case(number):
                m.d.comb += length.eq(popcount(mask) * field_bits(number))
    return length


def _decode(m: Module, bits: Value, words: Sequence[str], found: Any) -> None:
    """Add statements for the code word of ``words`` with which ``bits`` begin."""
    with m.Switch(bits):
        for symbol, word in enumerate(words):
            with m.Case(word[::-1].rjust(len(bits), "-")):
                m.d.comb += found(symbol, len(word))
