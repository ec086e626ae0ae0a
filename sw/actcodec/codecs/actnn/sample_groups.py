"""ActNN as published: groups that lie within a sample, and a number of bits, 1 to 8, for every sample (section 4.1).

The first axis counts samples; a tensor of rank 1 is one sample. The values of a sample are cut into groups in order; its last
group has the remainder without padding, so that no padding enters a range. The integer codec ``actnn`` and its twin
``actnn-float`` have groups across samples instead, the hardware's view of a tensor.

Errors of the published code are not repeated: Z and R are rounded to bfloat16 before codes are computed from them, so that
decoding is unbiased, and codes are limited at both ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

import torch
from cdu_spec.affine import GROUP_VALUES
from cdu_spec.geometry import LANES
from cdu_spec.modes import Mode
from cdu_tools.errors import UserError
from cdu_tools.numbers import is_whole
from cdu_tools.texts import extents
from torch import Tensor

from actcodec.backends.backend import Backend
from actcodec.backends.named import NATIVE, TORCH, TRITON
from actcodec.backends.named import backend as backend_of
from actcodec.backends.near_zero import begin_near_zero
from actcodec.codecs.actnn.allocation import MAX_BITS
from actcodec.codecs.affine.affine_codecs import NEAREST, STOCHASTIC
from actcodec.codecs.codec import check_finite, check_input
from actcodec.codecs.compressed import Packed
from actcodec.codecs.random_codec import RandomCodec
from actcodec.codecs.tensor_seeds import TensorSeeds
from actcodec.golden.codes import pack_tight, unpack_tight
from actcodec.golden.floating import groups
from actcodec.golden.floating.groups import sample_count, sample_size
from actcodec.golden.sfpr import UnfitValuesError

#: Salt that separates the random numbers from those of the other codecs.
_SALT = len(Mode) + 2


@dataclass(frozen=True, eq=False)
class SampleForm:
    """Tensor in groups within samples. N samples of D values have ``ceil(D / group)`` groups each."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    group: int
    low: Tensor  #: Z, bfloat16 (N, groups): no more than the least value of each group
    extent: Tensor  #: R, bfloat16 (N, groups), positive: Z + R is no less than the greatest value
    bits: Tensor  #: uint8 (N,), each 1 to 8
    codes: Tensor  #: uint8 (bytes,): without gaps, all samples of 1 bit first, then those of 2 ...
    widths: tuple[int, ...]  #: the numbers in ``bits``, ascending

    @property
    def nbytes(self) -> int:
        """Return the bytes of codes, Z, R and bits (as in the paper, without shape, format and group size)."""
        return sum(part.numel() * part.element_size() for part in (self.low, self.extent, self.bits, self.codes))

    @property
    def unit_variance(self) -> Tensor:
        """Return the sum over groups of ``G * R**2 / 6``, float64 (N,), where G is the number of values of the group.

        Divided by ``(2**b - 1)**2`` it is the variance that stochastic rounding to b bits adds to the values of a sample: a
        value at the fraction p of a step has a variance of ``p * (1 - p)`` steps squared, 1/6 on average over p (ActNN, section
        4.2).
        """
        size = sample_size(self.shape)
        counts = torch.full((self.extent.shape[1],), self.group, dtype=torch.float64, device=self.extent.device)
        counts[-1] = size - (len(counts) - 1) * self.group
        return self.extent.to(torch.float64).square() @ counts / 6

    def to_bytes(self) -> bytes:
        """Raise UserError: a floating-point form is not a stream."""
        raise UserError("a floating-point form has no bitstream: use division or actnn")

    def decompress(self, backend: str | Backend = "torch") -> Tensor:
        """Return the reconstructed tensor ``Z + R * code / (2**b - 1)``, computed in float32."""
        computes = _software(backend)
        how = (self.group, self.low, self.extent, self.bits, self.shape, self.dtype)
        if len(self.widths) == 1:
            return computes.run(groups.values_of_packed, self.codes, self.widths[0], *how)
        return computes.run(groups.values, _unpacked(computes, self, sample_size(self.shape)), *how)


#: Magnitude below which ranges of values fit bfloat16.
_SURELY_FIT = torch.finfo(torch.bfloat16).max / 4
#: Function from a form without bits and codes to the bits of each sample, uint8 (N,).
Allocator = Callable[[SampleForm], Tensor]
#: Greatest number of values of a group, more than any sample has.
_MOST_VALUES = 1 << 31


