"""Rows of the conformance suite: functions of a codec, or of a case, that raise AssertionError where the codec breaks one.

docs/user/plugin.md lists the rows. Rows to which a codec does not belong are found from the codec itself, never by its name.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NamedTuple

import torch
from cdu_spec.dqt import OPT_L
from cdu_tools.errors import UserError
from torch import Tensor

from actcodec.codecs import Codec, decompress, from_bytes
from actcodec.golden.dtype_names import dtype_name
from actcodec.golden.sfpr import NonFiniteError
from actcodec.testing.subject import Subject

#: Formats of values.
FLOATS = (torch.float32, torch.float16, torch.bfloat16)
#: Shapes of maps that blocks of 8x8 fill, and of maps with edges.
FILLED = ((2, 4, 16, 16), (1, 3, 24, 16), (3, 2, 16, 32))
EDGED = ((1, 1, 9, 9), (3, 5, 17, 13), (1, 7, 7, 23), (2, 3, 9, 23))
MAPS = ((2, 3, 8, 8), (2, 4, 14, 17), (3, 5, 16, 16))
_LEAST_BITS, _USUAL_BITS = 2, 8
#: Part of the largest value that JPEG's table, if it is as fine as optL, and SFPR's saturating scale may remove.
_TRANSFORM_LOSS = 0.22


class Case(NamedTuple):
    """One codec of a subject, and the tensors that a row gives it."""

    subject: Subject
    bits: int | None
    dtype: torch.dtype
    shape: tuple[int, ...]
    backend: str | None

    def __str__(self) -> str:
        shape = "x".join(map(str, self.shape))
        parts = (self.subject.name, self.bits, dtype_name(self.dtype), shape, self.backend)
        return "-".join(str(part) for part in parts if part is not None)

    @property
    def factors(self) -> tuple[Hashable, ...]:
        """Return the values of which :func:`~actcodec.testing.pairwise.pairwise` makes pairs."""
        return (self.subject, self.subject.width(self.bits), self.dtype, self.shape, self.backend)

    def codec(self, **options: Any) -> Codec:
        """Return the codec."""
        return self.subject.make(self.bits, self.backend, **options)

    def there_and_back(self, x: Tensor, **options: Any) -> Tensor:
        """Return the reconstruction of a tensor; it must have the tensor's shape, dtype and device."""
        return _through(self.codec(**options), x)

    @property
    def few_bits(self) -> bool:
        """Return whether the codec has too few bits for a bound on its errors."""
        return self.bits is not None and self.bits < _LEAST_BITS

    @property
    def step(self) -> float:
        """Return the part of the largest magnitude that a code of signed numbers is worth."""
        return 1 / ((1 << ((self.bits or _USUAL_BITS) - 1)) - 1)

    @property
    def transform_loss(self) -> float:
        """Return the part of the largest magnitude that a codec's table may remove: it grows with the divisors."""
        return _TRANSFORM_LOSS * self.subject.greatest_divisor / max(OPT_L)


@dataclass(frozen=True)
class Row:
    """One row: a check of a case, and the product of which the cases are chosen."""

    name: str
    check: Callable[[Case], None]
    of: Callable[[Subject], bool]
    shapes: Sequence[tuple[int, ...]]
    dtypes: Sequence[torch.dtype]

    def product(self, subject: Subject) -> list[Case]:
        """Return all cases of a codec: bits, formats, shapes that fit it, backends."""
        return [
            Case(subject, bits, dtype, shape, backend)
            for bits in (subject.widths if self.of(subject) else ())
            for shape in self.shapes
            if subject.make(bits).fits(shape)
            for dtype in self.dtypes
            for backend in subject.backends
        ]


#: Rows by name, in the order of docs/user/plugin.md.
ROWS: dict[str, Row] = {}


def _anything(_: Subject) -> bool:
    return True


def _keeps_values(subject: Subject) -> bool:
    return subject.keeps_values


