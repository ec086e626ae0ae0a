"""Register file generated from the tables in :mod:`cdu_spec.registers`: decoding, storage, read path."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from cdu_spec.register_types import BLOCK_BYTES, REGISTER_BITS, REGISTER_BYTES, Access, Register

#: An access to a block of registers. ``word`` (number of the register) and ``data`` are stable from one cycle before the
#: strobe ``write`` or ``read`` until ``read_data`` and ``error`` are taken, which are valid from the cycle after the strobe.
BlockPort = wiring.Signature(
    {
        "word": Out(range(BLOCK_BYTES // REGISTER_BYTES)),
        "write": Out(1),
        "read": Out(1),
        "data": Out(REGISTER_BITS),
        "read_data": In(REGISTER_BITS),
        "error": In(1),
    }
)


def layout(register: Register) -> data.FlexibleLayout:
    """Return the fields of a register as a layout."""
    return data.FlexibleLayout(REGISTER_BITS, {part.name: data.Field(part.width, part.low) for part in register.fields})


class RegisterFile(wiring.Component):
    """Register file of one block.

    Parameters
    ----------
    registers
        Table of the block.
    outside
        Names of RW registers that are stored elsewhere: this component treats them as a WO and a RO register in one.
    watched
        Names of registers that have a NAME_read port.
    guarded
        Names of registers that cannot be written while ``guard`` is high.

    Ports
    -----
    block
        :data:`BlockPort`, seen from the registers. ``error``: the register does not exist, is read-only or guarded, or does
        not take the value (:meth:`cdu_spec.register_types.Register.takes`); such a write has no effect.
    NAME
        In lower case, with the register's layout; an array if the register is one. RW: the stored value (output). RO and
        ``outside``: the value that reads return (input). WO: the value being written (output). W1C: the sticky bits (output).
    NAME_set
        W1C: bits to set now.
    NAME_write
        WO and ``outside``: a write takes place in this cycle, with ``data`` of the block port. One bit per element.
    NAME_read
        ``watched``: a read takes place in this cycle.
    guard, bad_value, bad_time
        Only with ``guarded``. A write in this cycle is refused because of its value, or because of ``guard``.
    """

    block: Any
    guard: Signal
    bad_value: Signal
    bad_time: Signal

    def __init__(
        self,
        registers: Sequence[Register],
        outside: Collection[str] = (),
        watched: Collection[str] = (),
        guarded: Collection[str] = (),
    ) -> None:
        self.registers, self._outside, self._watched = registers, frozenset(outside), frozenset(watched)
        self._guarded = frozenset(guarded)
        members: dict[str, wiring.Member] = {"block": In(BlockPort)}
        if guarded:
            members |= {"guard": In(1), "bad_value": Out(1), "bad_time": Out(1)}
        for register in registers:
            name, shape = register.name.lower(), layout(register)
            given = register.access is Access.RO or register.name in self._outside
            member = In(shape) if given else Out(shape)
            members[name] = member.array(register.count) if register.count > 1 else member
            if register.access is Access.W1C:
                members[f"{name}_set"] = In(shape)
            if register.access is Access.WO or register.name in self._outside:
                members[f"{name}_write"] = Out(register.count)
            if register.name in self._watched:
                members[f"{name}_read"] = Out(1)
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        block = self.block
        # The decoded address is registered: address and data are stable before the strobes come
        hits, readable, writable, guarded = [], [], [], []
        selected = {register.name: self._selected(register) for register in self.registers}
        unfit = [
            selected[entry.name].any() & refused
            for entry in self.registers
            if (refused := _unfit(entry, block.data)) is not None
        ]
        bad_value = Signal()
        bad_time = Signal()
        write = Signal()
        if unfit:
            m.d.sync += bad_value.eq(_any_of(unfit))
        m.d.comb += write.eq(block.write & ~bad_value & ~bad_time)
        for register in self.registers:
            name = register.name.lower()
            hit = Signal(register.count, name=f"{name}_hit")
            m.d.sync += hit.eq(selected[register.name])
            hits.append(hit.any())
            if register.name in self._guarded:
                guarded.append(hit.any())
            if register.access is not Access.RO:
                writable.append(hit.any())
            port = getattr(self, name)
            for index, bit in enumerate(hit):
                element = port[index] if register.count > 1 else port
                self._element(m, register, element, bit & write)
                if register.access is not Access.WO:
                    readable.append(_fields_of(register, element) & bit.replicate(REGISTER_BITS))
            if register.access is Access.WO or register.name in self._outside:
                m.d.comb += getattr(self, f"{name}_write").eq(hit & write.replicate(register.count))
            if register.name in self._watched:
                m.d.comb += getattr(self, f"{name}_read").eq(hit[0] & block.read)
        answer = Signal(REGISTER_BITS, reset_less=True)
        m.d.comb += block.read_data.eq(answer)
        with m.If(block.read):
            m.d.sync += [answer.eq(_any_of(readable)), block.error.eq(~_any_of(hits))]
        with m.If(block.write):
            m.d.sync += block.error.eq(~_any_of(writable) | bad_value | bad_time)
        if guarded:
            m.d.comb += [
                bad_time.eq(_any_of(guarded) & self.guard),
                self.bad_value.eq(block.write & bad_value),
                self.bad_time.eq(block.write & bad_time),
            ]
        return m

    def _selected(self, register: Register) -> Value:
        """Return a bit for each element of a register: whether it is addressed."""
        first = register.offset // REGISTER_BYTES
        return Cat(self.block.word == first + index for index in range(register.count))

    def _element(self, m: Module, register: Register, element: Any, write: Value) -> None:
        """Add the storage of one register."""
        if register.access is Access.WO:
            m.d.comb += element.eq(self.block.data)
        elif register.access is Access.W1C:
            fresh = getattr(self, f"{register.name.lower()}_set")
            for part in register.fields:
                sticky = Signal(part.width, name=f"{register.name.lower()}_{part.name}_sticky")
                cleared = self.block.data[part.low : part.low + part.width] & write.replicate(part.width)
                m.d.sync += sticky.eq((sticky & ~cleared) | fresh[part.name])
                m.d.comb += element[part.name].eq(sticky)
        elif register.access is Access.RW and register.name not in self._outside:
            for part in register.fields:
                stored = Signal(part.width, name=f"{register.name.lower()}_{part.name}", init=part.reset)
                m.d.comb += element[part.name].eq(stored)
                with m.If(write):
                    m.d.sync += stored.eq(self.block.data[part.low : part.low + part.width])


def _unfit(register: Register, written: Value) -> Value | None:
    """Return whether a register refuses what is written (:meth:`.Register.takes`); None: it takes all."""
    reasons: list[Value] = []
    outside = ((1 << REGISTER_BITS) - 1) & ~sum(part.mask for part in register.fields)
    if register.is_exact and outside:
        beyond: Value = (written & outside).any()
        for part in register.fields:
            if part.signed:
                beyond &= ~written[part.low + part.width - 1 :].all()
        reasons.append(beyond)
    for part in register.fields:
        if part.is_bounded and not part.at_start:
            number = written[part.low : part.low + part.width]
            reasons.append(number >= part.bounds.stop)
            if part.bounds.start:
                reasons.append(number < part.bounds.start)
    return Cat(reasons).any() if reasons else None


def _fields_of(register: Register, value: Any) -> Value:
    """Return a register's value with zeros outside its fields."""
    parts: list[Value] = []
    place = 0
    for part in sorted(register.fields, key=lambda part: part.low):
        parts += [Const(0, part.low - place), Value.cast(value[part.name])]
        place = part.low + part.width
    return Cat(*parts, Const(0, REGISTER_BITS - place))


def _any_of(values: Sequence[Value]) -> Value:
    """Return the bitwise or of ``values``, as a tree."""
    if len(values) == 1:
        return values[0]
    half = len(values) // 2
    return _any_of(values[:half]) | _any_of(values[half:])
