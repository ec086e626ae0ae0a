"""The treatment of one tensor by ``cdu compress``."""

import actcodec
import pytest
import torch
from actcodec.backends.named import backend
from actcodec.codecs.option_search import Goal
from cdu_cli.tensor_compression import TensorCompression
from cdu_tools.errors import UserError

TORCH = backend("torch")
X = torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(0))


def test_a_stream_is_the_same_beside_others_as_alone():
    each = TensorCompression("division", {"seed": 3}, TORCH)
    expected = actcodec.codec("division", seed=3).compress(X).to_bytes()
    assert [each.compress(X).packed.to_bytes() for _ in range(2)] == [expected, expected]


@pytest.mark.parametrize("given", [torch.float64, torch.int64, torch.int16, torch.uint8, torch.bool, torch.bfloat16])
@pytest.mark.parametrize("cast", ["float32", "float16", "bfloat16"])
def test_casts(given, cast):
    values = (X.abs() * 9).to(given)
    done = TensorCompression("bypass", {}, TORCH, cast=cast, report=True).compress(values)
    expected = values.to(getattr(torch, cast))
    assert torch.equal(done.packed.decompress(), expected)
    assert done.original_bytes == values.nbytes
    assert done.error.largest == float((expected.double() - values.double()).abs().max())


@pytest.mark.parametrize(
    ("values", "cast", "said"),
    [
        (X.double(), None, "it holds float64: use float32, bfloat16, float16, or convert with --cast"),
        (torch.arange(9), None, "it holds int64: "),
        (X.to(torch.complex64), "float32", "it holds complex64, which --cast does not convert"),
        (torch.full((3,), 1e300, dtype=torch.float64), "float32", "it has values beyond the range of float32"),
        (X.to_sparse(), "float32", "cannot compress sparse tensors"),
        (torch.tensor([70000]), "float16", "it has values beyond the range of float16"),
    ],
)
def test_what_is_not_cast(values, cast, said):
    with pytest.raises(UserError, match=said):
        TensorCompression("bypass", {}, TORCH, cast=cast).compress(values)


@pytest.mark.parametrize(
    ("values", "kept"),
    [(X, False), (X[0], True), (X.double(), True), (torch.tensor(7), True), (torch.zeros(0, 3), True), (X.half(), False)],
)
def test_what_a_codec_does_not_take_is_kept(values, kept):
    done = TensorCompression("jpeg-act", {}, TORCH, keep=True, report=True).compress(values)
    assert done.codec == ("exact" if kept else "jpeg-act")
    if kept:
        assert torch.equal(done.packed.decompress(), values)
        assert done.packed.decompress().dtype == values.dtype
    else:
        assert done.error.largest > 0


def test_a_cast_comes_before_what_is_kept():
    each = TensorCompression("sfpr", {}, TORCH, cast="float32", keep=True)
    assert each.compress(X.double()).codec == "sfpr"
    assert each.compress(torch.tensor(7)).codec == "exact"


def test_a_report_says_what_was_found_and_measured():
    done = TensorCompression("autoquant", {}, TORCH, goal=Goal(ratio=6), report=True).compress(X)
    about = done.as_json()
    error = (actcodec.codec("autoquant", bits=4).compress(X).decompress().double() - X.double()).abs().max()
    assert about["options"] == {"bits": 4}
    assert about["max_error"] == float(error)
    assert about["ratio"] == X.nbytes / done.packed.nbytes >= 6
    assert done.line("x").startswith("x: autoquant, float32 (2, 3, 16, 16), ")
    assert f"--bits 4, largest error {float(error):.4g}, RMS " in done.line("x")
    exact = TensorCompression("bypass", {}, TORCH, report=True).compress(X).as_json()
    assert (exact["max_error"], exact["rms_error"], exact["psnr_db"]) == (0, 0, None)


def test_wrong_options_are_seen_before_a_file_is_read():
    for settings, said in (
        ({"cast": "int8"}, "--cast int8 is not known"),
        ({"goal": Goal(ratio=2)}, "no option that --ratio could find"),
        ({"options": {"bits": 2}}, "no option 'bits'"),
    ):
        with pytest.raises(UserError, match=said):
            TensorCompression("sfpr", **({"options": {}, "backend": TORCH} | settings))
