"""Formats of fixed length: what comes back, against the golden model and definitions written out here, and compiled."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
import torch
from actcodec.codecs.baselines.int8_rows_codec import Int8RowsCodec
from actcodec.codecs.catalog import codec
from actcodec.golden import brc, sfpr
from actcodec.graph.channels import Sfpr
from actcodec.graph.format import FLOATS
from actcodec.graph.formats import FORMATS, format_of, layout_of
from actcodec.graph.windows import Windows
from cdu_spec.config import CduConfig
from cdu_spec.mx import MX_FORMATS
from cdu_tools.errors import UserError
from numpy.typing import NDArray
from torch import Tensor
from traced import compiled, fake_of, traced

#: Shapes in which all formats fit but for the exceptions of :func:`inputs`.
SHAPES = {"tokens": (3, 32, 96), "maps": (2, 64, 8, 8), "heads": (2, 4, 32, 64)}
VALUE_FORMATS = [name for name in FORMATS if name != "bits" and not name.startswith("windows")]
LOSSY_FORMATS = [name for name in VALUE_FORMATS if name != "brc"]


def values(shape: tuple[int, ...], dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    """Normal values in channels of different widths."""
    random = torch.Generator().manual_seed(seed)
    return (torch.randn(shape, generator=random) * torch.exp(torch.randn(shape[-1], generator=random))).to(dtype)


def laid_out(x: Tensor, layout: str) -> Tensor:
    """The values with other strides."""
    if layout == "channels_last":
        return x.to(memory_format=torch.channels_last)
    return x.transpose(1, 2).contiguous().transpose(1, 2) if layout == "transposed" else x


def inputs(name: str, x: Tensor) -> Tensor:
    """Return an input of a format with the shape and strides of ``x``."""
    form = format_of(name)
    if name == "bits":
        return x > 0
    return (x.abs() * 4).clamp(0, form.positions - 1).to(torch.int8) if isinstance(form, Windows) else x


def rebuilt(name: str, x: Tensor) -> Tensor:
    """Return the reconstruction."""
    form = format_of(name)
    return form.unpack(form.pack(x), layout_of(x))


def same(a: Tensor, b: Tensor) -> bool:
    """Return whether tensors have the same shapes, strides, formats and bits, whatever the bits of NaN."""
    if (a.shape, a.stride(), a.dtype) != (b.shape, b.stride(), b.dtype):
        return False
    if not a.is_floating_point():
        return torch.equal(a, b)
    bits = {2: torch.int16, 4: torch.int32}[a.element_size()]
    return torch.equal(a.nan_to_num(7.0).view(bits), b.nan_to_num(7.0).view(bits)) and torch.equal(a.isnan(), b.isnan())


def cases() -> list[tuple[str, str, torch.dtype]]:
    """Shapes, layouts and number formats."""
    layouts = [(shape, layout) for shape in SHAPES for layout in ("plain", "transposed")] + [("maps", "channels_last")]
    return [(*case, dtype) for case in layouts for dtype in FLOATS]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(("shape", "layout", "dtype"), cases())
def test_layouts_come_back_in_the_bytes_that_were_announced(name: str, shape: str, layout: str, dtype: torch.dtype) -> None:
    x = inputs(name, laid_out(values(SHAPES[shape], dtype), layout))
    form = format_of(name)
    if not form.fits(x):
        assert "columns" in name  # the rows in memory are fewer than 32
        return
    parts = form.pack(x)
    y = form.unpack(parts, layout_of(x))
    assert (y.shape, y.stride(), y.dtype) == (x.shape, x.stride(), x.dtype)
    assert sum(part.nbytes for part in parts) == form.nbytes(x)
    if name not in VALUE_FORMATS:
        assert torch.equal(x, y)


def test_every_format_has_a_name_and_can_be_a_key() -> None:
    for name, form in FORMATS.items():
        assert form.name == name
        assert pickle.loads(pickle.dumps(form)) == form
        assert {form: 1}[format_of(name)] == 1
    assert len({repr(form) for form in FORMATS.values()}) == len(FORMATS)
    layout = layout_of(torch.zeros(2, 3))
    assert {pickle.loads(pickle.dumps(layout)): 1}[layout] == 1


def test_a_name_that_none_has_is_refused_with_those_there_are() -> None:
    with pytest.raises(UserError, match="unknown format 'int3': did you mean int8"):
        format_of("int3")


@pytest.mark.parametrize("name", FORMATS)
def test_what_does_not_fit_is_told(name: str) -> None:
    form = format_of(name)
    x = inputs(name, values((4, 64, 64)))
    assert form.fits(x)
    for other in (x[:, :, :60], x[:1].expand(4, 64, 64), x.to(torch.float64), x.to(torch.complex64)):
        assert not form.fits(other)
    assert not form.fits(inputs(name, values((3,))))
    if name != "sfpr":
        assert not form.fits(fake_of(x, {2})), "a last axis of unknown size"


# Against the golden model.


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", ["tokens", "heads"])
def test_int8_is_the_codec_of_rows(shape: str, dtype: torch.dtype) -> None:
    x = values(SHAPES[shape], dtype)
    x[0, 0] = 0
    reference = Int8RowsCodec()
    assert same(rebuilt("int8", x), reference.decompress(reference.compress(x)))


def extremes(dtype: torch.dtype) -> Tensor:
    """Blocks of all magnitudes of a format, some of them zero or subnormal."""
    x = values((8, 64, 64), torch.float32)
    limits = torch.finfo(dtype)
    scales = torch.linspace(np.log2(limits.tiny) - 12, np.log2(limits.max) - 1, 8 * 64).exp2().view(8, 64, 1)
    x = (x / x.abs().amax(-1, keepdim=True) * scales).to(dtype)
    x[0, 0] = 0
    x[1, 1, ::2] = -0.0
    x[7, 63, 5] = limits.max
    return x


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", [*MX_FORMATS, "nvfp4", "sfpr"])
def test_values_are_the_codec_s(name: str, dtype: torch.dtype) -> None:
    reference = codec(name)
    for x in (values(SHAPES["tokens"], dtype), values(SHAPES["maps"], dtype), extremes(dtype)):
        assert same(rebuilt(name, x), reference.decompress(reference.compress(x)))


@pytest.mark.parametrize("name", MX_FORMATS)
def test_mx_of_channels_last_has_blocks_in_the_order_of_memory(name: str) -> None:
    x = laid_out(values(SHAPES["maps"]), "channels_last")
    flat = x.permute(0, 2, 3, 1).reshape(-1)
    reference = codec(name)
    assert same(rebuilt(name, x).permute(0, 2, 3, 1).reshape(-1), reference.decompress(reference.compress(flat)))


@pytest.mark.parametrize("dtype", FLOATS)
def test_scales_of_sfpr_are_the_golden_model_s(dtype: torch.dtype) -> None:
    random = torch.Generator().manual_seed(1)
    magnitudes = torch.cat(
        (torch.rand(100_000, generator=random) * 10, torch.exp2(torch.rand(100_000, generator=random) * 276 - 148))
    )
    limits = torch.finfo(dtype)
    largest = torch.cat((magnitudes, torch.tensor([0.0, limits.tiny, limits.max]))).to(dtype)
    largest = largest[largest.isfinite()]
    k, r = sfpr.scales_of(largest.to(torch.float64), 1.0, CduConfig.scale_bits, dtype)
    codes, reciprocals = Sfpr().pack(largest[None])
    assert torch.equal(reciprocals[0], r)
    assert torch.equal(codes[0], sfpr.sfpr(largest, k))


def test_codes_of_sfpr_are_rounded_from_exact_products() -> None:
    """Values whose float32 product with the multiplier is half a step although the exact product is not."""
    greatest = torch.tensor(2.7)
    k, _ = sfpr.scales_of(greatest.to(torch.float64)[None], 1.0, CduConfig.scale_bits, torch.float32)
    halves = (torch.arange(-126, 127) + 0.5) / k
    near = torch.stack((halves, torch.nextafter(halves, halves + 1), torch.nextafter(halves, halves - 1)))
    x = torch.cat((greatest[None], near.flatten()))[:, None]
    rounded = (x * k).round()
    assert not torch.equal(rounded, (x.to(torch.float64) * k.to(torch.float64)).round().to(torch.float32)), "the case is none"
    reference = codec("sfpr")
    assert same(rebuilt("sfpr", x), reference.decompress(reference.compress(x)))


@pytest.mark.parametrize("dtype", FLOATS)
def test_brc_is_the_golden_model_s(dtype: torch.dtype) -> None:
    x = values(SHAPES["tokens"], dtype)
    x[0, 0, :4] = torch.tensor([0.0, -0.0, torch.nan, torch.inf])
    assert torch.equal(rebuilt("brc", x).flatten(), brc.decode(brc.encode(x.flatten()), x.numel(), dtype))


# Integers against their definition in NumPy.


def numpy_integers(x: NDArray[np.float32], kept: NDArray[np.float32], bits: int) -> NDArray[np.float32]:
    """``round(x / m * h) / h * m`` in float32, with m as it is kept and codes limited to h."""
    top = np.float32((1 << (bits - 1)) - 1)
    divisors = np.where(kept > 0, kept, np.float32(1))
    codes = np.clip(np.round(x / divisors * top), -top, top).astype(np.int32)
    return codes.astype(np.float32) / top * kept


def truncated(m: NDArray[np.float32]) -> NDArray[np.float32]:
    """The greatest bfloat16 that is not above a positive number."""
    return (m.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


@pytest.mark.parametrize(("bits", "kind"), [(16, ""), *itertools.product((8, 6, 4), ("", "-group", "-columns"))])
@pytest.mark.parametrize("dtype", FLOATS)
def test_integers_are_their_definition(bits: int, kind: str, dtype: torch.dtype) -> None:
    x = values((4, 64, 96), dtype)
    x[0, :, 3] = 0
    x[1, :32] *= 0
    x[2, 5, 7] = torch.finfo(dtype).max
    x[3] *= 2.0**-20
    table = x.to(torch.float32).numpy()
    if kind == "":
        parts = table.reshape(256, 96)
        greatest = np.abs(parts).max(1, keepdims=True)
    elif kind == "-group":
        parts = table.reshape(256, 3, 32)
        greatest = np.abs(parts).max(2, keepdims=True)
    else:
        parts = table.reshape(8, 32, 96)
        greatest = np.abs(parts).max(1, keepdims=True)
    kept = greatest if kind == "" or dtype != torch.float32 else truncated(greatest)
    assert np.all(kept <= greatest)
    expected = torch.from_numpy(numpy_integers(parts, kept, bits).reshape(4, 64, 96)).to(dtype)
    assert same(rebuilt(f"int{bits}{kind}", x), expected)


@pytest.mark.parametrize("bits", [16, 8, 6, 4])
def test_rows_of_an_odd_length_share_bytes_with_other_rows(bits: int) -> None:
    x = values((2, 16, 7, 7))
    rows = x.reshape(32, 49).numpy()
    expected = numpy_integers(rows, np.abs(rows).max(1, keepdims=True), bits)
    assert same(rebuilt(f"int{bits}", x), torch.from_numpy(expected).view(x.shape))


def test_groups_are_smaller_where_32_do_not_divide_a_row() -> None:
    x = values((5, 3, 40), seed=2)
    groups = x.view(5, 3, 2, 20).numpy()
    expected = numpy_integers(groups, truncated(np.abs(groups).max(3, keepdims=True)), 4)
    form = format_of("int4-group")
    fake = fake_of(x, {0, 1})
    assert form.fits(fake)
    assert torch.equal(rebuilt("int4-group", x), torch.from_numpy(expected).view(x.shape))


# NaN, infinity, zeros and extremes.


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", LOSSY_FORMATS)
def test_what_is_not_finite_never_comes_back_finite(name: str, dtype: torch.dtype, bad: float) -> None:
    x = values(SHAPES["maps"], dtype)
    clean = rebuilt(name, x)
    for place in ((0, 0, 0, 0), (1, 63, 7, 7), (1, 20, 3, 5)):
        y = x.clone()
        y[place] = bad
        z = rebuilt(name, y)
        assert not z[place].isfinite()
        others = z.isfinite()
        assert torch.equal(z[others], clean[others]), "a finite value depends on one that is not"
        assert name == "nvfp4" or others.any()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", LOSSY_FORMATS)
def test_finite_values_stay_finite_and_zeros_zero(name: str, dtype: torch.dtype) -> None:
    assert rebuilt(name, extremes(dtype)).isfinite().all()
    zeros = torch.zeros(SHAPES["maps"], dtype=dtype)
    assert torch.equal(rebuilt(name, zeros), zeros)


# Compiled, and with symbolic sizes.


#: Shapes, layouts and dtypes in which formats are compiled.
COMPILED = [("tokens", "plain", torch.float32), ("maps", "channels_last", torch.float16), ("maps", "plain", torch.bfloat16)]
#: Every third format with each of them, so that each family of formats meets all, and the others for campaigns.
THIRDS = [
    pytest.param(first, *kind, marks=() if first == number else pytest.mark.campaign)
    for number, kind in enumerate(COMPILED)
    for first in range(len(COMPILED))
]


@pytest.mark.parametrize(("first", "shape", "layout", "dtype"), THIRDS)
def test_compiled_functions_are_the_eager_ones(first: int, shape: str, layout: str, dtype: torch.dtype) -> None:
    """Bits are equal when inductor compiles several formats at once, from one tensor and into products with another."""
    x = laid_out(values(SHAPES[shape], dtype), layout)
    gradient = laid_out(values(SHAPES[shape], dtype, seed=1), layout)
    names = [name for name in list(FORMATS)[first :: len(COMPILED)] if format_of(name).fits(inputs(name, x))]
    taken = [inputs(name, x) for name in names]

    def pack(*given: Tensor) -> list[tuple[Tensor, ...]]:
        return [format_of(name).pack(value) for name, value in zip(names, given, strict=True)]

    def unpack(gradient: Tensor, *parts: Tensor) -> list[Tensor]:
        left, found = list(parts), list[Tensor]()
        for name, value in zip(names, taken, strict=True):
            own = tuple(left.pop(0) for _ in counts[name])
            y = format_of(name).unpack(own, layout_of(value))
            found += [y, gradient * y]
        return found

    eager = pack(*taken)
    counts = dict(zip(names, eager, strict=True))
    coded = compiled(pack, *taken)(*taken)
    for name, parts, expected in zip(names, coded, eager, strict=True):
        assert all(same(part, other) for part, other in zip(parts, expected, strict=True)), name
    flat = [part for parts in eager for part in parts]
    with torch._inductor.config.patch(emulate_precision_casts=True):
        found = compiled(unpack, gradient, *flat)(gradient, *flat)
    for place, (got, expected) in enumerate(zip(found, unpack(gradient, *flat), strict=True)):
        assert same(got, expected), names[place // 2]


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.campaign) for first in range(10, len(LOSSY_FORMATS), 10))]
)
def test_compiled_functions_keep_what_is_not_finite(first: int) -> None:
    names = LOSSY_FORMATS[first : first + 10]
    x = values(SHAPES["tokens"])
    x[0, 3, 4], x[1, 7, 8], x[2, 9, 95] = torch.nan, torch.inf, -torch.inf
    found = compiled(lambda x: [rebuilt(name, x) for name in names], x)(x)
    for name, y in zip(names, found, strict=True):
        assert not (y.isfinite() & ~x.isfinite()).any(), name
        assert same(y.nan_to_num(0, 0, 0), rebuilt(name, x).nan_to_num(0, 0, 0)), name


@pytest.mark.parametrize("name", FORMATS)
def test_one_graph_serves_all_batches(name: str) -> None:
    form = format_of(name)
    x = inputs(name, laid_out(values((3, 64, 32, 32)), "channels_last"))
    fake = fake_of(x, {0})
    assert form.fits(fake)
    mode = fake.fake_mode  # type: ignore[attr-defined]
    layout = layout_of(fake)
    with mode:
        packing = traced(form.pack, fake)
        parts = form.pack(fake)
        unpacking = traced(lambda *parts: form.unpack(parts, layout), *parts)
    assert sum(part.numel() * part.element_size() for part in parts) == form.nbytes(fake)
    other = inputs(name, laid_out(values((7, 64, 32, 32), seed=3), "channels_last"))
    assert same(unpacking(*packing(other)), rebuilt(name, other))
