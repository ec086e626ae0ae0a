"""Streams of version 2, jpeg-act with GMC or a reconstruction point: their promises and refusals."""

import re
import struct
import zlib
from pathlib import Path

import actcodec
import pytest
import torch
from actcodec.golden import shift_quantizer
from actcodec.golden.dct import dct
from cdu_spec import BitstreamError, UserError, dqt, gmc
from cdu_spec import dct as dct_spec
from cdu_spec.bitstream import Header
from cdu_spec.coding import ShiftCoding
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Coder, Dtype, Mode
from cdu_spec.rounding import Rounding
from plain_stream import decode

PAGE = (Path(__file__).parents[4] / "docs/reference/bitstream.md").read_text()
SHAPE = (1, 3, 3, 13)
#: Number of strips of 8 of the 9 rows, and of blocks side by side.
BLOCKS = 2 * 2
BACKENDS = ("torch", "native")


def sealed(body: bytes) -> bytes:
    return body + struct.pack("<I", zlib.crc32(body))


def stream(payload: bytes, *, version: int = 2, mode: int = 3, coder: int = 1, point: int = 3) -> bytes:
    """Return a stream with a right length and checksum and any other content."""
    header = struct.pack("<4s8BQ", b"CDU\x1a", version, mode, 0, 4, 12, 2, coder, point, len(payload))
    numbers = struct.pack("<4I", *SHAPE) + bytes(range(24)) + struct.pack("<3f", 1 / 64, 1 / 100, 1 / 128)
    return sealed(header + numbers + payload)


def same(packed: bytes) -> None:
    """Check that both decoders give the independent decoder's result."""
    _, expected = decode(packed)
    for backend in BACKENDS:
        assert torch.equal(actcodec.from_bytes(packed).decompress(backend), torch.from_numpy(expected))


def test_known_bytes():
    """Check a stream worked out by hand: a block of zeros is one head of zero; optL is 8 (shift 3); k of zeros is 128."""
    packed = actcodec.codec("jpeg-gmc", dqt="optL").compress(torch.zeros(1, 1, 8, 8)).to_bytes()
    table = sum(3 << 3 * place for place in range(64)).to_bytes(24, "little")
    body = bytes.fromhex("4344551a 02 03 00 04 08 00 01 03 0100000000000000") + struct.pack("<4I", 1, 1, 8, 8)
    assert packed == sealed(body + table + struct.pack("<f", 1 / 128) + b"\0")


@pytest.mark.parametrize("rec", [0, 1 / 8, 1 / 4, 3 / 8, 1 / 2])
@pytest.mark.parametrize("name", ["jpeg-act", "jpeg-gmc"])
def test_a_stream_has_the_least_version_that_says_it(name, rec):
    x = torch.randn(SHAPE, generator=torch.Generator().manual_seed(1))
    packed = actcodec.codec(name, dqt="optL", rec=rec).compress(x)
    data = packed.to_bytes()
    coder = int(name == "jpeg-gmc")
    assert (data[4], data[10], data[11]) == (2 if coder or rec else 1, coder, 8 * rec)
    assert packed.codec == actcodec.from_bytes(data).codec == name
    assert actcodec.from_bytes(data).to_bytes() == data
    same(data)


def test_the_point_changes_no_payload_and_lessens_the_error():
    x = torch.randn(2, 3, 40, 40, generator=torch.Generator().manual_seed(1)).cumsum(3).cumsum(2)
    codecs = [actcodec.codec("jpeg-act", dqt="optH", rec=rec) for rec in (0, 3 / 8)]
    published, nearer = (codec.compress(x) for codec in codecs)
    assert torch.equal(published.payload, nearer.payload)
    assert (nearer.decompress() - x).norm() < 0.95 * (published.decompress() - x).norm()


@pytest.mark.parametrize("mode", [1, 2, 4, 5, 6, 7, 8, 9, 10])
def test_version_2_is_of_jpeg_act_alone(mode):
    with pytest.raises(BitstreamError, match="stream version 2 is not known for what this one says"):
        actcodec.from_bytes(stream(bytes(BLOCKS), mode=mode))


def test_version_2_with_neither_coder_nor_point_is_refused():
    with pytest.raises(BitstreamError, match="stream version 2 is not known for what this one says: it is version 1"):
        actcodec.from_bytes(stream(bytes(8 * BLOCKS), coder=0, point=0))


