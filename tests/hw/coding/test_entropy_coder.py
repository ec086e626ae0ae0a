"""Entropy coder of JPEG-BASE in Amaranth's simulator: its cases, and libjpeg's files."""

from random import Random

import numpy as np
import pytest
import torch
from actcodec.golden import jpeg_base
from actcodec.golden.jfif import jfif
from actcodec.golden.scan_decoder import blocks_of
from actcodec.golden.zigzag import from_zigzag
from cdu.coding.entropy_decoder import EntropyDecoder
from cdu.coding.entropy_encoder import EntropyEncoder
from cdu.delivery import manifest
from cdu_spec import port_fields
from cdu_spec.config import CduConfig
from cdu_spec.huffman import STANDARD
from cdu_spec.rounding import Rounding
from cdu_verif.benches.full_rate import play
from cdu_verif.benches.in_amaranth import assert_passes
from cdu_verif.cases.entropy_coder import columns, segments, symbol_count, wrong_scans
from plain_jpeg import libjpeg_file, libjpeg_samples, photograph, read_file

#: Kinds of invalid segments that stay invalid whatever the codes of few bits are.
ALWAYS_WRONG = ("markers", "open_mark", "no_code", "zrl_to_the_end", "dc_out_of_range")


def ports_of(component):
    return {port["name"]: port for port in manifest.ports(component)}


def encoded(blocks):
    """Return the hardware's segment of blocks (n, 64) in zig-zag order, and its cycles."""
    encoder = EntropyEncoder(CduConfig())
    ports = ports_of(encoder)
    received, cycles = play(encoder, columns(ports, "i", [blocks]))
    words = [port_fields.unpack(ports["o__payload"], word) for word in received]
    assert [word["last"] for word in words] == [0] * (len(words) - 1) + [1]
    return b"".join(word["data"].to_bytes(8, "little")[: word["count"]] for word in words), cycles


def decoded(scans):
    """Return for each segment the hardware's blocks (n, 8, 8) and whether the last one has an error; and the cycles."""
    decoder = EntropyDecoder(CduConfig())
    ports = ports_of(decoder)
    received, cycles = play(decoder, segments(ports, "i", scans))
    columns, found = [], []
    for word in received:
        columns.append(port_fields.unpack(ports["o__payload"], word))
        if columns[-1]["last"] and len(columns) % 8 == 0:
            found.append((torch.tensor([one["values"] for one in columns]).view(-1, 8, 8).mT, columns[-1]["error"]))
            columns = []
    assert not columns
    return found, cycles


@pytest.mark.parametrize("block", ["entropy_encoder", "entropy_decoder"])
def test_cases(block):
    assert_passes(block, CduConfig())


@pytest.fixture(scope="module")
def file():
    """Return a part of a photograph by libjpeg, with its standard tables."""
    return read_file(libjpeg_file(photograph()[:40, :64], quality=80))


def test_the_encoder_writes_libjpegs_bytes(file):
    blocks = torch.from_numpy(file.coefficients())
    segment, cycles = encoded(blocks)
    assert segment == file.segment
    assert b"\xff\0" in segment
    # A symbol per cycle, and a few at the ends.
    assert cycles <= symbol_count(blocks).clamp(min=8).sum() + 30


def test_the_decoder_reads_libjpegs_bytes(file):
    wanted = torch.from_numpy(file.coefficients())
    ((blocks, error),), cycles = decoded([file.segment])
    assert not error
    assert torch.equal(blocks, from_zigzag(wanted))
    assert cycles <= symbol_count(wanted).clamp(min=8).sum() + 30


def test_libjpeg_decodes_what_the_encoder_writes():
    """Golden coefficients in the hardware's segment: libjpeg's samples are the golden ones, within one."""
    image = torch.from_numpy((photograph()[40:72, 16:64].astype(int) - 128).astype(np.int8))
    divisors = [1 + place // 2 for place in range(64)]
    coefficients = jpeg_base.forward(image, divisors, 12, 2, Rounding.HALF_AWAY)
    data = jfif(32, 48, divisors, STANDARD, encoded(coefficients)[0])
    samples = jpeg_base.inverse(coefficients, divisors, 12, 2).view(4, 6, 8, 8).transpose(1, 2).reshape(32, 48)
    assert np.abs(libjpeg_samples(data).astype(int) - (samples.numpy().astype(int) + 128)).max() <= 1


def test_wrong_segments_are_told():
    """Invalid segments give the valid blocks, then one with an error; some of the bench's segments of each kind."""
    scans = [segment for kind in wrong_scans(Random(0)).values() for segment in Random(1).sample(kind, 3)]
    found, _ = decoded(scans)
    for segment, (blocks, error) in zip(scans, found, strict=True):
        wanted, wrong = blocks_of(segment)
        assert error == wrong
        assert torch.equal(blocks[: len(wanted)], from_zigzag(wanted).to(torch.int64))
        assert len(blocks) == len(wanted) + wrong


def test_the_benches_segments_are_wrong():
    scans = wrong_scans(Random(0))
    assert all(blocks_of(segment)[1] for name in ALWAYS_WRONG for segment in scans[name])
    assert all(any(blocks_of(segment)[1] for segment in kind) for kind in scans.values())
