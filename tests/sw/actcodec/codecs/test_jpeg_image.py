"""JPEG files of compressed activations: libjpeg decodes them to the golden samples plus 128, within one."""

import json

import actcodec
import numpy as np
import pytest
import torch
import typer
from actcodec.codecs.jpeg.jpeg_image import jpeg_image
from actcodec.golden.jfif import MAX_SIDE, jfif
from cdu_cli import export_jpeg
from cdu_spec import BitstreamError, UserError, dqt
from cdu_spec.huffman import STANDARD
from cdu_spec.jpeg import ZIGZAG
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_jpeg import IMAGES, libjpeg_samples, photograph, read_file
from typer.testing import CliRunner


def from_image(samples):
    """Return (1, 1, H, W) for which, with S = 1, SFPR's values are about the samples less 128."""
    return torch.from_numpy(samples.astype(np.float32) - 128)[None, None]


def activations(shape=(2, 3, 17, 21), seed=0):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.avg_pool2d(x, 3, 1, 1).relu() * 3 - 0.5


def check(packed, samples):
    """Check the file of ``packed`` against the golden samples, int (H, W), and return it."""
    data = jpeg_image(packed)
    decoded = libjpeg_samples(data).astype(int)
    assert decoded.shape == samples.shape
    assert np.abs(decoded - (samples + 128)).max() <= 1
    return data


def golden(packed):
    return packed.samples().numpy().astype(int)


@pytest.mark.parametrize("huffman", ["standard", "optimal"])
@pytest.mark.parametrize("table", ["optL", "optH", "optsH", "image10", "image75", "image100"])
@pytest.mark.parametrize("name", IMAGES)
def test_images_in_libjpeg(name, table, huffman):
    packed = actcodec.codec("jpeg-base", dqt=table, S=1.0, huffman=huffman).compress(from_image(IMAGES[name]()))
    data = check(packed, golden(packed))
    file = read_file(data)
    # The file contains the stream's segment unchanged, and a bit-by-bit reader finds the golden coefficients in it.
    assert file.segment == bytes(packed.payload.tolist())
    assert np.array_equal(file.coefficients(), packed.coefficients().numpy())
    assert [file.divisors[place] for place in np.argsort(ZIGZAG)] == list(dqt.divisors(table))


def test_a_photograph_stays_itself():
    samples = photograph()
    packed = actcodec.codec("jpeg-base", dqt="image90", S=1.0).compress(from_image(samples))
    decoded = libjpeg_samples(jpeg_image(packed)).astype(float)
    # SFPR's scale is 128 / max|x|, which here is at most 128.
    scale = 128 / np.abs(samples.astype(float) - 128).max()
    error = (decoded - 128) / scale - (samples.astype(float) - 128)
    assert 10 * np.log10(255**2 / np.mean(error**2)) > 35


@settings(max_examples=40)
@given(
    st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(8, 20), st.integers(8, 40)),
    st.sampled_from(["optL", "optH", "image1", "image50", "image100"]),
    st.sampled_from(["half_away", "trunc"]),
    st.sampled_from([1.0, 1.125, 4.0]),
    st.integers(0, 2**31),
)
def test_activations_in_libjpeg(shape, table, rounding, scale, seed):
    packed = actcodec.codec("jpeg-base", dqt=table, rounding=rounding, S=scale).compress(activations(shape, seed))
    check(packed, golden(packed))


@pytest.mark.parametrize("table", ["optL", "optsH", "image20", "image100"])
@pytest.mark.parametrize("shape", [(2, 3, 17, 21), (1, 1, 8, 8)])
def test_jpeg_act_in_libjpeg(table, shape):
    """Check the values of jpeg-act, converted back to int8 by its scales."""
    packed = actcodec.codec("jpeg-act", dqt=table).compress(activations(shape))
    n, c, h, w = shape
    q = packed.decompress().double() / packed.reciprocals.double()[:, None, None]
    data = check(packed, q.round().to(torch.int64).view(n * c * h, w).numpy())
    assert [read_file(data).divisors[place] for place in np.argsort(ZIGZAG)] == [2**shift for shift in dqt.shifts(table)]


def test_all_zero_is_middle_grey():
    packed = actcodec.codec("jpeg-base").compress(torch.zeros(1, 2, 9, 11))
    assert (libjpeg_samples(jpeg_image(packed)) == 128).all()


def test_gmc_has_the_image_of_jpeg_act():
    """Check that the coefficients make the same file; a JPEG has no reconstruction point."""
    acts, gmcs = (actcodec.codec(name, dqt="optsH", S=1).compress(activations()) for name in ("jpeg-act", "jpeg-gmc"))
    assert jpeg_image(gmcs) == jpeg_image(acts)


