"""Record of the Huffman encoder, which codes symbols for the entropy encoder."""

from __future__ import annotations

from cdu.coding.huffman_encoder import HuffmanEncoder
from cdu_spec.config import CduConfig

from cdu_verif.blocks import Record
from cdu_verif.formal import device
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import part_moves


def _properties(config: CduConfig) -> list[Property]:
    return [part_moves("huffman_encoder", lambda: device.of_component(HuffmanEncoder(), "huffman_encoder", config), 2)]


RECORD = Record(benches=(), streams=None, properties=_properties)
