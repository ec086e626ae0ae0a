"""RTL generator of compression/decompression units (Amaranth)."""

from cdu_spec.config import CduConfig

from cdu.array import CduArray
from cdu.blocks import BLOCKS, top
from cdu.compressor import Compressor
from cdu.decompressor import Decompressor

__all__ = ["BLOCKS", "CduArray", "CduConfig", "Compressor", "Decompressor", "top"]
