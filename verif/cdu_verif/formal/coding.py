"""Proofs of the coder of BRC: the bytes and the rows of a block that leave are those of the format for its input."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from cdu.delivery.blocks import only
from cdu_spec.config import CduConfig
from cdu_spec.modes import Mode

from cdu_verif.formal import promises
from cdu_verif.formal.binding import fields, instance
from cdu_verif.formal.device import BoundDevice
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import block_device
from cdu_verif.formal.solver import REACHABILITY, Sby
from cdu_verif.formal.stream_rules import with_assumptions

#: The configuration that these blocks are built for.
BUILT = partial(only, mode=Mode.BRC)


def encoder_content(config: CduConfig) -> Property:
    """Return the property that ``brc_encoder`` gives the right bytes."""
    return _content("brc_encoder", "Slices of a block are the bytes of its rows, with a bit for each value.", _encoder, config)


def decoder_content(config: CduConfig) -> Property:
    """Return the property that ``brc_decoder`` gives the right rows."""
    return _content("brc_decoder", "Rows of a block are those of the bytes in its slice.", _decoder, config)


def _content(block: str, statement: str, harness: Callable[[BoundDevice, CduConfig], str], config: CduConfig) -> Property:
    method = Sby(REACHABILITY, 0, lambda device: harness(device, config))
    return Property(block, "content", statement, partial(block_device, block, config), method)


def _encoder(device: BoundDevice, config: CduConfig) -> str:
    ports = {**fields(device, "i__payload", "ends", "values"), **fields(device, "o__payload", "data", "count", "ends", "rows")}
    return _harness(device, config, promises.rows(BUILT), "encoded_block", ports)


def _decoder(device: BoundDevice, config: CduConfig) -> str:
    ports = {**fields(device, "i__payload", "data", "count", "ends", "rows"), **fields(device, "o__payload", "values", "ends")}
    return _harness(device, config, promises.slices(BUILT), "decoded_block", ports)


def _harness(device: BoundDevice, config: CduConfig, promised: promises.Promise, module: str, ports: dict[str, str]) -> str:
    size = BUILT(config).slice_bytes
    parameters = {"SLICE_BYTES": size, "COUNT_BITS": size.bit_length()}
    handshakes = {f"{stream}_{role}": f"{stream}__{role}" for stream in "io" for role in ("valid", "ready")}
    body = promised(device, config) + instance(module, parameters, {**handshakes, **ports})
    return with_assumptions(device, body, resets=False)
