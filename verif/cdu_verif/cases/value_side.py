"""Cases of both ends of the value side: values and scales to words for the alignment buffer, and back."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import torch
from actcodec.backends.job import DTYPES
from actcodec.golden import blocks as arrangement
from actcodec.golden.affine import Ranges
from actcodec.golden.sfpr import inverse_sfpr, sfpr, sfpr16
from cdu_spec.affine import BASE_BITS, GROUP_VALUES, AffineSettings
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, LANES, TILE_BLOCKS, VALUE_BITS
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Dtype, Mode
from cdu_spec.mx import MxSettings
from cdu_spec.port_fields import pack
from torch import Tensor

from cdu_verif.cases.affine_dequantizer import decoded, random_ranges, range_fields
from cdu_verif.cases.block_streams import random_settings
from cdu_verif.cases.case import Case
from cdu_verif.cases.jobs import JobCases
from cdu_verif.cases.sfpr import random_scales
from cdu_verif.cases.value_jobs import ValueJob, beat_offsets, beat_scales, blocks_of_beats, blockwise, random_view
from cdu_verif.content.payloads import bit_patterns, scaling
from cdu_verif.content.tensors import mx_settings
from cdu_verif.content.values import generator, integers
from cdu_verif.simulation.ports import Ports

#: Faults of the values or the scales of a job.
VALUE_FAULTS = ("ends_early", "partial_word", "goes_on", "count_too_great")
SCALE_FAULTS = ("missing", "surplus")
#: Number of jobs in a random case; number of cases with faults.
_RANDOM_JOBS, _BROKEN_CASES = 6, 6
#: Beats of a long job, for each block over which the rate is measured.
_LONG_BEATS = 64


@dataclass(frozen=True)
class _Word:
    """A word of P rows of bit patterns as it comes at a value port."""

    rows: list[list[int]]
    count: int
    last: bool


class _ValueSide(JobCases[ValueJob]):
    """Base of the cases of both ends."""

    blocks = (45, 45)
    rate_blocks = 72
    settling = 40
    event_ports = ("events", "scale_missing", "scale_surplus")
    #: Streams whose transfers are consecutive cycles if nothing stalls.
    steady_streams: tuple[str, ...]

    def modes(self, config: CduConfig) -> list[Mode]:
        """Return the modes whose jobs the end takes."""
        raise NotImplementedError

    def job(self, rng: Random, config: CduConfig, view: MatrixView) -> ValueJob:
        """Return a job with random content."""
        raise NotImplementedError

    def streams(self, config: CduConfig, ports: Ports, rng: Random, jobs: Sequence[ValueJob], faults: float) -> _Streams:
        """Return the streams of some jobs, a share ``faults`` of which is faulty."""
        raise NotImplementedError

    def case(
        self, config: CduConfig, ports: Ports, rng: Random, name: str, jobs: Sequence[ValueJob], faults: float = 0
    ) -> Case:
        """Return a case of :meth:`streams`, after which the unit is idle."""
        made = self.streams(config, ports, rng, jobs, faults)
        events = {event: count for event, count in made.events.items() if count}
        steady = tuple(stream for stream in self.steady_streams if f"{stream}__payload" in ports)
        return Case(name, made.inputs, made.expected, flags={"idle": 1}, events=events, steady=steady)

    def broken(self, config: CduConfig, ports: Ports, rng: Random) -> list[Case]:
        """Return cases with values and scales that are too short or too long in half of all jobs."""
        jobs = [self.random_jobs(config, rng, max(self.blocks)) for _ in range(_BROKEN_CASES)]
        return [self.case(config, ports, rng, "broken", found, faults=0.5) for found in jobs]

    def random_jobs(self, config: CduConfig, rng: Random, blocks: int) -> list[ValueJob]:
        """Return random jobs with at most ``blocks`` blocks together."""
        modes, size = self.modes(config), BLOCK_SIDE * blocks // _RANDOM_JOBS
        return [self.job(rng, config, random_view(rng, modes, max(size, 1))) for _ in range(_RANDOM_JOBS)]

    def corner_jobs(self, config: CduConfig, rng: Random) -> dict[str, list[ValueJob]]:
        """Return every width from 1 to 70, one row to 17; channels of every height; rows and jobs of every length."""
        modes = self.modes(config)
        views: dict[str, list[MatrixView]] = {}
        for mode in modes:
            if mode in (Mode.JPEG_ACT, Mode.DIVISION):
                views[f"{mode.label}_widths"] = [MatrixView.of((1, 1, 1, width), mode) for width in range(1, 71)]
                views[f"{mode.label}_heights"] = [MatrixView.of((1, 2, height, 9), mode) for height in range(1, 18)]
                views[f"{mode.label}_channels"] = [MatrixView.of((2, 7, height, 3), mode) for height in (1, 2, 3, 5, 8, 11)]
            if mode is Mode.ACTNN:
                views["actnn"] = [MatrixView.of((GROUP_VALUES * groups,), mode) for groups in (1, 2, 1, 5)]
            if not mode.in_tiles:
                views[mode.label] = [MatrixView.of((LANES * beats,), mode) for beats in range(1, 2 * BLOCK_SIDE + 2)]
                if mode.has_scales:
                    views[f"{mode.label}_rows"] = [
                        MatrixView(6, LANES * beats, 3, rows, mode) for beats in range(1, 10) for rows in (1, 2)
                    ]
        return {name: [self.job(rng, config, view) for view in found] for name, found in views.items()}

    def steady_jobs(self, config: CduConfig, rng: Random, blocks: int) -> dict[str, list[ValueJob]]:
        """Return three equal jobs each in which every scale serves at least as many beats as a word has, and long ones."""
        size = BLOCK_SIDE * blocks // 3
        shapes: dict[tuple[str, str], tuple[int, ...]] = {
            **{("jpeg-act", f"{width}_blocks"): (1, 2, 8 * (size // 8 // width + 1), 8 * width) for width in range(1, 10)},
            ("jpeg-act", "every_row"): (1, size // BLOCK_SIDE, 1, LANES * BLOCK_SIDE),
            ("sfpr", "words"): (1, size // 8, 8 * LANES),
            ("sfpr+zvc", "odd_rows"): (1, size // 11, 11 * LANES),
            ("division", "3_blocks"): (1, 2, 8 * (size // 8 // 3 + 1), 8 * 3),
            ("division", "5_blocks"): (1, 2, 8 * (size // 8 // 5 + 1), 8 * 5),
            ("actnn", "groups"): (LANES * size,),
            ("blpa", "words"): (1, size // 8, 8 * LANES),
            ("autoquant", "words"): (1, size // 8, 8 * LANES),
            ("autoquantz", "odd_rows"): (1, size // 11, 11 * LANES),
            ("brc", "sequence"): (LANES * size,),
            ("bypass", "sequence"): (LANES * size,),
        }
        return {
            f"{mode}_{name}": [self.job(rng, config, MatrixView.of(shape, Mode.from_label(mode))) for _ in range(3)]
            for (mode, name), shape in shapes.items()
            if Mode.from_label(mode) in self.modes(config)
        } | self._long_jobs(config, rng, _LONG_BEATS * blocks)

    def _long_jobs(self, config: CduConfig, rng: Random, beats: int) -> dict[str, list[ValueJob]]:
        """Return single jobs of a mode in tiles and of one without, in which a scale holds for a long row or for many rows."""
        views: dict[str, MatrixView] = {}
        scaled = [mode for mode in self.modes(config) if mode.has_scales and mode is not Mode.ACTNN]
        for mode in [mode for mode in scaled if not mode.in_tiles][:1]:
            views[f"{mode.label}_long_rows"] = MatrixView(2, LANES * beats, 2, 1, mode)
            views[f"{mode.label}_many_rows"] = MatrixView(beats // 2, LANES * config.port_beats, 2, beats // 4, mode)
        for mode in [mode for mode in scaled if mode.in_tiles][:1]:
            views[f"{mode.label}_long_rows"] = MatrixView.of((1, 2, BLOCK_SIDE, LANES * beats // 16), mode)
            views[f"{mode.label}_many_rows"] = MatrixView.of((1, 2, beats // 4, LANES), mode)
        return {name: [self.job(rng, config, view)] for name, view in views.items()}


def _int_words(ports: Ports, stream: str, job: ValueJob, beats: Tensor, rowwise: bool) -> list[int]:
    """Return words of int8 (:class:`cdu.words.TileWord` or ``BlockWord``) in the order of rows of tiles or of blocks."""
    port = dict(ports[f"{stream}__payload"])
    sizes = {entry["name"]: entry["count"] for entry in port["fields"]}
    per_word = sizes["values"] // LANES
    units = [
        (blocks, size // (1 if rowwise else blocks)) for blocks, size in job.tiles for _ in range(1 if rowwise else blocks)
    ]
    result, begin = [], 0
    for number, (blocks, size) in enumerate(units):
        for start in range(begin, begin + size, per_word):
            part = beats[start : min(start + per_word, begin + size)].flatten().tolist()
            fields: dict[str, Any] = {
                "values": part + [0] * (per_word * LANES - len(part)),
                "count": len(part) // LANES,
                "ends": int(start + per_word >= begin + size),
                "tag": job.tag(number == len(units) - 1),
            }
            if "range" in sizes and job.ranges is not None:
                fields["range"] = range_fields(job.ranges)[number]
            result.append(pack(port, fields | ({"blocks": blocks} if "blocks" in sizes else {})))
        begin += size
    return result


def _cut(patterns: list[list[int]], per_word: int) -> list[_Word]:
    """Return rows of bit patterns as words: all full but the last, which has ``last``."""
    words = []
    for start in range(0, len(patterns), per_word):
        part = patterns[start : start + per_word]
        behind = [[0] * LANES] * (per_word - len(part))
        words.append(_Word(part + behind, len(part), start + per_word >= len(patterns)))
    return words


def _float_words(ports: Ports, stream: str, words: Sequence[_Word], **beside: Any) -> list[int]:
    """Return payloads of :class:`cdu.words.ValueWord`, with zeros behind its rows, or of a stream with further fields."""
    port = dict(ports[f"{stream}__payload"])

    def values(word: _Word) -> list[int]:
        return [value if number < word.count else 0 for number, row in enumerate(word.rows) for value in row]

    return [pack(port, {"values": values(word), "count": word.count, "last": int(word.last), **beside}) for word in words]


@dataclass
class _Streams:
    """Payloads and events of a case under construction; of a scale's significand ``scale_bits`` bits are looked at."""

    ports: Ports
    scale_bits: int
    inputs: dict[str, list[int]] = field(default_factory=dict)
    expected: dict[str, list[int]] = field(default_factory=dict)
    events: Counter[str] = field(default_factory=Counter)

    def send(self, stream: str, words: list[int]) -> None:
        self.inputs.setdefault(stream, []).extend(words)

    def expect(self, stream: str, words: list[int]) -> None:
        self.expected.setdefault(stream, []).extend(words)

    def begin(self, rng: Random, job: ValueJob, faults: float) -> tuple[Tensor, Tensor]:
        """Send the descriptor and the scales of a job; return the scales and the offsets that take effect."""
        self.send("job", [pack(dict(self.ports["job__payload"]), job.descriptor)])
        if not job.view.mode.has_scales:
            return torch.ones_like(job.scales), job.offsets
        given, scales, offsets = len(job.scales), job.scales, job.offsets
        sent_offsets = offsets.tolist()
        fault = rng.choice(SCALE_FAULTS) if rng.random() < faults else ""
        unread = Dtype.FP32.fraction_bits + 1 - self.scale_bits
        sent = [pattern | rng.getrandbits(unread) for pattern in bit_patterns(scales).tolist()]
        if fault == "missing" and given > 1:
            kept = rng.randrange(1, given)
            scales = torch.where(torch.arange(given) < kept, scales, torch.ones_like(scales))
            offsets = torch.where(torch.arange(given) < kept, offsets, torch.zeros_like(offsets))
            sent = sent[:kept]
            self.events["scale_missing"] += given - kept
        elif fault == "surplus":
            sent += [rng.getrandbits(31) for _ in range(rng.randint(1, 5))]
            self.events["scale_surplus"] += 1
        port = dict(self.ports["scales__payload"])
        sent_offsets += [0] * (len(sent) - given)
        self.send(
            "scales",
            [
                pack(port, {"value": value, "offset": offset, "last": int(number == len(sent) - 1)})
                for number, (value, offset) in enumerate(zip(sent, sent_offsets, strict=False))
            ],
        )
        return scales, offsets


