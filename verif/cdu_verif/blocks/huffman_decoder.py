"""Record of the Huffman decoder, which decodes symbols for the entropy decoder."""

from __future__ import annotations

from cdu.coding.huffman_decoder import HuffmanDecoder
from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.formal import device
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import part_moves


def _properties(config: CduConfig) -> list[Property]:
    return [part_moves("huffman_decoder", lambda: device.of_component(HuffmanDecoder(), "huffman_decoder", config), 6)]


RECORD = Record(benches=(), streams=None, properties=_properties)