@dataclass
class ActnnSampleCodec(RandomCodec):
    """Codec ``actnn-sample``: ActNN as published, groups within samples. Takes any shape; the first axis counts the samples.

    Parameters
    ----------
    bits
        Bits per value, 1 to 8: one number, or a tensor of integers (N,) with one for each sample.
    group
        Number of values that share Z and R, 1 or more (paper: G = 256); the last group of a sample may be smaller.
    rounding
        ``stochastic`` or ``nearest``.
    seed
        Number, 0 to 2**32 - 1, that the seeds of tensors follow from (:class:`~actcodec.codecs.tensor_seeds.TensorSeeds`).
    backend
        ``torch`` or ``native``.
    """

    bits: int | Tensor = 2
    group: int = GROUP_VALUES
    rounding: str = STOCHASTIC
    seed: int = 0
    backend: str | Backend = "torch"

    name = "actnn-sample"
    centred = True

    def __post_init__(self) -> None:
        if isinstance(self.bits, Tensor):
            kind = self.bits.dtype
            if kind.is_floating_point or kind == torch.bool or self.bits.ndim != 1 or not self.bits.numel():
                raise UserError(f"bits of dtype {kind} and shape {tuple(self.bits.shape)}: use integers (samples,)")
            least, most = (int(edge) for edge in self.bits.aminmax())
        elif not is_whole(self.bits):
            raise UserError(f"bits = {self.bits!r} is not allowed: use 1 to {MAX_BITS}, or a tensor with one number a sample")
        else:
            least = most = self.bits
        if not 1 <= least <= most <= MAX_BITS:
            raise UserError(f"bits = {self.bits!r} is not allowed: use 1 to {MAX_BITS}")
        if not is_whole(self.group, 1, _MOST_VALUES):
            raise UserError(f"group = {self.group!r} is not allowed: use 1 to {_MOST_VALUES} values")
        if self.rounding not in (STOCHASTIC, NEAREST):
            raise UserError(f"rounding = {self.rounding!r} is not allowed: use {STOCHASTIC} or {NEAREST}")
        self._seeds = TensorSeeds(self.seed, _SALT)
        self._backend = _software(self.backend)

    def decompress(self, compressed: Packed) -> Tensor:
        """Implement :class:`Codec`."""
        return compressed.decompress(self._backend)

    def compress(self, x: Tensor) -> SampleForm:
        """Implement :class:`Codec`. Every call draws new random numbers."""
        check_input(x)
        bits, samples = self.bits, sample_count(x.shape)
        if not isinstance(bits, Tensor):
            x, seed = x.detach().contiguous(), self._next_seed()
            form, unfit = self._coded_alike(x, bits, seed)
            if bool(unfit):
                self._give_back(seed)
                self._refuse(x)
            return form
        if bits.numel() != samples:
            raise UserError(f"bits for {bits.numel()} samples do not go with shape {extents(x.shape)}: give {samples}")
        there = bits.to(x.device, torch.uint8)
        return self.compress_with(x, lambda _: there)

    def compress_with(self, x: Tensor, allocate: Allocator) -> SampleForm:
        """Compress as :meth:`compress` does, with the bits that ``allocate`` returns."""
        check_input(x)
        x = x.detach().contiguous()
        low, extent, unfit = self._backend.run(groups.ranges, x, self.group)
        if bool(unfit):
            self._refuse(x)
        none = torch.empty(0, dtype=torch.uint8, device=x.device)
        form = SampleForm(tuple(x.shape), x.dtype, self.group, low, extent, none, none, ())
        bits = allocate(form)
        widths = tuple(sorted(set(bits.tolist())))
        how = (x, self.group, low, extent, bits, self._next_seed())
        if len(widths) == 1:
            codes = self._backend.run(groups.packed_codes, *how, widths[0])
        else:
            codes = _packed(self._backend, self._backend.run(groups.codes, *how), bits, widths)
        return replace(form, bits=bits, codes=codes, widths=widths)

    def begin(self, x: Tensor) -> Callable[[], SampleForm | None] | None:
        """Implement :class:`Codec`, for the same bits in all samples."""
        if isinstance(self.bits, Tensor) or type(self).compress is not ActnnSampleCodec.compress:
            return None
        check_input(x)
        x = x.detach().contiguous()
        near = begin_near_zero(self._backend, x)
        if near is None:
            return None
        seed = self._next_seed()
        form, _ = self._coded_alike(x, self.bits, seed)

        def ended() -> SampleForm | None:
            if near.holds(_SURELY_FIT):
                return form
            self._give_back(seed)
            return None

        return ended

    def _coded_alike(self, x: Tensor, width: int, seed: int | None) -> tuple[SampleForm, Tensor]:
        """Return the form of a tensor with as many bits in all samples, and a number that is not 0 if its ranges do not fit."""
        low, extent, unfit, bits, codes = self._backend.run(groups.coded, x, self.group, width, seed)
        return SampleForm(tuple(x.shape), x.dtype, self.group, low, extent, bits, codes, (width,)), unfit

    def _refuse(self, x: Tensor) -> NoReturn:
        """Raise UserError for a tensor whose ranges do not fit."""
        check_finite(x, self._backend)
        raise UnfitValuesError(f"the range of values up to {float(x.abs().max()):g} does not fit bf16: use codec actnn")

    def _next_seed(self) -> int | None:
        return self._seeds.next() if self.rounding == STOCHASTIC else None

    def _give_back(self, seed: int | None) -> None:
        if seed is not None:
            self._seeds.give_back(seed)


def _software(backend: str | Backend) -> Backend:
    """Return a backend that computes groups within samples; raise UserError for one of hardware, which computes none."""
    found = backend_of(backend)
    if not found.software:
        software = f"{TORCH!r}, {NATIVE!r} or {TRITON!r}"
        raise UserError(f"groups within samples are computed by backend {software}, and by no hardware")
    return found


def _packed(backend: Backend, codes: Tensor, bits: Tensor, widths: Sequence[int]) -> Tensor:
    """Pack codes, uint8 (N, D), into bytes, the samples of each width together."""
    return torch.cat([backend.run(pack_tight, codes[bits == width].flatten(), width) for width in widths])


def _unpacked(backend: Backend, form: SampleForm, size: int) -> Tensor:
    """Unpack the codes of a form, uint8 (N, D); inverse of :func:`_packed`."""
    packed, bits, widths = form.codes, form.bits, form.widths
    codes = torch.empty(bits.numel(), size, dtype=torch.uint8, device=packed.device)
    first = 0
    for width in widths:
        chosen = bits == width
        count = int(chosen.sum()) * size
        after = first + -(-count * width // LANES)
        codes[chosen] = backend.run(unpack_tight, packed[first:after], width, count).view(-1, size)
        first = after
    return codes