class _Front(_ValueSide):
    steady_streams = ("i",)

    def modes(self, config: CduConfig) -> list[Mode]:
        """Return all built modes."""
        return list(config.built_modes)

    def job(self, rng: Random, config: CduConfig, view: MatrixView) -> ValueJob:
        """Return values near the working range, sometimes with some infinite or NaN, or all of them exact results or ties."""
        values = torch.randn(view.rows, view.columns, generator=generator(rng))
        usual = (3, 16 if view.mode.is_affine else 8)
        scales = _scales(rng, config.scale_bits, view, usual, (-20, 20))
        if rng.random() < 0.3:
            scales = torch.full_like(scales, 2.0 ** rng.randint(3, 8))
            values = integers(rng, -264, 264, view.rows, view.columns) / (2 * scales[0])
        if rng.random() < 0.3:
            # One of them, or so many that some come in every situation.
            odd = torch.rand(values.shape, generator=generator(rng)) < rng.choice((0, 0.2))
            odd[rng.randrange(view.rows), rng.randrange(view.columns)] = True
            kinds = torch.tensor([math.inf, -math.inf, math.nan])
            values = torch.where(odd, kinds[integers(rng, 0, 2, *values.shape)], values)
        beats = arrangement.to_beats(arrangement.padded(values.to(DTYPES[config.dtype]), view), view)
        how = mx_settings(rng) if view.mode is Mode.MX else random_settings(rng, view.mode)
        offsets = _random_offsets(rng, view)
        return ValueJob(view, rng.randint(0, 1), beats, scales, how, offsets)

    def streams(self, config: CduConfig, ports: Ports, rng: Random, jobs: Sequence[ValueJob], faults: float) -> _Streams:
        """Return the streams with values in, words for the alignment buffer out."""
        streams = _Streams(ports, config.scale_bits)
        for job in jobs:
            scales, offsets = streams.begin(rng, job, faults)
            words = _cut(bit_patterns(job.values).tolist(), config.port_beats)
            if rng.random() < faults:
                words = _spoilt(rng, words, config.port_beats)
            streams.send("i", _float_words(ports, "i", words))
            patterns = _as_received(words, job.view.beats, config.port_beats, streams.events)
            if job.view.mode is Mode.BYPASS:
                streams.expect("raw", _float_words(ports, "raw", _cut(patterns, config.port_beats)))
                continue
            if isinstance(job.how, MxSettings):
                words = _cut(patterns, config.port_beats)
                streams.expect("mx", _float_words(ports, "mx", words, scaling=scaling(job.how)))
                continue
            values = _from_patterns(patterns, config)
            binary = job.view.mode is Mode.BRC
            if job.view.mode.is_affine:
                subtracted = beat_offsets(job, offsets) if job.view.mode.has_offsets else None
                quantized = sfpr16(values, beat_scales(job, scales), subtracted)
            else:
                quantized = (values > 0).to(torch.int8) if binary else sfpr(values, beat_scales(job, scales))
            streams.expect("to_alignment", _int_words(ports, "to_alignment", job, quantized, rowwise=True))
            odd = (~values.float().isfinite()).any(1).tolist()
            starts = range(0, len(odd), config.port_beats)
            streams.events["nonfinite"] += sum(any(odd[start : start + config.port_beats]) for start in starts)
        return streams