@pytest.mark.parametrize("name", ["jpeg-base", "jpeg-act"])
@pytest.mark.parametrize("huffman", ["standard", "optimal"])
@pytest.mark.parametrize("rows", [(0, 8), (0, 13), (16, 102), (88, 102), (96, 97)])
def test_rows_are_those_of_the_whole_image(rows, name, huffman):
    options = {"huffman": huffman} if name == "jpeg-base" else {}
    packed = actcodec.codec(name, **options).compress(activations())
    whole = libjpeg_samples(jpeg_image(packed))
    assert np.array_equal(libjpeg_samples(jpeg_image(packed, rows)), whole[slice(*rows)])


@pytest.mark.parametrize("rows", [(0, 103), (8, 8), (16, 8), (-8, 8), (3, 16), (104, 112)])
def test_rows_that_are_not_there(rows):
    packed = actcodec.codec("jpeg-base").compress(activations())
    with pytest.raises(
        UserError, match="the matrix of 102 x 21 values are no image: begin with a multiple of 8 and end by 102"
    ):
        jpeg_image(packed, rows)


def test_the_largest_image_and_beyond():
    tall = actcodec.codec("jpeg-base", dqt="optH").compress(torch.ones(1, 1, MAX_SIDE + 1, 8))
    with pytest.raises(UserError, match=r"65501 x 8 values does not fit a JPEG, .* 65500 rows: choose rows, as in 0:65500"):
        jpeg_image(tall)
    assert libjpeg_samples(jpeg_image(tall, (0, MAX_SIDE))).shape == (MAX_SIDE, 8)
    assert libjpeg_samples(jpeg_image(tall, (65496, 65501))).shape == (5, 8)
    wide = actcodec.codec("jpeg-base", dqt="optH").compress(torch.ones(1, 1, 8, MAX_SIDE + 1))
    with pytest.raises(UserError, match="at most 65500 columns: use a tensor of narrower maps"):
        jpeg_image(wide)
    for height, width in ((0, 1), (1, MAX_SIDE + 1)):
        with pytest.raises(UserError, match=f"{height} x {width} does not fit"):
            jfif(height, width, [1] * 64, STANDARD, b"")


@pytest.mark.parametrize("name", ["sfpr", "sfpr+zvc", "brc", "division", "none", "actnn-float"])
def test_codecs_without_such_blocks(name):
    with pytest.raises(UserError, match="only the blocks of jpeg-base, jpeg-act and jpeg-gmc"):
        jpeg_image(actcodec.codec(name).compress(activations()))


def test_a_damaged_payload_makes_no_file():
    packed = actcodec.codec("jpeg-base").compress(activations())
    packed.payload[3] = 0xFF
    with pytest.raises(BitstreamError):
        jpeg_image(packed, (0, 8))


@pytest.fixture
def run():
    app = typer.Typer()
    app.callback()(lambda: None)
    export_jpeg.register(app)

    def call(*words):
        result = CliRunner().invoke(app, ["export-jpeg", *map(str, words)])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return call


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ([], {}),
        (["--dqt", "image30", "--S", "1.0", "--rounding", "trunc"], {"dqt": "image30", "S": 1.0, "rounding": "trunc"}),
        (["--huffman", "optimal", "--nonfinite", "saturate"], {"huffman": "optimal", "nonfinite": "saturate"}),
    ],
)
def test_command_on_an_array(run, tmp_path, words, options):
    np.save(tmp_path / "x.npy", activations().numpy())
    report = tmp_path / "report.json"
    result = run(tmp_path / "x.npy", tmp_path / "x.jpg", *words, "--json", report)
    assert result.exit_code == 0
    data = (tmp_path / "x.jpg").read_bytes()
    assert data == jpeg_image(actcodec.codec("jpeg-base", **options).compress(activations()))
    assert json.loads(report.read_text()) == {"codec": "jpeg-base", "height": 102, "width": 21, "bytes": len(data)}
    assert f"102 x 21 samples in {len(data)} bytes" in result.stderr


@pytest.mark.parametrize("name", ["jpeg-base", "jpeg-act"])
def test_command_on_a_stream(run, tmp_path, name):
    packed = actcodec.codec(name).compress(activations().bfloat16())
    (tmp_path / "x.cdu").write_bytes(packed.to_bytes())
    run(tmp_path / "x.cdu", tmp_path / "x.jpg")
    assert (tmp_path / "x.jpg").read_bytes() == jpeg_image(packed)
    run(tmp_path / "x.cdu", tmp_path / "part.jpg", "--rows", "8:16")
    assert (tmp_path / "part.jpg").read_bytes() == jpeg_image(packed, (8, 16))
