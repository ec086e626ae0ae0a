"""A unit behind its DMA engine."""

from __future__ import annotations

from cdu_spec.modes import Mode

from cdu_verif.blocks import Record
from cdu_verif.cases.parameters import CODERS
from cdu_verif.simulation import cover_points

#: All but sfpr+zvc and autoquant, which the other unit has and autoquantz is like.
_MODES = ("sfpr", "jpeg-act", "brc", "bypass", "division", "actnn", "blpa", "autoquantz", "mx")

RECORD = Record(
    benches=["dma_array", "dma_hosts", "register_model"],
    quick=[
        {"dma_bits": 128},
        {"dma_bits": 64, "cdus": 2, "value_format": "bf16", "payload_crc": 1, "modes": _MODES, **CODERS},
    ],
    full=[
        {"dma_bits": 128, "value_format": "fp16", "modes": tuple(mode.label for mode in Mode)},
        {"dma_bits": 256, "duplex": "half", "dma_words": 256},
        {"dma_bits": 512, "cdus": 4},
        {"dma_bits": 512, "cdus": 8, "packed_port_bits": 1024},
    ],
    streams=None,
    bins=cover_points.engine_bins,
)