def _from_patterns(patterns: list[list[int]], config: CduConfig) -> Tensor:
    """Return values of the configuration's format with these bits."""
    bits = config.dtype.bits
    raw = torch.tensor(patterns)
    signed = torch.where(raw >= 1 << (bits - 1), raw - (1 << bits), raw)
    return signed.to({32: torch.int32, 16: torch.int16}[bits]).view(DTYPES[config.dtype])


def _spoilt(rng: Random, words: list[_Word], per_word: int) -> list[_Word]:
    """Return the words of a job with one fault."""

    def noise(count: int, last: bool) -> _Word:
        return _Word([[rng.getrandbits(14) for _ in range(LANES)] for _ in range(per_word)], count, last)

    fault = rng.choice(VALUE_FAULTS)
    place = rng.randrange(len(words))
    word, final = words[place], words[-1]
    if fault == "ends_early":
        return [*words[:place], _Word(word.rows, rng.randint(0, word.count), True)]
    if fault == "partial_word":
        return [*words[:place], _Word(word.rows, rng.randint(0, word.count), word.last), *words[place + 1 :]]
    if fault == "goes_on":
        more = [noise(per_word, False) for _ in range(rng.randint(0, 3))]
        return [*words[:-1], _Word(final.rows, final.count, False), *more, noise(rng.randint(0, per_word), True)]
    rows = final.rows[: final.count] + noise(per_word, True).rows[final.count :]
    return [*words[:-1], _Word(rows, per_word, True)]


