"""Proofs of the coders of BRC and of codes: bytes and rows of a block that leave are those of the format for its input."""

from __future__ import annotations

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


def encoder_content(config: CduConfig, block: str = "brc_encoder", built: promises.Built = BUILT) -> Property:
    """Return the property that an encoder gives the right bytes in mode brc."""
    return _content(
        block, "Slices of a block of mode brc are the bytes of its rows, with a bit for each value.", True, config, built
    )


def decoder_content(config: CduConfig, block: str = "brc_decoder", built: promises.Built = BUILT) -> Property:
    """Return the property that a decoder gives the right rows in mode brc."""
    return _content(block, "Rows of a block of mode brc are those of the bytes in its slice.", False, config, built)


def encoder_codes(config: CduConfig, cycles: int) -> Property:
    """Return the property that ``affine_encoder`` packs codes, searched for ``cycles`` from reset."""
    statement = "Bytes of a block without a head are its codes side by side, without gaps, in their order."
    return _codes("affine_encoder", statement, "coded_block", promises.rows(affine), (_ROWS, _SLICES), config, cycles)


def decoder_codes(config: CduConfig, cycles: int) -> Property:
    """Return the property that ``affine_decoder`` unpacks codes, searched for ``cycles`` from reset."""
    statement = "Rows of a block without a head are the codes side by side in its bytes."
    return _codes("affine_decoder", statement, "decoded_codes", promises.slices(affine), (_SLICES, _ROWS), config, cycles)


def _content(block: str, statement: str, encodes: bool, config: CduConfig, built: promises.Built) -> Property:
    streams = (_ROWS, _SLICES) if encodes else (_SLICES, _ROWS)
    module, promised = ("encoded_block", promises.rows) if encodes else ("decoded_block", promises.slices)

    def harness(device: BoundDevice) -> str:
        ports = {**fields(device, "i__payload", *streams[0]), **fields(device, "o__payload", *streams[1])}
        return _harness(device, config, built, promised(BUILT), module, ports)

    return Property(block, "content", statement, partial(block_device, block, config), Sby(REACHABILITY, 0, harness))


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
