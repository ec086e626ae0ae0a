"""RTL generator of compression/decompression units (Amaranth)."""

from cdu_spec.config import CduConfig

from cdu.delivery.blocks import BLOCKS, top
from cdu.unit.array import CduArray
from cdu.unit.compressor import Compressor
from cdu.unit.decompressor import Decompressor

__all__ = ["BLOCKS", "CduArray", "CduConfig", "Compressor", "Decompressor", "top"]
