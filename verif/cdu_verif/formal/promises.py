"""Assumptions about the inputs of a block beyond the stream rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cdu.quantizers.div_quantizer import DIVISOR_BITS
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_VALUES
from cdu_spec.modes import Mode

from cdu_verif.formal.binding import fields, instance, mask
from cdu_verif.formal.device import BoundDevice

#: Makes the assumptions for a device that is a block of a configuration.
Promise = Callable[[BoundDevice, CduConfig], str]
#: Returns the configuration that a block is built for, from the given one: ``cdu.delivery.blocks``.
Built = Callable[[CduConfig], CduConfig]

_PORT = "i__payload"
_HANDSHAKE = {"i_valid": "i__valid", "i_ready": "i__ready"}


def tags(built: Built = lambda config: config) -> Promise:
    """Return the promise that tags at all inputs are those of built modes (``harness/promised_tag.sv``)."""

    def assumptions(device: BoundDevice, config: CduConfig) -> str:
        own = built(config)
        settings = [mode for mode in own.built_modes if mode.is_affine or (mode is Mode.JPEG_ACT and own.has_gmc)]
        modes = {"MODES": mask(own.built_modes), "SETTINGS": mask(settings)}
        return "".join(
            instance(
                "promised_tag",
                {**modes, "QUANTIZER_BITS": device.width(port["name"], "tag", "how")},
                {
                    "valid": port["name"].replace("__payload", "__valid"),
                    **{name: device.field(port["name"], "tag", name) for name in ("mode", "heads")},
                    "quantizer": device.field(port["name"], "tag", "how"),
                },
                f"tag_of_{port['name']}",
            )
            for port in device.ports
            if port["direction"] == "input" and _has_tag(port)
        )

    return assumptions


def rows(built: Built) -> Promise:
    """Return the promise that inputs are rows of blocks (``harness/promised_rows.sv``), with tags."""

    def assumptions(device: BoundDevice, config: CduConfig) -> str:
        modes = built(config).packed_modes
        parameters = {
            "WHOLE": mask(mode for mode in modes if mode.has_zvc or mode.in_tiles),
            "BINARY": mask(mode for mode in modes if mode is Mode.BRC),
            "TAG_BITS": device.width(_PORT, "tag"),
        }
        ports = {**_HANDSHAKE, **fields(device, _PORT, "ends", "values", "tag", "tag.mode")}
        return tags(built)(device, config) + instance("promised_rows", parameters, ports)

    return assumptions


def slices(built: Built) -> Promise:
    """Return the promise that inputs are slices of packed blocks (``harness/promised_slices.sv``), with tags."""

    def assumptions(device: BoundDevice, config: CduConfig) -> str:
        own = built(config)
        parameters = {
            "WHOLE": mask(mode for mode in own.packed_modes if mode.has_zvc or mode.in_tiles),
            "SLICE_BYTES": own.slice_bytes,
            "SLICES": -(-own.block_bytes // own.slice_bytes),
            "COUNT_BITS": device.width(_PORT, "count"),
            "TAG_BITS": device.width(_PORT, "tag"),
        }
        ports = {**_HANDSHAKE, **fields(device, _PORT, "ends", "count", "rows", "tag", "tag.mode")}
        return tags(built)(device, config) + instance("promised_slices", parameters, ports)

    return assumptions


def divisors(device: BoundDevice, config: CduConfig) -> str:
    """Return the assumption that no divisor is 0 (``harness/promised_divisors.sv``)."""
    return instance("promised_divisors", {"ENTRIES": BLOCK_VALUES, "DIVISOR_BITS": DIVISOR_BITS}, {})


def _has_tag(port: Mapping[str, Any]) -> bool:
    return any(field["name"] == "tag" for field in port.get("fields", []))
