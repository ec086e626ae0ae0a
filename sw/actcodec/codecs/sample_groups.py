"""ActNN as published: groups that lie within a sample, and a number of bits, 1 to 8, for every sample (section 4.1).

A sample is what the first axis counts, a tensor of rank 1 being one sample. Its values, in order, are cut into groups; the last
group of a sample has what is left, and nothing is filled up, so that no padding enters a range. Integer codec ``actnn`` and its
twin ``actnn-float`` have groups across samples instead, as the hardware sees a tensor.

What the published code does wrong is not repeated: Z and R are rounded to bfloat16 before codes are computed from them, so that
decoding is unbiased, and codes are limited at both ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

import torch
from cdu_spec.affine import GROUP_VALUES
from cdu_spec.bitstream import Mode
from cdu_spec.errors import UserError
from cdu_spec.geometry import LANES
from torch import Tensor

from actcodec.allocation import MAX_BITS
from actcodec.codecs.affine_codecs import NEAREST, STOCHASTIC
from actcodec.codecs.backend import Backend
from actcodec.codecs.codec import Codec, check_finite, check_input
from actcodec.codecs.compressed import Packed
from actcodec.codecs.float_forms import rounded_to_half
from actcodec.codecs.tensor_seeds import TensorSeeds
from actcodec.golden.codes import pack_tight, unpack_tight
from actcodec.golden.random_bits import stochastically_rounded_

#: Keeps the random numbers apart from those of the other codecs.
_SALT = len(Mode) + 2
#: Bits for each sample, uint8 (N,), from what :meth:`SampleForm.unit_variance` says of them.
Allocator = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class SampleForm:
    """A tensor in groups within samples. N samples of D values have ``ceil(D / group)`` groups each."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    group: int
    low: Tensor  #: Z, bfloat16 (N, groups): no more than the least value of each group
    extent: Tensor  #: R, bfloat16 (N, groups), positive: Z + R is no less than the greatest value
    bits: Tensor  #: uint8 (N,), each 1 to 8
    codes: Tensor  #: uint8 (bytes,): without gaps, all samples of 1 bit first, then those of 2 ...

    @property
    def nbytes(self) -> int:
        """Bytes of codes, Z, R and bits (the paper's account: shape, format and group size are not counted)."""
        return sum(part.numel() * part.element_size() for part in (self.low, self.extent, self.bits, self.codes))

    @property
    def unit_variance(self) -> Tensor:
        """float64 (N,): the sum over groups of ``G * R**2 / 6``, G being the number of values of the group.

        Divided by ``(2**b - 1)**2`` it is the variance that stochastic rounding to b bits adds to the values of a sample: a
        value at the fraction p of a step has ``p * (1 - p)`` steps squared, 1/6 on average over p (ActNN, section 4.2).
        """
        size = sample_size(self.shape)
        counts = torch.full((self.extent.shape[1],), self.group, dtype=torch.float64, device=self.extent.device)
        counts[-1] = size - (len(counts) - 1) * self.group
        return self.extent.to(torch.float64).square() @ counts / 6

    def to_bytes(self) -> bytes:
        """Raises UserError: a floating-point form is not a stream."""
        raise UserError("a floating-point form has no bitstream: use division or actnn")

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """The reconstructed tensor ``Z + R * code / (2**b - 1)``, float32 arithmetic."""
        values = _unpacked(self.codes, self.bits, sample_size(self.shape)).to(torch.float32)
        values /= _levels(self.bits)
        for part, groups in _parts(values, self.group):
            part.mul_(self.extent[:, groups, None].to(torch.float32)).add_(self.low[:, groups, None].to(torch.float32))
        if self.dtype != torch.float32:
            # R is rounded up: the greatest numbers of float16 would become infinite.
            values.clamp_(torch.finfo(self.dtype).min, torch.finfo(self.dtype).max)
        return values.to(self.dtype).view(self.shape)