def _as_received(words: Sequence[_Word], beats: int, per_word: int, events: Counter[str]) -> list[list[int]]:
    """Return the rows that a job of ``beats`` makes of its input: as many words as it has, zeros for missing ones."""
    rows: list[list[int]] = []
    coming = iter(words)
    ended = False
    while len(rows) < beats:
        wanted = min(per_word, beats - len(rows))
        final = len(rows) + wanted == beats
        if ended:
            rows += [[0] * LANES] * wanted
            continue
        word = next(coming)
        there = min(wanted, word.count)
        rows += word.rows[:there] + [[0] * LANES] * (wanted - there)
        events["early_last"] += word.count < wanted or (word.last and not final)
        events["late_last"] += word.count > wanted or (final and not word.last)
        ended = word.last
    return rows


def _integers(job: ValueJob, offsets: Tensor) -> Tensor:
    """Return the integers of a job's int8 values or codes with these offsets of the channels, (beats, 8)."""
    if not isinstance(job.how, AffineSettings) or job.ranges is None:
        return job.values
    blocks = blocks_of_beats(job.view)
    if job.view.mode is Mode.ACTNN:
        blocks = blocks // TILE_BLOCKS * TILE_BLOCKS
    ranges = Ranges(*(part[blocks] for part in (job.ranges.low, job.ranges.mantissa, job.ranges.exponent)))
    added = beat_offsets(job, offsets) if job.view.mode.has_offsets else torch.zeros_like(ranges.low)
    return decoded(job.view.mode, job.how, job.values.view(torch.uint8), ranges, added)


