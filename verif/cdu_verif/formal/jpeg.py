"""Proofs of the coders of baseline JPEG: segments hold no marker, and whatever the bytes, whole blocks leave."""

from __future__ import annotations

from functools import partial

from cdu.coding.jpeg_words import WORD_BYTES
from cdu_spec.config import CduConfig

from cdu_verif.formal.binding import fields, instance
from cdu_verif.formal.device import BoundDevice
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import block_device
from cdu_verif.formal.solver import REACHABILITY, Sby
from cdu_verif.formal.stream_rules import with_assumptions


def segment(block: str, config: CduConfig) -> list[Property]:
    """Return the property that an encoder gives words of a segment without markers (T.81, F.1.2.3)."""
    statement = "Words are full but for the last one of a segment, and 0 follows every byte of 255."
    return _property(block, "segment", statement, config, "jpeg_segment", ("data", "count", "last"), BYTES=WORD_BYTES)


def blocks(config: CduConfig) -> list[Property]:
    """Return the property that ``entropy_decoder`` gives whole blocks, whatever bytes it reads."""
    statement = "Whatever the bytes, blocks of 8 with equal marks leave; one with an error is the last of its scan."
    return _property("entropy_decoder", "blocks", statement, config, "jpeg_blocks", ("last", "error"))


def _property(
    block: str, name: str, statement: str, config: CduConfig, module: str, payload: tuple[str, ...], **parameters: int
) -> list[Property]:
    def harness(device: BoundDevice) -> str:
        ports = {f"o_{role}": f"o__{role}" for role in ("valid", "ready")} | fields(device, "o__payload", *payload)
        return with_assumptions(device, instance(module, parameters, ports), resets=False)

    return [Property(block, name, statement, partial(block_device, block, config), Sby(REACHABILITY, 0, harness))]
