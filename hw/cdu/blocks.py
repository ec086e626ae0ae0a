"""The blocks that can be generated, verified and synthesised by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from amaranth.lib.wiring import Component
from cdu_spec.bitstream import Mode
from cdu_spec.config import CduConfig

from cdu.alignment_buffer import AlignmentBuffer, Direction
from cdu.compressor import Compressor
from cdu.dct import Dct
from cdu.decompressor import Decompressor
from cdu.idct import Idct
from cdu.inverse_sfpr import InverseSfpr
from cdu.payload_decoder import PayloadDecoder
from cdu.payload_encoder import PayloadEncoder
from cdu.sfpr import Sfpr
from cdu.shift_quantizer import InverseShiftQuantizer, ShiftQuantizer
from cdu.unit import Cdu


def _only(config: CduConfig, mode: Mode) -> CduConfig:
    """The configuration with a single mode."""
    return config.override(modes=(mode.label,))


#: Block by name. The coders come with the packer or unpacker that they need, and with no other coder.
BLOCKS: Mapping[str, Callable[[CduConfig], Component]] = {
    "sfpr": Sfpr,
    "inverse_sfpr": InverseSfpr,
    "alignment_buffer": lambda config: AlignmentBuffer(Direction.TO_BLOCKS),
    "inverse_alignment_buffer": lambda config: AlignmentBuffer(Direction.TO_ROWS),
    "dct": Dct,
    "idct": Idct,
    "shift_quantizer": ShiftQuantizer,
    "inverse_shift_quantizer": InverseShiftQuantizer,
    "zvc_encoder": lambda config: PayloadEncoder(_only(config, Mode.SFPR_ZVC)),
    "zvc_decoder": lambda config: PayloadDecoder(_only(config, Mode.SFPR_ZVC)),
    "brc_encoder": lambda config: PayloadEncoder(_only(config, Mode.BRC)),
    "brc_decoder": lambda config: PayloadDecoder(_only(config, Mode.BRC)),
    "compressor": Compressor,
    "decompressor": Decompressor,
}


def top(config: CduConfig) -> Component:
    """The whole unit of a configuration."""
    return Cdu(config)
