"""The whole unit in use: training, and streams made by hand. It is generated as the block ``array``."""

from __future__ import annotations

from cdu_verif.blocks import Record

RECORD = Record(benches=["training", "streams"], streams=None)
