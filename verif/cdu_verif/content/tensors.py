"""Tensors and jobs for whole units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

import torch
from actcodec.backends.job import DTYPES, Job, beats_in, compression_job, decompression_job, payload_shifts
from actcodec.backends.torch_backend import TorchBackend
from actcodec.golden import dct, gmc, zvc
from actcodec.golden.blocks import by_channel, to_payload_order, untiled
from actcodec.golden.sfpr import scales
from cdu_spec import dqt
from cdu_spec.affine import BASE_BITS, CODE_BITS, RECIPROCAL_EXPONENT_LIMIT, SEED_BITS, AffineSettings
from cdu_spec.bitstream import Header
from cdu_spec.coding import How, ShiftCoding
from cdu_spec.config import CduConfig
from cdu_spec.geometry import BLOCK_SIDE, BLOCK_VALUES, VALUE_BITS
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Coder, Mode
from cdu_spec.mx import MX_FORMATS, MxSettings, ScaleRule
from cdu_spec.reconstruction import MAX_POINT
from cdu_spec.sfpr import PUBLISHED_S, SCALE_EXPONENT_LIMIT, VALUE_MAX, VALUE_MIN
from torch import Tensor

from cdu_verif.content.values import generator

#: DQT tables of jpeg-act jobs.
TABLES = ("optL", "optH", "image80", "image10")
KINDS = ("normal", "relu", "sparse", "smooth", "zeros", "extremes", "wild", "loud")


@dataclass(frozen=True)
class Exchange:
    """One tensor with its golden results.

    Parameters
    ----------
    compression, decompression
        Jobs of both halves, as the driver starts them.
    beats
        The tensor as it is fed, (beats, 8).
    payload
        Golden payload.
    restored
        Golden beats after decompression, (beats, 8), padding included.
    """

    name: str
    compression: Job
    decompression: Job
    beats: Tensor
    payload: bytes
    restored: Tensor


def tensor(rng: Random, shape: tuple[int, ...], kind: str, dtype: torch.dtype) -> Tensor:
    """Return values of one of KINDS: like activations, or unlike them."""
    source = generator(rng)
    x = torch.randn(shape, generator=source)
    if kind == "relu":
        x = x.clamp(min=0)
    elif kind == "sparse":
        x = x * (torch.rand(shape, generator=source) < 0.1)
    elif kind == "smooth":
        x = torch.linspace(-1, 1, x.numel()).reshape(shape) + 0.01 * x
    elif kind == "zeros":
        x = torch.zeros(shape)
    elif kind == "extremes":
        x = torch.where(x > 0, 1.0, -1.0) * float(torch.finfo(dtype).max)
    elif kind == "wild":
        x = x * 2.0 ** torch.randint(-140, 120, shape, generator=source).double()
        x = x.clamp(-torch.finfo(dtype).max, torch.finfo(dtype).max)
    elif kind == "loud":
        # A few values far above the others: most of the tensor becomes zero.
        x = torch.where(torch.rand(shape, generator=source) < 0.01, 1000 * x, x)
    return x.to(dtype)


def exchange(
    config: CduConfig,
    rng: Random,
    shape: tuple[int, ...],
    mode: Mode,
    kind: str,
    tables: Sequence[str] = TABLES,
    coder: Coder | None = None,
) -> Exchange:
    """Return a tensor with its jobs and golden results; any shape of the mode's rank, even if codecs use another mode for it.

    A jpeg-act job has one of the DQT ``tables``, and by default any coder that is built in.
    """
    return of_tensor(config, rng, tensor(rng, shape, kind, DTYPES[config.dtype]), mode, kind, tables, coder)


def of_tensor(
    config: CduConfig,
    rng: Random,
    x: Tensor,
    mode: Mode,
    kind: str = "given",
    tables: Sequence[str] = TABLES,
    coder: Coder | None = None,
    factors: Sequence[float] = (PUBLISHED_S, 1.0, 4.0),
    how: How = None,
) -> Exchange:
    """Return jobs and golden results of a given tensor, whose dtype is the configuration's.

    S of its scales is one of the ``factors``; ``tables`` and ``coder`` as in :func:`exchange`; default of ``how``: any
    settings.
    """
    form, shape = config.dtype, tuple(x.shape)
    view = MatrixView.of(shape, mode)
    if mode is Mode.BYPASS:
        beats = beats_in(x, view)
        job = compression_job(view, form, torch.zeros(0))
        raw = bytes(beats.view(torch.uint8).numpy().data)
        return Exchange(f"{mode.label} {shape} {kind}", job, job, beats, raw, beats)
    if not mode.has_scales:
        k = r = torch.zeros(0)
    else:
        k, r = scales(by_channel(x, view), rng.choice(list(factors)), config.scale_bits)
    precision: tuple[int, int] = (config.const_bits, config.pass1_bits) if mode.has_dct else (0, 0)
    shifts = payload_shifts(dqt.shifts(rng.choice(list(tables)))) if mode.has_dct else ()
    rounding = config.rounding_mode if mode.has_dct else None
    how, offsets = how or _any_how(config, rng, mode, coder), torch.zeros(0, dtype=torch.int16)
    if mode.is_affine:
        k, r = _wide_scales(k)
    if mode.has_offsets:
        reach = rng.choice((100, 1 << (BASE_BITS - 1)))
        offsets = torch.randint(-reach, reach, (view.channels,), generator=generator(rng)).to(torch.int16)
    beats = beats_in(x, view)
    job = compression_job(view, form, k, shifts, *precision, rounding, how, offsets)
    golden = TorchBackend()
    payload = golden.compress(job, beats)
    header = Header(mode, form, shape, payload.numel(), *precision, how)
    back = decompression_job(header, shifts, r, offsets)
    return Exchange(f"{mode.label} {shape} {kind}", job, back, beats, bytes(payload.tolist()), golden.decompress(back, payload))


def first_pass(item: Exchange) -> Exchange:
    """Return the statistics of a tensor of mode division, which is only compressed to them: nothing is restored."""
    job = replace(item.compression, how=AffineSettings(statistics=True))
    payload = bytes(TorchBackend().compress(job, item.beats).tolist())
    return replace(item, name=f"{item.name}, statistics", compression=job, payload=payload, restored=item.beats[:0])


def _any_how(config: CduConfig, rng: Random, mode: Mode, coder: Coder | None) -> How:
    """Return any settings that a mode takes in a unit of this configuration, with the given coder of jpeg-act if any."""
    if mode.is_affine:
        return affine_settings(rng, mode)
    if mode is Mode.MX:
        return mx_settings(rng)
    if not mode.has_dct:
        return None
    if not config.has_gmc:
        return ShiftCoding(coder or Coder.ZVC)
    return ShiftCoding(rng.choice(config.built_coders) if coder is None else coder, rng.randint(0, MAX_POINT))


def affine_settings(rng: Random, mode: Mode) -> AffineSettings:
    """Return any settings that a mode takes."""
    bits = rng.choice(CODE_BITS)
    block_range = mode is Mode.DIVISION and rng.random() < 0.5
    found = mode is Mode.ACTNN or block_range
    least = 1 if mode is Mode.DIVISION else 0
    step = 0 if found else rng.randint(least, BASE_BITS - bits)
    return AffineSettings(bits, step, rng.random() < 0.7, block_range, rng.getrandbits(SEED_BITS))


def mx_settings(rng: Random) -> MxSettings:
    """Return any format and rule of mode mx."""
    return MxSettings(rng.choice(list(MX_FORMATS)), rng.choice(list(ScaleRule)))


def _wide_scales(k: Tensor) -> tuple[Tensor, Tensor]:
    """Return multipliers to int16 from those to int8, and their reciprocals."""
    least = 2.0**-RECIPROCAL_EXPONENT_LIMIT
    wide = (k.to(torch.float64) * (1 << (BASE_BITS - VALUE_BITS))).clamp(least, 2.0**SCALE_EXPONENT_LIMIT)
    return wide.to(torch.float32), (1 / wide).to(torch.float32)


def shapes(rng: Random, full: bool) -> list[tuple[int, int, int, int]]:
    """Return odd shapes: a single value, every width up to 70 (a sample unless ``full``), single rows, odd heights."""
    found = [(1, 1, 1, 1), (2, 3, 7, 9), (1, 1, 8, 32), (1, 3, 1, 70), (3, 2, 7, 33), (1, 20, 2, 8), (2, 1, 16, 64)]
    widths = range(1, 71) if full else sorted(rng.sample(range(1, 71), 8))
    found += [(rng.randint(1, 2), rng.randint(1, 3), rng.randint(1, 9), width) for width in widths]
    return found


def incompressible(config: CduConfig, rng: Random, shape: tuple[int, ...], coder: Coder = Coder.ZVC) -> Exchange:
    """A jpeg-act job with 64 non-zero coefficients in every block: the golden inverse of such coefficients."""
    view = MatrixView.of(shape, Mode.JPEG_ACT)
    bits = (config.const_bits, config.pass1_bits)
    signs = torch.tensor([rng.choice((-1, 1)) for _ in range(view.blocks * BLOCK_VALUES)], dtype=torch.int16)
    samples = dct.idct(8 * signs.view(-1, BLOCK_SIDE, BLOCK_SIDE), *bits)
    coefficients = dct.dct(samples, *bits).clamp(VALUE_MIN, VALUE_MAX).to(torch.int8)
    assert bool((coefficients != 0).all()), "a coefficient became zero"
    ordered = to_payload_order(coefficients)
    payload = gmc.encode(ordered)[0] if coder is Coder.GMC else zvc.encode(ordered)
    x = untiled(samples, view).reshape(shape).to(DTYPES[config.dtype])
    ones, shifts = torch.ones(view.channels), (0,) * BLOCK_VALUES
    job = compression_job(view, config.dtype, ones, shifts, *bits, config.rounding_mode, ShiftCoding(coder))
    header = Header(Mode.JPEG_ACT, config.dtype, shape, payload.numel(), *bits, ShiftCoding(coder))
    back = decompression_job(header, shifts, ones)
    golden, beats = TorchBackend(), beats_in(x, view)
    raw = bytes(payload.tolist())
    assert bytes(golden.compress(job, beats).tolist()) == raw
    return Exchange("incompressible", job, back, beats, raw, golden.decompress(back, payload))
