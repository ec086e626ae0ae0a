"""Blocks that can be generated, verified and synthesised by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from amaranth.lib.wiring import Component
from cdu_spec.config import CduConfig
from cdu_spec.config_rules import OWN_CLOCKS, ConfigError
from cdu_spec.modes import AFFINE_MODES, RANGED_MODES, Coder, Mode
from cdu_tools.near_names import unknown

from cdu.alignment.alignment_buffer import AlignmentBuffer, Direction
from cdu.alignment.range_finder import RangeFinder
from cdu.alignment.range_store import RangeStore
from cdu.coding import coders
from cdu.coding.block_decoder import BlockDecoder
from cdu.coding.block_encoder import BlockEncoder
from cdu.coding.entropy_decoder import EntropyDecoder
from cdu.coding.entropy_encoder import EntropyEncoder
from cdu.coding.gmc_decoder import GmcDecoder
from cdu.coding.gmc_encoder import GmcEncoder
from cdu.control.control import Control
from cdu.dma.dma_array import CduDmaArray
from cdu.dma.memory_reader import repeated_bytes
from cdu.dma.read_master import AxiReadMaster
from cdu.dma.write_master import AxiWriteMaster
from cdu.integrity.crc_checker import CrcChecker
from cdu.integrity.crc_writer import CrcWriter
from cdu.lanes.collector import Collector
from cdu.lanes.distributor import Distributor
from cdu.lanes.gatherer import Gatherer
from cdu.lanes.splitter import Splitter
from cdu.quantizers.affine_quantizer import AffineQuantizer
from cdu.quantizers.div_quantizer import DivQuantizer, InverseDivQuantizer
from cdu.quantizers.shift_quantizer import InverseShiftQuantizer, ShiftQuantizer
from cdu.transform.dct import Dct
from cdu.transform.idct import Idct
from cdu.transform.two_way_dct import TwoWayDct
from cdu.unit.array import CduArray
from cdu.unit.compressor import Compressor
from cdu.unit.decompressor import Decompressor
from cdu.unit.jpeg_decoder import JpegDecoder
from cdu.unit.jpeg_encoder import JpegEncoder
from cdu.unit.own_clocks import ClockedUnit
from cdu.values.affine_dequantizer import AffineDequantizer
from cdu.values.inverse_sfpr import InverseSfpr
from cdu.values.mx_decoder import MxDecoder
from cdu.values.mx_encoder import MxEncoder
from cdu.values.sfpr import Sfpr
from cdu.values.value_back import ValueBack
from cdu.values.value_front import ValueFront


def only(config: CduConfig, mode: Mode) -> CduConfig:
    """Return the configuration with a single mode, which is not jpeg-act: no coder is chosen."""
    return config.override(modes=(mode.label,), coders=(Coder.ZVC.label,))


def several(config: CduConfig) -> CduConfig:
    """Return the configuration with at least two CDUs: one alone needs no parts that deal out blocks or gather them."""
    return config.override(cdus=max(config.cdus, 2))


def affine(config: CduConfig) -> CduConfig:
    """Return the configuration with the affine modes, if it has none: without one there is nothing to quantise."""
    return config if config.has_affine else config.adapted(modes=(*config.modes, *(mode.label for mode in AFFINE_MODES)))


def ranged(config: CduConfig) -> CduConfig:
    """Return the configuration with the modes whose blocks have ranges, if it has none."""
    return config if config.has_ranges else config.adapted(modes=(*config.modes, *(mode.label for mode in RANGED_MODES)))


def with_gmc(config: CduConfig) -> CduConfig:
    """Return the configuration with the coder GMC, and its mode, if it has none."""
    return config if config.has_gmc else config.adapted(coders=(*config.coders, Coder.GMC.label))


def with_dma(config: CduConfig) -> CduConfig:
    """Return the configuration with a DMA engine, if it has none."""
    return config if config.dma_bits else config.adapted(dma_bits=_DMA_BITS)


def with_clocks(config: CduConfig) -> CduConfig:
    """Return the configuration with clocks of its ports, if it has none."""
    return config if config.own_clocks else config.adapted(own_clocks=OWN_CLOCKS[:1] if config.dma_bits else OWN_CLOCKS)


#: Width of the memory port of blocks whose configuration has no DMA engine.
_DMA_BITS = 128

#: Blocks that some configurations cannot have, and the configuration that they are built with instead: coders of one mode have
#: that mode, coders of several modes have all of the configuration and at least the affine ones.
_NEEDED: Mapping[str, Callable[[CduConfig], CduConfig]] = {
    "range_finder": ranged,
    "affine_quantizer": affine,
    "affine_dequantizer": affine,
    "zvc_encoder": lambda config: only(config, Mode.SFPR_ZVC),
    "zvc_decoder": lambda config: only(config, Mode.SFPR_ZVC),
    "brc_encoder": lambda config: only(config, Mode.BRC),
    "brc_decoder": lambda config: only(config, Mode.BRC),
    "affine_encoder": affine,
    "affine_decoder": affine,
    "gmc_encoder": with_gmc,
    "gmc_decoder": with_gmc,
    "lane_encoder": with_gmc,
    "lane_decoder": with_gmc,
    "distributor": several,
    "gatherer": several,
    # A whole unit keeps the parameters that it was given.
    "dma_array": lambda config: config.override(dma_bits=config.dma_bits or _DMA_BITS),
    "clocked_array": with_clocks,
    "axi_read_master": with_dma,
    "axi_write_master": with_dma,
}


def configured(name: str, config: CduConfig) -> CduConfig:
    """Return the configuration that a block is built with: the given one, with the features that the block needs.

    Raises ConfigError for a block that cannot be built with parameters of this configuration.
    """
    try:
        return _NEEDED[name](config) if name in _NEEDED else config
    except ConfigError as error:
        raise ConfigError(f"block {name} cannot be built: {error}") from None


def changes(name: str, config: CduConfig) -> dict[str, Any]:
    """Return the parameters of a block that replace those of the configuration; none for the name of a unit."""
    given, built = config.to_dict(), configured(name, config).to_dict()
    return {key: value for key, value in built.items() if given.get(key, getattr(CduConfig, key)) != value}


#: Component of the configuration that :func:`configured` returns, by the name of the block.
_COMPONENTS: Mapping[str, Callable[[CduConfig], Component]] = {
    "sfpr": Sfpr,
    "inverse_sfpr": InverseSfpr,
    "alignment_buffer": lambda config: AlignmentBuffer(config, Direction.TO_BLOCKS),
    "inverse_alignment_buffer": lambda config: AlignmentBuffer(config, Direction.TO_ROWS),
    "range_finder": RangeFinder,
    "range_store": RangeStore,
    "affine_quantizer": AffineQuantizer,
    "affine_dequantizer": AffineDequantizer,
    "value_front": ValueFront,
    "value_back": ValueBack,
    "dct": Dct,
    "idct": Idct,
    "two_way_dct": TwoWayDct,
    "shift_quantizer": ShiftQuantizer,
    "inverse_shift_quantizer": InverseShiftQuantizer,
    "zvc_encoder": BlockEncoder,
    "zvc_decoder": BlockDecoder,
    "brc_encoder": BlockEncoder,
    "brc_decoder": BlockDecoder,
    "affine_encoder": BlockEncoder,
    "affine_decoder": BlockDecoder,
    "gmc_encoder": GmcEncoder,
    "gmc_decoder": GmcDecoder,
    "lane_encoder": coders.encoder,
    "lane_decoder": coders.decoder,
    "div_quantizer": DivQuantizer,
    "inverse_div_quantizer": InverseDivQuantizer,
    "entropy_encoder": EntropyEncoder,
    "entropy_decoder": EntropyDecoder,
    "jpeg_encoder": JpegEncoder,
    "jpeg_decoder": JpegDecoder,
    "mx_encoder": lambda config: MxEncoder(),
    "mx_decoder": lambda config: MxDecoder(),
    "distributor": Distributor,
    "gatherer": Gatherer,
    "collector": Collector,
    "splitter": Splitter,
    "crc_writer": lambda config: CrcWriter(config.packed_bytes),
    "crc_checker": lambda config: CrcChecker(config.packed_bytes),
    "compressor": Compressor,
    "decompressor": Decompressor,
    "control": Control,
    "array": CduArray,
    "dma_array": CduDmaArray,
    "clocked_array": lambda config: ClockedUnit(config, CduDmaArray(config) if config.dma_bits else CduArray(config)),
    "axi_read_master": lambda config: AxiReadMaster(config.dma_bits // 8, value_bytes=repeated_bytes(config)),
    "axi_write_master": lambda config: AxiWriteMaster(config.dma_bits // 8),
}


def _block(name: str, config: CduConfig) -> Component:
    return _COMPONENTS[name](configured(name, config))


#: Block by name, for any configuration.
BLOCKS: Mapping[str, Callable[[CduConfig], Component]] = {name: partial(_block, name) for name in _COMPONENTS}
#: Whole units.
UNITS = ("array", "dma_array", "clocked_array")
#: Halves of a unit.
HALVES = ("compressor", "decompressor")


def impossible(config: CduConfig) -> dict[str, str]:
    """Return the blocks that cannot be built with parameters of a configuration, each with the reason."""
    found = {}
    for name in BLOCKS:
        try:
            configured(name, config)
        except ConfigError as error:
            found[name] = str(error)
    return found


def check_block(name: str, others: Sequence[str] = ()) -> None:
    """Raise ConfigError if there is no block of that name, and it is not among ``others``."""
    known = (*BLOCKS, *others)
    if name not in known:
        allowed = ", ".join(("a block of `cdu list --all`", *others))
        raise ConfigError(unknown("block", name, known, f"use {allowed}"))


def whole(config: CduConfig) -> str:
    """Return the name of the block that is the whole unit of a configuration."""
    return "clocked_array" if config.own_clocks else "dma_array" if config.dma_bits else "array"


def top(config: CduConfig) -> Component:
    """Return the whole unit of a configuration, with its DMA engine and clocks of its ports if it has them."""
    return _COMPONENTS[whole(config)](config)
