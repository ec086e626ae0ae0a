"""Streams made by hand from docs/reference/bitstream.md on compiled RTL: what keeps the rules is decoded, no other."""

import actcodec
import pytest
import torch
from cdu_spec import BitstreamError, Mode
from cdu_verif.backends.compiled.backend import RtlBackend
from cdu_verif.stimulus.streams import on_units
from cdu_verif.stimulus.streams.rule import Refuses
from compiled_units import EVERYTHING
from tools_here import needs_verilator

pytestmark = needs_verilator
CONFIG = EVERYTHING


@pytest.fixture(scope="module")
def unit():
    """A unit with every mode."""
    return RtlBackend(CONFIG, threads=1)


def test_what_keeps_the_rules_is_decoded(unit):
    streams = on_units.accepted(CONFIG, every=True)
    assert {stream[5] for stream in streams.values()} == set(Mode)
    for label, stream in streams.items():
        packed = actcodec.from_bytes(stream)
        values, expected = packed.decompress(unit), packed.decompress()
        assert torch.equal(values.view(torch.int32), expected.view(torch.int32)), label


def check_refused(unit, every):
    for label, (by, stream) in on_units.refused(CONFIG, every=every).items():
        if by is Refuses.READER:
            with pytest.raises(BitstreamError):
                actcodec.from_bytes(stream)
            continue
        packed = actcodec.from_bytes(stream)
        with pytest.raises(BitstreamError) as caught:
            packed.decompress(unit)
        said = str(caught.value)
        if by is Refuses.UNIT:
            assert "early_last" in said or "late_last" in said, label
            continue
        with pytest.raises(BitstreamError) as caught:
            packed.decompress()
        assert said == str(caught.value), label


def test_what_breaks_a_rule_is_refused(unit):
    """By the reader of the stream, by the host in the golden model's words, or by the unit with a bit of ERRORS."""
    check_refused(unit, every=False)


@pytest.mark.campaign
def test_everything_that_breaks_a_rule_is_refused(unit):
    check_refused(unit, every=True)


def test_the_unit_itself_finds_wrong_masks(unit, monkeypatch):
    """Section 7 says whose check it is: without the host's checks the unit finds the ends of blocks."""
    monkeypatch.setattr("cdu_verif.backends.unit_backend.check_payload", lambda job, payload: None)
    streams = on_units.refused(CONFIG, every=False)
    found = [stream for by, stream in streams.values() if by is Refuses.UNIT]
    assert found
    for stream in found[::6]:
        with pytest.raises(BitstreamError, match=r"early_last|late_last"):
            actcodec.from_bytes(stream).decompress(unit)
