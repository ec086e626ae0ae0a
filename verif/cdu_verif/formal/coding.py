"""Proofs of the coders of BRC and of codes: bytes and rows of a block that leave are those of the format for its input."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from cdu.delivery.blocks import affine, only
from cdu_spec.config import CduConfig
from cdu_spec.modes import AFFINE_MODES, Mode

from cdu_verif.formal import promises
from cdu_verif.formal.binding import fields, instance, mask
from cdu_verif.formal.device import BoundDevice
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import block_device
from cdu_verif.formal.solver import BOUNDED, REACHABILITY, Sby
from cdu_verif.formal.stream_rules import with_assumptions

#: The configuration that these blocks are built for.
BUILT = partial(only, mode=Mode.BRC)


#: Fields of the streams of an encoder; those of a decoder are the same the other way round.
_ROWS, _SLICES = ("values", "ends"), ("data", "count", "ends", "rows")
#: Modes whose payload is codes alone, when blocks have no head, and what proofs look at of their settings.
_CODED = [mode for mode in AFFINE_MODES if not mode.has_zvc]
_SETTINGS = [f"tag.{name}" for name in ("mode", "heads", "how.affine.bits_log2", "how.affine.statistics")]


def encoder_content(config: CduConfig) -> Property:
    """Return the property that ``brc_encoder`` gives the right bytes."""
    return _content("brc_encoder", "Slices of a block are the bytes of its rows, with a bit for each value.", _encoder, config)


def decoder_content(config: CduConfig) -> Property:
    """Return the property that ``brc_decoder`` gives the right rows."""
    return _content("brc_decoder", "Rows of a block are those of the bytes in its slice.", _decoder, config)


def encoder_codes(config: CduConfig, cycles: int) -> Property:
    """Return the property that ``affine_encoder`` gives the right bytes, searched for some cycles."""
    statement = "Bytes of a block without a head are its codes side by side, without gaps, in their order."
    return _codes("affine_encoder", statement, "coded_block", promises.rows(affine), (_ROWS, _SLICES), config, cycles)


def decoder_codes(config: CduConfig, cycles: int) -> Property:
    """Return the property that ``affine_decoder`` gives the right rows, searched for some cycles."""
    statement = "Rows of a block without a head are the codes that stand side by side in its bytes."
    return _codes("affine_decoder", statement, "decoded_codes", promises.slices(affine), (_SLICES, _ROWS), config, cycles)


def _content(block: str, statement: str, harness: Callable[[BoundDevice, CduConfig], str], config: CduConfig) -> Property:
    method = Sby(REACHABILITY, 0, lambda device: harness(device, config))
    return Property(block, "content", statement, partial(block_device, block, config), method)


def _codes(
    block: str,
    statement: str,
    module: str,
    promised: promises.Promise,
    streams: tuple[tuple[str, ...], tuple[str, ...]],
    config: CduConfig,
    cycles: int,
) -> Property:
    def harness(device: BoundDevice) -> str:
        ports = {**fields(device, "i__payload", *streams[0], *_SETTINGS), **fields(device, "o__payload", *streams[1])}
        return _harness(device, config, affine, promised, module, ports, MODES=mask(_CODED))

    return Property(block, "codes", statement, partial(block_device, block, config), Sby(BOUNDED, cycles, harness))


def _encoder(device: BoundDevice, config: CduConfig) -> str:
    ports = {**fields(device, "i__payload", *_ROWS), **fields(device, "o__payload", *_SLICES)}
    return _harness(device, config, BUILT, promises.rows(BUILT), "encoded_block", ports)


def _decoder(device: BoundDevice, config: CduConfig) -> str:
    ports = {**fields(device, "i__payload", *_SLICES), **fields(device, "o__payload", *_ROWS)}
    return _harness(device, config, BUILT, promises.slices(BUILT), "decoded_block", ports)


def _harness(
    device: BoundDevice,
    config: CduConfig,
    built: promises.Built,
    promised: promises.Promise,
    module: str,
    ports: dict[str, str],
    **parameters: int,
) -> str:
    size = built(config).slice_bytes
    parameters = {"SLICE_BYTES": size, "COUNT_BITS": size.bit_length(), **parameters}
    handshakes = {f"{stream}_{role}": f"{stream}__{role}" for stream in "io" for role in ("valid", "ready")}
    body = promised(device, config) + instance(module, parameters, {**handshakes, **ports})
    return with_assumptions(device, body, resets=False)
