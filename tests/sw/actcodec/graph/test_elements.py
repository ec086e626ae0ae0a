"""Elements of MX and NVFP4 beside the golden model's."""

import pytest
import torch
from actcodec.golden import mx
from actcodec.graph.elements import element_codes, element_values, greatest_number, power_of_two
from cdu_spec.mx import MX_FORMATS, NVFP4_FORMAT, BlockFormat

FLOAT_KINDS = {name: kind for name, kind in {**MX_FORMATS, "nvfp4": NVFP4_FORMAT}.items() if not kind.is_integer}


@pytest.mark.parametrize("kind", FLOAT_KINDS.values(), ids=FLOAT_KINDS.keys())
def test_codes_are_the_golden_model_s(kind: BlockFormat) -> None:
    patterns = torch.cat((torch.arange(0, 0x7F800001, 0x3FFF), torch.arange(0x3B000000, 0x44000000, 0x1FF))).to(torch.int32)
    table = mx.numbers(kind)[: kind.greatest + 1].sort().values
    middles = (table[1:] + table[:-1]) / 2
    near = torch.cat((middles, torch.nextafter(middles, table[1:]), torch.nextafter(middles, table[:-1]), table))
    values = torch.cat((patterns.view(torch.float32), near))
    values = torch.cat((values, -values))
    assert torch.equal(element_codes(values, kind), mx.element_codes(values, kind).to(torch.int32))


@pytest.mark.parametrize("kind", FLOAT_KINDS.values(), ids=FLOAT_KINDS.keys())
def test_every_code_stands_for_the_golden_model_s_number(kind: BlockFormat) -> None:
    used = torch.arange(kind.greatest + 1)
    codes = torch.cat((used, used + (1 << (kind.bits - 1)))).to(torch.int32)
    expected = mx.numbers(kind)[codes]
    assert torch.equal(element_values(codes, kind).view(torch.int32), expected.view(torch.int32))
    assert greatest_number(kind) == expected.max()


def test_powers_of_two_are_the_golden_model_s() -> None:
    exponents = torch.arange(-127, 128, dtype=torch.int32)
    assert torch.equal(power_of_two(exponents), mx.power_of_two(exponents))
