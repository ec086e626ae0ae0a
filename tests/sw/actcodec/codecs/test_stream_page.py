"""Other sentences of docs/reference/bitstream.md, neither rules nor promises of one mode: figures, sizes, bounds."""

import math
import re

import actcodec
import pytest
import torch
from actcodec.codecs import CODEC_NAMES
from cdu_verif.stimulus.streams import jpeg_base, rules
from manual_pages import page_text

PAGE = page_text("reference/bitstream.md")


def test_magnitudes_of_the_constants():
    """Check that the constants have 12 bits and are never midway between two integers."""
    exact = [math.sqrt(2) * math.cos(j * math.pi / 16) for j in range(1, 8)]
    assert f"\n{', '.join(str(round(x * 2**12)) for x in exact)}.\n" in PAGE
    assert all(abs(x * 2**bits % 1 - 0.5) > 1e-3 for x in exact for bits in range(8, 14))


@pytest.mark.parametrize("scale_bits", [8, 11, 24])
def test_float16_is_infinite_for_small_s_only(scale_bits):
    largest = torch.finfo(torch.float16).max
    x = torch.tensor([largest, -largest, 1.0], dtype=torch.float16)
    for name in ("sfpr", "sfpr+zvc"):
        infinite = {}
        for thousandths in (*range(900, 1000, 3), *range(1010, 2001, 15)):
            codec = actcodec.codec(name, S=thousandths / 1000, scale_bits=scale_bits)
            infinite[thousandths] = bool(codec.decompress(codec.compress(x)).isinf().any())
        assert any(infinite[thousandths] for thousandths in infinite if thousandths < 1010)
        assert not any(infinite[thousandths] for thousandths in infinite if thousandths >= 1010)


@pytest.mark.parametrize("name", ["actnn", "division", "autoquant", "autoquantz"])
def test_channels_of_zeros_have_the_greatest_multiplier(name):
    x = torch.zeros(1, 2, 8, 8)
    assert actcodec.codec(name).compress(x).reciprocals.eq(2.0**-120).all()
    assert actcodec.codec("sfpr").compress(x).reciprocals.eq(1 / 128).all()


@pytest.mark.parametrize("name", ["sfpr", "jpeg-act", "jpeg-base", "actnn", "division", "blpa", "autoquant", "autoquantz"])
def test_channels_without_finite_values_are_those_of_zeros(name):
    codec, zeros = actcodec.codec(name, nonfinite="saturate"), torch.zeros(1, 2, 8, 8)
    for value in (torch.nan, torch.inf, -torch.inf):
        assert codec.compress(zeros + value).reciprocals.equal(codec.compress(zeros).reciprocals)


@pytest.mark.parametrize("blocks", [1, 2, 7, 100])
def test_what_a_decoder_allocates_is_bounded_by_the_payload(blocks):
    """Check that no stream of the rules exceeds the bounds, and that blocks of zeros reach them."""
    for rule in rules.rules():
        for label, stream in rule.good.items():
            packed = actcodec.from_bytes(stream)
            assert 4 * math.prod(packed.header.shape) <= 32 * packed.header.payload_bytes, label
    shape = (1, 1, 8, 8 * blocks)
    packed = actcodec.codec("sfpr+zvc").compress(torch.zeros(shape))
    assert 4 * 64 * blocks == 32 * packed.header.payload_bytes
    packed = actcodec.codec("jpeg-base", huffman="optimal").compress(torch.zeros(shape))
    assert packed.header.payload_bytes == -(-2 * blocks // 8)
    for rule in jpeg_base.rules():
        for label, stream in rule.good.items():
            packed = actcodec.from_bytes(stream)
            assert 4 * math.prod(packed.header.shape) <= 1024 * packed.header.payload_bytes, label


def test_what_division_costs():
    """Check the ratios, and payloads of those maps: two saved tensors and a mask take the place of 9 bytes per value."""
    prose = " ".join(re.sub(r"<!--.*?-->", "", PAGE, flags=re.DOTALL).split())
    ((first, first_block, others, others_block),) = re.findall(
        r"ratio is ([\d.]+) \(with `block_range` ([\d.]+)\) for N = 56 and ([\d.]+) \(([\d.]+)\) for 28, 14 and 7,", prose
    )
    for n in (56, 28, 14, 7):
        x = torch.randn(2, 4, n, n, generator=torch.Generator().manual_seed(n))
        mask = actcodec.codec("brc").compress(x).header.payload_bytes
        stated = (first, first_block) if n == 56 else (others, others_block)
        for kind, ratio in zip(("channel", "block"), stated, strict=True):
            payload = actcodec.codec("division", bits=2, range=kind).compress(x).header.payload_bytes
            assert 9 * x.numel() / (2 * payload + mask) == pytest.approx(float(ratio), abs=0.005)


def test_every_mode_of_the_header_is_a_codec():
    (row,) = re.findall(r"^\| 5 \| 1 \| mode \| (.*) \|$", PAGE, re.MULTILINE)
    labels = [entry.split()[1] for entry in row.split(", ")]
    assert set(labels) - {"mx"} <= set(CODEC_NAMES)
    x = torch.randn(1, 2, 8, 8)
    for number, label in enumerate(labels, 1):
        stream = actcodec.codec("mxfp4" if label == "mx" else label).compress(x).to_bytes()
        assert (stream[4], stream[5]) == (1, number)


def test_every_format_of_mx_is_a_codec():
    """Check that the table of formats has the headers' numbers and the greatest numbers of the codes."""
    rows = re.findall(r"^\| (\d) \| (mx[\w-]+) \| (\d) \| \d \| \d \| ([\d.]+) \|$", PAGE, re.MULTILINE)
    assert len(rows) == 6
    for number, name, bits, greatest in rows:
        packed = actcodec.codec(name).compress(torch.full((32,), 3.0e38))
        assert (packed.to_bytes()[10], packed.payload.numel()) == (int(number), 1 + 4 * int(bits))
        emax = math.floor(math.log2(float(greatest)))
        assert packed.decompress()[0].item() == pytest.approx(min(3.0e38, float(greatest) * 2.0 ** (127 - emax)), rel=0.13)
