"""Jobs for the control alone: random and impossible ones, how they are started, and what the data path is told of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cdu.words import How, JobEvents, PortEvents, Quantizer
from cdu_spec.coding import ShiftCoding
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Coder, Mode
from cdu_spec.mx import MX_FORMATS, ScaleRule
from cdu_spec.reconstruction import MAX_POINT, STEP_POINTS
from cdu_spec.register_types import COUNT_BITS, REGISTER_BITS, Channel, ScaleSource

from cdu_verif.benches.control_bench import ControlBench, DataPath
from cdu_verif.content.payloads import quantizer
from cdu_verif.content.tensors import affine_settings, mx_settings
from cdu_verif.simulation.bench import simulated_config

ALL_ONES = (1 << REGISTER_BITS) - 1
#: Errors that a data path reports as events.
EVENTS = tuple(JobEvents().members)
#: Errors that are found at the ports.
PORT_EVENTS = tuple(PortEvents().members)
#: Whether the unit has shift tables.
HAS_TABLES = Mode.JPEG_ACT in simulated_config().built_modes
#: Patterns by which the register port is stalled.
BUS_PATTERNS = ["full_rate", "coins", "stalls"]


def random_job(bench: ControlBench, mode: Mode | None = None) -> dict[str, Any]:
    """Return the registers of a random good job."""
    rng = bench.rng
    mode = mode or rng.choice(bench.config.built_modes)
    shape = (rng.randint(1, 3), rng.randint(1, 7), rng.randint(1, 40), rng.choice([1, 7, 8, 9, 33, 250, 100_003]))
    view = MatrixView.of(shape, mode)
    settings = affine_settings(rng, mode) if mode.is_affine else None
    mx = mx_settings(rng) if mode is Mode.MX else None
    least, most = view.payload_bounds(bench.config.dtype, settings or mx)
    coder, point = Coder.ZVC, 0
    if mode is Mode.JPEG_ACT and bench.config.has_gmc:
        coder, point = rng.choice(bench.config.built_coders), rng.randint(0, MAX_POINT)
        least, most = view.payload_bounds(bench.config.dtype, ShiftCoding(coder, point))
    return {
        "mode": int(mode),
        "bank": rng.randint(0, 1) if mode.has_dct else 0,
        "quantizer": quantizer(settings),
        "format": mx.kind.number if mx else 0,
        "rule": int(mx.rule is ScaleRule.RCEIL) if mx else 0,
        "coder": coder,
        "point": point,
        "seed": settings.seed if settings else 0,
        "beats": view.beats,
        "row_beats": view.row_beats,
        "channel_rows": view.channel_rows,
        "payload": rng.choice([0, least, most, rng.randint(least, most)]),
        "scales": int(rng.choice(list(ScaleSource))),
        "least": least,
        "most": most,
    }


def spoil(bench: ControlBench, channel: Channel, job: dict[str, Any]) -> set[str]:
    """Make a job impossible in one way, and return the errors that report it."""
    rng, mode = bench.rng, Mode(job["mode"])
    ways = ["mode", "zero", "beyond", "source"]
    if not mode.in_tiles and mode.whole_beats > 1:
        ways.append("part")
    if mode is Mode.MX:
        ways.append("format")
    if mode.in_tiles:
        ways.append("strip")
    if mode.is_affine:
        ways += ["step", "statistics"]
    if mode is Mode.JPEG_ACT and bench.config.has_gmc and channel is Channel.DECOMPRESS:
        ways.append("point")
    if channel is Channel.DECOMPRESS:
        ways += ["short", "long", "wide"]
    way = rng.choice(ways)
    if way == "mode":
        job["mode"] = rng.choice([number for number in range(16) if number not in [int(m) for m in bench.config.built_modes]])
    elif way == "zero":
        job[rng.choice(["beats", "row_beats", "channel_rows"])] = 0
    elif way == "beyond":
        job[rng.choice(["beats", "row_beats", "channel_rows"])] |= 1 << rng.randrange(COUNT_BITS, REGISTER_BITS)
    elif way == "source":
        job["scales"] = len(ScaleSource)
    elif way == "step":
        job["quantizer"] |= {"bits_log2": 3, "step_log2": rng.randint(9, 15)}
    elif way == "statistics":  # of a mode without statistics, or for decompression
        job["quantizer"] |= {"statistics": 1, "block_range": 1}
    elif way == "point":
        job["point"] = rng.randint(MAX_POINT + 1, STEP_POINTS - 1)
    elif way == "part":
        job["beats"] += rng.randint(1, mode.whole_beats - 1)
    elif way == "format":
        job["format"] = rng.randint(len(MX_FORMATS), 7)
    elif way == "strip":
        job["row_beats"] = rng.randint(2, 1 << 15)
        job["beats"] = 8 * (job["row_beats"] * rng.randint(1, 200) + rng.choice([1, job["row_beats"] - 1]))
    else:
        job["payload"] = {"short": job["least"] - 1, "long": job["most"] + 1, "wide": job["most"] + (1 << 40)}[way]
        # A payload of length 1 becomes one of unknown length, 0
        return {"bad_length"} if job["payload"] else set()
    return {"bad_job"}


async def program(bench: ControlBench, channel: Channel, job: dict[str, Any]) -> None:
    """Write the registers of a job."""
    await bench.write("MODE", channel, mode=job["mode"], bank=job["bank"], scales=job.get("scales", 0))
    for name in ("beats", "row_beats", "channel_rows"):
        await bench.write(name.upper(), channel, value=job[name])
    if bench.config.has_affine:
        fields = dict(job["quantizer"])
        await bench.write("QUANTIZER", channel, range=fields.pop("block_range"), **fields)
        if channel is Channel.COMPRESS:
            await bench.write("SEED", channel, value=job["seed"])
        else:
            job["seed"] = 0
    if bench.config.has_gmc:
        await bench.write("CODING", channel, coder=job["coder"], point=job["point"])
    if bench.config.has_mx:
        await bench.write("MX_CODING", channel, format=job["format"], rule=job["rule"])
    if channel is Channel.DECOMPRESS:
        await bench.write("PAYLOAD_BYTES_LOW", channel, value=job["payload"] & ALL_ONES)
        await bench.write("PAYLOAD_BYTES_HIGH", channel, value=job["payload"] >> REGISTER_BITS)


async def start(bench: ControlBench, channel: Channel, job: dict[str, Any]) -> set[str]:
    """Program and start a job, and return the errors that this sets."""
    await program(bench, channel, job)
    await bench.command(channel, "start")
    return await bench.take_errors(channel)


def descriptor_of(channel: Channel, job: dict[str, Any]) -> dict[str, Any]:
    names = ("mode", "bank", "beats", "row_beats", "channel_rows", "seed")
    how: dict[str, Any] = {"affine": job["quantizer"]}
    if job["mode"] == Mode.JPEG_ACT:
        how = {"shifts": {"coder": job["coder"], "point": job["point"] if channel is Channel.DECOMPRESS else 0}}
    if job["mode"] == Mode.MX:
        how = {"mx": {"format": job["format"], "rceil": job["rule"]}}
    # In the form of :func:`cdu_spec.port_fields.unpack`: the widest field of the union.
    union: Any = How()
    widest: Any = Quantizer().from_bits(union.const(how).as_bits())
    return {**{name: job[name] for name in names}, "how": {"affine": {name: int(widest[name]) for name, _ in Quantizer()}}}


def told_of(channel: Channel, job: dict[str, Any]) -> dict[str, Any]:
    """Return the description of a job for the checks of its scales and of its payload."""
    mode, payload = Mode(job["mode"]), job["payload"]
    order = {"source": job["scales"], "affine": int(mode.is_affine)}
    told: dict[str, Any] = {"scaled": int(mode.has_scales), "scale_order": order}
    if channel is Channel.DECOMPRESS:
        told["expected_length"] = {"length": payload & ALL_ONES, "known": int(payload > 0)}
    return told


def taken(path: DataPath, count: int = 1) -> Callable[[], bool]:
    return lambda: len(path.jobs.received) >= count


def happen(path: DataPath, flags: set[str]) -> None:
    """Raise these errors in the next cycle."""
    groups = {"events": EVENTS, "port_events": PORT_EVENTS}
    path.pulse(**{group: {name: int(name in flags) for name in names} for group, names in groups.items()})
