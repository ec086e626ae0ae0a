"""What a block is promised of its inputs beyond the stream rules, as assumptions about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cdu_spec.bitstream import Mode
from cdu_spec.config import CduConfig

from cdu_verif.formal.binding import fields, instance, mask
from cdu_verif.formal.device import Device

_PORT = "i__payload"


#: Makes the assumptions for a device, a block of a configuration.
Promise = Callable[[Device, CduConfig], str]


def rows(of: Callable[[CduConfig], CduConfig]) -> Promise:
    """Rows of blocks enter, in the modes of ``of`` the configuration (``harness/promised_rows.sv``)."""

    def assumptions(device: Device, config: CduConfig) -> str:
        modes = of(config).packed_modes
        parameters = {**_modes(modes), "BINARY": mask(mode for mode in modes if mode is Mode.BRC), **_tag_bits(device)}
        return instance("promised_rows", parameters, {**_HANDSHAKE, **fields(device, _PORT, "ends", "values", *_TAG)})

    return assumptions


def slices(of: Callable[[CduConfig], CduConfig]) -> Promise:
    """Slices of packed blocks enter, in the modes of ``of`` the configuration (``harness/promised_slices.sv``)."""

    def assumptions(device: Device, config: CduConfig) -> str:
        own = of(config)
        parameters = {
            **_modes(own.packed_modes),
            "SLICE_BYTES": own.slice_bytes,
            "SLICES": -(-own.block_bytes // own.slice_bytes),
            "COUNT_BITS": device.width(_PORT, "count"),
            **_tag_bits(device),
        }
        return instance("promised_slices", parameters, {**_HANDSHAKE, **fields(device, _PORT, "ends", "count", "rows", *_TAG)})

    return assumptions


_HANDSHAKE = {"i_valid": "i__valid", "i_ready": "i__ready"}
_TAG = ("tag", "tag.mode", "tag.quantizer", "tag.heads")


def _modes(modes: Sequence[Mode]) -> dict[str, int]:
    """Modes that may come, of those the ones whose blocks are whole, and the ones with a quantiser that is set."""
    return {
        "MODES": mask(modes),
        "WHOLE": mask(mode for mode in modes if mode.has_zvc or mode.in_tiles),
        "SETTINGS": mask(mode for mode in modes if mode.is_affine),
    }


def _tag_bits(device: Device) -> dict[str, int]:
    return {"TAG_BITS": device.width(_PORT, "tag"), "QUANTIZER_BITS": device.width(_PORT, "tag", "quantizer")}
