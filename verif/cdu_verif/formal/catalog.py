"""Which properties of which blocks are proven, and how."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

from cdu.alignment.block_statistics import BlockStatistics
from cdu.alignment.range_join import RangeJoin
from cdu.bus.axi_stream import AxiReceiver, AxiSender
from cdu.control.channel_control import ChannelControl
from cdu.delivery.blocks import BLOCKS, affine, ranged
from cdu.parts.byte_packer import BytePacker
from cdu.parts.width_converter import WidthConverter
from cdu.transform.transposer import Transposer
from cdu.values.scale_join import ScaleJoin
from cdu_spec.bitstream import Dtype, Mode
from cdu_spec.config import CduConfig, ConfigError
from cdu_spec.registers import Channel

from cdu_verif.formal import (
    affine_codes,
    code_packing,
    device,
    invariants,
    order,
    ports,
    progress,
    quantizers,
    ranges,
    sfpr,
    splitting,
    stream_rules,
    watchdog,
)
from cdu_verif.formal.device import Device
from cdu_verif.formal.netlist import Selection
from cdu_verif.formal.proof import Property
from cdu_verif.formal.solver import BOUNDED, COVER, INDUCTION, REACHABILITY, Sby
from cdu_verif.formal.transforms import TransformWidths

#: Parts of blocks that have properties of their own.
PARTS = (
    "transposer",
    "width_converter",
    "byte_packer",
    "axi_receiver",
    "axi_sender",
    "scale_join",
    "channel_control",
    "block_statistics",
    "range_join",
    "code_packing",
)
#: Bytes of the words of ports that are proven.
_PORT_BYTES = 4
#: Those of them of which the stream rules are proven as of a block.
_STREAM_PARTS: Mapping[str, Callable[[CduConfig], Any]] = {"block_statistics": BlockStatistics, "range_join": RangeJoin}
#: Cycles from reset in which every output of a block can offer something; units that need more are left to the benches.
_FIRST_OUTPUT = {"alignment_buffer": 80, "inverse_alignment_buffer": 80}
_SOON = 24
_TOO_LATE = ("compressor", "decompressor", "control", "array")
#: Units whose outputs keep the rules only in states that can be reached, which induction does not know: cycles from reset.
_BOUNDED_HOLD = {"compressor": 8, "decompressor": 8, "control": 12}

#: Lanes whose arithmetic is proven together.
_LANES_TOGETHER: Mapping[str, tuple[tuple[int, ...], ...]] = {
    "affine_quantizer": ((0, 1), (2, 3), (4, 5), (6, 7)),
    "affine_dequantizer": ((0, 1, 2, 3), (4, 5, 6, 7)),
}
#: Bounded searches: CDUs (and rows per word) with the blocks of every tile (any if None) and the cycles from reset.
_ALIGNMENT_BOUNDS = ((1, None, 10), (4, 2, 12), (4, 3, 12))
#: The same for statistics of blocks, with the bits that are free of each value.
_STATISTICS_BOUNDS = ((1, None, 0x8001, 12), (1, 2, 0x8000, 20), (8, None, 0x8001, 9))
_SPLITTER_BOUNDS: tuple[tuple[dict[str, Any], int], ...] = (
    ({"modes": ("sfpr", "brc")}, 7),
    ({"modes": ("sfpr+zvc",)}, 6),
    ({"cdus": 8, "packed_port_bits": 128, "modes": ("sfpr", "sfpr+zvc", "brc")}, 6),
)
#: Bits of every byte of a payload that are free in these searches: masks then have 0 to 16 ones.
_FREE_OF_BYTE = 0x11
#: Of the whole unit: while an access is worked on no answer to the one before is waiting.
_ANSWER_FREE = "~(inner_control__axi__access__active & (inner_control__axi__access__write ? s_axil_bvalid : s_axil_rvalid))"

#: Blocks whose output must transfer at least every so many cycles, when all inputs offer and all outputs accept.
_OUTPUT_PROGRESS = {
    **dict.fromkeys(("sfpr", "inverse_sfpr", "shift_quantizer", "inverse_shift_quantizer"), 4),
    **dict.fromkeys(("dct", "idct", "two_way_dct"), 24),
    "affine_quantizer": 5,
    "affine_dequantizer": 4,
}
#: Of these the blocks that ``multiplier_stages`` makes later, by as many cycles.
_WITH_MULTIPLIERS = ("sfpr", "inverse_sfpr")
#: Blocks that may take more than they give: some stream must transfer.
_PROGRESS = {
    **dict.fromkeys(("zvc_encoder", "brc_encoder", "zvc_decoder", "brc_decoder", "affine_encoder", "affine_decoder"), 12),
    **dict.fromkeys(("distributor", "gatherer", "collector", "splitter", "range_finder"), 4),
}
#: The same for blocks whose proof reaches only so many cycles from reset.
_BOUNDED_PROGRESS = {"value_front": (16, 30), "value_back": (16, 30)}


@cache
def block_device(block: str, config: CduConfig) -> Device:
    """A block, or a part with streams, for a configuration."""
    if block in _STREAM_PARTS:
        return device.of_component(_STREAM_PARTS[block](ranged(config)), block, config)
    return device.of_block(block, config)


def names() -> tuple[str, ...]:
    """What ``--block`` takes."""
    return (*BLOCKS, *PARTS)


def properties(config: CduConfig, blocks: Sequence[str] = (), name: str | None = None) -> list[Property]:
    """Properties of the named blocks (all when none is named), or those of them that are called ``name``.

    Raises ConfigError for unknown names.
    """
    for block in blocks:
        if block not in names():
            raise ConfigError(f"unknown block {block!r}: use {', '.join(names())}")
    found = [one for block in blocks or names() for one in _of(block, config)]
    if name is None:
        return found
    chosen = [one for one in found if one.name == name]
    if not chosen:
        known = ", ".join(dict.fromkeys(one.name for one in found))
        raise ConfigError(f"unknown property {name!r}: use {known}")
    return chosen


def _of(block: str, config: CduConfig) -> list[Property]:
    return [*(_streams(block, config) if block in BLOCKS or block in _STREAM_PARTS else ()), *_own(block, config)]


def _streams(block: str, config: CduConfig) -> list[Property]:
    make = partial(block_device, block, config)
    kind, depth = (BOUNDED, _BOUNDED_HOLD[block]) if block in _BOUNDED_HOLD else (INDUCTION, 2)
    held: Callable[[], Device] = make
    text: Callable[[Device], str] = stream_rules.stream_harness
    if block == "array":
        held, text = partial(_with_answers, config), partial(stream_rules.stream_harness, helper=_ANSWER_FREE)
    elif block == "range_finder":
        held, text = partial(_probed, block, config, ranges.finder_probes(config.port_beats)), ranges.finder_rules
    elif block == "range_join":
        text = ranges.join_rules
    elif block == "range_store":
        held, text = partial(_probed, block, config, ranges.STORE_PROBES), ranges.store_rules
    rules = [
        Property(
            block,
            "hold",
            "Valid and payload of every output hold until the transfer.",
            held,
            Sby(kind, depth, text),
        ),
        Property(
            block,
            "independence",
            "No path without a register leads from ready of an output to its valid.",
            make,
            Selection(stream_rules.independence_script),
        ),
    ]
    if block not in _TOO_LATE:
        depth = _FIRST_OUTPUT.get(block, _SOON)
        search = Sby(COVER, depth, stream_rules.stream_harness)
        statement = "Every output gets valid, and waits, though its ready has never been high."
        rules.append(Property(block, "unasked", statement, make, search))
    if block in _BOUNDED_PROGRESS:
        cycles, bound = _BOUNDED_PROGRESS[block]
        text = partial(progress.job_progress_harness, cycles=cycles)
        rules.append(Property(block, "progress", _moves("a transfer happens", cycles), make, Sby(BOUNDED, bound, text)))
    if block in _PROGRESS:
        cycles = _PROGRESS[block]
        text = partial(progress.progress_harness, cycles=cycles)
        rules.append(Property(block, "progress", _moves("a transfer happens", cycles), make, Sby(REACHABILITY, 0, text)))
    if block in _OUTPUT_PROGRESS:
        cycles = _OUTPUT_PROGRESS[block] + (config.multiplier_stages if block in _WITH_MULTIPLIERS else 0)
        text = partial(progress.progress_harness, cycles=cycles, watched=("o",))
        rules.append(Property(block, "progress_o", _moves("o transfers", cycles), make, Sby(REACHABILITY, 0, text)))
    return rules


def _alignment_order(block: str, config: CduConfig, width: int | None, depth: int) -> Property:
    text = partial(order.alignment_harness, beats=config.port_beats, to_blocks=block == "alignment_buffer", width=width)
    tiles = f"tiles of {width} blocks" if width else "tiles of every width"
    return Property(
        f"{block}[cdus={config.cdus}]",
        f"order_{width}" if width else "order",
        f"Rows of {tiles} leave once, at their place in the other order.",
        partial(block_device, block, config),
        Sby(BOUNDED, depth, text),
    )


def _splitter_order(config: CduConfig, depth: int) -> Property:
    return Property(
        f"splitter[cdus={config.cdus},modes={'/'.join(config.modes)}]",
        "order",
        "Every job's bytes leave once, in order, cut into blocks as masks, modes and jobs say, with their tags, lane by lane;"
        " zeros where they end early.",
        partial(block_device, "splitter", config),
        Sby(BOUNDED, depth, partial(splitting.splitter_harness, config, free_of_byte=_FREE_OF_BYTE)),
    )


def _width_conversion(i_bytes: int, o_bytes: int, config: CduConfig) -> list[Property]:
    label = f"width_converter[{i_bytes} to {o_bytes} bytes]"
    make = cache(lambda: device.of_component(WidthConverter(i_bytes, o_bytes), "width_converter", config))
    cycles = max(i_bytes, o_bytes) // min(i_bytes, o_bytes)
    ordered = partial(order.width_harness, i_bytes=i_bytes, o_bytes=o_bytes)
    moves = partial(progress.progress_harness, cycles=cycles, watched=("o",))
    return [
        Property(
            label,
            "order",
            "Bytes leave once, in order; words are full, a job's last word ends with its last byte.",
            make,
            Sby(REACHABILITY, 0, ordered),
        ),
        Property(
            label,
            "progress_o",
            _moves("o transfers", cycles),
            make,
            Sby(REACHABILITY, 0, moves),
        ),
    ]


def _at_ports(part: str, config: CduConfig) -> Property:
    """What is proven of a part that stands at a port."""
    parts: Mapping[str, tuple[Callable[[], Any], str, str, Callable[[Device], str]]] = {
        "byte_packer": (
            partial(BytePacker, _PORT_BYTES),
            "order",
            "Bytes of words of any count leave once, in order; words are full, a job's last word ends with its last byte.",
            partial(order.width_harness, i_bytes=_PORT_BYTES, o_bytes=_PORT_BYTES, partial=True),
        ),
        "axi_receiver": (
            partial(AxiReceiver, _PORT_BYTES),
            "order",
            "Bytes leave once, in order; words have bytes, but for that of a packet without any; a packet ends with its last"
            " byte, also where TLAST comes behind it.",
            partial(ports.receiver_harness, size=_PORT_BYTES),
        ),
        "axi_sender": (
            partial(AxiSender, _PORT_BYTES),
            "ends",
            "After an abort no job ends before a word of a new one was accepted; each ends once, when its last word leaves;"
            " draining shows that the sink has still to get the end of a packet from before the abort.",
            ports.sender_harness,
        ),
        "scale_join": (
            partial(ScaleJoin, Channel.COMPRESS),
            "order",
            "The n-th packet of scales comes whole from the source that the n-th job names, whenever scales come.",
            ports.scale_join_harness,
        ),
    }
    make, name, statement, text = parts[part]
    return Property(part, name, statement, lambda: device.of_component(make(), part, config), Sby(REACHABILITY, 0, text))


def _watchdog(config: CduConfig, channel: Channel) -> Property:
    def probed() -> Device:
        control = device.of_component(ChannelControl(config, channel), "channel_control", config)
        return control.probed(watchdog.PROBES)

    return Property(
        f"channel_control[{channel.value}]",
        "watchdog",
        f"A job in which nothing moves for WATCHDOG + {watchdog.DELAY} cycles is aborted, whatever the data path does.",
        probed,
        Sby(INDUCTION, 5, watchdog.watchdog_harness),
    )


def _collector_order(config: CduConfig) -> Property:
    probes = invariants.collector_probes(config.cdus, config.slice_bytes, config.packed_bytes)
    text = partial(order.collector_harness, lanes=config.cdus, slice_bytes=config.slice_bytes, word_bytes=config.packed_bytes)
    return Property(
        f"collector[cdus={config.cdus},packed_port_bits={config.packed_port_bits}]",
        "order",
        "Bytes leave once, in order, without gaps; words are full, a job's last word ends with its last byte.",
        lambda: block_device("collector", config).probed(probes),
        Sby(INDUCTION, 2, text),
    )


def _probed(block: str, config: CduConfig, probes: Mapping[str, int]) -> Device:
    """A block with probes."""
    return block_device(block, config).probed(probes)


def _with_answers(config: CduConfig) -> Device:
    """The whole unit with the signals of :data:`_ANSWER_FREE`."""
    return block_device("array", config).probed({f"control.axi.access__{name}": 1 for name in ("active", "write")})


def _moves(what: str, cycles: int) -> str:
    return f"With input offered and output accepted, {what} at least every {cycles} cycles."


def _own(block: str, config: CduConfig) -> list[Property]:
    make = partial(block_device, block, config)
    match block:
        case "transposer":
            narrow = cache(lambda: device.of_component(Transposer(1), "transposer", config))
            return [
                Property(
                    "transposer[width=1]",
                    "order",
                    "Every value leaves once, at its transposed place: none is lost, doubled or put in another order.",
                    narrow,
                    Sby(REACHABILITY, 0, partial(order.transposer_harness, width=1)),
                ),
                *(
                    Property(
                        "transposer[width=1]",
                        f"progress_{end}",
                        _moves(f"{end} transfers", 9),
                        narrow,
                        Sby(REACHABILITY, 0, partial(progress.progress_harness, cycles=9, watched=(end,))),
                    )
                    for end in ("i", "o")
                ),
            ]
        case "distributor" | "gatherer":
            # Two lanes and words of two rows: the smallest array in which all parts of these blocks do something.
            small = config.override(cdus=2, value_port_bits=0, modes=(Mode.SFPR.label,))
            statement = (
                "Rows leave once, in order, at the lane (from the lane) whose turn it is, marked where their block ends."
            )
            port, make_text = (
                ("i__payload", order.distributor_harness) if block == "distributor" else ("o__payload", order.gatherer_harness)
            )

            def probed() -> Device:
                device = block_device(block, small)
                return device.probed(invariants.lane_probes(device, port, small.cdus, small.port_beats))

            search = Sby(INDUCTION, 2, partial(make_text, lanes=small.cdus, beats=small.port_beats))
            return [Property(f"{block}[cdus=2]", "order", statement, probed, search)]
        case "collector":
            return [
                _collector_order(config.override(cdus=cdus, packed_port_bits=bits, modes=(Mode.SFPR.label,)))
                for cdus, bits in ((2, 128), (1, 256))
            ]
        case "alignment_buffer" | "inverse_alignment_buffer":
            return [
                _alignment_order(block, config.override(cdus=cdus, value_port_bits=0, modes=(Mode.SFPR.label,)), width, depth)
                for cdus, width, depth in _ALIGNMENT_BOUNDS
            ]
        case "splitter":
            return [_splitter_order(config.override(**chosen), depth) for chosen, depth in _SPLITTER_BOUNDS]
        case "width_converter":
            return [one for i, o in ((2, 8), (8, 2)) for one in _width_conversion(i, o, config)]
        case "byte_packer" | "axi_receiver" | "axi_sender" | "scale_join":
            return [_at_ports(block, config)]
        case "channel_control":
            return [_watchdog(config, channel) for channel in Channel]
        case "sfpr":
            # The format whose proof is quick enough for all inputs; the others differ in widths only.
            exact = config.override(value_format=Dtype.BF16.label, scale_bits=8)
            statement = "q = sat8(round_half_even(x * k)), exactly, for all x and k"
            label = f"sfpr[value_format={exact.value_format},scale_bits={exact.scale_bits}]"
            made = partial(block_device, block, exact)
            steady, stalled = (partial(sfpr.arithmetic_harness, exact, stalls=stalls) for stalls in (False, True))
            reach = 4 + exact.multiplier_stages
            return [
                Property(label, "arithmetic", f"{statement}, in all lanes.", made, Sby(INDUCTION, reach, steady)),
                Property(label, "arithmetic_stalls", f"{statement}, with any stalls.", made, Sby(BOUNDED, reach + 3, stalled)),
            ]
        case "shift_quantizer" | "inverse_shift_quantizer":
            inverse = block == "inverse_shift_quantizer"
            statement = "c = sat12(q * 2**shift)" if inverse else f"q = sat8(round(c / 2**shift)), {config.rounding}"
            text = partial(quantizers.quantizer_harness, config, inverse=inverse)
            return [
                Property(
                    block, "arithmetic", f"{statement}, for all inputs, shifts and stalls.", make, Sby(REACHABILITY, 0, text)
                )
            ]
        case "dct" | "idct":
            statement = (
                "Each pass is the integer matrix of the specification, rounded half up; no word overflows, for all inputs."
            )
            variants = {
                config.override(**{name: value}): f"{block}[{name}={value}]"
                for name, value in (("sample_bits", 8), ("sample_bits", 9), ("dct_stages", 1))
            }
            return [
                Property(
                    block if chosen == config else label,
                    "widths",
                    statement,
                    partial(block_device, block, chosen),
                    TransformWidths(chosen, block == "idct"),
                )
                for chosen, label in variants.items()
            ]
        case "range_finder" | "range_store" | "block_statistics":
            return _ranges(block, config)
        case "affine_quantizer" | "affine_dequantizer":
            return _codes(block, config)
        case "code_packing":
            return [
                Property(
                    block,
                    "inverse",
                    "Code n stands at bit n * bits, zeros behind the last; unpacking gives the codes back, whatever stands"
                    " behind them; their bytes are counted: for all codes and bits.",
                    lambda: device.of_component(code_packing.PackedCodes(), block, config),
                    Sby(INDUCTION, 1, code_packing.packing_harness),
                )
            ]
    return []


def _ranges(block: str, config: CduConfig) -> list[Property]:
    """How ranges are found, and where they wait."""
    wide = config.override(cdus=8, value_port_bits=0)
    parallel = f"{block}[cdus={wide.cdus}]"
    if block == "range_finder":
        return [
            Property(
                parallel,
                "hold",
                "Valid and payload of every output hold until the transfer.",
                partial(_probed, block, wide, ranges.finder_probes(wide.port_beats)),
                Sby(INDUCTION, 2, ranges.finder_rules),
            ),
            Property(
                block,
                "step",
                "D = m * 2**e is the least number of 8 significant bits that is not below max(1, ceil(R / B)): B * D >= R,"
                " 1 <= m <= 255, e <= 9, Z + B * D <= 65535, for all R and bits, with any stalls.",
                partial(_probed, block, config, ranges.STEP_PROBES),
                Sby(INDUCTION, 2, ranges.step_harness),
            ),
        ]
    if block == "block_statistics":
        return [
            Property(
                f"{block}[cdus={cdus}]",
                f"encloses_{width}" if width else "encloses",
                "Every value of a block lies between the least and the greatest value that are found for it"
                f"{f'; tiles of {width} blocks' if width else ''}. Values: {1 << free.bit_count()} different ones.",
                partial(block_device, block, config.override(cdus=cdus, value_port_bits=0)),
                Sby(BOUNDED, depth, partial(ranges.enclosing_harness, beats=cdus, free_of_value=free, width=width)),
            )
            for cdus, width, free, depth in _STATISTICS_BOUNDS
        ]
    return [
        Property(
            block,
            "progress",
            _moves("a transfer happens", 3),
            partial(_probed, block, config, ranges.STORE_PROBES),
            Sby(INDUCTION, 5, partial(ranges.store_progress, cycles=3)),
        ),
        *(
            Property(
                f"{block}[cdus={chosen.cdus}]",
                "order",
                "Beats leave with the range that came with their block, in mode actnn with that of their tile's first one.",
                partial(_probed, block, chosen, ranges.order_probes(chosen.port_beats)),
                Sby(INDUCTION, 2, partial(ranges.store_order, beats=chosen.port_beats)),
            )
            for chosen in (config.override(cdus=1, value_port_bits=0), wide)
        ),
    ]


def _codes(block: str, config: CduConfig) -> list[Property]:
    """The arithmetic of the affine quantiser and of its inverse."""
    built = affine(config)
    modes = built.built_modes
    if block == "affine_quantizer":
        statement = (
            "code = min(B, (((t * inv) >> shift) + rho) >> 16), t = clamp(x - Z, 0, 65535), with the random numbers of the"
            " definition, for all inputs and stalls; never above B"
        )
        probes, text = affine_codes.QUANTIZER_PROBES, affine_codes.quantizer_harness
    else:
        statement = "y = Z + code * D, for all inputs and stalls; no word overflows, -65536 < y < 65536"
        probes, text = affine_codes.DEQUANTIZER_PROBES, affine_codes.dequantizer_harness
    return [
        Property(
            block,
            f"arithmetic_{''.join(map(str, lanes))}",
            f"{statement}. Lanes {', '.join(map(str, lanes))}.",
            partial(_probed, block, built, probes),
            Sby(INDUCTION, 2, partial(text, modes=modes, lanes=lanes)),
        )
        for lanes in _LANES_TOGETHER[block]
    ]


__all__ = ["PARTS", "Device", "block_device", "names", "properties"]
