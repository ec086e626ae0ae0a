"""Proofs of the splitter: its slices are the payload of every job, cut where its blocks end."""

from __future__ import annotations

from cdu.parts.mx_words import BLOCK_ROWS, FORMAT_BITS
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, LANES
from cdu_spec.modes import MASK_BYTES, Mode
from cdu_spec.mx import MX_FORMATS
from cdu_spec.register_types import COUNT_BITS

from cdu_verif.formal.binding import concat, fields, instance, lane_fields, mask, packed
from cdu_verif.formal.device import BoundDevice
from cdu_verif.formal.stream_rules import with_assumptions

#: Greatest number of beats of a job.
_MOST_BEATS = 31


def splitter_harness(config: CduConfig, device: BoundDevice, free_of_byte: int) -> str:
    """Return a harness: byte ``place`` of the payload of job ``number``, both chosen freely, is that of the job's slices.

    The bits of every byte that ``free_of_byte`` masks are free, the others are 0; bytes are followed by their first bit. Jobs
    have up to :data:`_MOST_BEATS` beats.
    """
    parameters = {
        "LANES": config.cdus,
        "SLICE_BYTES": config.slice_bytes,
        "WORD_BYTES": config.packed_bytes,
        "ROW_VALUES": LANES,
        "BLOCK_SIDE": BLOCK_SIDE,
        "MASK_BYTES": MASK_BYTES,
        "MODES": mask(mode for mode in config.built_modes if mode is not Mode.BYPASS),
        "ZVC_MODES": mask(mode for mode in config.built_modes if mode.has_zvc),
        "BRC": Mode.BRC,
        "BEATS_BITS": COUNT_BITS,
    }
    ports = {
        **fields(device, "i__payload", "data", "count", "last"),
        **fields(device, "job__payload", "mode", "bank", "beats"),
        **lane_fields(device, "o", config.cdus, "data", "count", "ends", "rows", "tag.mode", "tag.bank", "tag.last"),
    }
    free = {"i__payload": free_bits(device, "i__payload", free_of_byte), "job__payload": _small_jobs(device)}
    return with_assumptions(device, instance("splitter_order", parameters, ports), free)


def mx_harness(config: CduConfig, device: BoundDevice, free_of_byte: int) -> str:
    """Return :func:`splitter_harness` for jobs of mode mx, which leave past the lanes (``harness/splitter_mx.sv``)."""
    kinds = sorted(MX_FORMATS.values(), key=lambda kind: kind.number)
    parameters = {
        "SLICE_BYTES": config.slice_bytes,
        "WORD_BYTES": config.packed_bytes,
        "ROWS": config.mx_rows,
        "BLOCK_ROWS": BLOCK_ROWS,
        "MX": Mode.MX,
        "FORMATS": len(kinds),
        "FORMAT_BITS": FORMAT_BITS,
        "CODE_BITS": packed((kind.bits for kind in kinds), 4),
        "BEATS_BITS": COUNT_BITS,
        "LANES": config.cdus,
    }
    formats = {
        f"{stream}_format": f"{stream}__payload[{device.offset(f'{stream}__payload', *path)} +: {FORMAT_BITS}]"
        for stream, path in (("job", ("how",)), ("mx", ("tag", "how")))
    }
    ports = {
        **fields(device, "i__payload", "data", "count", "last"),
        **fields(device, "job__payload", "mode", "beats"),
        **fields(device, "mx__payload", "data", "count", "ends", "rows", "tag.mode", "tag.last", "tag.heads"),
        **formats,
        "o_valid": concat([f"o__{lane}__valid" for lane in range(config.cdus)]),
    }
    jobs = _small_jobs(device) | mask(range(FORMAT_BITS)) << device.offset("job__payload", "how")
    free = {"i__payload": free_bits(device, "i__payload", free_of_byte), "job__payload": jobs}
    return with_assumptions(device, instance("splitter_mx", parameters, ports), free)


def jobs_harness(device: BoundDevice) -> str:
    """Return a harness: jobs of any number of beats end with their last block, and the splitter is not idle before."""
    ports = {
        **fields(device, "job__payload", "beats"),
        **fields(device, "o__0__payload", "ends", "rows", "tag.last"),
        **{f"o_{role}": f"o__0__{role}" for role in ("valid", "ready")},
        **{f"job_{role}": f"job__{role}" for role in ("valid", "ready")},
    }
    ports = {name.replace("o__0_", "o_"): expression for name, expression in ports.items()}
    body = instance("splitter_jobs", {"BEATS_BITS": COUNT_BITS, "BLOCK_SIDE": BLOCK_SIDE}, ports)
    return with_assumptions(device, body, {"i__payload": free_bits(device, "i__payload", 0)})


def free_bits(device: BoundDevice, port: str, free_of_byte: int) -> int:
    """Return the mask of a payload: of every byte of ``data`` the bits of a mask, of the other fields all bits."""
    entry = next(entry for entry in device.ports if entry["name"] == port)
    found = next(part for part in entry["fields"] if part["name"] == "data")
    kept = sum(free_of_byte << place for place in range(0, found["width"], 8))
    return int(((1 << int(entry["width"])) - 1) ^ ((((1 << found["width"]) - 1) ^ kept) << found["offset"]))


def _small_jobs(device: BoundDevice) -> int:
    """Return the mask of the bits of a job that the splitter uses, of its beats only the lowest ones."""
    entry = next(entry for entry in device.ports if entry["name"] == "job__payload")
    fields = {field["name"]: field for field in entry["fields"]}
    free = {"mode": (1 << fields["mode"]["width"]) - 1, "bank": 1, "beats": _MOST_BEATS}
    return sum(mask << fields[name]["offset"] for name, mask in free.items())
