"""JPEG's encoder and decoder in Amaranth's simulator: their cases, and a photograph from and to libjpeg."""

from random import Random

import numpy as np
import pytest
import torch
from actcodec.golden.blocks import tiles
from actcodec.golden.jfif import jfif
from cdu.delivery import generator, manifest
from cdu.unit.jpeg_decoder import JpegDecoder
from cdu.unit.jpeg_encoder import JpegEncoder
from cdu_spec import port_fields
from cdu_spec.config import CduConfig
from cdu_spec.config_rules import ConfigError
from cdu_spec.dct import IEEE1180
from cdu_spec.huffman import STANDARD
from cdu_spec.rounding import Rounding
from cdu_verif.benches.full_rate import play
from cdu_verif.benches.in_amaranth import assert_passes
from cdu_verif.cases.entropy_coder import segments, wrong_scans
from cdu_verif.cases.jpeg_scans import image_table, port_table, quantized, restored, sample_rows
from parameter_sets import one_at_once
from plain_jpeg import libjpeg_file, libjpeg_samples, photograph, read_file

CONFIG = CduConfig(rounding=Rounding.HALF_AWAY.value, **IEEE1180._asdict())
SIDES = (48, 72)


def ports_of(component):
    return {port["name"]: port for port in manifest.ports(component)}


def level_shifted(samples):
    """Return blocks (n, 8, 8) of int8 of an image of uint8."""
    return tiles(torch.from_numpy((samples.astype(int) - 128).astype(np.int8)))


def image_of(blocks):
    """Return the image of uint8 of blocks of samples."""
    across = SIDES[1] // 8
    return blocks.reshape(-1, across, 8, 8).transpose(1, 2).reshape(SIDES).numpy().astype(int) + 128


def assert_near(samples, others):
    """Assert that samples differ by at most one, and few of them at all."""
    assert np.abs(samples - others).max() <= 1
    assert (samples != others).mean() < 0.01


def encoded(scans, divisors):
    """Return the hardware's segments of scans of blocks (n, 8, 8)."""
    encoder = JpegEncoder(CONFIG)
    ports = ports_of(encoder)
    received, _ = play(encoder, sample_rows(ports, "i", scans), {"divisors": port_table(divisors)})
    found, data = [], b""
    for word in (port_fields.unpack(ports["o__payload"], word) for word in received):
        data += word["data"].to_bytes(8, "little")[: word["count"]]
        if word["last"]:
            found.append(data)
            data = b""
    assert data == b""
    return found


def decoded(scans, divisors):
    """Return for each segment the hardware's blocks (n, 8, 8) of samples, and whether the last one has an error."""
    decoder = JpegDecoder(CONFIG)
    ports = ports_of(decoder)
    received, _ = play(decoder, segments(ports, "i", scans), {"divisors": port_table(divisors)})
    found, rows = [], []
    for word in received:
        rows.append(port_fields.unpack(ports["o__payload"], word))
        if rows[-1]["last"] and len(rows) % 8 == 0:
            found.append((torch.tensor([row["values"] for row in rows]).view(-1, 8, 8), rows[-1]["error"]))
            rows = []
    assert not rows
    return found


@pytest.mark.parametrize("block", ["jpeg_encoder", "jpeg_decoder"])
@one_at_once({}, {"dct_stages": 1, "register_slices": 1})
def test_cases(block, options):
    assert_passes(block, CduConfig(**options), blocks=3)


@pytest.fixture(scope="module")
def picture():
    """Return a part of a photograph, whole blocks."""
    return photograph()[: SIDES[0], : SIDES[1]]


#: The finer table uses more of the features of a segment.
QUALITIES = (pytest.param(75, marks=pytest.mark.campaign), 95)


@pytest.mark.parametrize("quality", QUALITIES)
def test_libjpeg_decodes_what_the_encoder_writes(picture, quality):
    """Samples are within one of the golden model's, and nearly as close to the picture as libjpeg's file of the same length."""
    divisors, blocks = image_table(quality), level_shifted(picture)
    height, width = SIDES
    segment, *halves = encoded([blocks, *blocks.chunk(2)], divisors)
    data = jfif(height, width, divisors, STANDARD, segment)
    samples = libjpeg_samples(data).astype(int)
    golden = image_of(restored(CONFIG, quantized(CONFIG, blocks, divisors), divisors))
    assert_near(samples, golden)
    own = libjpeg_file(picture, quality=quality)
    # libjpeg keeps fractions of the coefficients that it divides.
    assert np.square(samples - picture).mean() <= 1.05 * np.square(libjpeg_samples(own).astype(int) - picture).mean()
    assert len(data) <= 1.01 * len(own)
    parts = [libjpeg_samples(jfif(height // 2, width, divisors, STANDARD, half)) for half in halves]
    assert np.array_equal(np.concatenate(parts), samples)


@pytest.mark.parametrize("quality", QUALITIES)
def test_the_decoder_reads_what_libjpeg_writes(picture, quality):
    """Samples are within one of libjpeg's, between invalid segments."""
    data = libjpeg_file(picture, quality=quality)
    file = read_file(data)
    assert (file.dc, file.ac) == tuple((table.counts, table.symbols) for table in (STANDARD.dc, STANDARD.ac))
    cut, noise = file.segment[: len(file.segment) // 2], Random(0).randbytes(100)
    (_, of_cut), (_, of_noise), (blocks, error) = decoded([cut, noise, file.segment], file.divisors)
    assert (of_cut, of_noise, error) == (1, 1, 0)
    assert_near(image_of(blocks), libjpeg_samples(data).astype(int))


def test_every_wrong_segment_ends_with_a_mark():
    scans = [segment for kind in wrong_scans(Random(0)).values() for segment in Random(1).sample(kind, 2)]
    found = decoded(scans, image_table(75))
    assert len(found) == len(scans)


def test_other_samples_are_refused():
    for block in ("jpeg_encoder", "jpeg_decoder"):
        with pytest.raises(ConfigError, match="sample_bits = 9 builds no unit"):
            generator.generate(CduConfig(sample_bits=9), block)
