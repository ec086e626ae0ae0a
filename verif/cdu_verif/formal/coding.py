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
#: Modes whose payload is codes alone, when blocks have no head.
_CODED = [mode for mode in AFFINE_MODES if not mode.has_zvc]
#: Settings that proofs look at, and their values in mode brc: codes of one bit, neither head nor statistics.
_SETTINGS = [f"tag.{name}" for name in ("mode", "how.affine.bits_log2", "heads", "how.affine.statistics")]
_BRC = {"i_mode": f"4'd{Mode.BRC}", "i_bits_log2": "2'd0", "i_heads": "1'd0", "i_statistics": "1'd0"}


def encoder_content(config: CduConfig, block: str = "brc_encoder", built: promises.Built = BUILT) -> Property:
    """Return the property that an encoder gives the right bytes in mode brc."""
    statement = "Slices of a block of mode brc are the bytes of its rows, with a bit for each value."
    return _property(block, "content", statement, promises.rows(BUILT), config, built)


def decoder_content(config: CduConfig, block: str = "brc_decoder", built: promises.Built = BUILT) -> Property:
    """Return the property that a decoder gives the right rows in mode brc."""
    statement = "Rows of a block of mode brc are those of the bytes in its slice."
    return _property(block, "content", statement, promises.slices(BUILT), config, built)


def encoder_codes(config: CduConfig, cycles: int) -> Property:
    """Return the property that ``affine_encoder`` packs codes, searched for ``cycles`` from reset."""
    statement = "Bytes of a block without a head are its codes side by side, without gaps, in their order."
    return _property("affine_encoder", "codes", statement, promises.rows(affine), config, affine, cycles)


def decoder_codes(config: CduConfig, cycles: int) -> Property:
    """Return the property that ``affine_decoder`` unpacks codes, searched for ``cycles`` from reset."""
    statement = "Rows of a block without a head are the codes side by side in its bytes."
    return _property("affine_decoder", "codes", statement, promises.slices(affine), config, affine, cycles)


def _property(
    block: str, name: str, statement: str, promised: promises.Promise, config: CduConfig, built: promises.Built, cycles: int = 0
) -> Property:
    """Return a property of codes of one bit in mode brc, proven without bound, or of affine codes within some cycles."""
    encodes, brc = block.endswith("encoder"), not cycles
    streams = (_ROWS, _SLICES) if encodes else (_SLICES, _ROWS)

    def harness(device: BoundDevice) -> str:
        ports = {f"{stream}_{role}": f"{stream}__{role}" for stream in "io" for role in ("valid", "ready")}
        ports |= fields(device, "i__payload", *streams[0]) | fields(device, "o__payload", *streams[1])
        ports |= _BRC if brc else fields(device, "i__payload", *_SETTINGS)
        size = built(config).slice_bytes
        parameters = {"SLICE_BYTES": size, "COUNT_BITS": size.bit_length(), "MODES": mask([Mode.BRC] if brc else _CODED)}
        body = promised(device, config) + instance("encoded_codes" if encodes else "decoded_codes", parameters, ports)
        return with_assumptions(device, body, resets=False)

    method = Sby(REACHABILITY, 0, harness) if brc else Sby(BOUNDED, cycles, harness)
    return Property(block, name, statement, partial(block_device, block, config), method)
