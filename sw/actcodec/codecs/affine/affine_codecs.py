"""Codecs of DIVISION, ActNN, BLPA and AC-GC on the integers that SFPR delivers: 1, 2, 4 or 8 bits per value."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import torch
from cdu_spec.affine import BASE_BITS, RECIPROCAL_EXPONENT_LIMIT, AffineSettings, RangeKind, check_code_bits
from cdu_spec.bitstream import Header
from cdu_spec.coding import checked
from cdu_spec.config import CduConfig
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Dtype, Mode
from cdu_tools.errors import UserError
from cdu_tools.texts import extents
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.backends.job import FORMATS, Job, Scaling, compression_job
from actcodec.backends.named import backend
from actcodec.backends.near_zero import begin_scaled
from actcodec.codecs.acgc.error_bounded import ErrorBoundedCodec, checked_error
from actcodec.codecs.affine.affine_scales import blpa_scales, bound_scales, division_scales, full_scales, signed_scales
from actcodec.codecs.codec import check_input, check_s, finite_maxima
from actcodec.codecs.compressed import Compressed, Packed
from actcodec.codecs.random_codec import RandomCodec
from actcodec.codecs.tensor_seeds import TensorSeeds
from actcodec.golden.block_statistics import residual_maxima
from actcodec.golden.blocks import by_channel
from actcodec.golden.channel_statistics import channel_edges, channel_moments
from actcodec.golden.sfpr import check_nonfinite_policy, check_scale_bits, reciprocals, rounded_scales

#: Names of the rounding rules.
STOCHASTIC, NEAREST = "stochastic", "nearest"
#: Least width of maps, and least number of rows, that policies give codec ``division``: the smallest maps of the paper.
_LEAST_SIDE = 7


@dataclass(frozen=True, eq=False)
class Plan:
    """Multipliers, float32 (channels,), settings without the seed, and offsets, int16 (channels,), for one tensor."""

    k: Tensor
    settings: AffineSettings
    offsets: Tensor


class AffineCodec(RandomCodec):
    """Base class of the codecs of the affine modes; each is a dataclass with these options and its own."""

    bits: int
    scale_bits: int
    nonfinite: str
    backend: str | Backend
    mode: Mode
    centred = True

    def __post_init__(self) -> None:
        check_code_bits(self.bits)
        check_scale_bits(self.scale_bits)
        check_nonfinite_policy(self.nonfinite)
        rounding = getattr(self, "rounding", STOCHASTIC)
        if rounding not in (STOCHASTIC, NEAREST):
            raise UserError(f"rounding = {rounding!r} is not allowed: use {STOCHASTIC} or {NEAREST}")
        self._stochastic = rounding == STOCHASTIC
        self._seeds = TensorSeeds(getattr(self, "seed", 0), self.mode)
        self._backend = backend(self.backend)
        checked(self.mode, self._settings())

    def compress(self, x: Tensor) -> Compressed:
        """Implement :class:`Codec`. Every call draws new random numbers."""
        return self._compressed(x, self._plan)

    def begin(self, x: Tensor) -> Callable[[], Compressed | None] | None:
        """Implement :class:`Codec`, for codecs whose multipliers follow from the largest magnitudes alone."""
        if not self._by_magnitude or type(self).compress is not AffineCodec.compress:
            return None
        x, form, view = self._begun(x)
        seed = self._seeds.next()
        settings = self._seeded(self._settings(), seed)

        def job(k: Tensor) -> Job:
            return compression_job(view, form, k, how=settings)

        end = begin_scaled(self._backend, x, view, Scaling(1.0, self.scale_bits, job, wide=True))
        if end is None:
            self._seeds.give_back(seed)
            return None

        def compressed() -> Compressed | None:
            at_once = end()
            if at_once is None:
                self._seeds.give_back(seed)
                return None
            payload, r = at_once
            return _compressed(x, settings, view, r, payload, _none(x))

        return compressed

    def _compressed(self, x: Tensor, plan_of: Callable[[Tensor, MatrixView, Tensor], Plan]) -> Compressed:
        """Compress ``x`` with the scales and settings that ``plan_of``, a function such as :meth:`_plan`, returns."""
        x, form, view = self._begun(x)
        largest = finite_maxima(x, by_channel(x, view), self.nonfinite, self._backend)
        finite = x if self.nonfinite == "raise" else x.nan_to_num(0.0, 0.0, 0.0)
        plan = plan_of(finite, view, largest)
        settings = self._seeded(plan.settings, self._seeds.next())
        job = compression_job(view, form, plan.k, how=settings, offsets=plan.offsets)
        payload = self._backend.compress_tensor(x, view, job)
        return _compressed(x, settings, view, self._backend.run(reciprocals, plan.k), payload, plan.offsets)

    def _begun(self, x: Tensor) -> tuple[Tensor, Dtype, MatrixView]:
        """Check a tensor; return it contiguous, its format and its view."""
        form = check_input(x)
        if not self.takes(x.shape):
            raise UserError(self._misfit(x.shape))
        return x.detach().contiguous(), form, MatrixView.of(x.shape, self.mode)

    def _seeded(self, settings: AffineSettings, seed: int) -> AffineSettings:
        """Return settings with a seed and the codec's rounding."""
        return AffineSettings(settings.bits, settings.step_log2, self._stochastic, settings.block_range, seed)

    @property
    def _by_magnitude(self) -> bool:
        """Return whether multipliers follow from the largest magnitudes alone (:func:`full_scales`)."""
        return False

    def decompress(self, compressed: Packed) -> Tensor:
        """Implement :class:`Codec`."""
        return compressed.decompress(self._backend)

    @abstractmethod
    def _settings(self) -> AffineSettings:
        """Return bits, step and range according to the options."""

    @abstractmethod
    def _plan(self, x: Tensor, view: MatrixView, largest: Tensor) -> Plan:
        """Return scales and settings for a finite tensor; ``largest`` is the largest magnitude of each channel, float64."""

    def _misfit(self, shape: Sequence[int]) -> str:
        return f"{self.mode.label} does not take a tensor of shape {extents(shape)}"

    def _down(self, exact: Tensor) -> Tensor:
        """Return multipliers rounded to ``scale_bits``, none greater than the given ones."""
        return self._rounded(exact, down=True)

    def _rounded(self, exact: Tensor, *, down: bool = False) -> Tensor:
        limit = RECIPROCAL_EXPONENT_LIMIT
        return self._backend.run(rounded_scales, exact, self.scale_bits, down=down, exponent_limit=limit)