@dataclass
class ActnnSampleCodec(Codec):
    """``actnn-sample``: ActNN as published, groups within samples. Any shape; the first axis counts the samples.

    Parameters
    ----------
    bits
        Per value, 1 to 8: one number, or a tensor of integers (N,) with one for each sample.
    group
        Values that share Z and R, 1 or more (paper: G = 256); the last group of a sample may be smaller.
    rounding
        ``stochastic`` or ``nearest``.
    seed
        Of the random numbers, 0 to 2**32 - 1.
    """

    bits: int | Tensor = 2
    group: int = GROUP_VALUES
    rounding: str = STOCHASTIC
    seed: int = 0

    name = "actnn-sample"

    def __post_init__(self) -> None:
        if isinstance(self.bits, Tensor):
            kind = self.bits.dtype
            if kind.is_floating_point or kind == torch.bool or self.bits.ndim != 1 or not self.bits.numel():
                raise UserError(f"bits of dtype {kind} and shape {tuple(self.bits.shape)}: use integers (samples,)")
            least, most = (int(edge) for edge in self.bits.aminmax())
        elif isinstance(self.bits, bool) or not isinstance(self.bits, int):
            raise UserError(f"bits = {self.bits!r} is not allowed: use 1 to {MAX_BITS}, or a tensor with one number a sample")
        else:
            least = most = self.bits
        if not 1 <= least <= most <= MAX_BITS:
            raise UserError(f"bits = {self.bits!r} is not allowed: use 1 to {MAX_BITS}")
        if isinstance(self.group, bool) or not isinstance(self.group, int) or self.group < 1:
            raise UserError(f"group = {self.group!r} is not allowed: use 1 or more values")
        if self.rounding not in (STOCHASTIC, NEAREST):
            raise UserError(f"rounding = {self.rounding!r} is not allowed: use {STOCHASTIC} or {NEAREST}")
        self._seeds = TensorSeeds(self.seed, _SALT)

    def restart(self, seed: int) -> None:
        """See :class:`Codec`."""
        self._seeds.restart(seed)

    def decompress(self, compressed: Packed) -> Tensor:
        """See :class:`Codec`."""
        return compressed.decompress()

    def compress(self, x: Tensor) -> SampleForm:
        """See :class:`Codec`. Every call draws other random numbers."""
        check_input(x)
        samples = sample_count(x.shape)
        if not isinstance(self.bits, Tensor):
            bits = torch.full((samples,), self.bits, dtype=torch.uint8, device=x.device)
        elif self.bits.numel() == samples:
            bits = self.bits.to(x.device, torch.uint8)
        else:
            raise UserError(f"bits for {self.bits.numel()} samples do not go with shape {tuple(x.shape)}: give {samples}")
        return self.compress_with(x, lambda _: bits)

    def compress_with(self, x: Tensor, allocate: Allocator) -> SampleForm:
        """As :meth:`compress`, with the bits that ``allocate`` gives the samples once their ranges are known."""
        check_input(x)
        check_finite(x)
        values = x.detach().to(torch.float32, copy=True).reshape(sample_count(x.shape), -1)
        low, extent = _ranges(values, self.group)
        if not bool((low.isfinite() & extent.isfinite()).all()):
            raise UserError(f"values up to {float(x.detach().abs().max()):g} do not fit bf16: use codec actnn")
        none = torch.zeros(0, dtype=torch.uint8, device=x.device)
        form = SampleForm(tuple(x.shape), x.dtype, self.group, low, extent, none, none)
        bits = allocate(form.unit_variance)
        for part, groups in _parts(values, self.group):
            part.sub_(low[:, groups, None].to(torch.float32)).div_(extent[:, groups, None].to(torch.float32))
        levels = _levels(bits)
        codes = self._rounded(values.mul_(levels)).clamp_min_(0).minimum(levels).to(torch.uint8)
        return replace(form, bits=bits, codes=_packed(codes, bits))

    def _rounded(self, steps: Tensor) -> Tensor:
        """Values in units of steps, (N, D), to whole numbers; overwrites them."""
        if self.rounding == NEAREST:
            return steps.add_(0.5).floor_()
        return stochastically_rounded_(steps, self._seeds.next())


def sample_count(shape: Sequence[int]) -> int:
    """Number of samples of a tensor."""
    return shape[0] if len(shape) > 1 else 1


def sample_size(shape: Sequence[int]) -> int:
    """Values per sample."""
    return prod(shape) // sample_count(shape)


def _parts(values: Tensor, group: int) -> list[tuple[Tensor, slice]]:
    """Views of (N, D) as (N, groups, values), and the numbers of those groups: the whole groups, and what is left."""
    whole = values.shape[1] // group
    parts = [(values[:, : whole * group].view(len(values), whole, group), slice(0, whole))] if whole else []
    if values.shape[1] % group:
        parts.append((values[:, None, whole * group :], slice(whole, whole + 1)))
    return parts


def _ranges(values: Tensor, group: int) -> tuple[Tensor, Tensor]:
    """Z and R of the groups of each sample, bfloat16 (N, groups)."""
    edges = [part.aminmax(dim=2) for part, _ in _parts(values, group)]
    low = rounded_to_half(torch.cat([edge.min for edge in edges], 1), torch.bfloat16, up=False)
    greatest = torch.cat([edge.max for edge in edges], 1)
    # From the rounded Z, so that the codes reach the greatest value.
    extent = rounded_to_half(greatest - low.to(torch.float32), torch.bfloat16, up=True)
    return low, extent.clamp_min(torch.finfo(torch.bfloat16).smallest_normal)


def _levels(bits: Tensor) -> Tensor:
    """The greatest code of each sample, B = 2**b - 1, float32 (N, 1)."""
    return torch.exp2(bits.to(torch.float32))[:, None] - 1


def _widths(bits: Tensor) -> list[int]:
    """The numbers of bits that occur, ascending."""
    return sorted(set(bits.tolist()))


def _packed(codes: Tensor, bits: Tensor) -> Tensor:
    """Codes, uint8 (N, D), to bytes: the samples of each width together."""
    return torch.cat([pack_tight(codes[bits == width].flatten(), width) for width in _widths(bits)])


def _unpacked(packed: Tensor, bits: Tensor, size: int) -> Tensor:
    """The inverse of :func:`_packed`."""
    codes = torch.empty(bits.numel(), size, dtype=torch.uint8, device=packed.device)
    first = 0
    for width in _widths(bits):
        chosen = bits == width
        count = int(chosen.sum()) * size
        after = first + -(-count * width // LANES)
        codes[chosen] = unpack_tight(packed[first:after], width, count).view(-1, size)
        first = after
    return codes
