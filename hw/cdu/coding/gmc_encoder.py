"""Columns of quantised coefficients to blocks of GMC (docs/reference/bitstream.md, section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec import gmc
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, LANES, VALUE_BITS

from cdu.coding.gmc_store import BlockStore
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
    mark_of,
)
from cdu.coding.zvc import popcount
from cdu.parts.bit_shift import raised
from cdu.parts.streams import registered
from cdu.words import BlockRow, Slice

_MAGNITUDE_BITS = VALUE_BITS - 1


class Bits(data.StructLayout):
    """``length`` bits, zeros behind them."""

    def __init__(self, most: int) -> None:
        super().__init__({"bits": most, "length": range(most + 1)})


class GmcEncoder(wiring.Component):
    """Codes one block after the other, a column per cycle.

    Parameters
    ----------
    config
        ``slice_bytes``: the width of a slice.

    Ports
    -----
    i
        Stream of :class:`~cdu.words.BlockRow`, the 8 columns of a block.
    o
        Stream of :class:`~cdu.words.Slice`.

    Latency 9 cycles from the last column of a block to its first slice. A column per cycle, as long as the slices of a block
    leave in time: the longest blocks, one after the other, take 12 cycles each in place of 8.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self, config: CduConfig) -> None:
        self.config = config
        super().__init__({"i": In(stream.Signature(BlockRow())), "o": Out(stream.Signature(Slice(config)))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.store = store = BlockStore(self.config)
        wiring.connect(m, store.o, wiring.flipped(self.o))
        moves = [Signal(name=f"moves{stage}") for stage in range(3)]
        valid, first, ends = (Signal(3, name=name) for name in ("valid", "first", "ends"))

        # 1: classes and fields
        row: Any = self.i.payload
        number = Signal(range(BLOCK_SIDE))
        tag: Any = Signal(Mark(), reset_less=True)
        begins = number == 0
        m.d.comb += self.i.ready.eq(moves[0])
        with m.If(self.i.valid & moves[0]):
            m.d.sync += number.eq(number + 1)
            with m.If(begins):
                m.d.sync += mark_of(tag, row["tag"])
        values = [value.as_unsigned() for value in row["values"]]
        dc = registered(m, moves[0], _signed_magnitude(values[0]), "dc")
        values[0] = Mux(begins, 0, values[0])
        groups = []
        for name, place in zip("ab", range(0, LANES, gmc.GROUP_VALUES), strict=True):
            parts = self._classified(m, values[place : place + gmc.GROUP_VALUES], f"{name}_")
            groups.append([registered(m, moves[0], part, f"{name}_{what}1") for what, part in parts.items()])

        # 2: masks and fields, side by side
        masks = [self._mask(m, group[0], group[1], f"{name}_mask") for name, group in zip("ab", groups, strict=True)]
        fields = [
            self._fields(m, group[0], group[1], group[2], f"{name}_fields") for name, group in zip("ab", groups, strict=True)
        ]
        masks2 = _kept(m, moves[1], _joined(m, masks, "masks"), "masks2")
        fields2 = _kept(m, moves[1], _joined(m, fields, "fields"), "fields2")

        # 3: between them the classes of the next column, which wait for it; their code words depend on the column before it
        classes = [group[0] for group in groups]
        before = [registered(m, moves[1] & valid[0], one, f"{name}_before") for name, one in zip("ab", classes, strict=True)]
        symbols = self._symbols(m, classes, before, first[0])
        dc_bits = self._dc(m, dc)
        starts = moves[1] & valid[0] & first[0]
        begin = _kept(m, starts, _joined(m, [dc_bits, symbols], "begin"), "begin2")
        category = registered(m, starts, dc_bits["length"], "category2")
        following: Any = Signal.like(symbols)
        with m.If(~ends[1]):
            m.d.comb += following.eq(symbols)
        column = _kept(m, moves[2], _joined(m, [masks2, following, fields2], "column", COLUMN_BITS), "column3")
        complete = valid[1] & (ends[1] | valid[0])

        # 4: into slots
        accepts = self._slots(m, store, valid[2], column, first[2], ends[2], tag, begin, category)
        m.d.comb += [
            moves[2].eq(~valid[2] | accepts),
            moves[1].eq(~valid[1] | (complete & moves[2])),
            moves[0].eq(~valid[0] | moves[1]),
        ]
        for stage, is_valid in enumerate([self.i.valid, valid[0], complete]):
            with m.If(moves[stage]):
                m.d.sync += [
                    valid[stage].eq(is_valid),
                    first[stage].eq(first[stage - 1] if stage else begins),
                    ends[stage].eq(ends[stage - 1] if stage else row["ends"]),
                ]
        return m

    def _dc(self, m: Module, dc: Value) -> Any:
        """The sign of DC and the low bits of its magnitude; their number is its category."""
        found: Any = Signal(Bits(gmc.MAX_CATEGORY), name="dc_bits")
        for place in range(VALUE_BITS):
            with m.If(dc[1 + place]):
                m.d.comb += [found["bits"].eq(dc[: 1 + place]), found["length"].eq(place + 1)]
        return found

    def _classified(self, m: Module, values: Sequence[Value], name: str) -> dict[str, Value]:
        """Class, mask and fields of 8 bits of a group: sign and magnitude less one, or in the raw class bytes."""
        mask, group_class = Signal(len(values), name=f"{name}mask"), Signal(range(CLASSES), name=f"{name}class")
        magnitudes = []
        for place, value in enumerate(values):
            magnitude = Signal(_MAGNITUDE_BITS, name=f"{name}magnitude{place}")
            m.d.comb += [mask[place].eq(value.any()), magnitude.eq(Mux(value[-1], ~value, value - 1))]
            magnitudes.append(magnitude)
        any_of = reduce(or_, (part & mask[place].replicate(_MAGNITUDE_BITS) for place, part in enumerate(magnitudes)))
        with m.If(mask.any()):
            m.d.comb += group_class.eq(1)
        for place in range(_MAGNITUDE_BITS):
            with m.If(any_of[place]):
                m.d.comb += group_class.eq(min(place + 2, gmc.RAW_CLASS))
        raw = group_class == gmc.RAW_CLASS
        fields = [Mux(raw, value, Cat(value[-1], part)) for value, part in zip(values, magnitudes, strict=True)]
        return {"class": group_class, "mask": mask | raw.replicate(len(values)), "fields": Cat(*fields)}

    def _symbols(self, m: Module, classes: Sequence[Value], before: Sequence[Value], first: Value) -> Any:
        """The code words of the two classes of a column."""
        (a, b), (a_before, b_before) = classes, before
        symbol_a = Mux(a == 0, Mux(b == 0, gmc.A_BOTH_ZERO, gmc.A_ZERO), a + 1)
        context_a = Mux(first, gmc.A_FIRST, Mux((a_before == 0) & (b_before != 0), gmc.A_AFTER_ZERO, context(a_before)))
        context_b = Mux(a == 0, gmc.B_BESIDE_ZERO, Mux(first, gmc.B_FIRST, context(b_before)))
        word_a = _word(m, gmc.A_CODES, context_a, symbol_a, A_BITS, "a_word")
        word_b = _word(m, gmc.B_CODES, context_b, b, B_BITS, "b_word", (a != 0) | (b != 0))
        return _joined(m, [word_a, word_b], "symbols")

    def _mask(self, m: Module, group_class: Value, mask: Value, name: str) -> Any:
        """The code word of the mask of a group."""
        rows = Mux(group_class > gmc.LAST_MASK_CLASS, gmc.LAST_MASK_CLASS, group_class)
        tables = [(), *(("", *words) for words in gmc.MASK_CODES)]
        return _word(m, tables, rows[:3], mask, MASK_BITS, name, group_class != gmc.RAW_CLASS)

    def _fields(self, m: Module, group_class: Value, mask: Value, fields: Value, name: str) -> Any:
        """The fields of the coefficients that are not zero, side by side."""
        size = gmc.GROUP_VALUES
        ranks = [Const(0) if not place else popcount(mask[:place]) for place in range(size)]
        chosen = []
        for rank in range(size):
            one = Signal(VALUE_BITS, name=f"{name}{rank}")
            candidates = (
                fields.word_select(place, VALUE_BITS) & (mask[place] & (ranks[place] == rank)).replicate(VALUE_BITS)
                for place in range(rank, size)
            )
            m.d.comb += one.eq(reduce(or_, candidates))
            chosen.append(one)
        found: Any = Signal(Bits(FIELDS_BITS), name=name)
        with m.Switch(group_class):
            for number in range(1, CLASSES):
                with m.Case(number):
                    bits = field_bits(number)
                    m.d.comb += found["bits"].eq(Cat(*(one[:bits] for one in chosen)))
                    m.d.comb += found["length"].eq(popcount(mask) * bits)
        return found

    def _slots(
        self,
        m: Module,
        store: BlockStore,
        valid: Value,
        column: Any,
        first: Value,
        ends: Value,
        tag: Value,
        begin: Any,
        category: Value,
    ) -> Value:
        """Columns one behind the other, cut into slots; whether the present one is taken.

        What is kept is less than a slot, but when it ``waits`` to leave: the end of a block, or the beginning of one whose
        first column fills a slot just when the end of the block before leaves.
        """
        size, most = 8 * store.slot_bytes, len(column["bits"])
        most_kept = BODY_AT + len(begin["bits"]) + most
        kept = Signal(max(size, most_kept), reset_less=True)
        place = Signal(range(most_kept + 1), reset_less=True)
        waits = Signal()
        whole = Signal(reset_less=True)  # it is the end of a block
        kept_category = Signal(gmc.CATEGORY_BITS, reset_less=True)
        kept_tag = Signal(Mark(), reset_less=True)
        base = Signal(size)
        at = Signal(range(size))
        with m.If(first):
            m.d.comb += [base.eq(Cat(Const(0, CATEGORY_AT), category, begin["bits"])), at.eq(BODY_AT + begin["length"])]
        with m.Elif(waits):
            m.d.comb += [base.eq(kept[size:]), at.eq(place - size)]
        with m.Else():
            m.d.comb += [base.eq(kept), at.eq(place)]
        both = Signal(size + most)
        total = Signal(range(size + most))
        m.d.comb += [both.eq(base | raised(m, column["bits"], at, len(both), "moved")), total.eq(at + column["length"])]
        over, exactly, accepts = (Signal(name=name) for name in ("over", "exactly", "accepts"))
        part: Any = Signal.like(store.i.payload, name="part")
        m.d.comb += [
            store.i.payload.eq(part),
            over.eq(total >= size),
            exactly.eq(total == size),
            accepts.eq(valid & ~(waits & over & ~whole) & (store.i.ready | ~(waits | over))),
            store.i.valid.eq(waits | (valid & over)),
            part["data"].eq(Mux(waits, kept[:size], both[:size])),
            part["ends"].eq(Mux(waits, whole, ends & exactly)),
            part["category"].eq(Mux(~waits & first, category, kept_category)),
            part["tag"].eq(Mux(~waits & first, tag, kept_tag)),
        ]
        with m.If(accepts):
            leaves = over & ~waits
            m.d.sync += [
                kept.eq(Mux(leaves, both[size:], both)),
                place.eq(Mux(leaves, total - size, total)),
                waits.eq(Mux(leaves, ends & ~exactly, ends | over)),
                whole.eq(ends),
            ]
            with m.If(first):
                m.d.sync += [kept_category.eq(category), kept_tag.eq(tag)]
        with m.Elif(waits & store.i.ready):
            m.d.sync += [waits.eq(0), kept.eq(kept[size:]), place.eq(place - size)]
        return accepts


def _signed_magnitude(value: Value) -> Value:
    """Sign, then magnitude."""
    sign = value[-1]
    return Cat(sign, ((value ^ sign.replicate(VALUE_BITS)) + sign)[:VALUE_BITS])


def _kept(m: Module, enable: Value, value: Value, name: str) -> Any:
    """A register of a stage."""
    register = Signal.like(value, name=name, reset_less=True)
    with m.If(enable):
        m.d.sync += register.eq(value)
    return register


def _word(
    m: Module, tables: Sequence[Sequence[str]], row: Value, column: Value, most: int, name: str, there: Value | int = 1
) -> Any:
    """``tables[row][column]`` as :class:`Bits`, nothing unless it is ``there``."""
    word: Any = Signal(Bits(most), name=name)
    with m.If(there), m.Switch(row):
        for r, words in enumerate(tables):
            with m.Case(r), m.Switch(column):
                for c, text in enumerate(words):
                    if text:
                        with m.Case(c):
                            m.d.comb += [word["bits"].eq(int(text[::-1], 2)), word["length"].eq(len(text))]
    return word


def _joined(m: Module, parts: Sequence[Any], name: str, most: int | None = None) -> Any:
    """Parts one behind the other, together no more than ``most`` bits."""
    whole: Any = Signal(Bits(most or sum(len(part["bits"]) for part in parts)), name=name)
    bits, length = parts[0]["bits"], parts[0]["length"]
    for number, part in enumerate(parts[1:]):
        reach = min(sum(len(before["bits"]) for before in parts[: number + 2]), len(whole["bits"]))
        bits = bits | raised(m, part["bits"], length, reach, f"{name}{number}_")
        length = length + part["length"]
    m.d.comb += [whole["bits"].eq(bits), whole["length"].eq(length)]
    return whole
