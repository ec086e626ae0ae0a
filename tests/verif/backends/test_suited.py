"""Jobs that a compiled unit was not built for: each is refused in one sentence."""

from dataclasses import replace

import actcodec
import pytest
import torch
from cdu_spec import CduConfig
from cdu_verif.backends.compiled.backend import RtlBackend
from cdu_verif.backends.compiled.suited import UnsuitedUnitError
from tools_here import needs_verilator

pytestmark = needs_verilator


def _tensor(shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("config", "name", "options", "message"),
    [
        ({}, "jpeg-act", {"pass1_bits": 1}, "pass1_bits = 0, the job needs pass1_bits = 1"),
        ({}, "jpeg-act", {"rounding": "half_away"}, "rounding = trunc, the job needs rounding = half_away"),
        ({"value_format": "fp16"}, "sfpr", {}, "value_format = fp16, the job needs value_format = fp32"),
        ({"modes": ("brc",)}, "sfpr", {}, "without mode sfpr, only with brc"),
        ({}, "sfpr", {"scale_bits": 24}, "scale_bits = 8, the scales have more"),
    ],
)
def test_what_a_unit_was_not_built_for(config, name, options, message):
    with pytest.raises(UnsuitedUnitError, match=message) as caught:
        actcodec.codec(name, **options, backend=RtlBackend(CduConfig(**config))).compress(_tensor((1, 3, 8, 16)))
    assert "\n" not in str(caught.value)


def test_reciprocals_of_more_bits_are_refused_in_one_sentence():
    stream = actcodec.codec("sfpr").compress(_tensor((1, 3, 8, 16)))
    finer = replace(stream, reciprocals=stream.reciprocals * (1 + 2.0**-20))
    with pytest.raises(UnsuitedUnitError, match="built with reciprocal_bits = 12, the scales have more: use backend") as caught:
        finer.decompress(RtlBackend(CduConfig()))
    assert "\n" not in str(caught.value)


def test_coders_and_points_of_other_units_are_refused_in_one_sentence():
    x, unit = _tensor((1, 3, 8, 16)), RtlBackend(CduConfig())
    with pytest.raises(UnsuitedUnitError, match="unit tiny was built without coder gmc, only with coders = zvc: use backend"):
        actcodec.codec("jpeg-gmc", backend=unit).compress(x)
    for name, rec, missing in (("jpeg-gmc", 0, "coder gmc"), ("jpeg-act", 1 / 8, "a reconstruction point")):
        with pytest.raises(UnsuitedUnitError, match=f"unit tiny was built without {missing}"):
            actcodec.codec(name, rec=rec).compress(x).decompress(unit)
    with pytest.raises(UnsuitedUnitError, match="without coder zvc, only with coders = gmc"):
        actcodec.codec("jpeg-act", backend=RtlBackend(CduConfig(coders=("gmc",)))).compress(x)
