"""Planner that turns a descriptor into the counts of its job, or into errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2
from cdu_spec.bitstream import CRC_BYTES, RECIPROCAL_BYTES
from cdu_spec.config import CduConfig
from cdu_spec.dma import COMPLETION_BYTES, MEMORY_ADDRESS_BITS
from cdu_spec.geometry import BLOCK_SIDE, LANES, TILE_BLOCKS
from cdu_spec.modes import Coder, Mode
from cdu_spec.ports import scale_port_bytes
from cdu_spec.reconstruction import MAX_POINT
from cdu_spec.register_types import COUNT_BITS, Channel
from cdu_spec.registers import register

from cdu.dma.records import KINDS, VALUES_BITS, Counts, Errors, Fetched, Planned, kinds
from cdu.dma.serial_multiplier import SerialMultiplier
from cdu.words import is_one_of


class JobPlanner(wiring.Component):
    """Check a descriptor and multiply its extents.

    Parameters
    ----------
    config
        Modes, coders and number format of the unit.
    channel
        The direction.

    Ports
    -----
    i
        Stream of :class:`~cdu.dma.records.Fetched`, taken when ``o`` transfers.
    o
        Stream of :class:`~cdu.dma.records.Planned`. The counts are those of :class:`cdu_spec.matrix_view.MatrixView`.

    Latency: four serial products, each of as many cycles as its smaller factor has bits; up to 131 cycles in all.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self, config: CduConfig, channel: Channel) -> None:
        self.config, self.channel = config, channel
        #: Modes whose tile is a group of consecutive values.
        self._groups = [mode for mode in config.built_modes if mode.in_tiles and mode.is_flat]
        super().__init__({"i": In(stream.Signature(Fetched())), "o": Out(stream.Signature(Planned()))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        descriptor: Any = self.i.payload["descriptor"]
        mode = descriptor["mode"]
        kind = kinds(self.config, mode)
        in_tiles, flat = kind["in_tiles"], kind["flat"]
        groups_of_256 = is_one_of(mode, self._groups)
        planned: Any = self.o.payload
        counts: Any = Signal(Counts())
        errors: Any = Signal(Errors())
        extents = [descriptor[name] for name in "nchw"]
        too_many = Signal()
        wrong = Signal()
        m.d.comb += planned["fetched"].eq(self.i.payload)
        far = self._check(m, errors, kind, too_many, wrong)

        m.submodules.multiplier = multiplier = SerialMultiplier(VALUES_BITS)
        n, c, h, w = (extent[:VALUES_BITS] for extent in extents)
        maps, area, rows, beats = (Signal(VALUES_BITS, name=name) for name in ("maps", "area", "rows", "beats"))
        pad = Signal(range(BLOCK_SIDE))
        extra = Signal(range(BLOCK_SIDE))
        row_pad = Signal(range(LANES))
        row_beats = Signal(VALUES_BITS)
        padded_rows = Signal(VALUES_BITS)
        per = Mux(in_tiles, h, row_beats)  # rows or beats of padding that share a scale
        matrix = (Mux(in_tiles, padded_rows, maps), Mux(flat, area, row_beats))
        end_pad = Signal.like(counts["end_pad"])
        filled = Signal(VALUES_BITS)  # beats, including those that fill up the last block
        m.d.comb += [
            padded_rows.eq(_up_to(rows, BLOCK_SIDE)),
            row_beats.eq(_units(Mux(in_tiles, w, area), LANES)),
            counts["rows"].eq(rows),
            filled.eq(self._filled(mode, beats)),
            counts["beats"].eq(filled),
            counts["row_beats"].eq(Mux(groups_of_256, TILE_BLOCKS, Mux(flat, beats, row_beats))),
            counts["channel_rows"].eq(Mux(groups_of_256, filled >> exact_log2(TILE_BLOCKS), Mux(in_tiles, h, 1))),
            counts["groups"].eq(Mux(flat, 1, maps + extra)),
            counts["extra"].eq(extra),
            counts["row_pad"].eq(row_pad),
            counts["end_pad"].eq(end_pad),
            end_pad.eq(filled - beats),
        ]
        kept = Signal(len(Cat(counts, errors)) + 1)
        m.d.comb += Cat(planned["counts"], planned["errors"], planned["nowhere"]).eq(kept)
        with m.FSM():
            with m.State("LOOK"), m.If(self.i.valid):
                m.next = "MAPS"
            self._products(m, multiplier, (n, c, h, w), (maps, area, rows), too_many, wrong)
            with m.State("MATRIX"):
                self._multiply(m, multiplier, matrix, wrong)
                values = Signal(VALUES_BITS)
                m.d.comb += values.eq(multiplier.product)
                with m.If(multiplier.done):
                    m.d.sync += [
                        beats.eq(Mux(flat, _units(values, LANES), values)),
                        row_pad.eq(0 - Mux(flat, values, area)),
                        too_many.eq(multiplier.overflow),
                    ]
                    m.next = "PADDING"
                with m.Elif(wrong & ~multiplier.busy):
                    m.next = "KEEP"
            with m.State("PADDING"):
                m.d.sync += [
                    pad.eq(Mux(flat, 0, Mux(in_tiles, padded_rows - rows, end_pad))),
                    extra.eq(0),
                    too_many.eq(too_many | (filled >> COUNT_BITS != 0)),
                ]
                m.next = "GROUPS"
            with m.State("GROUPS"):
                with m.If(pad == 0):
                    m.next = "KEEP"
                with m.Else():
                    m.d.sync += [pad.eq(Mux(pad > per, pad - per, 0)), extra.eq(extra + 1)]
            with m.State("KEEP"):
                m.d.sync += kept.eq(Cat(counts, errors, far["completion"]))
                m.next = "READY"
            with m.State("READY"):
                m.d.comb += [self.o.valid.eq(1), self.i.ready.eq(self.o.ready)]
                with m.If(self.o.ready):
                    m.d.sync += [too_many.eq(0), extra.eq(0)]
                    m.next = "LOOK"
        return m

    def _check(self, m: Module, errors: Any, kind: Mapping[str, Value], too_many: Value, wrong: Signal) -> dict[str, Value]:
        """Find the errors of a descriptor, and whether it has one (``wrong``).

        Return by address whether it is too wide, or what begins there ends beyond the last one.
        """
        descriptor: Any = self.i.payload["descriptor"]
        extent_wrong = Cat(
            (extent == 0) | (extent >> VALUES_BITS != 0) for extent in (descriptor[name] for name in "nchw")
        ).any()
        channels = Mux(kind["flat"], 1, descriptor["c"][:VALUES_BITS])
        scales_bytes = Mux(kind["wide"], channels * scale_port_bytes(offsets=True), channels * RECIPROCAL_BYTES)
        # The values of a tensor are at the addresses that its strides give, modulo the size of the address space.
        lengths = {"tensor": 1, "payload": descriptor["payload_bytes"], "scales": scales_bytes, "completion": COMPLETION_BYTES}
        unfit = Signal()  # a cycle after the descriptor
        far = {name: _ends_beyond(descriptor[name], length) for name, length in lengths.items()}
        m.d.comb += [
            errors["bad_mode"].eq(self._wrong_mode(descriptor)),
            errors["bad_shape"].eq(extent_wrong | too_many),
            errors["bad_address"].eq(far["tensor"] | far["payload"] | (kind["has_scales"] & far["scales"])),
            wrong.eq(unfit | too_many),
        ]
        m.d.sync += unfit.eq(self.i.payload["failed"] | errors.as_value().any())
        if self.channel is Channel.DECOMPRESS:
            behind = Mux(descriptor["payload_crc"] != 0, CRC_BYTES, 0)
            m.d.comb += errors["bad_length"].eq(descriptor["payload_bytes"] <= behind)
        return far

    def _products(
        self,
        m: Module,
        multiplier: SerialMultiplier,
        extents: tuple[Value, ...],
        products: tuple[Signal, ...],
        too_many: Signal,
        wrong: Value,
    ) -> None:
        """Multiply the extents of a tensor to its maps, the values of a map, and the rows of all maps, one state each."""
        n, c, h, w = extents
        maps, area, rows = products
        for state, factors, product, following in (
            ("MAPS", (n, c), maps, "AREA"),
            ("AREA", (h, w), area, "ROWS"),
            ("ROWS", (maps, h), rows, "MATRIX"),
        ):
            with m.State(state):
                self._multiply(m, multiplier, factors, wrong)
                with m.If(multiplier.done):
                    m.d.sync += [product.eq(multiplier.product), too_many.eq(multiplier.overflow)]
                    m.next = following
                with m.Elif(self.i.valid & wrong & ~multiplier.busy):
                    m.next = "KEEP"

    def _multiply(self, m: Module, multiplier: SerialMultiplier, factors: tuple[Value, Value], wrong: Value) -> None:
        """Keep a multiplication going until it is done."""
        m.d.comb += [multiplier.a.eq(factors[0]), multiplier.b.eq(factors[1]), multiplier.start.eq(self.i.valid & ~wrong)]

    def _wrong_mode(self, descriptor: Any) -> Value:
        """Return whether a descriptor asks for a payload that the unit does not support."""
        coder, point = descriptor["coder"], descriptor["point"]
        default = (coder == Coder.ZVC) & (point == 0)
        if self.config.has_gmc:
            built = is_one_of(coder, self.config.built_coders) & (point <= MAX_POINT)
            default = Mux(descriptor["mode"] == Mode.JPEG_ACT, built, default)
        known = descriptor["payload_crc"] <= self.config.payload_crc
        for part in ("quantizer", "mx_coding"):
            entry = register(part.upper())
            takes = is_one_of(descriptor["mode"], [mode for mode in self.config.built_modes if mode in entry.modes])
            fields = sum(field.mask for field in entry.fields)
            known &= (descriptor[part] & Mux(takes, ~fields, -1)) == 0
        of_unit = is_one_of(descriptor["mode"], self.config.built_modes) & (descriptor["value_format"] == self.config.dtype)
        right: Value = of_unit & default & known
        return ~right

    def _filled(self, mode: Value, beats: Value) -> Value:
        """Return the beats including those that fill up the last block or group, in modes without tiles of maps."""
        found = beats
        in_rows = [one for one in self.config.built_modes if not KINDS["in_tiles"](one)]
        wholes = {one: TILE_BLOCKS * one.whole_beats if one in self._groups else one.whole_beats for one in in_rows}
        for unit in sorted(set(wholes.values()) - {1}):
            found = Mux(is_one_of(mode, [one for one, whole in wholes.items() if whole == unit]), _up_to(beats, unit), found)
        return found


def _ends_beyond(address: Value, length: Value | int) -> Value:
    """Return whether an address is too wide, or so many bytes from it on reach beyond the last address."""
    return address[MEMORY_ADDRESS_BITS:].any() | (address[:MEMORY_ADDRESS_BITS] + length > 1 << MEMORY_ADDRESS_BITS)


def _units(value: Value, unit: int) -> Value:
    """Return ``value`` divided by ``unit``, a power of two, rounded up."""
    return (value + unit - 1) >> (unit - 1).bit_length()


def _up_to(value: Value, unit: int) -> Value:
    """Return ``value`` rounded up to a multiple of ``unit``, a power of two."""
    return _units(value, unit) << (unit - 1).bit_length()