@pytest.mark.parametrize(("coder", "point"), [(1, 0), (0, 1), (0, 3), (1, 1)])
def test_version_1_has_neither_coder_nor_point(coder, point):
    size = BLOCKS if coder else 8 * BLOCKS
    same(stream(bytes(size), coder=coder, point=point))
    with pytest.raises(BitstreamError, match="reserved header bits"):
        actcodec.from_bytes(stream(bytes(size), version=1, coder=coder, point=point))


@pytest.mark.parametrize("coder", [2, 3, 128, 255])
def test_other_coders_are_refused(coder):
    with pytest.raises(BitstreamError, match=f"coder {coder} does not exist"):
        actcodec.from_bytes(stream(bytes(8 * BLOCKS), coder=coder))


@pytest.mark.parametrize("coder", [0, 1])
def test_points_are_0_to_4(coder):
    payload = bytes(8 * BLOCKS if coder == 0 else BLOCKS)
    for point in range(5) if coder else range(1, 5):
        same(stream(payload, coder=coder, point=point))
    for point in (5, 8, 128, 255):
        with pytest.raises(BitstreamError, match=f"reconstruction point {point} is not allowed"):
            actcodec.from_bytes(stream(payload, coder=coder, point=point))


def test_payload_bounds():
    assert MatrixView.of(SHAPE, Mode.JPEG_ACT).payload_bounds(Dtype.FP32, ShiftCoding(Coder.GMC)) == (BLOCKS, 81 * BLOCKS)
    longest = (b"\xff" + bytes(range(80))) * BLOCKS
    same(stream(bytes(BLOCKS)))
    same(stream(longest))
    for payload in (bytes(BLOCKS - 1), longest + b"\0", b""):
        with pytest.raises(BitstreamError, match="payload bytes cannot hold shape"):
            actcodec.from_bytes(stream(payload))


def test_what_a_decoder_allocates_is_bounded_by_the_payload():
    packed = actcodec.codec("jpeg-gmc").compress(torch.zeros(1, 1, 8, 72))
    assert 4 * packed.payload.numel() * 64 == 256 * packed.header.payload_bytes == 4 * 8 * 72


def test_blocks_that_do_not_end_where_the_payload_does_are_refused():
    block = b"\x10\x55\x2a"
    broken = {
        "a byte behind the last block": block * BLOCKS + b"\0",
        "the last byte is not there": (block * BLOCKS)[:-1],
        "a block behind the last": block * (BLOCKS + 1),
        "the last block is not there": block * (BLOCKS - 1),
        "a head of a longer block": b"\x18" + block[1:] + block * (BLOCKS - 1),
        "a head of a long block": block * (BLOCKS - 1) + b"\xff" + block[1:],
    }
    same(stream(block * BLOCKS))
    for label, payload in broken.items():
        for backend in BACKENDS:
            with pytest.raises(BitstreamError, match="the blocks do not end where the payload ends"):
                pytest.fail(f"{label}: {actcodec.from_bytes(stream(payload)).decompress(backend)}")


def test_the_tables_of_the_page_are_those_of_the_code():
    (text,) = re.findall(r"```\n(A_CODES.*?)\n```", PAGE, re.DOTALL)
    expected = []
    for name in ("A_CODES", "B_CODES", "MASK_CODES"):
        expected += [name, *(f"  {row}: {' '.join(words)}" for row, words in enumerate(getattr(gmc, name)))]
    assert text.splitlines() == expected


@pytest.mark.parametrize("step", [1, 2, 4, 8, 16, 32, 64, 128])
def test_uniform_tables(step):
    assert dqt.shifts(f"uniform-{step}") == (max(step.bit_length() - 1, 3),) * 64


def extremes(const_bits, pass1_bits):
    """Return least and greatest value of each coefficient, from samples with its basis function's signs or opposite."""
    basis = torch.tensor(dct_spec.basis(const_bits))
    signs = (basis[:, None, :, None] * basis[None, :, None, :]).reshape(64, 8, 8) >= 0
    samples = torch.stack([torch.where(signs, 127, -128), torch.where(signs, -128, 127)]).to(torch.int8)
    found = dct(samples.view(128, 8, 8), const_bits, pass1_bits).view(2, 64, 64).to(torch.int32)
    return found.diagonal(dim1=1, dim2=2)


