"""The whole unit behind its DMA engine in use: training. It is generated as the block ``dma_array``."""

from __future__ import annotations

from cdu_verif.blocks import Record

RECORD = Record(benches=["dma_training"], streams=None)
