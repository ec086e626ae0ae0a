"""CRC-32 behind payloads: random and steady cases in Amaranth's simulator, and the constants against zlib."""

import random
import zlib

import pytest
from cdu_spec import crc
from cdu_spec.config import CduConfig
from cdu_verif.benches.in_amaranth import assert_passes
from parameter_sets import one_at_once


@one_at_once({}, {"packed_port_bits": 256})
@pytest.mark.parametrize("block", ["crc_writer", "crc_checker"])
def test_cases(block, options):
    assert_passes(block, CduConfig(**options))


def test_the_polynomial_is_that_of_zlib():
    """A byte behind the initial register, for all bytes."""
    for byte in range(256):
        register = crc.after_zeros(crc.INITIAL ^ byte, 8)
        assert register ^ crc.INITIAL == zlib.crc32(bytes([byte]))


@pytest.mark.parametrize("size", [0, 1, 5, 64])
def test_the_residue_stands_behind_every_packet(size):
    payload = random.Random(size).randbytes(size)
    packet = payload + zlib.crc32(payload).to_bytes(4, "little")
    assert zlib.crc32(packet) ^ crc.INITIAL == crc.RESIDUE
