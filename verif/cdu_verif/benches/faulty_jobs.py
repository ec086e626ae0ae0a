"""Jobs at the ports of a unit, each with one fault."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

from cdu_spec.config import CduConfig
from cdu_spec.geometry import LANES
from cdu_spec.modes import RANGE_BYTES, Mode
from cdu_spec.ports import scale_port_bytes
from cdu_spec.register_types import Channel

from cdu_verif.benches.array_bench import ArrayBench, input_of, job_of
from cdu_verif.cases.crc import crc_of
from cdu_verif.content.tensors import TABLES, Exchange, exchange
from cdu_verif.simulation.axi_ports import Word, words_of

#: A NaN by format.
_NAN = {"fp32": b"\x00\x00\xc0\x7f", "bf16": b"\xc0\x7f", "fp16": b"\x00\x7e"}


@dataclass
class PortJob:
    """Registers of a job, and the packets at its ports."""

    channel: Channel
    item: Exchange
    data: bytes
    scales: bytes
    told: int = 0  #: bytes of the payload in the registers, 0: unknown
    crc: bool = False
    keeps: dict[int, int] = field(default_factory=dict)  #: TKEEP of words of the data by number
    scale_keeps: dict[int, int] = field(default_factory=dict)
    flag: str = ""  #: error that the job raises
    came: int = 0  #: bytes of the result, without its CRC

    def feed(self, bench: ArrayBench) -> None:
        """Queue everything at the ports."""
        if job_of(self.channel, self.item).mode.has_scales:
            bench.scales[self.channel].send_words(_words(self.scales, bench.scales[self.channel].size, self.scale_keeps))
        bench.i[self.channel].send_words(_words(self.data, bench.i[self.channel].size, self.keeps))

    async def start(self, bench: ArrayBench) -> None:
        """Write the registers of the job."""
        if bench.config.payload_crc:
            await bench.write("PAYLOAD_CRC", self.channel, present=int(self.crc))
        await bench.program(self.channel, job_of(self.channel, self.item), payload_bytes=self.told)


def port_job(bench: ArrayBench, channel: Channel, mode: Mode) -> PortJob:
    """Return a small good job of a mode with one shift table, and several scales if it has any, apart from actnn."""
    rng = bench.rng
    shape = (2, rng.randint(1, 3), rng.randint(1, 9), rng.randint(LANES, 40))  # smaller maps have one scale
    item = exchange(bench.config, rng, shape, mode, rng.choice(("normal", "relu")), TABLES[:1])
    job, data = job_of(channel, item), input_of(channel, item)
    crc = bool(bench.config.payload_crc) and rng.random() < 0.5
    signs = crc and channel is Channel.DECOMPRESS
    scales = bench.scale_packet(job) if mode.has_scales else b""
    told = len(data) if channel is Channel.DECOMPRESS else 0
    return PortJob(channel, item, data + (crc_of(data) if signs else b""), scales, told, crc)


@dataclass(frozen=True)
class Fault:
    """A fault of jobs of certain modes: its effect on a job, and the error that reports it."""

    flag: str
    modes: Callable[[CduConfig], list[Mode]]
    spoil: Callable[[ArrayBench, PortJob], None]

    def job(self, bench: ArrayBench, channel: Channel) -> PortJob:
        """Return a job with the fault."""
        job = port_job(bench, channel, bench.rng.choice(self.modes(bench.config)))
        job.flag = self.flag
        self.spoil(bench, job)
        return job


def _cut(bench: ArrayBench, job: PortJob) -> None:
    unit = _unit(bench, job)
    job.data = job.data[: unit * bench.rng.randrange(len(job.data) // unit)]


def _prolong(bench: ArrayBench, job: PortJob) -> None:
    job.data += bytes(_unit(bench, job) * bench.rng.choice((1, 2, 9, 200)))


def _make_holes(bench: ArrayBench, job: PortJob) -> None:
    job.keeps = _hole(bench.rng, words_of(job.data, bench.i[job.channel].size))


def _make_holes_in_scales(bench: ArrayBench, job: PortJob) -> None:
    job.scale_keeps = _hole(bench.rng, words_of(job.scales, bench.scales[job.channel].size))


def _put_nan(bench: ArrayBench, job: PortJob) -> None:
    nan = _NAN[bench.config.value_format]
    place = len(nan) * bench.rng.randrange(len(job.data) // len(nan))
    job.data = job.data[:place] + nan + job.data[place + len(nan) :]


def _miss_scale(bench: ArrayBench, job: PortJob) -> None:
    job.scales = job.scales[: -scale_port_bytes(bench.config.has_offsets)]


def _add_scales(bench: ArrayBench, job: PortJob) -> None:
    job.scales += bench.rng.randint(1, 4) * job.scales[-scale_port_bytes(bench.config.has_offsets) :]


def _zero_scale(bench: ArrayBench, job: PortJob) -> None:
    size = scale_port_bytes(bench.config.has_offsets)
    place = size * bench.rng.randrange(len(job.scales) // size)
    job.scales = job.scales[:place] + bytes(size) + job.scales[place + size :]


def _lie(bench: ArrayBench, job: PortJob) -> None:
    """Tell a payload one byte shorter than its rows with masks, which have at least a byte each, could be."""
    job.told += 1 if job.told == job_of(job.channel, job.item).beats else -1


def _spoil_head(bench: ArrayBench, job: PortJob) -> None:
    job.data = bytes(RANGE_BYTES) + job.data[RANGE_BYTES:]


def _spoil_crc(bench: ArrayBench, job: PortJob) -> None:
    job.crc, job.data = True, job.data[: job.told] + bytes(byte ^ 0x10 for byte in crc_of(job.data[: job.told]))


def faults(config: CduConfig, channel: Channel) -> Mapping[str, Fault]:
    """Return all faults in a direction of a unit, by name."""

    def of(wanted: Callable[[Mode], bool]) -> Callable[[CduConfig], list[Mode]]:
        return lambda config: [mode for mode in config.built_modes if wanted(mode)]

    every, scaled, masked = of(lambda mode: True), of(lambda mode: mode.has_scales), of(lambda mode: mode.has_zvc)
    found = {
        "input too short": Fault("early_last", every, _cut),
        "input too long": Fault("late_last", every, _prolong),
        "hole in the data": Fault("keep", every, _make_holes),
        "scale missing": Fault("scale_missing", of(lambda mode: mode.has_scales and mode is not Mode.ACTNN), _miss_scale),
        "scales too many": Fault("scale_surplus", scaled, _add_scales),
        "scale of zero": Fault("bad_scale", scaled, _zero_scale),
        "hole in the scales": Fault("keep", scaled, _make_holes_in_scales),
    }
    if channel is Channel.COMPRESS:
        found["not finite"] = Fault("nonfinite", of(lambda mode: mode is not Mode.BYPASS), _put_nan)
    else:
        found["wrong length"] = Fault("payload_length", masked, _lie)
        found["wrong head"] = Fault("bad_head", of(lambda mode: mode is Mode.ACTNN), _spoil_head)
        found["wrong CRC"] = Fault("bad_crc", every if config.payload_crc else of(lambda mode: False), _spoil_crc)
    return {name: fault for name, fault in found.items() if fault.modes(config)}


def _unit(bench: ArrayBench, job: PortJob) -> int:
    """Return the bytes of which only whole ones are allowed: a row of values, a byte of payload."""
    return bench.config.beat_bits // 8 if job.channel is Channel.COMPRESS else 1


def _words(raw: bytes, size: int, keeps: Mapping[int, int]) -> list[Word]:
    words = words_of(raw, size) or [(0, 0)]
    return [(data, keeps.get(place, keep)) for place, (data, keep) in enumerate(words)]


def _hole(rng: Random, words: list[Word]) -> dict[int, int]:
    """Return a TKEEP for one of the words that lacks a byte before the last one; for a single byte, it is one place too far."""
    place = rng.randrange(len(words))
    _, keep = words[place]
    return {place: keep << 1 if keep == 1 else keep & ~(1 << rng.randrange(keep.bit_length() - 1))}
