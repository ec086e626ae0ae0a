"""Proofs of ZVC: the slices and the rows of a block are those of the format for its input.

A freely chosen value is followed through the block's registers, each of which has an invariant about it.
"""

from __future__ import annotations

from functools import partial

from cdu.delivery.blocks import only
from cdu_spec.config import CduConfig
from cdu_spec.geometry import LANES, VALUE_BITS
from cdu_spec.modes import Mode

from cdu_verif.formal import promises
from cdu_verif.formal.binding import concat, fields, instance
from cdu_verif.formal.device import BoundDevice
from cdu_verif.formal.proof import Property
from cdu_verif.formal.properties import probed
from cdu_verif.formal.solver import INDUCTION, Sby
from cdu_verif.formal.stream_rules import with_assumptions

#: The configuration that these blocks are built for.
BUILT = partial(only, mode=Mode.SFPR_ZVC)

_HANDSHAKES = {f"{stream}_{role}": f"{stream}__{role}" for stream in "io" for role in ("valid", "ready")}
#: Registers of the encoder with other names in ``harness/zvc_encoder_rules.sv``.
_TAKEN = {"valid": "taken", "ends": "taken_ends", "zvc": "taken_zvc", "end": "fill"}


def encoder_content(config: CduConfig) -> Property:
    """Return the property that ``zvc_encoder`` gives the right slices."""
    size = BUILT(config).block_bytes
    stored = {f"byte{group}_{byte}": VALUE_BITS for group in range(size // LANES) for byte in range(LANES)}
    taken = {"valid": 1, "ends": 1, "zvc": 1, "kept_bytes": 64, "kept_count": 4, "row_mask": 8}
    added = {"full": 1, "number": 3, "end": size.bit_length(), "rows": 4}
    sent = {"leaving": 8 * size, "left": size.bit_length()}

    def harness(device: BoundDevice) -> str:
        width = BUILT(config).slice_bytes
        ports = {
            **{_TAKEN.get(name, name): f"inner_{name}" for name in taken | added | sent},
            "block": concat([f"inner_{name}" for name in stored]),
            **fields(device, "i__payload", "ends", "values"),
            **fields(device, "o__payload", "data", "count", "ends", "rows"),
        }
        parameters = {"SLICE_BYTES": width, "COUNT_BITS": width.bit_length()}
        return _harness(device, promises.rows(BUILT)(device, config), "zvc_encoder_rules", parameters, ports)

    return Property(
        "zvc_encoder",
        "content",
        "Slices of a block are the mask of its values that are not zero, and these, in their order.",
        partial(probed, "zvc_encoder", config, taken | added | sent | stored),
        Sby(INDUCTION, 1, harness),
    )


def decoder_content(config: CduConfig) -> Property:
    """Return the property that ``zvc_decoder`` gives the right rows."""
    size, width = BUILT(config).block_bytes, BUILT(config).slice_bytes
    slices = -(-size // width)
    counted = {"number": (slices - 1).bit_length()} if slices > 1 else {}
    collected = counted | {"full": 1, "rows": 4, "collected": 8 * size}
    read = {"valid": 1, "left": 4, "block": 8 * size, "masks": 64, "place": size.bit_length()}

    def harness(device: BoundDevice) -> str:
        begin, bits = device.offset("i__payload", "tag", "mode"), device.width("i__payload", "tag", "mode")
        mode = f"[{begin - device.offset('i__payload', 'tag')} +: {bits}]"
        ports = {
            **({} if counted else {"number": "3'd0"}),
            **{name: f"inner_{name}" for name in collected | read},
            **{"collected_mode": f"inner_collected_tag{mode}", "mode": f"inner_tag{mode}"},
            **fields(device, "i__payload", "data", "ends"),
            **fields(device, "o__payload", "values", "ends"),
        }
        parameters = {"SLICE_BYTES": width, "SLICES": slices, "MODE": Mode.SFPR_ZVC}
        return _harness(device, promises.slices(BUILT)(device, config), "zvc_decoder_rules", parameters, ports)

    def made() -> BoundDevice:
        tag = probed("zvc_decoder", config, {}).width("i__payload", "tag")
        return probed("zvc_decoder", config, collected | read | {"collected_tag": tag, "tag": tag})

    return Property(
        "zvc_decoder",
        "content",
        "Rows of a block are the bytes behind its mask where that has bits, and zeros elsewhere.",
        made,
        Sby(INDUCTION, 1, harness),
    )


def _harness(device: BoundDevice, promised: str, module: str, parameters: dict[str, int], ports: dict[str, str]) -> str:
    return with_assumptions(device, promised + instance(module, parameters, {**_HANDSHAKES, **ports}))
