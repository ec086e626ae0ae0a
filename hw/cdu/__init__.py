"""RTL generator of compression/decompression units (Amaranth)."""

from cdu_spec.config import CduConfig

from cdu.blocks import BLOCKS, top
from cdu.compressor import Compressor
from cdu.decompressor import Decompressor
from cdu.unit import Cdu

__all__ = ["BLOCKS", "Cdu", "CduConfig", "Compressor", "Decompressor", "top"]