def _is_stochastic(subject: Subject) -> bool:
    return subject.is_stochastic


def _row(
    of: Callable[[Subject], bool] = _anything,
    shapes: Sequence[tuple[int, ...]] = FILLED,
    dtypes: Sequence[torch.dtype] = FLOATS,
) -> Callable[[Callable[[Case], None]], Callable[[Case], None]]:
    def add(check: Callable[[Case], None]) -> Callable[[Case], None]:
        ROWS[check.__name__] = Row(check.__name__, check, of, shapes, dtypes)
        return check

    return add


def _through(codec: Codec, x: Tensor) -> Tensor:
    y = codec.decompress(codec.compress(x))
    assert (y.shape, y.dtype, y.device) == (x.shape, x.dtype, x.device)
    return y


def _refusal(kind: type[UserError], action: Callable[..., object], *arguments: Tensor) -> str | None:
    """Return the message of the error that an action raises, or None."""
    try:
        action(*arguments)
    except kind as error:
        return str(error)
    return None


@_row(_keeps_values)
def c1_extremes_saturate_and_do_not_wrap(case: Case) -> None:
    """Check that a channel's greatest values stay above its middle and the least below, for any last digits of the range."""
    for scale in torch.rand(8, generator=torch.Generator().manual_seed(1)) + 0.5:
        x = torch.rand(case.shape) * 2 - 1
        x[:, :, :8, :8], x[:, :, 8:, 8:] = 1, -1
        x = (x * scale).to(case.dtype)
        y = case.there_and_back(x).double()
        for given, found in zip(x.unbind(1), y.unbind(1), strict=True):
            middle = found[:, :8, 8:].mean()
            assert found[given == given.max()].mean() >= middle
            assert found[given == given.min()].mean() <= middle
        if not case.few_bits:  # a wrapped value is off by twice the scale
            assert (y - x.double()).abs().max() <= scale * (1.15 * case.step + case.transform_loss)


@_row(_keeps_values)
def c2_zero_range(case: Case) -> None:
    """Check tensors of one value."""
    for value in (0.0, -0.0, 1.0, -3.0, 1e-4, 6e4):
        x = torch.full(case.shape, value).to(case.dtype)
        y = case.there_and_back(x).double()
        size = abs(float(x[0, 0, 0, 0]))
        assert y.isfinite().all()
        if not case.subject.follows_magnitude(case.bits):
            assert ((y * x.sign() >= 0) & (y.abs() <= 1.05 * size)).all()
        elif not case.few_bits:
            assert (y - x.double()).abs().max() <= size * (1.15 * case.step + case.transform_loss) + 2.0**-99


@_row(_keeps_values)
def c2_subnormal_and_huge_groups(case: Case) -> None:
    """Check such groups beside ordinary ones, too; numbers beyond a 16-bit parameter must be refused with a message."""
    info = torch.finfo(case.dtype)
    unit = torch.rand(case.shape) * 2 - 1
    subnormal, huge = unit * (info.smallest_normal / 2), unit * (info.max / 4)
    mixed = torch.cat([subnormal[:1], huge[:1]])
    assert case.there_and_back(subnormal.to(case.dtype)).abs().max() <= max(8 * info.smallest_normal, 2.0**-99)
    for x in (huge, mixed):
        message = _refusal(UserError, case.codec().compress, x.to(case.dtype))
        if message is None:
            y = case.there_and_back(x.to(case.dtype)).double()
            assert y.isfinite().all()
            assert y.abs().max() <= x.double().abs().max() * 3.2
        else:
            assert "do not fit" in message
            assert "use " in message


