"""The conformance suite from outside: a codec of another package is held to it, and faults of that codec are found."""

import os
import subprocess
import sys

import pytest

CODEC = """
from dataclasses import dataclass

import torch
from actcodec.codecs import Codec
from actcodec.codecs.codec import check_finite, check_input
from cdu_tools.errors import UserError


@dataclass(frozen=True, eq=False)
class Halves:
    shape: tuple
    dtype: torch.dtype
    scale: torch.Tensor
    codes: torch.Tensor

    @property
    def nbytes(self):
        return self.codes.numel() * self.codes.element_size() + 4 * self.scale.numel()

    def to_bytes(self):
        raise UserError("such a form has no bitstream: use sfpr")

    def decompress(self, backend="torch"):
        values = self.codes.to(torch.float64) * self.scale.to(torch.float64)
        limits = torch.finfo(self.dtype)
        return values.clamp(limits.min, limits.max).to(self.dtype)


@dataclass
class WholeSteps(Codec):
    bits: int = 8
    name = "whole-steps"

    def __post_init__(self):
        if self.bits not in (4, 8):
            raise UserError(f"bits = {self.bits} is not allowed: use 4 or 8")

    def compress(self, x):
        check_input(x)
        check_finite(x)
        x = x.detach().double()
        most = 2 ** (self.bits - 1) - 1
        scale = (x.abs().amax() / most).to(torch.float32).clamp_min(2.0**-126)
        return Halves(tuple(x.shape), DTYPE, scale, (x / scale.double()).round().clamp(-most, most).to(torch.int8))

    def decompress(self, compressed):
        return compressed.decompress()

    def takes(self, shape):
        return True
""".replace("x = x.detach().double()", "kind, x = x.dtype, x.detach().double()").replace("DTYPE", "kind")
RUN = """
from actcodec.testing import check_codec
from other_codec import WholeSteps
print("cases", check_codec(WholeSteps))
"""


def checked(folder, change=("", "")):
    assert change[0] in CODEC
    (folder / "other_codec.py").write_text(CODEC.replace(*change), encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": "."}
    return subprocess.run([sys.executable, "-c", RUN], cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_a_codec_of_another_package_passes(tmp_path):
    done = checked(tmp_path)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) > 50


@pytest.mark.parametrize(
    ("change", "row"),
    [
        ((".clamp(-most, most).to(torch.int8)", ".floor().add(1).to(torch.int8)"), "c1_extremes_saturate_and_do_not_wrap"),
        (("round()", "floor()"), "c9_negative_numbers_are_rounded_as_positive_ones_are"),
        (("        check_finite(x)\n", ""), "c6_not_a_number_and_infinity"),
        (("self.codes.numel() *", "self.codes.numel() // 2 *"), "c10_packed_bytes_decode_to_the_same_bits"),
        (("tuple(x.shape), kind", "tuple(x.shape), torch.float32"), "c1_extremes_saturate_and_do_not_wrap"),
        (("x.abs().amax()", "x.float().abs().amax().clamp(1e-3)"), "c2_zero_range"),
    ],
)
def test_a_fault_is_found_by_its_row(tmp_path, change, row):
    done = checked(tmp_path, change)
    assert done.returncode == 1
    assert f"row {row}, case whole-steps-" in done.stderr.splitlines()[-1]