def _scales(rng: Random, bits: int, view: MatrixView, usual: tuple[int, int], any_of: tuple[int, int]) -> Tensor:
    """Return the scales of a job, with exponents near the working range or anywhere."""
    low, high = any_of if rng.random() < 0.3 else usual
    return random_scales(rng, bits, view.scale_groups, low, high)


def _random_offsets(rng: Random, view: MatrixView) -> Tensor:
    return integers(rng, -(1 << (BASE_BITS - 1)), (1 << (BASE_BITS - 1)) - 1, view.scale_groups).to(torch.int16)


class _Back(_ValueSide):
    steady_streams = ("from_alignment", "o")

    def modes(self, config: CduConfig) -> list[Mode]:
        """Return all modes that pass the CDUs."""
        return [mode for mode in config.built_modes if mode not in (Mode.BYPASS, Mode.MX)]

    def job(self, rng: Random, config: CduConfig, view: MatrixView) -> ValueJob:
        """Return a job of any values, with reciprocals."""
        settings = random_settings(rng, view.mode)
        low, high = (0, 1) if view.mode is Mode.BRC else (0, settings.levels) if settings else (-128, 127)
        values = integers(rng, low, high, view.beats, LANES).to(torch.uint8).view(torch.int8)
        return ValueJob(
            view,
            rng.randint(0, 1),
            values,
            _scales(rng, config.used_reciprocal_bits, view, (-9, -2), (-30, 18)),
            settings,
            _random_offsets(rng, view),
            random_ranges(rng, settings.bits if settings else VALUE_BITS, -(-view.beats // BLOCK_SIDE)),
        )

    def streams(self, config: CduConfig, ports: Ports, rng: Random, jobs: Sequence[ValueJob], faults: float) -> _Streams:
        """Return the streams with blocks in, through the alignment buffer to values."""
        streams = _Streams(ports, config.used_reciprocal_bits)
        for job in jobs:
            scales, offsets = streams.begin(rng, job, faults)
            blocks = blockwise(job, job.values)
            streams.send("i", _int_words(ports, "i", job, blocks, rowwise=False))
            if "to_alignment__payload" in ports:
                streams.expect("to_alignment", _int_words(ports, "to_alignment", job, blocks, rowwise=False))
                streams.send("from_alignment", _int_words(ports, "from_alignment", job, job.values, rowwise=True))
            dtype = DTYPES[config.dtype]
            binary = job.view.mode is Mode.BRC
            integers = _integers(job, offsets)
            values = integers.to(dtype) if binary else inverse_sfpr(integers, beat_scales(job, scales)).to(dtype)
            streams.expect("o", _float_words(ports, "o", _cut(bit_patterns(values).tolist(), config.port_beats)))
        return streams


VALUE_FRONT, VALUE_BACK = _Front(), _Back()