def _numbers(name: str, value: Tensor | float) -> Tensor:
    """Return one or several numbers as float64; raise UserError unless they are numbers within float32's range."""
    try:
        numbers = torch.as_tensor(value, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise UserError(f"{name} = {value!r} is not allowed: use a number, or one for each channel") from None
    if not numbers.numel() or bool((numbers.abs() > torch.finfo(torch.float32).max).any()):
        raise UserError(f"{name} = {value!r} is not allowed: use finite numbers that float32 holds")
    return numbers


def _compressed(
    x: Tensor, settings: AffineSettings, view: MatrixView, r: Tensor, payload: Tensor, offsets: Tensor
) -> Compressed:
    """Return the compressed form of a tensor."""
    header = Header(view.mode, FORMATS[x.dtype], tuple(x.shape), payload.numel(), how=settings)
    return Compressed(header, (), r, payload, offsets)


def _none(x: Tensor) -> Tensor:
    """Return an empty tensor of offsets on the device of a tensor."""
    return torch.empty(0, dtype=torch.int16, device=x.device)


@dataclass
class DivisionCodec(AffineCodec):
    """Codec ``division``: the mean of each 8x8 block in 16 bits and the rest in a few (DIVISION). Takes (N, C, H, W).

    Policies use it for maps with W >= 7 and N * C * H >= 7, the smallest ones of the paper.

    Parameters
    ----------
    bits
        Bits per value: 1, 2, 4 or 8 (paper: Q).
    range
        ``block``: each block stores its least value and step in place of its mean. ``channel``: all blocks of a channel share a
        step, which follows from the largest residual of the batch; codes lie around the blocks' means (docs/methods/division.md
        gives the cost).
    rounding
        ``stochastic`` or ``nearest``.
    seed
        Number, 0 to 2**32 - 1, that the seeds of tensors follow from (:class:`~actcodec.codecs.tensor_seeds.TensorSeeds`).
    step_log2
        Binary logarithm of the step in units of SFPR's 16-bit result, 1 to 16 - bits, for the channel's range only; fine enough
        for means and coarse enough for values far beyond a residual. Default 12 - bits.
    S
        Largest residual of a channel in units of half the codes' range, positive, for the channel's range only. Above 1 the
        largest residuals saturate, and all others have smaller errors.
    scale_bits, nonfinite, backend
        As for :class:`~actcodec.codecs.codec.SfprCodec`.
    """

    bits: int = 2
    range: str = RangeKind.BLOCK.value
    rounding: str = STOCHASTIC
    seed: int = 0
    step_log2: int | None = None
    S: float = 1.0
    scale_bits: int = CduConfig.scale_bits
    nonfinite: str = "raise"
    backend: str | Backend = "torch"

    name = Mode.DIVISION.label
    mode = Mode.DIVISION

    def __post_init__(self) -> None:
        kinds = [kind.value for kind in RangeKind]
        if self.range not in kinds:
            raise UserError(f"range = {self.range!r} is not allowed: use {' or '.join(kinds)}")
        check_s(self.S)
        if self.S != 1 and self.range == RangeKind.BLOCK.value:
            raise UserError(f"S = {self.S!r} goes with range = channel: a block's codes reach its least and its greatest value")
        if self.step_log2 is not None and self.range == RangeKind.BLOCK.value:
            raise UserError(f"step_log2 = {self.step_log2!r} goes with range = channel: the step of a block is found")
        super().__post_init__()

    def takes(self, shape: Sequence[int]) -> bool:
        """Return whether ``shape`` is (N, C, H, W) without zero extents."""
        return len(shape) == 4 and prod(shape) > 0

    def fits(self, shape: Sequence[int]) -> bool:
        """Return whether ``shape`` is (N, C, H, W) with W >= 7 and N * C * H >= 7."""
        return self.takes(shape) and shape[3] >= _LEAST_SIDE and prod(shape[:3]) >= _LEAST_SIDE

    def _misfit(self, shape: Sequence[int]) -> str:
        return f"division does not take a tensor of shape {extents(shape)}: use actnn, or shape (N, C, H, W)"

    def _settings(self) -> AffineSettings:
        if self.range == RangeKind.BLOCK.value:
            return AffineSettings(self.bits, block_range=True)
        return AffineSettings(self.bits, 12 - self.bits if self.step_log2 is None else self.step_log2)

    @property
    def _by_magnitude(self) -> bool:
        return self.range == RangeKind.BLOCK.value

    def _plan(self, x: Tensor, view: MatrixView, largest: Tensor) -> Plan:
        settings = self._settings()
        if settings.block_range:
            return Plan(self._down(full_scales(largest)), settings, _none(x))
        exact = division_scales(x, view, largest, settings, self.S, lambda *job: self._backend.run(residual_maxima, *job))
        return Plan(self._down(exact), settings, _none(x))


@dataclass
class ActnnCodec(AffineCodec):
    """Codec ``actnn``: least value and step of every 256 consecutive values, and codes (ActNN). Takes any shape.

    Parameters as for :class:`DivisionCodec`.
    """

    bits: int = 2
    rounding: str = STOCHASTIC
    seed: int = 0
    scale_bits: int = CduConfig.scale_bits
    nonfinite: str = "raise"
    backend: str | Backend = "torch"

    name = Mode.ACTNN.label
    mode = Mode.ACTNN

    def _settings(self) -> AffineSettings:
        return AffineSettings(self.bits)

    def _plan(self, x: Tensor, view: MatrixView, largest: Tensor) -> Plan:
        return Plan(self._down(full_scales(largest)), self._settings(), _none(x))

    @property
    def _by_magnitude(self) -> bool:
        return True


@dataclass
class BlpaCodec(AffineCodec):
    """Codec ``blpa``: fixed-point copy with a range of six standard deviations per channel, signs kept (BLPA).

    If zero, with a step on either side, lies within a channel's range, every value keeps its sign; otherwise only values within
    the range do.

    Parameters
    ----------
    bits
        Bits per value: 1, 2, 4 or 8 (paper: K).
    gamma, beta
        Standard deviation (not negative) and mean of the channels, for instance the parameters of the preceding batch
        normalisation: numbers, or tensors (channels,). Default: those of the tensor.
    step_log2
        Binary logarithm of the step in units of SFPR's 16-bit result, 0 to 16 - bits; from 1 on, the middle of a step is an
        integer.
    scale_bits, nonfinite, backend
        As for :class:`~actcodec.codecs.codec.SfprCodec`.
    """

    bits: int = 4
    gamma: Tensor | float | None = None
    beta: Tensor | float | None = None
    step_log2: int = 1
    scale_bits: int = CduConfig.scale_bits
    nonfinite: str = "raise"
    backend: str | Backend = "torch"

    name = Mode.BLPA.label
    mode = Mode.BLPA

    def __post_init__(self) -> None:
        for name in ("gamma", "beta"):
            value = getattr(self, name)
            numbers = _numbers(name, 0.0 if value is None else value)
            if not bool(numbers.isfinite().all()) or (name == "gamma" and bool((numbers < 0).any())):
                sign = " and not negative" if name == "gamma" else ""
                raise UserError(f"{name} = {value!r} is not allowed: use finite numbers{sign}")
        super().__post_init__()

    def _settings(self) -> AffineSettings:
        return AffineSettings(self.bits, self.step_log2, stochastic=False)

    def _plan(self, x: Tensor, view: MatrixView, largest: Tensor) -> Plan:
        settings = self._settings()
        channels = by_channel(x, view)
        mean, variance = self._backend.run(channel_moments, channels, *self._backend.run(channel_edges, channels))
        gamma = _per_channel("gamma", self.gamma, variance.sqrt())
        beta = _per_channel("beta", self.beta, mean)
        k, offsets = blpa_scales(gamma, beta, settings, self.scale_bits, self._rounded)
        return Plan(k, settings, offsets)


@dataclass
class AutoquantCodec(AffineCodec, ErrorBoundedCodec):
    """Codec ``autoquant``: signed codes with one scale per channel, unbiased (AC-GC, AutoQuant).

    :meth:`compress_within` uses the fewest of 1, 2, 4 and 8 bits, at most ``bits``, that keep the error in all channels.

    Parameters
    ----------
    bits
        Bits per value: 1, 2, 4 or 8. One bit has codes for -1 and 0 only.
    error_bound
        Largest error allowed, half a step: a positive number, or a tensor (channels,). Each tensor gets the fewest bits that
        keep it, at most ``bits``. Default: errors as small as ``bits`` allow.
    rounding, seed, step_log2, scale_bits, nonfinite, backend
        As for :class:`DivisionCodec`; the default of ``step_log2`` is 16 - bits; it excludes ``error_bound``.
    """

    bits: int = 8
    error_bound: Tensor | float | None = None
    rounding: str = STOCHASTIC
    seed: int = 0
    step_log2: int | None = None
    scale_bits: int = CduConfig.scale_bits
    nonfinite: str = "raise"
    backend: str | Backend = "torch"

    name = Mode.AUTOQUANT.label
    mode = Mode.AUTOQUANT

    def __post_init__(self) -> None:
        if self.error_bound is not None:
            bound = _numbers("error_bound", self.error_bound)
            if not bool((bound.isfinite() & (bound > 0)).all()):
                raise UserError(f"error_bound = {self.error_bound!r} is not allowed: use positive finite numbers")
            if self.step_log2 is not None:
                raise UserError("step_log2 and error_bound exclude each other: give one of them")
        super().__post_init__()
        self.independent_errors = self._stochastic

    def _settings(self) -> AffineSettings:
        return AffineSettings(self.bits, BASE_BITS - self.bits if self.step_log2 is None else self.step_log2)

    def compress_within(self, x: Tensor, error: Tensor) -> Compressed:
        """Implement :class:`ErrorBoundedCodec`.

        The unit first rounds to 16 bits, which adds to errors near 2**-16 of a channel's maximum. Raises UserError for a codec
        that has a ``step_log2``.
        """
        if self.step_log2 is not None:
            raise UserError("step_log2 and an error exclude each other: give one of them")
        check_input(x)
        error = checked_error(x, error)

        def plan(x: Tensor, view: MatrixView, largest: Tensor) -> Plan:
            # A unit has one scale where maps have fewer than 8 values; the least error counts there.
            within = error if len(error) in (1, view.channels) else error.amin()
            return self._bound_plan(x, view, _per_channel("error", within, largest))

        return self._compressed(x, plan)

    def _plan(self, x: Tensor, view: MatrixView, largest: Tensor) -> Plan:
        if self.error_bound is not None:
            return self._bound_plan(x, view, _per_channel("error_bound", self.error_bound, largest))
        settings = self._settings()
        return Plan(
            self._down(signed_scales(self._backend.run(channel_edges, by_channel(x, view)), settings)), settings, _none(x)
        )

    def _bound_plan(self, x: Tensor, view: MatrixView, bound: Tensor) -> Plan:
        exact, settings = bound_scales(self._backend.run(channel_edges, by_channel(x, view)), bound, self.bits)
        return Plan(self._down(exact), settings, _none(x))


@dataclass
class AutoquantZCodec(AutoquantCodec):
    """Codec ``autoquantz``: autoquant in which a zero costs one bit (AC-GC, AutoQuantZ).

    Parameters as for :class:`AutoquantCodec`.
    """

    name = Mode.AUTOQUANTZ.label
    mode = Mode.AUTOQUANTZ


def _per_channel(name: str, given: Tensor | float | None, default: Tensor) -> Tensor:
    """Return an option, one number or one per channel, as float64 like ``default``; raise UserError for another count."""
    if given is None:
        return default
    numbers = torch.as_tensor(given, dtype=torch.float64, device=default.device).detach().flatten()
    if numbers.numel() not in (1, default.numel()):
        raise UserError(f"{name} has {numbers.numel()} numbers: use one, or one for each of {default.numel()} channels")
    return numbers.expand(default.shape)
