"""The coder of BRC: the bytes of a block that leave, and its rows, are those that the format says of what has entered."""

from __future__ import annotations

from functools import partial

from cdu.delivery.blocks import only
from cdu_spec.bitstream import Mode
from cdu_spec.config import CduConfig

from cdu_verif.formal import promises
from cdu_verif.formal.binding import fields, instance
from cdu_verif.formal.device import Device
from cdu_verif.formal.stream_rules import with_assumptions

_ONLY = partial(only, mode=Mode.BRC)


def encoder_harness(device: Device, config: CduConfig) -> str:
    """Slices of a block are the bytes of its rows."""
    ports = {**fields(device, "i__payload", "ends", "values"), **fields(device, "o__payload", "data", "count", "ends", "rows")}
    return _harness(device, config, promises.rows(_ONLY), "encoded_block", ports)


def decoder_harness(device: Device, config: CduConfig) -> str:
    """Rows of a block are those of the bytes in its slice."""
    ports = {**fields(device, "i__payload", "data", "count", "ends", "rows"), **fields(device, "o__payload", "values", "ends")}
    return _harness(device, config, promises.slices(_ONLY), "decoded_block", ports)


def _harness(device: Device, config: CduConfig, promised: promises.Promise, module: str, ports: dict[str, str]) -> str:
    size = _ONLY(config).slice_bytes
    parameters = {"SLICE_BYTES": size, "COUNT_BITS": size.bit_length()}
    handshakes = {f"{stream}_{role}": f"{stream}__{role}" for stream in "io" for role in ("valid", "ready")}
    body = promised(device, config) + instance(module, parameters, {**handshakes, **ports})
    return with_assumptions(device, body, resets=False)