@pytest.mark.parametrize(("const_bits", "pass1_bits"), [(8, 0), (8, 4), (12, 2), (13, 0), (13, 4)])
def test_the_least_shift_is_the_least_with_which_no_coefficient_saturates(const_bits, pass1_bits):
    c = extremes(const_bits, pass1_bits)
    for rounding in Rounding:
        errors = []
        for shift in (dqt.LEAST_SHIFT - 1, dqt.LEAST_SHIFT):
            codes = shift_quantizer.quantize(c, torch.tensor(shift), rounding)
            errors.append((shift_quantizer.inverse(codes, torch.tensor(shift)) - c).abs())
        most = 1 << dqt.LEAST_SHIFT
        assert bool((errors[1] <= (most // 2 if rounding is Rounding.HALF_AWAY else most - 1)).all())
        assert bool((errors[0] > 40 * most).any(0).all())  # for every one of the 64 coefficients


def pictures():
    """Return maps with the largest possible coefficients, edges and boards, and with smooth content and noise."""
    generator = torch.Generator().manual_seed(0)
    basis = torch.tensor(dct_spec.basis(8)).sign().float()
    waves = (basis[:, None, :, None] * basis[None, :, None, :]).reshape(1, 64, 8, 8)
    smooth = torch.nn.functional.interpolate(torch.randn(1, 64, 2, 2, generator=generator), (8, 8), mode="bilinear")
    return {"waves": waves, "smooth": smooth, "noise": torch.randn(1, 64, 8, 8, generator=generator)}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ["jpeg-act", "jpeg-gmc"])
@pytest.mark.parametrize("kind", ["waves", "smooth", "noise"])
def test_error_and_ratio_rise_with_the_step(kind, name, backend):
    """Check all steps; those below 8 are raised to 8, because saturated coefficients make more bytes and larger errors."""
    x, found = pictures()[kind], []
    for step in (1, 2, 4, 8, 16, 32, 64):
        codec = actcodec.codec(name, dqt=f"uniform-{step}", S=1.0, backend=backend)
        packed = codec.compress(x)
        found.append((float((codec.decompress(packed) - x).norm() / x.norm()), -packed.nbytes))
    errors, sizes = zip(*found, strict=True)
    if kind != "waves":  # few coefficients of waves may happen to be multiples of a step
        assert list(errors) == sorted(errors)
    assert list(sizes) == sorted(sizes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rec": 0.3}, "rec = 0.3 is not allowed: use 0, 0.125, 0.25, 0.375, 0.5"),
        ({"rec": True}, "rec = True is not allowed"),
        ({"rec": "3/8"}, "rec = '3/8' is not allowed"),
        ({"rec": [0]}, "rec = "),
        ({"dqt": "uniform-24"}, "uniform-24 is not exact in shifts: use uniform-N with N of 1, 2, 4, 8, 16, 32, 64, 128"),
        ({"dqt": "uniform-0"}, "unknown quantisation table 'uniform-0'"),
        ({"dqt": "uniform-256"}, "unknown quantisation table 'uniform-256'"),
    ],
)
def test_bad_options(options, message):
    for name in ("jpeg-act", "jpeg-gmc"):
        with pytest.raises(UserError, match=re.escape(message)):
            actcodec.codec(name, **options)


def test_every_uniform_step_is_a_table_of_divisors():
    x = torch.randn(1, 2, 16, 16, generator=torch.Generator().manual_seed(3))
    packed = actcodec.codec("jpeg-base", dqt="uniform-24").compress(x)
    assert dqt.divisors("uniform-24") == (24,) * 64
    assert dqt.divisors("uniform-3") == (8, *(3,) * 63)
    assert (packed.decompress() - x).norm() < 0.3 * x.norm()


def test_a_header_of_another_mode_has_no_coder():
    for how in (ShiftCoding(Coder.GMC), ShiftCoding(point=1)):
        with pytest.raises(BitstreamError, match="mode sfpr takes no coder and reconstruction point"):
            Header(Mode.SFPR, Dtype.FP32, (8,), 8, how=how)
