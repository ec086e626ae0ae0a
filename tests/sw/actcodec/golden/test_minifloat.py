"""Small floating-point formats against torch's own and exact fractions; codes of any width against one big integer."""

from bisect import bisect_left
from fractions import Fraction

import pytest
import torch
from actcodec.golden.minifloat import MINIFLOATS
from actcodec.golden.wide_codes import pack_wide, unpack_wide, wide_bytes
from hypothesis import given, settings
from hypothesis import strategies as st

#: Fields after the definitions: exponent bits, fraction bits, and whether the greatest exponent has numbers.
FIELDS = {"fp16": (5, 10, False), "fp10": (5, 4, False), "fp8": (4, 3, True)}
GREATEST = {"fp16": 65504, "fp10": 63488, "fp8": 448}
SMALLEST = {"fp16": 2.0**-24, "fp10": 2.0**-18, "fp8": 2.0**-9}


def numbers_of(name):
    """Return every number of a format from 0 up, exact, from exponent and fraction; its place in the list is its code."""
    exponent_bits, fraction_bits, whole = FIELDS[name]
    bias, steps = 2 ** (exponent_bits - 1) - 1, 2**fraction_bits
    numbers = [Fraction(fraction, steps) * Fraction(2) ** (1 - bias) for fraction in range(steps)]
    for exponent in range(1, 2**exponent_bits - (0 if whole else 1)):
        numbers += [(1 + Fraction(fraction, steps)) * Fraction(2) ** (exponent - bias) for fraction in range(steps)]
    return numbers[:-1] if whole else numbers  # E4M3's last code is NaN


NUMBERS = {name: numbers_of(name) for name in FIELDS}


def nearest(name, value):
    """Return the code of the nearest number, the even code of two equally near ones, or the greatest code beyond the range."""
    numbers, magnitude = NUMBERS[name], abs(Fraction(value))
    above = bisect_left(numbers, magnitude)
    if above == len(numbers):
        code = above - 1
    elif above == 0:
        code = 0
    else:
        down, up = magnitude - numbers[above - 1], numbers[above] - magnitude
        code = above - 1 if down < up or (down == up and above % 2) else above
    return code | (1 << sum(FIELDS[name][:2]) if str(value).startswith("-") else 0)


@pytest.mark.parametrize("name", FIELDS)
def test_known_limits(name):
    kind = MINIFLOATS[name]
    assert kind.bits == 1 + sum(FIELDS[name][:2]) == int(name[2:])
    assert NUMBERS[name][-1] == GREATEST[name]
    assert NUMBERS[name][1] == Fraction(SMALLEST[name])
    assert len(NUMBERS[name]) == kind.greatest + 1


@pytest.mark.parametrize("name", FIELDS)
def test_every_number_decodes_exactly_and_encodes_to_its_code(name):
    kind = MINIFLOATS[name]
    codes = torch.arange(kind.greatest + 1, dtype=torch.int32)
    want = torch.tensor([float(number) for number in NUMBERS[name]])
    for signed, values in ((codes, want), (codes + kind.magnitudes, -want)):
        assert torch.equal(kind.decode(signed).view(torch.int32), values.view(torch.int32))
        assert torch.equal(kind.encode(values), signed)


@pytest.mark.parametrize("name", FIELDS)
def test_middles_go_to_even_codes_and_their_neighbours_to_the_nearer_one(name):
    kind = MINIFLOATS[name]
    pairs = zip(NUMBERS[name], NUMBERS[name][1:], strict=False)
    middles = torch.tensor([float((low + high) / 2) for low, high in pairs])  # exact in float32
    codes = torch.arange(kind.greatest, dtype=torch.int32)
    for sign in (1, -1):
        offset = kind.magnitudes if sign < 0 else 0
        assert torch.equal(kind.encode(sign * middles), codes + codes % 2 + offset)
        below, above = middles.nextafter(torch.zeros(())), middles.nextafter(torch.full((), torch.inf))
        assert torch.equal(kind.encode(sign * below), codes + offset)
        assert torch.equal(kind.encode(sign * above), codes + 1 + offset)


@settings(max_examples=300)
@given(st.sampled_from(list(FIELDS)), st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_any_number_against_exact_fractions(name, value):
    assert int(MINIFLOATS[name].encode(torch.tensor([value]))) == nearest(name, value)


@pytest.mark.parametrize(("name", "kind"), [("fp16", torch.float16), ("fp8", torch.float8_e4m3fn)])
def test_formats_that_torch_has(name, kind):
    """Check patterns of all exponents; values are limited first, because torch does not saturate."""
    patterns = torch.randint(0, 1 << 32, (1 << 18,), generator=torch.Generator().manual_seed(3)).to(torch.int32)
    x = patterns.view(torch.float32)
    x = x[x.isfinite()].clamp(-GREATEST[name], GREATEST[name])
    small = x * SMALLEST[name]  # many near zero
    for values in (x, small, torch.cat([x, small]) * 0.01):
        there = values.to(kind)
        codes = MINIFLOATS[name].encode(values)
        width = torch.int16 if name == "fp16" else torch.uint8
        assert torch.equal(codes.to(width), there.view(width))
        assert torch.equal(MINIFLOATS[name].decode(codes), there.to(torch.float32))


@pytest.mark.parametrize("name", FIELDS)
def test_saturation_infinity_and_nan(name):
    kind, top = MINIFLOATS[name], GREATEST[name]
    x = torch.tensor([top * 1.001, top * 2.0, 3.4e38, torch.inf, -torch.inf, torch.nan, -0.0, 0.0, 1e-45, -1e-45])
    y = kind.decode(kind.encode(x))
    assert y.tolist() == [top, top, top, top, -top, 0, 0, 0, 0, 0]
    assert y.signbit().tolist() == [False] * 4 + [True] + [False] + [True, False, False, True]


@settings(max_examples=200)
@given(st.integers(0, 20), st.integers(0, 70), st.integers(0, 2**31))
def test_wide_codes_have_no_gaps(bits, count, seed):
    codes = torch.randint(0, 1 << bits, (count,), generator=torch.Generator().manual_seed(seed))
    packed = pack_wide(codes, bits)
    planes, rest = divmod(bits, 8)
    assert packed.dtype == torch.uint8
    assert packed.numel() == wide_bytes(count, bits) == planes * count + -(-rest * count // 8)
    content = packed.tolist()
    upper = int.from_bytes(bytes(content[planes * count :]), "little")
    for place, code in enumerate(codes.tolist()):
        low = sum(content[plane * count + place] << 8 * plane for plane in range(planes))
        assert code == low | (upper >> rest * place & (1 << rest) - 1) << 8 * planes
    for dtype in (torch.int32, torch.int64):
        back = unpack_wide(packed, bits, count, dtype)
        assert back.dtype == dtype
        assert torch.equal(back.to(torch.int64), codes)
