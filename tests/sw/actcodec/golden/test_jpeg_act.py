"""The fast computation over whole matrices gives the integers of the block functions, on every device."""

import pytest
import torch
from actcodec.golden import blocks, jpeg_act
from actcodec.golden.dct import dct, idct
from actcodec.golden.shift_quantizer import inverse, quantize
from cdu_spec import MatrixView, Mode, Rounding
from cdu_spec.bitstream import COEFFICIENT_ORDER
from hypothesis import given, settings
from hypothesis import strategies as st

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def matrix_of(kind, rows, columns, seed):
    random = torch.Generator().manual_seed(seed)
    noise = torch.randint(-128, 128, (rows, columns), generator=random)
    if kind == "extreme":
        noise = torch.where(noise < 0, -128, 127)
    if kind == "constant":
        noise = noise[:1, :1].expand(rows, columns)
    return noise.to(torch.int8).contiguous()


@pytest.mark.parametrize("device", DEVICES)
@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(["noise", "extreme", "constant"]),
    strips=st.integers(1, 5),
    row_beats=st.integers(1, 9),
    precision=st.tuples(st.integers(8, 13), st.integers(0, 4)),
    shifts=st.lists(st.integers(0, 7), min_size=64, max_size=64),
    rounding=st.sampled_from(list(Rounding)),
    seed=st.integers(0, 2**31),
)
def test_fast_path_equals_the_blocks(device, kind, strips, row_beats, precision, shifts, rounding, seed):
    matrix = matrix_of(kind, 8 * strips, 8 * row_beats, seed)
    table = torch.tensor(shifts)
    coefficients = dct(blocks.tiles(matrix), *precision).view(-1, 64)[:, list(COEFFICIENT_ORDER)]
    expected = quantize(coefficients, table, rounding)
    mine = jpeg_act.forward(matrix.to(device), shifts, *precision, rounding)
    assert torch.equal(mine.cpu(), expected)

    natural = inverse(expected, table)[:, list(COEFFICIENT_ORDER)].view(-1, 8, 8)  # the order is its own inverse
    view = MatrixView(8 * strips, 8 * row_beats, 1, 1, Mode.JPEG_ACT)
    back = jpeg_act.inverse(mine, row_beats, shifts, *precision)
    assert torch.equal(back.cpu(), blocks.untiled(idct(natural, *precision), view))


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 2**31),
    st.lists(st.integers(0, 7), min_size=64, max_size=64),
    st.sampled_from([(12, 2), (13, 4)]),
    st.integers(0, 4),
)
def test_fast_inverse_takes_any_quantised_value(seed, shifts, precision, point):
    """Check values that no encoder writes, extremes of all places together included."""
    random = torch.Generator().manual_seed(seed)
    values = torch.randint(-128, 128, (6, 64), generator=random)
    values[3:] = torch.where(values[3:] < 0, -128, 127)
    values = (values * (torch.rand(values.shape, generator=random) < 0.8)).to(torch.int8)
    natural = inverse(values, torch.tensor(shifts), point)[:, list(COEFFICIENT_ORDER)].view(-1, 8, 8)
    view = MatrixView(16, 24, 1, 1, Mode.JPEG_ACT)
    found = jpeg_act.inverse(values, 3, shifts, *precision, point)
    assert torch.equal(found, blocks.untiled(idct(natural, *precision), view))


def test_pieces_larger_than_the_cache_and_wide_rows():
    for rows, columns in ((4096, 64), (8, 100_000), (40, 8)):
        matrix = matrix_of("noise", rows, columns, 5)
        shifts = [3] * 64
        mine = jpeg_act.forward(matrix, shifts, 12, 2, Rounding.HALF_AWAY)
        expected = quantize(blocks.to_payload_order(dct(blocks.tiles(matrix))), torch.tensor(3), Rounding.HALF_AWAY)
        assert torch.equal(mine, expected)
        assert jpeg_act.inverse(mine, columns // 8, shifts, 12, 2).shape == matrix.shape


@pytest.mark.parametrize("shift", range(8))
def test_ties_away_factor_is_right_for_every_coefficient(shift):
    c = torch.arange(-2048, 2048)
    factor = torch.tensor(2.0**-shift * (1 + 2.0**-11), dtype=torch.float32)
    fast = (c.float() * factor).clamp(-128, 127).round().to(torch.int8)
    assert torch.equal(fast, quantize(c.to(torch.int16), torch.tensor(shift), Rounding.HALF_AWAY))


def test_settings_of_the_training_loop_do_not_matter():
    """Check that autocast and reduced matmul precision, which change float32 products, do not affect the golden model."""
    matrix = matrix_of("noise", 64, 64, 2)
    shifts = [3] * 64
    expected = jpeg_act.forward(matrix, shifts, 12, 2, Rounding.HALF_AWAY)
    back, coefficients = jpeg_act.inverse(expected, 8, shifts, 12, 2), dct(blocks.tiles(matrix))
    precision = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("medium")
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert torch.equal(jpeg_act.forward(matrix, shifts, 12, 2, Rounding.HALF_AWAY), expected)
            assert torch.equal(jpeg_act.inverse(expected, 8, shifts, 12, 2), back)
            assert torch.equal(dct(blocks.tiles(matrix)), coefficients)
    finally:
        torch.set_float32_matmul_precision(precision)