@_row(_is_stochastic)
def c3_stochastic_rounding_has_no_mean_error(case: Case) -> None:
    """Check values within the codes, with the stored parameters, their rounding included."""
    x = (torch.randn(case.shape) + torch.randn(1, case.shape[1], 1, 1)).to(case.dtype)
    codec = case.codec()
    draws = torch.stack([codec.decompress(codec.compress(x)).double() for _ in range(30)])
    deviation = draws.std(0)
    moved = deviation > 0
    # bfloat16 has no more digits than 8 bits give.
    assert moved.double().mean() > (0.05 if case.dtype == torch.bfloat16 else 0.3)
    z = ((draws.mean(0) - x.double()) / (deviation / 30**0.5))[moved]
    assert abs(z.mean()) < 0.2
    if case.dtype == torch.float32:
        assert z.square().mean() < 1.8


@_row(_keeps_values, EDGED)
def c4_padding_is_in_no_range(case: Case) -> None:
    """Check values far from zero: sizes that do not fill a group are restored as closely as sizes that do.

    A transform's blocks are worse where zeros pad them, because its table removes the edge; no range is to blame. Full blocks
    of ``jpeg-gmc``, which saturates nothing, have so small an error that the edge is compared with the values.
    """
    maps = (100 + torch.rand(4, 8, 24, 24)).to(case.dtype)
    full = float((case.there_and_back(maps).double() - maps.double()).abs().max())
    n, c, h, w = case.shape
    odd = maps[:n, :c, :h, :w]
    error = float((case.there_and_back(odd.contiguous()).double() - odd.double()).abs().max())
    greatest = float(maps.max())
    by_blocks = (3 if case.subject.transforms_blocks else 1.5) * full
    bound = full + 0.2 * greatest if case.subject.name == "jpeg-gmc" else by_blocks
    assert error <= max(bound, 0.02)


def c4_sizes_that_do_not_fill_a_group(subject: Subject) -> None:
    """Check that the codec takes most maps with edges, so that the row above is about something."""
    assert all(sum(subject.make(bits).fits(size) for size in EDGED) >= 3 for bits in subject.widths)


def c5_sizes(subject: Subject) -> None:
    """Check vectors of 1 to 300 values and maps of odd sides, widths and formats in turn, with group edges in all of them."""
    variants = [(bits, dtype) for bits in subject.widths for dtype in FLOATS]
    edges = {1, 8, 9, 64, 65, 256, 257}
    codecs = {bits: subject.make(bits) for bits in subject.widths}
    taken = 0
    for size in range(1, 301):
        for bits, dtype in variants if size in edges else [variants[size % len(variants)]]:
            codec = codecs[bits]
            shape = (size,) if codec.fits((size,)) else (1, 1, 8, size)
            if codec.fits(shape):
                taken += 1
                assert _through(codec, torch.randn(shape).to(dtype)).isfinite().all()
    assert taken > 250
    for height, width in ((7, 7), (14, 14), (28, 28), (30, 17), (17, 30)):
        for bits, dtype in variants:
            if codecs[bits].fits((2, 3, height, width)):
                x = torch.randn(2, 3, height, width).to(dtype)
                y = _through(codecs[bits], x).double()
                if subject.keeps_values and (bits is None or bits >= _USUAL_BITS):
                    assert (y - x.double()).norm() < 0.3 * x.double().norm()


@_row(shapes=MAPS)
def c6_not_a_number_and_infinity(case: Case) -> None:
    """Check for an error with count and place, or, from a lossless codec, the value itself; or saturation on request."""
    for bad in (float("nan"), float("inf"), -float("inf")):
        x = torch.rand(case.shape).to(case.dtype)
        x[1, 2, 3, 4] = bad
        if case.subject.is_lossless:
            assert torch.equal(case.there_and_back(x).view(torch.uint8), x.view(torch.uint8))
            continue
        message = _refusal(NonFiniteError, case.codec().compress, x)
        assert message is not None
        assert f"1 of {x.numel()} values are NaN or infinite (channel 2 has 1): correct the values" in message
        if "nonfinite" in case.subject.options:
            y = case.there_and_back(x, nonfinite="saturate").double()
            assert y.isfinite().all()
            y[1, 2, 3, 4] = 0
            assert y.abs().max() <= 4  # the other values are unchanged


def c7_more_than_65535_groups(subject: Subject) -> None:
    """Check groups of 64 and more values: whole maps, blocks, samples. The last ones must be as good as the first ones."""
    bits = subject.widths[-1]
    x = torch.randn(1, 1, 8, 8).bfloat16().expand(65_540, 1, 8, 8).contiguous()
    options = {"rounding": "nearest"} if subject.is_stochastic else {}
    y = _through(subject.make(bits, **options), x)
    assert torch.equal(y[-4:], y[:4])
    assert torch.equal(y[65_534:65_538], y[:4])


@_row(_keeps_values, dtypes=FLOATS[:1])
def c9_negative_numbers_are_rounded_as_positive_ones_are(case: Case) -> None:
    """Check that both signs round alike; rounding towards minus infinity would subtract half a step from both."""
    x = (torch.rand(case.shape) * 0.8 + 0.05).to(case.dtype)
    x[:, :, 0, 0], x[:, :, 8, 8] = 1, -1  # one range for both signs
    options = {"rounding": "nearest"} if case.subject.is_stochastic else {}
    inner = x.abs() < 1
    bias = [(case.there_and_back(sign * x, **options) - sign * x)[inner].double().mean() for sign in (1, -1)]
    if not case.few_bits:
        assert abs(bias[0] + bias[1]) < 0.15 * case.step


def _tensors_in(packed: Any) -> Iterator[Tensor]:
    """Return every tensor that a compressed form holds."""
    for field in fields(packed):
        part = getattr(packed, field.name)
        if isinstance(part, Tensor):
            yield part
        elif is_dataclass(part):
            yield from _tensors_in(part)


@_row(shapes=MAPS)
def c10_packed_bytes_decode_to_the_same_bits(case: Case) -> None:
    """Check that decoding uses nothing but a stream's bytes or the form's own tensors as bytes, and that all are counted."""
    codec = case.codec()
    packed = codec.compress(torch.randn(case.shape).to(case.dtype))
    values = codec.decompress(packed)
    assert sum(part.numel() * part.element_size() for part in _tensors_in(packed)) <= packed.nbytes
    message = _refusal(UserError, packed.to_bytes)
    if message is None:
        stream = packed.to_bytes()
        assert len(stream) == packed.nbytes
        again = from_bytes(stream).decompress()
    else:
        assert "no bitstream: use" in message
        again = copy.deepcopy(packed).decompress()
    assert torch.equal(again.view(torch.uint8), values.contiguous().view(torch.uint8))


@_row(shapes=MAPS)
def c11_decoding_after_the_codec_has_changed(case: Case) -> None:
    """Check that a form does not depend on the state of the codec that made it."""
    codec = case.codec()
    packed = codec.compress(torch.randn(case.shape).to(case.dtype))
    values = codec.decompress(packed)
    values_bytes = values.contiguous().view(torch.uint8).clone()
    codec.restart(7)
    codec.set_epoch(50)
    codec.compress(torch.randn(1, 3, 8, 24))
    if case.bits is not None:
        case.subject.change_width(codec, next(other for other in case.subject.widths if other not in (None, case.bits)))
    values.zero_()
    assert torch.equal(codec.decompress(packed).contiguous().view(torch.uint8), values_bytes)
    assert torch.equal(decompress(packed).contiguous().view(torch.uint8), values_bytes)


@_row(shapes=MAPS, dtypes=FLOATS[:1])
def c14_the_path_under_test_is_the_cpus(case: Case) -> None:
    """Check that all results are on the CPU; test_codecs.py compares CUDA, if present, with the CPU."""
    packed = case.codec().compress(torch.randn(case.shape).to(case.dtype))
    assert {part.device.type for part in _tensors_in(packed)} == {"cpu"}


#: Rows that are about a codec as a whole.
WHOLE = (c4_sizes_that_do_not_fill_a_group, c5_sizes, c7_more_than_65535_groups)
